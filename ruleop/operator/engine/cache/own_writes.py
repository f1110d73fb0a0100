"""Distinguishes watch events that ruleop's own writes cause from changes by others.

The watch may deliver a write before its response arrives. Mistaken for a change by others, it would cause a needless
reconcile. So events about an object that is being written are held until the response arrives. Its resourceVersion
identifies ruleop's own write; the other events are reported then. That delays nothing: the CR that they concern is
busy with that write until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.core.kinds import ObjectKey


class OwnWrites:
    def __init__(self) -> None:
        self._writes: dict[ObjectKey, Write] = {}

    def writing(self, key: ObjectKey) -> Write:
        """Holds events about an object during a write. The caller adds the version of the response to
        `Write.versions`; without one, all events are reported at the end."""
        write = self._writes.get(key)
        return write if write is not None else Write(self._writes, key)

    def hold(self, key: ObjectKey, version: int, report: Callable[[], None]) -> bool:
        """Whether the change may be ruleop's own write. If it is not, `report` is called after the write. `version` is
        0 for a deletion."""
        write = self._writes.get(key)
        if write is not None:
            write.held.append((version, report))
        return write is not None


class Write:
    """The running writes of one object: two CRs with the same child may write it concurrently."""

    __slots__ = ("_key", "_under_way", "_writes", "held", "versions")

    def __init__(self, writes: dict[ObjectKey, Write], key: ObjectKey) -> None:
        self._writes, self._key = writes, key
        self._under_way = 0
        self.versions: set[int] = set()
        self.held: list[tuple[int, Callable[[], None]]] = []

    def __enter__(self) -> Self:
        self._writes[self._key] = self
        self._under_way += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            del self._writes[self._key]
            self.end()

    def end(self) -> None:
        for version, report in self.held:
            if version not in self.versions or not version:
                report()
