"""Election of the candidate that may write: a state machine over one Lease, without I/O.

It guarantees that no two candidates lead at the same time, as long as all clocks run at the same speed:

- a leader leads for `renew_deadline` after the *start* of the last request that renewed the lease, and not longer;
- a waiting candidate acquires the lease only if the record has not changed for `duration`, counted from its own
  observation of the last change, which is later than the start of the request that made it. The times in the record
  are for people;
- every write names the resourceVersion that was read, so of two candidates that acquire the lease at once, the server
  rejects one.

This is not a fence. A leader that is suspended for longer than the lease lasts (a paused machine) may still have a
request under way when it resumes. That is why destructive writes name uid and resourceVersion, and why a process that
loses its lease exits at once.

A candidate is in one of three states:

    WAITING   another candidate leads, or the holder is unknown yet
    LEADING   this one leads, until `leads_until`
    OVER      the lease was lost or released; there is no way back, only another process
"""

from __future__ import annotations

import random
from dataclasses import field
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kubernetes.kinds import Object


class Role(Enum):
    WAITING = "waiting"
    LEADING = "leading"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Timing:
    """As in client-go. After the deadline a third of the lease is left to stop in; the period allows several
    attempts."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        assert self.duration > self.renew_deadline > 1.2 * self.retry_period, "else a healthy leader loses its lease"


@dataclass(frozen=True, slots=True)
class LeaseRead:
    """Read the lease and pass it to `read`."""


@dataclass(frozen=True, slots=True)
class LeaseWrite:
    """Create (if `version` is '') or replace the lease, and pass the response to `written`."""

    spec: dict[str, Any]
    version: str
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    until: float


Step: TypeAlias = LeaseRead | LeaseWrite | Pause


class LeaseCandidate:
    """`identity` must be unique to the process, also among processes of one pod."""

    def __init__(
        self, identity: str, *, timing: Timing | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        self.identity = identity
        self.role = Role.WAITING
        self.holder = ""  # the last known leader
        self.leads_until = 0.0
        self._timing = timing or Timing()
        self._chance = chance
        self._record: dict[str, Any] | None = None  # the spec as last seen
        self.version = ""
        self._changed_at = 0.0  # when the record was seen to change
        self._known = False  # whether the record is recent enough to write to
        self._not_before = 0.0
        self._release_requested = False
        self._releasing = False  # the release has started
        self.annotations: Mapping[str, str] = {}  # that this candidate has last written
        self._desired: Mapping[str, str] = {}
        self._sent: Mapping[str, str] = {}  # by the write under way

    def leads(self, now: float) -> bool:
        """Whether it may write at this moment. True only within the deadline, whatever the renewing thread does."""
        return self.role is Role.LEADING and not self._release_requested and now < self.leads_until

    def next(self, now: float, wall: datetime | None = None) -> Step | None:
        """The next step; None when it is over."""
        if self.role is Role.LEADING and now >= self.leads_until:
            self.role = Role.OVER
        if self.role is Role.OVER:
            return None
        if self._release_requested:
            return self._release_step()
        if now < self._not_before:
            return Pause(min(self._not_before, self.leads_until) if self.role is Role.LEADING else self._not_before)
        if not self._known:
            return LeaseRead()
        if self.role is Role.WAITING and not self._is_free(now):
            self._known = False  # read again after the pause
            self._not_before = now + self._read_delay(now)
            return Pause(self._not_before)
        self._sent = self._desired
        return LeaseWrite(self._claim(wall or datetime.now(UTC)), self.version, self._sent)

    def annotate(self, annotations: Mapping[str, str], now: float) -> None:
        """The next write, which a leader makes at once, leaves the lease with these annotations and no others."""
        self._desired = annotations
        if self.role is Role.LEADING:
            self._not_before = min(self._not_before, now)

    def release(self) -> None:
        """Releases the lease at a clean stop, when no work of the leader is still running."""
        self._release_requested = True

    def end(self) -> None:
        """Ends without releasing the lease, whatever the response to a request under way."""
        self.role = Role.OVER

    # Outcomes of a step

    def read(self, lease: Object | None, now: float) -> None:
        """The lease, or None if it does not exist."""
        if self.role is Role.OVER:
            return
        record = dict(lease.get("spec") or {}) if lease is not None else None
        version = str(lease["metadata"]["resourceVersion"]) if lease is not None else ""
        if version != self.version or record != self._record:
            self._changed_at = now
        self._record, self.version, self._known = record, version, True
        self.holder = str((record or {}).get("holderIdentity") or "")
        if self.role is Role.LEADING and self.holder != self.identity:
            self.role = Role.OVER  # acquired by another holder: by hand, or because clocks run at different speeds

    def written(self, lease: Object, started: float, now: float) -> None:
        """The write was accepted. `started` is the start of its request: others may have seen the new record since
        then."""
        if self.role is Role.OVER:
            return
        self._record, self.version = dict(lease["spec"]), str(lease["metadata"]["resourceVersion"])
        self.annotations = self._sent
        self._changed_at, self._known = now, True
        self.holder = str(self._record.get("holderIdentity") or "")
        if self.holder != self.identity:
            self.role = Role.OVER  # released
            return
        self.leads_until = started + self._timing.renew_deadline
        # A response that took longer than the deadline leaves no time to lead.
        self.role = (
            Role.LEADING if now < self.leads_until else (Role.OVER if self.role is Role.LEADING else Role.WAITING)
        )
        delay = self._timing.retry_period * (1 - 0.2 * self._chance())
        self._not_before = started + (delay if self.annotations is self._desired else 0.0)

    def failed(self, now: float) -> None:
        """A request failed, lost a race, or has an unknown outcome. A read shows the state."""
        self._known = False
        if self._releasing:
            self.role = Role.OVER  # the lease expires by itself
        # A leader has only until `renew_deadline`, so it retries soon.
        self._not_before = now + self._timing.retry_period * (0.2 + 0.3 * self._chance())

    def _is_free(self, now: float) -> bool:
        if not self.holder or self.holder == self.identity:
            return True
        return now >= self._changed_at + self._holder_duration()

    def _holder_duration(self) -> float:
        # The holder may be another version of ruleop: its own duration counts, but at least this process's.
        duration = (self._record or {}).get("leaseDurationSeconds")
        return max(self._timing.duration, float(duration)) if isinstance(duration, int) else self._timing.duration

    def _read_delay(self, now: float) -> float:
        # Always less than the retry period, so that a released lease is acquired within it.
        wait = self._timing.retry_period * (0.5 + 0.4 * self._chance())
        return max(0.05, min(wait, self._changed_at + self._holder_duration() - now))

    def _claim(self, wall: datetime) -> dict[str, Any]:
        stamp = wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before = self._record or {}
        mine, changes = self.holder == self.identity, before.get("leaseTransitions")
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._timing.duration),
            "acquireTime": before.get("acquireTime", stamp) if mine else stamp,
            "renewTime": stamp,
            "leaseTransitions": (changes if isinstance(changes, int) else 0) + (0 if mine or not before else 1),
        }

    def _release_step(self) -> Step | None:
        if self.role is not Role.LEADING:
            self.role = Role.OVER
            return None
        self._releasing = True
        if not self._known:
            return LeaseRead()
        # The server rejects a duration of 0.
        return LeaseWrite({**(self._record or {}), "holderIdentity": "", "leaseDurationSeconds": 1}, self.version)
