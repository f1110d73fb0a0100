"""Custom resources whose plans take long are planned in a thread, one at a time, and late if their plans are ended."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ruleop.kubernetes.kinds import GroupKind
from ruleop.operator.passes import large_plans
from ruleop.operator.passes.large_plans import ARRIVAL, AT_ONCE, LONGEST_WAIT, Large, LargePlans
from ruleop.operator.passes.reconciler import PLAN_IS_SLOW, TURN_AT_LATEST
from ruleop.operator.queue.work_queue import IMMEDIATELY, Request, Result, Urgency
from ruleop.planning import planner
from ruleop.planning.guard import GUARD
from ruleop.planning.model.marks import RECONCILE_PERIOD
from ruleop.planning.plan import CAP, FIRST, Late
from ruleop.planning.recording.recording import decode, encode
from tests.operator.passes.reconciler_harness import WEB, ReconcilerHarness
from tests.operator.virtual_time import run_in_virtual_time
from tests.waiting import PATIENCE

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
    """Plans that only the guards end, as soon as they may."""
    monkeypatch.setattr("ruleop.planning.planner.find_existing", endless)
    monkeypatch.setattr(GUARD, "limit", 0.002)
    monkeypatch.setattr(GUARD, "patience", 0.001)


async def planned(harness: ReconcilerHarness) -> Result:
    """The result of the pass that has a plan: in its turn, if it is large."""
    woken = asyncio.Event()
    harness.reconciler.workers.add = lambda *_: woken.set()
    while (result := await harness.reconcile()).reason == PLAN_IS_SLOW:
        if result.requeue_after == TURN_AT_LATEST:
            await woken.wait()
        woken.clear()
    return result


# -- a plan that was ended ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", ["1s", "0s", "10h"])
async def test_a_late_plan_is_made_again_after_twice_the_time_whatever_the_period_is(endless_plans, own):
    harness, waits = harness_with(**{RECONCILE_PERIOD: own}), []
    for _ in range(9):
        result = await planned(harness)
        assert result.reason == LATE
        waits.append(result.requeue_after)
        harness.time += result.requeue_after
    assert waits == [FIRST * 2**number for number in range(6)] + [CAP] * 3
    assert harness.condition()["reason"] == "RenderFailed"


async def test_no_event_makes_a_late_plan_sooner(endless_plans, monkeypatch):
    harness, plans = harness_with(), []
    await planned(harness)
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
    await planned(harness)
    monkeypatch.undo()
    metadata = {**harness.app["metadata"], **edit.get("metadata", {})}
    harness.edit_app(**{**edit, "metadata": metadata})
    result = await harness.until_settled()
    assert result.reason != LATE
    assert harness.reconciler.histories[WEB].late is None


async def test_a_deletion_is_planned_at_once(endless_plans, monkeypatch):
    harness = harness_with()
    harness.edit_app(metadata={**harness.app["metadata"], "finalizers": ["ruleop.dev/ruleop"]})
    await planned(harness)
    monkeypatch.undo()
    harness.delete_app()
    await harness.until_settled()
    assert harness.app is None


async def test_changed_rules_are_planned_at_once(endless_plans, monkeypatch):
    harness = harness_with()
    await planned(harness)
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
    await planned(harness)
    assert harness.condition()["reason"] == "RenderFailed"


async def test_a_recorded_pass_has_the_time_of_the_next_plan(endless_plans):
    harness = harness_with()
    await planned(harness)
    history = replace(harness.reconciler.histories[WEB], settled=None)  # which is never recorded
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


# -- a plan that takes long on the loop --------------------------------------------------------------------------------


@pytest.fixture
def slow_on_the_loop(monkeypatch):
    """Each plan uses up the guard's patience on the loop. Returns the threads in which plans were begun."""
    threads: list[str] = []
    find_existing = planner.find_existing

    def slow(*args: Any) -> Any:
        threads.append(threading.current_thread().name)
        if threading.current_thread() is threading.main_thread():
            endless()
        return find_existing(*args)

    monkeypatch.setattr(planner, "find_existing", slow)
    monkeypatch.setattr(GUARD, "patience", 0.002)
    return threads


async def test_a_slow_plan_is_given_up_and_made_in_the_thread(slow_on_the_loop):
    harness = harness_with()
    assert await harness.reconcile() == Result(requeue_after=IMMEDIATELY, reason=PLAN_IS_SLOW)
    assert not harness.writes()
    await planned(harness)
    assert slow_on_the_loop[:2] == ["MainThread", "ruleop plan"]
    assert harness.condition()["status"] == "True"


async def test_the_loop_does_other_work_while_the_thread_plans(monkeypatch):
    """The plan does not end before the loop has done something else."""
    harness, seen = harness_with(), threading.Event()
    harness.reconciler.large.add(WEB)
    find_existing = planner.find_existing

    def waiting(*args: Any) -> Any:
        assert threading.current_thread() is threading.main_thread() or seen.wait(PATIENCE)
        return find_existing(*args)

    monkeypatch.setattr(planner, "find_existing", waiting)
    task = asyncio.create_task(harness.reconcile())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    seen.set()
    await task
    assert harness.condition()["status"] == "True"


async def test_a_large_resource_waits_while_as_many_as_may_have_a_turn(slow_on_the_loop):
    harness = harness_with()
    large_plans = harness.reconciler.environment.large_plans
    others = [Large(KIND, Request("shop", f"other-{number}")) for number in range(AT_ONCE)]
    for other in others:
        assert large_plans.begin(other, Urgency.CHANGE, lambda: None)
    woken = asyncio.Event()
    harness.reconciler.workers.add = lambda request, *_: request == WEB and woken.set()
    await harness.reconcile()
    for _ in range(2):
        assert await harness.reconcile() == Result(requeue_after=TURN_AT_LATEST, reason=PLAN_IS_SLOW)
    assert slow_on_the_loop == ["MainThread"]
    large_plans.end(others[1])
    await woken.wait()
    await harness.reconcile()
    assert slow_on_the_loop[1] == "ruleop plan"


