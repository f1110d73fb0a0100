"""The three-way merge of the last applied fields, the live object and the desired state, by the shape that the API
declares.

Desired fields are set. Fields that were applied and are no longer desired are removed
(`field_removal`). All other fields belong to others and are left alone. Without a difference the
result *is* the live object, and without a change the field set *is* the recorded one.

Every function here walks the live value, the desired value, the recorded fields and the shape in parallel, with notes
where fields below the same path are ignored, owned or learned. It returns the merged value and its fields."""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from ruleop.kubernetes.merge.conflicts import conflicting_field, has_same_unique_value, positions_by_value
from ruleop.kubernetes.merge.equality import canonical, fingerprint, same
from ruleop.kubernetes.merge.fields import (
    NO_MEMBERS,
    Fields,
    FieldSet,
    ItemKey,
    KeyedFields,
    Leaf,
    MapFields,
    SetFields,
)
from ruleop.kubernetes.merge.ignored import Ignored, ignored_at, with_live_places
from ruleop.kubernetes.merge.lists import (
    MergeError,
    desired_items,
    desired_members,
    in_apply_order,
    item_keys,
    item_path,
    member_key,
)
from ruleop.kubernetes.merge.removals import REMOVED, without_fields, without_item
from ruleop.kubernetes.merge.server_changes import (
    DOUBTED,
    Answers,
    Learned,
    is_in_sync,
    is_omitted_default,
    is_stored_as,
    order_of,
    with_derived,
    without_nulls,
)
from ruleop.kubernetes.quantity import quantity_equal
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.merge.path import Path


# -- edited keys -----------------------------------------------------------------------------------------------------
#
# List items whose key was changed by hand: a Service's port 5432 that `kubectl patch` changed to 6000.
#
# By its keys alone such an item belongs to someone else, and the desired item is missing. But two ports of a Service
# cannot have the same name, so the API server would reject the desired item beside the edited one on every pass. If a
# recorded item is missing, and an item that is neither desired nor recorded has the same value in a unique field, that
# item is the recorded one, edited. Its keys are restored and it is merged like any other item, so that fields set by
# the server and others (a node port) are kept.
#
# This needs a record: an item that existed before ruleop applied the list does not belong to ruleop because it has the
# same name.


def edited_items(
    others: Mapping[int, Object], missing: Mapping[ItemKey, Object], lost: Collection[ItemKey], shape: Shape
) -> Iterator[tuple[int, ItemKey, ItemKey]]:
    """The edited items: the position of each in the live list, its desired key, and its recorded key. The two keys
    differ only if the rule has changed the key since.

    `others` are the candidates by position: live items that are neither desired nor recorded. `missing` are the desired
    items that are not live, and `lost` the keys of recorded items that are not live, whether still desired or not.
    """
    recorded = {key: key for key in lost if key in missing}
    removed = (key for key in lost if key not in missing)
    was = recorded | dict(zip((key for key in missing if key not in recorded), removed, strict=False))
    for key, position in _match_items(dict(others), {key: missing[key] for key in was}, shape):
        yield position, key, was[key]


def _match_items(
    left: dict[int, Object], missing: dict[ItemKey, Object], shape: Shape
) -> Iterator[tuple[ItemKey, int]]:
    """Pairs each missing item with the one live item that has the same value in a unique field, and removes both from
    the arguments."""
    for unique in shape.unique:
        by_value = positions_by_value(left.items(), unique)
        for key, item in list(missing.items()):
            value = item.get(unique.field)
            found = [
                position
                for position in (by_value.get(canonical(value), ()) if value else ())
                if position in left and has_same_unique_value(item, left[position], unique, shape)
            ]
            if len(found) == 1:
                yield key, found[0]
                del left[found[0]], missing[key]
    if len(left) == 1 and missing:  # with several items without a value, the match would be a guess
        (position, other), (key, item) = next(iter(left.items())), next(iter(missing.items()))
        if conflicting_field(item, other, shape) is not None:
            yield key, position


def with_keys_of(item: Object, desired: Object, shape: Shape) -> Object:
    """The item with the keys of the desired one. A key that the desired item leaves out gets its default."""
    keys = {
        name: desired.get(name) if desired.get(name) is not None else shape.key_defaults.get(name)
        for name in shape.keys
    }
    return {**item, **{name: value for name, value in keys.items() if value is not None}}


