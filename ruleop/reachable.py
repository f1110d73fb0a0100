"""Nodes that a graph leads to: children that wait for one another, files and types that refer to others."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


def reached(starts: Iterable[T], targets: Callable[[T], Iterable[T]]) -> dict[T, None]:
    """The nodes to which these lead, directly and by way of others, and these themselves; the nearest first."""
    found = dict.fromkeys(starts)
    pending = deque(found)
    while pending:
        fresh = [each for each in dict.fromkeys(targets(pending.popleft())) if each not in found]
        found.update(dict.fromkeys(fresh))
        pending.extend(fresh)
    return found
