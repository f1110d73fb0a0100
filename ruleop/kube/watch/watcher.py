"""Drives a reflector against the API server into a store. All decisions are the reflector's; this only does what it says.

A watcher never dies in silence: what it did not expect is logged, counted, and tried again. Another selector, or another kind, is
another watcher.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import TYPE_CHECKING

import structlog

from ruleop.kube.client.errors import ApiError, Problem
from ruleop.kube.watch.reflector import Fetch, Follow, Reflector
from ruleop.kube.watch.store import Store
from ruleop.permissions import READ, grant, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.kube.client.client import Client
    from ruleop.kube.client.requests import Source
    from ruleop.kube.watch.reflector import Rest

log = structlog.get_logger(__name__)

# A bug is not healed by haste.
CRASH_WAIT, LONGEST_CRASH_WAIT = 1.0, 60.0
_AWAY = frozenset({Problem.UNREACHABLE, Problem.TIMEOUT, Problem.SERVER})


class Watcher:
    """Made, then `start`ed, then `stop`ped. Its store outlives it."""

    def __init__(
        self,
        client: Client,
        source: Source,
        *,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        regained: Callable[[], None] = lambda: None,
        needed: Callable[[], Iterable[str]] = lambda: READ,
    ) -> None:
        """`regained` is called when the server answers again after it had not; `needed` gives the verbs that the rules need on the kind."""
        self.store = Store(source)
        self.reflector = Reflector(source, self.store, chance=chance)
        self.crashes = 0
        self._lists_before = 0  # the last crash
        self._client = client
        self._chance = chance
        self._clock = clock
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._told = False  # that it does not go on
        self._misread = ""  # what was told of an answer that is none
        self._regained = regained
        self._needed = needed
        self.cut_off = False  # the server does not answer, or answers that it is in trouble

    def start(self) -> None:
        assert self._task is None, "a watcher is started once"
        self._task = asyncio.get_running_loop().create_task(self._supervised(), name=f"watch {self.store.source}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def wake(self) -> None:
        """Try again now instead of later: the kind may be served, or the right granted."""
        self.reflector.wake(self._clock())
        self._woken.set()

    def age(self) -> float | None:
        """Seconds since the server was last heard on this watch; None before the first time."""
        heard = self.reflector.heard_at
        return None if heard is None else self._clock() - heard

    @property
    def overdue(self) -> bool:
        """Whether the server should have been heard again by now: what the store holds may be the past."""
        return self.reflector.overdue(self._clock())

    @property
    def relists(self) -> int:
        """How often all was read again; in peace, never."""
        return max(0, self._lists_before + self.reflector.lists_done - 1)

    async def _supervised(self) -> None:
        while True:
            try:
                await self._run()
            except Exception as error:
                self.crashes += 1
                wait = min(LONGEST_CRASH_WAIT, CRASH_WAIT * 2.0 ** min(self.crashes - 1, 60))
                log.exception("a watch failed in a way that ruleop did not expect", watch=str(self.store.source), again_in=wait)
                self.store.set_problem(f"watch {self.store.source}: {type(error).__name__}: {error}")
                # Where it was is of no use: what half of an event did is not known.
                heard_at, self._lists_before = self.reflector.heard_at, self._lists_before + self.reflector.lists_done
                self.reflector = Reflector(self.store.source, self.store, chance=self._chance, highest=self.store.version)
                self.reflector.heard_at = heard_at
                await asyncio.sleep(wait)

    async def _run(self) -> None:
        while True:
            step = self.reflector.next(self._clock())
            try:
                if isinstance(step, Fetch):
                    body, _ = await self._client.fetch(step.request)
                    self.reflector.page(body, self._clock())
                    self._answered()
                elif isinstance(step, Follow):
                    await self._follow(step)
                else:
                    await self._rest(step)
            except ApiError as error:
                before, state = self.store.problem, self.store.state
                self.reflector.failed(error, self._clock())
                self.cut_off = error.problem in _AWAY
                if (before, state) != (self.store.problem, self.store.state):  # the same thing every 30 s is no news
                    self._tell(error)

    def _tell(self, error: ApiError) -> None:
        watch, said = str(self.store.source), str(error)
        if error.status == 200:  # that it was opened says nothing: it may be so each time
            if said == self._misread:
                return
            self._misread = said
        if error.problem is Problem.FORBIDDEN:
            source = self.store.source
            where = place(source.namespace, namespaced=source.resource.namespaced)
            grants = grant(source.resource.title, where, self._needed())
            log.warning("not permitted to watch; will retry", watch=watch, error=said, grant=grants)
        elif error.problem is Problem.THROTTLED:  # a kind that was defined a moment ago, too: its storage is not there yet
            log.info("watch waits, as the server asks", watch=watch, error=said, again_in=error.retry_after)
        elif error.problem is Problem.GONE:
            log.info("watch begins anew", watch=watch, error=said)
        elif error.problem is Problem.NOT_FOUND:  # who needs the kind is the one to say what follows from it
            log.debug("kind is not served", watch=watch, error=said)
            return
        else:
            log.warning("watch interrupted", watch=watch, state=self.store.state.value, error=said)
        self._told = True

    async def _follow(self, step: Follow) -> None:
        async with self._client.stream(step.request) as stream:
            self.reflector.opened(self._clock())
            self._answered()
            if self._told:
                log.info("watch goes on", watch=str(self.store.source))
                self._told = False
            while self.reflector.reading:
                lines = await stream.lines(self.reflector.deadline)
                if lines is None:
                    self.reflector.closed(self._clock())
                elif lines:
                    self.reflector.lines(lines, self._clock())
                else:
                    self.reflector.silent(self._clock())

    def _answered(self) -> None:
        if self.cut_off:
            self.cut_off = False
            self._regained()

    async def _rest(self, step: Rest) -> None:
        self._woken.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(step.until - self._clock()):
                await self._woken.wait()
