"""`expire`: a custom resource is deleted when a time has passed since its creation."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.authoring.report.view_json import plan_document
from ruleop.authoring.report.view_text import plan_lines
from ruleop.authoring.report.views import ResourceView
from ruleop.language.rules import ProjectErrors
from ruleop.planning import Expire, Failed, Failure
from ruleop.planning.events import write_events
from ruleop.planning.model.marks import PAUSED
from tests.planning.harness import CR, FINALIZER, Harness, key, rule
from tests.planning.test_time import at, due, of

CHILD = "children: {a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}"
EXPIRE = f"expire: {{after: 2h}}\n{CHILD}"
LATER = "2026-01-01T02:00:01Z"


def by_spec(ttl: Any = None) -> Harness:
    return of(f"expire: {{after: \"{{{{ spec.ttl | default('') }}}}\"}}\n{CHILD}", {} if ttl is None else {"ttl": ttl})


def test_a_resource_lives_until_its_time_and_is_then_deleted_with_its_children() -> None:
    harness = at(of(EXPIRE), "2026-01-01T00:00:00Z")
    assert harness.names() == ["ConfigMap/a"]
    assert due(harness) == LATER
    assert at(harness, "2026-01-01T01:59:59Z").resource is not None
    harness.now = LATER
    harness.settle()
    assert harness.resource is None
    assert harness.writes[-1] == "Expire App/web"
    assert harness.names() == []


def test_the_event_has_the_reason() -> None:
    harness = at(of(EXPIRE), "2026-01-01T00:00:00Z")
    harness.now = LATER
    (event,) = write_events(harness.plan().actions, "shop")
    assert (event.type, event.reason) == ("Normal", "Expired")
    assert event.message == "Deleted App/web: expired 2h after its creation"


@pytest.mark.parametrize("ttl", [None, "", "0s", "999999999h"])
def test_empty_text_zero_and_a_time_after_the_year_9999_are_never(ttl: str | None) -> None:
    harness = at(by_spec(ttl), "2036-01-01T00:00:00Z")
    assert harness.resource is not None
    assert due(harness) == "never"


def test_the_time_may_come_from_the_resource_and_an_edit_moves_it() -> None:
    harness = at(by_spec("7d"), "2026-01-01T00:00:00Z")
    assert due(harness) == "2026-01-08T00:00:01Z"
    harness.edit({"ttl": "1h30m"})
    harness.settle()
    assert due(harness) == "2026-01-01T01:30:01Z"


@pytest.mark.parametrize("ttl", ["soon", 7, "1h" * 40])
def test_an_invalid_duration_is_reported_and_blocks_no_child(ttl: Any) -> None:
    harness = at(by_spec(ttl), "2036-01-01T00:00:00Z")
    status, reason, message = harness.ready()
    assert (status, reason) == ("False", "RenderFailed")
    assert message.startswith("expire: ")
    assert "duration" in message
    assert harness.names() == ["ConfigMap/a"]


def test_a_pause_and_the_first_seconds_of_changed_rules_hold_the_deletion_back() -> None:
    harness = at(of(EXPIRE), "2026-01-01T00:00:00Z")
    harness.now = LATER
    held = harness.plan(held_until="2026-01-01T02:00:30Z")
    assert [(each.key, each.why) for each in held.held] == [(CR, "until 02:00:30 UTC")]
    assert not held.actions
    harness.patch_resource({"annotations": {PAUSED: "true"}})
    harness.settle()
    assert harness.resource is not None
    harness.patch_resource({"annotations": {PAUSED: "false"}})
    harness.settle()
    assert harness.resource is None


def test_children_stay_as_they_are_until_the_finalizer_of_the_rule_has_done_its_work() -> None:
    final = "finalize: {b: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}"
    harness = at(of(f"{EXPIRE}\n{final}"), "2026-01-01T00:00:00Z")
    assert harness.finalizers == [FINALIZER]
    harness.now = LATER
    assert [type(each) for each in harness.plan().actions] == [Expire]
    harness.settle()
    assert harness.resource is None
    assert harness.writes.index("Expire App/web") < harness.writes.index("Create ConfigMap/b")


def test_a_missing_permission_is_reported() -> None:
    harness = at(of(EXPIRE), "2026-01-01T00:00:00Z")
    harness.now = LATER
    harness.refuse = {CR: Failed(Failure.FORBIDDEN, "no", verb="delete")}
    harness.step()
    status, reason, message = harness.ready()
    assert (status, reason) == ("False", "Forbidden")
    assert message == (
        "expire: it has expired and cannot be deleted: "
        "cannot delete apps.example.com in namespace shop: needs get, list, watch, delete"
    )
    assert harness.objects[key("a")]


def test_the_plan_shows_the_deletion_and_the_moment() -> None:
    harness = at(of(EXPIRE), "2026-01-01T00:00:00Z")
    assert harness.resource is not None

    def text() -> str:
        lines = plan_lines(ResourceView(harness.resource or {}, harness.plan(), kinds=harness))
        return "\n".join("".join(span.text for span in line) for line in lines)

    assert "Reconciled again in 2 h 0 min: it expires." in text()
    assert plan_document(ResourceView(harness.resource, harness.plan()))["expires"] == "2026-01-01T02:00:00Z"
    harness.now = LATER
    assert "- delete App/web  expired 2h after its creation" in text()
    assert "1 to delete." in text()
    (found,) = plan_document(ResourceView(harness.resource, harness.plan()))["actions"]
    assert {name: found[name] for name in ("action", "kind", "name", "why", "after")} == {
        "action": "delete",
        "kind": "App",
        "name": "web",
        "why": "expired",
        "after": "2h",
    }


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("soon", '"soon" is not a duration'),
        ("'{{ a.data.x }}'", "`expire` cannot read the child `a`"),
        ("'{{ password.data.x }}'", "would expose the data of a Secret in `expire`"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(after: str, message: str) -> None:
    observed = "observe: {password: {version: v1, kind: Secret, name: p}}"
    with pytest.raises(ProjectErrors, match=message.replace("(", "\\(")):
        rule(f"expire: {{after: {after}}}\n{observed}\n{CHILD}")
