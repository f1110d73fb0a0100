"""The changes on one custom resource, and who made them: its edits and those of its children by their managedFields,
Events on it, and the revisions of the rules. Nothing is recorded for this: it shows what the cluster still knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from ruleop.authoring.live.custom_resource_reader import ResourceReader
from ruleop.authoring.report import LastWrite, ManagedField, PastChange, ResourceView, What
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.kubernetes.merge import Fields, KeyedFields, MapFields
from ruleop.kubernetes.times import seconds_of, timestamp
from ruleop.language.secrets.masks import Masks
from ruleop.language.secrets.secret_values import is_secret, known_values, public_names
from ruleop.messages import format_path
from ruleop.operator.revisions import revisions_key
from ruleop.operator.rollouts import kind_of
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.planning import Owner, read_record
from ruleop.planning.model.conditions import ROLLOUT, find_condition, named_revision
from ruleop.planning.model.marks import MANAGED_BY, RESERVED, RULEOP, claim_on
from ruleop.planning.rollout import member_of

if TYPE_CHECKING:
    from ruleop.operator.revisions import Revision
    from ruleop.planning.rollout import RolloutRecord


# -- field managers ----------------------------------------------------------------------------------------------------
# The manager of each field that ruleop sets, by the record on the object and its managedFields.

_IDENTITY: Final = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
"""Immutable fields without a field manager."""

Step: TypeAlias = str | tuple[tuple[str, Any], ...]
"""A field's name, or the keys of a list item and their values."""
Place: TypeAlias = tuple[str | int, ...]


def last_change(obj: Object) -> LastWrite | None:
    """The manager that changed an object last, apart from its status."""
    managers = [_manager(each) for each in _entries(obj) if each.get("subresource") != "status"]
    return max(managers, key=lambda each: each.time, default=None)


def last_writes(obj: Object) -> Iterator[PastChange]:
    """The last write of each manager, with all fields that it owns, except those that identify the object and ruleop's
    own metadata."""
    for entry in _entries(obj):
        manager, is_status, fields = _manager(entry), entry.get("subresource") == "status", entry.get("fieldsV1")
        listed = dict.fromkeys(_listed(fields if isinstance(fields, Mapping) else {}, ()))
        paths = [path for path in listed if path not in _IDENTITY and not _is_mark(path)]
        if is_status or paths:
            what = What.STATUS if is_status else What.WRITTEN
            yield PastChange(manager.time, what, ObjectKey.of(obj), manager, tuple(map(path_text, paths)))


def managed_fields(obj: Object, planned: Collection[str] = (), *, manager: str = RULEOP) -> list[ManagedField]:
    """The fields that ruleop sets, by its record or, without one, by the API server's. Not those that identify the
    object, nor ruleop's own metadata. `planned`: the fields that the next reconcile changes. It shows which of the
    missing fields another client has removed; others may be missing because the API server does not store them.
    `manager`: that of a child with `patch`, which has no record."""
    entries = [each for each in _entries(obj) if isinstance(each.get("fieldsV1"), Mapping)]
    listed = [(_manager(each), list(_listed(each["fieldsV1"], ()))) for each in entries]
    record = read_record(obj) if manager == RULEOP else None
    if record is not None:
        paths = list(_recorded(record.fields.root, ()))
    else:
        paths = [path for client, owned in listed if client.manager == manager for path in owned]
    owners = []
    for client, owned in listed:
        leaves = set(filter(None, (_place(obj, path) for path in owned)))
        owners.append((client, {leaf[:length] for leaf in leaves for length in range(1, len(leaf) + 1)}, leaves))
    found = []
    for path in dict.fromkeys(paths):
        if path in _IDENTITY or _is_mark(path):
            continue
        place, text = _place(obj, path), path_text(path)
        above = {place[:length] for length in range(1, len(place))}
        # Of a field above, which may be owned as a whole, only if nobody owns the field or one in it.
        managers = [client for client, places, _ in owners if place in places]
        managers = managers or [client for client, _, leaves in owners if not above.isdisjoint(leaves)]
        latest_first = sorted(managers, key=lambda each: (each.time, each.is_ruleop), reverse=True)
        by_others = bool(managers) and not any(each.is_ruleop for each in managers)
        is_removed = not managers and any(text == each or text.startswith((f"{each}.", f"{each}[")) for each in planned)
        found.append(ManagedField(text, tuple(latest_first), by_others or is_removed))
    return found


def _place(obj: Any, path: Sequence[Step]) -> Place:
    """The names and positions that lead to a field; empty if it does not exist."""
    place: list[str | int] = []
    for step in path:
        if isinstance(step, str):
            at: str | int | None = step
            obj = obj.get(step) if isinstance(obj, Mapping) else None
        else:
            items = obj if isinstance(obj, list) else []
            keys = dict(step)
            at = next((number for number, each in enumerate(items) if _has_keys(each, keys)), None)
            obj = items[at] if at is not None else None
        if at is None or obj is None:
            return ()
        place.append(at)
    return tuple(place)


def _has_keys(item: Any, keys: Mapping[str, Any]) -> bool:
    """A key that the item lacks has the default of the API."""
    return isinstance(item, Mapping) and all(item.get(name, value) == value for name, value in keys.items())


