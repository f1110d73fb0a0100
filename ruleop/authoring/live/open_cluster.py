"""A cluster, opened for reading: its kinds, its objects, and what it says about the operator."""

from __future__ import annotations

import contextlib
import datetime as dt
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.live.reader import LiveKinds, Reader, connected
from ruleop.authoring.report import listed
from ruleop.errors import RuleopError
from ruleop.kubernetes.buckets import BUCKETS, bucket_of, buckets_of, owner_of
from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
from ruleop.kubernetes.labels import labels_of, meets
from ruleop.kubernetes.names import OPERATOR_LABEL, PART_OF_LABEL, RESERVED_PREFIX
from ruleop.nearest import did_you_mean
from ruleop.operator.controllers import NOTHING, InventoryEntry, decode, inventory_key
from ruleop.operator.passes.owner_key import owner_key_key
from ruleop.operator.revisions import decode as decode_revisions
from ruleop.operator.revisions import revisions_key
from ruleop.operator.rollouts import OWN_LABEL, decode_records, rollouts_key
from ruleop.operator.shards import NO_SHARD, read_lease, requirements
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.kinds import GroupKind, Object
    from ruleop.operator.revisions import Revisions
    from ruleop.operator.wire.client.discovery import Catalogue, DiscoveredResource
    from ruleop.operator.wire.cluster_flags import AccessFlags
    from ruleop.planning import Plan
    from ruleop.planning.rollout import RolloutRecord


# -- operator ----------------------------------------------------------------------------------------------------------
# The operator that runs in a cluster: its namespace, the inventory of the objects that its rules wrote, and, by the
# Leases of all its processes, the process that reconciles a custom resource.

CONFIG_MAP = Kind("", "v1", "ConfigMap")
MAX_NAMED: Final = 8  # operators in a message
_CONFIG_MAPS: Final = (inventory_key, revisions_key, rollouts_key)


@dataclass(frozen=True, slots=True)
class Operator:
    name: str
    namespace: str = ""  # empty: not found
    entries: Mapping[GroupKind, InventoryEntry] = field(default_factory=dict)
    problem: str = ""  # why it is not known
    others: bool = False  # other operators are known
    is_absent: bool = False  # no namespace has anything of it

    @property
    def finalizer(self) -> str:
        return f"{RESERVED_PREFIX}{self.name}"

    @property
    def own(self) -> frozenset[ObjectKey]:
        """Its own objects, which no rule may write."""
        if not self.namespace:
            return frozenset()
        lease = ObjectKey("coordination.k8s.io", "Lease", self.namespace, self.name)
        keys = (each(self.namespace, self.name) for each in (inventory_key, revisions_key, rollouts_key, owner_key_key))
        return frozenset({lease, *keys})

    def entry(self, kind: GroupKind) -> InventoryEntry:
        return self.entries.get(kind, NOTHING)


async def find_operator(reader: Reader, name: str, namespace: str) -> Operator:
    """The operator of this name, by its ConfigMaps. Without a namespace, all are searched: a person's context rarely is
    in the operator's. Without the permission for that, nothing is known of it."""
    try:
        places = await _places(reader, name, namespace)
        if len(places) != 1:
            others = await _all_operators(reader)
            why = _why_unknown(name, namespace, places, others)
            return Operator(name, namespace, {}, why, bool(others), is_absent=not places and not namespace)
        inventory = await reader.get(CONFIG_MAP, inventory_key(places[0], name))
    except ApiError as error:
        why = f"{_unknown(name, namespace)}: {error}; use --operator-namespace"
        return Operator(name, namespace, problem="" if namespace else why)
    return Operator(name, places[0], decode((inventory or {}).get("data") or {}))


async def _places(reader: Reader, name: str, namespace: str) -> list[str]:
    """The namespaces with an object of the operator, of this one or of all. Without custom resources it has no
    inventory yet, and without permission for its revisions none of these."""
    for each in _CONFIG_MAPS:
        key = each(namespace, name)
        if namespace:
            found = [namespace] if await reader.get(CONFIG_MAP, key) is not None else []
        else:
            keys = await reader.keys(CONFIG_MAP, fields=f"metadata.name={key.name}")
            found = sorted(one.namespace for one in keys)
        if found:
            return found
    return []


