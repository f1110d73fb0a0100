"""What to do about one wanted object, given what is live: create it, change it, leave it, or refuse to touch it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from ruleop.errors import RenderError, RuleopError, Site
from ruleop.kinds import Kind
from ruleop.merge import (
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
from ruleop.merge.equality import fingerprint
from ruleop.merge.fields import Leaf, MapFields
from ruleop.merge.ignored import ignored_at, with_live_places
from ruleop.merge.removals import removes_items_of_others
from ruleop.planning.actions import Action, Create, Delete, FieldConflict, Patch, Read, Replace, ServerSideApply
from ruleop.planning.drift import WHOLE, Correction, Standing, conflict_message, corrected_fields, managers_of
from ruleop.planning.errors import ChildFails, ChildWaits, Unlisted, Unread, stopped
from ruleop.planning.failures import refused_changes
from ruleop.planning.marks import APPLIED, MANAGED_BY, OWNER, PART_OF, RULEOP, Claim, Owner, annotations_of, claim_on
from ruleop.planning.observed import Observed, Served
from ruleop.planning.outcome import Failed, Failure
from ruleop.planning.wanted import Wanted, kept_reference, strategy_of, with_marks
from ruleop.planning.writes import changes, desired
from ruleop.schema.shape import UNKNOWN, Shape
from ruleop.schema.table import object_meta
from ruleop.templating import Waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import Object, ObjectKey
    from ruleop.merge.fields import Fields
    from ruleop.planning.differences import Difference
    from ruleop.planning.history import History
    from ruleop.planning.work import Work
    from ruleop.rules import Child

SENSITIVE = frozenset(
    {
        ("", "PersistentVolumeClaim"),
        ("", "PersistentVolume"),
        ("", "Namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    }
)
"""Kinds whose deletion loses data: `onImmutable: recreate` has to be said by the child itself."""

NO_FIELDS = FieldSet()


class Immutable(ChildFails):
    """The server refuses to change a field. What it says, and the changes, may hold a Secret's value, so whoever tells
    it has to look at that first."""

    def __init__(self, failed: Failed, changes: tuple[Difference, ...], way: str, site: Site) -> None:
        super().__init__(failed.message, site, reason="ApplyFailed")
        self.failed = failed
        self.changes = changes
        self.way = way


class HeldBack(ChildFails):
    """An object that is repeatedly deleted, and not created again for now."""

    def __init__(self, conflict: FieldConflict) -> None:
        super().__init__(conflict.message, reason="FieldConflict")
        self.conflict = conflict


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome for one wanted object. `stands` is the object as it will stand after this pass; None while it cannot
    be told."""

    stands: Object | None
    action: Action | None = None
    refused: str = ""
    terminating: bool = False
    in_step: bool = False  # it exists, and there is nothing to change
    contested: str = ""  # the field conflict over it, which may be held or not
    conflict: FieldConflict | None = None  # the action is withheld because of it


def record_of(live: Object) -> Record | None:
    text = annotations_of(live).get(APPLIED)
    return decode(text) if isinstance(text, str) else None


def apply(
    child: Child, wanted: Wanted, owner: Owner, observed: Observed, history: History, work: Work | None, *, refer: bool
) -> Applied:
    """Raises ChildFails, ChildWaits and Unlisted."""
    applied = _apply(child, wanted, owner, observed, history, work, refer=refer)
    return _contested(child, wanted, applied, observed, history) if wanted.key in history.drift else applied


def _apply(
    child: Child, wanted: Wanted, owner: Owner, observed: Observed, history: History, work: Work | None, *, refer: bool
) -> Applied:
    live = observed.objects.get(wanted.key, version=wanted.kind.version)
    state = wanted.info.state_in(wanted.key.namespace)
    if state is Served.PENDING:  # what is not in the store may exist all the same
        raise ChildWaits(f"the kind {wanted.kind} to be listed", child.body.site, why="kind")
    if state is Served.FORBIDDEN:
        raise Unlisted
    if state is Served.UNWATCHED:  # once made, it would be neither kept as it should be nor deleted with its CR
        message = f"the namespace {wanted.key.namespace} to be watched: add it to --namespaces"
        raise ChildWaits(message, child.body.site, why="namespace")
    strategy = strategy_of(child, wanted.kind)
    if live is None:
        return Applied(
            *_creation(child, wanted, owner, reference=owner.reference() if refer else None, strategy=strategy)
        )
    claim = claim_on(live, wanted.key, owner)
    adopting = not claim.ours and not claim.by and child.adopt == "orphans" and not claim.referenced
    if not claim.ours and not adopting:
        return Applied(None, refused=refusal(wanted.key.name, owner.kind.kind, claim))
    met = history.conflicting.get(wanted.key)
    if met is not None and met.partial and live is met.obj:
        raise Unread(Read(wanted.key, Kind.of(live), "conflicting"))
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        return Applied(live, terminating=True)
    if work is not None and not adopting and work.has_in_step(wanted, child, live):
        return Applied(live, in_step=True)
    reference = kept_reference(live, owner, observed.kinds) if refer else None
    if strategy == "create-only":
        return _marks_only(child, wanted, owner, live, reference=reference, adopting=adopting)
    return _change(child, wanted, owner, history, live, reference=reference, adopting=adopting, strategy=strategy)


