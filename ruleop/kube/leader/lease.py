"""Which of several candidates may write: a state machine over one Lease, without I/O.

It promises that no two candidates both believe that they lead, as long as nobody's clock runs at another speed:

- who leads believes it for `renew_deadline` after the *start* of the last request that renewed the lease, and not a moment longer;
- who waits takes the lease over only when the record has not changed for `duration`, counted from its own observation of the change,
  which is later than the start of the request that made it. What the other's clock wrote into the record is for people;
- every write names the resourceVersion that was read, so of two that take over at once, the server refuses one.

This is no fence. A leader that is stopped for longer than the lease lasts (a paused machine) may still have a write on its way when it
wakes up; that is why destructive writes name uid and resourceVersion, and why a process whose lease is lost ends at once.

A candidate is in one of three states:

    WAITING   somebody else leads, or nobody knows yet
    LEADING   this one leads, until `leads_until`
    OVER      the lease was lost or handed over; there is no way back, only another process
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kinds import Object


class Role(Enum):
    WAITING = "waiting"
    LEADING = "leading"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Timing:
    """As in client-go. The deadline leaves the leader a third of the lease to notice that it is over, the period three more attempts."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        assert self.duration > self.renew_deadline > 1.2 * self.retry_period, "else a leader loses its lease in peace"


@dataclass(frozen=True, slots=True)
class Read:
    """Read the lease; give it to `read`."""


@dataclass(frozen=True, slots=True)
class Write:
    """Create (where `version` is '') or replace the lease; give the answer to `written`."""

    spec: dict[str, Any]
    version: str


@dataclass(frozen=True, slots=True)
class Pause:
    until: float


Step: TypeAlias = Read | Write | Pause


class Candidate:
    """`identity` must be another one for each process, also for the next one in the same pod."""

    def __init__(self, identity: str, *, timing: Timing | None = None, chance: Callable[[], float] = random.random) -> None:
        self.identity = identity
        self.role = Role.WAITING
        self.holder = ""  # who leads, as far as known
        self.leads_until = 0.0
        self._timing = timing or Timing()
        self._chance = chance
        self._record: dict[str, Any] | None = None  # the spec as last seen
        self._version = ""
        self._changed_at = 0.0  # when the record was seen to change
        self._known = False  # whether what is known of the lease is good enough to write on
        self._not_before = 0.0
        self._release = False
        self._letting_go = False  # a step of the hand-over was given out

    def leads(self, now: float) -> bool:
        """Whether it may write at this moment. True only within the deadline, whatever the thread that renews is doing."""
        return self.role is Role.LEADING and not self._release and now < self.leads_until

    def next(self, now: float, wall: datetime | None = None) -> Step | None:
        """What to do; None when it is over."""
        if self.role is Role.LEADING and now >= self.leads_until:
            self.role = Role.OVER
        if self.role is Role.OVER:
            return None
        if self._release:
            return self._let_go()
        if now < self._not_before:
            return Pause(min(self._not_before, self.leads_until) if self.role is Role.LEADING else self._not_before)
        if not self._known:
            return Read()
        if self.role is Role.WAITING and not self._is_free(now):
            self._known = False  # look again, when the pause is over
            self._not_before = now + self._look_again(now)
            return Pause(self._not_before)
        return Write(self._claim(wall or datetime.now(UTC)), self._version)

    def release(self) -> None:
        """Hand over, at a clean stop: when nothing that the leader began is still running."""
        self._release = True

    def end(self) -> None:
        """Over without handing over, whatever the answer to a request that is under way may still say."""
        self.role = Role.OVER

    # What came of it

    def read(self, lease: Object | None, now: float) -> None:
        """The lease as it is, or None if there is none."""
        if self.role is Role.OVER:
            return
        record = dict(lease.get("spec") or {}) if lease is not None else None
        version = str(lease["metadata"]["resourceVersion"]) if lease is not None else ""
        if version != self._version or record != self._record:
            self._changed_at = now
        self._record, self._version, self._known = record, version, True
        self.holder = str((record or {}).get("holderIdentity") or "")
        if self.role is Role.LEADING and self.holder != self.identity:
            self.role = Role.OVER  # taken: by hand, or because the clocks run at different speeds

    def written(self, lease: Object, begun: float, now: float) -> None:
        """The write was accepted. `begun` is when its request was made: others may have seen the new record ever since."""
        if self.role is Role.OVER:
            return
        self._record, self._version = dict(lease["spec"]), str(lease["metadata"]["resourceVersion"])
        self._changed_at, self._known = now, True
        self.holder = str(self._record.get("holderIdentity") or "")
        if self.holder != self.identity:
            self.role = Role.OVER  # handed over
            return
        self.leads_until = begun + self._timing.renew_deadline
        # An answer that took longer than the deadline gives nothing to lead with.
        self.role = Role.LEADING if now < self.leads_until else (Role.OVER if self.role is Role.LEADING else Role.WAITING)
        self._not_before = begun + self._timing.retry_period * (1 - 0.2 * self._chance())

    def failed(self, now: float) -> None:
        """A request failed, was refused because somebody else was faster, or nobody knows. A read tells."""
        self._known = False
        if self._letting_go:
            self.role = Role.OVER  # it will run out by itself
        # A leader has `renew_deadline` for everything, so it tries again soon.
        self._not_before = now + self._timing.retry_period * (0.2 + 0.3 * self._chance())

    def _is_free(self, now: float) -> bool:
        if not self.holder or self.holder == self.identity:
            return True
        return now >= self._changed_at + self._their_duration()

    def _their_duration(self) -> float:
        # Of another version of ruleop, perhaps: the holder's own word counts, and never less than ours.
        theirs = (self._record or {}).get("leaseDurationSeconds")
        return max(self._timing.duration, float(theirs)) if isinstance(theirs, int) else self._timing.duration

    def _look_again(self, now: float) -> float:
        # Always less than the retry period: so a leader that hands over is followed within it.
        wait = self._timing.retry_period * (0.5 + 0.4 * self._chance())
        return max(0.05, min(wait, self._changed_at + self._their_duration() - now))

    def _claim(self, wall: datetime) -> dict[str, Any]:
        stamp = wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before = self._record or {}
        mine = self.holder == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._timing.duration),
            "acquireTime": before.get("acquireTime", stamp) if mine else stamp,
            "renewTime": stamp,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (0 if mine or not before else 1),
        }

    def _let_go(self) -> Step | None:
        if self.role is not Role.LEADING:
            self.role = Role.OVER
            return None
        self._letting_go = True
        if not self._known:
            return Read()
        # A duration of 0 is refused by the server.
        return Write({**(self._record or {}), "holderIdentity": "", "leaseDurationSeconds": 1}, self._version)
