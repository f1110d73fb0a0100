"""Credentials from a command that the kubeconfig names ("exec plugin"), called as client-go calls it.

`kubernetes` calls them, too (37.0), but it logs a failure and goes on as nobody, does not say which cluster it is about, keeps from a
person at the terminal what the plugin asks, and leaves the keys that it gets in files.
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruleop.kube.http.access import Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

# The plugin is called again this long before its credential ends, so that no request carries one that ends on the way,
EXPIRY_MARGIN = 30.0
# but not more often than this: many give what they have until it has really ended.
CALL_AGAIN = 10.0

_EXTENSION = "client.authentication.k8s.io/exec"
_FOR_PLUGINS = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url", "disable-compression")


class PluginError(ValueError):
    """It could not be called, or what it said is no credential."""


@dataclass(frozen=True, slots=True)
class Credential:
    token: str = field(default="", repr=False)
    identity: Identity = field(default_factory=Identity)
    ends: dt.datetime | None = None

    @property
    def fresh_for(self) -> float | None:
        """Seconds until the next call; None: until it is refused."""
        return None if self.ends is None else max((self.ends - dt.datetime.now(dt.UTC)).total_seconds() - EXPIRY_MARGIN, CALL_AGAIN)


class Plugin:
    """`declared` is the kubeconfig's `exec`, `folder` where that kubeconfig is, `cluster` what it says of the cluster."""

    def __init__(self, declared: Mapping[str, Any], folder: Path, cluster: Mapping[str, Any]) -> None:
        self._declared, self._folder, self._cluster = declared, folder, cluster

    async def credential(self) -> Credential:
        """Raises PluginError. Who gives up waiting ends the command with it."""
        try:
            return self._credential(await self._said())
        except PluginError as error:
            hint = str(self._declared.get("installHint") or "").strip()
            raise PluginError(f"exec plugin {self._declared.get('command')}: {error}{f' ({hint})' if hint else ''}") from error

    async def _said(self) -> bytes:
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
            said, complaint = await asyncio.gather(process.stdout.read(), _heard(process.stderr, shown=interactive))
            code = await process.wait()
        finally:
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - ends it, whoever else may hold its pipes
            await process.wait()
        if code != 0:
            raise PluginError(f"it ended with {code}: {complaint.decode(errors='replace').strip() or 'and said nothing'}")
        return said

    def _interactive(self) -> bool:
        mode, terminal = self._declared.get("interactiveMode") or "IfAvailable", sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not terminal:
            raise PluginError("it wants to ask a person (interactiveMode: Always), and there is no terminal")
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
            info["certificate-authority-data"] = base64.b64encode(Path(authority).read_bytes()).decode()
        for each in self._cluster.get("extensions") or ():
            if each.get("name") == _EXTENSION:
                info["config"] = each.get("extension")
        return info

    def _credential(self, said: bytes) -> Credential:
        version = self._declared.get("apiVersion")
        try:
            answer = json.loads(said)
        except ValueError as error:
            raise PluginError(f"what it said is not JSON: {error}") from error
        if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential" or answer.get("apiVersion") != version:
            raise PluginError(f"what it said is no ExecCredential of {version}")
        status = answer.get("status")
        if not isinstance(status, dict):
            raise PluginError("it gave no credentials")
        token, certificate, key = (status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData"))
        if not all(isinstance(each, str) for each in (token, certificate, key)) or bool(certificate) != bool(key) or not (token or key):
            raise PluginError("it gave no credentials: a token, or a clientCertificateData and its clientKeyData")
        return Credential(token, Identity(certificate.encode(), key.encode()), _moment(status.get("expirationTimestamp")))


def _moment(text: object) -> dt.datetime | None:
    if not text:
        return None
    try:
        return dt.datetime.fromisoformat(str(text)).astimezone(dt.UTC)
    except ValueError as error:
        raise PluginError(f"its expirationTimestamp is {text!r}") from error


async def _heard(stream: asyncio.StreamReader, *, shown: bool) -> bytes:
    """What a plugin says beside its answer: the reason of a failure, or where a person is to log in."""
    heard = b""
    while piece := await stream.read(1 << 12):
        heard += piece
        if shown:
            sys.stderr.write(piece.decode(errors="replace"))
            sys.stderr.flush()
    return heard
