"""Namespaces: their finalizer, phase and label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ruleop.core.kinds import Object


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
