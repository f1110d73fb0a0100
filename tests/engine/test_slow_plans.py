"""Custom resources whose plans take long are planned one at a time, and late, so that others are not kept waiting."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from ruleop.core.kinds import GroupKind
from ruleop.core.planning import guard, planner
from ruleop.core.planning.guard import GUARD
from ruleop.core.planning.late_plans import CAP, FIRST, Late
from ruleop.core.planning.model.marks import RECONCILE_PERIOD
from ruleop.core.recording.typed_json import decode, encode
from ruleop.operator.engine.queue.request import IMMEDIATELY, Request, Result
from ruleop.operator.engine.queue.work_queue import Urgency
from ruleop.operator.engine.reconcile.reconciler import PLAN_IS_SLOW, TURN_AT_LATEST
from ruleop.operator.engine.reconcile.slow_plans import ARRIVAL, LEAST, LONGEST_WAIT, PAUSE, Slow, SlowPlans
from tests.engine.reconciler_harness import WEB, ReconcilerHarness
from tests.engine.virtual_time import run_in_virtual_time

# Hypothesis has a callback of the garbage collector: an interruption in it is discarded, and the guard raises again.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
LATE = "its plan took too long"
KIND = GroupKind("example.com", "App")


def endless(*_: Any) -> Any:
    while True:
        pass


def harness_with(**annotations: str) -> ReconcilerHarness:
    harness = ReconcilerHarness("children: {a: {template: a.yaml}}\n", {"v": "1"}, a=A)
    harness.edit_app(metadata={**harness.app["metadata"], "annotations": annotations})
    return harness


@pytest.fixture
def endless_plans(monkeypatch):
    """Plans that only the guard ends, as soon as it may."""
    monkeypatch.setattr("ruleop.core.planning.planner.find_existing", endless)
    monkeypatch.setattr(GUARD, "limit", 0.002)


# -- a plan that was ended ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", ["1s", "0s", "10h"])
async def test_a_late_plan_is_made_again_after_twice_the_time_whatever_the_period_is(endless_plans, own):
    harness, waits = harness_with(**{RECONCILE_PERIOD: own}), []
    for _ in range(9):
        result = await harness.reconcile()
        assert result.reason == LATE
        waits.append(result.requeue_after)
        harness.time += result.requeue_after
    assert waits == [FIRST * 2**number for number in range(6)] + [CAP] * 3
    assert harness.condition()["reason"] == "RenderFailed"


async def test_no_event_makes_a_late_plan_sooner(endless_plans, monkeypatch):
    harness, plans = harness_with(), []
    await harness.reconcile()
    monkeypatch.setattr(harness.reconciler.planning, "plan", lambda *_: plans.append(1))
    harness.time += FIRST / 2
    for _ in range(3):  # such as events of its children
        assert await harness.reconcile() == Result(requeue_after=FIRST / 2, reason=LATE)
    harness.edit_app(status={"of": "somebody else"})
    assert await harness.reconcile() == Result(requeue_after=FIRST / 2, reason=LATE)
    assert not plans


@pytest.mark.parametrize(
    "edit",
    [
        {"spec": {"v": "2"}},
        {"metadata": {"annotations": {"ruleop.dev/paused": "true"}}},
        {"metadata": {"labels": {"a": "b"}}},
    ],
)
async def test_a_changed_resource_is_planned_at_once(endless_plans, monkeypatch, edit):
    harness = harness_with()
    await harness.reconcile()
    monkeypatch.undo()
    metadata = {**harness.app["metadata"], **edit.get("metadata", {})}
    harness.edit_app(**{**edit, "metadata": metadata})
    result = await harness.until_settled()
    assert result.reason != LATE
    assert harness.reconciler.histories[WEB].late is None


async def test_a_deletion_is_planned_at_once(endless_plans, monkeypatch):
    harness = harness_with()
    harness.edit_app(metadata={**harness.app["metadata"], "finalizers": ["ruleop.dev/ruleop"]})
    await harness.reconcile()
    monkeypatch.undo()
    harness.delete_app()
    await harness.until_settled()
    assert harness.app is None


async def test_changed_rules_are_planned_at_once(endless_plans, monkeypatch):
    harness = harness_with()
    await harness.reconcile()
    monkeypatch.undo()
    other = ReconcilerHarness("children: {a: {template: a.yaml}}\n", {"v": "1"}, a=A.replace("name: a", "name: b"))
    harness.reconciler.rules = other.project.rules
    await harness.until_settled()
    assert harness.condition()["status"] == "True"


async def test_that_a_plan_was_ended_is_reported_at_once_although_others_write_children(endless_plans):
    """The next plan, which would write a status that was put off, is a long time away."""
    harness = harness_with()
    debounce = harness.reconciler.debounce
    debounce.begin()
    harness.busy = True
    await harness.reconcile()
    assert harness.condition()["reason"] == "RenderFailed"


async def test_a_recorded_pass_has_the_time_of_the_next_plan(endless_plans):
    harness = harness_with()
    await harness.reconcile()
    history = harness.reconciler.histories[WEB]
    assert history.late is not None
    assert decode(encode(history)) == history


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"resourceVersion": "2"}, True),
        ({"resourceVersion": "2", "managedFields": []}, True),
        ({"resourceVersion": "2", "generation": 2}, False),
        ({"resourceVersion": "2", "annotations": {"a": "b"}}, False),
        ({"resourceVersion": "2", "uid": "v"}, False),
    ],
)
def test_a_late_plan_is_known_by_what_the_author_can_change(changed, same):
    rule, metadata = harness_with().project.rules[0], {"uid": "u", "resourceVersion": "1", "generation": 1}
    late = Late.after(None, rule, {"metadata": metadata}, 0.0)
    assert late.is_for(rule, {"metadata": {**metadata, **changed}, "status": {"a": "b"}}) is same


def test_a_kind_without_generations_is_known_by_its_version():
    rule = harness_with().project.rules[0]
    late = Late.after(None, rule, {"metadata": {"uid": "u", "resourceVersion": "1"}}, 0.0)
    assert late.is_for(rule, {"metadata": {"uid": "u", "resourceVersion": "1"}})
    assert not late.is_for(rule, {"metadata": {"uid": "u", "resourceVersion": "2"}})


# -- a plan that takes long in one turn --------------------------------------------------------------------------------


@pytest.fixture
def slow_steps(monkeypatch):
    """Each step takes longer than the guard's patience. `plans`: those that were begun."""
    plans: list[bool] = []
    find_existing = planner.find_existing

    def slow(*args: Any) -> Any:
        plans.append(GUARD.running.hasty)
        if GUARD.running.hasty:
            endless()
        return (yield from find_existing(*args))

    monkeypatch.setattr(planner, "find_existing", slow)
    monkeypatch.setattr(GUARD, "patience", 0.002)
    return plans


