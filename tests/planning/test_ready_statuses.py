"""The examples of ready objects are ready by the rules of their kinds."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.authoring.ruletests.plan_mode import READY_STATUSES, made_ready
from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape
from ruleop.planning.child.readiness import CHECKS, readiness

LIST = Shape(type="list")
WITH_CONDITIONS = Shape(type="object", fields={"status": Shape(type="object", fields={"conditions": LIST})})


def test_each_kind_with_a_rule_of_its_own_has_an_example():
    assert READY_STATUSES.keys() == CHECKS.keys()


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("apps/v1", "Deployment", {"replicas": 3}),
        ("apps/v1", "Deployment", {}),
        ("apps/v1", "StatefulSet", {"replicas": 0}),
        ("apps/v1", "StatefulSet", {"replicas": 2}),
        ("apps/v1", "DaemonSet", {}),
        ("apps/v1", "ReplicaSet", {"replicas": 2}),
        ("batch/v1", "Job", {"completions": 3}),
        ("v1", "Pod", {}),
        ("v1", "PersistentVolumeClaim", {"resources": {"requests": {"storage": "1Gi"}}}),
        ("v1", "Service", {"type": "LoadBalancer"}),
        ("v1", "Service", {}),
        ("v1", "Namespace", {}),
        ("v1", "ConfigMap", {}),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", {}),
        ("apiregistration.k8s.io/v1", "APIService", {}),
        ("policy/v1", "PodDisruptionBudget", {}),
    ],
)
@pytest.mark.parametrize("generation", [None, 3])
def test_a_built_in_kind_becomes_ready(
    api_version: str, kind: str, spec: dict[str, Any], generation: int | None
) -> None:
    metadata = {"name": "a"} | ({"generation": generation} if generation else {})
    obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    shape = builtin_shape(Kind.of(obj)) or UNKNOWN
    ready = made_ready(obj, shape)
    assert readiness(ready, shape).ready
    assert made_ready(ready, shape) is ready


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"conditions": []},
        {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}]},
        {"conditions": [{"type": "Available", "status": "Unknown"}]},
        {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}], "observedGeneration": 1},
    ],
)
def test_a_custom_kind_becomes_ready_by_its_condition(status: dict[str, Any]) -> None:
    metadata = {"name": "a", "generation": 2}
    obj = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "status": status}
    ready = made_ready(obj, WITH_CONDITIONS)
    assert readiness(ready, WITH_CONDITIONS).ready
    others = [each for each in status.get("conditions", ()) if each["type"] == "Other"]
    assert all(each in ready["status"]["conditions"] for each in others)
