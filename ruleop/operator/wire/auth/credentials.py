"""Where the credentials of this process are found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.operator.wire.auth.kubeconfig import Kubeconfig, expand_home
from ruleop.operator.wire.auth.service_account import ServiceAccount
from ruleop.operator.wire.http.access import CredentialsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.operator.wire.http.access import Credentials

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
        return ServiceAccount(service_account, environ)
    if not paths:
        paths = str(expand_home(environ.get("HOME") or "~") / ".kube" / "config")
        if not Path(paths).exists():
            raise CredentialsError(
                f"no cluster configured: {paths} does not exist, KUBECONFIG is not set,"
                " and this is not a pod with a service account; use --kubeconfig FILE"
            )
    return Kubeconfig(paths, context, environ)
