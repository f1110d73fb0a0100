"""Volumes and classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.clock import now
from ruleop.localcluster.errors import forbidden_value
from ruleop.schema.immutable_fields import immutable_changes

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
CLAIM_PROTECTION, VOLUME_PROTECTION = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"


def protected(obj: dict[str, Any], finalizer: str) -> dict[str, Any]:
    metadata = obj["metadata"]
    finalizers = metadata.get("finalizers") or []
    if finalizer in finalizers:
        return obj
    return {**obj, "metadata": {**metadata, "finalizers": [*finalizers, finalizer]}}


def volume_created(obj: dict[str, Any]) -> dict[str, Any]:
    status = {"phase": "Pending", "lastPhaseTransitionTime": now()}
    return protected({**obj, "status": status}, VOLUME_PROTECTION)


def class_causes(new: Object, old: Object | None) -> list[Cause]:
    if old is None:
        return []
    return [forbidden_value(name, f"updates to {name} are forbidden.") for name in immutable_changes(new, old)]
