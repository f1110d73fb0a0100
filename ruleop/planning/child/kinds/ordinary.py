"""Children whose objects are rendered from their body, and kept as they are rendered.

Given the live object, one is created, changed by one of the strategies, recreated, left as it is, or it conflicts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from ruleop.errors import RenderError
from ruleop.kubernetes.builtin.table import object_meta
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import (
    FieldSet,
    Leaf,
    Learned,
    MapFields,
    MergeError,
    Path,
    Record,
    RecordTooLargeError,
    UnwritableError,
    as_sent,
    create_fields,
    encode,
    fingerprint,
    ignored_at,
    normalise_desired,
    normalise_ignored,
    removes_items_of_others,
    three_way,
    with_live_places,
)
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.language.templates import Waiting
from ruleop.planning.changes import expected_refusal, refused_changes
from ruleop.planning.child.child_plan import Applied, ChildPlan, Immutable, name_conflict_message
from ruleop.planning.child.existing import guarded, is_of_release, marks_of_helm, read_record
from ruleop.planning.model.actions import Create, Delete, Failure, Patch, Read, ServerSideApply
from ruleop.planning.model.marks import APPLIED, ITEM, MANAGED_BY, OWNER, RULEOP, annotations_of, claim_on
from ruleop.planning.model.observed import Served
from ruleop.planning.rendering.desired import Desired, Unrendered, kept_reference, render, with_marks
from ruleop.planning.rendering.items import recorded
from ruleop.planning.rendering.randomness import rotated
from ruleop.planning.rendering.unplanned import Unread, child_error

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.merge import Fields
    from ruleop.planning.changes import Difference
    from ruleop.planning.child.child_plan import ObjectPlan
    from ruleop.planning.model.actions import Failed
    from ruleop.planning.rendering.items import LoopItem

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


class OrdinaryPlan(ChildPlan):
    def render(self, item: LoopItem) -> list[Desired]:
        """The objects, with the record of an item whose end will be planned by it."""
        child, scope = self.child, self.context.scope
        if known := self.context.settled.objects(child, scope.observed.kinds):
            document = Unrendered(child, scope, item.names)
            return [
                Desired(key, each.info.kind, document, each.info, item.names, each.orphan, recreate=each.recreate)
                for key, each in known.items()
            ]
        desired = render(child, scope, item.names, item.place)
        return [replace(each, item=recorded(child, item)) for each in desired] if self.form.ended_by else desired

    def decide(self, object_plan: ObjectPlan) -> Applied:
        """The decision by the live object alone."""
        child, desired, context = self.child, object_plan.desired, self.context
        owner, observed, info = context.owner, context.scope.observed, desired.info
        # The garbage collector deletes objects whose owner is in another namespace, and objects whose owner is being
        # deleted, with foreground deletion at once and in any order.
        here = not owner.namespace or desired.key.namespace == owner.namespace
        references = here and not desired.orphan and not child.final and not child.deletion.in_order
        object_plan.references_owner = references
        state = info.state if info.places is None else info.state_in(desired.key.namespace)
        if state is not Served.SYNCED or desired.key in observed.own:
            self.require_known(desired, state)
        live = context.scope.objects.get(desired.key, version=desired.kind.version)
        if live is None:
            return self._create(desired, owner.reference() if references else None)
        claim = claim_on(live, desired.key, owner)
        of_release = not claim.owned and is_of_release(live, owner)
        may_adopt = child.apply.adopt == "orphans" or (child.apply.adopt == "helm" and of_release)
        adopting = not claim.owned and not claim.by and may_adopt and not claim.referenced
        if not claim.owned and not adopting:
            message = name_conflict_message(desired.key, owner.kind.kind, claim, of_release=of_release)
            return Applied(None, name_conflict=message)
        conflicting = context.history.conflicting.get(desired.key)
        if conflicting is not None and conflicting.partial and live is conflicting.obj:
            raise Unread(Read(desired.key, Kind.of(live), "conflicting"))
        if (live.get("metadata") or {}).get("deletionTimestamp"):
            return Applied(live, terminating=True)
        if references and not adopting and context.settled.is_still_in_sync(child, desired.key, live):
            return Applied(live, in_sync=True)
        reference = kept_reference(live, owner, observed.kinds) if references else None
        if child.strategy_for(desired.kind) != "create-only":
            return self._update(desired, live, reference, adopting=adopting)
        marked = self._update_marks(desired, live, reference, adopting=adopting)
        return self._rotate(desired, live, marked) if desired.rotated and not adopting else marked

    def _create(self, desired: Desired, reference: dict[str, Any] | None) -> Applied:
        """A create, also with strategy server-side: an apply would adopt an object that was created in the
        meantime."""
        marked = self._normalised(desired, with_marks(desired, self.context.owner, reference=reference, managed=True))
        strategy, fields = self.child.strategy_for(desired.kind), NO_FIELDS
        if strategy != "create-only":
            try:
                fields = create_fields(marked, _shape_of(desired), ignore=self._ignored_paths(desired))
            except MergeError as error:
                raise self.unmergeable(desired, error) from None
        body = _with_record(marked, self._record_text(desired, fields, strategy))
        return Applied(body, Create(desired.key, self.child.id, body, desired.digest))

    def _normalised(self, desired: Desired, marked: Object) -> Object:
        try:
            return normalise_desired(marked, desired.kind)
        except UnwritableError as error:
            raise self.unwritable(desired, error) from None

    def _record_text(self, desired: Desired, fields: FieldSet, strategy: str) -> str:
        try:
            return encode(Record(self.child.id, fields))
        except RecordTooLargeError as error:
            if strategy == "server-side":
                return encode(Record(self.child.id, _digest_of(fields)))
            raise self.unmergeable(desired, error) from None

    def _ignored_paths(self, desired: Desired) -> tuple[Path, ...]:
        paths: list[Path] = []
        for ignore in self.child.apply.ignore:
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

    def _update(self, desired: Desired, live: Object, reference: dict[str, Any] | None, *, adopting: bool) -> Applied:
        child, owner, history = self.child, self.context.owner, self.context.history
        record = None if adopting else read_record(live)
        if record is None and child.apply.adopt == "helm" and is_of_release(live, owner):
            record = Record("", marks_of_helm(live))
        managed = _may_set_managed_by(live, record)
        marked = self._normalised(desired, with_marks(desired, owner, reference=reference, managed=managed, live=live))
        ignore = self._ignored_paths(desired) if child.apply.ignore else ()
        fields, shape = record.fields if record is not None else None, _shape_of(desired)
        learned = history.learned.get(desired.key, Learned.NOTHING)
        try:
            merged = three_way(live, marked, fields, shape, ignore=ignore, own=child.apply.own, learned=learned)
        except MergeError as error:
            raise self.unmergeable(desired, error) from None
        is_recorded = (
            record is not None
            and record.id == child.id
            and (record.fields is merged.fields or _matches(record.fields, merged.fields))
        )
        if merged.object is live and is_recorded:
            return Applied(live, in_sync=True)
        result, strategy = merged.object, child.strategy_for(desired.kind)
        if not is_recorded:
            result = _with_record(result, self._record_text(desired, merged.fields, strategy))
        failed = history.failure(desired.key)
        if failed is None and self.context.scope.observed.expects_refusals:
            failed = expected_refusal(result, live, desired.digest)
        if failed is not None and failed.failure is Failure.IMMUTABLE and failed.desired_digest == desired.digest:
            return self._recreate(desired, live, refused_changes(child, live, result, shape, failed), failed)
        why: Literal["changed", "adopted"] = "adopted" if adopting else "changed"
        if strategy == "server-side" and not removes_items_of_others(
            live, merged.object, fields.root if fields is not None else None, shape
        ):
            return Applied(result, replace(self._server_side(desired, live, marked, result, ignore), why=why))
        sent = as_sent(marked, live, ignore, shape) if ignore else marked
        return Applied(result, self._patch(desired, live, result, why, sent))

    def _patch(
        self,
        desired: Desired,
        live: Object,
        result: Object,
        why: Literal["changed", "adopted", "rotated"],
        sent: Object | None = None,
    ) -> Patch:
        return Patch(desired.key, self.child.id, guarded(live, result), live, result, desired.digest, why, sent)

    def _recreate(self, desired: Desired, live: Object, refused: tuple[Difference, ...], failed: Failed) -> Applied:
        """Handles a change of an immutable field that the server rejected: deletes the object to recreate it, or
        fails."""
        child, kind = self.child, desired.kind
        sensitive = (kind.group, kind.kind) in SENSITIVE and not child.apply.on_immutable_explicit
        is_new = self.context.history.recreated.get(desired.key) != desired.digest
        if desired.recreate and not sensitive and is_new:
            return Applied(live, Delete(desired.key, child.id, live, "recreate", after_writes=False))
        if desired.recreate and sensitive:
            advice = f"; a {kind.kind} is only recreated if the child itself has `apply.onImmutable: recreate`"
        else:
            advice = "" if desired.recreate else "; `apply.onImmutable: recreate` would recreate it"
        raise Immutable(failed, refused, advice, child.body.site)

    def _server_side(
        self, desired: Desired, live: Object, marked: Object, result: Object, ignore: tuple[Path, ...]
    ) -> ServerSideApply:
        """An apply of the whole desired object, with the live values of ignored fields. The server removes fields that
        ruleop's field manager owned and that are not in it."""
        metadata = {**marked["metadata"], "uid": live["metadata"].get("uid")}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), APPLIED: annotations_of(result)[APPLIED]}
        body = {**marked, "metadata": {key: value for key, value in metadata.items() if value is not None}}
        body = _with_ignored(body, live, ignore, desired)
        known = _recorded_fields(read_record(live))
        return ServerSideApply(desired.key, self.child.id, body, live, desired.digest, recorded=known)

    def _update_marks(
        self, desired: Desired, live: Object, reference: dict[str, Any] | None, *, adopting: bool
    ) -> Applied:
        """An existing create-only child: only ruleop's own metadata is updated."""
        child, owner = self.child, self.context.owner
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
        return Applied(result, self._patch(desired, live, result, "adopted" if adopting else "changed"))

    def _rotate(self, desired: Desired, live: Object, marked: Applied) -> Applied:
        """The random values of a Secret are regenerated, together with a change of its marks."""
        assert marked.result is not None
        rendered = self._normalised(desired, desired.rendered)
        result = rotated(marked.result, rendered, desired.rotated, self.context.scope.observed.now)
        return Applied(result, self._patch(desired, live, result, "rotated"))


def _with_ignored(body: dict[str, Any], live: Object, ignore: tuple[Path, ...], desired: Desired) -> dict[str, Any]:
    ignored = ignored_at(ignore)
    if ignored is None:
        return body
    filled: dict[str, Any] = with_live_places(body, live, ignored, _shape_of(desired))
    return filled


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


def _matches(recorded: FieldSet, fields: FieldSet) -> bool:
    return recorded == fields or (len(recorded.root.members) == 1 and recorded == _digest_of(fields))
