"""The changes that the API server makes to objects before it stores them, as far as a merge has to know: those of every
object, those that were seen of one, and fields that it derives from others."""

from __future__ import annotations

import base64
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias

import orjson

from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import JSON, Kind, Object
from ruleop.kubernetes.merge.equality import canonical, fingerprint, same
from ruleop.kubernetes.merge.fields import Fields, ItemKey, KeyedFields, Leaf, MapFields, SetFields
from ruleop.kubernetes.merge.lists import item_keys, items_by_key, member_key
from ruleop.kubernetes.merge.path import Path
from ruleop.kubernetes.quantity import quantity_equal
from ruleop.kubernetes.schema import ANYTHING, DERIVED, UNKNOWN, Derived, Shape
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.kubernetes.merge.ignored import Ignored


# -- normalise -------------------------------------------------------------------------------------------------------
#
# The changes that the API server makes to every object before storing it.
#
# Some are made beforehand, so that desired and live compare (`normalise_desired`). By others a live value may differ
# from the desired one (`is_stored_as`): the server fills in a default for a missing field, drops an empty field, and
# writes a quantity in another spelling. These are not differences. In a list or map that is replaced as a whole,
# anything else is one, because all of it is desired; elsewhere the merge compares only desired fields.
#
# Only changes that apply to a whole kind are here. Changes to single values are learned from the server's answers
# (`ruleop.kubernetes.merge.server_changes`).


_SECRET = Kind("", "v1", "Secret")
_CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole")


class UnwritableError(RuleopError):
    """A value that cannot be sent in a request."""


def normalise_desired(desired: Object, kind: Kind) -> Object:
    """`desired` as the server would store it: without nulls and without the `rules` of an aggregated ClusterRole, a
    Secret's `stringData` as `data`, whole numbers of a custom resource as integers. For a built-in kind it is `desired`
    itself if it is so already. Raises UnwritableError."""
    if b"null" in as_json(desired):
        desired = _drop_nulls(desired)
    if builtin_resource(kind.versionless) is None:  # in a built-in kind, the server may reject the float
        desired = with_integers(desired)
    if kind == _SECRET and "stringData" in desired:
        return encode_string_data(desired)
    if (
        kind == _CLUSTER_ROLE and "aggregationRule" in desired and "rules" in desired
    ):  # a controller of the server fills them in
        return {name: value for name, value in desired.items() if name != "rules"}
    return desired


def as_json(value: JSON) -> bytes:
    """Raises UnwritableError."""
    try:
        return orjson.dumps(value)
    except TypeError as error:  # half of a surrogate pair, or a live value that is nested too deep for orjson
        raise UnwritableError(f"cannot be written as JSON ({error})") from None


def normalise_ignored(path: Path, desired: Object, kind: Kind) -> tuple[Path, ...]:
    """The paths of `apply.ignore` after normalisation: `stringData.x` of a Secret becomes `data.x`, and `stringData`
    becomes the path of each name in it."""
    first, *rest = path.segments
    if kind != _SECRET or first != "stringData":
        return (path,)
    plain = desired.get("stringData")
    below = [rest] if rest else [[name] for name in plain] if type(plain) is dict else []
    return tuple(Path(("data", *segments), path.text) for segments in below)


def without_nulls(value: JSON) -> JSON:
    """The value without null members, at any depth. A null item of a list is a value, and is kept."""
    if b"null" not in canonical(value):  # fast; a string that contains the word only costs the walk
        return value
    return _drop_nulls(value)


def with_integers(value: JSON) -> JSON:
    """The value with floats without a fraction as integers, at any depth, in the range of the server's integers. Go
    writes the float 50 as `50`, which is read as an integer."""
    kind = type(value)
    if kind is dict:
        return {name: with_integers(member) for name, member in value.items()}
    if kind is list:
        return [with_integers(item) for item in value]
    return int(value) if kind is float and value.is_integer() and -(2**63) <= value < 2**63 else value


def _drop_nulls(value: JSON) -> JSON:
    if type(value) is dict:
        return {name: _drop_nulls(member) for name, member in value.items() if member is not None}
    return [_drop_nulls(item) for item in value] if type(value) is list else value


