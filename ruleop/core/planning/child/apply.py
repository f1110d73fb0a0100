"""Decides about one desired object, given the live one: create it, change it, leave it, or report a conflict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from ruleop.core.errors import RenderError, RuleopError, Site
from ruleop.core.kinds import Kind
from ruleop.core.merge import (
    FieldSet,
    Learned,
    MergeError,
    Path,
    Record,
    RecordTooLargeError,
    UnwritableError,
    as_sent,
    create_fields,
    decode,
    encode,
    merge_patch,
    normalise_desired,
    normalise_ignored,
    three_way,
)
from ruleop.core.merge.equality import fingerprint
from ruleop.core.merge.fields import Leaf, MapFields
from ruleop.core.merge.ignored import ignored_at, with_live_places
from ruleop.core.merge.removals import removes_items_of_others
from ruleop.core.names import BUCKET_LABEL
from ruleop.core.planning.changes.rejected_writes import expected_refusal, refused_changes
from ruleop.core.planning.child.helm_release import is_of_release, marks_of_helm
from ruleop.core.planning.model.actions import (
    Action,
    Create,
    Delete,
    FieldConflict,
    Patch,
    Read,
    Replace,
    ServerSideApply,
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
    claim_on,
)
from ruleop.core.planning.model.observed import Observed, Served
from ruleop.core.planning.model.outcome import Failed, Failure
from ruleop.core.planning.rendering.desired import Desired, kept_reference, merge_strategy, with_marks
from ruleop.core.planning.rendering.rotation import rotated
from ruleop.core.planning.rendering.unplanned import ChildFails, ChildWaits, Unlisted, Unread, child_error
from ruleop.core.schema.builtin.table import object_meta
from ruleop.core.schema.shape import UNKNOWN, Shape
from ruleop.core.templating import Waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.core.kinds import Object, ObjectKey
    from ruleop.core.merge.fields import Fields
    from ruleop.core.planning.changes.differences import Difference
    from ruleop.core.planning.history import History
    from ruleop.core.planning.rendering.work import Work
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
    return decode(text) if isinstance(text, str) else None


def apply(
    child: Child,
    desired: Desired,
    owner: Owner,
    observed: Observed,
    history: History,
    work: Work | None,
    *,
    reference_owner: bool,
) -> Applied:
    """The decision by the live object alone. Raises ChildFails, ChildWaits and Unlisted."""
    info = desired.info
    state = info.state if info.places is None else info.state_in(desired.key.namespace)
    if state is not Served.SYNCED or desired.key in observed.own:
        require_known(child, desired, observed, state)
    live = observed.objects.get(desired.key, version=desired.kind.version)
    strategy = merge_strategy(child, desired.kind)
    if live is None:
        return Applied(
            *_create(child, desired, owner, reference=owner.reference() if reference_owner else None, strategy=strategy)
        )
    claim = claim_on(live, desired.key, owner)
    of_release = not claim.owned and is_of_release(live, owner)
    may_adopt = child.adopt == "orphans" or (child.adopt == "helm" and of_release)
    adopting = not claim.owned and not claim.by and may_adopt and not claim.referenced
    if not claim.owned and not adopting:
        return Applied(
            None, name_conflict=name_conflict_message(desired.key, owner.kind.kind, claim, of_release=of_release)
        )
    known = history.conflicting.get(desired.key)
    if known is not None and known.partial and live is known.obj:
        raise Unread(Read(desired.key, Kind.of(live), "conflicting"))
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        return Applied(live, terminating=True)
    if work is not None and not adopting and work.is_still_in_sync(desired, child, live):
        return Applied(live, in_sync=True)
    reference = kept_reference(live, owner, observed.kinds) if reference_owner else None
    if strategy == "create-only":
        marked = _update_marks(child, desired, owner, live, reference=reference, adopting=adopting)
        return _rotate(child, desired, live, marked, observed.now) if desired.rotated and not adopting else marked
    return _update(child, desired, owner, observed, history, live, reference=reference, adopting=adopting)


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


def _create(
    child: Child, desired: Desired, owner: Owner, *, reference: dict[str, Any] | None, strategy: str
) -> tuple[Object, Action]:
    """A create, also with strategy server-side: an apply would adopt an object that was created in the meantime."""
    marked = _normalised(child, desired, with_marks(desired, owner, reference=reference, managed=True))
    fields = NO_FIELDS
    if strategy != "create-only":
        try:
            fields = create_fields(marked, _shape_of(desired), ignore=_ignored_paths(child, desired))
        except MergeError as error:
            raise unmergeable(child, desired, error) from None
    body = _with_record(marked, _record_text(child, desired, fields, strategy))
    return body, Create(desired.key, child.id, body, desired.digest)


def _normalised(child: Child, desired: Desired, marked: Object) -> Object:
    try:
        return normalise_desired(marked, desired.kind)
    except UnwritableError as error:
        raise unwritable(child, desired, error) from None


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


def _record_text(child: Child, desired: Desired, fields: FieldSet, strategy: str) -> str:
    try:
        return encode(Record(child.id, fields))
    except RecordTooLargeError as error:
        if strategy == "server-side":
            return encode(Record(child.id, _digest_of(fields)))
        raise unmergeable(child, desired, error) from None


def _digest_of(fields: FieldSet) -> FieldSet:
    """A digest in place of a record that is too large. It shows that fields changed; the API server keeps the
    fields."""
    return FieldSet(MapFields({fingerprint(fields.to_json()): Leaf.SCALAR}, created=False))


def _recorded_fields(record: Record | None) -> FieldSet | None:
    """The fields in a record; None for a digest and for the record of a create-only child."""
    return record.fields if record is not None and "metadata" in record.fields.root.members else None


def _shape_of(desired: Desired) -> Shape:
    """The shape of the kind; for a kind without a schema, that of its metadata, so that other owners are kept."""
    return desired.info.shape if desired.info.shape is not UNKNOWN else _any_object()


@cache
def _any_object() -> Shape:
    return Shape(type="object", fields={"metadata": object_meta()})


def _with_record(obj: Object, text: str) -> dict[str, Any]:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), APPLIED: text}}}


def _ignored_paths(child: Child, desired: Desired) -> tuple[Path, ...]:
    paths: list[Path] = []
    for ignore in child.apply.ignore:
        if ignore.when is not None:
            try:
                if not ignore.when.truth(desired.names):
                    continue
            except Waiting:
                pass  # unknown yet: ignore the field
            except RenderError as error:
                raise child_error(error) from None
        paths.extend(normalise_ignored(ignore.path, desired.rendered, desired.kind))
    return tuple(paths)


def _may_set_managed_by(live: Object, record: Record | None) -> bool:
    """Whether ruleop sets the label managed-by: it is missing, has ruleop's value, or was set by ruleop and changed
    since."""
    found = ((live.get("metadata") or {}).get("labels") or {}).get(MANAGED_BY)
    if found is None or found == RULEOP:
        return True
    fields: Fields | None = record.fields.root if record is not None else None
    for name in ("metadata", "labels", MANAGED_BY):
        fields = fields.members.get(name) if isinstance(fields, MapFields) else None
    return fields is not None


def _update(
    child: Child,
    desired: Desired,
    owner: Owner,
    observed: Observed,
    history: History,
    live: Object,
    *,
    reference: dict[str, Any] | None,
    adopting: bool,
) -> Applied:
    record = None if adopting else read_record(live)
    if record is None and child.adopt == "helm" and is_of_release(live, owner):
        record = Record("", marks_of_helm(live))
    marked = _normalised(
        child,
        desired,
        with_marks(desired, owner, reference=reference, managed=_may_set_managed_by(live, record), live=live),
    )
    ignore = _ignored_paths(child, desired) if child.apply.ignore else ()
    fields, shape = record.fields if record is not None else None, _shape_of(desired)
    learned = history.learned.get(desired.key, Learned.NOTHING)
    try:
        merged = three_way(live, marked, fields, shape, ignore=ignore, own=child.apply.own, learned=learned)
    except MergeError as error:
        raise unmergeable(child, desired, error) from None
    recorded = (
        record is not None
        and record.id == child.id
        and (record.fields is merged.fields or _matches(record.fields, merged.fields))
    )
    if merged.object is live and recorded:
        return Applied(live, in_sync=True)
    result, strategy = merged.object, merge_strategy(child, desired.kind)
    if not recorded:
        result = _with_record(result, _record_text(child, desired, merged.fields, strategy))
    failed = history.failure(desired.key)
    if failed is None and observed.expects_refusals:
        failed = expected_refusal(result, live, desired.digest)
    if failed is not None and failed.failure is Failure.IMMUTABLE and failed.desired_digest == desired.digest:
        return _recreate_or_fail(
            child, desired, history, live, refused_changes(child, live, result, shape, failed), failed=failed
        )
    why: Literal["changed", "adopted"] = "adopted" if adopting else "changed"
    if strategy == "server-side" and not removes_items_of_others(
        live, merged.object, fields.root if fields is not None else None, shape
    ):
        return Applied(result, replace(_server_side(child, desired, live, marked, result, ignore), why=why))
    if strategy == "replace":
        return Applied(result, replace(_replacement(child, desired, live, marked, result, ignore), why=why))
    sent = as_sent(marked, live, ignore, shape) if ignore else marked
    return Applied(result, _patch(child, desired, live, result, why, sent))


def _matches(recorded: FieldSet, fields: FieldSet) -> bool:
    return recorded == fields or (len(recorded.root.members) == 1 and recorded == _digest_of(fields))


def _patch(
    child: Child,
    desired: Desired,
    live: Object,
    result: Object,
    why: Literal["changed", "adopted", "rotated"],
    sent: Object | None = None,
) -> Patch:
    return Patch(desired.key, child.id, _guarded(live, result), live, result, desired.digest, why, sent)


def _guarded(live: Object, result: Object) -> dict[str, Any]:
    """The merge patch from one to the other, with uid and resourceVersion, so that the server rejects it if the object
    has changed."""
    patch = merge_patch(live, result)
    assert patch is not None, "at least the record or a mark differs"
    metadata = live["metadata"]
    guards = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **guards}}


def _recreate_or_fail(
    child: Child, desired: Desired, history: History, live: Object, refused: tuple[Difference, ...], *, failed: Failed
) -> Applied:
    """Handles a change of an immutable field that the server rejected: deletes the object to recreate it, or fails."""
    recreate = desired.recreate
    sensitive = (desired.kind.group, desired.kind.kind) in SENSITIVE and not child.apply.on_immutable_explicit
    if recreate and not sensitive and history.recreated.get(desired.key) != desired.digest:
        return Applied(live, Delete(desired.key, child.id, live, "recreate", child.propagation, after_writes=False))
    if recreate and sensitive:
        advice = f"; a {desired.kind.kind} is only recreated if the child itself has `apply.onImmutable: recreate`"
    else:
        advice = "" if recreate else "; `apply.onImmutable: recreate` would recreate it"
    raise Immutable(failed, refused, advice, child.body.site)


def _server_side(
    child: Child, desired: Desired, live: Object, marked: Object, result: Object, ignore: tuple[Path, ...]
) -> ServerSideApply:
    """An apply of the whole desired object, with the live values of ignored fields. The server removes fields that
    ruleop's field manager owned and that are not in it."""
    metadata = {**marked["metadata"], "uid": live["metadata"].get("uid")}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), APPLIED: annotations_of(result)[APPLIED]}
    body = {**marked, "metadata": {key: value for key, value in metadata.items() if value is not None}}
    recorded = _recorded_fields(read_record(live))
    return ServerSideApply(
        desired.key, child.id, _with_ignored(body, live, ignore, desired), live, desired.digest, recorded=recorded
    )


