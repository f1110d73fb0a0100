"""The workers of a queue: as many as may be, only while they may, and to the end of what they began."""

from __future__ import annotations

from tests.engine.watched import Watched


def test_no_more_work_at_once_than_the_limit(run):
    async def story():
        watched = Watched(limit=2)
        release = watched.hold()
        for name in "abcde":
            watched.add(name)
        await watched.until(lambda: watched.going_on == 2)
        assert watched.ended == 0
        release()
        await watched.until(lambda: watched.ended == 5)
        assert watched.most == 2
        await watched.stop()

    run(story())


def test_what_came_while_they_may_not_work_is_done_when_they_may(run):
    async def story():
        watched = Watched()
        await watched.look("a")
        watched.workers.open(False)
        watched.add("b")
        await watched.until(lambda: True)
        assert watched.ended == 1
        watched.workers.open(True)
        await watched.until(lambda: watched.ended == 2)
        await watched.stop()

    run(story())


def test_a_stop_takes_nothing_new_and_ends_when_what_runs_is_done(run):
    async def story():
        watched = Watched(limit=1)
        release = watched.hold()
        watched.add("a")
        watched.add("b")
        await watched.until(lambda: watched.going_on == 1)
        release()
        await watched.stop()
        assert watched.ended == 1

    run(story())


def test_one_that_fails_as_nobody_thought_of_delays_nobody_else(run):
    async def story():
        watched = Watched(limit=1)
        await watched.look("a", "bug")
        await watched.look("b")
        assert watched.workers.statistics()["failing"] == 1
        await watched.stop()

    run(story())


def test_an_end_that_nobody_asked_for_is_told_with_its_reason(run, monkeypatch):
    async def story():
        watched = Watched()
        await watched.look("a")
        monkeypatch.setattr(type(watched.workers.queue), "take", lambda self, now: 1 / 0)
        watched.add("b")
        await watched.until(lambda: watched.tasks)
        assert isinstance(watched.tasks[0].exception(), ZeroDivisionError)
        await watched.stop()

    run(story())
