"""When a CR is looked at again although nothing happens."""

from __future__ import annotations

import pytest

from ruleop.planning.drift import ENOUGH
from ruleop.planning.history import REFUSED_FIRST
from ruleop.planning.marks import PAUSED, RECONCILE_PERIOD
from tests.engine.looking import FINALIZER, Looking
from tests.engine.server import Answer, child

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '1'}\n"
ONE = "children: {a: {template: a.yaml}}\n"


def annotated(body, **annotations):
    looking = Looking(body, {}, a=A)
    looking.edit_app(metadata={**looking.app["metadata"], "generation": 2, "annotations": annotations})
    return looking


# -- the period --------------------------------------------------------------------------------------------------------------------------


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
def test_the_period_is_the_rules_or_the_crs_own(run, rule, own, again):
    async def story():
        looking = annotated(f"reconcilePeriod: {rule}\n{ONE}", **({} if own is None else {RECONCILE_PERIOD: own}))
        assert (await looking.rest()).again == again
        assert ("has no effect" in looking.condition()["message"]) == (own == "often")

    run(story())


def test_a_cr_at_rest_is_a_success_although_its_resync_lies_ahead(run):
    async def story():
        looking = annotated(ONE)
        verdict = await looking.rest()
        assert (verdict.again, verdict.result) == (36000.0, "success")
        looking.edit_app(metadata={**looking.app["metadata"], "annotations": {RECONCILE_PERIOD: "0s"}})
        verdict = await looking.rest()
        assert (verdict.again, verdict.result) == (None, "success")

    run(story())


def test_what_is_awaited_before_the_resync_is_a_requeue_and_a_failure_an_error(run):
    async def story():
        looking = annotated(ONE)
        looking.server.make(child("a", owner=None, data={}))
        assert (await looking.rest()).result == "requeue_after", "somebody else's object is read again"
        broken = annotated(ONE)
        broken.server.say("create", "a", Answer.BROKEN)
        assert (await broken.look()).result == "error"
        overtaken = annotated(ONE)
        overtaken.server.before[("status", "web")] = lambda: overtaken.edit_app(metadata={**overtaken.app["metadata"], "generation": 3})
        assert (await overtaken.look()).result == "requeue", "there is a newer CR than the one that the status was made for"
        assert (await overtaken.rest()).result == "success"

    run(story())


# -- at once ---------------------------------------------------------------------------------------------------------------------------------

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: home}\n"
INSIDE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: home}\ndata: {v: '1'}\n"
BYE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bye}\ndata: {v: '1'}\n"


async def something_is_in_the_way(looking):
    looking.server.make(child("a", owner=None, data={}))
    await looking.rest()
    for _ in range(8):
        looking.time += 61  # looks have become rare
        await looking.look()


async def somebody_undoes_it(looking):
    await looking.rest()
    for _ in range(ENOUGH + 1):
        looking.edit("a", data={"v": "theirs"})
        verdict = await looking.rest()
    for _ in range(3):
        looking.time += verdict.again + 0.1
        await looking.rest()  # it is put back
        looking.edit("a", data={"v": "theirs"})
        verdict = await looking.rest()
    assert verdict.again > 30
    assert looking.condition()["reason"] == "FieldConflict"


@pytest.mark.parametrize("trouble", [something_is_in_the_way, somebody_undoes_it])
def test_a_cr_that_is_finalized_goes_on_at_once_whatever_is_wrong_with_a_child(run, trouble):
    async def story():
        looking = Looking(f"{ONE}finalize: {{bye: {{template: bye.yaml}}}}\n", {}, a=A, bye=BYE)
        looking.server.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        await trouble(looking)
        looking.edit_app(metadata={**looking.app["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"})
        waited = 0.0
        while FINALIZER in looking.app["metadata"]["finalizers"]:
            waited += (await looking.look()).again or 0.0
            assert waited < 1

    run(story())


def test_what_an_answer_made_possible_is_done_at_once_although_something_is_in_the_way(run):
    async def story():
        more = "ns: {template: ns.yaml, when: spec.more}, inside: {template: inside.yaml, when: spec.more}"
        looking = Looking(
            f"reach: cluster\nchildren: {{a: {{template: a.yaml}}, {more}}}\n", {"more": False}, a=A, ns=NAMESPACE, inside=INSIDE
        )
        await something_is_in_the_way(looking)
        looking.edit_app(spec={"more": True})
        make = looking.server.make
        looking.server.make = lambda obj: make({**obj, "status": {"phase": "Active"}} if obj["kind"] == "Namespace" else obj)
        waited = 0.0
        while ("create", "inside") not in looking.server.log:
            assert waited < 1
            waited += (await looking.look()).again or 0.0

    run(story())


# -- what was refused for good ---------------------------------------------------------------------------------------------------------------

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "{{ spec.size }}"}}}
"""


async def a_claim_that_is_not_bound(period="0s"):
    """It cannot grow yet, and the server says that it never can."""
    looking = Looking(f"reconcilePeriod: {period}\n{ONE}", {"size": "1Gi"}, a=CLAIM)
    await looking.rest()
    looking.edit_app(spec={"size": "2Gi"})
    looking.server.say("patch", "a", *[Answer.IMMUTABLE] * 100)
    await looking.rest()
    assert "field is immutable" in looking.condition()["message"]
    return looking


def tries(looking):
    return looking.server.log.count(("patch", "a"))


def change_the_claim(looking, phase):
    key = looking.key("a", "PersistentVolumeClaim")
    looking.server.edit(key, status={"phase": phase})
    looking.stores.catch_up()
    return key


def test_a_change_that_was_refused_for_good_passes_when_the_object_has_changed(run):
    async def story():
        looking = await a_claim_that_is_not_bound()
        assert (await looking.look()).again is None, "until then there is nothing to do"
        key = change_the_claim(looking, "Bound")
        looking.server.answers.clear()
        assert (await looking.look()).again == REFUSED_FIRST
        assert tries(looking) == 1
        looking.time += REFUSED_FIRST
        await looking.rest()
        assert looking.server.objects[key]["spec"]["resources"] == {"requests": {"storage": "2Gi"}}
        assert looking.condition()["reason"] != "ApplyFailed"

    run(story())


def test_it_is_tried_at_each_resync(run):
    async def story():
        looking = await a_claim_that_is_not_bound("1h")
        for number in range(3):
            assert tries(looking) == 1 + number
            looking.time += (await looking.rest()).again
            await looking.rest()

    run(story())


def test_an_object_that_changes_all_the_time_costs_few_tries_and_no_status(run):
    async def story():
        looking = await a_claim_that_is_not_bound()
        before = looking.condition(), looking.server.log.count(("status", "web"))
        for second in range(1800):
            looking.time += 1
            change_the_claim(looking, f"Lost {second}")
            await looking.look()
        assert tries(looking) == 1 + 4, "after 1, 3, 7 and 15 minutes"
        assert (looking.condition(), looking.server.log.count(("status", "web"))) == before

    run(story())


def test_what_hinders_another_try_costs_no_looks(run):
    async def story():
        looking = await a_claim_that_is_not_bound()
        change_the_claim(looking, "Bound")
        looking.edit_app(metadata={**looking.app["metadata"], "annotations": {PAUSED: "true"}})
        looking.time += REFUSED_FIRST
        assert (await looking.rest()).again is None
        assert tries(looking) == 1

    run(story())
