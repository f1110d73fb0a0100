"""The objects that a plan reads, each charged when it is read: others decide how many there are, and how large.

A child of the usual size is charged little, because the plan is charged for the rendered object already: what could be
created can be planned again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.templates.values.cost import OBJECT_BYTES, USUAL_SIZE, object_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.planning.model.observed import Objects, Query


class ReadObjects:
    def __init__(self, objects: Objects, charge: Callable[[int], None]) -> None:
        """`charge` raises Exhausted."""
        self._objects, self._charge = objects, charge
        self._read: set[ObjectKey] = set()

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        found = self._objects.get(key, version=version, partial=partial)
        return None if found is None else self._charged(key, found)

    def children(self, part_of: str) -> Iterator[Object]:
        return self._each(self._objects.children(part_of))

    def patched(self, part_of: str) -> Iterator[Object]:
        return self._each(self._objects.patched(part_of))

    def select(self, query: Query) -> Iterator[Object]:
        def matches(labels: Mapping[str, Any]) -> bool:
            self._charge(OBJECT_BYTES)  # of all objects, whether they match or not
            return query.matches(labels)

        return self._each(self._objects.select(query._replace(matches=matches)), usual=0)

    def _each(self, objects: Iterable[Object], usual: int = USUAL_SIZE) -> Iterator[Object]:
        for obj in objects:
            yield self._charged(ObjectKey.of(obj), obj, usual)

    def _charged(self, key: ObjectKey, obj: Object, usual: int = USUAL_SIZE) -> Object:
        if key not in self._read:
            self._read.add(key)
            self._charge(object_bytes(obj, usual))
        return obj