def _contested(child: Child, wanted: Wanted, applied: Applied, observed: Observed, history: History) -> Applied:
    """A child that was reverted lately, for the same desired object: an edit of the CR makes another one, and ends the
    conflict. Raises ChildFails and Unread."""
    drift = history.drift[wanted.key]
    if drift.desired != wanted.digest:
        return applied
    fields = corrected_fields(applied.action) if applied.action is not None else None
    if fields is None:
        return replace(applied, contested=drift.message)
    assert isinstance(applied.action, (Create, Patch, Replace, ServerSideApply))
    standing = drift.standing(fields, observed.clock)
    if standing is Standing.FREE:
        return replace(applied, contested=drift.message)
    message = drift.message
    if standing is Standing.NOTICED:
        message = _conflict_message(applied.action, drift.managed, observed, by_server=drift.altered)
    conflict = FieldConflict(wanted.key, child.id, fields, message, new=standing is Standing.NOTICED)
    if fields == WHOLE:
        raise HeldBack(conflict)
    return Applied(
        applied.action.live if not isinstance(applied.action, Create) else None, contested=message, conflict=conflict
    )


def _conflict_message(
    action: Correction, managed: tuple[Mapping[str, Any], ...] | None, observed: Observed, *, by_server: bool
) -> str:
    paths = [each.path for each in changes(action, observed.kinds)]
    if isinstance(action, Create) or action.live is None or by_server:
        return conflict_message(action, paths, (), by_server=by_server)
    if managed is None:
        raise Unread(Read(action.key, Kind.of(action.live), "managers"))
    return conflict_message(action, paths, managers_of(managed, action.live, desired(action)), by_server=False)


def refusal(name: str, kind: str, claim: Claim) -> str:
    whose = f" (it belongs to {claim.by})" if claim.by else ""
    return f'Resource "{name}" already exists and is not managed by {kind}{whose}'


def _creation(
    child: Child, wanted: Wanted, owner: Owner, *, reference: dict[str, Any] | None, strategy: str
) -> tuple[Object, Action]:
    """Always a create, also for server-side: an apply would take over whatever got there first, seen by us or not."""
    marked = _normal(child, wanted, with_marks(wanted, owner, reference=reference, managed=True))
    fields = NO_FIELDS
    if strategy != "create-only":
        try:
            fields = create_fields(marked, _shape(wanted), ignore=_ignored(child, wanted))
        except MergeError as error:
            raise _unmergeable(child, wanted, error) from None
    body = _recorded(marked, _record_text(child, wanted, fields, strategy))
    return body, Create(wanted.key, child.id, body, wanted.digest)


def _normal(child: Child, wanted: Wanted, marked: Object) -> Object:
    try:
        return normalise_desired(marked, wanted.kind)
    except UnwritableError as error:
        raise ChildFails(f"the {wanted.kind.kind} {wanted.key.name!r} {error}", child.body.site) from None


def _unmergeable(child: Child, wanted: Wanted, error: RuleopError) -> ChildFails:
    return ChildFails(f"the {wanted.kind.kind} {wanted.key.name!r}: {error}", child.body.site, reason="ApplyFailed")


def _record_text(child: Child, wanted: Wanted, fields: FieldSet, strategy: str) -> str:
    try:
        return encode(Record(child.id, fields))
    except RecordTooLargeError as error:
        if strategy == "server-side":
            return encode(Record(child.id, _digest_of(fields)))
        raise _unmergeable(child, wanted, error) from None


def _digest_of(fields: FieldSet) -> FieldSet:
    """What stands for a record that is too large, where the API server keeps the fields: enough to see that they are
    others now."""
    return FieldSet(MapFields({fingerprint(fields.to_json()): Leaf.SCALAR}, created=False))


def _named_by(record: Record | None) -> FieldSet | None:
    """The fields that a record names. Neither a digest nor the record of a create-only child names any."""
    return record.fields if record is not None and "metadata" in record.fields.root.members else None


def _shape(wanted: Wanted) -> Shape:
    """Of a kind that nothing is known of, there is still its metadata: other owners must not be lost for want of a
    schema."""
    return wanted.info.shape if wanted.info.shape is not UNKNOWN else _any_object()


@cache
def _any_object() -> Shape:
    return Shape(type="object", fields={"metadata": object_meta()})


