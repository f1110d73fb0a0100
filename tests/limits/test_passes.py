"""All plans of a pass share one account. A plan that does not fit into what the earlier ones have left is made by the
next pass, so no pass costs more than one account."""

from __future__ import annotations

import asyncio

import pytest

from ruleop.core.planning import Planning
from ruleop.core.templating.values import cost
from ruleop.operator.engine.queue.result import IMMEDIATELY, Result
from ruleop.operator.engine.reconcile import pass_planning
from ruleop.operator.engine.reconcile.reconciler import MAX_REPLANS
from tests.engine.reconciler_harness import ReconcilerHarness
from tests.engine.server import Answer
from tests.limits.shapes import EACH, of_each, texts

CHILDREN = 40
CONTINUED = Result(requeue_after=IMMEDIATELY, reason="the pass is continued")


def harness() -> ReconcilerHarness:
    return ReconcilerHarness(EACH, {"items": texts(CHILDREN)}, **of_each("  a: '{{ item }}'\n"))


@pytest.fixture
def accounts(monkeypatch):
    """The accounts of all plans. An account suffices for one plan of the children, but not for two."""
    found = []

    def planning(*arguments, **more):
        made = Planning(*arguments, **more)
        found.append(made.account)
        return made

    monkeypatch.setattr(pass_planning, "Planning", planning)
    monkeypatch.setattr(cost, "RESERVE", 0)
    asyncio.run(harness().reconcile())
    assert found[0] is found[1]
    monkeypatch.setattr(cost, "FUEL", found[0].units * 3 // 4)
    found.clear()
    return found


def test_the_status_of_a_large_pass_is_planned_by_the_next_one(accounts):
    async def scenario():
        large = harness()
        assert await large.reconcile() == CONTINUED
        assert len(large.server.requests("create")) == CHILDREN
        assert not large.condition()
        assert not (await large.reconcile()).failed
        assert large.condition()["reason"] == "Ready"
        assert len(large.writes()) == CHILDREN + 1
        assert len(accounts) == 3
        assert accounts[0] is accounts[1] is not accounts[2]
        assert all(each.units <= cost.FUEL for each in accounts)

    asyncio.run(scenario())


def test_failed_writes_of_a_large_pass_are_reported_before_they_are_retried(accounts):
    async def scenario():
        large = harness()
        large.server.answer_with("create", "a-7", *[Answer.FORBIDDEN] * 9)
        assert await large.reconcile() == CONTINUED
        verdict = await large.reconcile()
        assert verdict.failed
        assert large.server.requests("create").count(("create", "a-7")) == 1
        assert large.condition()["reason"] == "Forbidden"
        assert "a-7" in large.condition()["message"]
        large.server.answers.clear()
        await large.until_settled()
        assert large.condition()["reason"] == "Ready"

    asyncio.run(scenario())


def test_an_edit_before_the_status_of_a_large_pass_is_planned_first(accounts):
    async def scenario():
        large = harness()
        large.server.answer_with("create", "a-7", Answer.FORBIDDEN)
        assert await large.reconcile() == CONTINUED
        large.edit_app(spec={"items": ["x"]})
        await large.until_settled()
        assert large.condition()["reason"] == "Ready"
        assert large.live("a-0")["data"] == {"a": "x"}
        assert large.live("a-7") is None

    asyncio.run(scenario())


def test_a_pass_that_is_outdated_when_its_account_is_used_up_fails_and_reports_that(accounts):
    async def scenario():
        large = harness()
        await large.until_settled()
        large.edit_app(spec={"items": texts(CHILDREN // 2, "other-")})
        large.server.answer_with("patch", "a-7", *[Answer.CONFLICT] * 9)
        assert await large.reconcile() == CONTINUED
        assert large.server.requests("patch").count(("patch", "a-7")) < MAX_REPLANS
        assert (await large.reconcile()).failed
        large.server.answers.clear()
        await large.until_settled()
        assert large.condition()["reason"] == "Ready"
        assert large.live("a-7")["data"] == {"a": "other-7"}

    asyncio.run(scenario())


def test_a_resource_that_does_not_fit_into_an_account_of_its_own_fails(accounts):
    async def scenario():
        large = harness()
        large.edit_app(spec={"items": texts(CHILDREN * 2)})
        assert await large.reconcile() != CONTINUED
        assert large.condition()["reason"] == "RenderFailed"
        assert "too much work for one resource" in large.condition()["message"]
        assert len(accounts) == 1

    asyncio.run(scenario())
