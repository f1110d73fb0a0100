"""Where the API server is, and who we are to it.

`kubernetes.aio.config` reads kubeconfigs (contexts, exec plugins, OIDC, certificates, tokens) and the service account of a pod. What it
does not do is done here:

- it logs the failure of an exec plugin and goes on without credentials; here that is an error with the plugin's own words;
- it reads a token file once, and a service account's token with whatever stands behind it in the file;
- it raises what comes: here every bad surrounding is a sentence.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import datetime as dt
import hashlib
import logging
import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import yaml

from ruleop.errors import RuleopError
from ruleop.kube.official import official
from ruleop.kube.proxies import proxy_for
from ruleop.kube.tls import trusting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

# The kubelet replaces a pod's token when 80 % of its hour are over, and any file may be replaced: as often as client-go looks.
REREAD = 60.0
# An exec plugin is asked again this long before its credential ends, so that no request carries one that ends on the way.
EXPIRY_MARGIN = 30.0
# A login in a browser may take its time; a plugin that hangs must not hang the operator for ever.
PLUGIN_TIMEOUT = 120.0


class CredentialsError(RuleopError):
    """There is no way to the API server: no kubeconfig, no such context, a plugin that fails."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a connection needs, at one moment."""

    server: str
    authorization: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    tls_digest: str = ""  # of certificates and keys: connections made with others are not used any longer
    proxy: str = field(default="", repr=False)  # may hold a password
    server_hostname: str = ""
    fresh_for: float | None = None  # seconds until they are to be loaded again; None: when they are refused


class Credentials(Protocol):
    """A source of access. `forced`: the last ones were refused, so nothing that is remembered counts."""

    @property
    def namespace(self) -> str: ...

    async def load(self, *, forced: bool = False) -> Access: ...


