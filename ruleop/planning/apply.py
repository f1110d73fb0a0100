"""What to do about one wanted object, given what is live: create it, change it, leave it, or refuse to touch it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.errors import RenderError
from ruleop.merge import (
    FieldSet,
    Learned,
    MergeError,
    Path,
    Record,
    RecordTooLargeError,
    create_fields,
    decode,
    encode,
    merge_patch,
    normalise_wanted,
    three_way,
)
from ruleop.merge.ignored import ignored_at, with_live_places
from ruleop.planning.actions import Action, Create, Delete, Patch, Replace, ServerSideApply
from ruleop.planning.errors import ChildFails, ChildWaits
from ruleop.planning.marks import APPLIED, MANAGED_BY, OWNER, PART_OF, Claim, Owner, annotations_of, claim_on
from ruleop.planning.observed import Failure, Observed, Served
from ruleop.planning.wanted import Wanted, strategy_of, with_marks
from ruleop.schema.shape import UNKNOWN
from ruleop.templating import Waiting

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.rules import Child

SENSITIVE = frozenset(
    {("", "PersistentVolumeClaim"), ("", "PersistentVolume"), ("", "Namespace"), ("apiextensions.k8s.io", "CustomResourceDefinition")}
)
"""Kinds whose deletion loses data: `onImmutable: recreate` has to be said by the child itself."""

_RECORDS: OrderedDict[str, Record | None] = OrderedDict()
_KEPT_RECORDS = 20_000


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome for one wanted object. `stands` is the object as it will stand after this pass; None while it cannot be told."""

    stands: Object | None
    action: Action | None = None
    refused: str = ""
    terminating: bool = False


def record_of(live: Object) -> Record | None:
    """The record on an object. The same text is read again and again, so what it means is kept."""
    text = annotations_of(live).get(APPLIED)
    if not isinstance(text, str):
        return None
    found = _RECORDS.get(text)
    if found is None and text not in _RECORDS:
        found = _RECORDS[text] = decode(text)
        if len(_RECORDS) > _KEPT_RECORDS:
            _RECORDS.popitem(last=False)
    return found


def apply(child: Child, wanted: Wanted, owner: Owner, observed: Observed, *, refer: bool) -> Applied:
    """Raises ChildFails and ChildWaits."""
    live = observed.objects.get(wanted.key)
    if wanted.info.state is Served.FORBIDDEN:
        raise ChildWaits(f"the right to read {wanted.kind.kind}", child.body.site)
    strategy = strategy_of(child, wanted.kind)
    if live is None:
        return Applied(*_creation(child, wanted, owner, refer=refer, strategy=strategy))
    claim = claim_on(live, wanted.key, owner)
    adopting = not claim.ours and not claim.by and child.adopt == "orphans" and not claim.referenced
    if not claim.ours and not adopting:
        return Applied(None, refused=refusal(wanted.key.name, owner.kind.kind, claim))
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        return Applied(live, terminating=True)
    if strategy == "create-only":
        return _marks_only(child, wanted, owner, live, refer=refer, adopting=adopting)
    return _change(child, wanted, owner, observed, live, refer=refer, adopting=adopting, strategy=strategy)


def refusal(name: str, kind: str, claim: Claim) -> str:
    whose = f" (it belongs to {claim.by})" if claim.by else ""
    return f'Resource "{name}" already exists and is not managed by {kind}{whose}'


def _creation(child: Child, wanted: Wanted, owner: Owner, *, refer: bool, strategy: str) -> tuple[Object, Action]:
    marked = normalise_wanted(with_marks(wanted, owner, refer=refer, live=None, managed=True), wanted.kind)
    try:
        ignore = tuple(_ignored(child, wanted)) if strategy != "create-only" else ()
        fields = create_fields(marked, wanted.info.shape, ignore=ignore)
    except MergeError as error:
        raise ChildFails(f"the {wanted.kind.kind} {wanted.key.name!r}: {error}", child.body.site) from None
    body = _recorded(child, marked, Record(child.id, fields if strategy != "create-only" else NO_FIELDS), wanted)
    if strategy == "server-side":
        return body, ServerSideApply(wanted.key, child.id, body, None, wanted.digest)
    return body, Create(wanted.key, child.id, body, wanted.digest)


