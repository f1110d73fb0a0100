"""Nodes: the taints that tell that one is not ready, or cordoned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.controllers.machinery import Controller
from ruleop.localcluster.kinds.resources import NODES
from ruleop.localcluster.timestamps import now

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.store.object_store import Stored

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"


class Nodes(Controller):
    resource = NODES

    def reconcile(self, found: Stored) -> None:
        spec = found.obj["spec"]
        given = spec.get("taints") or []
        needed = {NOT_READY: not _is_ready(found.obj), UNSCHEDULABLE: bool(spec.get("unschedulable"))}
        taints = [each for each in given if needed.get(each["key"], True)]
        missing = [key for key, is_needed in needed.items() if is_needed and key not in {each["key"] for each in given}]
        taints += [{"key": key, "effect": "NoSchedule", "timeAdded": now()} for key in missing]
        if taints != given:
            rest = {name: each for name, each in spec.items() if name != "taints"}
            new = {**found.obj, "spec": {**rest, "taints": taints} if taints else rest}
            self.machinery.update(NODES, found, new)


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
