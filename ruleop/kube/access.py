"""How to reach a cluster, and which operator is meant. It imports nothing, so that a command can name it at no cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""  # of the custom resources; empty: the context's
    name: str = "ruleop"  # of the operator
    operator_namespace: str = ""  # empty: searched