def _with_ignored(body: dict[str, Any], live: Object, ignore: tuple[Path, ...], desired: Desired) -> dict[str, Any]:
    ignored = ignored_at(ignore)
    if ignored is None:
        return body
    filled: dict[str, Any] = with_live_places(body, live, ignored, _shape_of(desired))
    return filled


def _replacement(
    child: Child, desired: Desired, live: Object, marked: Object, result: Object, ignore: tuple[Path, ...]
) -> Replace:
    """A PUT of the desired object. It keeps uid, resourceVersion, finalizers and other owners of the live object."""
    theirs = live["metadata"]
    metadata = dict(marked["metadata"])
    metadata["annotations"] = {**(metadata.get("annotations") or {}), APPLIED: annotations_of(result)[APPLIED]}
    for name in ("uid", "resourceVersion", "finalizers"):
        if name in theirs:
            metadata[name] = theirs[name]
    if references := result["metadata"].get("ownerReferences"):
        metadata["ownerReferences"] = references
    body = {**marked, "metadata": metadata}
    if "status" in live:
        body["status"] = live["status"]
    return Replace(desired.key, child.id, _with_ignored(body, live, ignore, desired), live, desired.digest)


def _update_marks(
    child: Child, desired: Desired, owner: Owner, live: Object, *, reference: dict[str, Any] | None, adopting: bool
) -> Applied:
    """An existing create-only child: only ruleop's own metadata is updated."""
    record, note = read_record(live), owner.annotation(desired.key, orphan=desired.orphan, live=live)
    metadata = live.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, annotations_of(live)
    item = desired.item.annotation(owner, desired.key, live) if desired.item is not None else None
    marked = (
        labels.items() >= owner.labels(live).items()
        and record is not None
        and record.id == child.id
        and annotations.get(ITEM) == item
    )
    versions = [
        each.get("apiVersion") for each in metadata.get("ownerReferences") or () if each.get("uid") == owner.uid
    ]
    if reference is not None:
        owned = versions == [reference["apiVersion"]]
    else:
        owned = not versions and annotations.get(OWNER) == note
    if marked and owned:
        return Applied(live, in_sync=True)
    references = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != owner.uid]
    notes = {key: value for key, value in annotations.items() if key not in {OWNER, ITEM}}
    notes |= {APPLIED: encode(Record(child.id, NO_FIELDS))} | ({ITEM: item} if item is not None else {})
    if reference is not None:
        references.append(reference)
    else:
        notes[OWNER] = note
    new = {key: value for key, value in metadata.items() if key != "ownerReferences"}
    new |= {"labels": {MANAGED_BY: RULEOP, **labels, **owner.labels(live)}, "annotations": notes}
    if references:
        new["ownerReferences"] = references
    result = {**live, "metadata": new}
    return Applied(result, _patch(child, desired, live, result, "adopted" if adopting else "changed"))


def _rotate(child: Child, desired: Desired, live: Object, marked: Applied, now: str) -> Applied:
    """The random values of a Secret are regenerated, together with a change of its marks."""
    assert marked.result is not None
    rendered = _normalised(child, desired, desired.rendered)
    result = rotated(marked.result, rendered, desired.rotated, now)
    return Applied(result, _patch(child, desired, live, result, "rotated"))


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
    return Patch(key, child, _guarded(live, result), live, result, "", why, needs=needs)
