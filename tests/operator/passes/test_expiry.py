"""A custom resource that expires is deleted once, at the moment that a pass has promised."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.kinds import ObjectKey
from tests.operator.passes.reconciler_harness import ReconcilerHarness
from tests.operator.server import Answer

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
RULES = """
reconcilePeriod: 0s
expire: {after: "{{ spec.ttl }}"}
children: {a: {template: a.yaml}}
"""
KEEPING = RULES.replace("{template: a.yaml}", "{template: a.yaml, deletion: orphan}")
EXPIRED = ("Normal", "Expired", "Deleted App/web: expired 2h after its creation")


def young(rules: str = RULES, ttl: str = "2h") -> ReconcilerHarness:
    """A custom resource that has just been created."""
    harness = ReconcilerHarness(rules, {"ttl": ttl}, a=CONFIG)
    created = harness.app["metadata"]["creationTimestamp"]
    harness.now = lambda: created
    return harness


def grow_old(harness: ReconcilerHarness) -> None:
    harness.now = lambda: "2099-01-01T00:00:00Z"


def test_the_moment_is_promised_and_an_edit_moves_it(run):
    harness = young()
    assert run(harness.until_settled()).requeue_after == 2 * 3600 + 1
    harness.edit_app(spec={"ttl": "1h"})
    assert run(harness.until_settled()).requeue_after == 3600 + 1
    harness.edit_app(spec={"ttl": ""})
    assert run(harness.until_settled()).requeue_after is None


def test_an_expired_resource_is_deleted_once_with_a_late_watch(run):
    harness = young()
    run(harness.until_settled())
    grow_old(harness)
    verdict = run(harness.reconcile(catch_up=False))
    assert not verdict.failed
    assert harness.app is None
    assert harness.events.count(EXPIRED) == 1
    harness.stores.catch_up()
    run(harness.reconcile())
    assert harness.events.count(EXPIRED) == 1


def test_the_finalizer_of_the_rule_does_its_work(run):
    harness = young(KEEPING)
    run(harness.until_settled())
    grow_old(harness)
    run(harness.until_settled())
    assert harness.app is None
    assert "ownerReferences" not in harness.live("a")["metadata"]
    assert harness.events.count(EXPIRED) == 1


def test_an_edit_in_the_meantime_is_seen_first(run):
    """It may have given the resource more time."""
    harness = young()
    run(harness.until_settled())
    grow_old(harness)
    key = ObjectKey("example.com", "App", "shop", "web")
    harness.server.before["delete", "web"] = lambda: harness.server.edit(key, spec={"ttl": ""})
    run(harness.reconcile())
    assert harness.app is not None
    assert EXPIRED not in harness.events


@pytest.mark.parametrize("answer", [Answer.NO_ROLE, Answer.BROKEN])
def test_a_rejected_deletion_is_retried(run, answer):
    harness = young()
    run(harness.until_settled())
    grow_old(harness)
    harness.server.answer_with("delete", "web", answer)
    assert run(harness.reconcile()).failed
    assert harness.condition()["status"] == "False"
    assert EXPIRED not in harness.events
    run(harness.reconcile())
    assert harness.app is None
    assert harness.events.count(EXPIRED) == 1
