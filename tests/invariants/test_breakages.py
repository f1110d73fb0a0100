"""Each invariant has a test that fails without it. Here each is broken, in one small way after the other, and its test has to fail.

That is a test of tests, and what does not come is waited for, so it is part of `make test-all`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson
import pytest

from ruleop.engine.api import server_api as api
from ruleop.engine.cache import cache as world
from ruleop.engine.cache import own_writes
from ruleop.engine.cache.expectations import Expectations
from ruleop.engine.manager import controller_set, manager
from ruleop.engine.manager.event_handler import EventHandler
from ruleop.engine.queue import work_queue as queue
from ruleop.engine.queue import workers
from ruleop.engine.reconcile import executor
from ruleop.engine.reconcile import reconciler as controller
from ruleop.kube.client.errors import Problem
from ruleop.kube.leader.election import Election
from ruleop.kube.watch import reflector
from ruleop.kube.watch.store import Origin, Store
from ruleop.kube.watch.watcher import Watcher
from ruleop.planning import Failure, Served
from tests.invariants import (
    desk,
    stories,
)
from tests.invariants import (
    test_01_current_state_only as first,
)
from tests.invariants import (
    test_02_never_twice_at_once as second,
)
from tests.invariants import (
    test_03_nothing_written as third,
)
from tests.invariants import (
    test_04_own_writes as fourth,
)
from tests.invariants import (
    test_05_stores_first as fifth,
)
from tests.invariants import (
    test_06_destructive_steps as sixth,
)
from tests.invariants import (
    test_07_silent_watches as seventh,
)
from tests.invariants import (
    test_08_backoff_and_fairness as eighth,
)
from tests.invariants import (
    test_09_lease as ninth,
)
from tests.invariants import (
    test_10_stopping as tenth,
)

Break = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Breakage:
    """`without` breaks the invariant, and `test` is the one of its tests that has to notice."""

    number: int
    says: str
    test: Callable[[], None]
    without: Break
    patience: float = 2.5  # seconds: what does not come need not be waited for long


def instead(owner: Any, name: str, new: Callable[..., Any]) -> Break:
    """`new` is given what was there before, and then the arguments."""

    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        old = getattr(owner, name)

        def replaced(*arguments: Any, **more: Any) -> Any:  # a function, so that it is bound like what it replaces
            return new(old, *arguments, **more)

        monkeypatch.setattr(owner, name, replaced)

    return apply


def both(one: Break, two: Break) -> Break:
    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        one(monkeypatch)
        two(monkeypatch)

    return apply


def value(owner: Any, name: str, new: Any) -> Break:
    return lambda monkeypatch: monkeypatch.setattr(owner, name, new)


# -- how it is broken ----------------------------------------------------------------------------------------------------------------------


def any_version_stands(old: Any, store: Store, key: Any, entry: Any, origin: Origin) -> None:
    known = store._entries.get(key)
    if known is not None:
        store._entries[key] = known._replace(version=0)
    old(store, key, entry, origin)


def lists_change_nothing(old: Any, dispatch: EventHandler, informer: Any, change: Any) -> None:
    if change.origin is not Origin.LIST:
        old(dispatch, informer, change)


def deletions_change_nothing(old: Any, dispatch: EventHandler, informer: Any, change: Any) -> None:
    if change.new is not None:
        old(dispatch, informer, change)


def lists_delete_nothing(old: Any, store: Store, key: Any, origin: Origin) -> None:
    if origin is not Origin.LIST:
        old(store, key, origin)


def active_is_ready_too(old: Any, line: queue.WorkQueue[Any], key: Any, *, now: float, urgency: Any = queue.Urgency.CHANGE) -> None:
    if key in line._active:
        line._ready[urgency].add(key, now)
    else:
        old(line, key, now=now, urgency=urgency)


def active_hears_nothing(old: Any, line: queue.WorkQueue[Any], key: Any, **more: Any) -> None:
    if key not in line._active:
        old(line, key, **more)


def status_whenever_there_is_one(old: Any, *arguments: Any, **more: Any) -> Any:
    planned = old(*arguments, **more)
    if planned.status is None:
        return planned
    metadata = {name: arguments[1]["metadata"][name] for name in ("uid", "resourceVersion")}
    patch = {"metadata": metadata, "status": planned.status.status}
    return replace(planned, status=replace(planned.status, patch=patch))


async def looked_at_live(old: Any, reconciler: controller.Reconciler, request: Any) -> Any:
    await reconciler.cache.look(reconciler.kind, reconciler.key(request))
    return await old(reconciler, request)


def never_later(old: Any, watch: reflector.Reflector, *arguments: Any, **more: Any) -> None:
    old(watch, *arguments, **more)
    watch._failures = 0


def without_preconditions(old: Any, *arguments: Any, **more: Any) -> Any:
    request = old(*arguments, **more)
    options = {name: each for name, each in orjson.loads(request.body).items() if name != "preconditions"}
    return replace(request, body=orjson.dumps(options))


async def unread(_old: Any, run: Any, action: Any) -> bool:
    metadata = action.live["metadata"]
    kind = controller.Kind.of(action.live)
    await run.api.delete(kind, action.key, uid=metadata["uid"], version=metadata["resourceVersion"], propagation="Background")
    return True


async def unguarded_finalizers(_old: Any, run: Any, finalizers: list[str]) -> None:
    kind, key = controller.Kind.of(run.resource), controller.ObjectKey.of(run.resource)
    run.resource = run.outcomes.resource = await run.api.patch(kind, key, {"metadata": {"finalizers": finalizers}})


def conflicts_are_failures(old: Any, error: Any) -> Any:
    return (Failure.CONFLICT, None) if getattr(error, "problem", None) is Problem.CONFLICT else old(error)


def without_an_end(old: Any, *arguments: Any, **more: Any) -> Any:
    request = old(*arguments, **more)
    return replace(request, query="&".join(each for each in request.query.split("&") if not each.startswith("timeoutSeconds")))


def given_up(old: Any, line: queue.WorkQueue[Any], key: Any, *, failed: bool = False, **more: Any) -> None:
    old(line, key, failed=failed and line.failures(key) < 10, **more)


def nobody_while_one_fails(old: Any, line: queue.WorkQueue[Any], *, now: float) -> Any:
    return None if line._failures else old(line, now=now)


def all_alike(old: Any, line: queue.WorkQueue[Any], key: Any, *, now: float, **_: Any) -> None:
    old(line, key, now=now, urgency=queue.Urgency.SWEEP)


def one_group(old: Any, line: Any, _group: Any) -> None:
    old(line, queue._alone)


def in_the_operators_loop(_old: Any, election: Election) -> None:
    async def campaign() -> None:
        await election._campaign()
        if not election._releasing:
            election._lost()

    election._campaigning = asyncio.ensure_future(campaign())  # type: ignore[attr-defined]


def survived(old: Any, election: Election, *arguments: Any, **more: Any) -> None:
    old(election, *arguments, **more)
    election._lost = lambda: None


async def left_running(_old: Any, work: workers.Workers) -> None:
    work._open = False
    if work._task is not None:
        work._task.cancel()


async def working_on(old: Any, work: workers.Workers) -> None:
    while work._running:  # noqa: ASYNC110 - that is how it is broken
        await asyncio.sleep(0.01)
    await old(work)


async def released_first(old: Any, operator: manager.Manager) -> None:
    if operator.election is not None:
        await operator.election.release()
    await old(operator)


async def without_grace(_old: Any, operator: manager.Manager) -> None:
    for task in operator._tasks:
        task.cancel()
    await operator.controller_set.stop()


def nothing(_old: Any, *_arguments: Any, **_more: Any) -> Any:
    return None


def yes(_old: Any, *_arguments: Any, **_more: Any) -> bool:
    return True


def no(_old: Any, *_arguments: Any, **_more: Any) -> bool:
    return False


# -- what has to fail ----------------------------------------------------------------------------------------------------------------------

FINISHED = tenth.test_what_runs_is_finished_what_is_new_is_left_and_then_the_lease_is_released
EXAMPLE = partial(third.at_rest_nothing_is_written, third.EXAMPLES[0])
LATE = fourth.test_while_watches_are_late_no_pass_writes_what_was_written
CHAOS = first.test_whatever_becomes_of_events_the_end_is_what_a_new_cr_would_have_made
MODEL = second.test_of_one_cr_one_pass_runs_at_a_time_and_one_more_for_all_that_happens_meanwhile

BREAKAGES = [
    Breakage(1, "what a list brings concerns nobody", CHAOS, instead(EventHandler, "changed", lists_change_nothing)),
    Breakage(1, "a deletion is no change", CHAOS, instead(EventHandler, "changed", deletions_change_nothing)),
    Breakage(
        1,
        "what a list lacks is still there",
        first.test_the_last_event_of_a_gap_is_made_up_for_by_the_list,
        instead(Store, "_remove", lists_delete_nothing),
    ),
    Breakage(2, "a CR at work is handed out again", MODEL, instead(queue.WorkQueue, "add", active_is_ready_too)),
    Breakage(2, "an event during a pass is lost", MODEL, instead(queue.WorkQueue, "add", active_hears_nothing)),
    Breakage(3, "the status is written by each pass", EXAMPLE, instead(controller, "plan", status_whenever_there_is_one)),
    Breakage(3, "each pass reads the CR live", EXAMPLE, instead(controller.Reconciler, "reconcile", looked_at_live)),
    Breakage(
        3,
        "kinds have no shapes",
        third.test_after_any_edits_nothing_is_written_at_rest_nor_after_a_restart,
        instead(world, "builtin_shape", nothing),
    ),
    Breakage(
        4,
        "answers to writes are neither kept nor waited for",
        LATE,
        both(instead(world.Cache, "put", yes), instead(Expectations, "wait", nothing)),
    ),
    Breakage(
        4,
        "a store that is behind is not waited for",
        fourth.test_a_cr_whose_store_is_behind_its_own_write_waits_until_the_watch_has_told,
        instead(Expectations, "wait", nothing),
    ),
    Breakage(
        4,
        "what was deleted is not taken out",
        fourth.test_a_child_that_was_deleted_by_us_is_not_deleted_again,
        instead(world.Cache, "remove", nothing),
    ),
    Breakage(
        4,
        "an older version may replace a newer one",
        fourth.test_a_late_event_of_an_older_version_brings_nothing_back,
        instead(Store, "_set", any_version_stands),
    ),
    Breakage(
        4,
        "what comes during a write is taken for its echo",
        fourth.test_what_somebody_else_changes_before_the_answer_comes_is_looked_at,
        instead(own_writes.Write, "end", nothing),
    ),
    Breakage(
        5,
        "work begins at once",
        partial(fifth.each_store_is_waited_for, "shop"),
        instead(world.Cache, "is_synced", lambda *_: True),
    ),
    Breakage(
        5,
        "what cannot be had counts as empty",
        partial(fifth.one_child_waits, fifth.BEYOND_RIGHTS),
        instead(world.Cache, "_state", lambda *_: Served.SYNCED),
    ),
    Breakage(
        5,
        "a store that is synced at last stirs nobody",
        partial(fifth.one_child_waits, fifth.BEYOND_RIGHTS),
        instead(controller_set.ControllerSet, "stirred", nothing),
    ),
    Breakage(
        5,
        "what cannot be had is asked for all the time",
        partial(fifth.asked_again_later_and_later, 403, 30.0),
        instead(reflector.Reflector, "_rest", never_later),
    ),
    Breakage(
        6,
        "a deletion names nothing",
        partial(sixth.another_ones_object_stays, "delete services web-s"),
        instead(api.requests, "delete", without_preconditions),
    ),
    Breakage(
        6,
        "a deletion reads nothing before",
        sixth.test_a_deletion_names_what_was_read_just_before,
        instead(executor._Run, "_delete", unread),
    ),
    Breakage(
        6,
        "finalizers are written as they were",
        sixth.test_a_finalizer_that_somebody_adds_meanwhile_is_kept,
        instead(executor._Run, "_write_finalizers", unguarded_finalizers),
    ),
    Breakage(
        6, "a conflict is a failure", partial(sixth.conflicts_are_no_failures, 1), instead(manager, "classify", conflicts_are_failures)
    ),
    Breakage(6, "a conflict is not planned again", partial(sixth.conflicts_are_no_failures, 1), value(controller, "MAX_REPLANS", 1)),
    Breakage(
        6,
        "conflicts are planned again for ever",
        sixth.test_conflicts_without_end_are_five_tries_and_then_backoff,
        value(controller, "MAX_REPLANS", 50),
    ),
    Breakage(
        7,
        "a silent stream is waited for",
        seventh.test_a_stream_that_says_nothing_is_given_up_and_opened_again,
        value(reflector.Reflector, "deadline", math.inf),
    ),
    Breakage(
        7,
        "the server may keep a watch for ever",
        seventh.test_the_server_is_asked_to_end_each_watch_before_we_do_and_for_bookmarks,
        instead(reflector.requests, "watch", without_an_end),
    ),
    Breakage(
        7, "silent watches are ready", seventh.test_an_operator_whose_watches_are_silent_is_not_ready, value(Watcher, "overdue", False)
    ),
    Breakage(
        8,
        "each failure waits as long",
        eighth.test_a_failing_cr_waits_twice_as_long_each_time_up_to_a_cap_and_is_never_given_up,
        instead(queue.Backoff, "delay", lambda *_: 0.005),
    ),
    Breakage(
        8,
        "ten failures are the end",
        eighth.test_a_failing_cr_waits_twice_as_long_each_time_up_to_a_cap_and_is_never_given_up,
        instead(queue.WorkQueue, "done", given_up),
    ),
    Breakage(
        8,
        "everybody waits for one that fails",
        eighth.test_a_failing_cr_costs_only_itself,
        instead(queue.WorkQueue, "take", nobody_while_one_fails),
    ),
    Breakage(
        8, "an edit waits in line", eighth.test_an_edit_at_start_up_is_served_among_the_first, instead(queue.WorkQueue, "add", all_alike)
    ),
    Breakage(
        8, "namespaces are one line", eighth.test_the_queue_of_a_controller_knows_namespaces, instead(queue._Line, "__init__", one_group)
    ),
    Breakage(
        9,
        "the lease is renewed in the operator's loop",
        ninth.test_a_render_that_blocks_the_loop_does_not_cost_the_lease,
        instead(Election, "start", in_the_operators_loop),
        patience=10.0,
    ),
    Breakage(
        9, "a lost lease is survived", partial(ninth.lost_is_the_end, "taken"), instead(Election, "__init__", survived), patience=10.0
    ),
    Breakage(10, "what runs is left", FINISHED, instead(workers.Workers, "stop", left_running)),
    Breakage(10, "new work is begun", FINISHED, instead(workers.Workers, "stop", working_on)),
    Breakage(10, "the lease is released first", FINISHED, instead(manager.Manager, "_stop_workers", released_first)),
    Breakage(
        10,
        "there is no end of grace",
        tenth.test_a_write_without_end_is_waited_for_no_longer_than_the_grace_period,
        instead(manager.Manager, "_stop_workers", without_grace),
    ),
]


ATTEMPTS = 8  # a test of drawn data may draw nothing that the breakage spoils, now and then


@pytest.mark.slow
@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda breakage: f"{breakage.number}: {breakage.says}")
def test_its_test_fails_without_it(breakage: Breakage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stories, "PATIENCE", breakage.patience)
    monkeypatch.setattr(desk, "MOST", 2.0)
    breakage.without(monkeypatch)
    with pytest.raises(AssertionError):
        _several_times(breakage.test)


def _several_times(test: Callable[[], None]) -> None:
    for _ in range(ATTEMPTS):
        test()


def test_no_invariant_is_left_out() -> None:
    assert {breakage.number for breakage in BREAKAGES} == set(range(1, 11))
