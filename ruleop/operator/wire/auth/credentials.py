"""Where the credentials of this process are found."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.files import MAX_CREDENTIAL, read_regular
from ruleop.operator.wire.http.access import REREAD, Access, Configuration, CredentialsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.operator.wire.http.access import Credentials


# -- service account ---------------------------------------------------------------------------------------------------
#
# The credentials of a pod: the files of its service account and two environment variables.


class PodCredentials:
    """A source of credentials (see `Credentials`). The files are read at each `load`: the kubelet replaces the
    token."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder, self._environ = folder, environ

    @property
    def namespace(self) -> str:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return self._text("namespace")
        return "default"

    async def load(self, *, forced: bool = False) -> Access:  # noqa: ARG002 - nothing is cached here
        try:
            configuration = Configuration(
                server=self._server(),
                authorization=f"Bearer {self._token()}",
                authority=read_regular(self._folder / "ca.crt", MAX_CREDENTIAL),
            )
            return configuration.access(self._environ, fresh_for=REREAD)
        except (OSError, ValueError) as error:
            raise CredentialsError(f"the pod's service account in {self._folder}: {error}") from error

    def _server(self) -> str:
        host, port = (self._environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
        if not host or not port:
            raise ValueError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set")
        return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

    def _token(self) -> str:
        token = self._text("token")
        if not token:
            raise ValueError("the token file is empty")
        return token

    def _text(self, name: str) -> str:
        return read_regular(self._folder / name, MAX_CREDENTIAL).decode().strip()


# -- credentials -------------------------------------------------------------------------------------------------------


SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def find_credentials(
    kubeconfig: str = "",
    context: str = "",
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Credentials:
    """In the order of controller-runtime: the flag, $KUBECONFIG, the pod's service account, ~/.kube/config."""
    paths = kubeconfig or environ.get("KUBECONFIG", "")
    in_pod = environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists()
    if not paths and not context and in_pod:
        return PodCredentials(service_account, environ)
    from ruleop.operator.wire.auth.kubeconfig import Kubeconfig, expand_home  # noqa: PLC0415 - a pod needs none

    if not paths:
        paths = str(expand_home(environ.get("HOME") or "~") / ".kube" / "config")
        if not Path(paths).exists():
            raise CredentialsError(
                f"no cluster configured: {paths} does not exist, KUBECONFIG is not set,"
                " and this is not a pod with a service account; use --kubeconfig FILE"
            )
    return Kubeconfig(paths, context, environ)