def _why_unknown(name: str, namespace: str, places: Sequence[str], found: Collection[tuple[str, str]]) -> str:
    """A message that names the operators that are there instead."""
    if places:
        return f'several operators "{name}" found, in the namespaces {", ".join(places)}: use --operator-namespace'
    same = sorted(place for other, place in found if other == name)
    if same:
        return f"{_unknown(name, namespace)}; found in {', '.join(same)}: use --operator-namespace"
    if not found:
        return f"{_unknown(name, namespace)}: name its namespace with --operator-namespace, or itself with --name"
    others = listed([f'"{other}" in namespace {place}' for other, place in sorted(found)], MAX_NAMED)
    which = min(found)[0] if len(found) == 1 else "NAME"
    return f"{_unknown(name, namespace)}; found: {others}: use --name {which}"


def _unknown(name: str, namespace: str) -> str:
    return f'no operator "{name}" found' + (f" in namespace {namespace}" if namespace else "")


async def _all_operators(reader: Reader) -> set[tuple[str, str]]:
    """The names and namespaces of all operators of the cluster, as far as they can be listed."""
    try:
        keys = await reader.keys(CONFIG_MAP, labels=f"{OWN_LABEL},!{PART_OF_LABEL}")
    except ApiError:
        return set()
    suffixes = [key("", "").name for key in _CONFIG_MAPS]
    return {
        (key.name.removesuffix(suffix), key.namespace)
        for key in keys
        for suffix in suffixes
        if key.name.endswith(suffix) and key.name != suffix
    }


LEASE: Final = Kind("coordination.k8s.io", "v1", "Lease")
STALE_LEASE: Final = dt.timedelta(minutes=1)  # its holder renews it every few seconds


class Processes:
    """The processes of an operator, as far as their Leases can be read."""

    def __init__(self, operator: Operator, leases: Iterable[Object]) -> None:
        self.operator = operator
        found = [(read_lease(each, operator.name), each) for each in leases]
        self.leases = sorted(found, key=lambda each: each[0].since)
        epochs = (each.epoch for each, _ in found if each.holder and each.epoch is not None)
        epoch = max(epochs, default=None)
        self.shards = epoch.count if epoch is not None else 0

    @classmethod
    async def of(cls, reader: Reader, operator: Operator) -> Processes:
        try:
            return cls(operator, await read_leases(reader, operator))
        except ApiError:  # not permitted
            return cls(operator, ())

    def reconciling(self, resource: Object) -> str:
        """A sentence about the process that reconciles a custom resource. Empty without a Lease: the operator runs
        without leader election, or elsewhere."""
        if self.shards:
            bucket = bucket_of(resource["metadata"]["uid"])
            ordinal = owner_of(bucket, self.shards)
            lease = next((lease for each, lease in self.leases if each.ordinal == ordinal and each.holder), None)
            which = f"shard {ordinal} of {self.shards}, which has its bucket {bucket}"
            return f"{describe_lease(lease)}; it is {which}" if lease else f"no process is {which}: is its pod running?"
        labels = labels_of(resource)
        matching = [
            (each, lease)
            for each, lease in self.leases
            if each.ordinal == NO_SHARD and meets(labels, requirements(each.selector))
        ]
        if matching:
            return describe_lease(next((lease for each, lease in matching if each.holder), matching[0][1]))
        selectors = ", ".join(f'"{each.selector}"' for each, _ in self.leases if each.selector)
        return f"no process reconciles it: its labels match none of the selectors {selectors}" if self.leases else ""

    def missing(self) -> list[str]:
        """Sentences about processes that do not run: custom resources wait for them."""
        if self.shards:
            running = {each.ordinal for each, lease in self.leases if is_fresh(lease)}
            missing = [each for each in range(min(self.shards, BUCKETS)) if each not in running]
            buckets = sum(len(buckets_of(each, self.shards)) for each in missing)
            names = ", ".join(f"{self._stateful_set()}-{each}" for each in missing)
            return [f"{buckets} buckets have no process: is {names} running?"] if missing else []
        held = [lease for each, lease in self.leases if each.holder and each.ordinal == NO_SHARD]
        first = [lease for _, lease in self.leases][:1]
        return [describe_lease(each) for each in held or first if not is_fresh(each)]

    def _stateful_set(self) -> str:
        """Its name, by the pods that hold Leases."""
        pods = (each.holder.partition("_")[0] for each, _ in self.leases if each.holder and each.ordinal != NO_SHARD)
        return next((pod.rpartition("-")[0] for pod in pods), "") or self.operator.name


