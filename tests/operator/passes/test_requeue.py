"""When a CR is reconciled again without a change."""

from __future__ import annotations

import pytest

from ruleop.planning.changes.drift import ENOUGH
from ruleop.planning.history import REFUSED_FIRST
from ruleop.planning.model.marks import PAUSED, RECONCILE_PERIOD
from tests.operator.children import child
from tests.operator.passes.reconciler_harness import ReconcilerHarness
from tests.operator.server import Answer

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '1'}\n"
ONE = "children: {a: {template: a.yaml}}\n"


def annotated(body, **annotations):
    harness = ReconcilerHarness(body, {}, a=A)
    harness.edit_app(metadata={**harness.app["metadata"], "annotations": annotations})
    return harness


# -- the period --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "own", "again"),
    [
        ("10h", None, 36000.0),
        ("10h", "30s", 30.0),
        ("0s", "30s", 30.0),
        ("10s", "0s", None),
        ("10s", "1ms", 1.0),
        ("10h", "often", 36000.0),
        ("0s", None, None),
    ],
)
async def test_the_reconcile_period_is_that_of_the_cr_or_of_the_rule(rule, own, again):
    harness = annotated(f"reconcilePeriod: {rule}\n{ONE}", **({} if own is None else {RECONCILE_PERIOD: own}))
    assert (await harness.until_settled()).requeue_after == again
    assert ("has no effect" in harness.condition()["message"]) == (own == "often")


async def test_a_child_that_fails_does_not_delay_what_the_time_changes():
    body = "children: {a: {template: a.yaml}, b: {template: b.yaml, when: not after('2026-01-01T00:00:09Z')}}"
    harness = ReconcilerHarness(body, {}, a=A, b=A.replace("name: a", "name: b"))
    for _ in range(2):
        harness.server.answer_with("create", "a", Answer.BROKEN)
        verdict = await harness.reconcile()
        assert (verdict.failed, verdict.requeue_after) == (True, 10.0)


async def test_a_cr_at_rest_is_a_success_although_its_resync_lies_ahead():
    harness = annotated(ONE)
    verdict = await harness.until_settled()
    assert (verdict.requeue_after, verdict.result) == (36000.0, "success")
    harness.edit_app(metadata={**harness.app["metadata"], "annotations": {RECONCILE_PERIOD: "0s"}})
    verdict = await harness.until_settled()
    assert (verdict.requeue_after, verdict.result) == (None, "success")


async def test_a_wait_shorter_than_the_resync_is_a_requeue_and_a_failure_is_an_error():
    harness = annotated(ONE)
    harness.server.make(child("a", owner=None, data={}))
    assert (await harness.until_settled()).result == "requeue_after", "somebody else's object is read again"
    broken = annotated(ONE)
    broken.server.answer_with("create", "a", Answer.BROKEN)
    assert (await broken.reconcile()).result == "error"
    overtaken = annotated(ONE)
    overtaken.server.before[("status", "web")] = lambda: overtaken.edit_app(spec={"v": "2"})
    assert (await overtaken.reconcile()).result == "requeue", "the status was planned for an older version of the CR"
    assert (await overtaken.until_settled()).result == "success"


# -- at once -----------------------------------------------------------------------------------------------------------

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: home}\n"
INSIDE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: home}\ndata: {v: '1'}\n"
BYE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bye}\ndata: {v: '1'}\n"


async def create_a_conflicting_object(harness):
    harness.server.make(child("a", owner=None, data={}))
    await harness.until_settled()
    for _ in range(8):
        harness.time += 61  # reads have become rare
        await harness.reconcile()


async def cause_a_field_conflict(harness):
    await harness.until_settled()
    for _ in range(ENOUGH + 1):
        harness.edit("a", data={"v": "theirs"})
        verdict = await harness.until_settled()
    for _ in range(3):
        harness.time += verdict.requeue_after + 0.1
        await harness.until_settled()  # it is reverted
        harness.edit("a", data={"v": "theirs"})
        verdict = await harness.until_settled()
    assert verdict.requeue_after > 30
    assert harness.condition()["reason"] == "FieldConflict"


