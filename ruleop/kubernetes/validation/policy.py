"""Roles and their bindings, PodDisruptionBudgets, PriorityClasses, Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.validation import rules

if TYPE_CHECKING:
    from ruleop.kubernetes.validation.rules import Rows


GROUP: Final = "rbac.authorization.k8s.io"
_OF_BOTH: Final = "Invalid value: {}: rules cannot apply to both regular resources and non-resource URLs"
_RULE: Final[Rows] = {
    "verbs": "Required value: verbs must contain at least one value",
    lambda rule: not rule.get("nonResourceURLs"): {
        "apiGroups": "Required value: resource rules must supply at least one api group",
        "resources": "Required value: resource rules must supply at least one resource",
    },
    lambda rule: rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"): {
        "nonResourceURLs": _OF_BOTH
    },
}
ROLE: Final[Rows] = {
    "rules[]": _RULE,
    "rules[].nonResourceURLs": "Invalid value: {}: namespaced rules cannot apply to non-resource URLs",
}
CLUSTER_ROLE: Final[Rows] = {
    "rules[]": _RULE,
    "aggregationRule.clusterRoleSelectors": (
        "Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"
    ),
    "aggregationRule.clusterRoleSelectors[]": (
        "selector",
        {rules.is_invalid: "Invalid value: null: invalid label selector."},
    ),
}


def _binding(roles: str, namespace: Rows) -> Rows:
    return (
        rules.frozen('Invalid value: {"APIGroup":{apiGroup},"Kind":{kind},"Name":{name}}: cannot change roleRef'),
        {
            "roleRef!": {"apiGroup": rules.one_of(GROUP, given=True), "kind": roles, "name": "needed segment"},
            "subjects[]": {
                "name": "needed",
                "kind": "ServiceAccount|User|Group!",
                rules.equals("kind", "ServiceAccount"): {
                    "name": "subdomain",
                    "apiGroup": rules.one_of(""),
                    "namespace": namespace,
                },
                rules.equals("kind", "User", "Group"): {"apiGroup": rules.one_of(GROUP, given=True)},
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
        lambda spec: None not in (spec.get("minAvailable"), spec.get("maxUnavailable")): (
            "Invalid value: {}: minAvailable and maxUnavailable cannot be both set"
        ),
    }
}
LEASE: Final[Rows] = {"spec": {"leaseDurationSeconds": "1..", "leaseTransitions": "0.."}}
PRIORITY_CLASS: Final = rules.frozen(other={"value": "Forbidden: may not be changed in an update."})
