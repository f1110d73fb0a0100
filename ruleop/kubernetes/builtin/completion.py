"""Objects of built-in kinds as the server stores them: with defaults, without empty fields, quantities canonical.

The server decodes an object into Go types, fills in defaults, and writes it again. Which empty fields are written, and
which defaults there are, depends on the types alone: `type_defaults` has them by the names of the types.
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.type_defaults import ALWAYS_WRITTEN, FILLED, KEPT_EMPTY, NOT_FILLED, TYPE_DEFAULTS
from ruleop.kubernetes.quantity import canonical_quantity
from ruleop.kubernetes.schema import ANYTHING, DERIVED, EMPTY

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Shape

# What servers of other versions fill in, or what is filled in only with defaults, or by strategies.
_NOT_DERIVED: Final = {
    ("io.k8s.api.core.v1.PodTemplateSpec", "hostPort"),
    ("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", "rollingUpdate"),
    *(("io.k8s.api.core.v1.ServiceSpec", name) for name in ("clusterIPs", "ipFamilyPolicy")),
    *(("io.k8s.api.core.v1.PersistentVolumeClaimSpec", name) for name in ("dataSource", "dataSourceRef")),
}
_ZEROS: Final[tuple[Any, ...]] = ("", False, 0)


def complete(obj: Object, shape: Shape, old: Object | None = None) -> dict[str, Any]:
    """The object with its defaults. Its metadata stay as they are. Parts that are those of an earlier version,
    which is complete, are taken as they are."""
    found = {name: value for name, value in obj.items() if name != "metadata"}
    return {**_struct(found, _plan(shape), old or EMPTY), "metadata": obj["metadata"]}


def as_stored(obj: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The object as the server reads it again after it stored it: etcd does not tell an empty list from none. Fields
    are tracked before."""
    empty = [name for name in ALWAYS_WRITTEN.get(shape.name, EMPTY) if obj.get(name) == []]
    return {**obj, **dict.fromkeys(empty)} if empty else obj


class _Plan:
    """Instructions for the values of one type."""

    __slots__ = ("always", "derived", "dropped", "empties", "fields", "fill", "fills", "texts")

    def __init__(self, shape: Shape) -> None:
        name, defaults = shape.name, shape.defaults
        skipped, kept = NOT_FILLED.get(name, ()), KEPT_EMPTY.get(name, ())
        self.fields = shape.fields
        # Values that are as good as none: the zero of a field without pointer, an empty list or map.
        self.dropped = {
            each: value for each, value in defaults.items() if value in _ZEROS and each not in shape.required
        }
        written = ALWAYS_WRITTEN.get(name, EMPTY)
        self.empties = frozenset(
            each
            for each, child in shape.fields.items()
            if child.drops_empty and each not in shape.required and each not in kept and each not in written
        )
        self.texts = frozenset(
            each for each, value in defaults.items() if isinstance(value, str) and value and each not in kept
        )
        more = TYPE_DEFAULTS.get(name) or {}
        self.fills = {each: value for each, value in defaults.items() if value not in _ZEROS and each not in skipped}
        self.fills.update({each: value for each, value in more.items() if each not in self.fills})
        self.fills = {each: _value(value, shape.fields[each], None) for each, value in self.fills.items()}
        always: dict[str, Any] = dict(ALWAYS_WRITTEN.get(name) or {})
        if name.endswith("Condition"):  # times that are no pointers in Go
            always |= {each: None for each, child in shape.fields.items() if child.format == "date-time"}
        self.fill, self.always, self.derived = FILLED.get(name), always or None, shape.derived


_PLANS: Final[dict[int, tuple[Shape, _Plan]]] = {}


def _plan(shape: Shape) -> _Plan:
    found = _PLANS.get(id(shape))
    if found is None:
        found = _PLANS[id(shape)] = (shape, _Plan(shape))
    return found[1]


def _value(value: Any, shape: Shape, known: Any) -> Any:
    kind = type(value)
    if kind is dict:
        if shape.fields:
            return _struct(value, _plan(shape), known if type(known) is dict else EMPTY)
        if shape.values is not None:
            return {name: _value(each, shape.values, None) for name, each in value.items()}
        return value
    if kind is list:
        if shape.items is None:
            return value
        before = known if type(known) is list else ()
        return [
            each if each is old else _value(each, shape.items, old)
            for each, old in zip(value, chain(before, repeat(None)), strict=False)
        ]
    return canonical_quantity(value) if shape.format == "quantity" else value


def _struct(value: dict[str, Any], plan: _Plan, known: Object) -> dict[str, Any]:
    fields, dropped, empties = plan.fields, plan.dropped, plan.empties
    found: dict[str, Any] = {}
    for name, each in value.items():
        child = fields.get(name)
        before = known.get(name)
        if child is None or (each is before and each is not None):
            found[name] = each
            continue
        if each is None or (each == "" and name in plan.texts):
            continue
        new = each if type(each) is str and not child.format else _value(each, child, before)
        if (not new and name in empties) or (name in dropped and new == dropped[name]):
            continue
        found[name] = new
    for name, default in plan.fills.items():
        if name not in found:
            found[name] = default
    if plan.fill is not None:
        plan.fill(found)
    if plan.always is not None:
        for name, default in plan.always.items():
            found.setdefault(name, default)
    if plan.derived:
        _derive(found, plan.derived)
    return found


def _derive(found: dict[str, Any], type_name: str) -> None:
    """Fills in fields that follow from others. The lists on the way are new, so their items may be changed; items of an
    earlier version have the fields already."""
    for each in DERIVED[type_name]:
        if (type_name, each.field) in _NOT_DERIVED:
            continue
        for holder in _holders(found, each.within):
            if each.field not in holder and (value := each.value(holder, found)) not in (None, ANYTHING):
                holder[each.field] = value


def _holders(value: Any, path: tuple[str, ...]) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [holder for each in value for holder in _holders(each, path)]
    if not isinstance(value, dict):
        return []
    return _holders(value.get(path[0]), path[1:]) if path else [value]
