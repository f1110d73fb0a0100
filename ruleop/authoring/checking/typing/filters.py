"""The types that filters and methods of templates return, where more is known of them than they declare."""

from __future__ import annotations

import functools
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.typing.operators import with_field
from ruleop.authoring.checking.typing.types import (
    BOOLEAN,
    INTEGER,
    LIST,
    MAPPING,
    NULL,
    NUMBER,
    SCALARS,
    STRING,
    UNKNOWN,
    Dumped,
    Type,
    Undefined,
    declared,
    entry_of,
    is_empty_list,
    item_of,
    join,
    list_of,
    mapping_of,
    of_node,
    row_of,
    truth_of,
)
from ruleop.language.templates import METHODS, syntax
from ruleop.language.templates.compile import literal_names, picked_names
from ruleop.language.templates.filters.registry import FILTERS
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ruleop.authoring.checking.typing.operators import Lookup

_NUMBERS: Final = frozenset({"boolean", "integer", "number"})


@dataclass(frozen=True, slots=True)
class FilterCall:
    """A filter with its input and arguments. `attribute` looks up a field of an item and reports unknown ones."""

    value: Type
    args: tuple[Type, ...]
    kwargs: Mapping[str, Type]
    node: syntax.Filter
    attribute: Callable[[Type, str], Lookup]
    apply: Callable[[str, Type], Type]  # another filter, by its name

    def arg(self, position: int, name: str = "") -> Type | None:
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(name) if name else None

    def constant(self, position: int, name: str = "") -> Any:
        """The value of an argument that is a literal."""
        found = self.node.args[position] if position < len(self.node.args) else None
        found = self.node.kwargs.get(name, found)
        return found.value if isinstance(found, syntax.Const) else None


def items_of(value: Type) -> Type:
    """The type of what a loop over a value iterates over."""
    found: list[Type] = []
    if "list" in value.kinds and not is_empty_list(value):
        found.append(item_of(value).defined())
    if value.kinds & {"mapping", "string"}:
        found.append(STRING)
    return join(found)


def members_of(mapping: Type) -> Type:
    """The type of the values of a mapping."""
    if mapping.node is not None:
        below = mapping.node.values
        if below is not None and not list(mapping.node.names):
            return of_node(below, f"{mapping.path}[]" if mapping.path else "", origin=mapping.origin)
        return UNKNOWN
    if mapping.fields is None and mapping.values is None:
        return UNKNOWN
    known = [each.defined() for each in (mapping.fields or {}).values()]
    return join([*known, mapping.values] if mapping.values is not None else known)


def entries_of(mapping: Type) -> Type:
    return list_of(entry_of(STRING, members_of(mapping)), least=mapping.least)


def _same_items(given: FilterCall) -> Type:
    return list_of(items_of(given.value))


def _with_attribute(given: FilterCall, position: int | None = None) -> Type:
    """The items, after the attribute that the filter reads of them was looked up."""
    name = given.constant(position, "attribute") if position is not None else given.constant(99, "attribute")
    item = items_of(given.value)
    if isinstance(name, str):
        for each in name.split(","):
            given.attribute(item, each.strip())
    return replace(list_of(item), least=given.value.least)


def _kept(given: FilterCall) -> int:
    """The items that are left for certain: those without an attribute are skipped, and equal ones may be one."""
    return 0 if given.constant(99, "attribute") is not None else min(given.value.least, 1)


def _one(given: FilterCall) -> Type:
    item = _with_attribute(given).item or UNKNOWN
    if given.value.least > 0 or not given.value.is_known:
        return item
    return item.maybe(Undefined("empty", given.value.path, given.node.name))


def _map(given: FilterCall) -> Type:
    item = items_of(given.value)
    name = given.constant(99, "attribute")
    if isinstance(name, str):
        found = given.attribute(item, name).type.defined()
        fallback = given.kwargs.get("default")
        if not found.kinds:
            return list_of(fallback)
        return list_of(found if fallback is None else join((found, fallback)))
    applied = given.constant(0)
    result = given.apply(applied, item) if isinstance(applied, str) else UNKNOWN
    return list_of(result, least=given.value.least)


def _selected_by_attribute(given: FilterCall) -> Type:
    item = items_of(given.value)
    name, test = given.constant(0), given.constant(1)
    if not isinstance(name, str):
        return list_of(item)
    found = given.attribute(item, name).type
    keeps_defined = given.node.name == "selectattr" and test != "undefined"
    if keeps_defined and "mapping" in item.kinds and found.kinds:
        narrowed = found.defined() if test else found.defined().without({"null"})
        item = with_field(item, tuple(name.split(".")), narrowed)
    return list_of(item)


