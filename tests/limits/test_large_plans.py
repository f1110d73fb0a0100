"""Large plans are made in a thread, from one instant of the cluster, while the loop does other work."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from ruleop.operator.passes import pass_planning
from ruleop.planning import plan, planner
from ruleop.planning.guard import GUARD
from tests.limits.large import Large
from tests.limits.shapes import EACH, of_each, texts
from tests.planning.harness import Harness

# Python discards an interruption where it deletes an object, and in a callback of the garbage collector, which
# Hypothesis has: it is raised again.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


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


@pytest.fixture
def made(monkeypatch):
    """The threads in which plans were made. Each plan is too large for the loop."""
    found = []

    def noted(*args, **more):
        found.append(threading.current_thread().name)
        if threading.current_thread() is threading.main_thread():
            GUARD._ends = 0.0
            GUARD.check(0, None)
        return plan(*args, **more)

    monkeypatch.setattr(pass_planning, "plan", noted)
    monkeypatch.setattr(GUARD, "_collections", gc.get_stats()[2]["collections"])
    monkeypatch.setattr(GUARD, "patience", 0.0)
    return found


@pytest.mark.slow
async def test_several_large_resources_are_planned_in_a_thread_while_others_write(made):
    large = Large(6, 60)
    await large.reconcile()
    assert made.count("MainThread") == 6
    assert set(made) == {"MainThread", "ruleop plan"}
    assert len(large.cluster.bodies) == 6 + 6 * 60
    large.edit()
    await large.reconcile()
    images = {
        large.cluster.get(key)["spec"]["template"]["spec"]["containers"][0]["image"]
        for key in large.cluster.bodies
        if key.kind == "Deployment"
    }
    assert images == {"ix"}


async def test_the_status_of_a_plan_that_takes_long_is_planned_by_the_next_pass(made, monkeypatch):
    large = Large(1, 60)
    await large.reconcile()
    assert made.count("ruleop plan") == 2
    monkeypatch.setattr(pass_planning, "SECONDS", 1e-9)
    large = Large(1, 60)
    made.clear()
    await large.reconcile()
    assert made.count("ruleop plan") == 1


OBSERVE = """
observe:
  seen: {group: "", version: v1, kind: Secret, name: "{{ spec.image }}"}
"""


@pytest.mark.slow
async def test_a_large_plan_that_starts_a_watch_is_planned_again(made):
    """An object that it reads may change after the snapshot, before its watch exists."""
    counts = []
    for more in ("", OBSERVE):
        large = Large(1, 60, more=more)
        for _ in range(2):
            made.clear()
            await large.reconcile()
            counts.append(made.count("ruleop plan"))
    assert counts == [2, 1, 3, 1]


@pytest.mark.slow
async def test_a_plan_in_the_thread_sees_one_instant(made, monkeypatch):
    """Every object of the cluster is replaced while it reads them."""
    large = Large(1, 60)
    await large.reconcile()
    large.edit()
    seen: list[set[str]] = []
    original, replaced = planner.find_existing, threading.Event()

    def slowly(*args):
        found = original(*args)
        first = {each.live["metadata"].get("annotations", {}).get("wave", "") for each in found}
        replaced.clear()
        replaced.wait(10)
        again = {each.live["metadata"].get("annotations", {}).get("wave", "") for each in original(*args)}
        seen.append(first | again)
        return found

    monkeypatch.setattr(planner, "find_existing", slowly)

    async def replace_all() -> None:
        wave = 0
        while True:
            wave += 1
            for key in list(large.cluster.bodies):
                if key.kind == "Deployment":
                    obj = large.cluster.get(key)
                    obj["metadata"].setdefault("annotations", {})["wave"] = str(wave)
                    large.cluster.put(obj)
            replaced.set()
            await asyncio.sleep(0.001)

    task = asyncio.create_task(replace_all())
    try:
        await large.reconcile()
    finally:
        task.cancel()
    assert seen
    assert all(len(each) == 1 for each in seen)
