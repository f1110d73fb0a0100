"""The names and the contents of the Leases by which the processes of one operator know each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.kubernetes.kinds import parse_version
from ruleop.kubernetes.names import EPOCH, OPERATOR_LABEL, SELECTOR, SINCE
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import reading
from ruleop.operator.wire.client.requests import Source
from ruleop.operator.wire.leader.election import LEASES
from ruleop.operator.wire.leader.shards import NO_SHARD, Epoch, ProcessLease

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.operator.wire.client.client import Client

_ORDINAL = re.compile(r"[0-9]{1,5}")


def lease_labels(name: str) -> dict[str, str]:
    return {OPERATOR_LABEL: name}


def read_lease(lease: Object, operator: str) -> ProcessLease:
    """Of any content: anybody with the permission may have written it."""
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    annotations: Mapping[str, Any] = metadata.get("annotations") or {}
    name, duration = metadata["name"], spec.get("leaseDurationSeconds")
    number = name.removeprefix(f"{operator}.")  # a dot: an operator may be named `ruleop-1`, but not `ruleop.1`
    version = metadata.get("resourceVersion") or ""
    return ProcessLease(
        name=name,
        ordinal=int(number) if number != name and _ORDINAL.fullmatch(number) else NO_SHARD,
        holder=str(spec.get("holderIdentity") or ""),
        epoch=Epoch.parse(annotations.get(EPOCH)),
        version=version,
        duration=float(duration) if isinstance(duration, int) else 15.0,
        since=parse_version(annotations.get(SINCE)) or parse_version(version),
        selector=str(annotations.get(SELECTOR) or ""),
    )


@dataclass(frozen=True, slots=True)
class ProcessLeases:
    """The Leases of all processes of an operator."""

    client: Client
    namespace: str
    name: str

    async def list(self) -> list[ProcessLease]:
        """As they are now: the server reads them from its storage. Raises ApiError."""
        source = Source(LEASES, self.namespace, f"{OPERATOR_LABEL}={self.name}")
        request = requests.list_page(source, limit=0)
        response = await self.client.send(request)
        with reading(request):
            return [read_lease(each, self.name) for each in response["items"]]
