"""Roles and their bindings, PodDisruptionBudgets, PriorityClasses, Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes
from ruleop.kubernetes.validation.field_errors import FieldError, forbidden_value, immutable_value, invalid_value
from ruleop.kubernetes.validation.rules import (
    Rows,
    invalid,
    needed,
    on_update,
    one_of,
    requires,
    selector_errors,
    sub_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.validation.rules import At, Errors


GROUP: Final = "rbac.authorization.k8s.io"
_NO_PATHS: Final = "namespaced rules cannot apply to non-resource URLs"
_NO_SELECTORS: Final = "at least one clusterRoleSelector required if aggregationRule is non-nil"


def _is_of_resources(rule: Any) -> bool:
    return not rule.get("nonResourceURLs")


_RULE: Final[Rows] = (
    {"verbs": needed("verbs must contain at least one value")},
    requires("apiGroups", _is_of_resources, "resource rules must supply at least one api group"),
    requires("resources", _is_of_resources, "resource rules must supply at least one resource"),
    invalid(
        "nonResourceURLs",
        lambda rule: not any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")),
        "rules cannot apply to both regular resources and non-resource URLs",
    ),
)
ROLE: Final[Rows] = {"rules[]": (_RULE, invalid("nonResourceURLs", lambda _: False, _NO_PATHS))}


def _aggregated(selector: Any, at: At) -> Errors:
    errors = list(selector_errors(selector, at))
    return [*errors, invalid_value(at.field, None, "invalid label selector.")] if errors else ()


CLUSTER_ROLE: Final[Rows] = {
    "rules[]": _RULE,
    "aggregationRule.clusterRoleSelectors": needed(_NO_SELECTORS),
    "aggregationRule.clusterRoleSelectors[]": _aggregated,
}


def _fixed_role(binding: Any, at: At) -> Errors:
    if not immutable_changes(binding, at.old_root):
        return ()
    role = binding.get("roleRef") or {}
    shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
    return (invalid_value("roleRef", shown, "cannot change roleRef"),)


def _binding(roles: str, namespace: Rows) -> Rows:
    return (
        on_update(_fixed_role),
        {
            "roleRef!": {"apiGroup": one_of(GROUP, given=True), "kind": roles, "name": "segment"},
            "subjects[]": (
                {"name": "needed", "kind": "ServiceAccount|User|Group!"},
                sub_table(
                    {"name": "subdomain", "apiGroup": one_of(""), "namespace": namespace},
                    when=lambda subject, _: subject.get("kind") == "ServiceAccount",
                ),
                sub_table(
                    {"apiGroup": one_of(GROUP, given=True)},
                    when=lambda subject, _: subject.get("kind") in ("User", "Group"),
                ),
            ),
        },
    )


ROLE_BINDING: Final = _binding("Role|ClusterRole!", ())
CLUSTER_ROLE_BINDING: Final = _binding("ClusterRole!", "needed")


# -- budgets, priorities, Leases -------------------------------------------------------------------------------------


def _bounds(spec: Any, at: At) -> Errors:
    words = "minAvailable and maxUnavailable cannot be both set"
    names = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
    shown = {f"{name[0].upper()}{name[1:]}": spec.get(name) for name in names}
    has_both = None not in (spec.get("minAvailable"), spec.get("maxUnavailable"))
    return (invalid_value(at.field, shown, words),) if has_both else ()


BUDGET: Final[Rows] = {
    "spec": (
        _bounds,
        {
            "minAvailable maxUnavailable": "part",
            "selector": "selector",
            "unhealthyPodEvictionPolicy": "AlwaysAllow|IfHealthyBudget",
        },
    )
}
LEASE: Final[Rows] = {"spec": {"leaseDurationSeconds": "1..", "leaseTransitions": "0.."}}


def _fixed(new: Any, at: At) -> Iterator[FieldError]:
    for name in immutable_changes(new, at.old_root):
        if name == "value":
            yield forbidden_value("value", "may not be changed in an update.")
        else:
            yield immutable_value(name, new.get(name))


PRIORITY_CLASS: Final = on_update(_fixed)