def _is_mark(path: Sequence[Step]) -> bool:
    """Whether the field is ruleop's own metadata."""
    if path[:2] == ("metadata", "ownerReferences"):
        return True
    name = path[2] if len(path) > 2 and path[:2] in {("metadata", "labels"), ("metadata", "annotations")} else ""
    return name == MANAGED_BY or (isinstance(name, str) and name.startswith(RESERVED))


def _entries(obj: Object) -> list[Mapping[str, Any]]:
    found = (obj.get("metadata") or {}).get("managedFields")
    return [each for each in found or () if isinstance(each, Mapping) and each.get("manager")]


def _manager(entry: Mapping[str, Any]) -> LastWrite:
    return LastWrite(str(entry["manager"]), str(entry.get("operation", "")), str(entry.get("time") or ""))


def _recorded(fields: Fields, path: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The fields of a record that have no fields below them."""
    if isinstance(fields, MapFields) and fields.members:
        for name, inner in fields.members.items():
            yield from _recorded(inner, (*path, name))
    elif isinstance(fields, KeyedFields) and fields.items:
        for key, inner in fields.items.items():
            yield from _recorded(inner, (*path, tuple(zip(fields.keys, map(_key_value, key), strict=True))))
    elif path:
        yield path


def _key_value(value: Any) -> Any:
    """A boolean or a float is recorded as the text of its JSON."""
    return orjson.loads(value[0]) if isinstance(value, tuple) else value


def _listed(fields: Mapping[str, Any], path: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The fields of a set of the API server."""
    for name, inner in fields.items():
        step = _step(name)
        if step is not None:
            below = list(_listed(inner, (*path, step)))
            yield from below or [(*path, step)]  # nothing below: a value, or a set of values


def _step(name: str) -> Step | None:
    kind, _, rest = name.partition(":")
    if kind == "f":
        return rest
    return tuple(sorted(orjson.loads(rest).items())) if kind == "k" else None


def path_text(path: Sequence[Step]) -> str:
    """The path as the differences of a plan write it: `spec.ports[port=80,protocol=TCP].targetPort`."""
    text = ""
    for step in path:
        if isinstance(step, str):
            piece = format_path((step,))
            text += f".{piece}" if text and not piece.startswith("[") else piece
        else:
            text += "[" + ",".join(f"{name}={_text(value)}" for name, value in step) + "]"
    return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


# -- what the cluster still knows --------------------------------------------------------------------------------------

MAX_EVENTS: Final = 100


class Historian(ResourceReader):
    async def history(self, kind: str, name: str) -> ResourceView:
        """Raises RuleopError."""
        live = await self.find(kind, name)
        children = await self._children(live)
        events = await self.events({ObjectKey.of(live)}, MAX_EVENTS)
        masks = Masks(values=known_values(filter(is_secret, children), (), public_names([live, *children])))
        changes = [
            *await self._revisions(live),
            *_with_generation(list(_of_object(live)), live),
            *(change for child in children for change in _of_object(child)),
            *(PastChange(each.time, What.EVENT, each.key, event=each) for each in events),
        ]
        order = [*What]
        changes.sort(key=lambda each: (each.time, order.index(each.what)))
        masked = tuple(_masked(each, masks) for each in changes)
        return ResourceView(live, now=self.now, changes=masked, notes=tuple(self.notes))

    async def _children(self, live: Object) -> list[Object]:
        objects, owner = await self.read_children(live), Owner.of(live)
        return [each for each in objects.children(owner.part_of) if claim_on(each, ObjectKey.of(each), owner).owned]

    async def _revisions(self, live: Object) -> list[PastChange]:
        """The revisions in force since the custom resource was created, and what its rollout has done with them."""
        created = str(live["metadata"].get("creationTimestamp") or "")
        operator, notes = self.cluster.operator, self.notes
        if operator.problem:
            notes.append(f"revisions of the rules: {operator.problem}")
            return []
        try:
            index = (await self.cluster.revisions()).index
        except ApiError as error:
            notes.append(f"revisions of the rules: {error}")
            return []
        if not index:
            notes.append(f"revisions of the rules: none in {revisions_key(operator.namespace, operator.name)}")
        first = max((number for number, each in enumerate(index) if each.since <= created), default=0)
        record, member = await self._rollout(live), member_of(live["metadata"]["uid"])
        reached = len(index) if record is None else _reached(index, record, member)
        released = []
        if record is not None and member in record.pending:
            time = timestamp(record.pending[member])
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
        try:
            records = await self.cluster.rollouts()
        except ApiError as error:
            self.notes.append(f"rollouts: {error}")
            return None
        of_kind = [record for watch, record in records.items() if kind_of(watch) == Kind.of(live).versionless]
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
    if deleted := metadata.get("deletionTimestamp"):  # the end of the grace period
        requested = seconds_of(deleted) - (metadata.get("deletionGracePeriodSeconds") or 0)
        yield PastChange(timestamp(requested), What.DELETION, key)


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
        event=replace(event, message=masks.text(event.message)) if (event := change.event) is not None else None,
    )
