"""Changes that may be the echo of a write which is not answered yet.

The watch may bring what we wrote before the answer does. Taken for somebody else's change, it would have the CR looked
at once more, for nothing. So what comes about an object that is just being written is kept until the answer tells which
of it is the echo, and the rest is told then. Whom it concerns is busy with that very write, and would not have looked
earlier.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.kinds import ObjectKey


class OwnWrites:
    def __init__(self) -> None:
        self._writes: dict[ObjectKey, Write] = {}

    @contextmanager
    def writing(self, key: ObjectKey) -> Iterator[Write]:
        """While the write is under way. Whoever writes says what was answered; without an answer, all that came is
        told."""
        write = self._writes.setdefault(key, Write())
        write.under_way += 1
        try:
            yield write
        finally:
            write.under_way -= 1
            if not write.under_way:
                del self._writes[key]
                write.end()

    def keep(self, key: ObjectKey, version: int, tell: Callable[[], None]) -> bool:
        """Whether the change may be an echo, and is reported later if it is not. `version`: 0 for a deletion."""
        write = self._writes.get(key)
        if write is not None:
            write.kept.append((version, tell))
        return write is not None


class Write:
    """Of one object. Two CRs that want the same one may both be at it."""

    __slots__ = ("answers", "kept", "under_way")

    def __init__(self) -> None:
        self.under_way = 0
        self.answers: set[int] = set()
        self.kept: list[tuple[int, Callable[[], None]]] = []

    def answered(self, version: int) -> None:
        self.answers.add(version)

    def end(self) -> None:
        for version, tell in self.kept:
            if version not in self.answers or not version:
                tell()
