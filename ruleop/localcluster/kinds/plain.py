"""Kinds with little of their own: namespaces, nodes, priority classes, EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import forbidden_value, immutable_value, unsupported

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause


def namespace_created(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {
        **obj,
        "metadata": {**metadata, "labels": labels},
        "spec": {**(obj.get("spec") or {}), "finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def namespace_updated(new: dict[str, Any], _old: Object) -> dict[str, Any]:
    """Its finalizers are written through a subresource; the label of its name is kept."""
    metadata = new["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**new, "metadata": {**metadata, "labels": labels}, "spec": {"finalizers": [], **(new.get("spec") or {})}}


def priority_class_causes(new: Object, old: Object | None) -> list[Cause]:
    if old is None:
        return []
    causes = []
    if new.get("value") != old.get("value"):
        causes.append(forbidden_value("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        causes.append(immutable_value("preemptionPolicy", new.get("preemptionPolicy")))
    return causes


_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")


def slice_causes(new: Object, old: Object | None) -> list[Cause]:
    """The addresses of an EndpointSlice stay of one type."""
    kind = new.get("addressType")
    if kind not in _ADDRESS_TYPES:
        return [unsupported("addressType", kind, _ADDRESS_TYPES)]
    if old is None or kind == old.get("addressType"):
        return []
    return [immutable_value("addressType", new.get("addressType"))]


def node_created(obj: dict[str, Any]) -> dict[str, Any]:
    """A node is not ready until its kubelet reports that it is."""
    spec = obj.get("spec") or {}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    return {**obj, "spec": {**spec, "taints": [*(spec.get("taints") or []), taint]}}