def _recorded(obj: Object, text: str) -> dict[str, Any]:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), APPLIED: text}}}


def _ignored(child: Child, wanted: Wanted) -> tuple[Path, ...]:
    paths: list[Path] = []
    for ignore in child.apply.ignore:
        if ignore.when is not None:
            try:
                if not ignore.when.truth(wanted.names):
                    continue
            except Waiting:
                pass  # it cannot be told yet: leave the field to whoever has it
            except RenderError as error:
                raise stopped(error) from None
        paths.extend(normalise_ignored(ignore.path, wanted.rendered, wanted.kind))
    return tuple(paths)


def _managed(live: Object, record: Record | None) -> bool:
    """Whether the label managed-by is ours: it is absent, it says so, or we set it and somebody else has changed it
    since."""
    found = ((live.get("metadata") or {}).get("labels") or {}).get(MANAGED_BY)
    if found is None or found == RULEOP:
        return True
    fields: Fields | None = record.fields.root if record is not None else None
    for name in ("metadata", "labels", MANAGED_BY):
        fields = fields.members.get(name) if isinstance(fields, MapFields) else None
    return fields is not None


def _change(
    child: Child,
    wanted: Wanted,
    owner: Owner,
    history: History,
    live: Object,
    *,
    reference: dict[str, Any] | None,
    adopting: bool,
    strategy: str,
) -> Applied:
    record = None if adopting else record_of(live)
    marked = _normal(child, wanted, with_marks(wanted, owner, reference=reference, managed=_managed(live, record)))
    ignore = _ignored(child, wanted)
    fields, shape = record.fields if record is not None else None, _shape(wanted)
    learned = history.learned.get(wanted.key, Learned.NOTHING)
    try:
        merged = three_way(live, marked, fields, shape, ignore=ignore, own=child.apply.own, learned=learned)
    except MergeError as error:
        raise _unmergeable(child, wanted, error) from None
    if merged.object is live and record is not None and record.id == child.id and _says(record.fields, merged.fields):
        return Applied(live, in_step=True)
    stands = _recorded(merged.object, _record_text(child, wanted, merged.fields, strategy))
    failed = history.failure(wanted.key)
    if failed is not None and failed.failure is Failure.IMMUTABLE and failed.wanted == wanted.digest:
        return _immutable(child, wanted, history, live, refused_changes(live, stands, shape, failed), failed=failed)
    why: Literal["changed", "adopted"] = "adopted" if adopting else "changed"
    if strategy == "server-side" and not removes_items_of_others(
        live, merged.object, fields.root if fields is not None else None, shape
    ):
        return Applied(stands, replace(_server_side(child, wanted, live, marked, stands, ignore), why=why))
    if strategy == "replace":
        return Applied(stands, replace(_replacement(child, wanted, live, marked, stands, ignore), why=why))
    return Applied(stands, _patch(child, wanted, live, stands, why, as_sent(marked, live, ignore, shape)))


def _says(recorded: FieldSet, fields: FieldSet) -> bool:
    return recorded == fields or (len(recorded.root.members) == 1 and recorded == _digest_of(fields))


def _patch(
    child: Child,
    wanted: Wanted,
    live: Object,
    stands: Object,
    why: Literal["changed", "adopted"],
    sent: Object | None = None,
) -> Patch:
    patch = merge_patch(live, stands)
    assert patch is not None, "at least the record differs"
    return Patch(wanted.key, child.id, guarded(patch, live), live, stands, wanted.digest, why, sent)


def guarded(patch: dict[str, Any], live: Object) -> dict[str, Any]:
    """A patch that the server takes only for this very object, as it was read."""
    metadata = live["metadata"]
    guards = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **guards}}


def _immutable(
    child: Child, wanted: Wanted, history: History, live: Object, refused: tuple[Difference, ...], *, failed: Failed
) -> Applied:
    """The server refused this very wish because it changes a field that cannot change."""
    recreate = child.apply.on_immutable == "recreate"
    sensitive = (wanted.kind.group, wanted.kind.kind) in SENSITIVE and not child.apply.on_immutable_explicit
    if recreate and not sensitive and history.recreated.get(wanted.key) != wanted.digest:
        return Applied(live, Delete(wanted.key, child.id, live, "recreate", child.propagation, after_writes=False))
    if recreate and sensitive:
        way = f"; a {wanted.kind.kind} is only recreated if the child itself has `apply.onImmutable: recreate`"
    else:
        way = "" if recreate else "; `apply.onImmutable: recreate` would recreate it"
    raise Immutable(failed, refused, way, child.body.site)