def find_credentials(
    kubeconfig: str = "", context: str = "", *, environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> Credentials:
    """In the order of controller-runtime: the flag, $KUBECONFIG, the pod's service account, ~/.kube/config."""
    paths = kubeconfig or environ.get("KUBECONFIG", "")
    if not paths and not context and environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists():
        return ServiceAccount(service_account, environ)
    if not paths:
        paths = str(Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config")
        if not Path(paths).exists():
            raise CredentialsError(
                f"no cluster to talk to: there is no {paths}, KUBECONFIG is not set, and this is no pod with a service account;"
                " use --kubeconfig FILE"
            )
    return Kubeconfig(paths, context, environ)


class ServiceAccount:
    """The identity of the pod that we run in."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder, self._environ = folder, environ

    @property
    def namespace(self) -> str:
        with contextlib.suppress(OSError):
            return (self._folder / "namespace").read_text(encoding="utf-8").strip()
        return "default"

    async def load(self, *, forced: bool = False) -> Access:  # noqa: ARG002 - nothing is remembered here
        configuration = _Configuration()
        try:
            loader = official().incluster_config.InClusterConfigLoader(
                str(self._folder / "token"), str(self._folder / "ca.crt"), try_refresh_token=False, environ=self._environ
            )
            loader.load_and_set(configuration)
            return configuration.access(self._environ, fresh_for=REREAD)
        except (_config_exception(), OSError, ValueError) as error:
            raise CredentialsError(f"the pod's service account in {self._folder}: {error}") from error


class Kubeconfig:
    """A context of one kubeconfig, or of several that are merged as $KUBECONFIG has them."""

    def __init__(self, paths: str, context: str, environ: Mapping[str, str]) -> None:
        self._paths, self._context, self._environ = paths, context, environ
        self._loader: Any = None

    @property
    def namespace(self) -> str:
        try:
            return str(self._open().current_context["context"].get("namespace") or "default")
        except CredentialsError:
            return "default"

    async def load(self, *, forced: bool = False) -> Access:
        # An OIDC provider hands out a new refresh token with each use, and only the loader that got it has it.
        if self._loader is None or (forced and self._loader.provider != "oidc"):
            self._loader = self._open()
        loader, configuration = self._loader, _Configuration()
        try:
            with _complaints_of(loader) as complaints:
                async with asyncio.timeout(PLUGIN_TIMEOUT):
                    await loader.load_and_set(configuration)
            user = self._user(loader)
            self._check_plugin(user, configuration, complaints)
            return configuration.access(self._environ, fresh_for=self._fresh_for(loader, user))
        except TimeoutError as error:
            raise CredentialsError(f"{self._described}: no credentials within {PLUGIN_TIMEOUT:.0f} s") from error
        except (_config_exception(), OSError, ValueError, KeyError) as error:
            raise CredentialsError(f"{self._described}: {_sentence(error)}") from error

    def _open(self) -> Any:
        if not any(path and Path(path).expanduser().exists() for path in self._paths.split(os.pathsep)):
            raise CredentialsError(f"{self._paths}: there is no such kubeconfig")
        try:
            kube_config = official().kube_config
            merged = kube_config.KubeConfigMerger(self._paths).config
            return kube_config.KubeConfigLoader(config_dict=merged, active_context=self._context or None, config_base_path=None)
        except _config_exception() as error:
            if self._context and "name" in str(error):
                known = ", ".join(sorted(context["name"] for context in merged.value.get("contexts") or ())) or "none"
                raise CredentialsError(f"{self._paths}: no context {self._context!r}; there are: {known}") from error
            raise CredentialsError(f"{self._paths}: {_sentence(error)}") from error
        except (OSError, ValueError, AttributeError, TypeError, KeyError, yaml.YAMLError) as error:
            raise CredentialsError(f"{self._paths}: not a kubeconfig ({_sentence(error)})") from error

    def _user(self, loader: Any) -> Mapping[str, Any]:
        user = loader._user  # noqa: SLF001 - guarded by the contract tests
        return user.value if user is not None else {}

    def _check_plugin(self, user: Mapping[str, Any], configuration: _Configuration, complaints: list[str]) -> None:
        plugin = user.get("exec")
        if plugin and not configuration.api_key and not configuration.cert_file:
            why = "; ".join(complaints) or "it gave no credentials"
            hint = f" ({plugin['installHint'].strip()})" if plugin.get("installHint") else ""
            raise CredentialsError(f"{self._described}: exec plugin {plugin.get('command')}: {why}{hint}")

    def _fresh_for(self, loader: Any, user: Mapping[str, Any]) -> float | None:
        expiry = getattr(loader, "exec_plugin_expiry", None)
        if expiry is not None:
            # The loader itself takes a credential for expired five minutes early, and then runs the plugin on each load.
            left: float = (expiry - dt.datetime.now(dt.UTC)).total_seconds()
            return max(left - EXPIRY_MARGIN, 1.0)
        return REREAD if user.get("tokenFile") or loader.provider == "oidc" else None

    @property
    def _described(self) -> str:
        return f"{self._paths} (context {self._context})" if self._context else self._paths


def _config_exception() -> type[Exception]:
    raised: type[Exception] = official().config_exception.ConfigException
    return raised


@dataclass(slots=True)
class _Configuration:
    """What the loaders of `kubernetes` fill in."""

    host: str = ""
    ssl_ca_cert: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify_ssl: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    api_key: dict[str, str] = field(default_factory=dict, repr=False)

    def tls(self) -> ssl.SSLContext:
        context = trusting(self.ssl_ca_cert)
        if self.cert_file:
            context.load_cert_chain(self.cert_file, keyfile=self.key_file)
        if not self.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def access(self, environ: Mapping[str, str], *, fresh_for: float | None) -> Access:
        if not self.host:
            raise ValueError("the cluster has no server")
        scheme, _, token = self.api_key.get("BearerToken", "").partition(" ")
        try:
            tls = self.tls() if self.host.startswith("https") else None
        except ssl.SSLError as error:
            raise CredentialsError(f"{self.host}: the certificates cannot be read: {_sentence(error)}") from error
        return Access(
            server=self.host,
            authorization=f"{scheme.capitalize()} {token.strip()}" if token.strip() else "",
            tls=tls,
            tls_digest=_digest((self.ssl_ca_cert, self.cert_file, self.key_file)),
            proxy=self.proxy or proxy_for(self.host, environ),
            server_hostname=self.tls_server_name or "",
            fresh_for=fresh_for,
        )


def _digest(files: Iterable[str | None]) -> str:
    return hashlib.sha256(b"".join(Path(name).read_bytes() for name in files if name)).hexdigest()


@contextlib.contextmanager
def _complaints_of(loader: Any) -> Iterator[list[str]]:
    """What the loader logs as errors instead of raising it."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(_shortened(_decoded(record.getMessage())))

    logger, listener = logging.getLogger(type(loader).__module__), Listener(logging.ERROR)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    try:
        yield said
    finally:
        logger.removeHandler(listener)
        logger.propagate = propagated


def _decoded(text: str) -> str:
    """What a plugin wrote to stderr, which the loader shows as Python shows bytes."""
    said = re.fullmatch(r"""(.*\. )(b'.*'|b".*")""", text, re.DOTALL)
    return said[1] + ast.literal_eval(said[2]).decode(errors="replace") if said else text


def _sentence(error: BaseException) -> str:
    return _shortened(str(error) or type(error).__name__)


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 400 else f"{words[:400]}..."
