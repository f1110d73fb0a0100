"""What blocks a child is shown with the current values of the expression, and no value of a Secret."""

from __future__ import annotations

import base64

import pytest

from ruleop.planning import FixedObjects, KindInfo, Observed, Plan, plan
from tests.planning.harness import app, config, rule

CONFIG = """
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{ metadata.name }}-%s"}
    data: {x: "1"}
"""
LOGIN = "observe: {login: {version: v1, kind: Secret, name: login}}\n"


class Kinds:
    def info(self, kind):
        return KindInfo(kind)

    def state_of(self, observe):
        return self.info(observe.kind).state


def planned(body: str, *objects, spec=None, masks: bool = True) -> Plan:
    """The plan by a rule with the children `a` and `b`."""
    rules = rule(body, a=CONFIG % "a", b=CONFIG % "b")
    return plan(rules, app(spec), Observed(FixedObjects(objects), Kinds()), masks=masks)


def secret(**values: str):
    data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}, "data": data}


def values(found: Plan) -> dict[str, str]:
    (blocking,) = found.blocking
    return dict(blocking.values)


def test_values_that_wait_for_reads_are_reported():
    found = planned(
        "children: {a: {template: a.yaml, waitFor: spec.on and spec.size > 3 and spec.tag == 'x'}}",
        spec={"on": True, "size": 2, "tag": "y"},
    )
    (blocking,) = found.blocking
    assert (blocking.child, blocking.key) == ("a", "waitFor")
    assert blocking.expression == "spec.on and spec.size > 3 and spec.tag == 'x'"
    assert blocking.site.line == 4
    assert values(found)["spec.on"] == "true"
    assert values(found)["spec.size"] == "2"


def test_a_missing_value_is_not_available_yet():
    found = planned("children: {a: {template: a.yaml}, b: {template: b.yaml, waitFor: a.data.y is defined}}")
    assert values(found) == {"a.data.y": "not available yet"}


def test_a_let_is_evaluated():
    found = planned(
        "let: {big: '{{ spec.size > 3 }}'}\nchildren: {a: {template: a.yaml, waitFor: big}}", spec={"size": 2}
    )
    assert values(found) == {"big": "false"}


def test_the_first_blocked_item_of_for_each_is_shown():
    found = planned(
        "children: {a: {template: a.yaml, forEach: spec.items_, waitFor: item.ok}}",
        spec={"items_": [{"ok": True}, {"ok": False}, {"ok": ""}]},
    )
    assert values(found) == {"item.ok": "false"}


def test_values_that_ready_when_reads_are_reported():
    body = "children: {a: {template: a.yaml, readyWhen: this.data.x == '2' and this.status.y}}"
    first = planned(body)
    assert first.blocking == (), "it does not exist yet"
    (made,) = first.actions
    found = planned(body, made.object)
    (blocking,) = found.blocking
    assert (blocking.child, blocking.key) == ("a", "readyWhen")
    assert dict(blocking.values) == {"this.data.x": '"1"', "this.status.y": "not available yet"}


def test_without_a_reader_nothing_is_evaluated():
    body = "children: {a: {template: a.yaml, waitFor: spec.on}}"
    assert planned(body, spec={"on": False}, masks=False).blocking == ()


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("children: {a: {template: a.yaml, waitFor: login.data.pin == ''}}", "(hidden)"),
        ("children: {a: {template: a.yaml, waitFor: login.data | length > 5}}", "(hidden)"),
        ("children: {a: {template: a.yaml, waitFor: login == ''}}", "(hidden)"),
        ("children: {a: {template: a.yaml, waitFor: login.data.other}}", "not available yet"),
        ("children: {a: {template: a.yaml, waitFor: login.metadata.name == ''}}", "login"),
        (
            "let: {pin: '{{ login.data.pin | b64decode }}'}\nchildren: {a: {template: a.yaml, waitFor: pin == ''}}",
            "(hidden)",
        ),
        ("children: {a: {template: a.yaml, forEach: login.data, waitFor: item.value == ''}}", "(hidden)"),
    ],
)
def test_a_value_of_a_secret_is_masked_however_short(body, shown):
    found = planned(LOGIN + body, secret(pin="12"))
    assert list(values(found).values()) == [shown]


def test_a_value_that_was_computed_from_a_secret_is_masked():
    body = LOGIN + "children: {a: {template: c.yaml}, b: {template: b.yaml, waitFor: a.data.copy == ''}}"
    copying = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {copy: "{{ login.data.pin | b64decode }}"}\n'
    rules = rule(body, c=copying, b=CONFIG % "b")
    observed = Observed(FixedObjects([secret(pin="12"), config("c", {"copy": "12"})]), Kinds())
    (blocking,) = plan(rules, app(), observed).blocking
    assert dict(blocking.values)["a.data.copy"] in {"(hidden)", "not available yet"}
