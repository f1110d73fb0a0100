"""Leader election in a thread of its own, with its own event loop and its own connection.

A render, or a list of ten thousand objects, may keep the operator's event loop busy; it must not delay the renewal of
the lease. And when the lease is lost, the process has to end although its loop is busy: `lost` is called in that thread
and does not return.

Nothing that the thread waits for may delay that, be it a request, new credentials, a DNS query, or a connection that is
being closed: a timer calls it at the moment the lease expires.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind, ObjectKey, parse_version
from ruleop.kubernetes.names import SINCE
from ruleop.kubernetes.permissions import STORED, grant, place
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import Client, Session, reading, stored_object
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.leader.lease import LeaseCandidate, LeaseRead, LeaseWrite, Pause, Role, Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.operator.wire.http.access import Credentials
    from ruleop.operator.wire.http.connection import PreparedRequest

log = structlog.get_logger(__name__)

LEASES = ResourceInfo(
    "leases", namespaced=True, status_subresource=False, kind=Kind("coordination.k8s.io", "v1", "Lease")
)


def end_process() -> None:
    """Exits without cleaning up: code that still runs would write as if it led."""
    os._exit(1)


class Election:
    """Call `start`, wait for `leading`, and at a clean stop call `release` when all work is done. `lost` is called at
    most once, in the thread. The credentials must not be shared with another loop.
    """

    def __init__(
        self,
        credentials: Credentials,
        key: ObjectKey,
        identity: str,
        *,
        timing: Timing | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        lost: Callable[[], None] = end_process,
    ) -> None:
        """The lease has these labels and annotations while this process holds it, and one that tells since when."""
        self._timing = timing or Timing()
        self._credentials = credentials
        self._key = key
        self._labels = dict(labels or {})
        self._candidate = LeaseCandidate(identity, timing=self._timing)
        self._annotations = dict(annotations or {})
        self._candidate.annotate(self._annotations, 0.0)
        self.since = 0  # the resourceVersion of the write by which this process acquired the lease
        self._annotating: list[tuple[Mapping[str, str], Callable[[], object]]] = []  # and who waits for the write
        self._lost = lost
        self._thread = threading.Thread(target=self._run, name="leader election", daemon=True)
        self._started_leading = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken: asyncio.Event | None = None
        self._releasing = False
        self._ended = False
        self._timer: asyncio.TimerHandle | None = None  # ends the process when the lease expires
        self._last_failure: tuple[Problem, str] | None = None  # with the last request

    def start(self) -> None:
        self._thread.start()

    def leads(self) -> bool:
        """Whether this process leads at this moment; safe from any thread."""
        return self._candidate.leads(time.monotonic())

    @property
    def holder(self) -> str:
        return self._candidate.holder

    async def leading(self) -> None:
        """Returns when this process leads."""
        loop, started = asyncio.get_running_loop(), asyncio.Event()

        def announce() -> None:
            loop.call_soon_threadsafe(started.set)

        self._listeners.append(announce)
        if self._started_leading.is_set():
            return
        await started.wait()

    async def annotate(self, annotations: Mapping[str, str]) -> None:
        """Adds annotations to the lease, which this process holds. Returns when they are written."""
        loop, written = asyncio.get_running_loop(), asyncio.Event()

        def begin() -> None:
            assert self._woken is not None, "it leads"
            desired = self._annotations = {**self._annotations, **annotations}
            self._annotating.append((desired, partial(loop.call_soon_threadsafe, written.set)))
            self._candidate.annotate(desired, time.monotonic())
            self._woken.set()

        assert self._loop is not None, "it leads"
        self._loop.call_soon_threadsafe(begin)
        await written.wait()

    async def release(self, *, hand_over: bool = True) -> None:
        """Releases the lease, if it is held, and ends the thread. Call it after the last write; if writes may still be
        under way, without `hand_over`."""
        self._releasing = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._begin_release, hand_over)
        while True:
            await asyncio.to_thread(self._thread.join, self._timing.retry_period)
            # Without a lease there is nothing to wait for.
            if not self._thread.is_alive() or self._candidate.role is not Role.LEADING:
                return

    def _begin_release(self, hand_over: bool) -> None:
        if hand_over:
            self._candidate.release()
        else:
            self._candidate.end()
        assert self._woken is not None, "the loop runs"
        self._woken.set()

    def _run(self) -> None:
        try:
            asyncio.run(self._campaign())
        except BaseException as error:  # whatever it is, the lease is not renewed any longer
            log.exception("leader election failed", error=str(error))
        self._lose()

    def _lose(self) -> None:
        """The lease is lost, unless it was released."""
        if self._releasing or self._ended:
            return
        self._ended = True
        log.error("lease lost; exiting", lease=str(self._key), holder=self._candidate.holder)
        self._lost()

    async def _campaign(self) -> None:
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        session = await self._open()
        if session is None:
            return
        try:
            await self._run_candidate(Client(session, concurrency=1))
        except Exception as error:
            log.exception("leader election failed", error=str(error))
        self._lose()
        await session.close()

    async def _run_candidate(self, client: Client) -> None:
        while (step := self._candidate.next(time.monotonic())) is not None:
            if isinstance(step, Pause):
                await self._pause(step)
            else:
                await self._do(client, step)
            if self._candidate.role is Role.LEADING and not self._releasing:
                self._become_leader()
                self._report_annotations()

    def _become_leader(self) -> None:
        assert self._loop is not None, "set before the first step"
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._candidate.leads_until - time.monotonic(), self._lose)
        if not self._started_leading.is_set():
            log.info("became leader", lease=str(self._key), identity=self._candidate.identity)
            # The next write, the first renewal, has it. Until then the version of the lease is the same.
            self.since = parse_version(self._candidate.version)
            self._annotations = {**self._annotations, SINCE: str(self.since)}
            self._candidate.annotate(self._annotations, time.monotonic())
            self._started_leading.set()
            for listener in tuple(self._listeners):
                listener()

    def _report_annotations(self) -> None:
        done = [each for each in self._annotating if each[0] is self._candidate.annotations]
        self._annotating = [each for each in self._annotating if each not in done]
        for _, report in done:
            report()

    async def _open(self) -> Session | None:
        while not self._releasing:
            try:
                return await Session.open(self._credentials)
            except RuleopError as error:
                log.warning("no credentials for leader election; will retry", error=str(error))
                await asyncio.sleep(self._timing.retry_period)
        return None

    async def _pause(self, step: Pause) -> None:
        assert self._woken is not None, "set before the first step"
        self._woken.clear()
        try:
            async with asyncio.timeout(step.until - time.monotonic()):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _do(self, client: Client, step: LeaseRead | LeaseWrite) -> None:
        started = time.monotonic()
        try:
            if isinstance(step, LeaseRead):
                self._candidate.read(await self._read(client), time.monotonic())
            else:
                self._candidate.written(await self._send(client, self._request(step)), started, time.monotonic())
            self._last_failure = None
        except ApiError as error:
            self._log_failure(error)
            self._candidate.failed(time.monotonic())
        except Exception:  # the lease may be renewed by the next request; the timer holds if it is not
            log.exception("lease request failed: internal error; will retry", lease=str(self._key))
            self._candidate.failed(time.monotonic())

    def _log_failure(self, error: ApiError) -> None:
        """Logs the first failure of a kind as a warning."""
        if error.problem in {Problem.CONFLICT, Problem.EXISTS}:
            return  # another candidate was faster
        news = self._last_failure != (error.problem, error.verb)
        self._last_failure = (error.problem, error.verb)
        needed = grant(LEASES.title, place(self._key.namespace), STORED)
        grants = {"grant": needed} if error.problem is Problem.FORBIDDEN else {}
        (log.warning if news else log.debug)(
            "cannot acquire or renew the lease; will retry", lease=str(self._key), error=str(error), **grants
        )

    async def _read(self, client: Client) -> Any:
        try:
            return await self._send(client, requests.get(LEASES, self._key))
        except ApiError as error:
            if error.problem is Problem.NOT_FOUND:
                return None
            raise

    async def _send(self, client: Client, request: PreparedRequest) -> dict[str, Any]:
        limited = self._limited(request)
        response = stored_object(await client.send(limited), limited)
        with reading(limited):
            version = str(response["metadata"]["resourceVersion"])
            return {"metadata": {"resourceVersion": version}, "spec": dict(response.get("spec") or {})}

    def _request(self, step: LeaseWrite) -> PreparedRequest:
        metadata: dict[str, Any] = {"name": self._key.name, "namespace": self._key.namespace, "labels": self._labels}
        metadata["annotations"] = dict(step.annotations)
        lease = {"apiVersion": LEASES.kind.api_version, "kind": "Lease", "metadata": metadata, "spec": step.spec}
        if not step.version:
            return requests.create(LEASES, lease)
        return requests.replace(LEASES, self._key, {**lease, "metadata": {**metadata, "resourceVersion": step.version}})

    def _limited(self, request: PreparedRequest) -> PreparedRequest:
        """Limits a request so that one that hangs leaves time for another before the deadline."""
        left = (
            self._candidate.leads_until - time.monotonic()
            if self._candidate.role is Role.LEADING
            else self._timing.renew_deadline
        )
        return replace(request, timeout=max(0.1, min(left, self._timing.renew_deadline / 2)))
