"""A plan has an account. A pass whose plans have used more than half of one leaves the status to the next pass, unless
writes have failed: that is reported at once."""

from __future__ import annotations

import asyncio

import pytest

from ruleop.language.templates.values import cost
from ruleop.operator.passes import pass_planning
from ruleop.operator.passes.reconciler import MAX_REPLANS
from ruleop.operator.queue.work_queue import IMMEDIATELY, Result
from tests.limits.shapes import EACH, of_each, texts
from tests.operator.passes.reconciler_harness import ReconcilerHarness
from tests.operator.server import Answer

CHILDREN = 40
CONTINUED = Result(requeue_after=IMMEDIATELY)


def harness() -> ReconcilerHarness:
    return ReconcilerHarness(EACH, {"items": texts(CHILDREN)}, **of_each("  a: '{{ item }}'\n"))


@pytest.fixture
def accounts(monkeypatch):
    """The accounts of all plans. A plan of the children uses three fifths of one."""
    found = []

    def account():
        found.append(cost.Account())
        return found[-1]

    monkeypatch.setattr(pass_planning, "Account", account)
    monkeypatch.setattr(cost, "RESERVED_MEMORY", 0)
    asyncio.run(harness().reconcile())
    assert len(found) == 2
    monkeypatch.setattr(cost, "MEMORY", found[0].bytes * 5 // 3)
    found.clear()
    return found


@pytest.mark.slow
async def test_the_status_of_a_large_pass_is_planned_by_the_next_one(accounts):
    large = harness()
    assert await large.reconcile() == CONTINUED
    assert len(large.server.requests("create")) == CHILDREN
    assert not large.condition()
    assert not (await large.reconcile()).failed
    assert large.condition()["reason"] == "Ready"
    assert len(large.writes()) == CHILDREN + 1
    assert len(accounts) == 2


@pytest.mark.slow
async def test_failed_writes_of_a_large_pass_are_reported_at_once(accounts):
    large = harness()
    large.server.answer_with("create", "a-7", *[Answer.FORBIDDEN] * 9)
    assert (await large.reconcile()).failed
    assert large.server.requests("create").count(("create", "a-7")) == 1
    assert large.condition()["reason"] == "Forbidden"
    assert "a-7" in large.condition()["message"]
    large.server.answers.clear()
    await large.until_settled()
    assert large.condition()["reason"] == "Ready"


@pytest.mark.slow
async def test_an_edit_before_the_status_of_a_large_pass_is_planned_first(accounts):
    large = harness()
    assert await large.reconcile() == CONTINUED
    large.edit_app(spec={"items": ["x"]})
    await large.until_settled()
    assert large.condition()["reason"] == "Ready"
    assert large.live("a-0")["data"] == {"a": "x"}
    assert large.live("a-7") is None


@pytest.mark.slow
async def test_a_large_pass_that_is_outdated_fails_and_reports_that(accounts):
    large = harness()
    await large.until_settled()
    large.edit_app(spec={"items": texts(CHILDREN // 2, "other-")})
    large.server.answer_with("patch", "a-7", *[Answer.CONFLICT] * 9)
    assert (await large.reconcile()).failed
    assert large.server.requests("patch").count(("patch", "a-7")) < MAX_REPLANS
    large.server.answers.clear()
    await large.until_settled()
    assert large.condition()["reason"] == "Ready"
    assert large.live("a-7")["data"] == {"a": "other-7"}


async def test_a_resource_that_does_not_fit_into_an_account_fails(accounts):
    large = harness()
    large.edit_app(spec={"items": texts(CHILDREN * 2)})
    assert await large.reconcile() != CONTINUED
    assert large.condition()["reason"] == "RenderFailed"
    assert "too much work for one resource" in large.condition()["message"]
    assert len(accounts) == 1
