"""Reports what happened to an object as Events (events.k8s.io/v1), which `kubectl describe` shows.

Events are for people, so they are few: the caller reports only changes, a repeated event becomes a count on the first
one, an object gets 25 of them at once and then one in five minutes, and an event that cannot be sent is dropped.
Nothing ever waits for an event.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import OrderedDict, deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.kubernetes.permissions import EVENT_VERBS, grant, place
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.operator.wire.client.client import Client
    from ruleop.operator.wire.http.connection import PreparedRequest

log = structlog.get_logger(__name__)

EVENTS = ResourceInfo("events", namespaced=True, status_subresource=False, kind=Kind("events.k8s.io", "v1", "Event"))

# As in client-go: a burst for an object, then one event in REFILL seconds.
BURST, REFILL = 25, 300.0
# A repeated event within this time is counted; after it, it is a new one.
SERIES = 360.0
KNOWN = 4096  # objects and series that are kept
QUEUE = 1000
NOTE, REASON = 1024, 128  # the server rejects longer ones
SEND_TIMEOUT = 10.0
HOLD, HOLD_INTERVAL = (
    5.0,
    0.1,
)  # seconds that an event yields to urgent work, and between two checks
PAUSE_AFTER_FAILURE = 5.0


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """An occurrence that concerns an object. `note` is public: no values of Secrets."""

    regarding: ObjectKey
    version: str  # of the API: apps.example.com's v1
    uid: str
    reason: str
    note: str
    warning: bool = False
    action: str = "Reconcile"

    @property
    def series(self) -> tuple[Any, ...]:
        """Equal for events that are counted as one."""
        return self.regarding, self.uid, self.reason, self.warning, self.action, self.note


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    last: float


class EventCorrelator:
    """Counts repeated events and limits those of each object. No I/O; `now` is in seconds, `wall` is the time in the
    event."""

    def __init__(self, reporter: str, instance: str) -> None:
        self.suppressed = 0
        self._reporter, self._instance = reporter, instance
        self._series: OrderedDict[tuple[Any, ...], _Series] = OrderedDict()
        self._tokens: OrderedDict[tuple[ObjectKey, str], tuple[float, float]] = OrderedDict()

    def correlate(self, happening: ObjectEvent, now: float, wall: datetime) -> PreparedRequest | None:
        """The request that creates this event, or raises its count; None if the object has had too many. The next one
        carries the count."""
        identity = happening.series
        series = self._series.get(identity)
        if series is not None and now - series.last >= SERIES:
            series = None
        if series is not None:
            series.count += 1
            series.last = now
            self._series.move_to_end(identity)
        if not self._is_allowed(happening, now):
            self.suppressed += 1
            return None
        if series is not None:
            return self._count(series, wall)
        series = _Series(self._name(identity, wall), happening.regarding.namespace or "default", 1, now)
        self._series[identity] = series
        self._series.move_to_end(identity)
        if len(self._series) > KNOWN:
            self._series.popitem(last=False)
        return self._new(happening, series, wall)

    def forget(self, happening: ObjectEvent) -> None:
        """The event does not exist (any longer), so its count cannot be raised."""
        self._series.pop(happening.series, None)

    def _is_allowed(self, happening: ObjectEvent, now: float) -> bool:
        target = (happening.regarding, happening.uid)
        tokens, since = self._tokens.get(target, (float(BURST), now))
        tokens = min(float(BURST), tokens + (now - since) / REFILL)
        self._tokens[target] = (tokens - 1 if tokens >= 1 else tokens, now)
        self._tokens.move_to_end(target)
        if len(self._tokens) > KNOWN:
            self._tokens.popitem(last=False)
        return tokens >= 1

    def _name(self, identity: tuple[Any, ...], wall: datetime) -> str:
        # With a random name, a repeated create (after a lost response) would be a second event instead of a conflict.
        digest = hashlib.sha256(repr((self._instance, identity, wall.isoformat())).encode()).hexdigest()[:16]
        return f"{identity[0].name[:200]}.{digest}"

    def _new(self, happening: ObjectEvent, series: _Series, wall: datetime) -> PreparedRequest:
        key = happening.regarding
        regarding = {
            "apiVersion": Kind(key.group, happening.version, key.kind).api_version,
            "kind": key.kind,
            "name": key.name,
            "uid": happening.uid,
        } | ({"namespace": key.namespace} if key.namespace else {})
        event = {
            "apiVersion": EVENTS.kind.api_version,
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": series.namespace},
            "eventTime": _stamp(wall),
            "reportingController": self._reporter,
            "reportingInstance": self._instance[:128],
            "type": "Warning" if happening.warning else "Normal",
            "reason": happening.reason[:REASON],
            "action": happening.action[:REASON],
            "note": _truncate(happening.note),
            "regarding": regarding,
        }
        return requests.create(EVENTS, event)

    def _count(self, series: _Series, wall: datetime) -> PreparedRequest:
        key = ObjectKey(EVENTS.kind.group, EVENTS.kind.kind, series.namespace, series.name)
        return requests.merge_patch(EVENTS, key, {"series": {"count": series.count, "lastObservedTime": _stamp(wall)}})


def _truncate(note: str) -> str:
    data = note.encode()  # the limit is in bytes
    return note if len(data) <= NOTE else data[: NOTE - 3].decode(errors="ignore") + "..."


def _stamp(wall: datetime) -> str:
    return wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class EventRecorder:
    """Sends events in the background, one at a time and after more urgent requests. `stop` sends those that wait."""

    def __init__(
        self,
        client: Client,
        *,
        reporter: str,
        instance: str,
        clock: Callable[[], float],
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self.sent = self.dropped = 0
        self._client = client
        self._correlator = EventCorrelator(reporter, instance)
        self._clock = clock
        self._busy = busy
        self._waiting: deque[tuple[float, ObjectEvent]] = deque()
        self._arrived = asyncio.Event()
        self._sending = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._last_problem: Problem | None = None  # of the last event

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="events")

    def record(self, happening: ObjectEvent) -> None:
        """Returns at once, and never raises."""
        if len(self._waiting) >= QUEUE:
            self._waiting.popleft()  # the newest events are worth most
            self.dropped += 1
        self._waiting.append((self._clock(), happening))
        self._arrived.set()

    async def stop(self, grace: float = 2.0) -> None:
        """Sends the waiting events, for `grace` seconds at most."""
        if self._task is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while await self._send_next() is not None:
                    pass
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def statistics(self) -> dict[str, int]:
        return {
            "waiting": len(self._waiting),
            "sent": self.sent,
            "dropped": self.dropped,
            "suppressed": self._correlator.suppressed,
        }

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while True:
                await self._yield_to_work()
                sent = await self._send_next()
                if sent is None:
                    break
                if not sent:
                    await asyncio.sleep(PAUSE_AFTER_FAILURE)

    async def _yield_to_work(self) -> None:
        """Waits while there are more urgent requests, for each event at most `HOLD`."""
        while self._waiting and self._busy() and self._clock() - self._waiting[0][0] < HOLD:  # noqa: ASYNC110 - polls
            await asyncio.sleep(HOLD_INTERVAL)

    async def _send_next(self) -> bool | None:
        """None if no event waits or is being sent."""
        async with self._sending:
            return await self._send(self._waiting.popleft()[1]) if self._waiting else None

    async def _send(self, happening: ObjectEvent) -> bool:
        """False if the next event should wait: the server is away or busy."""
        try:
            request = self._correlator.correlate(happening, self._clock(), datetime.now(UTC))
            if request is not None:
                await self._client.fetch(replace(request, timeout=SEND_TIMEOUT))
                self.sent += 1
                self._last_problem = None
        except ApiError as error:
            self._correlator.forget(happening)
            if error.problem is Problem.NOT_FOUND and error.verb == "patch":
                return await self._send(happening)  # the server deletes events after an hour
            self.dropped += 1
            is_new, self._last_problem = self._last_problem is not error.problem, error.problem
            about = {"regarding": str(happening.regarding), "reason": happening.reason, "error": str(error)}
            if error.not_permitted:
                where = place(happening.regarding.namespace or "default")
                about["grant"] = grant(EVENTS.title, where, EVENT_VERBS)
            # Of equal failures in a row, only the first is a warning.
            (log.warning if is_new else log.debug)("event dropped", **about)
            return not error.retryable
        except (RuleopError, ValueError) as error:
            self.dropped += 1
            log.warning("event dropped", regarding=str(happening.regarding), reason=happening.reason, error=str(error))
        except Exception:
            self.dropped += 1
            log.exception(
                "event dropped: internal error",
                regarding=str(happening.regarding),
                reason=happening.reason,
            )
        return True
