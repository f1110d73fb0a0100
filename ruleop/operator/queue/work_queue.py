"""The queue that decides which CR to reconcile next, and when.

The queue holds keys, never objects or events: whatever happened to a CR, a reconcile only has to know that it is due.
That gives the engine three properties:

- a key is queued at most once, so a burst of events costs one reconcile;
- a key is never with two workers, so two reconciles never race on one CR;
- an event that arrives while its key is with a worker queues the key once more, so no change is missed.

Keys belong to groups (namespaces), which take turns: a namespace with ten thousand queued CRs delays the one CR of
another by one turn. More urgent keys go first, but not for ever: while edits never end, a key that has waited too long
gets every fourth turn.

This is a state machine without I/O. Time is an argument, so that a test of an hour takes microseconds; `workers.py`
sleeps until `next_due`.

A key is in exactly one of these states:

    idle      not in the queue
    delayed   becomes ready at a given time
    ready     waits for a worker
    active    is with a worker
    dirty     is with a worker, and becomes ready again when the worker is done"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object


# -- request -----------------------------------------------------------------------------------------------------------
#
# An item of the queue: which CR to reconcile, the reasons, and the result, which decides when it is reconciled next.
#
# No decision depends on the reasons; they are for the log only. A trigger is the identity of the object that changed,
# or a word. The first three triggers of a CR are kept until its reconcile starts. A retry or a resync has a trigger of
# its own, which is used if none came before it.


Cause: TypeAlias = ObjectKey | str

START = "start"
RESYNC = "resync"
MAX_TRIGGERS = 3
IMMEDIATELY = 0.001


class Request(NamedTuple):
    """The namespace and name of a CR."""

    namespace: str
    name: str

    @classmethod
    def of(cls, resource: Object) -> Request:
        return cls(resource["metadata"].get("namespace") or "", resource["metadata"]["name"])

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Triggers:
    def __init__(self) -> None:
        self._added: dict[Request, tuple[Cause, ...]] = {}
        self._scheduled: dict[Request, tuple[Cause, ...]] = {}

    def add(self, request: Request, cause: Cause) -> None:
        known = self._added.get(request, ())
        if cause not in known and len(known) < MAX_TRIGGERS:
            self._added[request] = (*known, cause)

    def schedule(self, request: Request, *causes: Cause) -> None:
        self._scheduled[request] = causes

    def take(self, request: Request) -> tuple[Cause, ...]:
        scheduled = self._scheduled.pop(request, ())
        return self._added.pop(request, ()) or scheduled


def describe(causes: tuple[Cause, ...]) -> str:
    named = (each if isinstance(each, str) else f"{str(each).replace('/', ' ', 1)} changed" for each in causes)
    return ", ".join(named)


@dataclass(frozen=True, slots=True)
class Result:
    """Three cases: it failed, and is retried with backoff; it is requeued after a time; it is done."""

    failed: bool = False
    requeue_after: float | None = None  # seconds until it is requeued; of a failure, at the latest
    retry_after: float | None = None  # seconds that the server asked to wait after a failure
    reason: str = ""  # for the log; empty: the triggers of this reconcile

    @property
    def result(self) -> str:
        """The result that controller-runtime would count. Its resync comes from its informers, so a CR that is requeued
        only for that is a success."""
        if self.failed:
            return "error"
        if self.requeue_after is None or self.reason == RESYNC:
            return "success"
        return "requeue" if self.requeue_after <= IMMEDIATELY else "requeue_after"


# -- work queue --------------------------------------------------------------------------------------------------------


Key = TypeVar("Key", bound=Hashable)


class Urgency(IntEnum):
    """The urgency of a key: the most urgent goes first. An edit must not wait behind the ten thousand CRs that a
    restart reconciles again."""

    CHANGE = 0  # an object changed
    RETRY = 1  # an earlier attempt failed
    RESYNC = 2  # start-up and periodic resync


# Seconds that a less urgent key waits while more urgent ones keep coming; then it gets some of the turns
MAX_WAIT = 5.0
TURNS_PER_OVERDUE_KEY = 4
# Kept before they are removed; a timer of ten hours would otherwise be kept ten hours for each change
MAX_STALE_TIMERS = 64


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delays of a failing key: they double up to a cap, without a limit of attempts: otherwise a temporary failure
    could become permanent."""

    first: float = 0.005
    cap: float = 300.0

    def delay(self, failures: int) -> float:
        # 2**failures of a key that fails for weeks would not fit a float, and above the cap it does not matter.
        return min(self.cap, self.first * 2.0 ** min(failures - 1, 60))


class _FairQueue(Generic[Key]):
    """The ready keys of one urgency. Groups take turns; within a group, keys are first in, first out."""

    def __init__(self, group: Callable[[Key], Hashable]) -> None:
        self.group = group
        self.groups: OrderedDict[Hashable, OrderedDict[Key, float]] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        return key in self.groups.get(self.group(key), ())

    def add(self, key: Key, since: float) -> None:
        self.groups.setdefault(self.group(key), OrderedDict())[key] = since

    def remove(self, key: Key) -> float:
        group = self.group(key)
        since = self.groups[group].pop(key)
        if not self.groups[group]:
            del self.groups[group]
        return since

    def pop(self) -> tuple[Key, float]:
        """The next key, and since when it has waited."""
        group, keys = self.groups.popitem(last=False)
        next_ = keys.popitem(last=False)
        if keys:
            self.groups[group] = keys  # at the end: other groups come first
        return next_

    def next_since(self) -> float:
        """Since when the next key has waited."""
        keys = next(iter(self.groups.values()))
        return next(iter(keys.values()))

    def waiting_since(self) -> list[float]:
        return [since for keys in self.groups.values() for since in keys.values()]