@pytest.mark.parametrize("disturb", [create_a_conflicting_object, cause_a_field_conflict])
async def test_finalization_is_not_delayed_by_the_backoff_of_a_child(disturb):
    harness = ReconcilerHarness(f"{ONE}finalize: {{bye: {{template: bye.yaml}}}}\n", {}, a=A, bye=BYE)
    await disturb(harness)
    harness.delete_app()
    waited = 0.0
    while harness.app is not None:
        waited += (await harness.reconcile()).requeue_after or 0.0
        assert waited < 1


async def test_a_change_that_a_response_allows_is_made_at_once_despite_a_conflicting_object():
    more = "ns: {template: ns.yaml, when: spec.more}, inside: {template: inside.yaml, when: spec.more}"
    harness = ReconcilerHarness(
        f"reach: cluster\nchildren: {{a: {{template: a.yaml}}, {more}}}\n",
        {"more": False},
        a=A,
        ns=NAMESPACE,
        inside=INSIDE,
    )
    await create_a_conflicting_object(harness)
    harness.edit_app(spec={"more": True})
    waited = 0.0
    while ("create", "inside") not in harness.server.log:
        assert waited < 1
        waited += (await harness.reconcile()).requeue_after or 0.0


# -- what was refused for good -----------------------------------------------------------------------------------------

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "{{ spec.size }}"}}}
"""


async def a_claim_that_is_not_bound(period="0s"):
    """It cannot grow yet, and the API server answers that its spec is immutable."""
    harness = ReconcilerHarness(f"reconcilePeriod: {period}\n{ONE}", {"size": "1Gi"}, a=CLAIM)
    await harness.until_settled()
    harness.edit_app(spec={"size": "2Gi"})
    await harness.until_settled()
    assert "spec is immutable" in harness.condition()["message"]
    return harness


def tries(harness):
    return harness.server.log.count(("patch", "a"))


def change_the_claim(harness, phase):
    key = harness.key("a", "PersistentVolumeClaim")
    harness.server.edit(key, status={"phase": phase})
    harness.stores.catch_up()
    return key


async def test_a_permanently_rejected_change_is_retried_when_the_object_has_changed():
    harness = await a_claim_that_is_not_bound()
    assert (await harness.reconcile()).requeue_after is None, "until then there is nothing to do"
    key = change_the_claim(harness, "Bound")
    assert (await harness.reconcile()).requeue_after == REFUSED_FIRST
    assert tries(harness) == 1
    harness.time += REFUSED_FIRST
    await harness.until_settled()
    assert harness.server.live(key)["spec"]["resources"] == {"requests": {"storage": "2Gi"}}
    assert harness.condition()["reason"] != "ApplyFailed"


async def test_a_permanently_rejected_change_is_retried_at_each_resync():
    harness = await a_claim_that_is_not_bound("1h")
    for number in range(3):
        assert tries(harness) == 1 + number
        harness.time += (await harness.until_settled()).requeue_after
        await harness.until_settled()


@pytest.mark.slow
async def test_an_object_that_changes_all_the_time_causes_few_retries_and_no_status_write():
    harness = await a_claim_that_is_not_bound()
    before = harness.condition(), harness.server.log.count(("status", "web"))
    for second in range(0, 1800, 5):
        harness.time += 5
        change_the_claim(harness, f"Lost {second}")
        await harness.reconcile()
    assert tries(harness) == 1 + 8, "after 5, 15, 35, 75, 155, 315, 635 and 1,275 seconds"
    assert (harness.condition(), harness.server.log.count(("status", "web"))) == before


async def test_a_paused_cr_is_not_retried():
    harness = await a_claim_that_is_not_bound()
    change_the_claim(harness, "Bound")
    harness.edit_app(metadata={**harness.app["metadata"], "annotations": {PAUSED: "true"}})
    harness.time += REFUSED_FIRST
    assert (await harness.until_settled()).requeue_after is None
    assert tries(harness) == 1