def _server_side(
    child: Child, wanted: Wanted, live: Object, marked: Object, stands: Object, ignore: tuple[Path, ...]
) -> ServerSideApply:
    """What we want, whole, with the values that others own in ignored places; what is not in it is given up by the
    server's own record."""
    metadata = {**marked["metadata"], "uid": live["metadata"].get("uid")}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), APPLIED: annotations_of(stands)[APPLIED]}
    body = {**marked, "metadata": {key: value for key, value in metadata.items() if value is not None}}
    recorded = _named_by(record_of(live))
    return ServerSideApply(
        wanted.key, child.id, _with_ignored(body, live, ignore, wanted), live, wanted.digest, recorded=recorded
    )


def _with_ignored(body: dict[str, Any], live: Object, ignore: tuple[Path, ...], wanted: Wanted) -> dict[str, Any]:
    ignored = ignored_at(ignore)
    if ignored is None:
        return body
    filled: dict[str, Any] = with_live_places(body, live, ignored, _shape(wanted))
    return filled


def _replacement(
    child: Child, wanted: Wanted, live: Object, marked: Object, stands: Object, ignore: tuple[Path, ...]
) -> Replace:
    """The wanted object in the place of the live one; what identifies and guards it stays, and so do others' finalizers
    and owners."""
    theirs = live["metadata"]
    metadata = dict(marked["metadata"])
    metadata["annotations"] = {**(metadata.get("annotations") or {}), APPLIED: annotations_of(stands)[APPLIED]}
    for name in ("uid", "resourceVersion", "finalizers"):
        if name in theirs:
            metadata[name] = theirs[name]
    if references := stands["metadata"].get("ownerReferences"):
        metadata["ownerReferences"] = references
    body = {**marked, "metadata": metadata}
    if "status" in live:
        body["status"] = live["status"]
    return Replace(wanted.key, child.id, _with_ignored(body, live, ignore, wanted), live, wanted.digest)


def _marks_only(
    child: Child, wanted: Wanted, owner: Owner, live: Object, *, reference: dict[str, Any] | None, adopting: bool
) -> Applied:
    """A create-only child that exists: nothing of it is changed but what says whose it is."""
    record = record_of(live)
    metadata = live.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, annotations_of(live)
    marked = labels.get(PART_OF) == owner.part_of and record is not None and record.id == child.id
    versions = [
        each.get("apiVersion") for each in metadata.get("ownerReferences") or () if each.get("uid") == owner.uid
    ]
    if reference is not None:
        owned = versions == [reference["apiVersion"]]
    else:
        owned = not versions and annotations.get(OWNER) == owner.annotation(wanted.key, orphan=wanted.orphan)
    if marked and owned:
        return Applied(live, in_step=True)
    references = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != owner.uid]
    notes = {key: value for key, value in annotations.items() if key != OWNER}
    notes[APPLIED] = encode(Record(child.id, NO_FIELDS))
    if reference is not None:
        references.append(reference)
    else:
        notes[OWNER] = owner.annotation(wanted.key, orphan=wanted.orphan)
    new = {key: value for key, value in metadata.items() if key != "ownerReferences"}
    new |= {"labels": {MANAGED_BY: RULEOP, **labels, PART_OF: owner.part_of}, "annotations": notes}
    if references:
        new["ownerReferences"] = references
    stands = {**live, "metadata": new}
    return Applied(stands, _patch(child, wanted, live, stands, "adopted" if adopting else "changed"))


def release(child: str, live: Object, key: ObjectKey, owner: Owner, *, needs: frozenset[str] = frozenset()) -> Patch:
    """Our marks taken off an object that stays when its CR goes, or is no longer wanted."""
    metadata = live["metadata"]
    labels = {
        name: value
        for name, value in (metadata.get("labels") or {}).items()
        if name != PART_OF and (name, value) != (MANAGED_BY, RULEOP)
    }
    notes = {name: value for name, value in annotations_of(live).items() if name not in {APPLIED, OWNER}}
    return _marked_anew(child, live, key, owner, "released", labels=labels, annotations=notes, needs=needs)


def keep(child: str, live: Object, key: ObjectKey, owner: Owner) -> Patch:
    """The garbage collector kept from an object that stays when its CR goes, and that is needed until then."""
    notes = {**annotations_of(live), OWNER: owner.annotation(key, orphan=True, kept=True)}
    return _marked_anew(
        child, live, key, owner, "changed", labels=live["metadata"].get("labels") or {}, annotations=notes
    )


def _marked_anew(
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
    """With these labels and annotations, and without our ownerReference."""
    metadata = live["metadata"]
    references = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != owner.uid]
    new = {name: value for name, value in metadata.items() if name not in {"labels", "annotations", "ownerReferences"}}
    new |= {
        name: value
        for name, value in (("labels", labels), ("annotations", annotations), ("ownerReferences", references))
        if value
    }
    stands = {**live, "metadata": new}
    patch = merge_patch(live, stands)
    assert patch is not None
    return Patch(key, child, guarded(patch, live), live, stands, "", why, needs=needs)
