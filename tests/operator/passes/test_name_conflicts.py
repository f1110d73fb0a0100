"""Conflicting objects with a child's name: only their metadata is read, and they are read in full before a change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import Served
from tests.operator.children import child
from tests.operator.passes.reconciler_harness import WEB, ReconcilerHarness
from tests.operator.server import Answer
from tests.planning.harness import project

WEB_YAML = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: nginx:1
        env:
        - {name: MINE, value: x}
"""
KEY = ObjectKey("apps", "Deployment", "shop", "web")
OLD = {"apiVersion": "old.example.com/v1", "kind": "OldApp", "name": "web", "uid": "old", "controller": True}
LONG = 61.0  # seconds after which it is read again, whatever came before


def theirs(**metadata):
    """A Deployment of another client, with fields that ruleop does not set."""
    env = [{"name": "MINE", "value": "x"}, {"name": "HTTP_PROXY", "value": "set by somebody"}]
    containers = [{"name": "app", "image": "nginx:1", "env": env}, {"name": "sidecar", "image": "mesh:1"}]
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    spec = {"replicas": 10, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", **metadata},
        "spec": spec,
    }


def rules(adopt="", **apply):
    more = ", ".join([*([f"adopt: {adopt}"] if adopt else []), f"apply: {apply | {'ignore': ['spec.replicas']}}"])
    return f"children: {{web: {{template: web.yaml, {more}}}}}\n"


def in_the_way(body, **metadata):
    harness = ReconcilerHarness(body, {}, web=WEB_YAML)
    harness.server.make(theirs(**metadata))
    return harness


def leave_behind(harness):
    """Removes the ownerReferences, as a deletion of the owner with --cascade=orphan does."""
    metadata = {
        name: value for name, value in harness.server.live(KEY)["metadata"].items() if name != "ownerReferences"
    }
    return harness.server.edit(KEY, metadata=metadata)


def keeps_what_others_put_there(harness):
    spec = harness.server.live(KEY)["spec"]
    containers = spec["template"]["spec"]["containers"]
    assert [(each["name"], [env["name"] for env in each.get("env", ())]) for each in containers] == [
        ("app", ["MINE", "HTTP_PROXY"]),
        ("sidecar", []),
    ]
    assert spec["replicas"] == 10
    assert [each["kind"] for each in harness.server.live(KEY)["metadata"].get("ownerReferences", ())] == ["App"]
    assert harness.condition()["reason"] != "ErrResourceExists"


# -- an adopted object is read in full ---------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["merge", "server-side"])
async def test_an_object_left_behind_by_its_owner_is_adopted_with_all_fields_of_others(strategy):
    harness = in_the_way(rules("orphans", strategy=strategy), ownerReferences=[OLD])
    await harness.until_settled()
    assert "it belongs to OldApp/web" in harness.condition()["message"]
    leave_behind(harness)
    harness.time += LONG
    await harness.until_settled()
    if strategy == "server-side":  # lists are the server's to merge; here it cannot
        assert harness.server.live(KEY)["spec"]["replicas"] == 10
        assert harness.condition()["reason"] == "Progressing"
    else:
        keeps_what_others_put_there(harness)


async def test_an_object_that_an_edit_of_the_rules_allows_to_adopt_is_read_in_full_and_adopted():
    harness = in_the_way(rules())
    await harness.until_settled()
    harness.time += LONG
    await harness.until_settled()
    assert harness.condition()["reason"] == "ErrResourceExists"
    harness.reconciler.rules = project(rules("orphans"), web=WEB_YAML).rules
    await harness.until_settled()
    keeps_what_others_put_there(harness)


async def test_a_child_that_lost_its_label_is_read_in_full_and_corrected():
    harness = ReconcilerHarness(rules(), {}, web=WEB_YAML)
    await harness.until_settled()
    metadata = harness.server.live(KEY)["metadata"]
    labels = {name: value for name, value in metadata["labels"].items() if name != "ruleop.dev/part-of"}
    harness.server.edit(KEY, spec=theirs()["spec"], metadata={**metadata, "labels": labels})
    harness.stores.catch_up()
    harness.server.answer_with("patch", "web", Answer.FORBIDDEN)
    await harness.reconcile()
    harness.time += LONG
    await harness.until_settled()
    assert "ruleop.dev/part-of" in harness.server.live(KEY)["metadata"]["labels"]
    keeps_what_others_put_there(harness)


async def test_only_the_metadata_of_a_conflicting_object_is_read():
    harness = in_the_way(rules())
    await harness.until_settled()
    asked = len(harness.server.log)
    for _ in range(5):
        harness.time += LONG
        await harness.reconcile()
    assert harness.server.log[asked:] == [("metadata", "web")] * 5


async def test_a_conflicting_object_that_cannot_be_read_in_full_is_left_unchanged_until_it_can():
    harness = in_the_way(rules("orphans"), ownerReferences=[OLD])
    await harness.until_settled()
    before = leave_behind(harness)
    harness.time += LONG
    harness.server.answer_with("get", "web", Answer.FORBIDDEN)
    verdict = await harness.reconcile()
    assert harness.server.live(KEY) == before
    assert harness.condition()["message"] == "web waits for Deployment/shop/web to be read"
    assert not verdict.failed
    assert verdict.requeue_after <= LONG
    await harness.until_settled()
    keeps_what_others_put_there(harness)


