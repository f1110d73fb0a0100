"""The readiness of each kind, as a table of statuses that controllers write."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ruleop.kubernetes.schema.shape import Shape
from ruleop.planning.child.readiness import readiness

VERSIONS = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"), "apps/v1"),
    "Job": "batch/v1",
    **dict.fromkeys(("Pod", "PersistentVolumeClaim", "Service", "Namespace", "ConfigMap"), "v1"),
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "APIService": "apiregistration.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    **dict.fromkeys(("Certificate", "Thing"), "cert-manager.io/v1"),
    "NetworkPolicy": "networking.k8s.io/v1",
}


def obj(kind: str, more: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "x", "generation": 2, **more.get("metadata", {})}
    return {"apiVersion": VERSIONS[kind], "kind": kind, **more, "metadata": metadata}


# What a controller wrote, and the message; "!" is in front of one of an object that failed.
TABLE = yaml.load(
    """
.full: &full {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3, readyReplicas: 3}
.unseen: &unseen its controller has not seen the latest change
a deployment in full: [Deployment, {spec: {replicas: 3}, status: *full}, ready]
a deployment that nobody has seen: [Deployment, {spec: {replicas: 3}}, *unseen]
a deployment changed since: [Deployment, {spec: {replicas: 3}, status: {<<: *full, observedGeneration: 1}}, *unseen]
a deployment of one by default: [Deployment, {spec: {}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}, ready]
a deployment of none: [Deployment, {spec: {replicas: 0}, status: {observedGeneration: 2}}, ready]
a deployment on its way: [Deployment, {spec: {replicas: 3}, status: {<<: *full, updatedReplicas: 1}}, 1 of 3 pods updated]
a deployment with old pods: [Deployment, {spec: {replicas: 3}, status: {<<: *full, replicas: 4}}, old pods still exist]
a deployment whose pods are not up: [Deployment, {spec: {replicas: 3}, status: {<<: *full, availableReplicas: 2}}, 2 of 3 pods available]
a deployment past its deadline: [Deployment, {spec: {replicas: 3}, status: {<<: *full, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}, "! rollout exceeded its progress deadline"]
a deployment with a strange status: [Deployment, {spec: [], status: text}, *unseen]
a deployment with strange numbers: [Deployment, {spec: {replicas: true}, status: *full}, ready]
a stateful set in full: [StatefulSet, {spec: {replicas: 3}, status: {<<: *full, currentRevision: a, updateRevision: a}}, ready]
a stateful set changed since: [StatefulSet, {spec: {replicas: 3}, status: {}}, *unseen]
a stateful set on its way: [StatefulSet, {spec: {replicas: 3}, status: {<<: *full, readyReplicas: 1}}, 1 of 3 pods ready]
a stateful set with too many: [StatefulSet, {spec: {replicas: 2}, status: *full}, surplus pods still exist]
a stateful set rolling: [StatefulSet, {spec: {replicas: 3}, status: {<<: *full, currentRevision: a, updateRevision: b}}, rollout not complete]
a stateful set updated by hand: [StatefulSet, {spec: {replicas: 3, updateStrategy: {type: OnDelete}}, status: {<<: *full, currentRevision: a, updateRevision: b}}, ready]
a stateful set updated in part: [StatefulSet, {spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, status: {<<: *full, updatedReplicas: 1}}, ready]
a stateful set not yet updated in part: [StatefulSet, {spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, status: {<<: *full, updatedReplicas: 0}}, 0 of 1 pods updated]
a daemon set in full: [DaemonSet, {spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}, ready]
a daemon set changed since: [DaemonSet, {spec: {}, status: {desiredNumberScheduled: 2}}, *unseen]
a daemon set on its way: [DaemonSet, {spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}, 1 of 2 pods updated]
a daemon set not up: [DaemonSet, {spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}}, 1 of 2 pods available]
a replica set in full: [ReplicaSet, {spec: {replicas: 3}, status: *full}, ready]
a replica set changed since: [ReplicaSet, {spec: {replicas: 3}, status: {}}, *unseen]
a replica set on its way: [ReplicaSet, {spec: {replicas: 3}, status: {observedGeneration: 2}}, 0 of 3 pods available]
a job that is done: [Job, {spec: {}, status: {conditions: [{type: Complete, status: "True"}]}}, ready]
a job that failed: [Job, {spec: {}, status: {conditions: [{type: Failed, status: "True"}]}}, "! failed"]
a job that is suspended: [Job, {spec: {suspend: true}, status: {}}, suspended]
a job that runs: [Job, {spec: {}, status: {conditions: [{type: Complete, status: "False"}]}}, running]
a pod that is ready: [Pod, {spec: {}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}, ready]
a pod that is done: [Pod, {spec: {}, status: {phase: Succeeded}}, ready]
a pod that starts: [Pod, {spec: {}, status: {phase: Pending}}, not ready]
a pod that failed: [Pod, {spec: {}, status: {phase: Failed}}, "! failed"]
a bound claim: [PersistentVolumeClaim, {spec: {}, status: {phase: Bound}}, ready]
a claim: [PersistentVolumeClaim, {spec: {}, status: {phase: Pending}}, not bound]
a service: [Service, {spec: {type: ClusterIP}, status: {}}, ready]
a balancer with an address: [Service, {spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: "1"}]}}}, ready]
a balancer without: [Service, {spec: {type: LoadBalancer}, status: {loadBalancer: {}}}, no load balancer address yet]
a namespace: [Namespace, {spec: {}, status: {phase: Active}}, ready]
a namespace that is not there: [Namespace, {spec: {}, status: {}}, not active]
an established definition: [CustomResourceDefinition, {spec: {}, status: {conditions: [{type: Established, status: "True"}]}}, ready]
a definition: [CustomResourceDefinition, {spec: {}, status: {}}, not established]
a CRD whose names conflict: [CustomResourceDefinition, {spec: {}, status: {conditions: [{type: NamesAccepted, status: "False"}]}}, "! names conflict with another CRD"]
an api service: [APIService, {spec: {}, status: {conditions: [{type: Available, status: "True"}]}}, ready]
an api service that is away: [APIService, {spec: {}, status: {conditions: [{type: Available, status: "False"}]}}, not available]
a healthy budget: [PodDisruptionBudget, {spec: {}, status: {observedGeneration: 2, currentHealthy: 2, desiredHealthy: 2}}, ready]
a budget in need: [PodDisruptionBudget, {spec: {}, status: {observedGeneration: 2, currentHealthy: 1, desiredHealthy: 2}}, too few healthy pods]
a budget changed since: [PodDisruptionBudget, {spec: {}, status: {}}, *unseen]
a config map: [ConfigMap, {}, ready]
a custom object that is ready: [Certificate, {spec: {}, status: {conditions: [{type: Ready, status: "True"}]}}, ready]
one that is not: [Certificate, {spec: {}, status: {conditions: [{type: Ready, status: "False"}]}}, condition Ready is False]
one that does not know: [Certificate, {spec: {}, status: {conditions: [{type: Ready}]}}, condition Ready is Unknown]
one that is available: [Thing, {spec: {}, status: {conditions: [{type: Available, status: "True"}]}}, ready]
one that is ready but for an older spec: [Thing, {spec: {}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}, *unseen]
one that is ready for this spec: [Thing, {spec: {}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}, ready]
one whose status is of an older spec: [Thing, {spec: {}, status: {conditions: [{type: Ready, status: "True"}], observedGeneration: 1}}, *unseen]
one whose status is of this spec as text: [Thing, {spec: {}, status: {conditions: [{type: Ready, status: "True", observedGeneration: "2"}], observedGeneration: "2"}}, ready]
one whose status is of an older spec as text: [Thing, {spec: {}, status: {observedGeneration: "1"}}, *unseen]
one with a condition of an older spec as text: [Thing, {spec: {}, status: {conditions: [{type: Ready, status: "True", observedGeneration: "1"}]}}, *unseen]
one with other conditions: [Thing, {spec: {}, status: {conditions: [{type: Synced, status: "False"}]}}, ready]
one that has not finished: [Thing, {spec: {}, status: {conditions: [{type: Reconciling, status: "True"}, {type: Stalled, status: "False"}]}}, condition Reconciling is True]
one that cannot go on: [Thing, {spec: {}, status: {conditions: [{type: Reconciling, status: "False"}, {type: Stalled, status: "True"}]}}, "! condition Stalled is True"]
one that was ready and cannot go on: [Thing, {spec: {}, status: {conditions: [{type: Ready, status: "True"}, {type: Stalled, status: "True"}]}}, "! condition Stalled is True"]
one that was ready and is reconciling again: [Thing, {spec: {}, status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]}}, condition Reconciling is True]
one that is not ready and cannot go on: [Thing, {spec: {}, status: {conditions: [{type: Stalled, status: "True"}, {type: Ready, status: "False"}]}}, "! condition Ready is False"]
one that could not go on with an older spec: [Thing, {spec: {}, status: {conditions: [{type: Stalled, status: "True", observedGeneration: 1}]}}, *unseen]
one that has finished: [Thing, {spec: {}, status: {conditions: [{type: Reconciling, status: "False"}, {type: Stalled, status: "Unknown"}]}}, ready]
one with strange conditions: [Thing, {spec: {}, status: {conditions: [x]}}, ready]
one without conditions: [Thing, {spec: {}, status: {}}, ready]
anything that is going: [ConfigMap, {metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}, being deleted]
""",
    yaml.CSafeLoader,
)
ROWS = {title: row for title, row in TABLE.items() if not title.startswith(".")}


@pytest.mark.parametrize(("kind", "more", "message"), ROWS.values(), ids=ROWS)
def test_readiness_of_each_kind_follows_its_status(kind: str, more: dict[str, Any], message: str):
    found = readiness(obj(kind, more))
    assert (found.ready, found.message, found.failed) == (
        message == "ready",
        message.removeprefix("! ").removeprefix("ready"),
        message.startswith("!"),
    )


def test_a_generation_of_many_digits_is_not_that_of_this_spec():
    found = readiness(obj("Thing", {"spec": {}, "status": {"observedGeneration": "9" * 5000}}))
    assert (found.ready, found.message, found.failed) == (False, TABLE[".unseen"], False)


def test_a_custom_kind_with_conditions_is_not_ready_before_its_controller_reports():
    shape = Shape(type="object", fields={"status": Shape(type="object", fields={"conditions": Shape()})})
    found = readiness(obj("Certificate", {}), shape)
    assert found.message == "its controller has not reported on it yet; if it never does, set `readyWhen` in the child"
    assert not found.ready
    assert readiness(
        obj("Certificate", {"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}), shape
    ).ready
    assert readiness(obj("Certificate", {}), Shape(type="object", fields={"status": Shape()})).ready
    assert readiness(obj("NetworkPolicy", {}), shape).ready
