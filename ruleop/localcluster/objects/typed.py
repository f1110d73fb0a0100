"""Objects together with their shape: whether they fit it, which fields they have, how two of them differ, how they
merge.

A port of structured-merge-diff, by which the API server tracks fields. Scalars, atomic maps and atomic lists are fields
without fields below them; so is an empty map or list. Where nothing is declared, maps are granular and lists atomic.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.completion import ALWAYS_WRITTEN
from ruleop.kubernetes.merge import in_apply_order, same
from ruleop.localcluster.objects.decoding import type_name
from ruleop.localcluster.objects.fieldsets import (
    EMPTY,
    LEAF,
    SELF,
    FieldSet,
    InvalidFieldsError,
    element_text,
    item_element,
)
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema import Shape

_MISSING: Final = object()
_ADDED, _REMOVED, _MODIFIED = 1, 2, 4
_SCALARS: Final = frozenset({str, int, bool, float})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two objects. No field is in two of the sets."""

    added: FieldSet
    removed: FieldSet
    modified: FieldSet


def field_set(obj: Object, shape: Shape) -> FieldSet:
    """The fields that an applied object claims: its leaves and list items, and names in open maps."""
    return _fields(obj, shape, every=False) or EMPTY


def compare(old: Object, new: Object, shape: Shape) -> Comparison:
    """The changed fields. A map or list that appears or disappears counts as well as the fields below it."""
    added: FieldSet = {}
    removed: FieldSet = {}
    modified: FieldSet = {}
    if old is not new:
        _compare(old, new, shape, (added, removed, modified))
    return Comparison(added, removed, modified)


def merge(live: JSON, config: JSON, shape: Shape | None) -> JSON:
    """The live value with what is configured. Nothing is removed. Parts that do not change are the live ones, which a
    comparison then skips."""
    if live is config:
        return live
    kind = type(config)
    if kind is dict:
        if type(live) is not dict or not live or _is_atomic_map(shape):
            return live if same(live, config) else config
        return _merge_maps(live, config, shape)
    if kind is list and shape is not None and shape.list_type != "atomic" and type(live) is list and live:
        return _merge_items(live, config, shape) if config else live
    if config is None and not _is_leaf(live, shape):
        return live
    return live if same(live, config) else config


def _merge_maps(live: dict[str, JSON], config: dict[str, JSON], shape: Shape | None) -> dict[str, JSON]:
    declared, others = (shape.fields, shape.values) if shape is not None else ({}, None)
    merged = live
    for name, value in config.items():
        before = live.get(name, _MISSING)
        kind = type(value)
        if before is _MISSING:
            after = value
        elif kind is type(before) and kind in _SCALARS and value == before:
            continue
        else:
            after = merge(before, value, declared.get(name, others))
        if after is not before:
            if merged is live:
                merged = dict(live)
            merged[name] = after
    return merged


def remove(value: JSON, fields: FieldSet, shape: Shape | None) -> JSON:
    """The value without the members of a set. A map or list that loses its last field is null."""
    if type(value) is dict:
        if not value or _is_atomic_map(shape):
            return None
        return _remove_from_map(value, fields, shape) or None
    if type(value) is not list:
        return value
    if not value or shape is None or shape.list_type == "atomic":
        return None
    kept = []
    for item in value:
        node = fields.get(item_element(item, shape))
        if node is None:
            kept.append(item)
        elif node and SELF not in node:
            kept.append(remove(item, node, shape.items))
    return kept or None


@lru_cache(maxsize=256)
def zero_of(shape: Shape) -> Object:
    """The fields that an object of a built-in kind has even when it is empty, because their Go types cannot be absent.
    A custom resource has none. The shape is that of `ruleop.kubernetes.builtin.builtin_types`."""
    return _zero(shape) if "metadata" in shape.defaults else {}


def _zero(shape: Shape) -> dict[str, JSON]:
    found: dict[str, JSON] = dict(ALWAYS_WRITTEN.get(shape.name, EMPTY))
    for name, inner in shape.fields.items():
        required = name in shape.required
        if inner.type == "object" and inner.values is None and (required or shape.defaults.get(name) == {}):
            # Some are pointers, and null instead of empty; their maps are atomic, so that this is the same.
            found[name] = _zero(inner)
        elif inner.type == "list" and required:
            found[name] = None
    return found


def _fields(value: JSON, shape: Shape | None, *, every: bool) -> FieldSet | None:
    """The members at and below a value, as the node of its own field: None for no member, `{}` for itself alone. With
    `every`, maps and lists are members too."""
    kind = type(value)
    if kind is dict:
        return _map_fields(value, shape, every=every)
    if kind is list and shape is not None and shape.list_type != "atomic":
        return _list_fields(value, shape, every=every)
    return LEAF


