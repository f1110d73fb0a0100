"""Reads objects of the cluster: single ones, and lists page by page, so that a large list never is in memory.

What was read so far is there as planning asks for it. Planning is a pure function and cannot read: what it asks for and
is not known is noted in `unread`, and the pass is planned again once that has been read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import reading, stored_object
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning.model.marks import PART_OF, names_an_owner
from ruleop.planning.model.observed import FixedObjects, Query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from ruleop.authoring.live.reading.read_only_connection import ReadOnlyConnection
    from ruleop.kubernetes.builtin.table import ResourceInfo

PAGE: Final = 250
"""Objects of one page. They are read in full: a page of Secrets of a megabyte each should still fit into memory."""

METADATA_PAGE: Final = 500


class Reader:
    def __init__(self, connection: ReadOnlyConnection) -> None:
        self._client = connection.client
        self._catalogue = connection.discovery

    def resource(self, kind: Kind) -> ResourceInfo | None:
        """The resource of this kind; None if the cluster does not serve it."""
        served = self._catalogue.get(kind)
        return served.info if served is not None else None

    def preferred(self, kind: GroupKind) -> Kind | None:
        """The kind in the version that the server prefers; None if it is not served."""
        served = self._catalogue.get(kind)
        return served.info.kind if served is not None else None

    async def get(self, kind: Kind, key: ObjectKey) -> Object | None:
        """The object; None if it does not exist, or its kind is not served. Raises ApiError."""
        resource = self.resource(kind)
        if resource is None or (resource.namespaced and not key.namespace):
            return None
        try:
            request = requests.get(resource, key)
            found: Object = stored_object(await self._client.send(request), request)
        except ApiError as error:
            if error.problem is Problem.NOT_FOUND:
                return None
            raise
        return found

    async def pages(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", size: int = PAGE
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """The objects of a kind, in one namespace or in all, page by page; none if the kind is not served. Raises
        ApiError."""
        if (resource := self.resource(kind)) is not None:
            source = ObjectSource(resource, namespace, labels, fields)
            async for items in self._pages(source, size):
                # The items of a list of built-in objects do not repeat their kind.
                yield [{**each, "apiVersion": kind.api_version, "kind": kind.kind} for each in items]

    async def keys(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> set[ObjectKey]:
        """The keys of the objects of a kind, of which only the metadata is sent. Raises ApiError."""
        found: set[ObjectKey] = set()
        if (resource := self.resource(kind)) is not None:
            source = ObjectSource(resource, namespace, labels, fields, metadata_only=True)
            async for items in self._pages(source, METADATA_PAGE):
                for each in items:
                    place = each["metadata"].get("namespace") or ""
                    found.add(ObjectKey(kind.group, kind.kind, place, each["metadata"]["name"]))
        return found

    async def _pages(self, source: ObjectSource, size: int) -> AsyncIterator[list[dict[str, Any]]]:
        token = ""
        while True:
            request = requests.list_page(source, limit=size, token=token)
            answer = await self._client.send(request)
            with reading(request):
                items = [stored_object(each, request) for each in answer.get("items") or []]
                token = (answer.get("metadata") or {}).get("continue") or ""
            yield items
            if not token:
                return


class LiveObjects:
    """Implements `ruleop.planning.Objects`."""

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
        """The objects with fields of this owner, among those that were read."""
        return FixedObjects(obj for obj in self._objects.values() if obj is not None).patched(part_of)

    def select(self, query: Query) -> Sequence[Object]:
        return FixedObjects(self._selected.get((query.kind, query.version), {}).values()).select(query)

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