def encode_string_data(secret: Object) -> Object:
    """The Secret with `stringData` encoded into `data`, where it overrides existing keys. The server does the same and
    never returns `stringData`."""
    plain, data = secret["stringData"], secret.get("data", {})
    if type(plain) is not dict or type(data) is not dict or not all(type(text) is str for text in plain.values()):
        return secret  # the server's error message is better than a guess
    rest = {name: value for name, value in secret.items() if name != "stringData"}
    if plain:
        rest["data"] = {**data, **{name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}}
    return rest


def is_stored_as(live: JSON, desired: JSON, shape: Shape) -> bool:
    """Whether the server stores `desired` as `live` by the kind's schema alone. None means missing."""
    if same(live, desired):
        return True
    if type(live) is dict and type(desired) is dict:
        return all(_is_member_stored_as(live, desired, name, shape) for name in live.keys() | desired.keys())
    if type(live) is list and type(desired) is list:
        items = shape.items or UNKNOWN
        return len(live) == len(desired) and all(
            is_stored_as(one, other, items) for one, other in zip(live, desired, strict=True)
        )
    if live is None:
        return shape.drops_empty and not desired
    return shape.format == "quantity" and quantity_equal(live, desired)


def is_omitted_default(value: JSON, name: str, parent: Shape) -> bool:
    """Whether the value is the default of this property, which the server may leave out."""
    return name in parent.defaults and same(value, parent.defaults[name])


def _is_member_stored_as(live: Object, desired: Object, name: str, parent: Shape) -> bool:
    live_member, desired_member = live.get(name), desired.get(name)
    shape = parent.fields.get(name) or parent.values or UNKNOWN
    if desired_member is None:
        return is_stored_as(live_member, parent.defaults.get(name), shape)
    return is_stored_as(live_member, desired_member, shape) or (
        live_member is None and is_omitted_default(desired_member, name, parent)
    )


# -- in sync ---------------------------------------------------------------------------------------------------------
#
# A fast test for live objects that need no change, which is the result of nearly every merge.
#
# It walks the desired state, the live object and the record in parallel and stops at the first doubt: True is certain,
# False means that `three_way` has to compare in detail. The tests check that the two agree. The test takes a third of
# the time of a merge, and is the cost of a reconcile without changes.


_SCALAR, _LIST, _MAP = Leaf.SCALAR, Leaf.LIST, Leaf.MAP  # looking up a member of an enum is slow


DOUBTED: Final[set[int]] = set()
"""The ids of desired values in the current merge that are not in sync. A merge that is in doubt about an object asks
about each of its members, and would walk down to the same doubt from every level. It only saves time."""


def is_in_sync(live: JSON, desired: JSON, recorded: Fields | None, shape: Shape) -> bool:
    """Whether live has all desired values in the desired order, and the record has exactly their fields. Without regard
    to ignored fields and learned answers."""
    kind = type(desired)
    if kind is dict and type(recorded) is MapFields:
        members, declared, values = recorded.members, shape.fields, shape.values or UNKNOWN
        if type(live) is dict and not shape.atomic and len(members) == len(desired):
            for name, value in desired.items():
                before, fields, inner = live.get(name), members.get(name), type(value)
                if fields is _SCALAR:
                    is_same = value == before and inner is type(before) and inner is not dict and inner is not list
                    if not is_same and (before is not None or not is_omitted_default(value, name, shape)):
                        break
                elif fields is None or not is_in_sync(before, value, fields, declared.get(name) or values):
                    break
            else:
                return True
    elif kind is list and type(recorded) is KeyedFields:
        if type(live) is list and shape.list_type == "map" and _are_items_in_sync(live, desired, recorded, shape):
            return True
    elif kind is list and type(recorded) is SetFields:
        return shape.list_type == "set" and same(live, desired) and _has_fingerprints_of(recorded.fingerprints, desired)
    elif kind is list:
        return recorded is _LIST and shape.list_type == "atomic" and is_stored_as(live, desired, shape)
    elif kind is dict:
        return recorded is _MAP and shape.atomic and is_stored_as(live, desired, shape)
    else:
        return recorded is _SCALAR and same(live, desired)
    DOUBTED.add(id(desired))
    return False