def _map_fields(value: dict[str, JSON], shape: Shape | None, *, every: bool) -> FieldSet | None:
    if not value or _is_atomic_map(shape):
        return LEAF
    declared, others = (shape.fields, shape.values) if shape is not None else ({}, None)
    found: FieldSet = {SELF: LEAF} if every else {}
    for name, member in value.items():
        if type(member) in _SCALARS:
            found["f:" + name] = LEAF
            continue
        inner = declared.get(name)
        node = _fields(member, others if inner is None else inner, every=every)
        if node is None:
            if inner is None:
                found["f:" + name] = LEAF
        elif inner is None and node and SELF not in node:
            found["f:" + name] = {SELF: LEAF, **node}
        else:
            found["f:" + name] = node
    return found or None


def _list_fields(value: list[JSON], shape: Shape, *, every: bool) -> FieldSet | None:
    if not value:
        return LEAF if every else None
    found: FieldSet = {SELF: LEAF} if every else {}
    elements = [item_element(item, shape) for item in value]
    repeated = _repeated(elements)
    for element, item in zip(elements, value, strict=True):
        node = LEAF if element in repeated else _fields(item, shape.items, every=every)
        found[element] = {SELF: LEAF, **node} if node and SELF not in node else node or LEAF
    return found


def _repeated(elements: Sequence[str]) -> frozenset[str]:
    if len(set(elements)) == len(elements):
        return frozenset()
    return frozenset(element for element, count in Counter(elements).items() if count > 1)


_Changes = tuple[FieldSet, FieldSet, FieldSet]
"""The fields added, removed and modified below a field, while they are collected."""


def _compare(old: JSON, new: JSON, shape: Shape | None, into: _Changes) -> int:
    """Collects the differences below two values, and returns how the field itself differs."""
    kind = type(new)
    if kind is type(old):
        if kind is dict:
            if (not old and not new) or _is_atomic_map(shape):
                return 0 if same(old, new) else _MODIFIED
            _compare_maps(old, new, shape, into)
            return 0
        if kind is list and shape is not None and shape.list_type != "atomic" and (old or new):
            _compare_lists(old, new, shape, into)
            return 0
        return 0 if same(old, new) else _MODIFIED
    if {kind, type(old)} == {int, float}:
        return 0 if old == new else _MODIFIED
    old_leaf, new_leaf = _is_leaf(old, shape), _is_leaf(new, shape)
    if not new_leaf:
        _put_below(into[0], _fields(new, shape, every=True))
    if not old_leaf:
        _put_below(into[1], _fields(old, shape, every=True))
    # Null takes the form of the other value.
    if (old is None and not new_leaf) or (new is None and not old_leaf):
        return 0
    return _MODIFIED if old_leaf or new_leaf else 0


def _compare_maps(old: dict[str, JSON], new: dict[str, JSON], shape: Shape | None, into: _Changes) -> None:
    declared, others = (shape.fields, shape.values) if shape is not None else ({}, None)
    for name, value in new.items():
        before = old.get(name, _MISSING)
        if before is value:
            continue
        inner = declared.get(name, others)
        if before is _MISSING:
            into[0]["f:" + name] = _fields(value, inner, every=True)
        elif type(value) is str and type(before) is str:
            if value != before:
                into[2]["f:" + name] = LEAF
        else:
            _compare_at("f:" + name, before, value, inner, into)
    for name, value in old.items():
        if name not in new:
            into[1]["f:" + name] = _fields(value, declared.get(name, others), every=True)


def _compare_at(element: str, old: JSON, new: JSON, shape: Shape | None, into: _Changes) -> None:
    below: _Changes = ({}, {}, {})
    itself = _compare(old, new, shape, below)
    for number, changed in enumerate(below):
        member = itself & (1 << number)
        if changed:
            into[number][element] = {SELF: LEAF, **changed} if member else changed
        elif member:
            into[number][element] = LEAF


def _compare_lists(old: list[JSON], new: list[JSON], shape: Shape, into: _Changes) -> None:
    before, after = _items_by_element(old, shape), _items_by_element(new, shape)
    for element, items in after.items():
        earlier = before.get(element, [])
        if len(items) > 1:  # repeated items are one field
            if len(earlier) > 1:
                if not same(earlier, items):
                    into[2][element] = LEAF
                continue
            if earlier:
                into[1][element] = _fields(earlier[0], shape.items, every=True)
            into[0][element] = LEAF
        elif not earlier:
            into[0][element] = _fields(items[0], shape.items, every=True)
        elif len(earlier) > 1:
            into[0][element] = _fields(items[0], shape.items, every=True)
            into[1][element] = LEAF
        elif earlier[0] is not items[0]:
            _compare_at(element, earlier[0], items[0], shape.items, into)
    for element, items in before.items():
        if element not in after:
            into[1][element] = LEAF if len(items) > 1 else _fields(items[0], shape.items, every=True)


