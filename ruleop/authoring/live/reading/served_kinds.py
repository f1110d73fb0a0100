"""The kinds that the cluster serves, as planning asks for them. The schema of a custom kind is read when it is first
needed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.reading.read_only_connection import connected
from ruleop.authoring.live.reading.reader import Reader
from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
from ruleop.kubernetes.schema import SchemaError
from ruleop.operator.cache import UNPUBLISHED, Published, kind_info
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import KindInfo, Served

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Observe
    from ruleop.operator.wire.client.discovery import Discovery

CRD: Final = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class LiveKinds:
    """Implements `ruleop.planning.Kinds`. What it is asked and does not know is in `unread`, to be learned."""

    def __init__(self, reader: Reader, discovery: Discovery) -> None:
        self._reader, self._discovery = reader, discovery
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
            document = await self._discovery.openapi(kind.group, kind.version)
        except RuleopError:
            return
        if document is not None:
            self._published[kind] = Published(document.shape(kind), document.schema(kind))


async def definitions_in_use(crds: Iterable[Object], kubeconfig: str, context: str) -> list[Object]:
    """The CRDs of the cluster that these would replace, whatever their plural is. Raises NotConnectedError and
    ApiError."""
    found = []
    async with connected(kubeconfig, context) as connection:
        reader = Reader(connection)
        for crd in crds:
            preferred = reader.preferred(GroupKind(crd["spec"]["group"], crd["spec"]["names"]["kind"]))
            served = reader.resource(preferred) if preferred is not None else None
            name = served.title if served is not None else crd["metadata"]["name"]
            if (definition := await reader.get(CRD, ObjectKey(CRD.group, CRD.kind, "", name))) is not None:
                found.append(definition)
    return found
