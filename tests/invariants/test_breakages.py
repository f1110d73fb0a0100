"""Each invariant is broken here in small ways, one after the other, and its test has to fail.

A test that fails has often waited for something first, so these tests are slow and part of `make test-all`.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import settings

import tests.invariants.test_01_current_state_only as first
import tests.invariants.test_02_never_twice_at_once as second
import tests.invariants.test_03_nothing_written as third
import tests.invariants.test_04_own_writes as fourth
import tests.invariants.test_05_stores_first as fifth
import tests.invariants.test_06_destructive_steps as sixth
import tests.invariants.test_07_silent_watches as seventh
import tests.invariants.test_08_backoff_and_fairness as eighth
import tests.invariants.test_09_lease as ninth
import tests.invariants.test_10_stopping as tenth
from ruleop.operator import server_api as api
from ruleop.operator.cache import cache as world
from ruleop.operator.cache import own_writes
from ruleop.operator.cache.own_writes import Expectations
from ruleop.operator.controllers import controller_set
from ruleop.operator.controllers.controller_set import Controller
from ruleop.operator.controllers.event_handler import EventHandler
from ruleop.operator.manager import manager
from ruleop.operator.passes import executor, pass_planning
from ruleop.operator.passes import reconciler as controller
from ruleop.operator.queue import work_queue as queue
from ruleop.operator.queue import workers
from ruleop.operator.wire.client.server_errors import Problem
from ruleop.operator.wire.leader.election import Election
from ruleop.operator.wire.watch import reflector
from ruleop.operator.wire.watch.store import EntryOrigin, Store
from ruleop.operator.wire.watch.watcher import Watcher
from ruleop.planning import Failure, Served
from ruleop.planning.history import Writes
from tests.invariants import operator_harness, scenarios

Break = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Breakage:
    """`without` breaks the invariant, so `test` must fail."""

    says: str
    test: Callable[[], Any]
    without: Break
    patience: float = 2.5  # seconds that the test waits

    @property
    def number(self) -> int:
        """That of the invariant, by the module of the test."""
        test = self.test.func if isinstance(self.test, partial) else self.test
        return int(test.__module__.rpartition(".")[2].split("_")[1])


def instead(owner: Any, name: str, new: Callable[..., Any]) -> Break:
    """`new` is called with the replaced function and its arguments."""

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


# -- breakages --------------------------------------------------------------------------------------------------


def accept_any_version(old: Any, store: Store, key: Any, entry: Any, origin: EntryOrigin) -> None:
    known = store._entries.get(key)
    if known is not None:
        store._entries[key] = known._replace(version=0)
    old(store, key, entry, origin)


def ignore_changes_of_lists(old: Any, handler: EventHandler, informer: Any, change: Any) -> None:
    if change.origin is not EntryOrigin.LIST:
        old(handler, informer, change)


def ignore_deletions(old: Any, handler: EventHandler, informer: Any, change: Any) -> None:
    if change.new is not None:
        old(handler, informer, change)


def keep_what_lists_lack(old: Any, store: Store, key: Any, origin: EntryOrigin) -> None:
    if origin is not EntryOrigin.LIST:
        old(store, key, origin)


def queue_active_keys(
    old: Any, line: queue.WorkQueue[Any], key: Any, *, now: float, urgency: Any = queue.Urgency.CHANGE
) -> None:
    if key in line._active:
        line._ready[urgency].add(key, now)
    else:
        old(line, key, now=now, urgency=urgency)


def drop_events_of_active_keys(old: Any, line: queue.WorkQueue[Any], key: Any, **more: Any) -> None:
    if key not in line._active:
        old(line, key, **more)


def drops_what_it_holds(old: Any, writes: own_writes.OwnWrites, key: Any, version: int, _report: Any) -> Any:
    return old(writes, key, version, lambda: None)


async def always_write_status(old: Any, planning: pass_planning.PassPlanning, current: Any) -> Any:
    planned = await old(planning, current)
    if planned.status is None:
        return planned
    metadata = {name: current.resource["metadata"][name] for name in ("uid", "resourceVersion")}
    patch = {"metadata": metadata, "status": planned.status.status}
    return replace(planned, status=replace(planned.status, patch=patch))


async def read_live_first(old: Any, reconciler: controller.Reconciler, request: Any) -> Any:
    await reconciler.cache.read_metadata(reconciler.kind, reconciler.key(request))
    return await old(reconciler, request)


def never_back_off(old: Any, watch: reflector.Reflector, *arguments: Any, **more: Any) -> None:
    old(watch, *arguments, **more)
    watch._failures = 0


def without_preconditions(old: Any, *arguments: Any, **more: Any) -> Any:
    request = old(*arguments, **more)
    options = {name: each for name, each in orjson.loads(request.body).items() if name != "preconditions"}
    return replace(request, body=orjson.dumps(options))


async def delete_without_reading(_old: Any, run: Any, action: Any) -> bool:
    metadata = action.live["metadata"]
    kind = controller.Kind.of(action.live)
    await run.api.delete(kind, action.key, uid=metadata["uid"], version=metadata["resourceVersion"])
    return True


async def write_finalizers_unguarded(_old: Any, run: Any, finalizers: list[str]) -> None:
    kind, key = controller.Kind.of(run.resource), controller.ObjectKey.of(run.resource)
    run.resource = run.outcomes.resource = await run.api.patch(kind, key, {"metadata": {"finalizers": finalizers}})


def conflicts_are_failures(old: Any, error: Any) -> Any:
    return (Failure.CONFLICT, None) if getattr(error, "problem", None) is Problem.CONFLICT else old(error)


def without_server_timeout(old: Any, *arguments: Any, **more: Any) -> Any:
    request = old(*arguments, **more)
    return replace(
        request, query="&".join(each for each in request.query.split("&") if not each.startswith("timeoutSeconds"))
    )


def give_up_after_ten_failures(
    old: Any, line: queue.WorkQueue[Any], key: Any, *, failed: bool = False, **more: Any
) -> None:
    old(line, key, failed=failed and line.failures(key) < 10, **more)


def take_nothing_while_one_fails(old: Any, line: queue.WorkQueue[Any], *, now: float) -> Any:
    return None if line._failures else old(line, now=now)


def ignore_urgency(old: Any, line: queue.WorkQueue[Any], key: Any, *, now: float, **_: Any) -> None:
    old(line, key, now=now, urgency=queue.Urgency.RESYNC)


def one_group(old: Any, line: Any, _group: Any) -> None:
    old(line, queue._one_group)


def renew_on_the_event_loop(_old: Any, election: Election) -> None:
    async def campaign() -> None:
        await election._campaign()
        if not election._releasing:
            election._lost()

    election._campaigning = asyncio.ensure_future(campaign())  # type: ignore[attr-defined]


def ignore_loss(old: Any, election: Election, *arguments: Any, **more: Any) -> None:
    old(election, *arguments, **more)
    election._lost = lambda: None


async def stop_without_waiting(_old: Any, work: workers.Workers) -> None:
    work._open = False
    if work._task is not None:
        work._task.cancel()


async def keep_starting(old: Any, work: workers.Workers) -> None:
    while work._running:  # noqa: ASYNC110 - that is how it is broken
        await asyncio.sleep(0.01)
    await old(work)


async def release_before_stopping(old: Any, operator: manager.Manager) -> None:
    if operator.election is not None:
        await operator.election.release()
    await old(operator)


async def wait_without_a_limit(_old: Any, operator: manager.Manager) -> None:
    for task in operator._tasks:
        task.cancel()
    await operator.work.controller_set.stop()


def nothing(_old: Any, *_arguments: Any, **_more: Any) -> Any:
    return None


def yes(_old: Any, *_arguments: Any, **_more: Any) -> bool:
    return True


def no(_old: Any, *_arguments: Any, **_more: Any) -> bool:
    return False


# -- what has to fail --------------------------------------------------------------------------------------------------

FINISHED = tenth.test_running_passes_finish_no_others_start_and_then_the_lease_is_released
EXAMPLE = partial(third.nothing_is_written_in_the_desired_state, "App")
LATE = fourth.test_while_watches_lag_no_pass_repeats_a_write
CHAOS = first.test_lost_late_and_repeated_events_lead_to_the_same_result_as_a_new_cr
MODEL = second.test_one_cr_has_one_pass_at_a_time_and_one_more_for_all_changes_meanwhile

BREAKAGES = [
    Breakage("changes of a list are ignored", CHAOS, instead(EventHandler, "changed", ignore_changes_of_lists)),
    Breakage("deletions are ignored", CHAOS, instead(EventHandler, "changed", ignore_deletions)),
    Breakage(
        "objects that a list lacks are kept",
        first.test_events_that_were_lost_before_a_relist_are_made_up_for,
        instead(Store, "_remove", keep_what_lists_lack),
    ),
    Breakage("a CR is handed out twice", MODEL, instead(queue.WorkQueue, "add", queue_active_keys)),
    Breakage("an event during a pass is lost", MODEL, instead(queue.WorkQueue, "add", drop_events_of_active_keys)),
    Breakage(
        "the status is written by each pass", EXAMPLE, instead(pass_planning.PassPlanning, "plan", always_write_status)
    ),
    Breakage("each pass reads the CR live", EXAMPLE, instead(controller.Reconciler, "reconcile", read_live_first)),
    Breakage(
        "built-in kinds have no schema",
        third.test_after_any_edits_the_desired_state_causes_no_writes_also_after_a_restart,
        instead(world, "builtin_shape", nothing),
    ),
    Breakage(
        "answers to writes are neither stored nor expected",
        LATE,
        both(instead(world.Cache, "put", yes), instead(Expectations, "wait", nothing)),
    ),
    Breakage(
        "a store that is behind is used",
        fourth.test_a_cr_whose_store_is_older_than_its_own_write_waits_for_the_watch,
        instead(Expectations, "wait", nothing),
    ),
    Breakage(
        "a deleted object stays in the store",
        fourth.test_a_child_that_was_deleted_is_not_deleted_again,
        instead(world.Cache, "remove", nothing),
    ),
    Breakage(
        "an older version may replace a newer one",
        fourth.test_a_late_event_of_an_older_version_changes_nothing,
        instead(Store, "_set", accept_any_version),
    ),
    Breakage(
        "every event during a write counts as its own",
        fourth.test_a_change_by_others_before_the_answer_of_a_write_requeues,
        instead(own_writes.OwnWrites, "hold", drops_what_it_holds),
    ),
    Breakage(
        "what its own writes changed is left until an event",
        fourth.test_no_pass_is_lost_in_any_order_of_answers_events_and_passes,
        instead(Writes, "leaves", lambda *_: False),
    ),
    Breakage(
        "the status counts as written by nobody else",
        fourth.test_a_change_of_the_status_by_others_is_planned_again_if_the_rules_read_the_status,
        instead(Controller, "reads_status", lambda *_: False),
    ),
    Breakage(
        "workers start before the stores are synced",
        partial(fifth.each_store_is_waited_for, "shop"),
        instead(world.Cache, "is_synced", lambda *_: True),
    ),
    Breakage(
        "an unavailable kind counts as empty",
        partial(fifth.one_child_waits, fifth.BEYOND_RIGHTS),
        instead(world.Cache, "_state", lambda *_: Served.SYNCED),
    ),
    Breakage(
        "the state of a store is not reported",
        partial(fifth.one_child_waits, fifth.BEYOND_RIGHTS),
        instead(controller_set.ControllerSet, "state_changed", nothing),
    ),
    Breakage(
        "an unavailable kind is requested without backoff",
        partial(fifth.the_watch_backs_off, 403, 30.0),
        instead(reflector.Reflector, "_rest", never_back_off),
    ),
    Breakage(
        "a deletion has no preconditions",
        partial(sixth.the_replacement_stays, "delete services web-s"),
        instead(api.requests, "delete", without_preconditions),
    ),
    Breakage(
        "a deletion has no live read",
        sixth.test_a_deletion_names_the_uid_and_version_of_a_live_read,
        instead(executor._Run, "_delete", delete_without_reading),
    ),
    Breakage(
        "finalizers are written without preconditions",
        sixth.test_a_finalizer_that_others_add_meanwhile_is_kept,
        instead(executor._Run, "_write_finalizers", write_finalizers_unguarded),
    ),
    Breakage(
        "a conflict is a failure",
        partial(sixth.conflicts_are_no_failures, 1),
        instead(executor, "classify", conflicts_are_failures),
    ),
    Breakage(
        "a conflict is not planned again",
        partial(sixth.conflicts_are_no_failures, 1),
        value(controller, "MAX_REPLANS", 1),
    ),
    Breakage(
        "a conflict is planned again without a limit",
        sixth.test_endless_conflicts_are_retried_five_times_and_then_back_off,
        value(controller, "MAX_REPLANS", 50),
    ),
    Breakage(
        "a silent stream has no deadline",
        seventh.test_a_silent_stream_is_closed_and_opened_again,
        value(reflector.Reflector, "deadline", math.inf),
    ),
    Breakage(
        "a watch has no server timeout",
        seventh.test_each_watch_has_a_server_timeout_before_the_client_deadline_and_bookmarks,
        instead(reflector.requests, "watch", without_server_timeout),
    ),
    Breakage(
        "silent watches are ready",
        seventh.test_an_operator_whose_watches_are_silent_is_not_ready,
        value(Watcher, "overdue", False),
    ),
    Breakage(
        "the backoff does not grow",
        eighth.test_a_failing_cr_backs_off_up_to_a_cap_and_is_retried_for_ever,
        instead(queue.Backoff, "delay", lambda *_: 0.005),
    ),
    Breakage(
        "retries end after ten failures",
        eighth.test_a_failing_cr_backs_off_up_to_a_cap_and_is_retried_for_ever,
        instead(queue.WorkQueue, "done", give_up_after_ten_failures),
    ),
    Breakage(
        "one failure stops the queue",
        eighth.test_a_failing_cr_costs_only_itself,
        instead(queue.WorkQueue, "take", take_nothing_while_one_fails),
    ),
    Breakage(
        "edits have no priority",
        eighth.test_an_edit_during_start_up_is_reconciled_among_the_first,
        instead(queue.WorkQueue, "add", ignore_urgency),
    ),
    Breakage(
        "namespaces do not take turns",
        eighth.test_namespaces_take_turns_in_the_queue_of_a_controller,
        instead(queue._FairQueue, "__init__", one_group),
    ),
    Breakage(
        "the lease is renewed in the operator's loop",
        ninth.test_a_blocked_event_loop_does_not_lose_the_lease,
        instead(Election, "start", renew_on_the_event_loop),
        patience=10.0,
    ),
    Breakage(
        "a lost lease is ignored",
        partial(ninth.losing_it_ends_the_process, "taken"),
        instead(Election, "__init__", ignore_loss),
        patience=10.0,
    ),
    Breakage("stop does not wait for running passes", FINISHED, instead(workers.Workers, "stop", stop_without_waiting)),
    Breakage("stop does not prevent new passes", FINISHED, instead(workers.Workers, "stop", keep_starting)),
    Breakage(
        "the lease is released first", FINISHED, instead(manager.Manager, "_stop_workers", release_before_stopping)
    ),
    Breakage(
        "the grace period has no limit",
        tenth.test_a_write_that_never_ends_is_waited_for_until_the_grace_period_is_over,
        instead(manager.Manager, "_stop_workers", wait_without_a_limit),
    ),
]


ATTEMPTS = 8  # a property test may not draw an example that fails


@pytest.fixture
def by_chance() -> Iterator[None]:
    """Each attempt has other examples, also where properties have the same ones each time."""
    before = settings.get_current_profile_name()
    settings.load_profile("full")
    yield
    settings.load_profile(before)


@pytest.mark.slow
@pytest.mark.usefixtures("by_chance")
@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda breakage: f"{breakage.number}: {breakage.says}")
def test_each_breakage_fails_the_test_of_its_invariant(breakage: Breakage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "PATIENCE", breakage.patience)
    monkeypatch.setattr(operator_harness, "MOST", 2.0)
    breakage.without(monkeypatch)
    failed = False
    try:
        _several_times(breakage.test)
    except* AssertionError:  # a group where the breakage depends on the clock, so that Hypothesis cannot repeat it
        failed = True
    assert failed


def _several_times(test: Callable[[], Any]) -> None:
    for _ in range(ATTEMPTS):
        if inspect.iscoroutinefunction(test):
            scenarios.run(test())
        else:
            test()


def test_every_invariant_has_a_breakage() -> None:
    assert {breakage.number for breakage in BREAKAGES} == set(range(1, 11))
