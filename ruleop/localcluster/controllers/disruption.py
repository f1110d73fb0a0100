"""PodDisruptionBudgets: how many of their pods may be evicted now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.kubernetes.labels import meets, requirements_of
from ruleop.localcluster.controllers.machinery import (
    LocalController,
    is_being_deleted,
    is_over,
    is_ready,
    share,
    with_condition,
)
from ruleop.localcluster.kinds import BUDGETS, PODS
from ruleop.localcluster.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.localcluster.object_store import Name, Resource, Stored, StoreEvent


class DisruptionBudgets(LocalController):
    resource = BUDGETS

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        yield from super().concerned(resource, event)
        if resource == PODS:
            for each in self.machinery.store.all(BUDGETS, event.new.name.namespace):
                yield each.name

    def reconcile(self, found: Stored) -> None:
        if is_being_deleted(found.obj):
            return
        spec, namespace = found.obj["spec"], found.name.namespace
        requirements = requirements_of(spec.get("selector") or {})
        pods = [
            each.obj
            for each in self.machinery.store.all(PODS, namespace)
            if meets(each.obj["metadata"].get("labels") or {}, requirements) and not is_over(each.obj)
        ]
        if not pods:
            self.machinery.record(found.obj, "NoPods", "No matching pods found", "controllermanager")
        expected, least, most = len(pods), spec.get("minAvailable"), spec.get("maxUnavailable")
        desired = max(0, expected - share(most, expected)) if most is not None else share(least or 1, expected)
        healthy = sum(is_ready(each) and not is_being_deleted(each) for each in pods)
        allowed = max(0, healthy - desired) if expected else 0
        generation = found.obj["metadata"]["generation"]
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
            "observedGeneration": generation,
        }
        status: dict[str, Any] = {
            "conditions": with_condition((found.obj.get("status") or {}).get("conditions"), condition, now()),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": generation,
        }
        self.machinery.update_status(BUDGETS, found, status)