# -- creation --------------------------------------------------------------------------------------------------------
#
# The fields of an object, or of a part of one, that does not exist yet. All containers are marked as created by ruleop.


def create_fields(desired: Object, shape: Shape, *, ignore: Sequence[Path] = ()) -> FieldSet:
    """The fields that ruleop applies by creating `desired`. Ignored fields are created as well, but not recorded as
    applied."""
    members = _member_fields(desired, shape, ignored_at(ignore))
    return FieldSet(MapFields(members, created=False))  # the object itself is created and deleted, never merged away


def fields_of_new(value: JSON, shape: Shape, ignored: Ignored | None) -> Fields:
    """The fields of one value that is added."""
    if type(value) is dict:
        return Leaf.MAP if shape.atomic else MapFields(_member_fields(value, shape, ignored), created=True)
    if type(value) is not list:
        return Leaf.SCALAR
    if shape.list_type == "atomic":
        return Leaf.LIST
    if shape.list_type == "set":
        return SetFields(frozenset(map(fingerprint, desired_members(value).values())), created=True)
    return KeyedFields(shape.keys, _item_fields(value, shape, ignored), created=True)


def _member_fields(value: Object, shape: Shape, ignored: Ignored | None) -> dict[str, Fields]:
    members: dict[str, Fields] = {}
    for name, member in value.items():
        inner = ignored.names.get(name) if ignored else None
        if member is None or (inner and inner.whole):
            continue
        try:
            members[name] = fields_of_new(member, shape.fields.get(name) or shape.values or UNKNOWN, inner)
        except MergeError as error:
            raise error.within(name) from None
    return members


def _item_fields(items: list[JSON], shape: Shape, ignored: Ignored | None) -> dict[tuple[JSON, ...], Fields]:
    found: dict[tuple[JSON, ...], Fields] = {}
    for key, item in desired_items(items, shape).items():
        inner = ignored.item(item, shape) if ignored else None
        if inner and inner.whole:
            continue
        try:
            found[key] = fields_of_new(item, shape.items or UNKNOWN, inner)
        except MergeError as error:
            raise error.within(item_path(key, shape)) from None
    return found


# -- three way -------------------------------------------------------------------------------------------------------


_NO_ITEMS: Mapping[ItemKey, Fields] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge. `object` is the live object itself if nothing changes; `fields` are to be recorded as
    applied."""

    object: Object
    fields: FieldSet


@dataclass(slots=True, eq=False)
class _Notes:
    """Notes on one path of the object beside its values and its shape. Most paths have no notes."""

    ignored: Ignored | None
    answers: Answers | None
    owned: Ignored | None  # the tree of `apply.own`, in which `whole` marks a list

    def member(self, name: str) -> _Notes | None:
        return _make_notes(
            self.ignored.names.get(name) if self.ignored else None,
            self.answers.within.get(name) if self.answers else None,
            self.owned.names.get(name) if self.owned else None,
        )

    def item(self, item: JSON, key: ItemKey, shape: Shape) -> _Notes | None:
        return _make_notes(
            self.ignored.item(item, shape) if self.ignored else None,
            self.answers.within.get(key) if self.answers else None,
            self.owned.item(item, shape) if self.owned else None,
        )

    @property
    def is_ignored(self) -> bool:
        return self.ignored is not None and self.ignored.whole

    @property
    def is_owned(self) -> bool:
        return self.owned is not None and self.owned.whole


_Outcome: TypeAlias = tuple[Any, Fields]


def three_way(
    live: Object | None,
    desired: Object,
    applied: FieldSet | None,
    shape: Shape,
    *,
    ignore: Sequence[Path] = (),
    own: Sequence[Path] = (),
    learned: Learned = Learned.NOTHING,
) -> Merged:
    """The merged object, and the fields of it that ruleop applies. Lists at the paths of `own` keep no items of others.

    `live` is None if the object does not exist. `applied` is None if there is no readable record; then nothing is
    removed. Raises MergeError if a list in `desired` contradicts its declaration in the API.
    """
    if live is None:
        return Merged(without_nulls(desired), create_fields(desired, shape, ignore=ignore))
    notes = None
    if ignore or own or learned.answers is not None:
        notes = _make_notes(ignored_at(ignore), learned.answers, ignored_at(own))
    if notes is None and applied is not None and is_in_sync(live, desired, applied.root, shape):
        return Merged(live, applied)
    before = applied.root if applied is not None else NO_MEMBERS
    try:
        merged, fields = _merge_map(live, desired, before, shape, notes)
    finally:
        DOUBTED.clear()
    if merged is not live:
        merged = with_derived(live, merged, desired, shape, notes.ignored if notes is not None else None)
    return Merged(merged, applied if applied is not None and fields is before else FieldSet(fields))


def _make_notes(ignored: Ignored | None, answers: Answers | None, owned: Ignored | None) -> _Notes | None:
    return None if ignored is None and answers is None and owned is None else _Notes(ignored, answers, owned)


def _is_known_answer(desired: JSON, live: JSON, notes: _Notes | None) -> bool:
    """Whether `live` is the server's learned answer to `desired`."""
    return notes is not None and notes.answers is not None and notes.answers.is_answer(desired, live)


