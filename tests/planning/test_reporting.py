"""How a plan reports field conflicts, rejected writes, a pause, and executed actions."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ruleop.authoring.report.spans import text_of
from ruleop.authoring.report.view_text import plan_lines
from ruleop.authoring.report.views import ResourceView
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import Create, Delete, Event, Failed, Failure, Patch
from ruleop.planning.changes.drift import Reverted, corrections
from ruleop.planning.events import write_events
from ruleop.planning.history import Writes
from ruleop.planning.model.marks import PAUSED
from tests.planning.harness import Harness, config, key
from tests.planning.settled import settled

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
B = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {v: '{{ spec.v }}'}\n"
TWO = "children: {a: {template: a.yaml}, b: {template: b.yaml, when: spec.b | default(true)}}\n"


def two(spec=None):
    return settled(TWO, {"v": "1", **(spec or {})}, a=A, b=B)


def conflict_over(harness, name, *, held, change):
    """A history with a field conflict over this child, after one more change."""
    change()
    (action,) = [each for each in harness.plan().actions if each.key == key(name)]
    (fields,) = [found for each, found in corrections([action])]
    message, due = f"ConfigMap/{name} is in conflict", 10.0 if held else -10.0
    drift = Reverted(action.desired_digest, fields, (-1.0,), message=message, drifted=True, due=due)
    return replace(harness.history, drift={key(name): drift})


@pytest.mark.parametrize("strategy", ["merge", "server-side"])
def test_a_child_with_a_field_conflict_is_left_alone_during_backoff(strategy):
    harness = settled(TWO.replace("a.yaml", f"a.yaml, apply: {{strategy: {strategy}}}"), {"v": "1"}, a=A, b=B)
    history = conflict_over(harness, "a", held=True, change=lambda: harness.change(key("a"), {"data": {"v": "theirs"}}))
    planned = harness.plan(history)
    assert planned.actions == ()
    assert planned.conditions.ready.reason == "FieldConflict"
    assert planned.conditions.ready.message == "a: ConfigMap/a is in conflict"
    assert planned.conditions.stalled.status == "True"
    assert planned.events == (), "it was reported when it was detected"


def test_a_field_conflict_is_reverted_and_reported_after_backoff():
    harness = two()
    history = conflict_over(
        harness, "a", held=False, change=lambda: harness.change(key("a"), {"data": {"v": "theirs"}})
    )
    planned = harness.plan(history)
    assert [each.key for each in planned.actions] == [key("a")]
    harness.execute(planned.actions)
    settled = harness.plan(replace(history, writes=Writes()))
    assert settled.conditions.ready.reason == "FieldConflict", (
        "a condition that turns with each correction would be written each time"
    )


def test_a_deleted_child_is_not_recreated_during_backoff():
    harness = two()
    history = conflict_over(harness, "a", held=True, change=lambda: harness.delete(key("a")))
    planned = harness.plan(history)
    assert planned.actions == ()
    assert planned.conditions.ready.reason == "FieldConflict"


def test_a_changed_desired_state_is_not_part_of_the_field_conflict():
    harness = two()
    history = conflict_over(harness, "a", held=True, change=lambda: harness.change(key("a"), {"data": {"v": "theirs"}}))
    harness.edit({"v": "2"})
    planned = harness.plan(history)
    assert {each.key for each in planned.actions} == {key("a"), key("b")}
    assert planned.conditions.ready.reason != "FieldConflict"


def test_a_field_conflict_does_not_delay_pruning():
    harness = two()
    history = conflict_over(harness, "a", held=True, change=lambda: harness.change(key("a"), {"data": {"v": "theirs"}}))
    harness.edit({"v": "1", "b": False})
    assert [(type(each), each.key) for each in harness.plan(history).actions] == [(Delete, key("b"))]


def test_a_rejected_secret_is_reported_with_the_request_only():
    template = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: '{{ spec.v }}'}\n"
    harness = Harness.of("children: {s: {template: s.yaml}}\n", {"v": "hunter2"}, s=template)
    redacted = "create secrets shop/s: rejected by the API server (403 Forbidden)"
    failed = Failed(Failure.FORBIDDEN, 'create secrets: nobody may write "hunter2"', redacted=redacted)
    harness.refuse[key("s", "Secret")] = failed
    harness.step()
    assert harness.ready()[1] == "Forbidden"
    assert harness.ready()[2].endswith(redacted)
    assert "hunter2" not in repr(harness.status)


S = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: '{{ spec.v }}'}\n"


@pytest.mark.parametrize(("reads", "cut"), [("s.metadata.name", False), ("s.data.p", True)])
def test_server_messages_about_a_child_that_reads_only_a_secrets_name_are_shown(reads: str, cut: bool):
    sibling = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{volume: '{{{{ {reads} }}}}'}}\n"
    harness = Harness.of(
        "children: {s: {template: s.yaml}, web: {template: w.yaml}}\n", {"v": "hunter2"}, s=S, w=sibling
    )
    words = 'ConfigMap "web" is invalid: data[volume]: Invalid value: "x": no such volume'
    redacted = "create configmaps shop/web: rejected by the API server (422 Invalid): data[volume]: Invalid value"
    harness.refuse[key("web")] = Failed(Failure.INVALID, f"create configmaps shop/web: {words}", redacted=redacted)
    harness.step()
    assert harness.ready()[1] == "ApplyFailed"
    assert harness.ready()[2].endswith(redacted if cut else words)


def test_a_paused_cr_has_no_pending_writes():
    harness = Harness.of(TWO, {"v": "1"}, a=A, b=B)
    harness.step()
    harness.delete(key("b"))
    harness.edit({"v": "2"})
    harness.patch_resource({"annotations": {PAUSED: "true"}})
    planned = harness.plan()
    assert {each.id: each.message for each in planned.children} == {
        "a": "ConfigMap/a: not changed while the CR is paused",
        "b": "ConfigMap/b: not created while the CR is paused",
    }
    assert "about to be" not in text_of(plan_lines(ResourceView(harness.resource, planned, kinds=harness)))


def test_conditions_of_old_rules_are_removed_and_those_of_others_stay():
    harness = two()
    theirs = {"type": "Theirs", "status": "True"}
    old = {"type": "Old", "status": "True"}
    harness.resource["status"]["conditions"] += [theirs, old]
    assert harness.plan().status.patch is None
    planned = harness.plan(retired=frozenset({"Old", "Ready"}))
    assert [each["type"] for each in planned.status.patch["status"]["conditions"]] == [
        "Reconciling",
        "Stalled",
        "Theirs",
        "Ready",
    ]


def deleted(name, why, namespace="shop"):
    return Delete(ObjectKey("", "ConfigMap", namespace, name), "a", config(name), why)


def patched(name, why):
    return Patch(key(name), "a", {}, config(name), config(name), "", why)


def test_one_event_covers_all_objects_of_an_action():
    actions = [
        Create(key("new"), "a", config("new"), ""),
        patched("edited", "changed"),
        patched("theirs", "adopted"),
        patched("stays", "released"),
        deleted("old", "pruned"),
        deleted("older", "pruned", "elsewhere"),
        deleted("job", "recreate"),
        deleted("last", "finalized"),
    ]
    assert list(write_events(actions, "shop")) == [
        Event("Normal", "Adopted", "Adopted ConfigMap/theirs: had no owner"),
        Event("Normal", "Released", "Released ConfigMap/stays: stays, without ruleop's own metadata"),
        Event(
            "Normal", "Pruned", "Deleted ConfigMap/old, ConfigMap/elsewhere/older: no longer part of the desired state"
        ),
        Event("Normal", "Recreated", "Deleted ConfigMap/job: an immutable field changed; will be recreated"),
    ]


def test_an_event_names_the_first_of_many_objects():
    (event,) = write_events([deleted(f"n{number}", "pruned") for number in range(1000)], "shop")
    assert event.message.startswith("Deleted ConfigMap/n0, ")
    assert event.message.endswith("ConfigMap/n7, and more: no longer part of the desired state")


LET = """
let: {gone: "{{ after(metadata.creationTimestamp, spec.ttl) }}", size: "{{ spec.sice }}"}
children:
  a: {template: a.yaml, when: not gone}
  b: {template: b.yaml, when: not gone}
  c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {size: "{{ size }}"}}}
"""


def test_an_error_of_a_let_is_reported_once_at_the_let() -> None:
    harness = Harness.of(LET, {"v": "1", "ttl": ""}, a=A, b=B)
    ready = harness.plan().conditions.ready
    assert ready.reason == "RenderFailed"
    places = re.findall(r"watches.yaml:\d+:\d+", ready.message)
    line = next(
        number for number, text in enumerate(harness.project.files["watches.yaml"].split("\n"), 1) if "let:" in text
    )
    assert [place.split(":")[1] for place in places] == [str(line)] * 2
    assert ready.message.count("after") == 1
    assert "a and 1 more: watches.yaml" in ready.message
    assert "c: watches.yaml" in ready.message


def test_a_missing_value_in_a_let_can_still_have_a_default() -> None:
    body = 'let: {size: "{{ spec.size }}"}\nchildren: {a: {template: a.yaml, when: size | default(1) == 1}}\n'
    assert Harness.of(body, {"v": "1"}, a=A).plan().problems == ()
