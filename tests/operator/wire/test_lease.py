"""The guarantees of the lease. The last test lets two candidates live through any history of pauses, lost answers and
lost requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ruleop.operator.shards.ownership import read_lease
from ruleop.operator.wire.leader.lease import LeaseCandidate, LeaseRead, LeaseWrite, Pause, Role, Timing
from tests.exploration import examples


class Server:
    """One Lease."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0

    def write(self, step: LeaseWrite) -> dict[str, Any] | None:
        """The new lease; None if another was faster."""
        now = self.lease["metadata"]["resourceVersion"] if self.lease else ""
        if step.version != now:
            return None
        self.version += 1
        self.lease = {"metadata": {"resourceVersion": str(self.version)}, "spec": dict(step.spec)}
        return self.lease


def turn(candidate: LeaseCandidate, server: Server, now: float, wall: datetime | None = None) -> float | None:
    """Does what the candidate wants at this moment; says when it wants something again, or None when it is over."""
    while True:
        step = candidate.next(now, wall)
        if step is None:
            return None
        if isinstance(step, Pause):
            return step.until
        if isinstance(step, LeaseRead):
            candidate.read(server.lease, now)
        else:
            lease = server.write(step)
            if lease is None:
                candidate.failed(now)
            else:
                candidate.written(lease, now, now)


def candidate(name: str, chance: float = 0.5) -> LeaseCandidate:
    return LeaseCandidate(name, chance=lambda: chance)


def test_the_first_candidate_leads_at_once_and_renews_in_time():
    server, first = Server(), candidate("first")
    now: float | None = 0.0
    for _ in range(100):
        now = turn(first, server, now)
        assert first.leads(now)
    assert server.lease["spec"]["holderIdentity"] == "first"
    assert server.lease["spec"]["leaseTransitions"] == 0


def test_a_second_candidate_waits_while_the_record_changes():
    server, first, second = Server(), candidate("first"), candidate("second")
    due = {first: 0.0, second: 0.0}
    for _ in range(200):
        who = min(due, key=lambda each: due[each])
        due[who] = turn(who, server, due[who])
    assert first.leads(max(due.values()) - 2)
    assert second.role is Role.WAITING
    assert second.holder == "first"


def test_an_expired_lease_is_acquired_after_its_duration_and_not_earlier():
    server, first, second = Server(), candidate("first"), candidate("second")
    turn(first, server, 100.0)
    now = turn(second, server, 101.0)
    while not second.leads(now):
        now = turn(second, server, now)
        if second.leads(now):
            break
        assert now <= 101.0 + 15.0 + 0.1
    assert now >= 101.0 + 15.0, "counted from its own observation"
    assert server.lease["spec"]["leaseTransitions"] == 1


def test_the_renew_time_in_the_record_is_not_trusted():
    server, second = Server(), candidate("second")
    spec = {
        "holderIdentity": "first",
        "leaseDurationSeconds": 15,
        "renewTime": "1999-01-01T00:00:00.000000Z",
        "leaseTransitions": 3,
    }
    server.write(LeaseWrite(spec, ""))
    turn(second, server, 0.0)
    assert second.role is Role.WAITING


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_changes_only_the_times_in_the_record(hours):
    """Of both machines, while the first leads; later it dies. For shards, too, the record has no other times."""

    def leaders(jump: timedelta) -> list[Any]:
        server, first, second, found = Server(), candidate("first"), candidate("second"), []
        due = {first: 0.0, second: 0.5}
        for now in (each / 10 for each in range(600)):
            wall = datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=now) + (jump if now > 20 else timedelta())
            for each in (first, second) if now < 30 else (second,):
                if now >= due[each]:
                    due[each] = turn(each, server, now, wall)
            lease = {"metadata": {"name": "ruleop.0", **server.lease["metadata"]}, "spec": server.lease["spec"]}
            found.append((now, first.leads(now), second.leads(now), read_lease(lease, "ruleop")))
        return found

    usual = leaders(timedelta())
    assert leaders(timedelta(hours=hours)) == usual
    assert [each[1:3] for each in usual[::200]] == [(True, False), (True, False), (False, False)]
    assert usual[-1][1:3] == (False, True)


