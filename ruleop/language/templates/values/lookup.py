"""Lookup of `a.b`, `a['b']`, `a[x]` and `a[1:2]` in data. Attributes of Python objects are not accessible, except the
few of Jinja's helpers that are listed here."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from jinja2.environment import TemplateModule
from jinja2.runtime import BlockReference, LoopContext, TemplateReference
from jinja2.utils import Cycler, Namespace

from ruleop.language.templates.values.cost import called
from ruleop.language.templates.values.data import ListView, MapView, noun
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.text import Dump, Text
from ruleop.language.templates.values.undefined import Missing, NoField, UndefinedValue

_LOOP_FIELDS = frozenset(
    {"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem"}
)


class Group(NamedTuple):
    """A group of `groupby`, which can be unpacked in a loop or read by these names."""

    grouper: Any
    list: Any


class MappingEntry(NamedTuple):
    """An entry of a mapping from `items`, `.items()` or `dictsort`, which can be unpacked in a loop or read by these
    names, as in `forEach`."""

    key: str
    value: Any


def field_of(obj: Any, key: Any) -> Any:
    if type(obj) is MapView and type(key) is str:  # the common case; `MapView.field` inlined
        try:
            value = obj.data[key]
        except KeyError:
            return obj.missing(key)
        kind = type(value)
        return value if kind is str or kind is int else obj.wrap(key, value)
    if isinstance(obj, UndefinedValue):
        return obj.step(key)
    if isinstance(key, UndefinedValue):
        raise key.fault()
    if isinstance(key, (Text, Dump)):
        key = key.as_text()
    if isinstance(obj, (MapView, ListView)):
        return obj.field(key)
    if isinstance(obj, (Text, Dump)):
        obj = obj.as_text()
    if isinstance(obj, (dict, list, tuple, range, str)):
        return _field_of_created(obj, key)
    return _field_of_helper(obj, key)


def field_by_value(obj: Any, key: Any) -> Any:
    """A field whose name was computed."""
    found = field_of(obj, key)
    return found.without_key() if isinstance(found, UndefinedValue) and isinstance(key, (str, Text, Dump)) else found


def _field_of_created(obj: Any, key: Any) -> Any:
    """A field of a mapping, list or text that the template created."""
    if isinstance(obj, (Group, MappingEntry)) and key in obj._fields:
        return getattr(obj, key)
    if isinstance(key, str) and key.isdecimal() and not isinstance(obj, dict):
        key = int(key)
    try:
        return obj[key]
    except (LookupError, TypeError):
        pass
    if isinstance(obj, dict):
        return Missing("this mapping").below(key)
    if isinstance(key, int) and not isinstance(obj, str):
        return Missing("this list").below(key)
    return NoField(noun(obj), key)


def _field_of_helper(obj: Any, key: Any) -> Any:
    """A field of one of Jinja's own objects."""
    kind = type(obj)
    if kind is LoopContext and key in _LOOP_FIELDS:
        return getattr(obj, key)
    if kind is Namespace:
        return obj._Namespace__attrs.get(key, Missing("this namespace").below(key))  # noqa: SLF001 - there is no public way to read it by name
    if kind is TemplateModule and isinstance(key, str) and not key.startswith("_"):
        return vars(obj).get(key, Missing("this import").below(key))
    if kind is TemplateReference:
        try:
            return obj[key]
        except KeyError:
            return NoField("self", key)
    if kind is BlockReference and key == "super":
        return obj.super
    if kind is Cycler and key == "current":
        return obj.current
    return NoField(noun(obj), key)


def reach(item: Any, attribute: Any) -> Any:
    """`a.b.0.c` of an item, as `map` and `sort` name it."""
    parts = attribute.split(".") if isinstance(attribute, str) else [attribute]
    for part in parts:
        item = field_of(item, part)
    return item


def slice_of(obj: Any, start: Any, stop: Any, step: Any) -> Any:
    if isinstance(obj, UndefinedValue):
        raise obj.fault()
    if isinstance(obj, (Text, Dump)):
        obj = obj.as_text()
    if not isinstance(obj, (str, list, tuple, range, ListView)):
        raise Fault("only text and lists have slices")
    part = slice(*(None if bound is None else int(bound) for bound in (start, stop, step)))
    return called("[:]", operator.getitem, (obj, part), {}, 0)
