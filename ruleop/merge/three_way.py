"""The merge itself: what we applied last, what is live, and what we want, by the API's own declaration of the kind's shape.

Fields we want are set. Fields we applied and no longer want are taken back (`ruleop.merge.giving_up`). Everything else belongs to others
and is left alone. Where nothing differs the answer *is* the live object, and where nothing changed the field set *is* the one recorded.

Every function here walks live, wanted, the recorded fields and the shape at once, with notes where something below the same point is
ignored or learned, and answers with the merged value and its fields.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from ruleop.merge.at_rest import at_rest
from ruleop.merge.creation import create_fields, fields_of_new
from ruleop.merge.derived import with_derived
from ruleop.merge.edited import edited_items, with_keys_of
from ruleop.merge.equality import fingerprint, same
from ruleop.merge.fields import NO_MEMBERS, Fields, FieldSet, ItemKey, KeyedFields, Leaf, MapFields, SetFields
from ruleop.merge.giving_up import GONE, without_fields, without_item
from ruleop.merge.ignored import Ignored, ignored_at, with_live_places
from ruleop.merge.learned import Answers, Learned, order_of
from ruleop.merge.lists import MergeError, arranged, item_keys, item_path, member_key, wanted_items, wanted_members
from ruleop.merge.normalise import without_nulls
from ruleop.merge.whole import left_out, stands_for
from ruleop.schema.quantity import quantity_equal
from ruleop.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ruleop.kinds import JSON, Object
    from ruleop.merge.path import Path

_NO_ITEMS: Mapping[ItemKey, Fields] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Merged:
    """`object` is the live object itself when there is nothing to write. `fields` is what to record as applied."""

    object: Object
    fields: FieldSet


@dataclass(slots=True, eq=False)
class _Notes:
    """What is known of a point of the object beside its values and its shape. Most points have none."""

    ignored: Ignored | None
    answers: Answers | None
    owned: Ignored | None  # of `apply.own`: the same tree, in which `whole` marks a list

    def member(self, name: str) -> _Notes | None:
        return _noted(
            self.ignored.names.get(name) if self.ignored else None,
            self.answers.within.get(name) if self.answers else None,
            self.owned.names.get(name) if self.owned else None,
        )

    def item(self, item: JSON, key: ItemKey, shape: Shape) -> _Notes | None:
        return _noted(
            self.ignored.item(item, shape) if self.ignored else None,
            self.answers.within.get(key) if self.answers else None,
            self.owned.item(item, shape) if self.owned else None,
        )

    @property
    def leave_alone(self) -> bool:
        return self.ignored is not None and self.ignored.whole

    @property
    def own(self) -> bool:
        return self.owned is not None and self.owned.whole


_Outcome: TypeAlias = tuple[Any, Fields]


def three_way(
    live: Object | None,
    wanted: Object,
    applied: FieldSet | None,
    shape: Shape,
    *,
    ignore: Sequence[Path] = (),
    own: Sequence[Path] = (),
    learned: Learned = Learned.NOTHING,
) -> Merged:
    """The object as it should stand, and the fields of it that are ours. In lists at the paths of `own` nothing is left to others.

    `live` is None when the object does not exist; `applied` is None when there is no readable record, and then nothing is removed.
    Raises `MergeError` when a list in `wanted` cannot be what the API declares it to be.
    """
    if live is None:
        return Merged(without_nulls(wanted), create_fields(wanted, shape, ignore=ignore))
    notes = _noted(ignored_at(ignore), learned.answers, ignored_at(own))
    if notes is None and applied is not None and at_rest(live, wanted, applied.root, shape):
        return Merged(live, applied)
    before = applied.root if applied is not None else NO_MEMBERS
    merged, fields = _map(live, wanted, before, shape, notes)
    if merged is not live:
        merged = with_derived(live, merged, wanted, shape, notes.ignored if notes is not None else None)
    return Merged(merged, applied if applied is not None and fields is before else FieldSet(fields))


def _noted(ignored: Ignored | None, answers: Answers | None, owned: Ignored | None) -> _Notes | None:
    return None if ignored is None and answers is None and owned is None else _Notes(ignored, answers, owned)


def _covered(wanted: JSON, live: JSON, notes: _Notes | None) -> bool:
    """Whether `live` is what the server made of `wanted` before."""
    return notes is not None and notes.answers is not None and notes.answers.cover(wanted, live)


def _map(
    live: Object, wanted: Object, applied: MapFields, shape: Shape, notes: _Notes | None, *, keep: tuple[str, ...] = ()
) -> tuple[Object, MapFields]:
    """A granular map. `keep` names the members that identify an item of a list; they are never taken back."""
    recorded, declared, values = applied.members, shape.fields, shape.values or UNKNOWN
    now: dict[str, Fields] = {}
    changes: dict[str, JSON] = {}
    as_recorded = True
    for name, value in wanted.items():
        before, was = live.get(name), recorded.get(name)
        inner = notes.member(name) if notes is not None else None
        if value is None or (inner is not None and inner.leave_alone):
            continue
        if before is None and left_out(value, name, shape):
            now[name] = was if was is not None else fields_of_new(value, declared.get(name) or values, None)
            as_recorded = as_recorded and was is not None
            continue
        try:
            after, now[name] = _value(before, value, was, declared.get(name) or values, inner)
        except MergeError as error:
            raise error.within(name) from None
        if after is not before:
            changes[name] = after
        if now[name] is not was:
            as_recorded = False
    if not as_recorded or len(now) != len(recorded):
        as_recorded = False
        changes |= _taken_back(live, applied, now, shape, notes, keep)
    if notes is not None and notes.owned is not None:
        changes |= _emptied(live, now, shape, notes)
    if changes:
        if shape.retain_keys:
            changes |= _excluded(live, now, notes, keep)
        live = {name: value for name, value in {**live, **changes}.items() if value is not GONE}
    return live, applied if as_recorded else MapFields(now, applied.created)


def _taken_back(
    live: Object, applied: MapFields, now: Mapping[str, Fields], shape: Shape, notes: _Notes | None, keep: tuple[str, ...]
) -> dict[str, JSON]:
    changes: dict[str, JSON] = {}
    for name, fields in applied.members.items():
        inner = notes.ignored.names.get(name) if notes is not None and notes.ignored is not None else None
        if name in now or name not in live or name in keep or (inner is not None and inner.whole):
            continue
        left = without_fields(live[name], fields, shape.fields.get(name) or shape.values or UNKNOWN, inner)
        if left is not live[name]:
            changes[name] = left
    return changes


def _emptied(live: Object, now: Mapping[str, Fields], shape: Shape, notes: _Notes) -> dict[str, JSON]:
    """The lists that are ours as a whole and that we leave out: only what is ignored stays in them."""
    changes: dict[str, JSON] = {}
    for name in notes.owned.names if notes.owned else ():
        inner, listed = notes.member(name), live.get(name)
        if inner is not None and inner.own and not inner.leave_alone and name not in now and type(listed) is list:
            of_list = shape.fields.get(name) or shape.values or UNKNOWN
            left = [item for item in listed if _is_ignored(item, of_list, inner)]
            if len(left) < len(listed):
                changes[name] = left or GONE
    return changes


def _excluded(live: Object, now: Mapping[str, Fields], notes: _Notes | None, keep: tuple[str, ...]) -> dict[str, JSON]:
    """The members of a union that are not ours, cleared because something of ours changed.

    A volume's new source does not stand beside the old one, nor `Recreate` beside the `rollingUpdate` that the server filled in. As long
    as nothing of ours changes they stay: clearing what the server fills in would be a fight without end.
    """
    spared = notes.ignored.names if notes is not None and notes.ignored is not None else ()
    return {name: GONE for name in live if name not in now and name not in keep and name not in spared}


def _value(live: JSON, wanted: JSON, was: Fields | None, shape: Shape, notes: _Notes | None) -> _Outcome:
    """One member or item, whatever it is. Its kind is that of the wanted value; a live value of another kind is replaced."""
    kind = type(wanted)
    if notes is None and was is not None and at_rest(live, wanted, was, shape):
        return live, was
    if kind is dict:
        if shape.atomic:
            return _whole(live, wanted, shape, notes), Leaf.MAP
        if type(live) is dict:
            return _map(live, wanted, was if type(was) is MapFields else NO_MEMBERS, shape, notes)
    elif kind is list:
        if shape.list_type == "atomic":
            return _whole(live, wanted, shape, notes), Leaf.LIST
        if type(live) is list:
            return (_set if shape.list_type == "set" else _keyed)(live, wanted, was, shape, notes)
    else:
        return _scalar(live, wanted, shape, notes), Leaf.SCALAR
    fields = fields_of_new(wanted, shape, notes.ignored if notes is not None else None)
    fresh = without_nulls(wanted)
    if _covered(fresh, live, notes) or stands_for(live, fresh, shape):
        # A map that was there before us, and that the server dropped when it became empty, has not become ours by that.
        if not isinstance(fields, Leaf) and type(was) is type(fields):
            fields = replace(fields, created=was.created)
        return live, fields
    return fresh, fields


def _scalar(live: JSON, wanted: JSON, shape: Shape, notes: _Notes | None) -> JSON:
    if same(live, wanted) or (shape.format == "quantity" and quantity_equal(live, wanted)) or _covered(wanted, live, notes):
        return live
    return wanted


def _whole(live: JSON, wanted: JSON, shape: Shape, notes: _Notes | None) -> JSON:
    """An atomic list or map: ours or not ours, as one value."""
    if stands_for(live, wanted, shape):
        return live
    wanted = without_nulls(wanted)
    if notes is not None and notes.ignored is not None:
        wanted = with_live_places(wanted, live, notes.ignored, shape)
        if stands_for(live, wanted, shape):
            return live
    return live if _covered(wanted, live, notes) else wanted


def _keyed(live: list[JSON], wanted: list[JSON], was: Fields | None, shape: Shape, notes: _Notes | None) -> _Outcome:
    """A list whose items are known by keys. A key that live holds twice is tolerated: every copy gets our fields, and stays."""
    applied = was if isinstance(was, KeyedFields) and was.keys == shape.keys else None
    recorded = applied.items if applied is not None else _NO_ITEMS
    ours = _not_ignored(wanted_items(wanted, shape), shape, notes)
    keys, items = item_keys(live, shape), live
    if shape.unique and recorded:
        keys, items, recorded = _put_right(live, keys, ours, recorded, shape, notes)
    now: dict[ItemKey, Fields] = {}
    merged: dict[ItemKey, JSON] = {}
    standing: list[tuple[ItemKey | None, JSON]] = []
    owned = notes is not None and notes.own
    for key, item in zip(keys, items, strict=True):
        if key is not None and key in ours and not (owned and key in merged):
            after, fields = _item(item, ours[key], recorded.get(key), key, shape, notes)
            standing.append((key if key not in merged else None, after))
            merged.setdefault(key, after)
            now.setdefault(key, fields)
        elif owned and not _is_ignored(item, shape, notes):
            continue
        elif key is not None and key in recorded:
            ignored = notes.ignored.item(item, shape) if notes is not None and notes.ignored is not None else None
            left = item if ignored is not None and ignored.whole else without_item(item, recorded[key], shape, ignored)
            if left is not GONE:
                standing.append((None, left))
        else:
            standing.append((None, item))
    for key, item in ours.items():
        if key not in now:
            after, now[key] = _item(None, item, recorded.get(key), key, shape, notes)
            if after is not None:  # None: the server is known to drop this item
                merged[key] = after
    order = {key: merged[key] for key in ours if key in merged}
    placed = [key for key, _ in standing if key is not None]
    if placed == list(order) or (len(placed) == len(order) and _covered(order_of(ours), order_of(keys), notes)):
        result = [item for _, item in standing]
    else:
        result = arranged(standing, order)
    if applied is None or len(now) != len(applied.items) or any(fields is not applied.items.get(key) for key, fields in now.items()):
        applied = KeyedFields(shape.keys, now, _created(was))
    return live if _same_items(live, result) else result, applied


def _put_right(
    live: list[JSON],
    keys: list[ItemKey | None],
    ours: dict[ItemKey, JSON],
    recorded: Mapping[ItemKey, Fields],
    shape: Shape,
    notes: _Notes | None,
) -> tuple[list[ItemKey | None], list[JSON], Mapping[ItemKey, Fields]]:
    """Keys, items and what is recorded of them; items whose key somebody edited have the desired key again."""
    present = set(keys)
    missing = {key: item for key, item in ours.items() if key not in present and not _dropped(item, key, shape, notes)}
    if not missing:
        return keys, live, recorded
    others = {
        position: item
        for position, (key, item) in enumerate(zip(keys, live, strict=True))
        if type(item) is dict and key not in ours and key not in recorded and not _is_ignored(item, shape, notes)
    }
    lost = [key for key in recorded if key in missing or (key not in ours and key not in present)]
    keys, items, found = list(keys), list(live), dict(recorded)
    for position, key, was in edited_items(others, missing, lost, shape):
        keys[position], items[position] = key, with_keys_of(items[position], missing[key], shape)
        found[key] = recorded[was]
    return keys, items, found


def _dropped(item: JSON, key: ItemKey, shape: Shape, notes: _Notes | None) -> bool:
    """Whether the server is known to leave out this item, or to write it under another key."""
    return notes is not None and notes.answers is not None and _covered(without_nulls(item), None, notes.item(item, key, shape))


def _not_ignored(items: dict[ItemKey, JSON], shape: Shape, notes: _Notes | None) -> dict[ItemKey, JSON]:
    """An item that is ignored as a whole is left to others, there or not."""
    if notes is None or notes.ignored is None or not notes.ignored.items:
        return items
    return {key: item for key, item in items.items() if not _is_ignored(item, shape, notes)}


def _is_ignored(item: JSON, shape: Shape, notes: _Notes | None) -> bool:
    """Whether an item is ignored as a whole."""
    found = notes.ignored.item(item, shape) if notes is not None and notes.ignored is not None else None
    return found is not None and found.whole


def _item(live: JSON, wanted: JSON, was: Fields | None, key: ItemKey, shape: Shape, notes: _Notes | None) -> _Outcome:
    inner = notes.item(wanted, key, shape) if notes is not None else None
    items = shape.items or UNKNOWN
    try:
        if type(live) is dict and not items.atomic:
            if inner is None and was is not None and at_rest(live, wanted, was, items):
                return live, was
            return _map(live, wanted, was if type(was) is MapFields else NO_MEMBERS, items, inner, keep=shape.keys)
        return _value(live, wanted, was, items, inner)
    except MergeError as error:
        raise error.within(item_path(key, shape)) from None


def _set(live: list[JSON], wanted: list[JSON], was: Fields | None, shape: Shape, notes: _Notes | None) -> _Outcome:  # noqa: ARG001
    """A list that is a set: the union of what is live and what we want, without what we gave up; of our own, just what we want."""
    ours = wanted_members(wanted)
    fields = SetFields(frozenset(map(fingerprint, ours.values())), _created(was))
    given_up = was.fingerprints - fields.fingerprints if isinstance(was, SetFields) else frozenset()
    seen: set[JSON] = set()
    standing: list[tuple[JSON, JSON]] = []
    owned = notes is not None and notes.own
    for item in live:
        key = member_key(item)
        if key in ours and key not in seen:
            seen.add(key)
            standing.append((key, item))
        elif not owned and (key in ours or not given_up or fingerprint(item) not in given_up):
            standing.append((None, item))
    order = [key for key, _ in standing if key is not None]
    result = [item for _, item in standing] if order == list(ours) else arranged(standing, ours)
    if _same_items(live, result) or _covered(wanted, live, notes):
        result = live
    return result, was if was == fields and was is not None else fields


def _created(was: Fields | None) -> bool:
    """The mark stays through a change of the list's type; what lies in the list is another matter."""
    return isinstance(was, KeyedFields | SetFields) and was.created


def _same_items(a: list[JSON], b: list[JSON]) -> bool:
    return len(a) == len(b) and all(map(is_, a, b))