NO_FIELDS = create_fields({}, UNKNOWN)


def _recorded(child: Child, obj: Object, record: Record, wanted: Wanted) -> dict[str, Any]:
    try:
        text = encode(record)
    except RecordTooLargeError as error:
        raise ChildFails(f"the {wanted.kind.kind} {wanted.key.name!r}: {error}", child.body.site) from None
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), APPLIED: text}}}


def _ignored(child: Child, wanted: Wanted) -> list[Path]:
    paths = []
    for ignore in child.apply.ignore:
        if ignore.when is not None:
            try:
                if not ignore.when.truth(wanted.names):
                    continue
            except Waiting:
                pass  # it cannot be told yet: leave the field to whoever has it
            except RenderError as error:
                raise ChildFails(error.message, error.site) from None
        paths.append(ignore.path)
    return paths


def _managed(live: Object, applied: FieldSet | None) -> bool:
    """Whether the label managed-by is ours: it is absent, or it is the one that we wrote."""
    labels = (live.get("metadata") or {}).get("labels") or {}
    return labels.get(MANAGED_BY) in {None, "ruleop"} and (MANAGED_BY not in labels or applied is not None)


def _change(
    child: Child, wanted: Wanted, owner: Owner, observed: Observed, live: Object, *, refer: bool, adopting: bool, strategy: str
) -> Applied:
    record = record_of(live)
    applied = record.fields if record is not None else None
    marked = normalise_wanted(with_marks(wanted, owner, refer=refer, live=live, managed=_managed(live, applied)), wanted.kind)
    ignore = tuple(_ignored(child, wanted)) if child.apply.ignore else ()
    learned = observed.learned.get(wanted.key, Learned.NOTHING)
    try:
        merged = three_way(live, marked, applied, wanted.info.shape, ignore=ignore, learned=learned)
    except MergeError as error:
        raise ChildFails(f"the {wanted.kind.kind} {wanted.key.name!r}: {error}", child.body.site) from None
    if merged.object is live and record is not None and record.id == child.id and merged.fields == record.fields:
        return Applied(live)
    stands = _recorded(child, merged.object, Record(child.id, merged.fields), wanted)
    failed = observed.failed.get(wanted.key)
    if failed is not None and failed.failure is Failure.IMMUTABLE and failed.wanted == wanted.digest:
        return _immutable(child, wanted, observed, live, failed.message)
    if strategy == "server-side":
        return Applied(stands, _server_side(child, wanted, live, marked, stands, record))
    if strategy == "replace":
        return Applied(stands, _replacement(child, wanted, live, marked, stands))
    patch = merge_patch(live, stands)
    if patch is None:
        return Applied(live)
    return Applied(
        stands, Patch(wanted.key, child.id, guarded(patch, live), live, stands, wanted.digest, "adopted" if adopting else "changed", marked)
    )


def guarded(patch: dict[str, Any], live: Object) -> dict[str, Any]:
    """A patch that the server takes only for this very object, as it was read."""
    metadata = live["metadata"]
    guards = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **guards}}


def _immutable(child: Child, wanted: Wanted, observed: Observed, live: Object, message: str) -> Applied:
    """The server refused this very wish because it changes a field that cannot change."""
    sensitive = (wanted.kind.group, wanted.kind.kind) in SENSITIVE and not child.apply.on_immutable_explicit
    if child.apply.on_immutable == "recreate" and not sensitive and observed.recreated.get(wanted.key) != wanted.digest:
        return Applied(live, Delete(wanted.key, child.id, live, "recreate", child.propagation, after_writes=False))
    way = "" if child.apply.on_immutable == "recreate" else "; `apply.onImmutable: recreate` would delete and create it again"
    raise ChildFails(f"{message}{way}", child.body.site, reason="ApplyFailed")


