"""The asyncio face of a queue: takes keys as they become due, works on several at once, and tells the queue how each ended."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ruleop.engine.queue.result import Result
from ruleop.engine.queue.triggers import Triggers, told
from ruleop.engine.queue.work_queue import Urgency, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ruleop.engine.queue.request import Request
    from ruleop.engine.queue.triggers import Cause
    from ruleop.engine.telemetry.metrics import Metrics


class Workers:
    """Works on each due request, at most `limit` at once, while `open_` says that work may be done. `ended` is told of the task that does
    it, which does not end by itself."""

    def __init__(self, title: str, *, limit: int, metrics: Metrics, ended: Callable[[asyncio.Task[None]], object]) -> None:
        self.title = title
        self.limit = limit
        self.metrics = metrics.of(title)
        self.ended = ended
        self.queue: WorkQueue[Request] = WorkQueue(group=lambda request: request.namespace, waited=self._waited)
        self.causes = Triggers()
        self.log = structlog.get_logger().bind(controller=title)
        self._woken = asyncio.Event()
        self._open = False
        self._opened_at = 0.0
        self._running: dict[asyncio.Task[None], float] = {}  # since when
        self._task: asyncio.Task[None] | None = None

    def add(self, request: Request, cause: Cause, urgency: Urgency = Urgency.CHANGE) -> None:
        self.causes.came(request, cause)
        self.queue.add(request, now=time.monotonic(), urgency=urgency)
        self.metrics.adds.inc()
        self._woken.set()

    def has_ready(self) -> bool:
        """Whether some CR waits for a worker."""
        return self.queue.has_ready()

    def wake(self, request: Request) -> None:
        """To write its status, which has waited long enough."""
        self.add(request, "status", Urgency.RETRY)

    def open(self, is_open: bool) -> None:
        """Work is done only while the stores are synced and this process leads."""
        if is_open and not self._open:
            self._opened_at = time.monotonic()
        self._open = is_open
        self._woken.set()

    @property
    def is_open(self) -> bool:
        return self._open

    def _waited(self, seconds: float) -> None:
        """What came to a standby did not wait for a worker until then."""
        self.metrics.queue_time.observe(min(seconds, time.monotonic() - self._opened_at))

    def statistics(self) -> dict[str, float]:
        """Nothing waits for a worker while there is none."""
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

    def start(self, work: Callable[[Request], Awaitable[Result]]) -> None:
        self._task = asyncio.create_task(self._run(work), name=f"controller {self.title}")
        self._task.add_done_callback(self.ended)

    async def stop(self) -> None:
        """Takes no new work, and ends when what runs is done."""
        self._open = False
        if self._task is not None:
            self._task.cancel()
        if self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self, work: Callable[[Request], Awaitable[Result]]) -> None:
        while True:
            self._woken.clear()
            while self._open and len(self._running) < self.limit:
                now = time.monotonic()
                request = self.queue.take(now=now)
                if request is None:
                    break
                task = asyncio.create_task(self._one(work, request))
                self._running[task] = now
                task.add_done_callback(self._ended)
            await self._until_something()

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._woken.set()

    async def _until_something(self) -> None:
        due = self.queue.next_due() if self._open and len(self._running) < self.limit else None
        wait = None if due is None else max(0.0, due - time.monotonic())
        try:
            async with asyncio.timeout(wait):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _one(self, work: Callable[[Request], Awaitable[Result]], request: Request) -> None:
        start = time.monotonic()
        causes = self.causes.take(request)
        # This task's own, so that each line of the log about this pass has them.
        structlog.contextvars.bind_contextvars(because=partial(told, causes), seconds=partial(_since, start))
        verdict = Result(failed=True)
        try:
            verdict = await work(request)
        except Exception:
            # A bug, or something nobody thought of. It costs this CR its backoff, and nobody else anything.
            self.metrics.panics.inc()
            self.log.exception("reconcile failed in a way that ruleop did not expect", resource=str(request))
        finally:
            now = time.monotonic()
            self.queue.done(request, now=now, failed=verdict.failed, again_after=verdict.again)
            if verdict.failed:
                self.causes.plan(request, f"retry {self.queue.failures(request)}")
            elif verdict.again is not None:
                self.causes.plan(request, *((verdict.why,) if verdict.why else causes))
            self.metrics.reconciled(verdict.result, now - start)


def _since(start: float) -> float:
    return round(time.monotonic() - start, 4)
