"""Credentials from a command that the kubeconfig names ("exec plugin"), called as client-go calls it.

`kubernetes` calls them, too (37.0), but it logs a failure and continues anonymously, does not pass the cluster, hides
the plugin's questions from a user at the terminal, and leaves keys in files.
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import os
import sys
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruleop.files import MAX_CREDENTIAL, read_regular
from ruleop.operator.wire.http.access import Identity
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

# The plugin is called again this long before its credential expires, so that no request carries an expired one,
EXPIRY_MARGIN = 30.0
# but not more often than this: many return the same credential until it has expired.
CALL_AGAIN = 10.0

MAX_COMPLAINT = 1 << 16  # bytes of stderr that are kept; all of it is read, so that the plugin does not wait

_EXTENSION = "client.authentication.k8s.io/exec"
_FOR_PLUGINS = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
)


class PluginError(ValueError):
    """The plugin could not be called, or its output is not a credential."""


@dataclass(frozen=True, slots=True)
class Credential:
    token: str = field(default="", repr=False)
    identity: Identity = field(default_factory=Identity)
    expires: dt.datetime | None = None

    @property
    def fresh_for(self) -> float | None:
        """Seconds until the next call; None: until it is rejected."""
        return (
            None
            if self.expires is None
            else max((self.expires - dt.datetime.now(dt.UTC)).total_seconds() - EXPIRY_MARGIN, CALL_AGAIN)
        )


class Plugin:
    """`declared` is the kubeconfig's `exec`, `folder` that of the kubeconfig, `cluster` its section of the cluster."""

    def __init__(self, declared: Mapping[str, Any], folder: Path, cluster: Mapping[str, Any]) -> None:
        self._declared, self._folder, self._cluster = declared, folder, cluster

    async def credential(self) -> Credential:
        """Raises PluginError. Cancelling ends the command."""
        try:
            return self._credential(await self._output())
        except PluginError as error:
            hint = str(self._declared.get("installHint") or "").strip()
            raise PluginError(
                f"exec plugin {self._declared.get('command')}: {error}{f' ({hint})' if hint else ''}"
            ) from error

    async def _output(self) -> bytes:
        interactive = self._interactive()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command(),
                env=self._environment(interactive=interactive),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise PluginError(str(error)) from error
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.TaskGroup() as readers:
                stdout = readers.create_task(_read_stdout(process.stdout))
                stderr = readers.create_task(_read_stderr(process.stderr, shown=interactive))
            output, complaint = stdout.result(), stderr.result()
            code = await process.wait()
        except ExceptionGroup as errors:  # not `except*`: what that raises is in a group again, with Python 3.11.2
            raise errors.exceptions[0] from None
        finally:
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - kills it, even if another process holds its pipes
            await process.wait()
        if code != 0:
            raise PluginError(f"exit status {code}: {complaint.decode(errors='replace').strip() or 'no message'}")
        return output

    def _interactive(self) -> bool:
        mode, terminal = (
            self._declared.get("interactiveMode") or "IfAvailable",
            sys.stdin is not None and sys.stdin.isatty(),
        )
        if mode == "Always" and not terminal:
            raise PluginError("it is interactive (interactiveMode: Always), and there is no terminal")
        return terminal and mode != "Never"

    def _command(self) -> list[str]:
        command = str(self._declared.get("command") or "")
        if not command:
            raise PluginError("the kubeconfig names no command")
        if os.sep in command:
            command = str(self._folder / command)
        return [command, *map(str, self._declared.get("args") or ())]

    def _environment(self, *, interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._declared.get("provideClusterInfo"):
            spec["cluster"] = self._cluster_info()
        info = {"apiVersion": self._declared.get("apiVersion"), "kind": "ExecCredential", "spec": spec}
        declared = {str(each["name"]): str(each["value"]) for each in self._declared.get("env") or ()}
        return {**os.environ, **declared, "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def _cluster_info(self) -> dict[str, Any]:
        info = {name: self._cluster[name] for name in _FOR_PLUGINS if self._cluster.get(name)}
        authority = self._cluster.get("certificate-authority")
        if authority and "certificate-authority-data" not in info:
            info["certificate-authority-data"] = base64.b64encode(
                read_regular(Path(authority), MAX_CREDENTIAL)
            ).decode()
        for each in self._cluster.get("extensions") or ():
            if each.get("name") == _EXTENSION:
                info["config"] = each.get("extension")
        return info

    def _credential(self, output: bytes) -> Credential:
        version = self._declared.get("apiVersion")
        try:
            document = json.loads(output)
        except ValueError as error:
            raise PluginError(f"its output is not JSON: {error}") from error
        if (
            not isinstance(document, dict)
            or document.get("kind") != "ExecCredential"
            or document.get("apiVersion") != version
        ):
            raise PluginError(f"its output is not an ExecCredential of {version}")
        status = document.get("status")
        if not isinstance(status, dict):
            raise PluginError("its output has no credentials")
        token, certificate, key = (
            status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData")
        )
        if (
            not all(isinstance(each, str) for each in (token, certificate, key))
            or bool(certificate) != bool(key)
            or not (token or key)
        ):
            raise PluginError(
                "its output has no credentials: a token, or a clientCertificateData and its clientKeyData"
            )
        return Credential(
            token, Identity(certificate.encode(), key.encode()), _parse_expiry(status.get("expirationTimestamp"))
        )


def _parse_expiry(text: object) -> dt.datetime | None:
    if not text:
        return None
    try:
        return dt.datetime.fromisoformat(str(text)).astimezone(dt.UTC)
    except ValueError as error:
        raise PluginError(f"its expirationTimestamp is {text!r}") from error


async def _read_stdout(stream: asyncio.StreamReader) -> bytes:
    output = bytearray()
    while piece := await stream.read(1 << 16):
        output += piece
        if len(output) > MAX_CREDENTIAL:
            raise PluginError(f"its output is larger than {MAX_CREDENTIAL // 1024} KiB")
    return bytes(output)


async def _read_stderr(stream: asyncio.StreamReader, *, shown: bool) -> bytes:
    """The beginning of the plugin's stderr: the reason of a failure, or where to log in."""
    text = b""
    while piece := await stream.read(1 << 12):
        text += piece[: MAX_COMPLAINT - len(text)]
        if shown:
            sys.stderr.write(piece.decode(errors="replace"))
            sys.stderr.flush()
    return text
