"""Lists as sets, and lists of lists, as Ansible has them.

Two items are the same if they are the same JSON: 1, 1.0, "1" and true are four.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ruleop.templating.filters.lists import identity
from ruleop.templating.values.budget import METER
from ruleop.templating.values.data import ListView, noun
from ruleop.templating.values.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable


def _lists(name: str, *values: Any) -> None:
    for value in values:
        if not isinstance(value, (list, tuple, range, ListView)):
            raise Fault(f"{name} takes lists, not {noun(value)}")
        METER.items(len(value))


def _distinct(items: Iterable[Any], known: Iterable[bytes] = ()) -> list[Any]:
    """The first of those that are the same, without those that are known already."""
    seen, result = set(known), []
    for item in items:
        key = identity(item)
        if key not in seen:
            seen.add(key)
            result.append(item)
    return result


def difference(value: Any, other: Any) -> list[Any]:
    """Each item that the other list does not have, once."""
    _lists("difference", value, other)
    return _distinct(value, map(identity, other))


def intersect(value: Any, other: Any) -> list[Any]:
    """Each item that the other list has too, once."""
    _lists("intersect", value, other)
    shared = set(map(identity, other))
    return _distinct(item for item in value if identity(item) in shared)


def union(value: Any, other: Any) -> list[Any]:
    """Each item of the two lists, once."""
    _lists("union", value, other)
    return _distinct(itertools.chain(value, other))


def symmetric_difference(value: Any, other: Any) -> list[Any]:
    """Each item that only one of the two lists has, once."""
    _lists("symmetric_difference", value, other)
    return [*_distinct(value, map(identity, other)), *_distinct(other, map(identity, value))]


def flatten(value: Any, levels: int | None = None, skip_nulls: bool = True) -> list[Any]:
    """The items of the lists in a list, all the way down or so many levels, without nulls."""
    _lists("flatten", value)
    if levels is not None and int(levels) < 0:
        raise Fault("flatten takes levels from 0")
    result: list[Any] = []
    todo = [(iter(value), levels)]
    while todo:
        items, left = todo[-1]
        item = next(items, todo)
        if item is todo:
            todo.pop()
            continue
        METER.spend(1)
        if isinstance(item, (list, tuple, range, ListView)) and left != 0:
            todo.append((iter(item), None if left is None else int(left) - 1))
        elif item is not None or not skip_nulls:
            result.append(item)
    return result


def zipped(value: Any, *others: Any) -> list[list[Any]]:
    """Lists of the first items, the second ones and so on; as many as the shortest list has."""
    _lists("zip", value, *others)
    return [list(row) for row in zip(value, *others, strict=False)]


def zipped_to_the_longest(value: Any, *others: Any, fillvalue: Any = None) -> list[list[Any]]:
    _lists("zip_longest", value, *others)
    longest = max(map(len, (value, *others)))
    METER.spend(longest * (1 + len(others)))
    return [list(row) for row in itertools.zip_longest(value, *others, fillvalue=fillvalue)]
