"""The operator that runs in a cluster: its namespace, and the inventory of the objects that its rules wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.core.kinds import GroupKind, Kind, ObjectKey
from ruleop.core.names import RESERVED_PREFIX
from ruleop.operator.engine.manager.inventory import InventoryEntry, decode, inventory_key
from ruleop.operator.engine.reconcile.owner_key import owner_key_key
from ruleop.operator.engine.revisions.revision_data import revisions_key
from ruleop.operator.engine.rollouts.rollout_store import rollouts_key
from ruleop.operator.kube.client.server_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.authoring.live.reading.reader import Reader

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
        return self.entries.get(kind, InventoryEntry())


async def find_operator(reader: Reader, name: str, namespace: str = "") -> Operator:
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