async def in_its_turn(harness: ReconcilerHarness) -> Result:
    """The result of the pass that takes place when it is its turn."""
    woken = asyncio.Event()
    harness.reconciler.workers.add = lambda *_: woken.set()
    while (result := await harness.reconcile()) == Result(requeue_after=TURN_AT_LATEST, reason=PLAN_IS_SLOW):
        await woken.wait()
        woken.clear()
    return result


async def test_a_slow_plan_is_given_up_and_made_again_when_it_is_its_turn(slow_steps):
    harness = harness_with()
    assert await harness.reconcile() == Result(requeue_after=IMMEDIATELY, reason=PLAN_IS_SLOW)
    assert not harness.writes()
    await in_its_turn(harness)
    assert slow_steps[:2] == [True, False]
    assert harness.condition()["status"] == "True"


async def test_a_slow_plan_waits_while_it_is_the_turn_of_another(slow_steps):
    harness = harness_with()
    slow_plans = harness.reconciler.environment.slow_plans
    other = Slow(KIND, Request("shop", "other"))
    assert slow_plans.begin(other, Urgency.CHANGE, lambda: None)
    woken = asyncio.Event()
    harness.reconciler.workers.add = lambda request, *_: request == WEB and woken.set()
    await harness.reconcile()
    for _ in range(2):
        assert await harness.reconcile() == Result(requeue_after=TURN_AT_LATEST, reason=PLAN_IS_SLOW)
    assert slow_steps == [True]
    slow_plans.end(other, 0.0)
    await woken.wait()
    await harness.reconcile()
    assert slow_steps[1] is False


async def test_a_resource_is_slow_until_its_plans_are_short(slow_steps, monkeypatch):
    harness = harness_with()
    await harness.reconcile()
    assert harness.reconciler.slow == {WEB: True}
    monkeypatch.setattr(GUARD, "patience", 100.0)
    await in_its_turn(harness)
    assert not harness.reconciler.slow