def holds(live: JSON, desired: JSON, shape: Shape) -> bool:
    """Whether live has all desired values in the desired order and spelling, no matter who applied them."""
    kind = type(desired)
    if kind is dict and type(live) is dict and not shape.atomic:
        declared, values = shape.fields, shape.values or UNKNOWN
        for name, value in desired.items():
            before, kind = live.get(name), type(value)
            if kind is dict or kind is list:
                if not holds(before, value, declared.get(name) or values):
                    return False
            elif value is not None and (value != before or kind is not type(before)):
                return False
        return True
    if kind is list and type(live) is list and shape.list_type == "map":
        keys = item_keys(desired, shape)
        if len(live) != len(desired) or None in keys or len(set(keys)) != len(keys) or item_keys(live, shape) != keys:
            return False
        inner = shape.items or UNKNOWN
        return all(holds(before, item, inner) for before, item in zip(live, desired, strict=True))
    return same(live, desired)


def _has_fingerprints_of(fingerprints: frozenset[str], desired: list[JSON]) -> bool:
    """Whether the fingerprints are those of the members, and no member is repeated, which is an error."""
    return len(fingerprints) == len(desired) and fingerprints == frozenset(map(fingerprint, desired))


def _are_items_in_sync(live: list[JSON], desired: list[JSON], recorded: KeyedFields, shape: Shape) -> bool:
    items = recorded.items
    if not len(live) == len(desired) == len(items) or recorded.keys != shape.keys:
        return False
    keys, inner = item_keys(desired, shape), shape.items or UNKNOWN
    if len(set(keys)) != len(items) or (shape.key_defaults and item_keys(live, shape) != keys):
        return False
    for before, item, key in zip(live, desired, keys, strict=True):  # live items with all of their values have the keys
        if key is None or not is_in_sync(before, item, items.get(key), inner):
            return False
    return True


# -- learned ---------------------------------------------------------------------------------------------------------
#
# Changes of the API server to values that ruleop sends.
#
# `cpu: 1000m` is returned as `1`, an empty list is not returned at all, a webhook rewrites an image. Compared
# literally, the desired and the live value would always differ, and every reconcile would send the same write again. So
# the answer to each write is compared with the desired state, and where they differ, both values are stored. Later, the
# same desired value with the same live value is not a difference.
#
# This never hides a change. Both values are stored, as fingerprints, for one path of one object: another desired value,
# or another live value, is a difference again. They are kept in memory only; after a restart, each such object costs
# one write without effect.


_Path: TypeAlias = tuple[str | ItemKey, ...]
_Difference: TypeAlias = tuple[_Path, str, str]

MAX_DIFFERENCES = 256  # per object, to bound memory; a server that changes more than this has stored another object
_MISSING = "missing"


@dataclass(slots=True, eq=False)
class Answers:
    """The stored differences at one path and below it. Treated as frozen once built."""

    sent: str = ""
    answered: str = ""
    within: dict[str | ItemKey, Answers] = field(default_factory=dict)

    def is_answer(self, desired: JSON, live: JSON) -> bool:
        """Whether `live` is the server's answer to `desired`."""
        return bool(self.sent) and self.sent == fingerprint(desired) and self.answered == _fingerprint(live)


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The answers for one object. Immutable; starts as `Learned.NOTHING`."""

    answers: Answers | None = None

    NOTHING: ClassVar[Learned]

    def learn(self, sent: Object, answered: Object, shape: Shape) -> Learned:
        """The answers after a write: `sent` is the desired state, `answered` the object in the server's answer.

        Earlier answers are not kept: the new answer covers every desired field, and where the server now keeps a value
        unchanged, an old answer would hide a later change by someone else.
        """
        if holds(answered, sent, shape):
            return Learned.NOTHING
        root, count = Answers(), 0
        for path, sent_print, answered_print in _differences(sent, answered, shape, ()):
            node = root
            for step in path:
                node = node.within.setdefault(step, Answers())
            node.sent, node.answered = sent_print, answered_print
            count += 1
            if count == MAX_DIFFERENCES:
                break
        return Learned(root) if count else Learned.NOTHING

    def __len__(self) -> int:
        """The number of stored differences."""
        return _count(self.answers) if self.answers else 0


Learned.NOTHING = Learned()


def order_of(keys: Iterable[ItemKey | None]) -> JSON:
    """The order of a list's items as a JSON value. The items themselves are compared one by one."""
    return [list(key) for key in keys if key is not None]


