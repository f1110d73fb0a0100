"""A cluster, opened for reading: its kinds, its objects, and what it says about the operator."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.authoring.live.live_planner import LivePlanner
from ruleop.authoring.live.operator import Operator, find_operator
from ruleop.authoring.live.reading.kind_lookup import find_kind
from ruleop.authoring.live.reading.read_only_connection import Connection, connected
from ruleop.authoring.live.reading.reader import Reader
from ruleop.authoring.live.reading.served_kinds import LiveKinds
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.operator.wire.client.server_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from ruleop.authoring.live.live_planner import Finish
    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.kinds import GroupKind, Object
    from ruleop.language.rules import Project
    from ruleop.operator.wire.cluster_flags import Access


class NotFoundError(RuleopError):
    """The object does not exist."""


@dataclass(frozen=True, slots=True)
class LiveCluster:
    access: Access
    connection: Connection
    reader: Reader
    kinds: LiveKinds
    operator: Operator
    finish: Finish | None = None  # how plans are completed; by default at once

    @property
    def namespace(self) -> str:
        """The namespace of a custom resource whose namespace is not named."""
        return self.access.namespace or self.connection.namespace

    def find_kind(self, text: str, preferred: Collection[GroupKind]) -> ResourceInfo:
        """Raises UnknownKindError."""
        return find_kind(self.connection.discovery.catalogue, text, preferred).info

    def key(self, resource: ResourceInfo, name: str) -> ObjectKey:
        namespace = self.namespace if resource.namespaced else ""
        return ObjectKey(resource.kind.group, resource.kind.kind, namespace, name)

    async def get(self, kind: Kind, key: ObjectKey) -> Object | None:
        """Raises ApiError."""
        return await self.reader.get(kind, key)

    async def named(self, kind: Kind, name: str) -> Object:
        """The object of this name. Raises NotFoundError, which says in which other namespaces there is one."""
        resource = self.reader.resource(kind)
        if resource is None:
            raise NotFoundError(f"the cluster does not serve {kind}")
        key = self.key(resource, name)
        if (found := await self.get(kind, key)) is not None:
            return found
        where = f"{key.namespace}/{key.name}" if key.namespace else key.name
        others = await self._namespaces_of(kind, name) if resource.namespaced else []
        there = f" (namespaces with one of this name: {', '.join(others)}; use -n)" if others else ""
        raise NotFoundError(f"{resource.title} {where} does not exist{there}")

    async def _namespaces_of(self, kind: Kind, name: str) -> list[str]:
        found: list[str] = []
        with contextlib.suppress(ApiError):  # not permitted in all namespaces
            async for page in self.reader.pages(kind, fields=f"metadata.name={name}"):
                found += [each["metadata"]["namespace"] for each in page]
        return sorted(found)

    def planner(self, project: Project, *, expects_refusals: bool = False) -> LivePlanner:
        return LivePlanner(
            self.reader, self.kinds, self.operator, project, expects_refusals=expects_refusals, finish=self.finish
        )


@contextlib.asynccontextmanager
async def open_cluster(access: Access) -> AsyncIterator[LiveCluster]:
    """Raises NotConnectedError."""
    async with connected(access.kubeconfig, access.context) as connection:
        reader = Reader(connection)
        operator = await find_operator(reader, access.name, access.operator_namespace)
        yield LiveCluster(access, connection, reader, LiveKinds(reader, connection.discovery), operator)