# -- what cannot be read -----------------------------------------------------------------------------------------------

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
BYE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bye}\ndata: {v: '1'}\n"
BESIDE = "children: {web: {template: web.yaml}, a: {template: a.yaml}}\nfinalize: {bye: {template: bye.yaml}}\n"


def metadata_cannot_be_read(harness, problem):
    async def read_metadata(kind, key):
        harness.server.log.append(("metadata", key.name))
        raise ApiError(problem, verb="get", resource=str(key), text="not now")

    harness.stores.read_metadata = read_metadata


async def beside():
    harness = ReconcilerHarness(BESIDE, {"v": "1"}, web=WEB_YAML, a=A, bye=BYE)
    harness.server.make(theirs())
    await harness.until_settled()
    harness.time += LONG
    return harness


@pytest.mark.parametrize("problem", [Problem.SERVER, Problem.FORBIDDEN, Problem.NOT_FOUND, Problem.UNREACHABLE])
async def test_an_object_that_cannot_be_read_delays_nothing_else(problem):
    harness = await beside()
    metadata_cannot_be_read(harness, problem)
    harness.edit_app(spec={"v": "2"})
    await harness.reconcile()
    assert harness.live("a")["data"] == {"v": "2"}
    harness.delete_app()
    for _ in range(6):
        harness.time += LONG
        await harness.reconcile()
    assert harness.app is None


async def test_an_object_that_cannot_be_read_still_conflicts_and_is_read_with_backoff_and_logged_once():
    harness = await beside()
    metadata_cannot_be_read(harness, Problem.SERVER)
    before, reads = harness.writes(), harness.server.log.count(("metadata", "web"))
    with capture_logs() as logs:
        for _ in range(4):
            harness.time += (await harness.reconcile()).requeue_after
    assert harness.writes() == before
    assert harness.server.log.count(("metadata", "web")) - reads == 4
    assert (await harness.reconcile()).requeue_after > 8
    assert harness.condition()["reason"] == "ErrResourceExists"
    assert [log["event"] for log in logs if log["log_level"] == "warning"] == [
        "conflicting object cannot be read; will retry"
    ]


async def test_an_object_of_a_kind_that_is_no_longer_served_is_no_longer_conflicting():
    harness = await beside()
    metadata_cannot_be_read(harness, Problem.NOT_FOUND)
    info = harness.stores.info
    harness.stores.info = lambda kind, **_more: replace(
        info(kind), state=Served.UNSERVED if kind.kind == "Deployment" else Served.SYNCED
    )
    await harness.reconcile()
    assert not harness.reconciler.histories[WEB].conflicting


# -- after the conflict ------------------------------------------------------------------------------------------------

NAMED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ spec.name }}'}\ndata: {v: '1'}\n"


async def requests_at_rest(harness):
    asked = len(harness.server.log)
    for _ in range(5):
        harness.time += LONG
        verdict = await harness.reconcile()
    return harness.server.log[asked:], verdict.requeue_after


async def test_a_name_that_is_no_longer_desired_is_not_read():
    harness = ReconcilerHarness("reconcilePeriod: 0s\nchildren: {a: {template: a.yaml}}\n", {"name": "taken"}, a=NAMED)
    harness.server.make(child("taken", owner=None, data={}))
    await harness.until_settled()
    harness.edit_app(spec={"name": "free"})
    await harness.until_settled()
    assert await requests_at_rest(harness) == ([], None)


@pytest.mark.parametrize("strategy", ["create-only", "merge"])
async def test_an_adopted_object_is_not_read(strategy):
    more = f"adopt: orphans, apply: {{strategy: {strategy}}}"
    harness = ReconcilerHarness(
        f"reconcilePeriod: 0s\nchildren: {{a: {{template: a.yaml, {more}}}}}\n", {"name": "a"}, a=NAMED
    )
    harness.server.make(child("a", owner=None, data={}))
    await harness.until_settled()
    assert await requests_at_rest(harness) == ([], None)


async def test_a_waiting_child_keeps_the_record_of_its_conflicting_object():
    body = "children: {a: {template: a.yaml, waitFor: spec.go | default(true)}}\n"
    harness = ReconcilerHarness(body, {"name": "taken"}, a=NAMED)
    harness.server.make(child("taken", owner=None, data={}))
    await harness.until_settled()
    harness.edit_app(spec={"name": "taken", "go": False})
    await harness.until_settled()
    assert harness.key("taken") in harness.reconciler.histories[WEB].conflicting
    harness.edit_app(spec={"name": "taken"})
    await harness.until_settled()
    assert harness.server.log.count(("create", "taken")) == 1


async def test_learned_values_are_kept_while_a_child_waits_or_the_cr_is_invalid():
    body = "children: {a: {template: a.yaml, waitFor: spec.go | default(true)}}\n"
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '{{ spec.x }}'}\n"
    harness = ReconcilerHarness(body, {"x": "long"}, a=template)
    harness.server.alter(Kind("", "v1", "ConfigMap"), lambda obj: {**obj, "data": {"x": "short"}})
    await harness.until_settled()
    learned = dict(harness.reconciler.histories[WEB].learned)
    assert learned
    for spec in ({"x": "long", "go": False}, {}):
        harness.edit_app(spec=spec)
        await harness.until_settled()
        assert harness.reconciler.histories[WEB].learned == learned
