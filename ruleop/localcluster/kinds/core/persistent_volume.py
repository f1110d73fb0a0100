"""PersistentVolumes: their phase, and their protection, which claims have, too."""

from __future__ import annotations

from typing import Any, Final

from ruleop.localcluster.timestamps import now

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
