"""Where credentials are found, and those of a pod.

`kubernetes.aio.config` reads the service account. It reads a token with whatever stands behind it in the file, and raises what comes:
here every bad surrounding is a sentence.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.kube.auth.kubeconfig import Kubeconfig, at_home
from ruleop.kube.auth.kubernetes_config import official
from ruleop.kube.http.access import REREAD, Access, Configuration, Credentials, CredentialsError

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def find_credentials(
    kubeconfig: str = "", context: str = "", *, environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> Credentials:
    """In the order of controller-runtime: the flag, $KUBECONFIG, the pod's service account, ~/.kube/config."""
    paths = kubeconfig or environ.get("KUBECONFIG", "")
    if not paths and not context and environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists():
        return ServiceAccount(service_account, environ)
    if not paths:
        paths = str(at_home(environ.get("HOME") or "~") / ".kube" / "config")
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
        configuration = Configuration()
        theirs = official()
        try:
            loader = theirs.incluster_config.InClusterConfigLoader(
                str(self._folder / "token"), str(self._folder / "ca.crt"), try_refresh_token=False, environ=self._environ
            )
            loader.load_and_set(configuration)
            return configuration.access(self._environ, fresh_for=REREAD)
        except (theirs.config_exception.ConfigException, OSError, ValueError) as error:
            raise CredentialsError(f"the pod's service account in {self._folder}: {error}") from error
