"""The reason of each wait, as one word. It is a metric label, so it must not contain names of objects."""

from __future__ import annotations

import pytest

from ruleop.planning import Failed, Failure, Served
from tests.planning.harness import Harness, key
from tests.planning.settled import settled

PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"
DB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: []}}}
"""
TWO = "children: {db: {template: db.yaml}, web: {template: web.yaml}}"
DEPENDS = "children: {db: {template: db.yaml}, web: {template: web.yaml, dependsOn: [db]}}"
OBSERVES = """
children: {db: {template: db.yaml}, web: {template: web.yaml}}
observe: {other: {version: v1, kind: Pod, name: other}}
"""


def web(data: str = "{}") -> str:
    return f"{PLAIN.replace('NAME', 'web')}data: {data}\n"


def why(harness: Harness) -> list[tuple[str, str]]:
    return [(wait.child, wait.why) for wait in harness.plan().waits]


@pytest.mark.parametrize(
    ("body", "text", "state", "expected"),
    [
        (TWO, web("{k: '{{ db.status.availableReplicas }}'}"), {}, "value"),
        (DEPENDS, web(), {}, "child"),
        (TWO.replace("web.yaml", "web.yaml, waitFor: 'false'"), web(), {}, "condition"),
        (OBSERVES, web("{k: '{{ other.metadata.name }}'}"), {}, "object"),
        (OBSERVES, web("{k: '{{ other.metadata.name }}'}"), {"Pod": Served.UNSERVED}, "kind"),
        (OBSERVES, web("{k: '{{ other.metadata.name }}'}"), {"Pod": Served.PENDING}, "kind"),
        (TWO, web(), {"ConfigMap": Served.UNSERVED}, "kind"),
        (TWO, web(), {"ConfigMap": Served.PENDING}, "kind"),
        (TWO.replace("web.yaml", "web.yaml, optional: true"), web(), {"ConfigMap": Served.PENDING}, "kind"),
    ],
)
def test_a_wait_has_a_category(body, text, state, expected):
    harness = Harness.of(body, db=DB, web=text)
    harness.served.update(state)
    harness.settle(controllers=False)
    assert why(harness) == [("web", expected)]


def test_an_object_being_deleted_is_waited_for():
    harness = settled("children: {web: {template: web.yaml}}", web=web())
    harness.change(key("web"), {"metadata": {"finalizers": ["x/y"]}})
    harness.delete(key("web"))
    assert why(harness) == [("web", "deletion")]


def test_a_write_that_will_be_retried_is_waited_for():
    harness = Harness.of("children: {web: {template: web.yaml}}", web=web())
    found = harness.plan_status({key("web"): Failed(Failure.OTHER, "the server is busy", "")})
    assert [(wait.child, wait.why) for wait in found.waits] == [("web", "write")]
