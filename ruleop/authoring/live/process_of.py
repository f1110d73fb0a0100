"""The process of the operator that reconciles a custom resource, by the Leases of all its processes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.buckets import bucket_of, owner_of
from ruleop.core.kinds import Kind, ObjectKey
from ruleop.core.labels import labels_of, meets
from ruleop.core.names import OPERATOR_LABEL
from ruleop.operator.engine.shards.process_leases import read_lease
from ruleop.operator.kube.client.server_errors import ApiError
from ruleop.operator.kube.leader.shards import NO_SHARD, requirements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ruleop.authoring.live.operator import Operator
    from ruleop.authoring.live.reading.reader import Reader
    from ruleop.core.kinds import Object

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
