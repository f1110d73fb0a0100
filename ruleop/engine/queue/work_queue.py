"""Which CR to reconcile next, and when.

The queue holds keys, never objects or events: whatever happened to a CR, all a reconcile needs is to know that it should look again.
That one idea gives the engine three properties that it is built on:

- a key waits at most once, so a burst of events costs one reconcile;
- a key is never handed out twice at the same time, so two workers never race on one CR;
- an event that arrives while its key is being worked on makes the key wait once more, so no change is missed.

Keys belong to groups (namespaces), which take turns: a namespace with ten thousand due CRs delays the one CR of another by one turn. What
is more urgent goes first, but not for ever: where edits never end, what has waited too long gets every fourth turn.

This is a state machine without I/O. Time is an argument, so that tests can live through an hour in a microsecond; the asyncio face that
sleeps until `next_due` is in `engine.workers`.

A key is in exactly one of these places:

    idle      not known here
    delayed   to be looked at again at a given time, and no earlier
    ready     waiting for a worker
    active    with a worker
    dirty     with a worker, and due again as soon as that worker is done
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Urgency(IntEnum):
    """What goes first. A person who edits a CR must not wait behind the ten thousand that a restart looks at again."""

    CHANGE = 0  # somebody changed something
    RETRY = 1  # an earlier attempt failed
    SWEEP = 2  # start-up and periodic checks


PATIENCE = 5.0  # seconds that a retry or a check waits while more urgent keys keep coming
FOURTH = 4
STALE_TIMERS = 64  # that are kept before they are cleared away; a timer of ten hours would otherwise be kept ten hours for each change


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a failing key waits: doubling, up to a cap, for ever. Giving up would leave a CR broken until somebody notices."""

    first: float = 0.005
    cap: float = 300.0

    def delay(self, failures: int) -> float:
        # 2**failures of a key that fails for weeks would not fit a float; past the cap the exponent is of no interest.
        return min(self.cap, self.first * 2.0 ** min(failures - 1, 60))


class _Line(Generic[Key]):
    """The keys of one urgency that wait for a worker. Groups take turns; within a group, first come, first served."""

    def __init__(self, group: Callable[[Key], Hashable]) -> None:
        self.group = group
        self.groups: OrderedDict[Hashable, OrderedDict[Key, float]] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        return key in self.groups.get(self.group(key), ())

    def __bool__(self) -> bool:
        return bool(self.groups)

    def add(self, key: Key, since: float) -> None:
        self.groups.setdefault(self.group(key), OrderedDict())[key] = since

    def remove(self, key: Key) -> float:
        group = self.group(key)
        since = self.groups[group].pop(key)
        if not self.groups[group]:
            del self.groups[group]
        return since

    def pop(self) -> tuple[Key, float]:
        """The key that is next, and since when it has waited."""
        group, keys = self.groups.popitem(last=False)
        next_ = keys.popitem(last=False)
        if keys:
            self.groups[group] = keys  # to the end: the others' turn comes first
        return next_

    def next_since(self) -> float:
        """Since when the key waits that is next."""
        keys = next(iter(self.groups.values()))
        return next(iter(keys.values()))

    def waiting_since(self) -> list[float]:
        return [since for keys in self.groups.values() for since in keys.values()]


def _alone(_key: Hashable) -> Hashable:
    return None


def _ignore(_seconds: float) -> None:
    return