def _count(answers: Answers) -> int:
    return bool(answers.sent) + sum(map(_count, answers.within.values()))


def _fingerprint(live: JSON) -> str:
    return _MISSING if live is None else fingerprint(live)


def _differences(sent: JSON, answered: JSON, shape: Shape, path: _Path) -> Iterator[_Difference]:
    """The deepest paths at which the answer differs from the sent value. Fields that the server added are not
    differences."""
    if type(sent) is dict and type(answered) is dict and not shape.atomic:
        for name, value in sent.items():
            if value is not None and not (name not in answered and is_omitted_default(value, name, shape)):
                inner = shape.fields.get(name) or shape.values or UNKNOWN
                yield from _differences(value, answered.get(name), inner, (*path, name))
    elif type(sent) is list and type(answered) is list and shape.list_type == "map":
        yield from _item_differences(sent, answered, shape, path)
    elif type(sent) is list and type(answered) is list and shape.list_type == "set":
        desired = [member_key(item) for item in sent]
        if [key for key in map(member_key, answered) if key in set(desired)] != desired:
            yield path, fingerprint(sent), fingerprint(answered)
    else:
        sent = without_nulls(sent)
        if not is_stored_as(answered, sent, shape):
            yield path, fingerprint(sent), _fingerprint(answered)


def _item_differences(sent: list[JSON], answered: list[JSON], shape: Shape, path: _Path) -> Iterator[_Difference]:
    sent_items, answered_items = items_by_key(sent, shape), items_by_key(answered, shape)
    order = item_keys(answered, shape)
    for key, item in sent_items.items():
        yield from _differences(item, answered_items.get(key), shape.items or UNKNOWN, (*path, key))
    if [key for key in order if key in sent_items] != [key for key in sent_items if key in answered_items]:
        yield path, fingerprint(order_of(sent_items)), fingerprint(order_of(order))


# -- derived updates -------------------------------------------------------------------------------------------------
#
# Updates fields that the server derived from other fields when their source changes.
#
# A derived field (`ruleop.kubernetes.schema.shape`) stays when its source changes or is removed, and may even
# restore it. So when a merge changes the source, it also sets the derived field to the value that the server would
# derive now, or removes it. The field is left alone if the rule sets or ignores it, or if its value is not derived from
# the old source: then someone else has set it.
#
# Only changed parts are visited, so a merge without a difference costs nothing here.


_NO_MEMBERS: Mapping[str, JSON] = MappingProxyType({})


class _Point(NamedTuple):
    """The values at one path before and after the merge, with the desired value, the shape and the ignored fields."""

    live: JSON
    merged: JSON
    desired: JSON
    shape: Shape
    ignored: Ignored | None


def with_derived(live: Object, merged: Object, desired: Object, shape: Shape, ignored: Ignored | None) -> Object:
    """`merged` with updated derived fields, where the merge changes their source."""
    result: Object = _update(_Point(live, merged, desired, shape, ignored))
    return result


def _update(point: _Point) -> JSON:
    if point.merged is point.live:
        return point.merged
    merged = _map_containers(point, _update, changed=True)
    for row in DERIVED.get(point.shape.derived, ()):
        if merged is not point.merged:
            point = point._replace(merged=merged)
        merged = _update_row(point, row, row.within, point.live, merged)
    return merged