def _merge_map(
    live: Object, desired: Object, applied: MapFields, shape: Shape, notes: _Notes | None, *, keep: tuple[str, ...] = ()
) -> tuple[Object, MapFields]:
    """Merges a granular map. `keep` names the members that identify a list item; they are never removed."""
    recorded, declared, values = applied.members, shape.fields, shape.values or UNKNOWN
    now: dict[str, Fields] = {}
    changes: dict[str, JSON] = {}
    as_recorded = True
    for name, value in desired.items():
        before, was = live.get(name), recorded.get(name)
        inner = notes.member(name) if notes is not None else None
        if value is None or (inner is not None and inner.is_ignored):
            continue
        if before is None and is_omitted_default(value, name, shape):
            now[name] = was if was is not None else fields_of_new(value, declared.get(name) or values, None)
            as_recorded = as_recorded and was is not None
            continue
        try:
            after, now[name] = _merge_value(before, value, was, declared.get(name) or values, inner)
        except MergeError as error:
            raise error.within(name) from None
        if after is not before:
            changes[name] = after
        if now[name] is not was:
            as_recorded = False
    if not as_recorded or len(now) != len(recorded):
        as_recorded = False
        changes |= _removed_fields(live, applied, now, shape, notes, keep)
    if notes is not None and notes.owned is not None:
        changes |= _emptied_lists(live, now, shape, notes)
    if changes:
        if shape.retain_keys:
            changes |= _cleared_members(live, now, notes, keep)
        live = {name: value for name, value in {**live, **changes}.items() if value is not REMOVED}
    return live, applied if as_recorded else MapFields(now, applied.created)


