"""A context of one kubeconfig, or of several that are merged as $KUBECONFIG has them.

`kubernetes.aio.config` reads files, tokens, passwords and logins by OIDC. What it does not do as kubectl does, or leaves in files (keys
that stand in the kubeconfig itself), is taken out of what it is given to read, and done here.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml

from ruleop.kube.auth.exec_plugin import Plugin
from ruleop.kube.auth.kubernetes_config import official
from ruleop.kube.http.access import REREAD, Access, Configuration, CredentialsError, Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

# A login in a browser may take its time; a plugin that hangs must not hang the operator for ever.
TIMEOUT = 120.0


def at_home(path: str) -> Path:
    """With the home that ~ means; as it is where there is none, for which Path's own would raise."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


class Kubeconfig:
    """A source of credentials (see `Credentials`)."""

    def __init__(self, paths: str, context: str, environ: Mapping[str, str]) -> None:
        self._paths, self._context, self._environ = paths, context, environ
        self._opened: _Opened | None = None

    @property
    def namespace(self) -> str:
        try:
            return str(self._open().loader.current_context["context"].get("namespace") or "default")
        except CredentialsError:
            return "default"

    async def load(self, *, forced: bool = False) -> Access:
        # An OIDC provider hands out a new refresh token with each use, and only the loader that got it has it.
        if self._opened is None or (forced and self._opened.loader.provider != "oidc"):
            self._opened = self._open()
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._opened.access(self._environ)
        except TimeoutError as error:
            raise CredentialsError(f"{self._described}: no credentials within {TIMEOUT:.0f} s") from error
        except (official().config_exception.ConfigException, OSError, ValueError, KeyError) as error:
            raise CredentialsError(f"{self._described}: {_sentence(error)}") from error

    def _open(self) -> _Opened:
        if not any(path and at_home(path).exists() for path in self._paths.split(os.pathsep)):
            raise CredentialsError(f"{self._paths}: there is no such kubeconfig")
        theirs = official()
        try:
            merger = theirs.kube_config.KubeConfigMerger(self._paths)
            # As for everything else, the first file that says something counts.
            current = next((config["current-context"] for config in merger.config_files.values() if config.get("current-context")), None)
            context = self._context or current
            known = [each["name"] for each in merger.config.value["contexts"]]
            if context not in known:
                wrong = f"no context {context!r}" if context else "no current context; name one with --context"
                raise CredentialsError(f"{self._paths}: {wrong}; there are: {', '.join(sorted(known)) or 'none'}")
            return _Opened(theirs.kube_config.KubeConfigLoader(config_dict=merger.config, active_context=context, config_base_path=None))
        except theirs.config_exception.ConfigException as error:
            raise CredentialsError(f"{self._paths}: {_sentence(error)}") from error
        except (AttributeError, TypeError, KeyError) as error:
            raise CredentialsError(
                f"{self._paths}: not a kubeconfig (it has no contexts, clusters and users as kubectl writes them)"
            ) from error
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise CredentialsError(f"{self._paths}: not a kubeconfig ({_sentence(error)})") from error

    @property
    def _described(self) -> str:
        return f"{self._paths} (context {self._context})" if self._context else self._paths


class _Opened:
    """A loader of `kubernetes`, and what it is not given to read. Raises ValueError for what cannot be used."""

    def __init__(self, loader: Any) -> None:
        # The contract tests guard what is private here.
        cluster_node, user_node = loader._cluster, loader._user  # noqa: SLF001
        cluster: dict[str, Any] = cluster_node.value
        user: dict[str, Any] = user_node.value if user_node is not None else {}
        if not isinstance(user.get("exec") or {}, dict):
            raise ValueError("exec is not a mapping")  # noqa: TRY004 - it is a text that is wrong
        self.loader = loader
        self._plugin = Plugin(user["exec"], Path(user_node.path).parent, _absolute(cluster_node)) if user.get("exec") else None
        self._authority = _taken(cluster, "certificate-authority-data") or None
        self._identity = Identity(_taken(user, "client-certificate-data"), _taken(user, "client-key-data"))
        self._impersonation = _impersonation(user)
        self._rereads = bool(user.get("tokenFile")) or loader.provider == "oidc"
        user.pop("exec", None)
        if user.get("tokenFile"):
            user.pop("token", None)  # what it was when the file was not there yet

    async def access(self, environ: Mapping[str, str]) -> Access:
        configuration = Configuration(authority=self._authority, identity=self._identity, impersonation=self._impersonation)
        await self.loader.load_and_set(configuration)
        fresh_for = REREAD if self._rereads else None
        if self._plugin is not None:
            credential = await self._plugin.credential()
            if credential.token:
                configuration.api_key["BearerToken"] = f"Bearer {credential.token}"
            if credential.identity.certificate:
                configuration.identity = credential.identity
            fresh_for = credential.fresh_for
        return configuration.access(environ, fresh_for=fresh_for)


def _absolute(cluster: Any) -> dict[str, Any]:
    """What a kubeconfig says of a cluster, for somebody who does not know where that kubeconfig is."""
    said: dict[str, Any] = {**cluster.value}
    if said.get("certificate-authority"):
        said["certificate-authority"] = str(Path(cluster.path).absolute().parent / said["certificate-authority"])
    return said


def _taken(section: dict[str, Any], name: str) -> bytes:
    """What stands in the kubeconfig itself."""
    try:
        return base64.b64decode(section.pop(name, None) or "", validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ValueError(f"{name} is not base64") from error


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers for `as`, `as-uid`, `as-groups` and `as-user-extra`."""
    headers = [("Impersonate-User", str(user["as"]))] if user.get("as") else []
    headers += [("Impersonate-Uid", str(user["as-uid"]))] if user.get("as-uid") else []
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{quote(str(key).lower(), safe='')}", str(value)) for value in values]
    return tuple(headers)


def _sentence(error: BaseException) -> str:
    words = " ".join((str(error) or type(error).__name__).split())
    return words if len(words) <= 400 else f"{words[:400]}..."