def test_a_lease_that_was_handed_over_is_acquired_within_the_retry_period():
    server, first, second = Server(), candidate("first"), candidate("second", chance=0.999)
    turn(first, server, 0.0)
    due = turn(second, server, 0.1)
    first.release()
    assert turn(first, server, 0.2) is None
    assert first.role is Role.OVER
    while not second.leads(due):
        due = turn(second, server, due)
    assert second.leads_until - 10 <= 0.2 + 2.0


def test_a_leader_that_cannot_renew_stops_at_the_deadline_and_never_leads_again():
    server, first = Server(), candidate("first")
    turn(first, server, 0.0)
    now = 0.0
    while (step := first.next(now)) is not None:
        if isinstance(step, Pause):
            now = step.until
        else:
            now += 0.1
            first.failed(now)
    assert 10.0 <= now <= 10.2
    assert not first.leads(now)
    assert first.next(now + 100) is None


def test_an_answer_after_the_deadline_does_not_acquire_the_lease():
    server, first = Server(), candidate("first")
    first.read(None, 0.0)
    step = first.next(0.0)
    assert isinstance(step, LeaseWrite)
    first.written(server.write(step), 0.0, 11.0)
    assert not first.leads(11.0)
    assert first.role is Role.WAITING


def test_a_lease_write_whose_answer_was_lost_is_found_by_reading():
    server, first = Server(), candidate("first")
    first.read(None, 0.0)
    server.write(first.next(0.0))
    first.failed(5.0)
    now = 5.0
    while not first.leads(now):
        now = turn(first, server, now)
    assert first.leads(now)


def test_a_lease_acquired_by_another_holder_ends_the_leadership():
    server, first = Server(), candidate("first")
    turn(first, server, 0.0)
    server.lease["spec"]["holderIdentity"] = "somebody"
    server.lease["metadata"]["resourceVersion"] = "77"
    now: float | None = 0.0
    while now is not None:
        now = turn(first, server, now)
    assert first.role is Role.OVER


def test_releasing_a_waiting_candidate_writes_nothing():
    server, first, second = Server(), candidate("first"), candidate("second")
    turn(first, server, 0.0)
    turn(second, server, 0.0)
    second.release()
    assert turn(second, server, 1.0) is None
    assert server.lease["spec"]["holderIdentity"] == "first"


def renewing(first: LeaseCandidate, server: Server) -> tuple[LeaseWrite, float]:
    """It leads, and the request that renews is under way."""
    now = turn(first, server, 0.0)
    step = first.next(now)
    assert isinstance(step, LeaseWrite)
    return step, now


def test_a_stop_during_a_renewal_hands_over_after_it():
    server, first = Server(), candidate("first")
    step, now = renewing(first, server)
    first.release()
    first.written(server.write(step), now, now + 0.1)
    assert turn(first, server, now + 0.1) is None
    assert server.lease["spec"]["holderIdentity"] == ""


def test_a_stop_during_a_failing_renewal_hands_over_nonetheless():
    server, first = Server(), candidate("first")
    step, now = renewing(first, server)
    first.release()
    server.write(step)  # the answer is lost
    first.failed(now + 5)
    assert turn(first, server, now + 5) is None
    assert server.lease["spec"]["holderIdentity"] == ""


def test_a_failed_hand_over_is_not_retried():
    server, first = Server(), candidate("first")
    turn(first, server, 0.0)
    first.release()
    assert isinstance(first.next(1.0), LeaseWrite)
    first.failed(2.0)
    assert first.next(2.0) is None


