"""Discovery of the kinds that the cluster serves, and of their schemas.

Two requests list all kinds of all groups (aggregated discovery), and are nearly free when nothing changed (ETag).
Nothing here polls: call `refresh` when a CRD changes, or when a kind is answered with 404.

An aggregated API server that does not answer makes only its own group versions stale: their kinds stay as they were, so
that a failing metrics server removes no kind.

Schemas are in the OpenAPI documents, one per group version, up to a megabyte each. They are fetched on demand and named
by a hash: the same hash is never fetched twice. Built-in kinds are in the packaged table.
"""

from __future__ import annotations

import asyncio
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.kubernetes.schema import OpenApi
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import parse_object, reading
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.operator.wire.client.client import Client

AGGREGATED = ", ".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)


@dataclass(frozen=True, slots=True)
class DiscoveredResource:
    """A kind as the cluster serves it: `info` is what requests are made of."""

    info: ResourceInfo
    verbs: frozenset[str]
    subresources: frozenset[str]
    preferred: bool  # the version that the server would choose for this kind
    aliases: frozenset[str] = frozenset()  # the singular and the short names: deployment, deploy


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The kinds that were served at one moment."""

    kinds: Mapping[Kind, DiscoveredResource] = field(default_factory=dict)
    preferred: Mapping[GroupKind, DiscoveredResource] = field(default_factory=dict)
    stale: frozenset[tuple[str, str]] = frozenset()  # group versions whose server does not answer

    def get(self, kind: Kind | GroupKind) -> DiscoveredResource | None:
        """The kind, in its version or, for a kind without one, in the version that the server prefers."""
        return self.kinds.get(kind) if isinstance(kind, Kind) else self.preferred.get(kind)


def read_catalogue(documents: list[Mapping[str, Any]], before: Catalogue) -> Catalogue:
    """The catalogue of the APIGroupDiscoveryLists of /api and /apis, with kinds of `before` for servers that do not
    respond."""
    kinds: dict[Kind, DiscoveredResource] = {}
    preferred: dict[GroupKind, DiscoveredResource] = {}
    stale: set[tuple[str, str]] = set()
    for document in documents:
        for group in document.get("items") or ():
            name = (group.get("metadata") or {}).get("name") or ""
            for version in group.get("versions") or ():
                if version.get("freshness") == "Stale":
                    stale.add((name, version["version"]))
                    found = [
                        served
                        for kind, served in before.kinds.items()
                        if (kind.group, kind.version) == (name, version["version"])
                    ]
                else:
                    found = [
                        _served(name, version["version"], each)
                        for each in version.get("resources") or ()
                        if each.get("responseKind")
                    ]
                for served in found:
                    kind = served.info.kind
                    # Versions come in the server's order of preference.
                    first = kind.versionless not in preferred
                    kinds[kind] = replace(served, preferred=first)
                    preferred.setdefault(kind.versionless, kinds[kind])
    return Catalogue(kinds, preferred, frozenset(stale))


def _served(group: str, version: str, resource: Mapping[str, Any]) -> DiscoveredResource:
    subresources = frozenset(each["subresource"] for each in resource.get("subresources") or ())
    # A resource's kind may be of another group (scale of autoscaling), a main resource's never is.
    kind = Kind(group, version, resource["responseKind"]["kind"])
    info = ResourceInfo(resource["resource"], resource.get("scope") == "Namespaced", "status" in subresources, kind)
    aliases = frozenset(filter(None, (resource.get("singularResource"), *(resource.get("shortNames") or ()))))
    return DiscoveredResource(
        info, frozenset(resource.get("verbs") or ()), subresources, preferred=False, aliases=aliases
    )


@dataclass(frozen=True, slots=True)
class DiscoveryDifference:
    """The outcome of a refresh. A kind that changed (scope, plural, subresources) needs a new watch."""

    appeared: frozenset[Kind] = frozenset()
    changed: frozenset[Kind] = frozenset()
    gone: frozenset[Kind] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.appeared or self.changed or self.gone)


def difference(before: Catalogue, after: Catalogue) -> DiscoveryDifference:
    common = before.kinds.keys() & after.kinds.keys()
    return DiscoveryDifference(
        appeared=frozenset(after.kinds.keys() - before.kinds.keys()),
        changed=frozenset(kind for kind in common if before.kinds[kind].info != after.kinds[kind].info),
        gone=frozenset(before.kinds.keys() - after.kinds.keys()),
    )


class Discovery:
    """One per API server. `catalogue` is empty until the first `refresh`."""

    def __init__(self, client: Client) -> None:
        self.catalogue = Catalogue()
        self._client = client
        self._documents: dict[str, tuple[Mapping[str, Any], str]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._index: Mapping[str, str] | None = None  # of group versions ("apis/apps/v1") to the URL with the hash
        self._index_etag = ""
        self._index_due = True
        self._openapi: dict[str, tuple[str, OpenApi]] = {}
        self._index_lock = asyncio.Lock()
        self._openapi_locks: dict[str, asyncio.Lock] = {}

    def get(self, kind: Kind | GroupKind) -> DiscoveredResource | None:
        return self.catalogue.get(kind)

    def resource(self, kind: Kind) -> ResourceInfo | None:
        found = self.catalogue.kinds.get(kind)
        return found.info if found is not None else None

    async def refresh(self) -> DiscoveryDifference:
        """Reads the catalogue again. Raises ApiError, and keeps the old one, if the server does not answer."""
        async with self._one_at_a_time:
            documents = [await self._document(path) for path in ("/api", "/apis")]
            before, known = self.catalogue, dict(self._documents)
            self._documents.clear()  # of another form, they are fetched again
            with reading(requests.document("/apis")):
                self.catalogue = read_catalogue(documents, before)
            self._documents |= known
            self._index_due = True
            return difference(before, self.catalogue)

    async def openapi(self, group: str, version: str) -> OpenApi | None:
        """The schemas of a group version; None if the server publishes none, as in the first seconds of a new CRD.

        Asks the server only after a `refresh`, and fetches the document only if its hash is new. A slow document delays
        no other.
        """
        async with self._index_lock:
            if self._index_due or self._index is None:
                self._index_due = False
                try:
                    await self._read_index()
                except ApiError:
                    self._index_due = True
                    raise
        name = f"apis/{group}/{version}" if group else f"api/{version}"
        async with self._openapi_locks.setdefault(name, asyncio.Lock()):
            url = (self._index or {}).get(name)
            if url is None:
                self._openapi.pop(name, None)
                return None
            known = self._openapi.get(name)
            if known is None or known[0] != url:
                request = requests.document(url)
                document = await self._client.send(request)
                with reading(request):
                    known = (url, OpenApi(document))
                self._openapi[name] = known
            return known[1]

    async def _read_index(self) -> None:
        request = requests.document("/openapi/v3", etag=self._index_etag)
        body, etag = await self._client.fetch(request)
        if body:
            with reading(request):
                paths = parse_object(body, request).get("paths") or {}
                self._index = {name: entry["serverRelativeURL"] for name, entry in paths.items()}
        self._index_etag = etag

    async def _document(self, path: str) -> Mapping[str, Any]:
        known, etag = self._documents.get(path, ({}, ""))
        try:
            request = requests.document(path, accept=AGGREGATED, etag=etag)
            body, etag = await self._client.fetch(request)
        except ApiError as error:
            if error.problem is Problem.UNSUPPORTED:
                raise _too_old(self._client.server) from error
            raise
        if not body:
            return known
        document = parse_object(body, request)
        if document.get("kind") != "APIGroupDiscoveryList":
            raise _too_old(self._client.server)
        self._documents[path] = (document, etag)
        return document


def _too_old(server: str) -> RuleopError:
    return RuleopError(f"{server} has no aggregated discovery; ruleop needs Kubernetes 1.27 or later")