def _grouped(given: FilterCall) -> Type:
    item = items_of(given.value)
    name = given.constant(0, "attribute")
    found = given.attribute(item, name).type.defined() if isinstance(name, str) else UNKNOWN
    group = row_of(found, list_of(item, least=1))
    return list_of(replace(group, fields={"grouper": found, "list": list_of(item, least=1)}))


def _sum(given: FilterCall) -> Type:
    _with_attribute(given)
    start = given.arg(1, "start")
    return NUMBER if start is None or start.kinds <= _NUMBERS else UNKNOWN


def _dict2items(given: FilterCall) -> Type:
    key, value = given.constant(0, "key_name") or "key", given.constant(1, "value_name") or "value"
    return list_of(mapping_of({str(key): STRING, str(value): members_of(given.value)}))


def _joined(given: FilterCall) -> Type:
    _with_attribute(given, 1)
    return STRING


def _items2dict(given: FilterCall) -> Type:
    item = items_of(given.value)
    given.attribute(item, str(given.constant(0, "key_name") or "key"))
    found = given.attribute(item, str(given.constant(1, "value_name") or "value")).type
    return Type(frozenset({"mapping"}), fields={}, values=found.defined() if found.kinds else UNKNOWN)


def _default(given: FilterCall) -> Type:
    fallback = given.arg(0, "default_value") or STRING
    value = given.value.defined()
    if truth_of(given.arg(1, "boolean") or NULL):
        value = value.without({"null"})
    elif given.value.undefined is None and given.value.is_known:
        return value
    if not value.kinds:
        return fallback
    return join((value, fallback))


def _required(given: FilterCall) -> Type:
    value = given.value
    waits = value.undefined is not None and value.undefined.waits
    return (value if waits else value.defined()).without({"null"})


def _merged(given: FilterCall) -> Type:
    parts = [given.value, *given.args]
    if given.kwargs or not all(each.fields is not None and each.node is None and not each.partial for each in parts):
        return MAPPING
    merged: dict[str, Type] = {}
    for name, member in (pair for each in parts for pair in (each.fields or {}).items()):
        before = merged.get(name, member)
        if name in merged and "mapping" in before.kinds & member.kinds:
            merged[name] = MAPPING.maybe(before.undefined if member.undefined is not None else None)
        else:
            merged[name] = member if member.undefined is None else join((before, member.defined()))
    return mapping_of(merged, values=next((each.values for each in parts if each.values is not None), None))


def _of_each(given: FilterCall, part: Callable[[Type], Type]) -> Type:
    """The result of a filter that takes a mapping, or each mapping of a list."""
    kinds = given.value.kinds if given.value.is_known else frozenset({"mapping", "list"})
    found = [part(given.value.only({"mapping"}))] if "mapping" in kinds else []
    if "list" in kinds:
        found.append(list_of(part(items_of(given.value.only({"list"})))))
    return join(found) if len(found) == 1 else join((MAPPING, LIST))


def _picked(given: FilterCall) -> Type:
    """A mapping with these of its fields. A name that it cannot have is reported; an optional field stays optional."""
    names = [name for name in literal_names(given.node.args) if name is not None]
    is_literal = picked_names(given.node) is not None

    def part(mapping: Type) -> Type:
        found = {name: given.attribute(mapping, name) for name in names}
        if not mapping.is_known or not is_literal:
            return MAPPING
        is_misspelt = any(each.problem is not None for each in found.values())
        fields = {name: _left_out(each.type) for name, each in found.items() if each.problem is None}
        return mapping_of(fields, values=UNKNOWN if is_misspelt else None)

    return _of_each(given, part)


def _left_out(found: Type) -> Type:
    """The type of a field that `pick` leaves out if it is not set; nothing waits for it then."""
    undefined = found.undefined
    if undefined is None or undefined.reason == "optional":
        return found
    return replace(found, undefined=Undefined("optional", undefined.path, "`pick` leaves out what is not set"))


def _without_members(given: FilterCall) -> Type:
    return _of_each(given, lambda _: MAPPING)


def _subelements(given: FilterCall) -> Type:
    if given.value.kinds not in ({"mapping"}, {"list"}):
        return list_of(LIST)
    item = members_of(given.value) if given.value.kinds == {"mapping"} else items_of(given.value)
    name = given.constant(0, "subelements")
    inner = items_of(given.attribute(item, name).type.defined()) if isinstance(name, str) else UNKNOWN
    return list_of(row_of(item, inner))


def _of_network(given: FilterCall) -> Type:
    part = given.constant(0, "part")
    if given.arg(0, "part") is None or part in {"network", "netmask", "broadcast"}:
        return STRING
    return INTEGER if part else join((STRING, INTEGER))


