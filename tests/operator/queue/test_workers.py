"""Workers reconcile up to their limit, only while they are open, and finish what they started."""

from __future__ import annotations

from tests.operator.queue.workers_harness import WorkersHarness


async def test_no_more_reconciles_run_at_once_than_the_limit():
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


async def test_requests_of_closed_workers_are_reconciled_when_they_open():
    harness = WorkersHarness()
    await harness.reconcile("a")
    harness.workers.open(False)
    harness.add("b")
    await harness.until(lambda: True)
    assert harness.ended == 1
    harness.workers.open(True)
    await harness.until(lambda: harness.ended == 2)
    await harness.stop()


async def test_stop_starts_nothing_new_and_waits_for_running_reconciles():
    harness = WorkersHarness(limit=1)
    release = harness.hold()
    harness.add("a")
    harness.add("b")
    await harness.until(lambda: harness.running == 1)
    release()
    await harness.stop()
    assert harness.ended == 1


async def test_stopped_workers_start_nothing_when_they_are_opened():
    harness = WorkersHarness()
    await harness.reconcile("a")
    await harness.stop()
    harness.workers.open(True)
    harness.add("b")
    await harness.until(lambda: harness.tasks)
    assert harness.tasks[0].cancelled()
    assert harness.ended == 1


async def test_a_request_that_becomes_due_before_others_is_not_delayed_by_them():
    harness = WorkersHarness()
    await harness.reconcile("a", "again")  # in a minute
    await harness.reconcile("b", "at once")
    await harness.until(lambda: harness.ended == 3)
    await harness.stop()


async def test_an_internal_error_of_one_reconcile_does_not_stop_others():
    harness = WorkersHarness(limit=1)
    await harness.reconcile("a", "bug")
    await harness.reconcile("b")
    assert harness.workers.statistics()["failing"] == 1
    await harness.stop()


async def test_an_internal_error_of_the_workers_is_reported_to_on_exit(monkeypatch):
    harness = WorkersHarness()
    await harness.reconcile("a")
    monkeypatch.setattr(type(harness.workers.queue), "take", lambda self, now: 1 / 0)
    harness.add("b")
    await harness.until(lambda: harness.tasks)
    assert isinstance(harness.tasks[0].exception(), ZeroDivisionError)
    await harness.stop()