async def read_leases(reader: Reader, operator: Operator) -> list[Object]:
    """The Leases of all processes; none without leader election. Raises ApiError."""
    if not operator.namespace:
        return []
    label = f"{OPERATOR_LABEL}={operator.name}"
    leases: list[Object] = [
        each async for page in reader.pages(LEASE, operator.namespace, labels=label) for each in page
    ]
    key = ObjectKey(LEASE.group, LEASE.kind, operator.namespace, operator.name)
    if not leases and (one := await reader.get(LEASE, key)) is not None:
        return [one]  # of an earlier version
    return leases


def describe_lease(lease: Object) -> str:
    spec: Mapping[str, Any] = lease.get("spec") or {}
    name = f"{lease['metadata'].get('namespace', '')}/{lease['metadata']['name']}"
    holder = spec.get("holderIdentity")
    if not holder:
        return f"no operator holds the Lease {name}: is it running?"
    late = "" if is_fresh(lease) else ": is it running?"
    return f"{holder} holds the Lease {name}, renewed at {_renewed(lease)}Z{late}"


def is_fresh(lease: Object) -> bool:
    renewed = _renewed(lease)
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(f"{renewed}Z") if renewed else dt.timedelta.max
    return bool((lease.get("spec") or {}).get("holderIdentity")) and age <= STALE_LEASE


def _renewed(lease: Object) -> str:
    return str((lease.get("spec") or {}).get("renewTime") or "")[:19]


# -- cluster -----------------------------------------------------------------------------------------------------------


class UnknownKindError(RuleopError):
    """The cluster serves no kind of this name, or several."""


@dataclass(frozen=True, slots=True)
class LiveCluster:
    chosen: str  # the namespace that was named; empty: none
    reader: Reader
    kinds: LiveKinds
    operator: Operator
    finish: Callable[[Callable[[], Plan]], Awaitable[Plan]] | None = None  # makes a plan beside a busy loop

    @property
    def namespace(self) -> str:
        """The namespace of a custom resource whose namespace is not named."""
        return self.chosen or self.reader.namespace

    async def revisions(self) -> Revisions:
        """The revisions of the rules that the operator keeps. Raises ApiError."""
        return decode_revisions(
            await self.reader.get(CONFIG_MAP, revisions_key(self.operator.namespace, self.operator.name))
        )

    async def rollouts(self) -> dict[str, RolloutRecord]:
        """The records of the operator's rollouts, by watch. Raises ApiError."""
        key = rollouts_key(self.operator.namespace, self.operator.name)
        found = await self.reader.get(CONFIG_MAP, key)
        return decode_records((found or {}).get("data") or {})

    def find_kind(self, text: str, preferred: Collection[GroupKind]) -> ResourceInfo:
        """Raises UnknownKindError."""
        return find_kind(self.reader.discovery.catalogue, text, preferred).info

    async def named(self, kind: Kind, name: str) -> Object:
        """The object of this name. Raises RuleopError, which says in which other namespaces there is one."""
        resource = self.reader.resource(kind)
        if resource is None:
            raise RuleopError(f"the cluster does not serve {kind}")
        key = ObjectKey(kind.group, kind.kind, self.namespace if resource.namespaced else "", name)
        if (found := await self.reader.get(kind, key)) is not None:
            return found
        where = f"{key.namespace}/{key.name}" if key.namespace else key.name
        others = await self._namespaces_of(kind, name) if resource.namespaced else []
        there = f" (namespaces with one of this name: {', '.join(others)}; use -n)" if others else ""
        raise RuleopError(f"{resource.title} {where} does not exist{there}")

    async def _namespaces_of(self, kind: Kind, name: str) -> list[str]:
        found: list[str] = []
        with contextlib.suppress(ApiError):  # not permitted in all namespaces
            async for page in self.reader.pages(kind, fields=f"metadata.name={name}"):
                found += [each["metadata"]["namespace"] for each in page]
        return sorted(found)


@contextlib.asynccontextmanager
async def open_cluster(access: AccessFlags) -> AsyncIterator[LiveCluster]:
    """Raises NotConnectedError."""
    async with connected(access.kubeconfig, access.context) as reader:
        operator = await find_operator(reader, access.name, access.operator_namespace)
        yield LiveCluster(access.namespace, reader, LiveKinds(reader), operator)


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
