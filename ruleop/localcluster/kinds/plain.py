"""Kinds with little of their own: namespaces, nodes, priority classes, Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.localcluster.errors import forbidden_value, immutable_value, invalid_value
from ruleop.localcluster.kinds.numbers import below_zero
from ruleop.schema.immutable_fields import immutable_changes

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause


def namespace_created(obj: dict[str, Any]) -> dict[str, Any]:
    spec = {**(obj.get("spec") or {}), "finalizers": ["kubernetes"]}
    return {**_with_its_name(obj), "spec": spec, "status": {"phase": "Active"}}


def namespace_updated(new: dict[str, Any], _old: Object) -> dict[str, Any]:
    """Its finalizers are written through a subresource; the label of its name is kept."""
    return {**_with_its_name(new), "spec": {"finalizers": [], **(new.get("spec") or {})}}


def _with_its_name(namespace: dict[str, Any]) -> dict[str, Any]:
    """With the label by which selectors find it."""
    metadata = namespace["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**namespace, "metadata": {**metadata, "labels": labels}}


def priority_class_causes(new: Object, old: Object | None) -> list[Cause]:
    if old is None:
        return []
    fixed = forbidden_value("value", "may not be changed in an update.")
    changes = immutable_changes(new, old)
    return [fixed if name == "value" else immutable_value(name, new.get(name)) for name in changes]


def lease_causes(new: Object, _old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    below = list(below_zero(spec, "leaseTransitions"))
    if seconds is None or seconds > 0:
        return below
    return [invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0"), *below]


def node_created(obj: dict[str, Any]) -> dict[str, Any]:
    """A node is not ready until its kubelet reports that it is."""
    spec = obj.get("spec") or {}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    return {**obj, "spec": {**spec, "taints": [*(spec.get("taints") or []), taint]}}
