"""Lists with items of other managers: keys edited by hand, lists that a child owns, and conflicting items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ruleop.planning import Failed, Failure, Patch, ServerSideApply, State
from ruleop.planning.model.marks import APPLIED
from tests.planning.harness import Harness, key
from tests.planning.settled import edit_and_settle, settled

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
STRATEGIES = ["merge", "server-side"]


def service(strategy: str = "merge", own: str = "", *ports: dict[str, Any]) -> Harness:
    owned = f", own: [{own}]" if own else ""
    body = f"children: {{db: {{template: db.yaml, apply: {{strategy: {strategy}{owned}}}}}}}"
    return settled(body, {"ports": list(ports or (POSTGRES,))}, db=SERVICE)


def ports(harness: Harness) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = harness.objects[KEY]["spec"]["ports"]
    return found


def by_hand(harness: Harness, *items: dict[str, Any]) -> None:
    harness.change(KEY, {"spec": {"ports": list(items)}})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_port_changed_by_hand_is_reverted_in_one_write(strategy: str) -> None:
    harness = service(strategy)
    by_hand(harness, {**POSTGRES, "port": 6000, "protocol": "TCP", "nodePort": 30123})
    (action,) = harness.plan().actions
    assert isinstance(action, Patch), "server-side apply would add a second port of the same name, and be refused"
    harness.settle()
    assert ports(harness) == [{**POSTGRES, "protocol": "TCP", "nodePort": 30123}]
    assert harness.plan().quiet


def test_server_side_apply_is_used_again_after_a_correcting_patch() -> None:
    harness = service("server-side")
    by_hand(harness, {**POSTGRES, "port": 6000})
    harness.settle()
    harness.edit({"ports": [POSTGRES], "app": "other"})
    assert [type(action) for action in harness.plan().actions] == [ServerSideApply]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_owned_list_keeps_no_items_of_others(strategy: str) -> None:
    harness = service(strategy, "spec.ports")
    by_hand(harness, METRICS, {**POSTGRES, "targetPort": "db"})
    harness.settle()
    assert ports(harness) == [POSTGRES]
    assert harness.plan().quiet


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_items_of_others_stay_in_a_list_that_is_not_owned(strategy: str) -> None:
    harness = service(strategy)
    by_hand(harness, POSTGRES, METRICS)
    edit_and_settle(harness, {"ports": [{**POSTGRES, "targetPort": 1}]})
    assert ports(harness) == [{**POSTGRES, "targetPort": 1}, METRICS]


def test_own_of_a_watch_applies_to_its_children() -> None:
    harness = settled(
        "apply: {own: [spec.ports]}\nchildren: {db: {template: db.yaml}}", {"ports": [POSTGRES]}, db=SERVICE
    )
    by_hand(harness, METRICS, POSTGRES)
    harness.settle()
    assert ports(harness) == [POSTGRES]


# -- conflicting items -------------------------------------------------------------------------------------------------

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


def refused(harness: Harness, *items: dict[str, Any], managed: Any = MANAGED) -> Harness:
    """The list has items of another manager, and the record of ruleop's items is lost."""
    by_hand(harness, *items)
    harness.change(KEY, {"metadata": {"annotations": {APPLIED: None}}})
    harness.refuse[KEY] = Failed(Failure.INVALID, SAYS, managed=managed)
    harness.step()
    return harness


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_rejected_duplicate_names_the_live_item_and_both_remedies(strategy: str) -> None:
    harness = refused(service(strategy), {**POSTGRES, "port": 6000})
    conflict = "spec.ports[port=6000,protocol=TCP] (set by kubectl-patch) has the same name as spec.ports[port=5432,protocol=TCP]"
    assert harness.ready() == ("False", "ApplyFailed", f"db: templates/db.yaml:1: {SAYS}; {conflict}: {OUT}")


def test_an_unknown_manager_of_an_item_is_not_named() -> None:
    harness = refused(service(), {**POSTGRES, "port": 6000}, managed=())
    assert (
        "; spec.ports[port=6000,protocol=TCP] has the same name as spec.ports[port=5432,protocol=TCP]: "
        in harness.ready()[2]
    )


def test_two_ports_without_names_are_reported() -> None:
    harness = refused(service("merge", "", {"port": 5432}), {"port": 6000})
    message = "spec.ports[port=6000,protocol=TCP] (set by kubectl-patch) and spec.ports[port=5432,protocol=TCP] each need a name"
    assert f"; {message}, because there are two: {OUT}" in harness.ready()[2]


@pytest.mark.parametrize("way", ["own", "by hand"])
def test_each_suggested_remedy_for_a_duplicate_works(way: str) -> None:
    harness = refused(service(), {**POSTGRES, "port": 6000})
    harness.refuse.clear()
    if way == "own":
        harness.project = service("merge", "spec.ports").project
    else:
        by_hand(harness, {**POSTGRES, "port": 6000, "name": "renamed"})
    harness.settle()
    assert POSTGRES in ports(harness)
    assert len({port["name"] for port in ports(harness)}) == len(ports(harness)) == (1 if way == "own" else 2)
    assert harness.ready()[0] == "True"


def test_a_plan_predicts_a_rejected_duplicate() -> None:
    harness = service()
    by_hand(harness, {**POSTGRES, "port": 6000})
    harness.change(KEY, {"metadata": {"annotations": {APPLIED: None}}})
    report = harness.plan().children[0].objects[0]
    assert report.state is State.PROGRESSING
    assert report.message.startswith(
        "about to be changed, and the API server is expected to reject that: spec.ports[port=6000,"
    )
    assert report.message.endswith(OUT)


def test_another_rejection_does_not_mention_conflicting_items() -> None:
    harness = service()
    harness.refuse[KEY] = replace(Failed(Failure.INVALID, SAYS), managed=MANAGED)
    harness.edit({"ports": [METRICS]})
    harness.step()
    assert harness.ready()[2] == f"db: templates/db.yaml:1: {SAYS}"


def test_a_path_with_brackets_is_quoted_for_yaml() -> None:
    text = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: db}
    spec:
      selector: {matchLabels: {a: b}}
      template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: a, ports: [{name: web, containerPort: 80}]}]}}
    """
    harness = Harness.of("children: {db: {template: db.yaml, adopt: orphans}}", {}, db=text)
    other = {"name": "app", "image": "a", "ports": [{"name": "web", "containerPort": 8080}]}
    harness.add(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "db", "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [other]}}},
        }
    )
    message = harness.plan().children[0].objects[0].message
    assert message.endswith('`apply: {own: ["spec.template.spec.containers[name=app].ports"]}`')
