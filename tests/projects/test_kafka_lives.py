"""The lives of a Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.planning import Failure
from tests.projects.cluster import Refused
from tests.projects.lives import CONTAINERS, EVENTS, KAFKA, READY, WAITING, kafka, sample
from tests.projects.snapshots import ROOT
from tests.projects.world import World


def test_brokers_wait_for_all_addresses() -> None:
    world = World(ROOT / KAFKA)
    world.add(sample(KAFKA, "events"))
    assert world.rest() == [
        "create Service/events-headless",
        *(f"create Service/events-{number}" for number in range(3)),
        "create PodDisruptionBudget/events",
    ]
    world.settle("Service/events-0", "Service/events-2")
    assert world.rest() == []
    assert world.ready(EVENTS) == WAITING
    assert world.waits["config"] == "brokerService[1].status.loadBalancer.ingress[0].ip"
    assert [each["id"] for each in world.fields(EVENTS)["brokers"]] == [0, 1, 2]
    world.settle("Service/events-1")
    assert world.rest() == ["create ConfigMap/events-config", "create StatefulSet/events"]
    world.settle()
    assert world.rest() == []
    assert world.ready(EVENTS) == READY
    hosts = [world[f"Service/events-{number}"]["status"]["loadBalancer"]["ingress"][0]["ip"] for number in range(3)]
    assert world.fields(EVENTS) == {
        "replicas": 3,
        "readyReplicas": 3,
        "bootstrap": "events-headless:9092",
        "brokers": [{"id": number, "host": host, "port": 9094} for number, host in enumerate(hosts)],
    }


def test_from_five_brokers_to_three_to_six() -> None:
    world = kafka(5)
    world.edit(EVENTS, {"spec": {"replicas": 3}})
    assert world.rest() == ["create Job/events-drain-5-to-3"]
    assert world.ready(EVENTS) == WAITING
    assert world["StatefulSet/events"]["spec"]["replicas"] == 5
    world.settle("StatefulSet/events")
    assert world.rest() == []

    world.settle("Job/events-drain-5-to-3")
    writes = world.rest()
    assert writes[0] == "patch StatefulSet/events: spec.replicas"
    assert sorted(writes[1:]) == [
        "delete Job/events-drain-5-to-3: pruned",
        "delete Service/events-3: pruned",
        "delete Service/events-4: pruned",
        "patch ConfigMap/events-config: -data[broker-3] -data[broker-4]",
    ]
    world.settle()
    assert world.rest() == []
    assert world.ready(EVENTS) == READY
    assert world["ConfigMap/events-config"]["data"].keys() == {"server.properties", "broker-0", "broker-1", "broker-2"}
    assert world.names == [
        "ConfigMap/events-config",
        EVENTS,
        "PodDisruptionBudget/events",
        "Service/events-0",
        "Service/events-1",
        "Service/events-2",
        "Service/events-headless",
        "StatefulSet/events",
    ]

    world.edit(EVENTS, {"spec": {"replicas": 6}})
    assert world.rest() == ["create Service/events-3", "create Service/events-4", "create Service/events-5"]
    assert world["StatefulSet/events"]["spec"]["replicas"] == 3
    world.settle()
    assert world.rest() == [
        "patch ConfigMap/events-config: +data[broker-3] +data[broker-4] +data[broker-5]",
        "patch StatefulSet/events: spec.replicas",
    ]
    world.settle()
    assert world.rest() == []
    assert world.fields(EVENTS)["replicas"] == 6
    world.delete(EVENTS)
    assert world.rest() == []
    assert world.names == []


def test_a_drain_that_is_no_longer_wanted_goes() -> None:
    world = kafka(5)
    world.edit(EVENTS, {"spec": {"replicas": 3}})
    world.rest()
    world.edit(EVENTS, {"spec": {"replicas": 5}})
    assert world.rest() == ["delete Job/events-drain-5-to-3: pruned"]
    assert world.ready(EVENTS) == READY


def test_a_drain_that_fails_stops_everything() -> None:
    world = kafka(5)
    world.edit(EVENTS, {"spec": {"replicas": 3}})
    world.rest()
    world.status("Job/events-drain-5-to-3", {"failed": 4, "conditions": [{"type": "Failed", "status": "True"}]})
    assert world.rest() == []
    assert world["StatefulSet/events"]["spec"]["replicas"] == 5
    assert world.conditions(EVENTS)["Ready"][:2] == ("False", "ChildFailed")
    assert world.conditions(EVENTS)["Stalled"][0] == "True"
    world.delete("Job/events-drain-5-to-3")  # the user tries again
    assert world.rest() == ["create Job/events-drain-5-to-3"]


def test_one_broker_needs_no_budget() -> None:
    world = kafka(3)
    world.edit(EVENTS, {"spec": {"replicas": 1}})
    assert world.rest() == ["create Job/events-drain-3-to-1", "delete PodDisruptionBudget/events: pruned"]
    world.settle()
    assert world.rest()[0] == "patch StatefulSet/events: spec.replicas"
    world.settle()
    world.rest()
    assert world.ready(EVENTS) == READY


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
def test_an_edit_of_a_kafka(spec: dict[str, Any], writes: list[str]) -> None:
    world = kafka()
    world.edit(EVENTS, {"spec": spec})
    assert world.rest() == writes


def test_a_broker_whose_service_is_deleted_keeps_running() -> None:
    world = kafka()
    world.delete("Service/events-1")
    assert world.rest() == ["create Service/events-1"]
    assert world.ready(EVENTS) == WAITING
    assert "StatefulSet/events" in world
    assert world["ConfigMap/events-config"]["data"].keys() >= {"broker-1"}, "a child that waits stays as it is"
    world.settle()
    assert world.rest() == ["patch ConfigMap/events-config: data[broker-1]"]


def test_an_immutable_field_is_refused_and_said() -> None:
    """The world's own promise, which the lives above rely on."""
    world = kafka()
    with pytest.raises(Refused) as refused:
        world.edit("StatefulSet/events", {"spec": {"serviceName": "else"}})
    assert refused.value.failure is Failure.IMMUTABLE
