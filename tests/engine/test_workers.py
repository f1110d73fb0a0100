"""The workers of a queue: as many as may be, only while they may, and to the end of what they began."""

from __future__ import annotations

from tests.engine.workers_harness import WorkersHarness


def test_no_more_work_at_once_than_the_limit(run):
    async def scenario():
        harness = WorkersHarness(limit=2)
        release = harness.hold()
        for name in "abcde":
            harness.add(name)
        await harness.until(lambda: harness.running == 2)
        assert harness.ended == 0
        release()
        await harness.until(lambda: harness.ended == 5)
        assert harness.most == 2
        await harness.stop()

    run(scenario())


def test_what_came_while_they_may_not_work_is_done_when_they_may(run):
    async def scenario():
        harness = WorkersHarness()
        await harness.reconcile("a")
        harness.workers.open(False)
        harness.add("b")
        await harness.until(lambda: True)
        assert harness.ended == 1
        harness.workers.open(True)
        await harness.until(lambda: harness.ended == 2)
        await harness.stop()

    run(scenario())


def test_a_stop_takes_nothing_new_and_ends_when_what_runs_is_done(run):
    async def scenario():
        harness = WorkersHarness(limit=1)
        release = harness.hold()
        harness.add("a")
        harness.add("b")
        await harness.until(lambda: harness.running == 1)
        release()
        await harness.stop()
        assert harness.ended == 1

    run(scenario())


def test_one_that_fails_as_nobody_thought_of_delays_nobody_else(run):
    async def scenario():
        harness = WorkersHarness(limit=1)
        await harness.reconcile("a", "bug")
        await harness.reconcile("b")
        assert harness.workers.statistics()["failing"] == 1
        await harness.stop()

    run(scenario())


def test_an_end_that_nobody_asked_for_is_told_with_its_reason(run, monkeypatch):
    async def scenario():
        harness = WorkersHarness()
        await harness.reconcile("a")
        monkeypatch.setattr(type(harness.workers.queue), "take", lambda self, now: 1 / 0)
        harness.add("b")
        await harness.until(lambda: harness.tasks)
        assert isinstance(harness.tasks[0].exception(), ZeroDivisionError)
        await harness.stop()

    run(scenario())
