"""Unpacking of values into several names: `{% for k, v in ... %}` and `{% set a, b = ... %}`.

Python's own would fail with `not enough values to unpack` where `.items()` is missing, or split a key of two letters
without an error. This allows messages with what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from ruleop.language.templates.values.data import ListView, noun
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.lookup import Group, MappingEntry
from ruleop.language.templates.values.operators import given

_ENTRY: Final = {"key", "value"}
_PLAIN_ROWS: Final = frozenset({MappingEntry, Group, tuple})

Names: TypeAlias = tuple[Any, ...]
"""The target names; a tuple for names in brackets."""


def rows(found: Any, names: Names, source: str) -> list[tuple[Any, ...]]:
    """The items of a loop with several names."""
    if isinstance(found, Mapping):
        pair = names if len(names) == 2 and all(isinstance(name, str) for name in names) else ("key", "value")
        raise Fault(
            f"a loop over a mapping iterates over its keys: write `for {pair[0]}, {pair[1]} in {source}.items()`"
        )
    size = len(names) if all(isinstance(name, str) for name in names) else -1
    return [
        row if type(row) in _PLAIN_ROWS and len(row) == size else unpacked(row, names) for row in found
    ]  # the first case is by far the most common


def unpacked(value: Any, names: Names) -> tuple[Any, ...]:
    value = given(value)
    if isinstance(value, (list, tuple, range, ListView)):
        if len(value) == len(names):
            return tuple(
                unpacked(each, name) if isinstance(name, tuple) else each
                for each, name in zip(value, names, strict=True)
            )
        what = f"a list of {len(value)} item{'' if len(value) == 1 else 's'}"
    else:
        what = noun(value)
    raise Fault(
        f"{what} cannot be unpacked into `{', '.join(map(_format_name, names))}`: {_unpacking_hint(value, names)}"
    )


def _format_name(name: str | Names) -> str:
    return name if isinstance(name, str) else f"({', '.join(map(_format_name, name))})"


def _unpacking_hint(value: Any, names: Names) -> str:
    if not isinstance(value, Mapping):
        return f"a list of {len(names)} items is needed"
    return (
        "write `for item in ...` and read item.key, item.value"
        if set(value) == _ENTRY
        else "use one name and read its fields"
    )
