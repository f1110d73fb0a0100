"""Takes requests from a queue as they become due, reconciles several at once, and returns each to the queue with its
result."""

from __future__ import annotations

import asyncio
import time
from operator import attrgetter
from typing import TYPE_CHECKING

import structlog

from ruleop.operator.queue.work_queue import Result, Triggers, Urgency, WorkQueue, describe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ruleop.operator.queue.work_queue import Cause, Request
    from ruleop.operator.telemetry import Metrics


class Workers:
    """Reconciles due requests, at most `limit` at once, while it is open. `on_exit` is called with the task that does
    so, when it ends: by `stop`, or by an internal error."""

    def __init__(
        self, title: str, *, limit: int, metrics: Metrics, on_exit: Callable[[asyncio.Task[None]], object]
    ) -> None:
        self.title = title
        self.limit = limit
        self.metrics = metrics.of(title)
        self.on_exit = on_exit
        self.queue: WorkQueue[Request] = WorkQueue(group=attrgetter("namespace"), report_wait=self._report_wait)
        self.triggers = Triggers()
        self.log = structlog.get_logger().bind(controller=title)
        self._open = False
        self._opened_at = 0.0
        self._running: dict[asyncio.Task[None], float] = {}  # with the time it started
        self._task: asyncio.Task[None] | None = None
        self._broken: asyncio.Future[None] | None = None  # done after an internal error, and when it is stopped
        self._reconcile_request: Callable[[Request], Awaitable[Result]]
        self._woken = False  # `_start_due` is about to be called
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0

    def add(self, request: Request, cause: Cause, urgency: Urgency = Urgency.CHANGE) -> None:
        self.triggers.add(request, cause)
        self.queue.add(request, now=time.monotonic(), urgency=urgency)
        self.metrics.adds.inc()
        self._wake()

    def open(self, is_open: bool) -> None:
        """It may work only while the caches are synced and this process leads."""
        if is_open and not self._open:
            self._opened_at = time.monotonic()
        self._open = is_open
        self._wake()

    @property
    def is_open(self) -> bool:
        return self._open

    def _report_wait(self, seconds: float) -> None:
        """While it was closed, as in a standby, nothing waited for a worker."""
        self.metrics.queue_time.observe(min(seconds, time.monotonic() - self._opened_at))

    def statistics(self) -> dict[str, float]:
        """While it is closed, nothing waits for a worker."""
        now = time.monotonic()
        queue, running = self.queue.statistics(now=now), [now - since for since in self._running.values()]
        return {
            "depth": queue["ready"] if self._open else 0,
            "longest_wait_seconds": min(queue["longest_wait"], now - self._opened_at) if self._open else 0.0,
            "failing": queue["failing"],
            "active_workers": len(running),
            "max_concurrent_reconciles": self.limit,
            "unfinished_work_seconds": sum(running),
            "longest_running_processor_seconds": max(running, default=0.0),
        }

    def start(self, reconcile: Callable[[Request], Awaitable[Result]]) -> None:
        self._reconcile_request = reconcile
        self._broken = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(self._broken), name=f"controller {self.title}")
        self._task.add_done_callback(self.on_exit)
        self._wake()

    async def finish_running(self) -> None:
        """Returns when the reconciles that run now are done; others may have started."""
        if self._running:
            await asyncio.wait([*self._running])

    async def stop(self) -> None:
        """Starts no reconcile any more, and returns when the running ones are done."""
        self._open = False
        if self._broken is not None:
            self._broken.cancel()
        if self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self, broken: asyncio.Future[None]) -> None:
        """Runs until it is stopped, or ends with an internal error of `_start_due`. That is a callback of the loop,
        because waking a task for each event costs more."""
        try:
            await broken
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _wake(self) -> None:
        if self._broken is not None and not self._woken:
            self._woken = True
            self._broken.get_loop().call_soon(self._start_due)

    def _start_due(self) -> None:
        """Starts what is due, and sets a timer for what becomes due next."""
        self._woken = False
        broken = self._broken
        assert broken is not None, "it was started"
        try:
            while self._open and len(self._running) < self.limit and not broken.done():
                now = time.monotonic()
                request = self.queue.take(now=now)
                if request is None:
                    self._set_timer(self.queue.next_due(), now)
                    break
                task = asyncio.create_task(self._reconcile(request))
                self._running[task] = now
                task.add_done_callback(self._reconciled)
        except Exception as error:  # noqa: BLE001 - `on_exit` is called with it
            broken.set_exception(error)

    def _reconciled(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._start_due()

    def _set_timer(self, due: float | None, now: float) -> None:
        """An earlier timer stays: when it fires, the next one is set."""
        if due is None or (self._timer is not None and self._timer_due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due - now), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._start_due()

    async def _reconcile(self, request: Request) -> None:
        start = time.monotonic()
        triggers = self.triggers.take(request)
        # Bound to this task, so that every log line of this reconcile has them.
        structlog.contextvars.bind_contextvars(because=describe(triggers), started=start)
        result = Result(failed=True)
        try:
            result = await self._reconcile_request(request)
        except Exception:
            # An internal error costs this CR its backoff, and other CRs nothing.
            self.metrics.panics.inc()
            self.log.exception("reconcile failed with an internal error; will retry", resource=str(request))
        finally:
            now = time.monotonic()
            self.queue.done(
                request,
                now=now,
                failed=result.failed,
                requeue_after=result.requeue_after,
                retry_after=result.retry_after,
            )
            if result.failed:
                self.triggers.schedule(request, f"retry {self.queue.failures(request)}")
            elif result.requeue_after is not None:
                self.triggers.schedule(request, *((result.reason,) if result.reason else triggers))
            # A resync is no `requeue_after`, as in controller-runtime: its users read that as a wait for something.
            self.metrics.reconciled(result.result, now - start)
