"""Finds what changed on one custom resource: its edits and those of its children by their managedFields, Events on it,
and the revisions of the rules. Nothing is recorded for this: it shows what the cluster still knows."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.custom_resource_reader import ResourceReader
from ruleop.authoring.live.field_managers import writes_of
from ruleop.authoring.live.happenings import events_about
from ruleop.authoring.live.operator import CONFIG_MAP
from ruleop.authoring.live.reading.reader import LiveObjects
from ruleop.authoring.report.changes_of_resource import Change, ResourceHistory, What
from ruleop.core.kinds import Object, ObjectKey
from ruleop.core.planning import Owner
from ruleop.core.planning.model.marks import claim_on
from ruleop.core.secrets.masks import Masks
from ruleop.core.secrets.secret_values import is_secret, known_values, public_names
from ruleop.operator.engine.revisions.revision_data import decode, revisions_key
from ruleop.operator.kube.client.server_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.live.reading.open_cluster import LiveCluster

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
            *await self._revisions(str(live["metadata"].get("creationTimestamp") or "")),
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

    async def _events(self, key: ObjectKey) -> list[Change]:
        try:
            events = await events_about(self.reader, {key}, limit=MAX_EVENTS)
        except ApiError as error:
            self.resource_reader.note_forbidden("events", error)
            return []
        return [
            Change(
                each.time,
                What.EVENT,
                each.key,
                type=each.type,
                reason=each.reason,
                message=each.message,
                count=each.count,
            )
            for each in events
        ]

    async def _revisions(self, created: str) -> list[Change]:
        """Those that were in force since the custom resource was created."""
        operator, notes = self.cluster.operator, self.resource_reader.notes
        if not operator.namespace:
            notes.append(
                f"revisions of the rules: the namespace of the operator {operator.name} is not known; use --name and "
                "--operator-namespace"
            )
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
        return [
            Change(
                each.since,
                What.RULES,
                revision=each.digest,
                reads_environment=each.reads_environment,
                again=any(each.digest == earlier.digest for earlier in index[:number]),
            )
            for number, each in enumerate(index)
            if number >= first
        ]


def _of_object(obj: Object) -> Iterator[Change]:
    key, metadata = ObjectKey.of(obj), obj["metadata"]
    if created := metadata.get("creationTimestamp"):
        yield Change(created, What.CREATED, key)
    for write in writes_of(obj):
        if write.is_status:
            yield Change(write.manager.time, What.STATUS, key, write.manager, write.fields, write.groups)
        elif write.fields:
            yield Change(write.manager.time, What.WRITTEN, key, write.manager, write.fields, write.groups)
    if deleted := metadata.get("deletionTimestamp"):
        yield Change(_requested(deleted, metadata.get("deletionGracePeriodSeconds") or 0), What.DELETION, key)


def _requested(deleted: str, grace: int) -> str:
    """The time of the request: deletionTimestamp is the end of the grace period."""
    time = dt.datetime.fromisoformat(deleted) - dt.timedelta(seconds=grace)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _with_generation(changes: list[Change], live: Object) -> Iterator[Change]:
    """The last edit of more than metadata led to the present generation."""
    edits = [each for each in changes if each.what is What.WRITTEN and not _is_metadata(each)]
    last = max(edits, key=lambda each: each.time, default=None)
    for each in changes:
        yield replace(each, generation=live["metadata"].get("generation")) if each is last else each


def _is_metadata(change: Change) -> bool:
    return all(each.startswith("metadata.") for each in change.fields)


def _masked(change: Change, masks: Masks) -> Change:
    return replace(
        change,
        fields=tuple(map(masks.text, change.fields)),
        groups=tuple(map(masks.text, change.groups)),
        message=masks.text(change.message),
    )
