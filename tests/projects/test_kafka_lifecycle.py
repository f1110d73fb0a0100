"""The lifecycle of a Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.messages import ROOT
from tests.projects.samples import CONTAINERS, EVENTS, KAFKA, READY, WAITING, kafka, sample
from tests.projects.simulation import Simulation


@pytest.mark.slow
def test_brokers_wait_for_all_addresses() -> None:
    cluster = Simulation(ROOT / KAFKA)
    cluster.add(sample(KAFKA, "events"))
    assert cluster.reconcile() == [
        "create Service/events-headless",
        *(f"create Service/events-{number}" for number in range(3)),
        "create PodDisruptionBudget/events",
    ]
    cluster.settle("Service/events-0", "Service/events-2")
    assert cluster.reconcile() == []
    assert cluster.ready(EVENTS) == WAITING
    assert cluster.waits["config"] == "brokerService[1].status.loadBalancer.ingress[0].ip"
    assert [each["id"] for each in cluster.fields(EVENTS)["brokers"]] == [0, 1, 2]
    cluster.settle("Service/events-1")
    assert cluster.reconcile() == ["create ConfigMap/events-config", "create StatefulSet/events"]
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready(EVENTS) == READY
    hosts = [cluster[f"Service/events-{number}"]["status"]["loadBalancer"]["ingress"][0]["ip"] for number in range(3)]
    assert cluster.fields(EVENTS) == {
        "replicas": 3,
        "readyReplicas": 3,
        "bootstrap": "events-headless:9092",
        "brokers": [{"id": number, "host": host, "port": 9094} for number, host in enumerate(hosts)],
    }


@pytest.mark.slow
def test_five_brokers_are_scaled_to_three_and_then_to_six() -> None:
    cluster = kafka(5)
    cluster.edit(EVENTS, {"spec": {"replicas": 3}})
    assert cluster.reconcile() == ["create Job/events-drain-5-to-3"]
    assert cluster.ready(EVENTS) == WAITING
    assert cluster["StatefulSet/events"]["spec"]["replicas"] == 5
    cluster.settle("StatefulSet/events")
    assert cluster.reconcile() == []

    cluster.settle("Job/events-drain-5-to-3")
    writes = cluster.reconcile()
    assert writes[0] == "patch StatefulSet/events: spec.replicas"
    assert sorted(writes[1:]) == [
        "delete Job/events-drain-5-to-3: pruned",
        "delete Service/events-3: pruned",
        "delete Service/events-4: pruned",
        "patch ConfigMap/events-config: -data[broker-3] -data[broker-4]",
    ]
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready(EVENTS) == READY
    assert cluster["ConfigMap/events-config"]["data"].keys() == {
        "server.properties",
        "broker-0",
        "broker-1",
        "broker-2",
    }
    assert cluster.names == [
        "ConfigMap/events-config",
        EVENTS,
        "PodDisruptionBudget/events",
        "Service/events-0",
        "Service/events-1",
        "Service/events-2",
        "Service/events-headless",
        "StatefulSet/events",
    ]

    cluster.edit(EVENTS, {"spec": {"replicas": 6}})
    assert cluster.reconcile() == ["create Service/events-3", "create Service/events-4", "create Service/events-5"]
    assert cluster["StatefulSet/events"]["spec"]["replicas"] == 3
    cluster.settle()
    assert cluster.reconcile() == [
        "patch ConfigMap/events-config: +data[broker-3] +data[broker-4] +data[broker-5]",
        "patch StatefulSet/events: spec.replicas",
    ]
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.fields(EVENTS)["replicas"] == 6
    cluster.delete(EVENTS)
    assert cluster.reconcile() == []
    assert cluster.names == []


@pytest.mark.slow
def test_an_undesired_drain_is_deleted() -> None:
    cluster = kafka(5)
    cluster.edit(EVENTS, {"spec": {"replicas": 3}})
    cluster.reconcile()
    cluster.edit(EVENTS, {"spec": {"replicas": 5}})
    assert cluster.reconcile() == ["delete Job/events-drain-5-to-3: pruned"]
    assert cluster.ready(EVENTS) == READY


@pytest.mark.slow
def test_a_failed_drain_stops_the_scaling() -> None:
    cluster = kafka(5)
    cluster.edit(EVENTS, {"spec": {"replicas": 3}})
    cluster.reconcile()
    cluster.status("Job/events-drain-5-to-3", {"failed": 4, "conditions": [{"type": "Failed", "status": "True"}]})
    assert cluster.reconcile() == []
    assert cluster["StatefulSet/events"]["spec"]["replicas"] == 5
    assert cluster.conditions(EVENTS)["Ready"][:2] == ("False", "ChildFailed")
    assert cluster.conditions(EVENTS)["Stalled"][0] == "True"
    cluster.delete("Job/events-drain-5-to-3")  # the user retries
    assert cluster.reconcile() == ["create Job/events-drain-5-to-3"]


@pytest.mark.slow
def test_a_single_broker_has_no_disruption_budget() -> None:
    cluster = kafka(3)
    cluster.edit(EVENTS, {"spec": {"replicas": 1}})
    assert cluster.reconcile() == ["create Job/events-drain-3-to-1", "delete PodDisruptionBudget/events: pruned"]
    cluster.settle()
    assert cluster.reconcile()[0] == "patch StatefulSet/events: spec.replicas"
    cluster.settle()
    cluster.reconcile()
    assert cluster.ready(EVENTS) == READY


@pytest.mark.parametrize(
    ("spec", "writes"),
    [
        (
            {"config": {"num.partitions": 24}},
            [
                "patch ConfigMap/events-config: data[server.properties]",
                "patch StatefulSet/events: spec.template.metadata.annotations[checksum/config]",
            ],
        ),
        (
            {"memory": "8Gi"},
            [
                f"patch StatefulSet/events: {CONTAINERS}[kafka].env[KAFKA_HEAP_OPTS].value "
                + " ".join(f"{CONTAINERS}[kafka].resources.{each}.memory" for each in ("requests", "limits"))
            ],
        ),
    ],
    ids=str,
)
def test_each_edit_of_a_kafka_writes_only_the_affected_children(spec: dict[str, Any], writes: list[str]) -> None:
    cluster = kafka()
    cluster.edit(EVENTS, {"spec": spec})
    assert cluster.reconcile() == writes


@pytest.mark.slow
def test_a_broker_whose_service_is_deleted_keeps_running() -> None:
    cluster = kafka()
    cluster.delete("Service/events-1")
    assert cluster.reconcile() == ["create Service/events-1"]
    assert cluster.ready(EVENTS) == WAITING
    assert "StatefulSet/events" in cluster
    assert cluster["ConfigMap/events-config"]["data"].keys() >= {"broker-1"}, "a child that waits stays as it is"
    cluster.settle()
    assert cluster.reconcile() == ["patch ConfigMap/events-config: data[broker-1]"]
