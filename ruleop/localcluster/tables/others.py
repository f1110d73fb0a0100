"""Rows of the other groups, each of which has a kind or two: permissions, policies, Leases, classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.tables.cell_text import (
    age,
    annotation,
    field,
    name,
    spec,
    status,
    with_age,
)
from ruleop.localcluster.tables.printer import printer

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Object


def _disruption_budget(obj: Object, now: float) -> list[JSON]:
    limits = (str(spec(obj).get(limit, "N/A")) for limit in ("minAvailable", "maxUnavailable"))
    return [name(obj), *limits, status(obj).get("disruptionsAllowed", 0), age(obj, now)]


def _binding(obj: Object, now: float) -> list[JSON]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    accounts = [f"{each.get('namespace', '')}/{each['name']}" for each in subjects if each["kind"] == "ServiceAccount"]
    return [
        name(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj, now),
        *(", ".join(each["name"] for each in subjects if each["kind"] == kind) for kind in ("User", "Group")),
        ", ".join(accounts),
    ]


def _priority_class(obj: Object, now: float) -> list[JSON]:
    values = (obj.get("value", 0), obj.get("globalDefault", False))
    return [name(obj), *values, age(obj, now), obj.get("preemptionPolicy", "")]


def _storage_class(obj: Object, now: float) -> list[JSON]:
    defaults = (f"storageclass.{group}kubernetes.io/is-default-class" for group in ("", "beta."))
    is_default = any(annotation(obj, key) == "true" for key in defaults)
    return [
        f"{name(obj)} (default)" if is_default else name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        age(obj, now),
    ]


_BINDINGS: Final = printer("Name|Role|Age|Users+|Groups+|ServiceAccounts+", _binding)
_RBAC: Final = "rbac.authorization.k8s.io"
OTHERS: Final = {
    ("coordination.k8s.io", "Lease"): printer("Name|Holder|Age", with_age(field("spec", "holderIdentity"))),
    ("policy", "PodDisruptionBudget"): printer(
        "Name|Min Available|Max Unavailable|Allowed Disruptions:integer|Age", _disruption_budget
    ),
    (_RBAC, "RoleBinding"): _BINDINGS,
    (_RBAC, "ClusterRoleBinding"): _BINDINGS,
    ("scheduling.k8s.io", "PriorityClass"): printer(
        "Name|Value:integer|Global-Default:boolean|Age|PreemptionPolicy", _priority_class
    ),
    ("storage.k8s.io", "StorageClass"): printer(
        "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age", _storage_class
    ),
}
