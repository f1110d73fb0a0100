"""Options that name a cluster and an operator. This module imports nothing, so that commands import it at no cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""  # of the custom resources; empty: the context's
    name: str = "ruleop"  # of the operator
    operator_namespace: str = ""  # empty: searched
