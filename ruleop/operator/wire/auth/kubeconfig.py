"""A context of one kubeconfig, or of several that are merged as $KUBECONFIG lists them.

The package `kubernetes` reads kubeconfigs, too, but its import takes 17 MiB and 0.15 s, and it writes inline keys to
temporary files. It is imported only for a login by the provider `gcp`. Tests compare the two on a table of kubeconfigs.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import sys
from dataclasses import field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import yaml

from ruleop.files import MAX_CREDENTIAL, read_named, read_regular
from ruleop.operator.wire.auth.exec_plugin import Plugin
from ruleop.operator.wire.auth.oidc import OidcLogin
from ruleop.operator.wire.http.access import REREAD, Access, Configuration, CredentialsError, Identity
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

# A plugin that hangs must not hang the operator for ever; a person who logs in with a browser may take more time.
TIMEOUT, LOGIN_TIMEOUT = 60.0, 120.0
_SECTIONS: Final = {"contexts": "context", "clusters": "cluster", "users": "user"}


def expand_home(path: str) -> Path:
    """Expands a leading ~. Without a home directory the path stays as it is, where Path.expanduser would raise."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


class Kubeconfig:
    """A source of credentials (see `Credentials`)."""

    def __init__(self, paths: str, context: str, environ: Mapping[str, str]) -> None:
        self._paths, self._context, self._environ = paths, context, environ
        self._user: _User | None = None

    @property
    def namespace(self) -> str:
        try:
            return self._open().namespace
        except CredentialsError:
            return "default"

    async def load(self, *, forced: bool = False) -> Access:
        # An OIDC provider may issue a new refresh token at each renewal, and only the login that got it knows it.
        if self._user is None or (forced and self._user.oidc is None):
            self._user = self._open()
        timeout = LOGIN_TIMEOUT if sys.stdin is not None and sys.stdin.isatty() else TIMEOUT
        try:
            async with asyncio.timeout(timeout):
                return await self._user.access(self._environ)
        except TimeoutError as error:
            raise CredentialsError(f"{self._description}: no credentials within {timeout:.0f} s") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CredentialsError(f"{self._description}: {_on_one_line(error)}") from error

    def _open(self) -> _User:
        files = [file for path in self._paths.split(os.pathsep) if path and (file := expand_home(path)).exists()]
        if not files:
            raise CredentialsError(f"{self._paths}: no such kubeconfig")
        try:
            merged = _Merged(files)
            name = self._context or merged.current_context
            if name not in merged.sections["contexts"]:
                wrong = f"no context {name!r}" if name else "no current context; name one with --context"
                known = ", ".join(sorted(merged.sections["contexts"])) or "none"
                raise CredentialsError(f"{self._paths}: {wrong}; there are: {known}")
            return _User(merged, name)
        except (AttributeError, TypeError, KeyError) as error:
            raise CredentialsError(
                f"{self._paths}: not a kubeconfig (it has no contexts, clusters and users as kubectl writes them)"
            ) from error
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise CredentialsError(f"{self._paths}: not a kubeconfig ({_on_one_line(error)})") from error

    @property
    def _description(self) -> str:
        return f"{self._paths} (context {self._context})" if self._context else self._paths


@dataclass(frozen=True, slots=True)
class _Section:
    """The fields of one context, cluster or user, and the folder that their paths are relative to."""

    fields: dict[str, Any] = field(default_factory=dict)
    folder: Path = Path()

    def contents(self, name: str) -> bytes | None:
        """The inline data of this name, or the bytes of its file as they are now. None: neither."""
        if data := self.fields.get(f"{name}-data"):
            try:
                return base64.b64decode(data, validate=True)
            except (binascii.Error, TypeError, ValueError) as error:
                raise ValueError(f"{name}-data is not base64") from error
        return self.file(name)

    def file(self, name: str) -> bytes | None:
        path = self.fields.get(name)
        return read_regular(self.folder / path, MAX_CREDENTIAL) if path else None


class _Merged:
    """Several kubeconfigs: of entries with the same name, and of current contexts, the first counts."""

    def __init__(self, files: list[Path]) -> None:
        self.current_context = ""
        self.sections: dict[str, dict[str, _Section]] = {plural: {} for plural in _SECTIONS}
        for file in files:
            document = yaml.safe_load(read_named(file))
            if document is None:
                raise ValueError(f"the file is empty: {file}")
            self.current_context = self.current_context or document.get("current-context") or ""
            for plural, name in _SECTIONS.items():
                for each in document.get(plural) or ():
                    section = _Section(_mapping(each, name), file.absolute().parent)
                    self.sections[plural].setdefault(each["name"], section)