async def test_nothing_is_kept_of_a_slow_resource_that_is_gone(slow_steps):
    harness = harness_with()
    await harness.reconcile()
    harness.server.remove(harness.key("web", "App"))
    harness.stores.catch_up()
    await harness.reconcile()
    assert not harness.reconciler.slow


# -- many new ones at once ---------------------------------------------------------------------------------------------


@dataclass
class Cpu:
    """A clock of CPU time that only the steps of plans advance, and the plans that were begun: whether each was
    hasty."""

    now: float = 0.0
    step: float = 0.0  # seconds that each step needs
    plans: list[bool] = field(default_factory=list)

    def work(self) -> None:
        self.plans.append(GUARD.running.hasty)
        ends = self.now + self.step
        while self.now < ends:
            self.now += 0.001
            GUARD.check(0, None)


@pytest.fixture
def cpu(monkeypatch):
    """The guard's patience is a second."""
    found, find_existing = Cpu(), planner.find_existing

    def slow(*args: Any) -> Any:
        found.work()
        return (yield from find_existing(*args))

    monkeypatch.setattr(planner, "find_existing", slow)
    monkeypatch.setattr(guard.time, "thread_time", lambda: found.now)
    monkeypatch.setattr(guard.gc, "get_stats", lambda: [{}, {}, {"collections": 0}])  # a full one gives more time
    monkeypatch.setattr(GUARD, "_collections", 0)
    monkeypatch.setattr(GUARD, "limit", 1000.0)
    monkeypatch.setattr(GUARD, "patience", 1.0)
    return found


async def give_up(harness: ReconcilerHarness, cpu: Cpu, number: int) -> list[float]:
    """The time that each plan of as many new custom resources used, which would have taken long."""
    used, cpu.step = [], 50.0
    for _ in range(number):
        start = cpu.now
        assert await harness.reconcile() == Result(requeue_after=IMMEDIATELY, reason=PLAN_IS_SLOW)
        used.append(cpu.now - start)
        harness.reconciler.remove(WEB)  # the next one is new, too
    cpu.plans.clear()
    return used


async def test_the_more_new_plans_are_given_up_the_sooner_is_the_next(cpu):
    harness = harness_with()
    assert await give_up(harness, cpu, 64) == pytest.approx([1.0, 0.5, 0.25, *[LEAST] * 61], abs=0.01)
    assert LEAST == 1 / 8
    cpu.step = 0.01
    await harness.until_settled()
    assert harness.condition()["status"] == "True"


async def test_plans_that_are_finished_give_the_patience_back(cpu):
    harness = harness_with()
    await give_up(harness, cpu, 64)
    cpu.step = 0.01
    for _ in range(8):
        await harness.reconcile()
    assert await give_up(harness, cpu, 1) == pytest.approx([1.0], abs=0.01)


async def test_a_plan_with_less_than_the_whole_patience_has_it_when_it_is_its_turn(cpu):
    """It was wronged: it is late, and nothing else. Neither its own patience nor that of the next ones is less."""
    harness = harness_with()
    await give_up(harness, cpu, 64)
    cpu.step = 0.9
    assert (await harness.reconcile()).reason == PLAN_IS_SLOW
    assert harness.reconciler.slow == {WEB: False}
    await in_its_turn(harness)
    assert all(cpu.plans)
    assert harness.condition()["status"] == "True"
    assert not harness.reconciler.slow


@pytest.mark.slow
async def test_a_plan_that_is_given_up_with_the_whole_patience_is_made_at_last_without_haste(cpu):
    harness = harness_with()
    await give_up(harness, cpu, 64)
    cpu.step = 50.0
    await harness.reconcile()
    assert await in_its_turn(harness) == Result(requeue_after=IMMEDIATELY, reason=PLAN_IS_SLOW)
    assert harness.reconciler.slow == {WEB: True}
    await in_its_turn(harness)
    assert cpu.plans[:3] == [True, True, False]
    assert harness.condition()["status"] == "True"
    assert harness.reconciler.slow == {WEB: True}


async def test_a_plan_that_is_given_up_in_its_turn_takes_no_patience_of_others(cpu):
    harness = harness_with()
    await give_up(harness, cpu, 1)
    cpu.step = 50.0
    harness.reconciler.slow[WEB] = False
    await in_its_turn(harness)
    assert harness.reconciler.environment.slow_plans.share == 0.5


