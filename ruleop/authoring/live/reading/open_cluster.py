"""A cluster, opened for reading: its kinds, its objects, and what it says about the operator."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.authoring.live.operator import Operator, find_operator
from ruleop.authoring.live.reading.read_only_connection import ReadOnlyConnection, connected
from ruleop.authoring.live.reading.reader import Reader
from ruleop.authoring.live.reading.served_kinds import LiveKinds
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.nearest import did_you_mean
from ruleop.operator.wire.client.server_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection

    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.kinds import GroupKind, Object
    from ruleop.operator.wire.client.discovery import Catalogue, DiscoveredResource
    from ruleop.operator.wire.cluster_flags import AccessFlags
    from ruleop.planning import Plan


class NotFoundError(RuleopError):
    """The object does not exist."""


class UnknownKindError(RuleopError):
    """The cluster serves no kind of this name, or several."""


@dataclass(frozen=True, slots=True)
class LiveCluster:
    access: AccessFlags
    connection: ReadOnlyConnection
    reader: Reader
    kinds: LiveKinds
    operator: Operator
    finish: Callable[[Callable[[], Plan]], Awaitable[Plan]] | None = None  # makes a plan beside a busy loop

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

    async def named(self, kind: Kind, name: str) -> Object:
        """The object of this name. Raises NotFoundError, which says in which other namespaces there is one."""
        resource = self.reader.resource(kind)
        if resource is None:
            raise NotFoundError(f"the cluster does not serve {kind}")
        key = self.key(resource, name)
        if (found := await self.reader.get(kind, key)) is not None:
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


@contextlib.asynccontextmanager
async def open_cluster(access: AccessFlags) -> AsyncIterator[LiveCluster]:
    """Raises NotConnectedError."""
    async with connected(access.kubeconfig, access.context) as connection:
        reader = Reader(connection)
        operator = await find_operator(reader, access.name, access.operator_namespace)
        yield LiveCluster(access, connection, reader, LiveKinds(reader, connection.discovery), operator)


def find_kind(catalogue: Catalogue, text: str, preferred: Collection[GroupKind] = ()) -> DiscoveredResource:
    """`text`: as in `kubectl get`: App, apps, app, apps.myapp.k8s.io. Of several kinds with this name, that among the
    `preferred` ones is meant."""
    name, _, group = text.lower().partition(".")
    kinds = list(catalogue.preferred.values())
    found = [each for each in kinds if name in _names(each) and _is_group(group, each)]
    if len(found) > 1:
        found = [each for each in found if each.info.kind.versionless in preferred] or found
    if len(found) > 1 and not group:  # as kubectl: built-in kinds of the core group come first
        found = [each for each in found if not each.info.kind.group] or found
    if len(found) == 1:
        return found[0]
    if found:
        titles = " or ".join(sorted(each.info.title for each in found))
        raise UnknownKindError(f"{text} is ambiguous: name {titles}")
    known = {each.info.kind.kind for each in kinds} | {name for each in kinds for name in _names(each)}
    raise UnknownKindError(f"the cluster serves no kind {text!r}{did_you_mean(text.partition('.')[0], sorted(known))}")


def _names(served: DiscoveredResource) -> set[str]:
    return {served.info.kind.kind.lower(), served.info.plural.lower(), *map(str.lower, served.aliases)}


def _is_group(group: str, served: DiscoveredResource) -> bool:
    """Whether the group is this one. A version may precede it, as in `deployments.v1.apps`."""
    kind = served.info.kind
    return group in {"", kind.group, kind.version, f"{kind.version}.{kind.group}"}
