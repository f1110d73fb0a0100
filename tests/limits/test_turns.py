"""Large plans are divided between turns of the loop. Steps are counted, not seconds."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import itertools
from collections import Counter

import pytest

from ruleop.core.planning import Planning, plan
from ruleop.operator.engine.reconcile import pass_planning
from ruleop.operator.engine.reconcile import turns as module
from ruleop.operator.engine.reconcile.turns import Turns
from tests.limits.shapes import EACH, FROM_FILE, of_each, template, texts
from tests.limits.turns import Large
from tests.planning.harness import Harness, as_bytes
from tests.waiting import a_moment


@pytest.fixture
def clock(monkeypatch):
    """A millisecond passes with each read of the clock."""
    times = itertools.count(1)
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(times) / 1000)


def in_loop(test):
    """Runs an asynchronous test."""

    @functools.wraps(test)
    def run(**fixtures):
        asyncio.run(test(**fixtures))

    return run


def steps_of(number, log, name):
    for each in range(number):
        log.append((name, each))
        yield


@in_loop
async def test_long_work_is_divided_into_turns_and_finished_in_order(clock):
    log, turns, others = [], Turns(), []

    async def other():
        while True:
            others.append(len(log))
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await asyncio.gather(*(turns.finish_steps(steps_of(40, log, name)) for name in "abc"))
    task.cancel()
    assert Counter(name for name, _ in log) == {"a": 40, "b": 40, "c": 40}
    assert max(after - before for before, after in itertools.pairwise(others)) <= 15
    after_the_first_slices = [name for name, each in log if each > 12]
    assert after_the_first_slices == sorted(after_the_first_slices)


class ManualClock:
    """Time passes only in steps of work."""

    def __init__(self, monkeypatch):
        self.now = 1.0
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.now)

    def steps(self, log, name, *seconds):
        for each in seconds:
            self.now += each
            log.append(name)
            yield


async def turns_of_the_loop(log, found):
    """What was done in each turn."""
    while True:
        before = len(log)
        await asyncio.sleep(0)
        if log[before:]:
            found.append("".join(log[before:]))


async def by_turns(turns, log, *works):
    found = []
    watch = asyncio.create_task(turns_of_the_loop(log, found))
    await asyncio.gather(*(turns.finish_steps(each) for each in works))
    await asyncio.sleep(0)
    watch.cancel()
    return found


@in_loop
async def test_each_turn_has_one_step_that_uses_it_up_however_many_wait(monkeypatch):
    """A render cannot be divided. Sixteen workers of four kinds may each have one of a second."""
    clock, log = ManualClock(monkeypatch), []
    found = await by_turns(Turns(), log, *(clock.steps(log, "x", 1.0) for _ in range(64)))
    assert found == ["x"] * 64


@in_loop
async def test_short_work_that_begins_shares_a_turn(monkeypatch):
    clock, log = ManualClock(monkeypatch), []
    found = await by_turns(Turns(), log, *(clock.steps(log, "s", 0.001) for _ in range(45)))
    assert [len(each) for each in found[:4]] == [11, 11, 11, 11]


@in_loop
async def test_short_work_goes_before_long_work_that_has_begun(monkeypatch):
    clock, log = ManualClock(monkeypatch), []
    long = clock.steps(log, "l", *[0.004] * 7)
    found = await by_turns(Turns(), log, long, *(clock.steps(log, "s", 0.001) for _ in range(8)))
    assert found == ["lll", "ssssssssl", "lll"]


@in_loop
async def test_long_work_continues_although_new_work_never_ends(monkeypatch):
    """Every other turn is its own."""
    clock, log = ManualClock(monkeypatch), []
    turns = Turns()
    works = [clock.steps(log, "l", *[0.004] * 12), *(clock.steps(log, "n", 1.0) for _ in range(20))]
    found = await by_turns(turns, log, *works)
    assert found[:6] == ["lll", "n", "lll", "n", "lll", "n"]


@in_loop
async def test_work_is_dropped_when_its_task_is_cancelled(monkeypatch):
    clock, log, turns = ManualClock(monkeypatch), [], Turns()
    tasks = [asyncio.create_task(turns.finish_steps(clock.steps(log, name, 1.0, 1.0))) for name in "ab"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert log == ["a", "a"]


@in_loop
async def test_work_has_the_context_of_the_task_that_waits_for_it(monkeypatch):
    """The log lines of a dry run name its custom resource."""
    clock, log, turns, name = ManualClock(monkeypatch), [], Turns(), contextvars.ContextVar("name")

    async def work(own):
        name.set(own)
        await turns.finish_steps(steps(own))

    def steps(own):
        for _ in clock.steps(log, own, 1.0, 1.0, 1.0):
            assert name.get() == own
            yield

    await asyncio.gather(*map(work, "abc"))
    assert Counter(log) == {"a": 3, "b": 3, "c": 3}


@in_loop
async def test_short_work_never_waits():
    turns, log = Turns(), []
    with pytest.raises(StopIteration):
        turns.finish_steps(steps_of(3, log, "a")).send(None)  # a coroutine that waits would not end here
    assert len(log) == 3


@in_loop
async def test_an_error_ends_the_work_and_others_continue(clock):
    turns, log = Turns(), []

    def failing():
        for _ in range(30):
            yield
        raise ValueError

    results = await asyncio.gather(
        turns.finish_steps(failing()),
        turns.finish_steps(steps_of(50, log, "b")),
        return_exceptions=True,
    )
    assert isinstance(results[0], ValueError)
    assert len(log) == 50


@pytest.mark.slow
def test_a_plan_in_steps_is_the_same_plan():
    harness = Harness.of(EACH, {"items": texts(20)}, **of_each("  a: '{{ item }}'\n"))
    assert harness.resource is not None
    planning = Planning(harness.rule, harness.resource, harness.observed())
    steps = 0
    while (planned := planning.run(lambda: True)) is None:
        steps += 1
        # Another plan in between has an account of its own, and does not change this one.
        assert as_bytes(harness.plan()) == as_bytes(plan(harness.rule, harness.resource, harness.observed()))
    assert steps > 40
    assert as_bytes(planned) == as_bytes(harness.plan())


def test_each_plan_has_its_own_account():
    harness = Harness.of(FROM_FILE, {"items": texts(3000)}, **template("  a: '{{ spec['items'] | join }}'\n"))
    assert harness.resource is not None
    harness.plan()  # parses the template's text, which is cached
    plans = [Planning(harness.rule, harness.resource, harness.observed()) for _ in range(3)]
    while plans[0].run(lambda: True) is None:
        plans[1].run(lambda: True)
    plans[1].finish()
    plans[2].finish()
    assert plans[0].account.units == plans[1].account.units == plans[2].account.units > 0


@pytest.mark.slow
def test_a_plan_leaves_nothing_for_the_garbage_collector():
    harness = Harness.of(
        EACH + "    let: {x: \"{{ spec['items'] }}\"}\n",
        {"items": texts(5)},
        **of_each("  a: '{{ item }}{{ x | length }}'\n"),
    )
    harness.plan()
    gc.collect()
    gc.disable()
    try:
        harness.plan()
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.slow
@in_loop
async def test_several_large_resources_are_reconciled_in_many_turns(clock):
    large = Large(3, 60)
    thresholds = gc.get_threshold()
    turns = await large.reconcile()
    assert len(turns) > 50
    assert gc.get_threshold() == thresholds
    assert len(large.cluster.bodies) == 3 + 3 * 60
    large.edit()
    await large.reconcile()
    images = {
        large.cluster.get(key)["spec"]["template"]["spec"]["containers"][0]["image"]
        for key in large.cluster.bodies
        if key.kind == "Deployment"
    }
    assert images == {"ix"}


OBSERVE = """
observe:
  seen: {group: "", version: v1, kind: Secret, name: "{{ spec.image }}"}
"""


@in_loop
async def test_a_large_plan_that_starts_a_watch_is_planned_again(clock, monkeypatch):
    """An object that it reads may change between two of its turns, before its watch exists."""
    made = []
    monkeypatch.setattr(pass_planning, "Planning", lambda *args, **more: made.append(1) or Planning(*args, **more))
    counts = []
    for more in ("", OBSERVE):
        large = Large(1, 60, more=more)
        for _ in range(2):
            made.clear()
            await large.reconcile()
            counts.append(len(made))
    assert counts == [2, 1, 3, 1]


@in_loop
async def test_full_collections_are_suspended_only_while_large_passes_are_in_progress(monkeypatch):
    pause, before = Turns().collector_pause, gc.get_threshold()
    pause.begin()
    pause.begin()
    assert gc.get_threshold() == (*before[:2], module.NEVER)
    pause.end()
    assert gc.get_threshold()[2] == module.NEVER
    pause.end()
    assert gc.get_threshold() == before
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.0)
    pause.begin()
    await a_moment(0.01)
    assert gc.get_threshold() == before
    pause.end()
    assert gc.get_threshold() == before
