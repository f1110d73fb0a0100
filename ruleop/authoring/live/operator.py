"""The operator that runs in a cluster: its namespace, the inventory of the objects that its rules wrote, and, by the
Leases of all its processes, the process that reconciles a custom resource."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.buckets import bucket_of, owner_of
from ruleop.core.kinds import GroupKind, Kind, ObjectKey
from ruleop.core.labels import labels_of, meets
from ruleop.core.names import OPERATOR_LABEL, RESERVED_PREFIX
from ruleop.operator.engine.manager.inventory import NOTHING, InventoryEntry, decode, inventory_key
from ruleop.operator.engine.reconcile.owner_key import owner_key_key
from ruleop.operator.engine.revisions.revision_data import revisions_key
from ruleop.operator.engine.rollouts.rollout_store import rollouts_key
from ruleop.operator.engine.shards.process_leases import read_lease
from ruleop.operator.kube.client.server_errors import ApiError
from ruleop.operator.kube.leader.shards import NO_SHARD, requirements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ruleop.authoring.live.reading.reader import Reader
    from ruleop.core.kinds import Object

CONFIG_MAP = Kind("", "v1", "ConfigMap")


@dataclass(frozen=True, slots=True)
class Operator:
    name: str
    namespace: str = ""  # empty: not found
    entries: Mapping[GroupKind, InventoryEntry] = field(default_factory=dict)

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
    """The operator of this name, by its inventory. Without a namespace, all are searched: a person's context rarely is
    in the operator's. Without the permission for that, nothing is known of it."""
    key = inventory_key(namespace, name)
    try:
        if namespace:
            found = await reader.get(CONFIG_MAP, key)
            return Operator(name, namespace, decode((found or {}).get("data") or {}))
        async for page in reader.pages(CONFIG_MAP, fields=f"metadata.name={key.name}"):
            for each in page:
                return Operator(name, each["metadata"]["namespace"], decode(each.get("data") or {}))
    except ApiError:
        pass
    return Operator(name, namespace)


LEASE: Final = Kind("coordination.k8s.io", "v1", "Lease")
STALE_LEASE: Final = dt.timedelta(minutes=1)  # its holder renews it every few seconds


async def process_of(reader: Reader, operator: Operator, resource: Object) -> str:
    """A sentence. Empty without a Lease: the operator runs without leader election, or elsewhere."""
    if not operator.namespace:
        return ""
    key = ObjectKey(LEASE.group, LEASE.kind, operator.namespace, operator.name)
    try:
        label = f"{OPERATOR_LABEL}={operator.name}"
        leases: list[Object] = [
            each async for page in reader.pages(LEASE, operator.namespace, labels=label) for each in page
        ]
        if not leases and (one := await reader.get(LEASE, key)) is not None:
            leases = [one]  # of an earlier version
    except ApiError:
        return ""
    return _sentence(leases, operator, resource)


def _sentence(leases: Sequence[Object], operator: Operator, resource: Object) -> str:
    by_name = {each["metadata"]["name"]: each for each in leases}
    processes = sorted((read_lease(each, operator.name) for each in leases), key=lambda each: each.since)
    epoch = max((each.epoch for each in processes if each.holder and each.epoch is not None), default=None)
    if epoch is not None and epoch.count:
        bucket = bucket_of(resource["metadata"]["uid"])
        ordinal = owner_of(bucket, epoch.count)
        shard = next((each for each in processes if each.ordinal == ordinal and each.holder), None)
        which = f"shard {ordinal} of {epoch.count}, which has its bucket {bucket}"
        if shard is None:
            return f"no process is {which}: is its pod running?"
        return f"{_holds(by_name[shard.name])}; it is {which}"
    matching = [
        each
        for each in processes
        if each.ordinal == NO_SHARD and meets(labels_of(resource), requirements(each.selector))
    ]
    if not matching and processes:
        selectors = ", ".join(f'"{each.selector}"' for each in processes if each.selector)
        return f"no process reconciles it: its labels match none of the selectors {selectors}"
    if not matching:
        return ""
    return _holds(by_name[next((each for each in matching if each.holder), matching[0]).name])


def _holds(lease: Object) -> str:
    spec: Mapping[str, Any] = lease.get("spec") or {}
    name = f"{lease['metadata'].get('namespace', '')}/{lease['metadata']['name']}"
    holder, renewed = spec.get("holderIdentity"), str(spec.get("renewTime") or "")[:19]
    if not holder:
        return f"no operator holds the Lease {name}: is it running?"
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(f"{renewed}Z") if renewed else dt.timedelta.max
    late = ": is it running?" if age > STALE_LEASE else ""
    return f"{holder} holds the Lease {name}, renewed at {renewed}Z{late}"
