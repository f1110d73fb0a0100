"""Nodes: new ones are not ready."""

from __future__ import annotations

from typing import Any


def node_created(obj: dict[str, Any]) -> dict[str, Any]:
    """A node is not ready until its kubelet reports that it is."""
    spec = obj.get("spec") or {}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    return {**obj, "spec": {**spec, "taints": [*(spec.get("taints") or []), taint]}}
