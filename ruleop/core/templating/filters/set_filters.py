"""Filters of lists as sets, and of lists of lists, compatible with Ansible.

Two items are equal if they are the same JSON: 1, 1.0, "1" and true all differ.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.templating.filters.list_filters import identity
from ruleop.core.templating.values.cost import LIST_BYTES, METER
from ruleop.core.templating.values.data import is_list, noun
from ruleop.core.templating.values.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable


MAX_REPEAT: Final = 64


def _check_lists(name: str, *values: Any) -> None:
    for value in values:
        if not is_list(value):
            raise Fault(f"{name} takes lists, not {noun(value)}")
        METER.items(len(value))


def _distinct(items: Iterable[Any], known: Iterable[bytes] = ()) -> list[Any]:
    """The items without repetitions, and without items whose identity is in `known`."""
    seen, result = set(known), []
    for item in items:
        key = identity(item)
        if key not in seen:
            seen.add(key)
            result.append(item)
    return result


def difference(value: Any, other: Any) -> list[Any]:
    """The items that the other list does not have, without repetitions."""
    _check_lists("difference", value, other)
    return _distinct(value, map(identity, other))


def intersect(value: Any, other: Any) -> list[Any]:
    """The items that both lists have, without repetitions."""
    _check_lists("intersect", value, other)
    shared = set(map(identity, other))
    return _distinct(item for item in value if identity(item) in shared)


def union(value: Any, other: Any) -> list[Any]:
    """The items of both lists, without repetitions."""
    _check_lists("union", value, other)
    return _distinct(itertools.chain(value, other))


def symmetric_difference(value: Any, other: Any) -> list[Any]:
    """The items that only one of the lists has, without repetitions."""
    _check_lists("symmetric_difference", value, other)
    return [*_distinct(value, map(identity, other)), *_distinct(other, map(identity, value))]


def flatten(value: Any, levels: int | None = None, skip_nulls: bool = True) -> list[Any]:
    """The items of nested lists, down to `levels` if given, without nulls."""
    _check_lists("flatten", value)
    if levels is not None and int(levels) < 0:
        raise Fault("flatten takes levels from 0")
    result: list[Any] = []
    stack = [(iter(value), levels)]
    while stack:
        items, left = stack[-1]
        item = next(items, stack)
        if item is stack:
            stack.pop()
            continue
        METER.spend(1)
        if is_list(item) and left != 0:
            stack.append((iter(item), None if left is None else int(left) - 1))
        elif item is not None or not skip_nulls:
            result.append(item)
    return result


def zipped(value: Any, *others: Any) -> list[list[Any]]:
    """Lists of the first items, the second items and so on, up to the length of the shortest list."""
    _check_lists("zip", value, *others)
    return [list(row) for row in zip(value, *others, strict=False)]


def zipped_to_longest(value: Any, *others: Any, fillvalue: Any = None) -> list[list[Any]]:
    _check_lists("zip_longest", value, *others)
    longest = max(map(len, (value, *others)))
    METER.spend(longest * (1 + len(others)))
    return [list(row) for row in itertools.zip_longest(value, *others, fillvalue=fillvalue)]


def product(value: Any, *others: Any, repeat: int = 1) -> list[list[Any]]:
    """Each combination of an item of each list, the last list varying fastest."""
    _check_lists("product", value, *others)
    if not 1 <= int(repeat) <= MAX_REPEAT:
        raise Fault(f"product takes a repeat from 1 to {MAX_REPEAT}")
    lists = [value, *others] * int(repeat)
    rows = math.prod(map(len, lists))
    METER.items(rows)
    METER.entries(rows, LIST_BYTES)
    METER.entries(rows * len(lists), 8)
    return [list(row) for row in itertools.product(*lists)]
