"""Roles and their bindings, PodDisruptionBudgets, PriorityClasses, Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.validation import rules

if TYPE_CHECKING:
    from ruleop.kubernetes.validation.rules import Rows


GROUP: Final = "rbac.authorization.k8s.io"
_RULE: Final[Rows] = {
    "verbs": "needed",
    lambda rule: not rule.get("nonResourceURLs"): {"apiGroups resources": "needed"},
    lambda rule: rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"): {
        "nonResourceURLs": "unset"
    },
}
ROLE: Final[Rows] = {"rules[]": (_RULE, {"nonResourceURLs": "unset"})}
CLUSTER_ROLE: Final[Rows] = {
    "rules[]": _RULE,
    "aggregationRule.clusterRoleSelectors": "needed",
    "aggregationRule.clusterRoleSelectors[]": (
        "selector",
        {rules.is_invalid: rules.invalid("invalid label selector")},
    ),
}


def _binding(roles: str, namespace: Rows) -> Rows:
    return (
        rules.frozen(words="cannot change roleRef"),
        {
            "roleRef!": {"apiGroup": f"{GROUP}!", "kind": roles, "name": "needed segment"},
            "subjects[]": {
                "name": "needed",
                "kind": "ServiceAccount|User|Group!",
                "if kind=ServiceAccount": {"name": "subdomain", "apiGroup": "empty", "namespace": namespace},
                "apiGroup if kind=User|Group": f"{GROUP}!",
            },
        },
    )


ROLE_BINDING: Final = _binding("Role|ClusterRole!", ())
CLUSTER_ROLE_BINDING: Final = _binding("ClusterRole!", "needed")

# -- budgets, priorities, Leases -------------------------------------------------------------------------------------

BUDGET: Final[Rows] = {
    "spec": {
        "minAvailable maxUnavailable": "part",
        "selector": "selector",
        "unhealthyPodEvictionPolicy": "AlwaysAllow|IfHealthyBudget",
        "if minAvailable": {"if maxUnavailable": rules.invalid("minAvailable and maxUnavailable cannot be both set")},
    }
}
LEASE: Final[Rows] = {"spec": {"leaseDurationSeconds": "1..", "leaseTransitions": "0.."}}
PRIORITY_CLASS: Final = rules.frozen()