def _server_side(child: Child, wanted: Wanted, live: Object, marked: Object, stands: Object, record: Record | None) -> ServerSideApply:
    """What we want, whole, with the values that others own in ignored places; what is not in it is given up by the server's own record."""
    metadata = {**marked["metadata"], "uid": live["metadata"].get("uid")}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), APPLIED: annotations_of(stands)[APPLIED]}
    body = {**marked, "metadata": {key: value for key, value in metadata.items() if value is not None}}
    if ignored := ignored_at(_ignored(child, wanted)):
        body = with_live_places(body, live, ignored, wanted.info.shape)
    return ServerSideApply(wanted.key, child.id, body, live, wanted.digest, migrate=record is None)


def _replacement(child: Child, wanted: Wanted, live: Object, marked: Object, stands: Object) -> Replace:
    """The wanted object in the place of the live one; what identifies and guards it stays, and so do others' finalizers and owners."""
    theirs = live["metadata"]
    metadata = dict(marked["metadata"])
    metadata["annotations"] = {**(metadata.get("annotations") or {}), APPLIED: annotations_of(stands)[APPLIED]}
    for name in ("uid", "resourceVersion", "finalizers"):
        if name in theirs:
            metadata[name] = theirs[name]
    ours = metadata.get("ownerReferences") or []
    others = [each for each in theirs.get("ownerReferences") or () if all(each.get("uid") != our.get("uid") for our in ours)]
    if ours or others:
        metadata["ownerReferences"] = [*others, *ours]
    body = {**marked, "metadata": metadata}
    if "status" in live:
        body["status"] = live["status"]
    if ignored := ignored_at(_ignored(child, wanted)):
        body = with_live_places(body, live, ignored, wanted.info.shape)
    return Replace(wanted.key, child.id, body, live, wanted.digest)


def _marks_only(child: Child, wanted: Wanted, owner: Owner, live: Object, *, refer: bool, adopting: bool) -> Applied:
    """A create-only child that exists: nothing of it is changed but what says whose it is."""
    record = record_of(live)
    metadata = live.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, annotations_of(live)
    marked = labels.get(PART_OF) == owner.part_of and record is not None and record.id == child.id
    owned = refer == _refers(metadata, owner) and (refer or annotations.get(OWNER) == owner.annotation(wanted.key, orphan=wanted.orphan))
    if marked and owned:
        return Applied(live)
    references = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != owner.uid]
    if refer:
        references.append(owner.reference())
    notes = {key: value for key, value in annotations.items() if key != OWNER}
    notes[APPLIED] = encode(Record(child.id, NO_FIELDS))
    if not refer:
        notes[OWNER] = owner.annotation(wanted.key, orphan=wanted.orphan)
    new = {key: value for key, value in metadata.items() if key != "ownerReferences"}
    new |= {"labels": {MANAGED_BY: "ruleop", **labels, PART_OF: owner.part_of}, "annotations": notes}
    if references:
        new["ownerReferences"] = references
    stands = {**live, "metadata": new}
    patch = merge_patch(live, stands)
    assert patch is not None
    return Applied(
        stands, Patch(wanted.key, child.id, guarded(patch, live), live, stands, wanted.digest, "adopted" if adopting else "changed")
    )


def _refers(metadata: Any, owner: Owner) -> bool:
    return any(each.get("uid") == owner.uid for each in metadata.get("ownerReferences") or ())


def release(child: str, live: Object, key: Any, owner: Owner) -> Patch:
    """Our marks taken off an object that stays when its CR goes, or is no longer wanted."""
    metadata = live["metadata"]
    labels = {
        name: value for name, value in (metadata.get("labels") or {}).items() if name != PART_OF and (name, value) != (MANAGED_BY, "ruleop")
    }
    notes = {name: value for name, value in annotations_of(live).items() if name not in {APPLIED, OWNER}}
    references = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != owner.uid]
    new = {name: value for name, value in metadata.items() if name not in {"labels", "annotations", "ownerReferences"}}
    new |= {name: value for name, value in (("labels", labels), ("annotations", notes), ("ownerReferences", references)) if value}
    stands = {**live, "metadata": new}
    patch = merge_patch(live, stands)
    assert patch is not None
    return Patch(key, child, guarded(patch, live), live, stands, "", "released")
