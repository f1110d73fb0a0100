"""Drives a reflector against the API server into a store. The reflector makes all decisions.

A watcher never dies silently: an unexpected error is logged and counted, and the watch restarts. Another selector or
another kind needs another watcher.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import TYPE_CHECKING

import structlog

from ruleop.kubernetes.permissions import FOLLOW, grant, place
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.watch.reflector import Fetch, Follow, Reflector
from ruleop.operator.wire.watch.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.operator.wire.client.client import Client, Stream
    from ruleop.operator.wire.client.requests import ObjectSource
    from ruleop.operator.wire.watch.reflector import Rest
    from ruleop.operator.wire.watch.store import Belief, Selection

log = structlog.get_logger(__name__)

# Backoff after an internal error.
CRASH_WAIT, LONGEST_CRASH_WAIT = 1.0, 60.0
_AWAY = frozenset({Problem.UNREACHABLE, Problem.TIMEOUT, Problem.SERVER})


class Watcher:
    """Call `start` once, then `stop`. The store outlives the watcher."""

    def __init__(
        self,
        client: Client,
        source: ObjectSource,
        *,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        regained: Callable[[], None] = lambda: None,
        needed: Callable[[], Iterable[str]] = lambda: FOLLOW,
        selects: Selection = lambda _key, _metadata: True,
        believes: Belief = lambda _key, _manager: True,
    ) -> None:
        """`regained` is called when the server answers again after a failure; `needed` gives the verbs that the rules
        need on the kind; `selects` tells which objects the store keeps, `believes` which field managers."""
        self.store = Store(source, selects, believes)
        self.reflector = Reflector(source, self.store, chance=chance)
        self.crashes = 0
        self._lists_before = 0  # before the last crash
        self._client = client
        self._chance = chance
        self._clock = clock
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stream: asyncio.Timeout | None = None  # ends the open stream
        self._interrupted = False  # an interruption was logged
        self._invalid_response = ""  # the last invalid response that was logged
        self._regained = regained
        self._needed = needed
        self.cut_off = False  # the server does not answer, or with a server error

    def start(self) -> None:
        assert self._task is None, "a watcher is started once"
        self._task = asyncio.get_running_loop().create_task(self._supervised(), name=f"watch {self.store.source}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def wake(self) -> None:
        """Retry now: the kind may be served, or a permission granted."""
        self.reflector.wake(self._clock())
        self._woken.set()

    def list_again(self, delay: float) -> None:
        """Lists once more after `delay` seconds. Until then the watch continues."""
        asyncio.get_running_loop().call_later(delay, self._list_again)

    def _list_again(self) -> None:
        self.reflector.list_again()
        if self._stream is not None:
            self._stream.reschedule(asyncio.get_running_loop().time())

    def age(self) -> float | None:
        """Seconds since the server last answered on this watch; None before the first response."""
        heard = self.reflector.last_response_at
        return None if heard is None else self._clock() - heard

    @property
    def overdue(self) -> bool:
        """Whether the server's next sign of life is overdue, so that the store may be out of date."""
        return self.reflector.overdue(self._clock())

    @property
    def relists(self) -> int:
        """Lists after the first one; none, if there is no gap."""
        return max(0, self._lists_before + self.reflector.lists_done - 1)

    async def _supervised(self) -> None:
        while True:
            try:
                await self._run()
            except Exception as error:
                self.crashes += 1
                wait = min(LONGEST_CRASH_WAIT, CRASH_WAIT * 2.0 ** min(self.crashes - 1, 60))
                log.exception("watch failed: internal error", watch=str(self.store.source), again_in=wait)
                self.store.set_problem(f"watch {self.store.source}: {type(error).__name__}: {error}")
                # Start over: an event may have been applied by half.
                last_response_at = self.reflector.last_response_at
                self._lists_before += self.reflector.lists_done
                self.reflector = Reflector(
                    self.store.source, self.store, chance=self._chance, highest=self.store.version
                )
                self.reflector.last_response_at = last_response_at
                await asyncio.sleep(wait)

    async def _run(self) -> None:
        while True:
            step = self.reflector.next(self._clock())
            try:
                if isinstance(step, Fetch):
                    body, _ = await self._client.fetch(step.request)
                    self.reflector.page(body, self._clock())
                    self._note_response()
                elif isinstance(step, Follow):
                    await self._follow(step)
                else:
                    await self._rest(step)
            except ApiError as error:
                before, state = self.store.problem, self.store.state
                self.reflector.failed(error, self._clock())
                self.cut_off = error.problem in _AWAY
                if (before, state) != (
                    self.store.problem,
                    self.store.state,
                ):  # the same problem every 30 s is not logged again
                    self._log_failure(error)

    def _log_failure(self, error: ApiError) -> None:
        watch, text = str(self.store.source), str(error)
        if error.status == 200:  # the stream can be opened each time and fail in the same way
            if text == self._invalid_response:
                return
            self._invalid_response = text
        if error.problem is Problem.FORBIDDEN:
            source = self.store.source
            where = place(source.namespace, namespaced=source.resource.namespaced)
            grants = grant(source.resource.title, where, self._needed())
            log.warning("not permitted to watch; will retry", watch=watch, error=text, grant=grants)
        elif error.problem is Problem.THROTTLED:  # also the storage of a new kind is not ready
            log.info("watch throttled", watch=watch, error=text, again_in=error.retry_after)
        elif error.problem is Problem.GONE:
            log.info("watch restarted", watch=watch, error=text)
        elif error.problem is Problem.NOT_FOUND:  # the engine logs it, with the rules that need the kind
            log.debug("kind is not served", watch=watch, error=text)
            return
        else:
            log.warning("watch interrupted", watch=watch, state=self.store.state.value, error=text)
        self._interrupted = True

    async def _follow(self, step: Follow) -> None:
        async with self._client.stream(step.request) as stream:
            self.reflector.opened(self._clock())
            self._note_response()
            if self._interrupted:
                log.info("watch resumed", watch=str(self.store.source))
                self._interrupted = False
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None) as self._stream:
                        await self._read(stream)
            finally:
                self._stream = None

    async def _read(self, stream: Stream) -> None:
        while self.reflector.reading:
            lines = await stream.lines(self.reflector.deadline)
            if lines is None:
                self.reflector.closed(self._clock())
            elif lines:
                self.reflector.lines(lines, self._clock())
            else:
                self.reflector.silent(self._clock())

    def _note_response(self) -> None:
        if self.cut_off:
            self.cut_off = False
            self._regained()

    async def _rest(self, step: Rest) -> None:
        self._woken.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(step.until - self._clock()):
                await self._woken.wait()
