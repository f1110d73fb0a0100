"""The objects of the cluster that were read so far, as planning asks for them.

Planning is a pure function and cannot read. So what it asks for and is not known is noted in `unread`, and the pass is
planned again once that has been read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.core.labels import Matches, any_labels
from ruleop.core.planning.model.marks import PART_OF, names_an_owner
from ruleop.core.planning.model.observed import FixedObjects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class LiveObjects:
    """Implements `ruleop.core.planning.Objects`."""

    def __init__(self) -> None:
        self._objects: dict[tuple[ObjectKey, str], Object | None] = {}  # None: does not exist
        self._children: dict[str, list[Object]] = {}
        self._selected: dict[tuple[GroupKind, str], dict[ObjectKey, Object]] = {}
        self.unread: dict[tuple[Kind, ObjectKey], None] = {}

    # -- what planning asks --------------------------------------------------------------------------------------------

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:  # noqa: ARG002 - all are whole
        if not version:  # of a history, which there is none of
            return self.find(key)
        if (key, version) not in self._objects:
            self.unread[Kind(key.group, version, key.kind), key] = None
        return self._objects.get((key, version))

    def find(self, key: ObjectKey) -> Object | None:
        """The object in any version, without asking for it."""
        return next((obj for (known, _), obj in self._objects.items() if known == key and obj is not None), None)

    def children(self, part_of: str) -> Iterable[Object]:
        return self._children.get(part_of, ())

    def patched(self, part_of: str) -> Iterable[Object]:
        """Of those that were read."""
        return FixedObjects(obj for obj in self._objects.values() if obj is not None).patched(part_of)

    def select(
        self,
        kind: GroupKind,
        namespace: str | None,
        *,
        version: str = "",
        partial: bool = False,  # noqa: ARG002
        matches: Matches = any_labels,
        owner: str = "",
    ) -> Sequence[Object]:
        found = self._selected.get((kind, version), {})
        return FixedObjects(found.values()).select(kind, namespace, matches=matches, owner=owner)

    # -- what was read -------------------------------------------------------------------------------------------------

    def add_child(self, obj: Object) -> None:
        """Adds an object with ruleop's label. As in the operator's cache, it counts only if it names its owner."""
        key, metadata = ObjectKey.of(obj), obj["metadata"]
        self.add(Kind.of(obj), key, obj)
        if names_an_owner(metadata, key, None):
            self._children.setdefault((metadata.get("labels") or {}).get(PART_OF, ""), []).append(obj)

    def add(self, kind: Kind, key: ObjectKey, obj: Object | None) -> None:
        self._objects[key, kind.version] = obj

    def add_selected(self, kind: Kind, obj: Object) -> None:
        self._selected.setdefault((kind.versionless, kind.version), {})[ObjectKey.of(obj)] = obj