@pytest.mark.parametrize(("certainly", "expected"), [(False, Urgency.CHANGE), (True, Urgency.RETRY)])
async def test_plans_that_had_little_patience_come_before_those_that_certainly_take_long(
    monkeypatch, certainly, expected
):
    harness, asked = harness_with(), []
    slow_plans = harness.reconciler.environment.slow_plans
    monkeypatch.setattr(slow_plans, "begin", lambda _slow, urgency, _wake: asked.append(urgency))
    harness.reconciler.slow[WEB] = certainly
    await harness.reconcile()
    assert asked == [expected]


async def test_plans_that_were_ended_before_come_last(endless_plans, monkeypatch):
    harness, asked = harness_with(), []
    slow_plans = harness.reconciler.environment.slow_plans
    monkeypatch.setattr(slow_plans, "begin", lambda _slow, urgency, _wake: asked.append(urgency))
    assert (await harness.reconcile()).reason == LATE
    harness.reconciler.slow[WEB] = True
    harness.time += FIRST
    await harness.reconcile()
    assert asked == [Urgency.RESYNC]


# -- whose turn it is --------------------------------------------------------------------------------------------------


class Lane:
    """Slow plans, and the passes that were made, as (start, name)."""

    def __init__(self) -> None:
        self.slow_plans = SlowPlans()
        self.passes: list[tuple[float, str]] = []
        self.start = asyncio.get_running_loop().time()
        self.gone: set[str] = set()

    def add(self, name: str, *, seconds: float = 1.0, namespace: str = "a", urgency: Urgency = Urgency.CHANGE) -> None:
        if name in self.gone:
            return
        slow, again = (
            Slow(KIND, Request(namespace, name)),
            partial(self.add, name, seconds=seconds, namespace=namespace),
        )
        if self.slow_plans.begin(slow, urgency, again):
            loop = asyncio.get_running_loop()
            self.passes.append((round(loop.time() - self.start, 1), name))
            loop.call_later(seconds, self.slow_plans.end, slow, seconds)


def lane(test: Any) -> list[tuple[float, str]]:
    async def run() -> list[tuple[float, str]]:
        found = Lane()
        test(found)
        await asyncio.sleep(1000)
        return found.passes

    return run_in_virtual_time(run())


def test_slow_plans_are_made_one_at_a_time_with_pauses_of_three_times_what_they_took():
    def test(found: Lane) -> None:
        found.add("a")
        found.add("b", seconds=0.2)
        found.add("c")

    assert PAUSE == 3
    assert lane(test) == [(0.0, "a"), (4.0, "b"), (4.8, "c")]


def test_the_first_plan_after_a_pause_does_not_wait():
    def test(found: Lane) -> None:
        found.add("a")
        asyncio.get_running_loop().call_later(10, found.add, "b")

    assert lane(test) == [(0.0, "a"), (10.0, "b")]


def test_the_first_plan_waits_after_one_that_was_given_up():
    def test(found: Lane) -> None:
        found.slow_plans.give_up(1.0)
        found.add("a")
        asyncio.get_running_loop().call_later(1, found.slow_plans.give_up, 1.0)  # which begins no pause of its own

    assert lane(test) == [(3.0, "a")]


def test_namespaces_take_turns():
    def test(found: Lane) -> None:
        for number in range(60):
            found.add(f"hostile-{number}")
        found.add("legitimate", namespace="b")

    assert [name for _, name in lane(test)].index("legitimate") <= 2


def test_changed_resources_go_before_failed_ones():
    def test(found: Lane) -> None:
        found.add("first")
        for number in range(3):
            found.add(f"late-{number}", urgency=Urgency.RETRY)
        found.add("changed")

    assert [name for _, name in lane(test)][:2] == ["first", "changed"]


def test_a_plan_that_certainly_takes_long_has_a_turn_however_many_come_first():
    def test(found: Lane) -> None:
        found.add("first", seconds=0.1)
        found.add("long", urgency=Urgency.RETRY)
        for number in range(2000):
            found.add(f"new-{number}", seconds=0.02)

    (start,) = (start for start, name in lane(test) if name == "long")
    assert LONGEST_WAIT <= start < LONGEST_WAIT + 1


def test_a_resource_that_does_not_come_misses_its_turn():
    def test(found: Lane) -> None:
        for name in "abc":
            found.add(name)
        found.gone.add("b")

    assert lane(test) == [(0.0, "a"), (4.0 + ARRIVAL, "c")]


def test_each_has_one_turn_however_often_it_asks():
    def test(found: Lane) -> None:
        found.add("a")
        for _ in range(5):
            found.add("b")

    assert Counter(name for _, name in lane(test)) == {"a": 1, "b": 1}
