"""The set of fields of an object that ruleop applied, which the record on a child stores.

A field set has the structure of the object without its values. It contains names and list keys, which identify fields,
and members of sets as fingerprints, but nothing else. So the record of a Secret shows that ruleop applied
`data.password`, and no value.

Containers (maps and lists) are marked if ruleop created them, because only those may be removed as a whole. Each list
has its list type: if the API declares another type later, the record does not identify items any more.

The JSON form, with the same bytes for the same fields in every version:

    1 / "l" / "m"                        a scalar; a list or map that is replaced as a whole
    {"name": ...}                        a map that existed before ruleop applied it
    [{"name": ...}]                      a map that ruleop created
    ["k", created, [keys], [[values..., fields]...]]    a list of items with keys
    ["s", created, "fingerprint", ...]   a list that is a set
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from ruleop.kubernetes.kinds import JSON
from ruleop.kubernetes.merge.equality import canonical
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


class Leaf(Enum):
    """A field without nested fields."""

    SCALAR = 1
    LIST = "l"  # an atomic list
    MAP = "m"  # an atomic map


_LEAVES: Mapping[JSON, Leaf] = {leaf.value: leaf for leaf in Leaf}  # calling the enum is slow

ItemKey: TypeAlias = tuple[JSON, ...]
"""The values of an item's keys; see `ruleop.kubernetes.merge.lists.item_key`."""


@dataclass(frozen=True, slots=True)
class MapFields:
    members: Mapping[str, Fields]
    created: bool


@dataclass(frozen=True, slots=True)
class KeyedFields:
    keys: tuple[str, ...]
    items: Mapping[ItemKey, Fields]
    created: bool


@dataclass(frozen=True, slots=True)
class SetFields:
    fingerprints: frozenset[str]
    created: bool


Fields: TypeAlias = Leaf | MapFields | KeyedFields | SetFields

NO_MEMBERS = MapFields({}, created=False)


@dataclass(frozen=True, slots=True)
class FieldSet:
    """The fields of one object. Immutable; equal when they are the same fields with the same marks."""

    root: MapFields = NO_MEMBERS

    def to_json(self) -> JSON:
        return _to_json(self.root)

    @classmethod
    def from_json(cls, data: JSON) -> FieldSet:
        """Raises ValueError for anything that `to_json` does not write: a damaged record must not be used."""
        root = _from_json(data)
        if type(root) is not MapFields or root.created:
            raise ValueError("the fields of an object form a map")
        return cls(root)


def _to_json(fields: Fields) -> JSON:
    if isinstance(fields, Leaf):
        return fields.value
    if isinstance(fields, MapFields):
        members = {name: _to_json(fields.members[name]) for name in sorted(fields.members)}
        return [members] if fields.created else members
    if isinstance(fields, SetFields):
        return ["s", int(fields.created), *sorted(fields.fingerprints)]
    items = [[*_key_to_json(key), _to_json(item)] for key, item in fields.items.items()]
    return ["k", int(fields.created), list(fields.keys), sorted(items, key=canonical)]


def _key_to_json(key: ItemKey) -> list[JSON]:
    return [list(value) if type(value) is tuple else value for value in key]


def _from_json(data: JSON) -> Fields:
    kind = type(data)
    if kind is int or kind is str:
        leaf = _LEAVES.get(data)
        if leaf is not None:
            return leaf
    elif kind is dict:
        return MapFields(_members(data), created=False)
    elif kind is list:
        match data:
            case [dict() as members]:
                return MapFields(_members(members), created=True)
            case ["s", 0 | 1 as created, *fingerprints] if all(type(text) is str for text in fingerprints):
                return SetFields(frozenset(fingerprints), bool(created))
            case ["k", 0 | 1 as created, list() as keys, list() as items] if keys and all(
                type(name) is str for name in keys
            ):
                return KeyedFields(tuple(keys), dict(_item(item, len(keys)) for item in items), bool(created))
    raise ValueError("not a field set")


def _members(data: Mapping[str, JSON]) -> dict[str, Fields]:
    return {name: _from_json(member) for name, member in data.items()}


def _item(data: JSON, keys: int) -> tuple[ItemKey, Fields]:
    if type(data) is not list or len(data) != keys + 1:
        raise ValueError("not an item of a field set")
    return tuple(_key_from_json(value) for value in data[:-1]), _from_json(data[-1])


def _key_from_json(value: JSON) -> JSON:
    match value:
        case [str() as text]:
            return (text,)
        case str() | int() if type(value) is not bool:
            return value
    raise ValueError("not the key of an item")