def _zipped(given: FilterCall) -> Type:
    return list_of(row_of(items_of(given.value), *map(items_of, given.args)))


def _ordered(given: FilterCall) -> Type:
    return replace(_with_attribute(given), least=_kept(given))


def _united(given: FilterCall) -> Type:
    return list_of(join(items_of(each) for each in (given.value, *given.args)))


def _same_text(given: FilterCall) -> Type:
    return replace(STRING, code=given.value.code)


def _dumped(given: FilterCall) -> Type:
    return replace(STRING, code=Dumped(given.value))


_STATUS: Final = replace(STRING, constants=frozenset(("string", each) for each in ("True", "False", "Unknown")))

REFINED: Final[Mapping[str, Callable[[FilterCall], Type]]] = {
    "default": _default, "d": _default, "required": _required,
    "indent": _same_text, "trim": _same_text,
    "truncate": lambda given: STRING if given.value.kinds <= SCALARS else UNKNOWN,
    "join": _joined,
    "split": lambda given: list_of(STRING, least=1 if given.args else 0),
    "regex_search": lambda given: join((STRING, NULL)) if len(given.args) < 2 else UNKNOWN,
    "first": _one, "last": _one, "min": _one, "max": _one,
    "list": _with_attribute, "sort": _ordered, "unique": _ordered,
    "items": lambda given: entries_of(given.value), "dictsort": lambda given: entries_of(given.value),
    "batch": lambda given: list_of(_same_items(given)), "slice": lambda given: list_of(_same_items(given)),
    "reverse": lambda given: STRING if given.value.kinds == {"string"} else _same_items(given),
    "select": _same_items, "reject": _same_items, "difference": _same_items, "intersect": _same_items,
    "map": _map, "selectattr": _selected_by_attribute, "rejectattr": _selected_by_attribute,
    "sum": _sum, "groupby": _grouped, "dict2items": _dict2items, "items2dict": _items2dict,
    "union": _united, "symmetric_difference": _united, "zip": _zipped,
    "product": lambda given: list_of(LIST) if given.kwargs else _zipped(given),
    "subelements": _subelements, "keep_keys": _picked, "pick": _picked, "remove_keys": _without_members,
    "ternary": lambda given: join(given.args[:2]) if len(given.args) > 1 else UNKNOWN,
    "combine": _merged, "condition": lambda _: _STATUS, "ip_network": _of_network,
    "bool": lambda given: join((BOOLEAN, NULL)) if "null" in given.value.kinds else BOOLEAN,
    "quantity": lambda given: NUMBER if given.arg(0, "unit") is None else INTEGER,
    "to_yaml": _dumped, "to_nice_yaml": _dumped, "to_json": _dumped, "tojson": _dumped,
}  # fmt: skip
"""Filters of whose result more is known than they declare, from their input and arguments."""


_ARGUMENTS: Final[Mapping[str, str]] = {
    "missing": "{} is missing", "got": "unknown argument {}", "multiple": "the argument {} is given twice",
    "too": "it takes fewer arguments",
}  # fmt: skip
"""The mistakes in the arguments of a filter, by the first word of Python's message."""


_signature: Final = functools.cache(signature)


def argument_problem(node: syntax.Filter) -> str:
    """The mistake in the number or the names of the arguments; "" if they fit the parameters of the filter."""
    found = FILTERS[node.name]
    try:
        parameters = _signature(found.function)
    except ValueError:  # `list` has none that Python knows
        return ""
    positional = [*([found.needs] if found.needs else []), node.value, *node.args]
    try:
        parameters.bind(*positional, **node.kwargs)
    except TypeError as error:
        first, *_ = str(error).split()
        return _ARGUMENTS[first].format(str(error).rpartition(" ")[2].strip("'"))
    return ""


def result_of(given: FilterCall) -> Type:
    refined = REFINED.get(given.node.name)
    return refined(given) if refined is not None else declared(FILTERS[given.node.name].gives)


_LEAST_PARTS: Final[Mapping[str, int]] = {"split": 1, "rsplit": 1, "partition": 3, "rpartition": 3}


def result_of_method(kind: str, name: str, value: Type, args: Sequence[Any]) -> Type | None:
    """The result of a method of values of this kind; None if it has no such method."""
    method = METHODS.get(("text" if kind == "string" else kind, name))
    if method is None:
        return None
    if kind != "mapping":
        return replace(declared(method.gives), least=_LEAST_PARTS.get(name, 0) if args else 0)
    keys, values = list_of(STRING, least=value.least), list_of(members_of(value), least=value.least)
    return {"items": entries_of(value), "keys": keys, "values": values}.get(name, UNKNOWN)