@pytest.mark.parametrize("outcome", ["written", "failed", "read"])
def test_the_end_of_leadership_is_final_whatever_a_pending_request_returns(outcome):
    server, first = Server(), candidate("first")
    step, now = renewing(first, server)
    first.end()
    if outcome == "written":
        first.written(server.write(step), now, now + 0.1)
    elif outcome == "read":
        first.read(server.lease, now + 0.1)
    else:
        first.failed(now + 0.1)
    assert first.role is Role.OVER
    assert not first.leads(now + 0.1)
    assert first.next(now + 0.1) is None


def test_a_leader_that_hands_over_does_not_lead_while_the_request_is_pending():
    server, first, second = Server(), candidate("first"), candidate("second")
    turn(first, server, 0.0)
    first.release()
    server.write(first.next(1.0))
    turn(second, server, 1.0)
    assert second.leads(1.0)
    assert not first.leads(1.0)


class TwoCandidates(RuleBasedStateMachine):
    """Each candidate takes one step at a time, and between a request and its answer any time may pass, for it and for
    the others.

    The server does a write at some moment between its start and its answer. Answers may be lost, and requests too. A
    candidate whose process stands still just takes no step: then it asks its own clock before anything else, which is
    what `leads` is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.server = Server()
        self.candidates = [LeaseCandidate("a", chance=lambda: 0.3), LeaseCandidate("b", chance=lambda: 0.7)]
        self.open: list[tuple[Any, float, Any] | None] = [None, None]
        self.restarts = 0
        self.ended: set[LeaseCandidate] = set()

    @rule(seconds=st.one_of(st.floats(0, 3), st.floats(0, 40)))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(who=st.sampled_from([0, 1]), reaches=st.sampled_from([True, True, True, False]))
    def begins(self, who, reaches):
        if self.open[who] is not None:
            return
        step = self.candidates[who].next(self.now)
        if step is None:
            self.restarts += 1  # the process ended; the next one has another name
            self.candidates[who] = LeaseCandidate(f"{'ab'[who]}{self.restarts}", chance=lambda: 0.5)
        elif not isinstance(step, Pause):
            self.open[who] = (step, self.now, reaches)

    @rule(who=st.sampled_from([0, 1]))
    def server_acts(self, who):
        if self.open[who] is None or self.open[who][2] is not True:
            return
        step, begun, _ = self.open[who]
        if isinstance(step, LeaseRead):
            answer = ("lease", self.server.lease and {**self.server.lease, "spec": dict(self.server.lease["spec"])})
        else:
            answer = ("lease", self.server.write(step))
        self.open[who] = (step, begun, answer)

    @rule(who=st.sampled_from([0, 1]), lost=st.sampled_from([False, False, True]))
    def answer_comes(self, who, lost):
        if self.open[who] is None or self.open[who][2] is True:
            return
        step, begun, answer = self.open[who]
        self.open[who] = None
        candidate = self.candidates[who]
        if answer is False or lost or (isinstance(step, LeaseWrite) and answer[1] is None):
            candidate.failed(self.now)
        elif isinstance(step, LeaseRead):
            candidate.read(answer[1], self.now)
        else:
            candidate.written(answer[1], begun, self.now)

    @rule(who=st.sampled_from([0, 1]))
    def stops(self, who):
        self.candidates[who].release()

    @rule(who=st.sampled_from([0, 1]))
    def ends(self, who):
        self.candidates[who].end()
        self.ended.add(self.candidates[who])

    @invariant()
    def never_two(self):
        assert sum(each.leads(self.now) for each in self.candidates) <= 1

    @invariant()
    def over_is_over(self):
        assert all(each.role is Role.OVER for each in self.ended)


TestTwoCandidates = TwoCandidates.TestCase
TestTwoCandidates.settings = settings(max_examples=examples(150), stateful_step_count=60, deadline=None)


def test_a_renew_deadline_as_long_as_the_lease_duration_is_refused() -> None:
    with pytest.raises(AssertionError):
        Timing(duration=10, renew_deadline=10)
