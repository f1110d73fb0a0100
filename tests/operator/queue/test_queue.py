"""The guarantees of the queue. The last test compares random histories with a model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ruleop.operator.queue.work_queue import (
    MAX_STALE_TIMERS,
    MAX_WAIT,
    TURNS_PER_OVERDUE_KEY,
    Backoff,
    Urgency,
    WorkQueue,
)


def test_a_burst_of_events_costs_one_reconcile():
    queue = WorkQueue[str]()
    for _ in range(100):
        queue.add("a", now=0)
    assert queue.take(now=0) == "a"
    assert queue.take(now=0) is None


def test_a_change_during_a_reconcile_queues_the_key_once_more():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.take(now=0)
    queue.add("a", now=1)
    queue.add("a", now=2)
    assert queue.take(now=3) is None, "never twice at once"
    queue.done("a", now=3)
    assert queue.take(now=3) == "a"
    queue.done("a", now=4)
    assert queue.take(now=4) is None


def test_failures_back_off_up_to_the_cap_and_success_resets_them():
    queue = WorkQueue[str](backoff=Backoff(first=1, cap=3))
    now, waits = 0.0, []
    queue.add("a", now=now)
    for _ in range(4):
        assert queue.take(now=now) == "a"
        queue.done("a", now=now, failed=True)
        due = queue.next_due()
        waits.append(due - now)
        now = due
    assert waits == [1, 2, 3, 3]
    queue.take(now=now)
    queue.done("a", now=now)
    assert queue.next_due() is None
    assert queue.statistics(now=now)["failing"] == 0


def test_the_earliest_of_several_delays_is_used():
    queue = WorkQueue[str]()
    queue.add_after("a", 10, now=0)
    queue.add_after("a", 5, now=0)
    queue.add_after("a", 20, now=0)
    assert queue.next_due() == 5
    assert queue.take(now=4.9) is None
    assert queue.take(now=5) == "a"
    queue.done("a", now=5)
    assert queue.take(now=100) is None, "the other delays are dropped"


def test_namespaces_take_turns_in_the_queue():
    queue = WorkQueue[str](group=lambda key: key[0])
    for key in ("a1", "a2", "a3", "a4", "b1", "c1"):
        queue.add(key, now=0)
    assert [queue.take(now=0) for _ in range(6)] == ["a1", "b1", "c1", "a2", "a3", "a4"]


def test_a_key_waits_for_one_turn_of_each_other_namespace():
    queue = WorkQueue[str](group=lambda key: key[0])
    for namespace in "abcdef":
        for number in range(100):
            queue.add(f"{namespace}{number}", now=0)
    for _ in range(40):
        queue.take(now=0)
    queue.add("z", now=1)
    turns = []
    while (key := queue.take(now=1)) != "z":
        turns.append(key[0])
    assert sorted(turns) == list("abcdef")


def test_a_namespace_keeps_its_turn_when_its_keys_are_added_again():
    queue = WorkQueue[str](group=lambda key: key[0])
    for key in ("a1", "b1", "c1"):
        queue.add(key, now=0)
    queue.add("b1", now=1)
    assert [queue.take(now=1) for _ in range(3)] == ["a1", "b1", "c1"]


def test_less_urgent_keys_are_not_starved():
    queue = WorkQueue[str]()
    queue.add("sweep", now=0, urgency=Urgency.RESYNC)
    queue.add("retry", now=1, urgency=Urgency.RETRY)
    taken = []
    for turn in range(100):
        queue.add(f"edit{turn}", now=turn)
        taken.append(queue.take(now=turn))
    first = min(taken.index("sweep"), taken.index("retry"))
    assert first > MAX_WAIT, "edits go first"
    assert taken.index("sweep") < taken.index("retry") <= MAX_WAIT + 2 * TURNS_PER_OVERDUE_KEY, (
        "the key that waits longest goes first"
    )


def test_less_urgent_keys_do_not_go_before_edits_before_the_maximum_wait():
    queue = WorkQueue[str]()
    queue.add("sweep", now=0, urgency=Urgency.RESYNC)
    for _ in range(20):
        queue.add("edit", now=MAX_WAIT)
        assert queue.take(now=MAX_WAIT) == "edit"
        queue.done("edit", now=MAX_WAIT)


def test_a_retry_after_of_the_server_is_a_minimum_of_the_backoff():
    queue = WorkQueue[str](backoff=Backoff(first=1, cap=8))
    for again_after, wait in ((None, 1), (5.0, 5), (1.0, 4)):
        queue.add("a", now=100)
        queue.take(now=100)
        queue.done("a", now=100, failed=True, retry_after=again_after)
        assert queue.next_due() == 100 + wait
    assert queue.failures("a") == 3


def test_a_failure_is_retried_at_the_promised_moment_at_the_latest_but_not_before_the_server_permits():
    queue = WorkQueue[str](backoff=Backoff(first=10, cap=80))
    for promised, permitted, wait in ((3, None, 3), (30, None, 20), (3, 5, 5)):
        queue.add("a", now=100)
        queue.take(now=100)
        queue.done("a", now=100, failed=True, requeue_after=promised, retry_after=permitted)
        assert queue.next_due() == 100 + wait


def test_a_requeued_key_is_ready_after_its_time():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.take(now=0)
    queue.done("a", now=0, requeue_after=7)
    assert queue.take(now=6.9) is None
    assert queue.take(now=7) == "a"
    queue.done("a", now=7, requeue_after=0)
    assert queue.take(now=7) == "a", "at once"


def test_a_ready_key_is_not_delayed():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.add_after("a", 5, now=0)
    assert queue.next_due() is None


def test_stale_timers_are_removed():
    queue = WorkQueue[str]()
    for turn in range(10_000):
        queue.add("a", now=turn)
        queue.take(now=turn)
        queue.done("a", now=turn, requeue_after=36_000)
    assert len(queue._timers) <= 2 + MAX_STALE_TIMERS + 1
    assert queue.next_due() == 9_999 + 36_000
    assert queue.take(now=9_999 + 36_000) == "a"


def test_a_key_that_fails_for_weeks_is_still_retried():
    assert Backoff().delay(10_000) == Backoff().cap
    assert [Backoff().delay(failures) for failures in (1, 2, 3)] == [0.005, 0.01, 0.02]


def test_statistics_count_the_keys_of_each_state():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.add("b", now=3, urgency=Urgency.RESYNC)
    queue.add_after("c", 10, now=3)
    assert queue.has_ready()
    assert queue.statistics(now=5) == {"ready": 2, "delayed": 1, "active": 0, "failing": 0, "longest_wait": 5}
    queue.take(now=5)
    queue.done("a", now=5, failed=True)
    queue.take(now=5)
    assert not queue.has_ready()
    assert queue.statistics(now=5) == {"ready": 0, "delayed": 2, "active": 1, "failing": 1, "longest_wait": 0}


def test_the_queue_reports_the_waiting_time_of_each_key():
    waits = []
    queue = WorkQueue[str](report_wait=waits.append)
    queue.add("a", now=0)
    queue.add("b", now=1, urgency=Urgency.RESYNC)
    queue.add_after("c", 10, now=0)
    queue.add("b", now=2)
    assert [queue.take(now=12) for _ in range(4)] == ["a", "b", "c", None]
    assert waits == [12, 11, 2], "a delayed key waits from the time it becomes ready"


def test_a_key_that_became_due_counts_as_ready_before_a_worker_asks():
    queue = WorkQueue[str]()
    queue.add_after("a", 10, now=0)
    assert queue.statistics(now=13) == {"ready": 1, "delayed": 0, "active": 0, "failing": 0, "longest_wait": 3}


def test_a_key_that_becomes_more_urgent_keeps_its_waiting_time():
    queue = WorkQueue[str]()
    queue.add("a", now=0, urgency=Urgency.RESYNC)
    queue.add("a", now=4)
    queue.add("a", now=5, urgency=Urgency.RESYNC)
    assert queue.statistics(now=6)["longest_wait"] == 6
    assert queue.statistics(now=6)["ready"] == 1


def test_the_most_urgent_of_several_changes_during_a_reconcile_is_used():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.take(now=0)
    for urgency in (Urgency.RESYNC, Urgency.CHANGE, Urgency.RETRY):
        queue.add("a", now=1, urgency=urgency)
    queue.add("b", now=1, urgency=Urgency.RETRY)
    queue.done("a", now=1, failed=True)
    assert queue.take(now=1) == "a", "it does not wait for its backoff"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9), st.booleans()), max_size=80))
def test_no_namespace_has_two_turns_between_two_of_another(steps):
    """While a namespace has ready keys of one urgency, each other namespace has at most one turn before its next."""
    queue = WorkQueue[str](group=lambda key: key[0])
    turns = {name: dict.fromkeys("abcd", 0) for name in "abcd"}  # of the others, since the namespace began to wait
    waiting = dict.fromkeys("abcd", 0)
    for namespace, number, take in steps:
        if not take:
            key = f"{namespace}{number}"
            if key not in queue._ready[Urgency.CHANGE] and key not in queue._active:
                if not waiting[namespace]:
                    turns[namespace] = dict.fromkeys("abcd", 0)
                waiting[namespace] += 1
            queue.add(key, now=0)
        elif (key := queue.take(now=0)) is not None:
            queue.done(key, now=0)
            waiting[key[0]] -= 1
            turns[key[0]] = dict.fromkeys("abcd", 0)
            for other in "abcd":
                if other != key[0] and waiting[other]:
                    turns[other][key[0]] += 1
                    assert turns[other][key[0]] <= 1


class AnyHistory(RuleBasedStateMachine):
    """Random histories against a model that knows only which keys are due now, and which later."""

    keys = st.sampled_from("abcd")

    def __init__(self):
        super().__init__()
        self.queue, self.now = WorkQueue[str](backoff=Backoff(first=1, cap=8), group=lambda key: key in "ab"), 0.0
        self.due: set[str] = set()
        self.later: dict[str, float] = {}
        self.active: set[str] = set()
        self.failures: dict[str, int] = {}

    def make_due(self, key):
        self.due.add(key)
        self.later.pop(key, None)  # the reconcile schedules the next one

    @rule(key=keys, urgency=st.sampled_from(Urgency))
    def an_object_changes(self, key, urgency):
        self.queue.add(key, now=self.now, urgency=urgency)
        self.make_due(key)

    @rule(key=keys, delay=st.floats(0.1, 5))
    def a_key_is_delayed(self, key, delay):
        self.queue.add_after(key, delay, now=self.now)
        if key in self.active or key not in self.due:
            self.later[key] = min(self.later.get(key, float("inf")), self.now + delay)

    @rule(seconds=st.floats(0, 6))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def a_worker_takes(self):
        for key in [key for key, due in self.later.items() if due <= self.now]:
            self.make_due(key)
        key = self.queue.take(now=self.now)
        if key is None:
            assert not self.due - self.active, "a due key was not handed out"
            return
        assert key in self.due - self.active, "handed out without being due, or twice at once"
        self.due.remove(key)
        self.active.add(key)

    @precondition(lambda self: self.active)
    @rule(
        data=st.data(),
        failed=st.booleans(),
        again=st.none() | st.floats(0.1, 5),
        permitted=st.none() | st.floats(0.1, 5),
    )
    def a_worker_ends(self, data, failed, again, permitted):
        key = data.draw(st.sampled_from(sorted(self.active)))
        self.queue.done(key, now=self.now, failed=failed, requeue_after=again, retry_after=permitted)
        self.active.remove(key)
        self.failures[key] = self.failures.get(key, 0) + 1 if failed else 0
        if key in self.due:
            self.make_due(key)
        elif failed or again is not None:
            backoff = min(8, 2 ** (self.failures[key] - 1))
            delay = max(min(backoff, backoff if again is None else again), permitted or 0) if failed else again
            self.later[key] = min(self.later.get(key, float("inf")), self.now + delay)

    @invariant()
    def it_knows_what_comes_next(self):
        waiting = self.due | {key for key, due in self.later.items() if due <= self.now}
        assert self.queue.statistics(now=self.now)["ready"] == len(waiting - self.active)
        assert self.queue.statistics(now=self.now)["active"] == len(self.active)
        assert self.queue.next_due() == min(self.later.values(), default=None)


TestAnyHistory = AnyHistory.TestCase
