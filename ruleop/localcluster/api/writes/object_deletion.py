"""Deletion of an object: it is removed, or waits for finalizers, its grace period or its contents."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ruleop.localcluster.kinds.resources import CRDS, NAMESPACES
from ruleop.localcluster.timestamps import as_duration, now, timestamp

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.localcluster.api.requests.write_options import DeleteOptions
    from ruleop.localcluster.kinds.served import Served

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


def marked_as_deleted(served: Served, old: Object, options: DeleteOptions) -> dict[str, Any] | None:
    """The object with what its deletion leaves to be done; None if nothing keeps it."""
    metadata = dict(old["metadata"])
    finalizers = [each for each in metadata.get("finalizers") or [] if each not in _dropped_by(options.propagation)]
    finalizers += [each for each in served.strategy.finalizers if each not in finalizers]
    extra = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.propagation)
    if extra and extra not in finalizers:
        finalizers.append(extra)
    grace = _grace(served, old, options)
    waits = bool(finalizers) or grace > 0 or (served.resource == NAMESPACES and _holds(old))
    if not waits:
        return None
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    _set_times(served, metadata, grace)
    new: dict[str, Any] = {**old, "metadata": metadata}
    if served.resource == NAMESPACES:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    elif served.resource == CRDS:
        new["status"] = _terminating(new.get("status") or {})
    return new


def _set_times(served: Served, metadata: dict[str, Any], grace: int) -> None:
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = timestamp(time.time() + as_duration(grace))
        if served.resource not in (NAMESPACES, CRDS):
            metadata["deletionGracePeriodSeconds"] = grace
            if "generation" in metadata:
                metadata["generation"] += 1
    elif grace < metadata.get("deletionGracePeriodSeconds", grace):
        metadata["deletionGracePeriodSeconds"] = grace


def _grace(served: Served, obj: Object, options: DeleteOptions) -> int:
    if served.strategy.grace is None:
        return 0
    grace = options.grace if options.grace is not None else served.strategy.grace(obj)
    return 1 if grace < 0 else grace


def _terminating(status: Object) -> dict[str, Any]:
    """The status of a CRD that is being deleted."""
    conditions = [each for each in status.get("conditions") or [] if each["type"] != "Terminating"]
    if len(conditions) < len(status.get("conditions") or []):
        return dict(status)
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    condition = {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": message,
        "lastTransitionTime": now(),
    }
    return {**status, "conditions": [*conditions, condition]}


def _dropped_by(propagation: str) -> tuple[str, ...]:
    return {"Orphan": (FOREGROUND,), "Foreground": (ORPHAN,), "Background": (ORPHAN, FOREGROUND)}.get(propagation, ())


def _holds(namespace: Object) -> bool:
    return bool((namespace.get("spec") or {}).get("finalizers"))


def is_finished(obj: Object) -> bool:
    """Whether nothing keeps an object that is being deleted."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        return not _holds(obj)
    return not metadata.get("deletionGracePeriodSeconds")
