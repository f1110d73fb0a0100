"""The decision about one desired object, and what all of them share: the record on the live object, whether an object
may be written, and how it is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ruleop.core.merge import (
    FieldSet,
    MergeError,
    Record,
    UnwritableError,
    decode,
    merge_patch,
)
from ruleop.core.names import BUCKET_LABEL
from ruleop.core.planning.model.actions import (
    Action,
    FieldConflict,
    Patch,
)
from ruleop.core.planning.model.item_records import ITEM
from ruleop.core.planning.model.marks import (
    APPLIED,
    MANAGED_BY,
    OWNER,
    PART_OF,
    RULEOP,
    Claim,
    Owner,
    annotations_of,
)
from ruleop.core.planning.model.observed import Observed, Served
from ruleop.core.planning.rendering.unplanned import ChildFails, ChildWaits, Unlisted
from ruleop.core.templating.values.cost import METER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.core.errors import RuleopError, Site
    from ruleop.core.kinds import Kind, Object, ObjectKey
    from ruleop.core.planning.changes.differences import Difference
    from ruleop.core.planning.model.outcome import Failed
    from ruleop.core.planning.rendering.desired import Desired
    from ruleop.core.rules import Child

SENSITIVE = frozenset(
    {
        ("", "PersistentVolumeClaim"),
        ("", "PersistentVolume"),
        ("", "Namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    }
)
"""Kinds whose deletion loses data: for these, `onImmutable: recreate` has to be set on the child itself."""

NO_FIELDS = FieldSet()


class Immutable(ChildFails):
    """The server rejected a change of an immutable field. Its message and the changes may hold a value of a Secret, so
    the caller has to mask them before it reports them."""

    def __init__(self, failed: Failed, changes: tuple[Difference, ...], advice: str, site: Site) -> None:
        fields = (*(each.path for each in changes), *(cause.field for cause in failed.causes))
        super().__init__(failed.message, site, reason="ApplyFailed", fields=fields)
        self.failed = failed
        self.changes = changes
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Applied:
    """The decision about one desired object. `result` is the object as it will be after this pass; None if unknown."""

    result: Object | None
    action: Action | None = None
    name_conflict: str = ""
    terminating: bool = False
    in_sync: bool = False  # it exists and needs no change
    conflict_message: str = ""  # describes its field conflict, whether or not the action is withheld
    conflict: FieldConflict | None = None  # the action is withheld because of it


def read_record(live: Object) -> Record | None:
    text = annotations_of(live).get(APPLIED)
    record = decode(text) if isinstance(text, str) else None
    if record is not None:
        METER.charge(record.cost)
    return record


def require_known(child: Child, desired: Desired, observed: Observed, state: Served) -> None:
    """Raises unless the object may be written, and it is known whether it exists."""
    if desired.key in observed.own:
        raise ChildFails(f"{desired.key} belongs to the operator itself, and no rule can write it", child.body.site)
    if state is not Served.SYNCED:
        require_readable(child, desired.kind, desired.key.namespace, state)


def require_readable(child: Child, kind: Kind, namespace: str, state: Served) -> None:
    if state is Served.PENDING:  # an object that is not in the cache may exist
        raise ChildWaits(f"the kind {kind} to be listed", child.body.site, why="kind")
    if state is Served.FORBIDDEN:
        raise Unlisted
    if state is Served.UNWATCHED:  # drift would not be reverted, nor the object deleted with its CR
        message = f"the namespace {namespace} to be watched: add it to --namespaces"
        raise ChildWaits(message, child.body.site, why="namespace")


def name_conflict_message(key: ObjectKey, kind: str, claim: Claim | None, *, of_release: bool = False) -> str:
    """`claim`: None if the object could not be read. `of_release`: it belongs to the Helm release of the CR's name."""
    whose, remedy = "", "rename the child, or delete the object"
    if claim is not None and claim.unproven:
        whose = f" (its annotation {OWNER} has no valid proof)"
        remedy = "if the operator's key was lost, run `ruleop recover`; else rename the child"
    elif claim is not None and claim.by:
        whose, remedy = f" (it belongs to {claim.by})", "rename the child"
    elif claim is not None and not claim.referenced and of_release:
        whose, remedy = " (it belongs to the Helm release of this name)", "use `adopt: helm`"
    elif claim is not None and not claim.referenced:
        whose, remedy = " (it has no owner)", "rename the child, delete the object, or use `adopt: orphans`"
    name = f"{key.name} in namespace {key.namespace}" if key.namespace else key.name
    return f"{key.kind} {name} already exists and is not managed by {kind}{whose}: {remedy}"


def unwritable(child: Child, desired: Desired, error: UnwritableError) -> ChildFails:
    title = f"the {desired.kind.kind}"
    return ChildFails(f"{title} {desired.key.name!r} {error}", child.body.site, redacted=f"{title} {error}")


def unmergeable(child: Child, desired: Desired, error: RuleopError) -> ChildFails:
    title, words = f"the {desired.kind.kind}", str(error)
    if isinstance(error, MergeError):
        path = child.secrecy.path(error.path)
        words = f"{path}: {error.redacted}" if path else error.redacted
    return ChildFails(
        f"{title} {desired.key.name!r}: {error}",
        child.body.site,
        reason="ApplyFailed",
        redacted=f"{title}: {words}",
        fields=(error.path,) if isinstance(error, MergeError) else (),
    )


def guarded(live: Object, result: Object) -> dict[str, Any]:
    """The merge patch from one to the other, with uid and resourceVersion, so that the server rejects it if the object
    has changed."""
    patch = merge_patch(live, result)
    assert patch is not None, "at least the record or a mark differs"
    metadata = live["metadata"]
    guards = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **guards}}


def release(child: str, live: Object, key: ObjectKey, owner: Owner, *, needs: frozenset[str] = frozenset()) -> Patch:
    """A patch that removes ruleop's own metadata from an object that is kept when it is orphaned."""
    metadata = live["metadata"]
    labels = {
        name: value
        for name, value in (metadata.get("labels") or {}).items()
        if name not in {PART_OF, BUCKET_LABEL} and (name, value) != (MANAGED_BY, RULEOP)
    }
    notes = {name: value for name, value in annotations_of(live).items() if name not in {APPLIED, OWNER, ITEM}}
    return _metadata_patch(child, live, key, owner, "released", labels=labels, annotations=notes, needs=needs)


def keep(child: str, live: Object, key: ObjectKey, owner: Owner) -> Patch:
    """A patch that protects an orphan from the garbage collector while `finalize` still needs it."""
    notes = {**annotations_of(live), OWNER: owner.annotation(key, orphan=True, kept=True, live=live)}
    return _metadata_patch(
        child, live, key, owner, "changed", labels=live["metadata"].get("labels") or {}, annotations=notes
    )


def _metadata_patch(
    child: str,
    live: Object,
    key: ObjectKey,
    owner: Owner,
    why: Literal["changed", "released"],
    *,
    labels: Mapping[str, Any],
    annotations: Mapping[str, Any],
    needs: frozenset[str] = frozenset(),
) -> Patch:
    """A patch that sets these labels and annotations, and removes ruleop's ownerReference."""
    metadata = live["metadata"]
    references = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != owner.uid]
    new = {name: value for name, value in metadata.items() if name not in {"labels", "annotations", "ownerReferences"}}
    new |= {
        name: value
        for name, value in (("labels", labels), ("annotations", annotations), ("ownerReferences", references))
        if value
    }
    result = {**live, "metadata": new}
    return Patch(key, child, guarded(live, result), live, result, "", why, needs=needs)