async def test_a_resource_is_large_until_its_plans_are_short(slow_on_the_loop, monkeypatch):
    harness = harness_with()
    await harness.reconcile()
    for share, large in ((0.0, {WEB}), (1e9, set())):  # of the guard's patience: no plan is short, then each is
        monkeypatch.setattr(large_plans, "SHORT", share)
        harness.edit_app(spec={"v": str(share)})
        assert harness.reconciler.large == {WEB}
        await planned(harness)
        assert harness.reconciler.large == large


async def test_nothing_is_kept_of_a_large_resource_that_is_gone(slow_on_the_loop):
    harness = harness_with()
    await harness.reconcile()
    harness.server.remove(harness.key("web", "App"))
    harness.stores.catch_up()
    await harness.reconcile()
    assert not harness.reconciler.large


async def test_plans_that_were_ended_before_come_last(endless_plans, monkeypatch):
    harness, asked = harness_with(), []
    assert (await planned(harness)).reason == LATE
    large_plans = harness.reconciler.environment.large_plans
    monkeypatch.setattr(large_plans, "begin", lambda _large, urgency, _wake: asked.append(urgency))
    harness.time += FIRST
    await harness.reconcile()
    assert asked == [Urgency.RESYNC]


async def test_a_pass_that_is_cancelled_ends_its_plan(endless_plans, monkeypatch):
    monkeypatch.setattr(GUARD, "limit", 100.0)
    harness = harness_with()
    harness.reconciler.large.add(WEB)
    task = asyncio.create_task(harness.reconcile())
    while not any(thread.name == "ruleop plan" for thread in threading.enumerate()):  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(lambda: [each.join(10) for each in threading.enumerate() if each.name == "ruleop plan"])
    assert not any(thread.name == "ruleop plan" for thread in threading.enumerate())


async def test_a_plan_that_is_ended_twice_is_an_error(endless_plans, monkeypatch):
    """Its report takes too long, too."""
    monkeypatch.setattr(planner, "overall_conditions", endless)
    monkeypatch.setattr("ruleop.operator.passes.large_plans.AGAIN", 0.01)
    harness = harness_with()
    result = await planned(harness)
    assert result.failed


# -- whose turn it is --------------------------------------------------------------------------------------------------


class Lane:
    """Large plans, and the passes that were made, as (start, name)."""

    def __init__(self) -> None:
        self.large_plans = LargePlans()
        self.passes: list[tuple[float, str]] = []
        self.start = asyncio.get_running_loop().time()
        self.gone: set[str] = set()

    def add(self, name: str, *, seconds: float = 1.0, namespace: str = "a", urgency: Urgency = Urgency.CHANGE) -> None:
        if name in self.gone:
            return
        large, again = (
            Large(KIND, Request(namespace, name)),
            partial(self.add, name, seconds=seconds, namespace=namespace),
        )
        if self.large_plans.begin(large, urgency, again):
            loop = asyncio.get_running_loop()
            self.passes.append((round(loop.time() - self.start, 1), name))
            loop.call_later(seconds, self.large_plans.end, large)


def lane(test: Any) -> list[tuple[float, str]]:
    async def run() -> list[tuple[float, str]]:
        found = Lane()
        test(found)
        await asyncio.sleep(1000)
        return found.passes

    return run_in_virtual_time(run())


def test_three_have_a_turn_at_once():
    def test(found: Lane) -> None:
        for name in "abcdef":
            found.add(name)

    assert AT_ONCE == 3
    assert lane(test) == [*((0.0, name) for name in "abc"), *((1.0, name) for name in "def")]


def test_namespaces_take_turns():
    def test(found: Lane) -> None:
        for number in range(60):
            found.add(f"hostile-{number}")
        found.add("legitimate", namespace="b")

    assert [name for _, name in lane(test)].index("legitimate") <= AT_ONCE + 1


def test_changed_resources_go_before_failed_ones():
    def test(found: Lane) -> None:
        for number in range(AT_ONCE):
            found.add(f"first-{number}")
        for number in range(5):
            found.add(f"late-{number}", urgency=Urgency.RETRY)
        found.add("changed")

    assert [name for _, name in lane(test)][AT_ONCE] == "changed"


@pytest.mark.slow
def test_a_plan_that_certainly_takes_long_has_a_turn_however_many_come_first():
    def test(found: Lane) -> None:
        found.add("first", seconds=0.1)
        for number in range(AT_ONCE - 1):
            found.add(f"first-{number}", seconds=0.1)
        found.add("long", urgency=Urgency.RETRY)
        for number in range(4000):
            found.add(f"new-{number}", seconds=0.1)

    (start,) = (start for start, name in lane(test) if name == "long")
    assert LONGEST_WAIT <= start < LONGEST_WAIT + 1


def test_a_resource_that_does_not_come_misses_its_turn():
    def test(found: Lane) -> None:
        for name in "abcdefghi":
            found.add(name)
        found.gone.update("def")

    assert lane(test)[AT_ONCE:] == [(1.0 + ARRIVAL, "g"), (1.0 + ARRIVAL, "h"), (1.0 + ARRIVAL, "i")]


def test_each_has_one_turn_however_often_it_asks():
    def test(found: Lane) -> None:
        for name in "abcd":
            found.add(name)
        for _ in range(5):
            found.add("e")

    assert Counter(name for _, name in lane(test)) == dict.fromkeys("abcde", 1)
