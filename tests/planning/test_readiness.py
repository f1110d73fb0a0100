"""The readiness of each kind, as a table of statuses that controllers write."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.core.planning.child.readiness import readiness
from ruleop.core.schema.shape import Shape


def obj(kind: str, spec: Any = None, status: Any = None, api: str = "apps/v1", **metadata: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "generation": 2, **metadata}}
    return found | {name: value for name, value in (("spec", spec), ("status", status)) if value is not None}


def when(type_: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": status, **more}]}


SEEN = {"observedGeneration": 2}
FULL = SEEN | {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "readyReplicas": 3}
REVISION = {"currentRevision": "a", "updateRevision": "a"}
BATCH, CORE, POLICY = "batch/v1", "v1", "policy/v1"
CRDS, APIS, THING = "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1", "cert-manager.io/v1"
NOT_SEEN = "its controller has not seen the latest change"

TABLE: list[tuple[str, dict[str, Any], str]] = [
    ("a deployment in full", obj("Deployment", {"replicas": 3}, FULL), ""),
    ("a deployment that nobody has seen", obj("Deployment", {"replicas": 3}), NOT_SEEN),
    ("a deployment changed since", obj("Deployment", {"replicas": 3}, FULL | {"observedGeneration": 1}), NOT_SEEN),
    (
        "a deployment of one by default",
        obj("Deployment", {}, SEEN | {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}),
        "",
    ),
    ("a deployment of none", obj("Deployment", {"replicas": 0}, SEEN), ""),
    (
        "a deployment on its way",
        obj("Deployment", {"replicas": 3}, FULL | {"updatedReplicas": 1}),
        "1 of 3 pods updated",
    ),
    (
        "a deployment with old pods",
        obj("Deployment", {"replicas": 3}, FULL | {"replicas": 4}),
        "old pods still exist",
    ),
    (
        "a deployment whose pods are not up",
        obj("Deployment", {"replicas": 3}, FULL | {"availableReplicas": 2}),
        "2 of 3 pods available",
    ),
    (
        "a deployment past its deadline",
        obj("Deployment", {"replicas": 3}, FULL | when("Progressing", "False", reason="ProgressDeadlineExceeded")),
        "! rollout exceeded its progress deadline",
    ),
    ("a deployment with a strange status", obj("Deployment", [], "text"), NOT_SEEN),
    ("a deployment with strange numbers", obj("Deployment", {"replicas": True}, FULL), ""),
    ("a stateful set in full", obj("StatefulSet", {"replicas": 3}, FULL | REVISION), ""),
    ("a stateful set changed since", obj("StatefulSet", {"replicas": 3}, {}), NOT_SEEN),
    (
        "a stateful set on its way",
        obj("StatefulSet", {"replicas": 3}, FULL | {"readyReplicas": 1}),
        "1 of 3 pods ready",
    ),
    ("a stateful set with too many", obj("StatefulSet", {"replicas": 2}, FULL), "surplus pods still exist"),
    (
        "a stateful set rolling",
        obj("StatefulSet", {"replicas": 3}, FULL | REVISION | {"updateRevision": "b"}),
        "rollout not complete",
    ),
    (
        "a stateful set updated by hand",
        obj(
            "StatefulSet",
            {"replicas": 3, "updateStrategy": {"type": "OnDelete"}},
            FULL | {"currentRevision": "a", "updateRevision": "b"},
        ),
        "",
    ),
    (
        "a stateful set updated in part",
        obj(
            "StatefulSet",
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            FULL | {"updatedReplicas": 1},
        ),
        "",
    ),
    (
        "a stateful set not yet updated in part",
        obj(
            "StatefulSet",
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            FULL | {"updatedReplicas": 0},
        ),
        "0 of 1 pods updated",
    ),
    (
        "a daemon set in full",
        obj("DaemonSet", {}, SEEN | {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}),
        "",
    ),
    ("a daemon set changed since", obj("DaemonSet", {}, {"desiredNumberScheduled": 2}), NOT_SEEN),
    (
        "a daemon set on its way",
        obj("DaemonSet", {}, SEEN | {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberAvailable": 2}),
        "1 of 2 pods updated",
    ),
    (
        "a daemon set not up",
        obj("DaemonSet", {}, SEEN | {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1}),
        "1 of 2 pods available",
    ),
    ("a replica set in full", obj("ReplicaSet", {"replicas": 3}, FULL), ""),
    ("a replica set changed since", obj("ReplicaSet", {"replicas": 3}, {}), NOT_SEEN),
    ("a replica set on its way", obj("ReplicaSet", {"replicas": 3}, SEEN), "0 of 3 pods available"),
    ("a job that is done", obj("Job", {}, when("Complete"), BATCH), ""),
    ("a job that failed", obj("Job", {}, when("Failed"), BATCH), "! failed"),
    ("a job that is suspended", obj("Job", {"suspend": True}, {}, BATCH), "suspended"),
    ("a job that runs", obj("Job", {}, when("Complete", "False"), BATCH), "running"),
    ("a pod that is ready", obj("Pod", {}, {"phase": "Running"} | when("Ready"), CORE), ""),
    ("a pod that is done", obj("Pod", {}, {"phase": "Succeeded"}, CORE), ""),
    ("a pod that starts", obj("Pod", {}, {"phase": "Pending"}, CORE), "not ready"),
    ("a pod that failed", obj("Pod", {}, {"phase": "Failed"}, CORE), "! failed"),
    ("a bound claim", obj("PersistentVolumeClaim", {}, {"phase": "Bound"}, CORE), ""),
    ("a claim", obj("PersistentVolumeClaim", {}, {"phase": "Pending"}, CORE), "not bound"),
    ("a service", obj("Service", {"type": "ClusterIP"}, {}, CORE), ""),
    (
        "a balancer with an address",
        obj("Service", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "1"}]}}, CORE),
        "",
    ),
    (
        "a balancer without",
        obj("Service", {"type": "LoadBalancer"}, {"loadBalancer": {}}, CORE),
        "no load balancer address yet",
    ),
    ("a namespace", obj("Namespace", {}, {"phase": "Active"}, CORE), ""),
    ("a namespace that is not there", obj("Namespace", {}, {}, CORE), "not active"),
    ("an established definition", obj("CustomResourceDefinition", {}, when("Established"), CRDS), ""),
    ("a definition", obj("CustomResourceDefinition", {}, {}, CRDS), "not established"),
    (
        "a CRD whose names conflict",
        obj("CustomResourceDefinition", {}, when("NamesAccepted", "False"), CRDS),
        "! names conflict with another CRD",
    ),
    ("an api service", obj("APIService", {}, when("Available"), APIS), ""),
    ("an api service that is away", obj("APIService", {}, when("Available", "False"), APIS), "not available"),
    ("a healthy budget", obj("PodDisruptionBudget", {}, SEEN | {"currentHealthy": 2, "desiredHealthy": 2}, POLICY), ""),
    (
        "a budget in need",
        obj("PodDisruptionBudget", {}, SEEN | {"currentHealthy": 1, "desiredHealthy": 2}, POLICY),
        "too few healthy pods",
    ),
    ("a budget changed since", obj("PodDisruptionBudget", {}, {}, POLICY), NOT_SEEN),
    ("a config map", obj("ConfigMap", None, None, CORE), ""),
    ("a custom object that is ready", obj("Certificate", {}, when("Ready"), THING), ""),
    ("one that is not", obj("Certificate", {}, when("Ready", "False"), THING), "condition Ready is False"),
    (
        "one that does not know",
        obj("Certificate", {}, {"conditions": [{"type": "Ready"}]}, THING),
        "condition Ready is Unknown",
    ),
    ("one that is available", obj("Thing", {}, when("Available"), THING), ""),
    ("one that is ready but for an older spec", obj("Thing", {}, when("Ready", observedGeneration=1), THING), NOT_SEEN),
    ("one that is ready for this spec", obj("Thing", {}, when("Ready", observedGeneration=2), THING), ""),
    (
        "one whose status is of an older spec",
        obj("Thing", {}, when("Ready") | {"observedGeneration": 1}, THING),
        NOT_SEEN,
    ),
    (
        "one whose status is of this spec as text",
        obj("Thing", {}, when("Ready", observedGeneration="2") | {"observedGeneration": "2"}, THING),
        "",
    ),
    ("one whose status is of an older spec as text", obj("Thing", {}, {"observedGeneration": "1"}, THING), NOT_SEEN),
    (
        "one with a condition of an older spec as text",
        obj("Thing", {}, when("Ready", observedGeneration="1"), THING),
        NOT_SEEN,
    ),
    ("one with a strange text for a generation", obj("Thing", {}, {"observedGeneration": "9" * 5000}, THING), NOT_SEEN),
    ("one with other conditions", obj("Thing", {}, when("Synced", "False"), THING), ""),
    ("one with strange conditions", obj("Thing", {}, {"conditions": ["x"]}, THING), ""),
    ("one without conditions", obj("Thing", {}, {}, THING), ""),
    (
        "anything that is going",
        obj("ConfigMap", None, None, CORE, deletionTimestamp="2026-01-01T00:00:00Z"),
        "being deleted",
    ),
]


@pytest.mark.parametrize(("live", "message"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_readiness_of_each_kind_follows_its_status(live: dict[str, Any], message: str):
    found = readiness(live)
    assert (found.ready, found.message, found.failed) == (
        message == "",
        message.removeprefix("! "),
        message.startswith("!"),
    )


def test_a_custom_kind_with_conditions_is_not_ready_before_its_controller_reports():
    shape = Shape(type="object", fields={"status": Shape(type="object", fields={"conditions": Shape()})})
    found = readiness(obj("Certificate", api=THING), shape)
    assert found.message == "its controller has not reported on it yet; if it never does, set `readyWhen` in the child"
    assert not found.ready
    assert readiness(obj("Certificate", {}, when("Ready"), THING), shape).ready
    assert readiness(obj("Certificate", api=THING), Shape(type="object", fields={"status": Shape()})).ready
    assert readiness(obj("NetworkPolicy", api="networking.k8s.io/v1"), shape).ready
