"""The methods that data has in a template: those of text, mappings and lists that people use, each bounded in what it makes. A field is
never a method, so `spec.items` stays the field; a call is never a field, so `spec.labels.items()` is the method even where a label has that name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ruleop.templating.budget import Budget
from ruleop.templating.values import MapView, Missing, scalar_text

Method = Callable[..., Any]


def _plain_text(name: str) -> Method:
    function = getattr(str, name)

    def method(budget: Budget, text: str, *args: Any) -> Any:
        budget.text(len(text))
        return function(text, *args)

    return method


def _replace(budget: Budget, text: str, old: Any, new: Any, count: int = -1) -> str:
    old, new = scalar_text(old), scalar_text(new)
    times = text.count(old)
    budget.text(len(text) + (times if count < 0 else min(times, count)) * max(0, len(new) - len(old)))
    return text.replace(old, new, count)


def _join(budget: Budget, text: str, values: Any) -> str:
    texts = [scalar_text(value) for value in values]
    budget.text(sum(map(len, texts)) + len(texts) * len(text))
    return text.join(texts)


def _items(budget: Budget, mapping: Mapping[str, Any]) -> list[tuple[str, Any]]:
    budget.items(len(mapping))
    return list(mapping.items())


def _keys(budget: Budget, mapping: Mapping[str, Any]) -> list[str]:
    budget.items(len(mapping))
    return list(mapping)


def _values(budget: Budget, mapping: Mapping[str, Any]) -> list[Any]:
    budget.items(len(mapping))
    return list(mapping.values())


def _get(_budget: Budget, mapping: Mapping[str, Any], key: Any, default: Any = None) -> Any:
    if isinstance(mapping, MapView):
        found = mapping.field(key)
        return default if isinstance(found, Missing) else found
    return mapping.get(key, default)


def _index(budget: Budget, items: Any, item: Any) -> int:
    budget.items(len(items))
    return int(list(items).index(item))


def _count(budget: Budget, items: Any, item: Any) -> int:
    budget.items(len(items))
    return int(list(items).count(item))


_OF_TEXT = (
    "upper", "lower", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "partition", "rpartition",
    "startswith", "endswith", "removeprefix", "removesuffix", "find", "rfind", "count", "isdigit", "isalpha", "isalnum", "islower", "isupper",
    "isspace", "isnumeric",
)  # fmt: skip

METHODS: dict[tuple[str, str], Method] = {("text", name): _plain_text(name) for name in _OF_TEXT}
METHODS |= {
    ("text", "replace"): _replace,
    ("text", "join"): _join,
    ("mapping", "items"): _items,
    ("mapping", "keys"): _keys,
    ("mapping", "values"): _values,
    ("mapping", "get"): _get,
    ("list", "index"): _index,
    ("list", "count"): _count,
}
