"""Reads a cluster: its kinds, single objects, and lists page by page, so that a large list never is in memory.

What was read so far is there as planning asks for it. Planning is a pure function and cannot read: what it asks for and
is not known is noted in `unread`, and the pass is planned again once that has been read.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.kubernetes.schema import SchemaError
from ruleop.operator.cache import UNPUBLISHED, Published, kind_info
from ruleop.operator.server_api import ServerApi
from ruleop.operator.wire.auth.credentials import find_credentials
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import Client, Session, reading, stored_object
from ruleop.operator.wire.client.discovery import Discovery
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.http.access import CredentialsError
from ruleop.planning import KindInfo, Served
from ruleop.planning.model.managers import managers_on
from ruleop.planning.model.marks import PART_OF, names_an_owner
from ruleop.planning.model.observed import FixedObjects, Query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.language.rules import Observe
    from ruleop.operator.wire.http.connection import PreparedRequest


# -- connection --------------------------------------------------------------------------------------------------------
# It changes nothing: one client rejects every request that does not only
# read, and the other makes a dry run of it.


class NotConnectedError(RuleopError):
    """The cluster cannot be used: no credentials, no answer, or no permission to discover its kinds."""


class ReadingClient(Client):
    """A client that sends no other requests than GET, whatever is asked of it."""

    async def fetch(self, request: PreparedRequest) -> tuple[bytes, str]:
        if request.method != "GET":
            raise RuleopError(f"{request.verb} {request.resource}: this command only reads")
        return await super().fetch(request)


class DryRunClient(Client):
    """A client whose writes are all dry runs, whatever is asked of it."""

    async def fetch(self, request: PreparedRequest) -> tuple[bytes, str]:
        return await super().fetch(requests.as_dry_run(request))


@contextlib.asynccontextmanager
async def connected(kubeconfig: str, context: str) -> AsyncIterator[Reader]:
    """Connects, and discovers the kinds that the cluster serves. Raises NotConnectedError."""
    try:
        credentials = find_credentials(kubeconfig, context, environ=os.environ)
        session = await Session.open(credentials)
    except CredentialsError as error:
        raise NotConnectedError(str(error)) from error
    try:
        reader = Reader(session, credentials.namespace or "default")
        try:
            await reader.discovery.refresh()
        except ApiError as error:
            raise NotConnectedError(f"{session.server}: {error}") from error
        yield reader
    finally:
        await session.close()


# -- objects -----------------------------------------------------------------------------------------------------------

PAGE: Final = 250
"""Objects of one page. They are read in full: a page of Secrets of a megabyte each should still fit into memory."""

METADATA_PAGE: Final = 500


class Reader:
    def __init__(self, session: Session, namespace: str, discovery: Discovery | None = None) -> None:
        """`namespace` of the context. `discovery`: that of an operator, which keeps it up to date."""
        self.session, self.namespace = session, namespace
        self.client = ReadingClient(session)
        self.discovery = discovery if discovery is not None else Discovery(self.client)

    def writing(self) -> ServerApi:
        """The API server for the commands that also write."""
        return ServerApi(Client(self.session), self.resource)

    def resource(self, kind: Kind) -> ResourceInfo | None:
        """The resource of this kind; None if the cluster does not serve it."""
        return self.discovery.resource(kind)

    def resources(self) -> list[ResourceInfo]:
        """All kinds whose objects can be listed, each in the version that the server prefers."""
        found = self.discovery.catalogue.preferred.values()
        return [each.info for each in found if {"get", "list"} <= each.verbs]

    def preferred(self, kind: GroupKind) -> Kind | None:
        """The kind in the version that the server prefers; None if it is not served."""
        served = self.discovery.catalogue.get(kind)
        return served.info.kind if served is not None else None

    async def get(self, kind: Kind, key: ObjectKey) -> Object | None:
        """The object; None if it does not exist, or its kind is not served. Raises ApiError."""
        resource = self.resource(kind)
        if resource is None or (resource.namespaced and not key.namespace):
            return None
        return await ServerApi(self.client, self.resource).read(kind, key)

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
            answer = await self.client.send(request)
            with reading(request):
                items = [stored_object(each, request) for each in answer.get("items") or []]
                token = (answer.get("metadata") or {}).get("continue") or ""
            yield items
            if not token:
                return


class LiveObjects:
    """Implements `ruleop.planning.Objects`."""

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[ObjectKey, Object | None]] = {}  # None: does not exist
        self._children: dict[str, list[Object]] = {}
        self._patched: dict[str, set[ObjectKey]] = defaultdict(set)  # that had fields of an owner when they were read
        self.unread: dict[tuple[Kind, ObjectKey], None] = {}

    # -- what planning asks --------------------------------------------------------------------------------------------

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:  # noqa: ARG002 - all are whole
        if not version:  # of a history, which there is none of
            return self.find(key)
        kind = Kind(key.group, version, key.kind)
        if key not in self._objects.get(kind, ()):
            self.unread[kind, key] = None
        return self._objects.get(kind, {}).get(key)

    def find(self, key: ObjectKey) -> Object | None:
        """The object in any version, without asking for it."""
        found = (known.get(key) for kind, known in self._objects.items() if kind.versionless == key.group_kind)
        return next(filter(None, found), None)

    def children(self, part_of: str) -> Iterable[Object]:
        return self._children.get(part_of, ())

    def patched(self, part_of: str) -> Iterable[Object]:
        """The objects with fields of this owner, among those that were read."""
        return FixedObjects(filter(None, map(self.find, self._patched.get(part_of, ())))).patched(part_of)

    def select(self, query: Query) -> Sequence[Object]:
        known = self._objects.get(Kind(query.kind.group, query.version, query.kind.kind), {})
        return query.among(known)

    # -- what was read -------------------------------------------------------------------------------------------------

    def add(self, obj: Object) -> None:
        key = ObjectKey.of(obj)
        self._objects.setdefault(Kind.of(obj), {})[key] = obj
        for manager in managers_on(obj):
            self._patched[manager.part_of].add(key)

    def add_child(self, obj: Object) -> None:
        """Adds an object with ruleop's label. As in the operator's cache, it counts only if it names its owner."""
        self.add(obj)
        metadata = obj["metadata"]
        if names_an_owner(metadata, ObjectKey.of(obj), None):
            self._children.setdefault((metadata.get("labels") or {}).get(PART_OF, ""), []).append(obj)

    def add_missing(self, kind: Kind, keys: Iterable[ObjectKey]) -> None:
        """Notes that those of these objects do not exist that are not known."""
        known = self._objects.setdefault(kind, {})
        known.update({key: None for key in keys if key not in known})


# -- kinds -------------------------------------------------------------------------------------------------------------
# Those that the cluster serves, as planning asks for them. The schema of a custom kind is read when it is first
# needed.

CRD: Final = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class LiveKinds:
    """Implements `ruleop.planning.Kinds`. What it is asked and does not know is in `unread`, to be learned."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._definitions: dict[GroupKind, CustomResourceDefinition] = {}
        self._published: dict[Kind, Published] = {}
        self._learned: set[Kind] = set()
        self._infos: dict[Kind, KindInfo] = {}
        self.forbidden: set[GroupKind] = set()  # kinds that cannot be listed
        self.unread: set[Kind] = set()

    def info(self, kind: Kind) -> KindInfo:
        found = self._infos.get(kind)
        if found is None:
            resource = self._reader.resource(kind)
            if resource is not None and builtin_shape(kind) is None and kind not in self._learned:
                self.unread.add(kind)
            definition, published = self._definitions.get(kind.versionless), self._published.get(kind, UNPUBLISHED)
            found = kind_info(kind, resource, definition, published, state=self._state(kind))
            self._infos[kind] = found
        return found

    def state_of(self, observe: Observe) -> Served:
        return self._state(observe.kind)

    def _state(self, kind: Kind) -> Served:
        if self._reader.resource(kind) is None:
            return Served.UNSERVED
        return Served.FORBIDDEN if kind.versionless in self.forbidden else Served.SYNCED

    def forbid(self, kind: Kind) -> None:
        """Notes that the objects of this kind cannot be listed."""
        self.forbidden.add(kind.versionless)
        self._infos.clear()

    async def learn(self, kinds: Iterable[Kind]) -> None:
        """Reads the schemas of the kinds among these that are neither built in nor known."""
        for kind in dict.fromkeys(kinds):
            resource = self._reader.resource(kind)
            if resource is None or kind in self._learned or builtin_shape(kind) is not None:
                continue
            self._learned.add(kind)
            if kind.versionless not in self._definitions:
                await self._read_definition(kind, resource.title)
            if kind.versionless not in self._definitions:
                await self._read_published(kind)
        self.unread.clear()
        self._infos.clear()

    async def _read_definition(self, kind: Kind, title: str) -> None:
        key = ObjectKey(CRD.group, CRD.kind, "", title)
        try:
            found = await self._reader.get(CRD, key)
        except ApiError as error:
            if error.problem is not Problem.FORBIDDEN:
                raise
            return
        if found is not None:
            with contextlib.suppress(SchemaError):
                self._definitions[kind.versionless] = parse_crd(found)

    async def _read_published(self, kind: Kind) -> None:
        """The schema in the OpenAPI document. Without one, lists are compared as if they had no keys."""
        try:
            document = await self._reader.discovery.openapi(kind.group, kind.version)
        except RuleopError:
            return
        if document is not None:
            self._published[kind] = Published(document.shape(kind), document.schema(kind))


async def definitions_in_use(crds: Iterable[Object], kubeconfig: str, context: str) -> list[Object]:
    """The CRDs of the cluster that these would replace, whatever their plural is. Raises NotConnectedError and
    ApiError."""
    found = []
    async with connected(kubeconfig, context) as reader:
        for crd in crds:
            preferred = reader.preferred(GroupKind(crd["spec"]["group"], crd["spec"]["names"]["kind"]))
            served = reader.resource(preferred) if preferred is not None else None
            name = served.title if served is not None else crd["metadata"]["name"]
            if (definition := await reader.get(CRD, ObjectKey(CRD.group, CRD.kind, "", name))) is not None:
                found.append(definition)
    return found