def _update_row(point: _Point, row: Derived, within: tuple[str, ...], before: Object, after: Object) -> JSON:
    """Updates one derived field in the map at the path `within` below `point`. `before` and `after` are the object of
    the row's type."""
    if type(point.merged) is list:
        return _map_containers(point, lambda item: _update_row(item, row, within, before, after))
    if type(point.live) is not dict or type(point.merged) is not dict:
        return point.merged
    if within:
        return _map_containers(
            point, lambda member: _update_row(member, row, within[1:], before, after), only=within[0]
        )
    if _is_ignored(point.ignored, row.field):
        return point.merged
    return _with_value(point.merged, row.field, _derived_value(point, row, before, after))


def _derived_value(point: _Point, row: Derived, before: Object, after: Object) -> JSON:
    """The value that the field should have; None if it should be missing."""
    found, was = point.merged.get(row.field), point.live.get(row.field)
    if found is None:
        return row.value(point.merged, after) if row.restored and was is not None else None
    derived, now = row.value(point.live, before), row.value(point.merged, after)
    if same(derived, now) or not _is_derived(found, derived):
        return found
    desired = _as_map(point.desired).get(row.field)
    if _is_empty(desired, point.shape.fields.get(row.field) or UNKNOWN):
        return now
    # The live value is the server's learned answer to the desired one. With another source the answer may differ.
    return desired if type(desired) is not dict and same(found, was) else found


def _is_empty(desired: JSON, shape: Shape) -> bool:
    """Whether a desired value is equivalent to a missing one: an empty list or open map is, an empty struct is not."""
    return not desired and (type(desired) is not dict or shape.drops_empty)


def _with_value(holder: Object, name: str, value: JSON) -> Object:
    if same(holder.get(name), value):
        return holder
    return (
        {**holder, name: value} if value is not None else {key: member for key, member in holder.items() if key != name}
    )


def _is_derived(found: JSON, derived: JSON) -> bool:
    """Whether the server derived the live value. A map may have fewer members than derived: defaults differ between
    releases."""
    if derived is ANYTHING:
        return True
    if type(found) is dict and type(derived) is dict:
        return all(name in derived and same(value, derived[name]) for name, value in without_nulls(found).items())
    return same(found, derived)


def _map_containers(
    point: _Point, visit: Callable[[_Point], JSON], *, only: str | None = None, changed: bool = False
) -> JSON:
    """The merged map or list, with `visit` applied to each container in it that is not ignored, or only to the member
    `only`, or only to members that were `changed`."""
    live, merged, shape = point.live, point.merged, point.shape
    if type(live) is dict and type(merged) is dict and not shape.atomic:
        changes: dict[str, Any] = {}
        for name in merged if only is None else (only,):
            value = merged.get(name)
            if changed and live.get(name) is value:
                continue
            if type(value) in (dict, list) and not _is_ignored(point.ignored, name):
                inner = point.ignored.names.get(name) if point.ignored is not None else None
                desired = _as_map(point.desired).get(name)
                member = _Point(
                    live.get(name), value, desired, shape.fields.get(name) or shape.values or UNKNOWN, inner
                )
                if (after := visit(member)) is not value:
                    changes[name] = after
        return {**merged, **changes} if changes else merged
    if type(live) is list and type(merged) is list and shape.list_type == "map":
        live_items, items = items_by_key(live, shape), []
        desired = items_by_key(point.desired, shape) if type(point.desired) is list else {}
        for key, item in zip(item_keys(merged, shape), merged, strict=True):
            inner = point.ignored.item(item, shape) if point.ignored is not None else None
            if key is None or key not in live_items or (inner is not None and inner.whole):
                items.append(item)
            else:
                items.append(visit(_Point(live_items[key], item, desired.get(key), shape.items or UNKNOWN, inner)))
        return merged if all(a is b for a, b in zip(items, merged, strict=True)) else items
    return merged


def _as_map(value: JSON) -> Mapping[str, JSON]:
    return value if type(value) is dict else _NO_MEMBERS


def _is_ignored(ignored: Ignored | None, name: str) -> bool:
    inner = ignored.names.get(name) if ignored is not None else None
    return inner is not None and inner.whole