def _items_by_element(items: list[JSON], shape: Shape) -> dict[str, list[JSON]]:
    found: dict[str, list[JSON]] = {}
    for item in items:
        found.setdefault(item_element(item, shape), []).append(item)
    return found


def _put_below(target: FieldSet, node: FieldSet | None) -> None:
    target.update({element: inner for element, inner in (node or EMPTY).items() if element != SELF})


def _is_atomic_map(shape: Shape | None) -> bool:
    return shape is not None and shape.atomic


def _is_leaf(value: JSON, shape: Shape | None) -> bool:
    if type(value) is dict:
        return not value or _is_atomic_map(shape)
    return type(value) is not list or not value or shape is None or shape.list_type == "atomic"


def _merge_items(live: list[JSON], config: list[JSON], shape: Shape) -> list[JSON]:
    elements, others = ([item_element(item, shape) for item in items] for items in (live, config))
    repeated = _repeated(elements)
    if elements == others and not repeated:
        merged = [merge(item, other, shape.items) for item, other in zip(live, config, strict=True)]
    else:
        desired: dict[str, JSON] = dict(zip(others, config, strict=True))
        for element, item in zip(elements, live, strict=True):
            if element in desired and element not in repeated:
                desired[element] = merge(item, desired[element], shape.items)
        merged = in_apply_order(
            [(element if element in desired else None, item) for element, item in zip(elements, live, strict=True)],
            desired,
        )
    unchanged = len(merged) == len(live) and all(a is b for a, b in zip(merged, live, strict=True))
    return live if unchanged else merged


def _remove_from_map(value: dict[str, JSON], fields: FieldSet, shape: Shape | None) -> dict[str, JSON]:
    declared, others = (shape.fields, shape.values) if shape is not None else ({}, None)
    kept = {}
    for name, member in value.items():
        node = fields.get("f:" + name)
        if node is None:
            kept[name] = member
        elif node and SELF not in node:
            kept[name] = remove(member, node, declared.get(name, others))
    return kept


class NotTypedError(RuleopError):
    """An object does not fit a schema."""


def check_typed(obj: Object, shape: Shape) -> None:
    """Raises NotTypedError with all problems. Unknown fields and repeated items are some, which decoding drops."""
    problems: list[str] = []
    _check(obj, shape, "", problems)
    if problems:
        raise NotTypedError(problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems]))


def _check(value: JSON, shape: Shape, path: str, problems: list[str]) -> None:
    if value is None or shape.type == "any":
        return
    if shape.type == "scalar":
        if expected := _expected_scalar(value, shape):
            problems.append(f"{path}: expected {expected}, got {type_name(value)}")
    elif shape.type == "object":
        if type(value) is dict:
            _check_map(value, shape, path, problems)
        else:
            problems.append(f"{path}: expected map, got {type_name(value)}")
    elif type(value) is list:
        _check_list(value, shape, path, problems)
    else:
        problems.append(f"{path}: expected list, got {type_name(value)}")


def _check_map(value: dict[str, JSON], shape: Shape, path: str, problems: list[str]) -> None:
    declared, others = shape.fields, shape.values
    for name, member in value.items():
        inner = declared.get(name, others)
        if inner is None:
            if not shape.preserve_unknown:
                problems.append(f"{path}.{name}: field not declared in schema")
        elif member is not None and (type(member) is not str or inner.scalar != "string"):
            _check(member, inner, f"{path}.{name}", problems)


def _check_list(value: list[JSON], shape: Shape, path: str, problems: list[str]) -> None:
    items = shape.items
    if shape.list_type == "atomic":
        for index, item in enumerate(value):
            if items is not None:
                _check(item, items, f"{path}[{index}]", problems)
        return
    seen = set()
    for index, item in enumerate(value):
        try:
            element = item_element(item, shape)
        except InvalidFieldsError as error:
            problems.append(f"{path}: element {index}: {error}")
            return
        if element in seen:
            problems.append(f"{path}: duplicate entries for key {element_text(element)}")
        seen.add(element)
        if items is not None and (type(item) is not str or items.scalar != "string"):
            _check(item, items, path + element_text(element), problems)


def _expected_scalar(value: JSON, shape: Shape) -> str:
    """The type that a value should have; empty if it fits."""
    kind = type(value)
    match shape.scalar:
        case "integer" | "number" if kind is not int and kind is not float:
            return "numeric (int or float)"
        case "string" if kind is not str and shape.format in ("", "byte"):
            return "string"
        case "boolean" if kind is not bool:
            return "boolean"
    # An integer or a string is checked only when it is decoded.
    return "any scalar" if kind in (dict, list) and shape.format != "int-or-string" else ""
