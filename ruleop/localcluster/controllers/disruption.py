"""PodDisruptionBudgets: how many of their pods may be evicted now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.labels import meets, requirements_of
from ruleop.localcluster.controllers.machinery import (
    Controller,
    is_being_deleted,
    is_over,
    is_ready,
    share,
    with_condition,
)
from ruleop.localcluster.kinds.resources import BUDGETS, PODS, REPLICA_SETS, STATEFUL_SETS
from ruleop.localcluster.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.object_store import Event, Name, Resource, Stored

_SCALED: Final = {"ReplicaSet": REPLICA_SETS, "StatefulSet": STATEFUL_SETS}


class DisruptionBudgets(Controller):
    resource = BUDGETS

    def concerned(self, resource: Resource, event: Event) -> Iterator[Name]:
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
        expected, desired = self._desired(spec, pods, namespace)
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

    def _desired(self, spec: Object, pods: list[Object], namespace: str) -> tuple[int, int]:
        """The number of pods there should be, and the number that must stay."""
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and not isinstance(least, str):
            return len(pods), int(least)
        expected = self._expected(pods, namespace)
        if most is not None:
            return expected, max(0, expected - share(most, expected))
        return expected, share(least or 1, expected)

    def _expected(self, pods: list[Object], namespace: str) -> int:
        """The number of pods that their controllers want; a pod without one counts as itself."""
        desired: dict[tuple[str, str], int] = {}
        alone = 0
        for pod in pods:
            owner = next(
                (each for each in pod["metadata"].get("ownerReferences") or [] if each.get("controller")), None
            )
            resource = _SCALED.get(owner["kind"]) if owner else None
            found = self.machinery.get(resource, namespace, owner["name"]) if owner and resource else None
            if found is None or owner is None:
                alone += 1
            else:
                desired[owner["kind"], owner["name"]] = found.obj["spec"].get("replicas", 1)
        return alone + sum(desired.values())
