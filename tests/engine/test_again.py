"""When a CR is looked at again although nothing happens."""

from __future__ import annotations

import pytest

from ruleop.engine.fights import ENOUGH
from ruleop.planning.marks import RECONCILE_PERIOD
from tests.engine.looking import FINALIZER, Looking
from tests.engine.server import child

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
    assert looking.condition()["reason"] == "Fighting"


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