class _User:
    """The user and the cluster of a context. Raises ValueError for what cannot be used."""

    def __init__(self, merged: _Merged, context: str) -> None:
        names = merged.sections["contexts"][context].fields
        self.namespace = str(names.get("namespace") or "default")
        if names.get("cluster") not in merged.sections["clusters"]:
            raise ValueError(f"context {context}: no cluster {names.get('cluster')!r}")
        self._cluster = merged.sections["clusters"][names["cluster"]]
        self._user = merged.sections["users"].get(names.get("user") or "", _Section())
        declared, provider = (_mapping(self._user.fields, name) for name in ("exec", "auth-provider"))
        self._plugin = Plugin(declared, self._user.folder, _with_absolute_paths(self._cluster)) if declared else None
        self.oidc = OidcLogin(_mapping(provider, "config")) if provider.get("name") == "oidc" else None
        self._gcp = provider if provider.get("name") == "gcp" else None
        self._impersonation = _impersonation(self._user.fields)

    async def access(self, environ: Mapping[str, str]) -> Access:
        configuration = self._configuration()
        fresh_for = REREAD if self._user.fields.get("tokenFile") or self.oidc is not None else None
        if self.oidc is not None:
            configuration.authorization = f"Bearer {await self.oidc.token()}"
        if self._plugin is not None:
            credential = await self._plugin.credential()
            if credential.token:
                configuration.authorization = f"Bearer {credential.token}"
            if credential.identity.certificate:
                configuration.identity = credential.identity
            fresh_for = credential.fresh_for
        return configuration.access(environ, fresh_for=fresh_for)

    def _configuration(self) -> Configuration:
        """With the files read as they are now."""
        cluster, user = self._cluster.fields, self._user
        server = str(cluster.get("server") or "").rstrip("/")
        configuration = Configuration(
            server=server,
            authorization=self._authorization(),
            impersonation=self._impersonation,
            verify=not cluster.get("insecure-skip-tls-verify"),
            server_hostname=cluster.get("tls-server-name") or "",
            proxy=cluster.get("proxy-url") or "",
        )
        if server.startswith("https"):
            configuration.authority = self._cluster.contents("certificate-authority")
            certificate, key = (user.contents(name) or b"" for name in ("client-certificate", "client-key"))
            configuration.identity = Identity(certificate, key)
        return configuration

    def _authorization(self) -> str:
        user = self._user.fields
        if (token := self._user.file("tokenFile")) is not None:
            return f"Bearer {token.decode()}"
        if self._gcp is not None:
            return _gcp_authorization(self._gcp)
        if user.get("token"):
            return f"Bearer {user['token']}"
        if "username" in user and "password" in user:
            login = f"{user['username']}:{user['password']}".encode()
            return f"Basic {base64.b64encode(login).decode()}"
        return ""


def _gcp_authorization(provider: dict[str, Any]) -> str:
    """The access token of the provider `gcp`. `kubernetes` renews it with the provider's command or with google-auth,
    and puts it into the provider's config."""
    from kubernetes.config.config_exception import ConfigException  # noqa: PLC0415 - only such a login needs it
    from kubernetes.config.kube_config import KubeConfigLoader  # noqa: PLC0415

    config = {
        "contexts": [{"name": "gcp", "context": {"cluster": "gcp", "user": "gcp"}}],
        "clusters": [{"name": "gcp", "cluster": {}}],
        "users": [{"name": "gcp", "user": {"auth-provider": provider}}],
    }
    loaded = SimpleNamespace(api_key={})
    try:
        KubeConfigLoader(config, active_context="gcp").load_and_set(loaded)  # type: ignore[no-untyped-call]
    except (ConfigException, AttributeError) as error:
        raise ValueError(f"gcp: {error}") from error
    return str(loaded.api_key["BearerToken"])


def _mapping(section: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = section.get(name) or {}
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a mapping")  # noqa: TRY004 - the text of a file is invalid
    return value


def _with_absolute_paths(cluster: _Section) -> dict[str, Any]:
    """The fields of a cluster, for a program that does not know in which folder the kubeconfig is."""
    authority = cluster.fields.get("certificate-authority")
    return {**cluster.fields, "certificate-authority": str(cluster.folder / authority)} if authority else cluster.fields


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers for `as`, `as-uid`, `as-groups` and `as-user-extra`."""
    headers = [("Impersonate-User", str(user["as"]))] if user.get("as") else []
    headers += [("Impersonate-Uid", str(user["as-uid"]))] if user.get("as-uid") else []
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        name = f"Impersonate-Extra-{quote(str(key).lower(), safe='')}"
        headers += [(name, str(value)) for value in values]
    return tuple(headers)


def _on_one_line(error: BaseException) -> str:
    words = " ".join((str(error) or type(error).__name__).split())
    return words if len(words) <= 400 else f"{words[:400]}..."
