"""A context of one kubeconfig, or of several that are merged as $KUBECONFIG lists them.

`kubernetes.config` merges the files and reads tokens, passwords and paths. Entries that it handles differently from
kubectl (exec plugins, OIDC logins), or would copy to temporary files (inline keys), are removed from the data before
that, and handled here.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from ruleop.core.files import MAX_CREDENTIAL, MAX_FILE, read_regular
from ruleop.operator.kube.auth.exec_plugin import Plugin
from ruleop.operator.kube.auth.oidc import OidcLogin
from ruleop.operator.kube.http.access import REREAD, Access, Configuration, CredentialsError, Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

# A plugin that hangs must not hang the operator for ever; a person who logs in with a browser may take more time.
TIMEOUT, LOGIN_TIMEOUT = 60.0, 120.0


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
        except (ConfigException, OSError, ValueError, KeyError, TypeError) as error:
            raise CredentialsError(f"{self._description}: {_on_one_line(error)}") from error

    def _open(self) -> _User:
        if not any(path and expand_home(path).exists() for path in self._paths.split(os.pathsep)):
            raise CredentialsError(f"{self._paths}: no such kubeconfig")
        try:
            for path in filter(None, self._paths.split(os.pathsep)):
                _check_size(expand_home(path))
            merger = KubeConfigMerger(self._paths)  # type: ignore[no-untyped-call]
            # As for everything else, the first file that has one counts.
            contexts = (config.get("current-context") for config in merger.config_files.values())
            name = self._context or next(filter(None, contexts), None)
            known = [each["name"] for each in merger.config.value["contexts"]]
            if name not in known:
                wrong = f"no context {name!r}" if name else "no current context; name one with --context"
                raise CredentialsError(f"{self._paths}: {wrong}; there are: {', '.join(sorted(known)) or 'none'}")
            return _User(KubeConfigLoader(merger.config, active_context=name, config_base_path=None))  # type: ignore[no-untyped-call]
        except (AttributeError, TypeError, KeyError) as error:
            raise CredentialsError(
                f"{self._paths}: not a kubeconfig (it has no contexts, clusters and users as kubectl writes them)"
            ) from error
        except (ConfigException, OSError, ValueError, yaml.YAMLError) as error:
            raise CredentialsError(f"{self._paths}: not a kubeconfig ({_on_one_line(error)})") from error

    @property
    def _description(self) -> str:
        return f"{self._paths} (context {self._context})" if self._context else self._paths


class _User:
    """The user and the cluster of a context. Raises ValueError for what cannot be used."""

    def __init__(self, loader: Any) -> None:
        # The contract tests guard what is private here.
        cluster_node, user_node = loader._cluster, loader._user  # noqa: SLF001
        cluster: dict[str, Any] = cluster_node.value
        user: dict[str, Any] = user_node.value if user_node is not None else {}
        self._loader = loader
        declared = _mapping(user, "exec")
        folder = Path(user_node.path).parent if user_node is not None else Path()
        self._plugin = Plugin(declared, folder, _with_absolute_paths(cluster_node)) if declared else None
        self.oidc = _take_oidc_login(user)
        self._authority = _take_data(cluster, "certificate-authority-data") or None
        certificate, key = (_take_data(user, name) for name in ("client-certificate-data", "client-key-data"))
        self._identity = Identity(certificate, key)
        self._impersonation = _impersonation(user)
        user.pop("exec", None)
        self._token_file = folder / user.pop("tokenFile") if user.get("tokenFile") else None
        if self._token_file is not None:
            user.pop("token", None)  # the file goes first
        self._rereads = self._token_file is not None or self.oidc is not None

    @property
    def namespace(self) -> str:
        return str(self._loader.current_context["context"].get("namespace") or "default")

    async def access(self, environ: Mapping[str, str]) -> Access:
        configuration = self._configuration()
        fresh_for = REREAD if self._rereads else None
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
        loaded = SimpleNamespace(host="", ssl_ca_cert=None, cert_file=None, key_file=None, api_key={})
        loaded.verify_ssl, loaded.tls_server_name, loaded.proxy = True, None, None
        self._loader.load_and_set(loaded)
        if self._token_file is not None:
            loaded.api_key["BearerToken"] = f"Bearer {read_regular(self._token_file, MAX_CREDENTIAL).decode()}"
        authority, identity = self._authority, self._identity
        if authority is None and loaded.ssl_ca_cert:
            authority = read_regular(Path(loaded.ssl_ca_cert), MAX_CREDENTIAL)
        if not identity.certificate and loaded.cert_file:
            key = read_regular(Path(loaded.key_file), MAX_CREDENTIAL) if loaded.key_file else b""
            identity = Identity(read_regular(Path(loaded.cert_file), MAX_CREDENTIAL), key)
        return Configuration(
            server=loaded.host,
            authorization=loaded.api_key.get("BearerToken", ""),
            authority=authority,
            identity=identity,
            impersonation=self._impersonation,
            verify=bool(loaded.verify_ssl),
            server_hostname=loaded.tls_server_name or "",
            proxy=loaded.proxy or "",
        )


def _check_size(file: Path) -> None:
    """`kubernetes` reads all of it, and a device may be endless."""
    if file.exists() and (stat.S_ISCHR(file.stat().st_mode) or file.stat().st_size > MAX_FILE):
        raise ValueError(f"{file} is a device, or larger than {MAX_FILE >> 20} MiB")


def _mapping(section: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = section.get(name) or {}
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a mapping")  # noqa: TRY004 - the text of a file is invalid
    return value


def _take_oidc_login(user: dict[str, Any]) -> OidcLogin | None:
    provider = _mapping(user, "auth-provider")
    if provider.get("name") != "oidc":
        return None
    del user["auth-provider"]
    return OidcLogin(_mapping(provider, "config"))


def _with_absolute_paths(cluster: Any) -> dict[str, Any]:
    """The section of a cluster, for a program that does not know in which folder the kubeconfig is."""
    section: dict[str, Any] = {**cluster.value}
    if section.get("certificate-authority"):
        folder = Path(cluster.path).absolute().parent
        section["certificate-authority"] = str(folder / section["certificate-authority"])
    return section


def _take_data(section: dict[str, Any], name: str) -> bytes:
    """Removes and decodes an inline value of the kubeconfig."""
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
        name = f"Impersonate-Extra-{quote(str(key).lower(), safe='')}"
        headers += [(name, str(value)) for value in values]
    return tuple(headers)


def _on_one_line(error: BaseException) -> str:
    words = " ".join((str(error) or type(error).__name__).split())
    return words if len(words) <= 400 else f"{words[:400]}..."
