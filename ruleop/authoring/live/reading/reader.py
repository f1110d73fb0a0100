"""Reads objects of the cluster: single ones, and lists page by page, so that a large list never is in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.kinds import ObjectKey
from ruleop.operator.kube.client import requests
from ruleop.operator.kube.client.client import reading, stored_object
from ruleop.operator.kube.client.requests import Source
from ruleop.operator.kube.client.server_errors import ApiError, Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ruleop.authoring.live.reading.read_only_connection import Connection
    from ruleop.core.kinds import GroupKind, Kind, Object
    from ruleop.core.schema.builtin.table import ResourceInfo

PAGE: Final = 250
"""Objects of one page. They are read in full: a page of Secrets of a megabyte each should still fit into memory."""

METADATA_PAGE: Final = 500


class Reader:
    def __init__(self, connection: Connection) -> None:
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
            source = Source(resource, namespace, labels, fields)
            async for items in self._pages(source, size):
                # The items of a list of built-in objects do not repeat their kind.
                yield [{**each, "apiVersion": kind.api_version, "kind": kind.kind} for each in items]

    async def keys(self, kind: Kind, namespace: str = "") -> set[ObjectKey]:
        """The keys of all objects of a kind, of which only the metadata is sent. Raises ApiError."""
        found: set[ObjectKey] = set()
        if (resource := self.resource(kind)) is not None:
            async for items in self._pages(Source(resource, namespace, metadata_only=True), METADATA_PAGE):
                for each in items:
                    place = each["metadata"].get("namespace") or ""
                    found.add(ObjectKey(kind.group, kind.kind, place, each["metadata"]["name"]))
        return found

    async def _pages(self, source: Source, size: int) -> AsyncIterator[list[dict[str, Any]]]:
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
