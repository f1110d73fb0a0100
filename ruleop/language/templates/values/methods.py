"""The methods of text, mappings and lists in templates, with bounded results. `spec.items` is always the field, and
`spec.labels.items()` always the method, even if a label has that name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ruleop.language.templates.values.cost import called, check_text, read_size
from ruleop.language.templates.values.data import ListView, MapView, scalar_text
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.lookup import MappingEntry
from ruleop.language.templates.values.operators import comparable, given, passes
from ruleop.language.templates.values.text import Dump, Text
from ruleop.language.templates.values.undefined import Missing, UndefinedValue


class Method(NamedTuple):
    """`gives` is in words of `declared_kinds`."""

    call: Callable[..., Any]
    gives: str


def call_on_data(obj: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Calls `obj.name(...)` of text, a mapping or a list."""
    method = METHODS.get((type_name(obj), name))
    if method is None:
        known = sorted(known for kind, known in METHODS if kind == type_name(obj))
        raise Fault(f"unknown method {name}()" + (f"; use one of {', '.join(known)}" if known else ""))
    try:
        args, kwargs = tuple(map(given, args)), {key: given(value) for key, value in kwargs.items()}
        obj = str(obj) if isinstance(obj, (str, Text, Dump)) else obj
        size = 0 if isinstance(obj, Mapping) else read_size(obj)
        return called(name, method.call, (obj, *args), kwargs, size)
    except (TypeError, ValueError, LookupError):
        raise Fault(f"{name}() cannot take these arguments") from None


def type_name(obj: Any) -> str:
    if isinstance(obj, (str, Text, Dump)):
        return "text"
    if isinstance(obj, Mapping):
        return "mapping"
    return "list" if isinstance(obj, (list, tuple, range, ListView)) else ""


def replaced(text: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new = scalar_text(text), scalar_text(old), scalar_text(new)
    times = text.count(old)
    if count is not None and count >= 0:
        times = min(times, int(count))
    check_text(len(text) + times * max(0, len(new) - len(old)))
    return str(text.replace(old, new, times))


def joined_by(separator: Any, values: Any) -> str:
    between, texts = scalar_text(separator), [scalar_text(value) for value in passes(values)]
    check_text(sum(map(len, texts)) + len(texts) * len(between))
    return between.join(texts)


def _items(mapping: Mapping[str, Any]) -> list[MappingEntry]:
    return list(map(MappingEntry._make, mapping.items()))


def _keys(mapping: Mapping[str, Any]) -> list[str]:
    return list(mapping)


def _values(mapping: Mapping[str, Any]) -> list[Any]:
    return list(mapping.values())


def _get(mapping: Mapping[str, Any], key: Any, *default: Any) -> Any:
    """With a default, the default for any missing key. Without, null, except where the value is only not available
    yet."""
    found = mapping.field(key) if isinstance(mapping, MapView) else mapping.get(key, Missing())
    if not isinstance(found, UndefinedValue) or not (default or isinstance(found, Missing)):
        return found
    (fallback,) = default or (None,)
    return fallback


def _index(items: Any, item: Any) -> int:
    return [comparable(each) for each in items].index(comparable(item))


def _count(items: Any, item: Any) -> int:
    return [comparable(each) for each in items].count(comparable(item))


_OF_TEXT: Final = {
    "string": "upper lower title capitalize swapcase strip lstrip rstrip removeprefix removesuffix",
    "list of string": "split rsplit splitlines partition rpartition",
    "integer": "find rfind count",
    "boolean": "startswith endswith isdigit isalpha isalnum islower isupper isspace isnumeric",
}
METHODS: Final[Mapping[tuple[str, str], Method]] = {
    **{
        ("text", name): Method(getattr(str, name), gives) for gives, names in _OF_TEXT.items() for name in names.split()
    },
    ("text", "replace"): Method(replaced, "string"),
    ("text", "join"): Method(joined_by, "string"),
    ("mapping", "items"): Method(_items, "list"),
    ("mapping", "keys"): Method(_keys, "list of string"),
    ("mapping", "values"): Method(_values, "list"),
    ("mapping", "get"): Method(_get, "any"),
    ("list", "index"): Method(_index, "integer"),
    ("list", "count"): Method(_count, "integer"),
}
