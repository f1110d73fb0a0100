"""Finds what changed on one custom resource: its edits and those of its children by their managedFields, Events on it,
and the revisions of the rules. Nothing is recorded for this: it shows what the cluster still knows."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.custom_resource_reader import ResourceReader
from ruleop.authoring.live.field_managers import last_writes
from ruleop.authoring.live.operator import CONFIG_MAP
from ruleop.authoring.live.reading.reader import LiveObjects
from ruleop.authoring.report import PastChange, ResourceHistory, What
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.language.secrets.masks import Masks
from ruleop.language.secrets.secret_values import is_secret, known_values, public_names
from ruleop.operator.revisions import decode, revisions_key
from ruleop.operator.rollouts import decode_records, kind_of, rollouts_key
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.planning import Owner
from ruleop.planning.model.conditions import ROLLOUT, find_condition, named_revision
from ruleop.planning.model.marks import claim_on
from ruleop.planning.rollout import member_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.live.reading.open_cluster import LiveCluster
    from ruleop.operator.revisions import Revision
    from ruleop.planning.rollout import RolloutRecord

MAX_EVENTS: Final = 100


class Historian:
    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster, self.reader = cluster, cluster.reader
        self.resource_reader = ResourceReader(cluster)
        self.now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def history(self, kind: str, name: str) -> ResourceHistory:
        """Raises NotFoundError, UnknownKindError and ApiError."""
        live = await self.resource_reader.resource(kind, name)
        children = await self._children(live)
        masks = Masks(values=known_values(filter(is_secret, children), (), public_names([live, *children])))
        changes = [
            *await self._revisions(live),
            *_with_generation(list(_of_object(live)), live),
            *(change for child in children for change in _of_object(child)),
            *await self._events(ObjectKey.of(live)),
        ]
        order = [*What]
        changes.sort(key=lambda each: (each.time, order.index(each.what)))
        notes = tuple(self.resource_reader.notes)
        return ResourceHistory(live, self.now, tuple(_masked(each, masks) for each in changes), notes)

    async def _children(self, live: Object) -> list[Object]:
        objects, owner = LiveObjects(), Owner.of(live)
        await self.resource_reader.read_children(live, objects)
        return [each for each in objects.children(owner.part_of) if claim_on(each, ObjectKey.of(each), owner).owned]

    async def _events(self, key: ObjectKey) -> list[PastChange]:
        return [
            PastChange(
                each.time,
                What.EVENT,
                each.key,
                type=each.type,
                reason=each.reason,
                message=each.message,
                count=each.count,
            )
            for each in await self.resource_reader.events({key}, MAX_EVENTS)
        ]

    async def _revisions(self, live: Object) -> list[PastChange]:
        """The revisions in force since the custom resource was created, and what its rollout has done with them."""
        created = str(live["metadata"].get("creationTimestamp") or "")
        operator, notes = self.cluster.operator, self.resource_reader.notes
        if operator.problem:
            notes.append(f"revisions of the rules: {operator.problem}")
            return []
        key = revisions_key(operator.namespace, operator.name)
        try:
            found = await self.reader.get(CONFIG_MAP, key)
        except ApiError as error:
            notes.append(f"revisions of the rules: {error}")
            return []
        index = decode(found).index
        if not index:
            notes.append(f"revisions of the rules: none in {key}")
        first = max((number for number, each in enumerate(index) if each.since <= created), default=0)
        record, member = await self._rollout(live), member_of(live["metadata"]["uid"])
        reached = len(index) if record is None else _reached(index, record, member)
        released = []
        if record is not None and member in record.pending:
            time = dt.datetime.fromtimestamp(record.pending[member], dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            released = [PastChange(time, What.RELEASED, ObjectKey.of(live), revision=record.target.number)]
        return released + [
            PastChange(
                each.since,
                What.RULES,
                revision=each.digest,
                environment=each.reads_environment,
                again=any(each.digest == earlier.digest for earlier in index[:number]),
                held_back=number >= reached,
            )
            for number, each in enumerate(index)
            if number >= first
        ]

    async def _rollout(self, live: Object) -> RolloutRecord | None:
        """The record of its watch: of several for its kind, that which names it, or gives it the revision in its
        status. An edit of several watches is one revision of each."""
        operator, kind = self.cluster.operator, Kind.of(live).versionless
        try:
            found = await self.reader.get(CONFIG_MAP, rollouts_key(operator.namespace, operator.name))
        except ApiError as error:
            self.resource_reader.notes.append(f"rollouts: {error}")
            return None
        records = decode_records((found or {}).get("data") or {})
        of_kind = [record for watch, record in records.items() if kind_of(watch) == kind]
        reported, member = named_revision(find_condition(live, ROLLOUT)), member_of(live["metadata"]["uid"])
        matching = [each for each in of_kind if not reported or each.shown(member).short == reported] or of_kind
        matching = [each for each in matching if each.names(member)] or matching
        return matching[0] if len(matching) == 1 else None


def _reached(index: Sequence[Revision], record: RolloutRecord, member: str) -> int:
    """The number of revisions up to that which the custom resource has now."""
    current = record.revision_of(member)
    if record.rejected is None and current.rule == record.target.rule:
        return len(index)
    return max((number for number, each in enumerate(index, 1) if each.digest == current.project), default=len(index))


def _of_object(obj: Object) -> Iterator[PastChange]:
    key, metadata = ObjectKey.of(obj), obj["metadata"]
    if created := metadata.get("creationTimestamp"):
        yield PastChange(created, What.CREATED, key)
    yield from last_writes(obj)
    if deleted := metadata.get("deletionTimestamp"):
        yield PastChange(_requested(deleted, metadata.get("deletionGracePeriodSeconds") or 0), What.DELETION, key)


def _requested(deleted: str, grace: int) -> str:
    """The time of the request: deletionTimestamp is the end of the grace period."""
    time = dt.datetime.fromisoformat(deleted) - dt.timedelta(seconds=grace)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _with_generation(changes: list[PastChange], live: Object) -> Iterator[PastChange]:
    """The last edit of more than metadata led to the present generation."""
    edits = [each for each in changes if each.what is What.WRITTEN and not _is_metadata(each)]
    last = max(edits, key=lambda each: each.time, default=None)
    for each in changes:
        yield replace(each, generation=live["metadata"].get("generation")) if each is last else each


def _is_metadata(change: PastChange) -> bool:
    return all(each.startswith("metadata.") for each in change.fields or ())


def _masked(change: PastChange, masks: Masks) -> PastChange:
    return replace(
        change,
        fields=tuple(map(masks.text, change.fields)) if change.fields is not None else None,
        groups=tuple(map(masks.text, change.groups)),
        message=masks.text(change.message) if change.message is not None else None,
    )
