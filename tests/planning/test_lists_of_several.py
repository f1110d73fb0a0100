"""Lists in which others have items too: keys that were edited by hand, lists that a child owns, and items that stand in each other's place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ruleop.planning import Failed, Failure, Patch, Replace, ServerSideApply, State
from ruleop.planning.marks import APPLIED
from tests.planning.world import World, key

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: db}
spec:
  selector: {app: "{{ spec.app | default('db') }}"}
  ports: {{ spec.ports }}
"""
KEY = key("db", "Service")
POSTGRES = {"name": "postgres", "port": 5432, "targetPort": "db"}
METRICS = {"name": "metrics", "port": 9187}
STRATEGIES = ["merge", "server-side", "replace"]


def service(strategy: str = "merge", own: str = "", *ports: dict[str, Any]) -> World:
    owned = f", own: [{own}]" if own else ""
    body = f"children: {{db: {{template: db.yaml, apply: {{strategy: {strategy}{owned}}}}}}}"
    world = World.of(body, {"ports": list(ports or (POSTGRES,))}, db=SERVICE)
    world.settle()
    return world


def ports(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.objects[KEY]["spec"]["ports"]
    return found


def by_hand(world: World, *items: dict[str, Any]) -> None:
    world.change(KEY, {"spec": {"ports": list(items)}})


@pytest.mark.parametrize("strategy", ["merge", "server-side"])
def test_a_port_changed_by_hand_is_reverted_in_one_write(strategy: str) -> None:
    world = service(strategy)
    by_hand(world, {**POSTGRES, "port": 6000, "protocol": "TCP", "nodePort": 30123})
    (action,) = world.plan().actions
    assert isinstance(action, Patch), "server-side apply would add a second port of the same name, and be refused"
    world.settle()
    assert ports(world) == [{**POSTGRES, "protocol": "TCP", "nodePort": 30123}]
    assert world.plan().quiet


def test_replace_puts_the_desired_list_in_place_of_the_live_one() -> None:
    world = service("replace")
    by_hand(world, {**POSTGRES, "port": 6000})
    assert [type(action) for action in world.plan().actions] == [Replace]
    world.settle()
    assert ports(world) == [POSTGRES]


def test_after_the_patch_server_side_apply_is_used_again() -> None:
    world = service("server-side")
    by_hand(world, {**POSTGRES, "port": 6000})
    world.settle()
    world.edit({"ports": [POSTGRES], "app": "other"})
    assert [type(action) for action in world.plan().actions] == [ServerSideApply]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_owned_list_keeps_no_items_of_others(strategy: str) -> None:
    world = service(strategy, "spec.ports")
    by_hand(world, METRICS, {**POSTGRES, "targetPort": "db"})
    world.settle()
    assert ports(world) == [POSTGRES]
    assert world.plan().quiet


@pytest.mark.parametrize("strategy", ["merge", "server-side"])
def test_without_own_the_items_of_others_stay(strategy: str) -> None:
    world = service(strategy)
    by_hand(world, POSTGRES, METRICS)
    world.edit({"ports": [{**POSTGRES, "targetPort": 1}]})
    world.settle()
    assert ports(world) == [{**POSTGRES, "targetPort": 1}, METRICS]


def test_own_of_a_watch_applies_to_its_children() -> None:
    world = World.of(
        "apply: {own: [spec.ports]}\nchildren: {db: {template: db.yaml}}", {"ports": [POSTGRES]}, db=SERVICE
    )
    world.settle()
    by_hand(world, METRICS, POSTGRES)
    world.settle()
    assert ports(world) == [POSTGRES]


# -- conflicting items -------------------------------------------------------------------------------------------------------------------

SAYS = 'patch services shop/db: Service "db" is invalid: spec.ports[1].name: Duplicate value: "postgres" (422 Invalid)'
MANAGED = (
    {
        "manager": "kubectl-patch",
        "fieldsV1": {"f:spec": {"f:ports": {'k:{"port":6000,"protocol":"TCP"}': {".": {}, "f:name": {}}}}},
    },
    {"manager": "ruleop", "fieldsV1": {"f:spec": {"f:ports": {'k:{"port":6000,"protocol":"TCP"}': {}}}}},
    {"manager": "other", "fieldsV1": {"f:spec": {"f:ports": {'k:{"port":7000,"protocol":"TCP"}': {}}}}},
)
OUT = "remove or change it by hand, or let the child own the whole list with `apply: {own: [spec.ports]}`"


def refused(world: World, *items: dict[str, Any], managed: Any = MANAGED) -> World:
    """Somebody else's items stand there, and nobody knows any more which were ours."""
    by_hand(world, *items)
    world.change(KEY, {"metadata": {"annotations": {APPLIED: None}}})
    world.refuse[KEY] = Failed(Failure.INVALID, SAYS, managed=managed)
    world.step()
    return world


@pytest.mark.parametrize("strategy", ["merge", "server-side"])
def test_a_rejected_duplicate_names_the_live_item_and_both_remedies(strategy: str) -> None:
    world = refused(service(strategy), {**POSTGRES, "port": 6000})
    conflict = "spec.ports[port=6000,protocol=TCP] (set by kubectl-patch) has the same name as spec.ports[port=5432,protocol=TCP]"
    assert world.ready() == ("False", "ApplyFailed", f"db: templates/db.yaml:1: {SAYS}; {conflict}: {OUT}")


def test_an_unknown_manager_of_an_item_is_not_named() -> None:
    world = refused(service(), {**POSTGRES, "port": 6000}, managed=())
    assert (
        "; spec.ports[port=6000,protocol=TCP] has the same name as spec.ports[port=5432,protocol=TCP]: "
        in world.ready()[2]
    )


def test_two_ports_without_names_are_reported() -> None:
    world = refused(service("merge", "", {"port": 5432}), {"port": 6000})
    message = "spec.ports[port=6000,protocol=TCP] (set by kubectl-patch) and spec.ports[port=5432,protocol=TCP] each need a name"
    assert f"; {message}, because there are two: {OUT}" in world.ready()[2]


@pytest.mark.parametrize("way", ["own", "by hand"])
def test_both_remedies_work(way: str) -> None:
    world = refused(service(), {**POSTGRES, "port": 6000})
    world.refuse.clear()
    if way == "own":
        world.project = service("merge", "spec.ports").project
    else:
        by_hand(world, {**POSTGRES, "port": 6000, "name": "renamed"})
    world.settle()
    assert POSTGRES in ports(world)
    assert len({port["name"] for port in ports(world)}) == len(ports(world)) == (1 if way == "own" else 2)
    assert world.ready()[0] == "True"


def test_a_plan_predicts_a_rejected_duplicate() -> None:
    world = service()
    by_hand(world, {**POSTGRES, "port": 6000})
    world.change(KEY, {"metadata": {"annotations": {APPLIED: None}}})
    report = world.plan().children[0].objects[0]
    assert report.state is State.PROGRESSING
    assert report.message.startswith(
        "is about to be changed, and the API server is expected to reject that: spec.ports[port=6000,"
    )
    assert report.message.endswith(OUT)


def test_another_rejection_does_not_mention_conflicting_items() -> None:
    world = service()
    world.refuse[KEY] = replace(Failed(Failure.INVALID, SAYS), managed=MANAGED)
    world.edit({"ports": [METRICS]})
    world.step()
    assert world.ready()[2] == f"db: templates/db.yaml:1: {SAYS}"


def test_a_path_with_brackets_is_quoted_for_yaml() -> None:
    text = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: db}
    spec:
      selector: {matchLabels: {a: b}}
      template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: a, ports: [{name: web, containerPort: 80}]}]}}
    """
    world = World.of("children: {db: {template: db.yaml, adopt: orphans}}", {}, db=text)
    other = {"name": "app", "image": "a", "ports": [{"name": "web", "containerPort": 8080}]}
    world.add(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "db", "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [other]}}},
        }
    )
    message = world.plan().children[0].objects[0].message
    assert message.endswith('`apply: {own: ["spec.template.spec.containers[name=app].ports"]}`')
