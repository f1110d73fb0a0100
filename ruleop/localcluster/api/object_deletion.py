"""Deletion of an object: it is removed, or waits for finalizers, its grace period or its contents.

A write, too, may have conditions on the stored version of an object: its resourceVersion, uid and times of deletion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.validation import immutable_value, invalid_value
from ruleop.localcluster.kinds import CRDS, NAMESPACES
from ruleop.localcluster.status_errors import MODIFIED, Rejected, conflict, forbidden, internal, invalid, invalid_named
from ruleop.localcluster.timestamps import as_duration, timestamp

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.api.options import DeleteOptions, WriteOptions
    from ruleop.localcluster.kinds import ServedKind
    from ruleop.localcluster.object_store import Stored

_IMMORTAL: Final = ("default", "kube-system", "kube-public")


def check_identity(served: ServedKind, old: Stored, given: dict[str, Any], options: WriteOptions) -> None:
    group, plural, name = served.kind.group, served.plural, old.name.name
    version = given.get("resourceVersion") or "0"
    if not version.isdecimal():
        raise internal(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if int(version) == 0 and (served.is_custom or not served.strategy.unconditional_update):
        error = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid_named(group, plural, name, [error])
    uid, outdated = given.get("uid"), int(version) not in (0, old.version)
    if options.is_patch and outdated:  # of a patch, the version is compared first
        raise conflict(group, plural, name, MODIFIED)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if given.get(field) is not None and given[field] != old.obj["metadata"].get(field):
            raise _immutable(served, name, field, given[field])
    if uid and uid != old.uid:
        if options.is_patch:
            raise _immutable(served, name, "uid", uid)
        message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
        raise conflict(group, plural, name, message)
    if outdated:
        raise conflict(group, plural, name, MODIFIED)


def check_preconditions(served: ServedKind, old: Stored, options: DeleteOptions) -> None:
    group, kind, name = served.kind.group, served.kind.kind, old.name.name
    if options.uid and options.uid != old.uid:
        raise conflict(
            group,
            kind,
            name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({old.uid}). "
            "The object might have been deleted and then recreated",
        )
    if options.resource_version and options.resource_version != str(old.version):
        raise conflict(
            group,
            kind,
            name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({old.version}). The object might have been modified",
        )
    if served.resource == NAMESPACES and name in _IMMORTAL:
        raise forbidden(group, served.plural, name, "this namespace may not be deleted")


def _immutable(served: ServedKind, name: str, field: str, value: Any) -> Rejected:
    """The server checks this twice."""
    error = immutable_value(f"metadata.{field}", value)
    return invalid(served.kind, name, [error, error])


ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


def marked_as_deleted(served: ServedKind, old: Object, options: DeleteOptions, now: float) -> dict[str, Any] | None:
    """The object with what its deletion leaves to be done; None if nothing keeps it. `now`: in seconds."""
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
    _set_times(served, metadata, grace, now)
    new: dict[str, Any] = {**old, "metadata": metadata}
    if served.resource == NAMESPACES:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    elif served.resource == CRDS:
        new["status"] = _terminating(new.get("status") or {}, now)
    return new


def _set_times(served: ServedKind, metadata: dict[str, Any], grace: int, now: float) -> None:
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = timestamp(now + as_duration(grace))
        if served.resource not in (NAMESPACES, CRDS):
            metadata["deletionGracePeriodSeconds"] = grace
            if "generation" in metadata:
                metadata["generation"] += 1
    elif grace < metadata.get("deletionGracePeriodSeconds", grace):
        metadata["deletionGracePeriodSeconds"] = grace


def _grace(served: ServedKind, obj: Object, options: DeleteOptions) -> int:
    if served.strategy.grace is None:
        return 0
    grace = options.grace if options.grace is not None else served.strategy.grace(obj)
    return 1 if grace < 0 else grace


def _terminating(status: Object, now: float) -> dict[str, Any]:
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
        "lastTransitionTime": timestamp(now),
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
