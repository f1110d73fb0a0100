"""The cluster IPs and node ports of all Services, kept current by each write, so that a new one reads no other."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ruleop.localcluster.kinds.resources import SERVICES

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.localcluster.store.object_store import Event, Store


class Allocations:
    def __init__(self, store: Store) -> None:
        self.addresses: Counter[str] = Counter()
        self.node_ports: Counter[int] = Counter()
        for each in store.all(SERVICES):
            self._count(each.obj, 1)
        store.listen(SERVICES, self._changed)

    def _changed(self, event: Event) -> None:
        if event.old is not None:
            self._count(event.old.obj, -1)
        if not event.deleted:
            self._count(event.new.obj, 1)

    def _count(self, service: Object, number: int) -> None:
        spec = service["spec"]
        if address := spec.get("clusterIP"):
            self.addresses[address] += number
        if health_port := spec.get("healthCheckNodePort"):
            self.node_ports[health_port] += number
        for port in spec.get("ports") or []:
            if node_port := port.get("nodePort"):
                self.node_ports[node_port] += number