def _removed_fields(
    live: Object,
    applied: MapFields,
    now: Mapping[str, Fields],
    shape: Shape,
    notes: _Notes | None,
    keep: tuple[str, ...],
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


def _emptied_lists(live: Object, now: Mapping[str, Fields], shape: Shape, notes: _Notes) -> dict[str, JSON]:
    """Owned lists that the desired state leaves out, with only their ignored items."""
    changes: dict[str, JSON] = {}
    for name in notes.owned.names if notes.owned else ():
        inner, listed = notes.member(name), live.get(name)
        if inner is not None and inner.is_owned and not inner.is_ignored and name not in now and type(listed) is list:
            of_list = shape.fields.get(name) or shape.values or UNKNOWN
            left = [item for item in listed if _is_ignored(item, of_list, inner)]
            if len(left) < len(listed):
                changes[name] = left or REMOVED
    return changes


def _cleared_members(
    live: Object, now: Mapping[str, Fields], notes: _Notes | None, keep: tuple[str, ...]
) -> dict[str, JSON]:
    """The members of a union that are not desired, to be cleared because a desired member changes.

    A volume's new source cannot be combined with the old one, nor `Recreate` with the `rollingUpdate` that the server
    filled in. While no desired member changes they are kept: the server would fill in a cleared default again, on every
    pass.
    """
    ignored = notes.ignored.names if notes is not None and notes.ignored is not None else ()
    return {name: REMOVED for name in live if name not in now and name not in keep and name not in ignored}


def _merge_value(live: JSON, desired: JSON, was: Fields | None, shape: Shape, notes: _Notes | None) -> _Outcome:
    """Merges one member or item by the type of the desired value. A live value of another type is replaced."""
    kind = type(desired)
    if notes is None and was is not None and id(desired) not in DOUBTED and is_in_sync(live, desired, was, shape):
        return live, was
    if kind is dict:
        if shape.atomic:
            return _merge_atomic(live, desired, shape, notes), Leaf.MAP
        if type(live) is dict:
            return _merge_map(live, desired, was if type(was) is MapFields else NO_MEMBERS, shape, notes)
    elif kind is list:
        if shape.list_type == "atomic":
            return _merge_atomic(live, desired, shape, notes), Leaf.LIST
        if type(live) is list:
            if shape.list_type == "set":
                return _merge_set(live, desired, was, notes)
            return _merge_keyed_list(live, desired, was, shape, notes)
    else:
        is_kept = (
            same(live, desired)
            or (shape.format == "quantity" and quantity_equal(live, desired))
            or _is_known_answer(desired, live, notes)
        )
        return live if is_kept else desired, Leaf.SCALAR
    fields = fields_of_new(desired, shape, notes.ignored if notes is not None else None)
    fresh = without_nulls(desired)
    if _is_known_answer(fresh, live, notes) or is_stored_as(live, fresh, shape):
        # A map that existed before ruleop applied it, and that the server dropped when it became empty, was not created
        # by ruleop.
        if not isinstance(fields, Leaf) and type(was) is type(fields):
            fields = replace(fields, created=was.created)
        return live, fields
    return fresh, fields


def _merge_atomic(live: JSON, desired: JSON, shape: Shape, notes: _Notes | None) -> JSON:
    """Merges an atomic list or map, which is kept or replaced as a whole."""
    if is_stored_as(live, desired, shape):
        return live
    desired = without_nulls(desired)
    if notes is not None and notes.ignored is not None:
        desired = with_live_places(desired, live, notes.ignored, shape)
        if is_stored_as(live, desired, shape):
            return live
    return live if _is_known_answer(desired, live, notes) else desired


def _merge_keyed_list(
    live: list[JSON], desired: list[JSON], was: Fields | None, shape: Shape, notes: _Notes | None
) -> _Outcome:
    """Merges a list by the keys of its items. Live items with the same key are tolerated: each gets the desired
    fields."""
    applied = was if isinstance(was, KeyedFields) and was.keys == shape.keys else None
    recorded = applied.items if applied is not None else _NO_ITEMS
    desired_by_key = _not_ignored(desired_items(desired, shape), shape, notes)
    keys, items = item_keys(live, shape), live
    if shape.unique and recorded:
        keys, items, recorded = _restore_edited_keys(live, keys, desired_by_key, recorded, shape, notes)
    now: dict[ItemKey, Fields] = {}
    merged: dict[ItemKey, JSON] = {}
    kept: list[tuple[ItemKey | None, JSON]] = []
    owned = notes is not None and notes.is_owned
    for key, item in zip(keys, items, strict=True):
        if key is not None and key in desired_by_key and not (owned and key in merged):
            after, fields = _merge_item(item, desired_by_key[key], recorded.get(key), key, shape, notes)
            kept.append((key if key not in merged else None, after))
            merged.setdefault(key, after)
            now.setdefault(key, fields)
        elif owned and not _is_ignored(item, shape, notes):
            continue
        elif key is not None and key in recorded:
            ignored = notes.ignored.item(item, shape) if notes is not None and notes.ignored is not None else None
            left = item if ignored is not None and ignored.whole else without_item(item, recorded[key], shape, ignored)
            if left is not REMOVED:
                kept.append((None, left))
        else:
            kept.append((None, item))
    for key, item in desired_by_key.items():
        if key not in now:
            after, now[key] = _merge_item(None, item, recorded.get(key), key, shape, notes)
            if after is not None:  # None: the server is known to drop the item
                merged[key] = after
    order = {key: merged[key] for key in desired_by_key if key in merged}
    placed = [key for key, _ in kept if key is not None]
    if placed == list(order) or (
        len(placed) == len(order) and _is_known_answer(order_of(desired_by_key), order_of(keys), notes)
    ):
        result = [item for _, item in kept]
    else:
        result = in_apply_order(kept, order)
    if (
        applied is None
        or len(now) != len(applied.items)
        or any(fields is not applied.items.get(key) for key, fields in now.items())
    ):
        applied = KeyedFields(shape.keys, now, _was_created(was))
    return live if _same_items(live, result) else result, applied


def _restore_edited_keys(
    live: list[JSON],
    keys: list[ItemKey | None],
    desired_by_key: dict[ItemKey, JSON],
    recorded: Mapping[ItemKey, Fields],
    shape: Shape,
    notes: _Notes | None,
) -> tuple[list[ItemKey | None], list[JSON], Mapping[ItemKey, Fields]]:
    """The keys, items and recorded fields of a live list in which edited keys are restored."""
    present = set(keys)
    missing = {
        key: item
        for key, item in desired_by_key.items()
        if key not in present and not _is_dropped(item, key, shape, notes)
    }
    if not missing:
        return keys, live, recorded
    others = {
        position: item
        for position, (key, item) in enumerate(zip(keys, live, strict=True))
        if type(item) is dict
        and key not in desired_by_key
        and key not in recorded
        and not _is_ignored(item, shape, notes)
    }
    lost = [key for key in recorded if key in missing or (key not in desired_by_key and key not in present)]
    keys, items, found = list(keys), list(live), dict(recorded)
    for position, key, was in edited_items(others, missing, lost, shape):
        keys[position], items[position] = key, with_keys_of(items[position], missing[key], shape)
        found[key] = recorded[was]
    return keys, items, found


def _is_dropped(item: JSON, key: ItemKey, shape: Shape, notes: _Notes | None) -> bool:
    """Whether the server is known to drop this item, or to change its key."""
    return (
        notes is not None
        and notes.answers is not None
        and _is_known_answer(without_nulls(item), None, notes.item(item, key, shape))
    )


def _not_ignored(items: dict[ItemKey, JSON], shape: Shape, notes: _Notes | None) -> dict[ItemKey, JSON]:
    """The desired items except those that are ignored as a whole."""
    if notes is None or notes.ignored is None or not notes.ignored.items:
        return items
    return {key: item for key, item in items.items() if not _is_ignored(item, shape, notes)}


def _is_ignored(item: JSON, shape: Shape, notes: _Notes | None) -> bool:
    """Whether an item is ignored as a whole."""
    found = notes.ignored.item(item, shape) if notes is not None and notes.ignored is not None else None
    return found is not None and found.whole


def _merge_item(
    live: JSON, desired: JSON, was: Fields | None, key: ItemKey, shape: Shape, notes: _Notes | None
) -> _Outcome:
    inner = notes.item(desired, key, shape) if notes is not None else None
    items = shape.items or UNKNOWN
    try:
        if type(live) is dict and not items.atomic:
            if inner is None and was is not None and id(desired) not in DOUBTED:  # noqa: SIM102 - one line is too long
                if is_in_sync(live, desired, was, items):
                    return live, was
            return _merge_map(
                live, desired, was if type(was) is MapFields else NO_MEMBERS, items, inner, keep=shape.keys
            )
        return _merge_value(live, desired, was, items, inner)
    except MergeError as error:
        raise error.within(item_path(key, shape)) from None


def _merge_set(live: list[JSON], desired: list[JSON], was: Fields | None, notes: _Notes | None) -> _Outcome:
    """Merges a set: the union of the live and the desired members, without those that were applied and are no longer
    desired. An owned set has the desired members only."""
    desired_by_key = desired_members(desired)
    fields = SetFields(frozenset(map(fingerprint, desired_by_key.values())), _was_created(was))
    removed = was.fingerprints - fields.fingerprints if isinstance(was, SetFields) else frozenset()
    seen: set[JSON] = set()
    kept: list[tuple[JSON, JSON]] = []
    owned = notes is not None and notes.is_owned
    for item in live:
        key = member_key(item)
        if key in desired_by_key and key not in seen:
            seen.add(key)
            kept.append((key, item))
        elif not owned and (key in desired_by_key or not removed or fingerprint(item) not in removed):
            kept.append((None, item))
    order = [key for key, _ in kept if key is not None]
    result = [item for _, item in kept] if order == list(desired_by_key) else in_apply_order(kept, desired_by_key)
    if _same_items(live, result) or _is_known_answer(desired, live, notes):
        result = live
    return result, was if was == fields and was is not None else fields


def _was_created(was: Fields | None) -> bool:
    """Whether ruleop created the list. The mark is kept when the list type changes, but the items are not."""
    return isinstance(was, KeyedFields | SetFields) and was.created


def _same_items(a: list[JSON], b: list[JSON]) -> bool:
    return len(a) == len(b) and all(map(is_, a, b))
