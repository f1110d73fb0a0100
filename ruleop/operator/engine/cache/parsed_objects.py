"""The objects of the cache for one plan, in which each child is parsed only once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.kinds import ObjectKey
from ruleop.core.labels import Matches, any_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.core.kinds import GroupKind, Object
    from ruleop.core.planning import Objects


class ParsedObjects:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.patched = objects.patched
        self._children: dict[tuple[ObjectKey, str], Object] = {}

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        return self._children.get((key, version)) or self._objects.get(key, version=version, partial=partial)

    def children(self, part_of: str) -> Iterator[Object]:
        for child in self._objects.children(part_of):
            self._children[ObjectKey.of(child), child["apiVersion"].rpartition("/")[2]] = child
            yield child

    def select(
        self,
        kind: GroupKind,
        namespace: str | None,
        *,
        version: str = "",
        partial: bool = False,
        matches: Matches = any_labels,
        owner: str = "",
    ) -> Iterable[Object]:
        return self._objects.select(kind, namespace, version=version, partial=partial, matches=matches, owner=owner)