def _one_group(_key: Hashable) -> Hashable:
    return None


def _ignore(_seconds: float) -> None:
    return


@dataclass(slots=True)
class WorkQueue(Generic[Key]):
    """`report_wait` is called with the seconds that each key waited for a worker."""

    backoff: Backoff = field(default_factory=Backoff)
    group: Callable[[Key], Hashable] = _one_group
    report_wait: Callable[[float], None] = _ignore
    max_wait: float = MAX_WAIT
    _ready: dict[Urgency, _FairQueue[Key]] = field(default_factory=dict)
    _delayed: dict[Key, tuple[float, Urgency]] = field(default_factory=dict)
    _timers: list[tuple[float, int, Key]] = field(default_factory=list)
    _active: dict[Key, Urgency | None] = field(default_factory=dict)
    _failures: dict[Key, int] = field(default_factory=dict)
    _tick: int = 0
    _turns: int = 0

    def __post_init__(self) -> None:
        self._ready = {urgency: _FairQueue(self.group) for urgency in Urgency}

    def add(self, key: Key, *, now: float, urgency: Urgency = Urgency.CHANGE) -> None:
        """Queues a key for the next free worker. If it is queued already, the more urgent of the two urgencies
        counts."""
        self._delayed.pop(key, None)  # its timer is dropped when it expires
        if key in self._active:
            pending = self._active[key]
            self._active[key] = urgency if pending is None else min(pending, urgency)
            return
        waiting = self._ready_urgency(key)
        if waiting is None or urgency < waiting:
            since = self._ready[waiting].remove(key) if waiting is not None else now
            self._ready[urgency].add(key, since)

    def add_after(self, key: Key, delay: float, *, now: float, urgency: Urgency = Urgency.RESYNC) -> None:
        """Queues a key in `delay` seconds. The earliest of several delays counts; a key that is ready needs none."""
        if delay <= 0:
            self.add(key, now=now, urgency=urgency)
            return
        due = now + delay
        delayed = self._delayed.get(key)
        if self._ready_urgency(key) is not None or (delayed is not None and delayed[0] <= due):
            return
        self._delayed[key] = (due, urgency)
        self._tick += 1  # keeps the heap from comparing keys
        heapq.heappush(self._timers, (due, self._tick, key))
        if len(self._timers) > 2 * len(self._delayed) + MAX_STALE_TIMERS:
            self._timers = [timer for timer in self._timers if not self._is_stale(*timer)]
            heapq.heapify(self._timers)

    def take(self, *, now: float) -> Key | None:
        """The next key, or None. Each key that is taken has to be returned by `done`."""
        self._release_due(now)
        queues = [queue for queue in self._ready.values() if queue.groups]
        if not queues:
            return None
        self._turns += 1
        chosen = queues[0]
        if self._turns % TURNS_PER_OVERDUE_KEY == 0:
            overdue = (queue for queue in queues[1:] if now - queue.next_since() > self.max_wait)
            chosen = min(overdue, key=_FairQueue.next_since, default=chosen)
        key, since = chosen.pop()
        self._active[key] = None
        self.report_wait(now - since)
        return key

    def done(
        self,
        key: Key,
        *,
        now: float,
        failed: bool = False,
        requeue_after: float | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Three cases: it failed, and is retried with backoff, at the latest after `requeue_after`, but not before
        `retry_after`, which the server asked for; it is requeued after a time; it is done."""
        dirty_as = self._active.pop(key)
        if failed:
            self._failures[key] = self._failures.get(key, 0) + 1
            delay = self.backoff.delay(self._failures[key])
            if requeue_after is not None:
                delay = min(delay, requeue_after)
            delay = max(delay, retry_after or 0.0)
            self.add_after(key, delay, now=now, urgency=Urgency.RETRY)
        else:
            self._failures.pop(key, None)
            if requeue_after is not None:
                self.add_after(key, requeue_after, now=now)
        if dirty_as is not None:
            self.add(key, now=now, urgency=dirty_as)

    def next_due(self) -> float | None:
        """When the earliest delayed key becomes ready; None if there is none."""
        while self._timers and self._is_stale(*self._timers[0]):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def statistics(self, *, now: float) -> dict[str, float]:
        # A delayed key whose time has come waits too, although it becomes ready only when a worker asks.
        due = [due for key, (due, _) in self._delayed.items() if due <= now and key not in self._active]
        ready = [*due, *(since for queue in self._ready.values() for since in queue.waiting_since())]
        return {
            "ready": len(ready),
            "delayed": len(self._delayed) - len(due),
            "active": len(self._active),
            "failing": len(self._failures),
            "longest_wait": max((now - since for since in ready), default=0.0),
        }

    def has_ready(self) -> bool:
        """Whether a key waits for a worker."""
        return any(queue.groups for queue in self._ready.values())

    def is_quiet(self) -> bool:
        """Whether no key waits, is with a worker, or has failed and is to be retried."""
        return not (self._active or self._failures or self.has_ready())

    def failures(self, key: Key) -> int:
        return self._failures.get(key, 0)

    def _release_due(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            due, tick, key = heapq.heappop(self._timers)
            if not self._is_stale(due, tick, key):
                _, urgency = self._delayed.pop(key)
                self.add(key, now=due, urgency=urgency)

    def _is_stale(self, due: float, _tick: int, key: Key) -> bool:
        """A timer outlives its purpose when the key was added meanwhile, or delayed to another time."""
        delayed = self._delayed.get(key)
        return delayed is None or delayed[0] != due

    def _ready_urgency(self, key: Key) -> Urgency | None:
        for urgency, queue in self._ready.items():
            if queue.groups and key in queue:
                return urgency
        return None
