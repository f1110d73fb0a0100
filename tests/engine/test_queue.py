"""What the engine relies on. Each test is one sentence of the queue's promise; the last one tries to break them all at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ruleop.engine.queue.work_queue import FOURTH, PATIENCE, STALE_TIMERS, Backoff, Urgency, WorkQueue


def test_a_burst_of_events_costs_one_reconcile():
    queue = WorkQueue[str]()
    for _ in range(100):
        queue.add("a", now=0)
    assert queue.take(now=0) == "a"
    assert queue.take(now=0) is None


def test_a_change_during_the_work_makes_the_key_due_once_more():
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


def test_an_edit_overtakes_a_restart():
    queue = WorkQueue[str]()
    for name in ("a", "b", "c"):
        queue.add(name, now=0, urgency=Urgency.SWEEP)
    queue.add("c", now=1)
    assert queue.take(now=1) == "c"


def test_failures_wait_longer_and_longer_and_are_forgotten_on_success():
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


def test_of_two_wishes_the_earlier_counts():
    queue = WorkQueue[str]()
    queue.add_after("a", 10, now=0)
    queue.add_after("a", 5, now=0)
    queue.add_after("a", 20, now=0)
    assert queue.next_due() == 5
    assert queue.take(now=4.9) is None
    assert queue.take(now=5) == "a"
    queue.done("a", now=5)
    assert queue.take(now=100) is None, "the other wishes went with it"


def test_namespaces_take_turns():
    queue = WorkQueue[str](group=lambda key: key[0])
    for key in ("a1", "a2", "a3", "a4", "b1", "c1"):
        queue.add(key, now=0)
    assert [queue.take(now=0) for _ in range(6)] == ["a1", "b1", "c1", "a2", "a3", "a4"]


def test_a_noisy_namespace_delays_another_by_one_turn():
    queue = WorkQueue[str](group=lambda key: key[0])
    for number in range(1000):
        queue.add(f"a{number}", now=0)
    queue.take(now=0)
    queue.add("b", now=1)
    assert queue.take(now=1) == "a1"
    assert queue.take(now=1) == "b"


def test_what_is_gone_is_forgotten():
    queue = WorkQueue[str](backoff=Backoff(first=1, cap=8))
    queue.add("a", now=0)
    queue.take(now=0)
    queue.done("a", now=0, failed=True)
    assert queue.failures("a") == 1
    queue.forget("a")
    assert queue.failures("a") == 0
    assert queue.take(now=100) is None
    queue.add("b", now=0)
    queue.forget("b")
    assert queue.take(now=0) is None


def test_the_one_key_of_a_namespace_waits_for_one_turn_of_each_other():
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


def test_a_namespace_is_not_set_back_by_what_happens_to_its_keys():
    queue = WorkQueue[str](group=lambda key: key[0])
    for key in ("a1", "b1", "b2", "c1"):
        queue.add(key, now=0)
    queue.forget("b1")
    queue.add("b2", now=1)
    assert [queue.take(now=1) for _ in range(3)] == ["a1", "b2", "c1"]


def test_what_is_less_urgent_is_not_starved():
    queue = WorkQueue[str]()
    queue.add("sweep", now=0, urgency=Urgency.SWEEP)
    queue.add("retry", now=1, urgency=Urgency.RETRY)
    taken = []
    for turn in range(100):
        queue.add(f"edit{turn}", now=turn)
        taken.append(queue.take(now=turn))
    first = min(taken.index("sweep"), taken.index("retry"))
    assert first > PATIENCE, "edits go first"
    assert taken.index("sweep") < taken.index("retry") <= PATIENCE + 2 * FOURTH, "what waits longest goes before"


def test_while_edits_are_few_nothing_goes_before_them():
    queue = WorkQueue[str]()
    queue.add("sweep", now=0, urgency=Urgency.SWEEP)
    for _ in range(20):
        queue.add("edit", now=PATIENCE)
        assert queue.take(now=PATIENCE) == "edit"
        queue.done("edit", now=PATIENCE)


def test_a_server_that_asks_to_be_left_alone_is():
    queue = WorkQueue[str](backoff=Backoff(first=1, cap=8))
    for again_after, wait in ((None, 1), (5.0, 5), (1.0, 4)):
        queue.add("a", now=100)
        queue.take(now=100)
        queue.done("a", now=100, failed=True, again_after=again_after)
        assert queue.next_due() == 100 + wait
    assert queue.failures("a") == 3


def test_what_asked_to_be_looked_at_again_is():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.take(now=0)
    queue.done("a", now=0, again_after=7)
    assert queue.take(now=6.9) is None
    assert queue.take(now=7) == "a"
    queue.done("a", now=7, again_after=0)
    assert queue.take(now=7) == "a", "at once"


def test_a_wish_for_something_due_anyway_needs_no_timer():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.add_after("a", 5, now=0)
    assert queue.next_due() is None


def test_timers_that_count_no_more_are_cleared_away():
    queue = WorkQueue[str]()
    for turn in range(10_000):
        queue.add("a", now=turn)
        queue.take(now=turn)
        queue.done("a", now=turn, again_after=36_000)
    assert len(queue._timers) <= 2 + STALE_TIMERS + 1
    assert queue.next_due() == 9_999 + 36_000
    assert queue.take(now=9_999 + 36_000) == "a"


def test_a_key_that_fails_for_weeks_is_still_tried():
    assert Backoff().delay(10_000) == Backoff().cap
    assert [Backoff().delay(failures) for failures in (1, 2, 3)] == [0.005, 0.01, 0.02]


def test_it_says_how_it_is():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.add("b", now=3, urgency=Urgency.SWEEP)
    queue.add_after("c", 10, now=3)
    assert queue.has_ready()
    assert queue.statistics(now=5) == {"ready": 2, "delayed": 1, "active": 0, "failing": 0, "longest_wait": 5}
    queue.take(now=5)
    queue.done("a", now=5, failed=True)
    queue.take(now=5)
    assert not queue.has_ready()
    assert queue.statistics(now=5) == {"ready": 0, "delayed": 2, "active": 1, "failing": 1, "longest_wait": 0}


def test_it_tells_how_long_each_key_waited_for_a_worker():
    told = []
    queue = WorkQueue[str](waited=told.append)
    queue.add("a", now=0)
    queue.add("b", now=1, urgency=Urgency.SWEEP)
    queue.add_after("c", 10, now=0)
    queue.add("b", now=2)
    assert [queue.take(now=12) for _ in range(4)] == ["a", "b", "c", None]
    assert told == [12, 11, 2], "a key that is looked at later waits from when it is due"


def test_what_is_due_waits_also_while_nobody_is_free_to_take_it():
    queue = WorkQueue[str]()
    queue.add_after("a", 10, now=0)
    assert queue.statistics(now=13) == {"ready": 1, "delayed": 0, "active": 0, "failing": 0, "longest_wait": 3}


def test_a_more_urgent_reason_keeps_the_time_that_was_waited():
    queue = WorkQueue[str]()
    queue.add("a", now=0, urgency=Urgency.SWEEP)
    queue.add("a", now=4)
    queue.add("a", now=5, urgency=Urgency.SWEEP)
    assert queue.statistics(now=6)["longest_wait"] == 6
    assert queue.statistics(now=6)["ready"] == 1


def test_the_most_urgent_reason_during_the_work_counts():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.take(now=0)
    for urgency in (Urgency.SWEEP, Urgency.CHANGE, Urgency.RETRY):
        queue.add("a", now=1, urgency=urgency)
    queue.add("b", now=1, urgency=Urgency.RETRY)
    queue.done("a", now=1, failed=True)
    assert queue.take(now=1) == "a", "it does not wait for its backoff"


def test_what_is_forgotten_while_worked_on_ends_as_usual():
    queue = WorkQueue[str]()
    queue.add("a", now=0)
    queue.take(now=0)
    queue.forget("a")
    queue.add("a", now=1)
    assert queue.take(now=1) is None
    queue.done("a", now=1)
    assert queue.take(now=1) == "a"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9), st.booleans()), max_size=80))
def test_between_two_turns_of_a_namespace_no_other_has_two(steps):
    """While a namespace has due keys of one urgency, each other one has at most one turn before it has its own."""
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
    """Random histories against a model that keeps only what is owed: keys to look at now, and keys to look at later."""

    keys = st.sampled_from("abcd")

    def __init__(self):
        super().__init__()
        self.queue, self.now = WorkQueue[str](backoff=Backoff(first=1, cap=8), group=lambda key: key in "ab"), 0.0
        self.owed: set[str] = set()
        self.later: dict[str, float] = {}
        self.active: set[str] = set()
        self.failures: dict[str, int] = {}

    def owe(self, key):
        self.owed.add(key)
        self.later.pop(key, None)  # that look plans the next one

    @rule(key=keys, urgency=st.sampled_from(Urgency))
    def something_changed(self, key, urgency):
        self.queue.add(key, now=self.now, urgency=urgency)
        self.owe(key)

    @rule(key=keys, delay=st.floats(0.1, 5))
    def look_again(self, key, delay):
        self.queue.add_after(key, delay, now=self.now)
        if key in self.active or key not in self.owed:
            self.later[key] = min(self.later.get(key, float("inf")), self.now + delay)

    @rule(key=keys)
    def it_is_gone(self, key):
        """What happened while it is worked on is still owed: it may be another object of that name."""
        self.queue.forget(key)
        self.later.pop(key, None)
        self.failures.pop(key, None)
        if key not in self.active:
            self.owed.discard(key)

    @rule(seconds=st.floats(0, 6))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def a_worker_takes(self):
        for key in [key for key, due in self.later.items() if due <= self.now]:
            self.owe(key)
        key = self.queue.take(now=self.now)
        if key is None:
            assert not self.owed - self.active, "a key that is owed was not handed out"
            return
        assert key in self.owed - self.active, "handed out for no reason, or twice at once"
        self.owed.remove(key)
        self.active.add(key)

    @precondition(lambda self: self.active)
    @rule(data=st.data(), failed=st.booleans(), again=st.none() | st.floats(0.1, 5))
    def a_worker_ends(self, data, failed, again):
        key = data.draw(st.sampled_from(sorted(self.active)))
        self.queue.done(key, now=self.now, failed=failed, again_after=again)
        self.active.remove(key)
        self.failures[key] = self.failures.get(key, 0) + 1 if failed else 0
        if key in self.owed:
            self.owe(key)
        elif failed or again is not None:
            delay = max(min(8, 2 ** (self.failures[key] - 1)), again or 0) if failed else again
            self.later[key] = min(self.later.get(key, float("inf")), self.now + delay)

    @invariant()
    def it_knows_what_comes_next(self):
        waiting = self.owed | {key for key, due in self.later.items() if due <= self.now}
        assert self.queue.statistics(now=self.now)["ready"] == len(waiting - self.active)
        assert self.queue.statistics(now=self.now)["active"] == len(self.active)
        assert self.queue.next_due() == min(self.later.values(), default=None)


TestAnyHistory = AnyHistory.TestCase