@dataclass(slots=True)
class WorkQueue(Generic[Key]):
    """`waited` is told how long each key waited for a worker."""

    backoff: Backoff = field(default_factory=Backoff)
    group: Callable[[Key], Hashable] = _alone
    waited: Callable[[float], None] = _ignore
    _ready: dict[Urgency, _Line[Key]] = field(default_factory=dict)
    _delayed: dict[Key, tuple[float, Urgency]] = field(default_factory=dict)
    _timers: list[tuple[float, int, Key]] = field(default_factory=list)
    _active: dict[Key, Urgency | None] = field(default_factory=dict)
    _failures: dict[Key, int] = field(default_factory=dict)
    _tick: int = 0
    _turn: int = 0

    def __post_init__(self) -> None:
        self._ready = {urgency: _Line(self.group) for urgency in Urgency}

    def add(self, key: Key, *, now: float, urgency: Urgency = Urgency.CHANGE) -> None:
        """Look at `key` as soon as a worker is free. A more urgent reason overtakes a less urgent one; the reverse changes nothing."""
        self._delayed.pop(key, None)  # sooner than later; its timer is dropped when it comes up
        if key in self._active:
            pending = self._active[key]
            self._active[key] = urgency if pending is None else min(pending, urgency)
            return
        waiting = self._waiting_as(key)
        if waiting is None or urgency < waiting:
            since = self._ready[waiting].remove(key) if waiting is not None else now
            self._ready[urgency].add(key, since)

    def add_after(self, key: Key, delay: float, *, now: float, urgency: Urgency = Urgency.SWEEP) -> None:
        """Look at `key` in `delay` seconds. Of several wishes the earliest counts, and one that is due anyway needs no timer."""
        if delay <= 0:
            self.add(key, now=now, urgency=urgency)
            return
        due = now + delay
        planned = self._delayed.get(key)
        if self._waiting_as(key) is not None or (planned is not None and planned[0] <= due):
            return
        self._delayed[key] = (due, urgency)
        self._tick += 1  # keeps the heap from comparing keys
        heapq.heappush(self._timers, (due, self._tick, key))
        if len(self._timers) > 2 * len(self._delayed) + STALE_TIMERS:
            self._timers = [timer for timer in self._timers if not self._is_stale(*timer)]
            heapq.heapify(self._timers)

    def take(self, *, now: float) -> Key | None:
        """The next key to work on, or None. Whoever takes a key owes a `done`."""
        self._wake(now)
        lines = [line for line in self._ready.values() if line]
        if not lines:
            return None
        self._turn += 1
        overdue = [line for line in lines[1:] if now - line.next_since() > PATIENCE] if self._turn % FOURTH == 0 else []
        key, since = min(overdue, key=_Line.next_since).pop() if overdue else lines[0].pop()
        self._active[key] = None
        self.waited(now - since)
        return key

    def done(self, key: Key, *, now: float, failed: bool = False, again_after: float | None = None) -> None:
        """Three cases: it failed, and is tried again later and later, but no sooner than `again_after`, where the server asked to be left
        alone; it asked to be looked at again; it is at rest."""
        due_again = self._active.pop(key)
        if failed:
            self._failures[key] = self._failures.get(key, 0) + 1
            delay = max(self.backoff.delay(self._failures[key]), again_after or 0.0)
            self.add_after(key, delay, now=now, urgency=Urgency.RETRY)
        else:
            self._failures.pop(key, None)
            if again_after is not None:
                self.add_after(key, again_after, now=now)
        if due_again is not None:
            self.add(key, now=now, urgency=due_again)

    def next_due(self) -> float | None:
        """When the earliest timer that still counts comes up; None when nothing is planned."""
        while self._timers and self._is_stale(*self._timers[0]):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def statistics(self, *, now: float) -> dict[str, float]:
        # What is due and not woken yet, because nobody is free to take it, waits too.
        due = [due for key, (due, _) in self._delayed.items() if due <= now and key not in self._active]
        ready = [*due, *(since for line in self._ready.values() for since in line.waiting_since())]
        return {
            "ready": len(ready),
            "delayed": len(self._delayed) - len(due),
            "active": len(self._active),
            "failing": len(self._failures),
            "longest_wait": max((now - since for since in ready), default=0.0),
        }

    def forget(self, key: Key) -> None:
        """The key is gone for good: no timer and no failures are kept for it. One that is being worked on ends as usual."""
        self._delayed.pop(key, None)
        self._failures.pop(key, None)
        if (waiting := self._waiting_as(key)) is not None:
            self._ready[waiting].remove(key)

    def has_ready(self) -> bool:
        """Whether some key waits for a worker."""
        return any(self._ready.values())

    def is_quiet(self) -> bool:
        """Whether no key waits, is with a worker, or has failed and is to be retried."""
        return not (self._active or self._failures or self.has_ready())

    def failures(self, key: Key) -> int:
        return self._failures.get(key, 0)

    def _wake(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            due, tick, key = heapq.heappop(self._timers)
            if not self._is_stale(due, tick, key):
                _, urgency = self._delayed.pop(key)
                self.add(key, now=due, urgency=urgency)

    def _is_stale(self, due: float, _tick: int, key: Key) -> bool:
        """A timer outlives the wish it was set for: the key was added at once, or is planned for another time."""
        planned = self._delayed.get(key)
        return planned is None or planned[0] != due

    def _waiting_as(self, key: Key) -> Urgency | None:
        return next((urgency for urgency, line in self._ready.items() if key in line), None)
