"""Options that name a cluster and an operator. This module imports little, so that commands import it at no cost."""

from __future__ import annotations

from ruleop.kubernetes.names import DEFAULT_OPERATOR
from ruleop.values import dataclass


@dataclass(frozen=True, slots=True)
class AccessFlags:
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""  # of the custom resources; empty: the context's
    name: str = DEFAULT_OPERATOR  # of the operator
    operator_namespace: str = ""  # empty: searched
