"""What the engine relies on. Each test is one sentence of the queue's promise; the last one tries to break them all at once."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ruleop.engine.queue import Backoff, Urgency, WorkQueue


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
    @rule(data=st.data(), failed=st.booleans())
    def a_worker_ends(self, data, failed):
        key = data.draw(st.sampled_from(sorted(self.active)))
        self.queue.done(key, now=self.now, failed=failed)
        self.active.remove(key)
        self.failures[key] = self.failures.get(key, 0) + 1 if failed else 0
        if key in self.owed:
            self.owe(key)
        elif failed:
            delay = min(8, 2 ** (self.failures[key] - 1))
            self.later[key] = min(self.later.get(key, float("inf")), self.now + delay)

    @invariant()
    def it_knows_what_comes_next(self):
        assert self.queue.statistics(now=self.now)["active"] == len(self.active)
        assert self.queue.next_due() == min(self.later.values(), default=None)


TestAnyHistory = AnyHistory.TestCase
