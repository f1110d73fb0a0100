"""What Kubernetes and people ask the operator: is it alive, is it ready, and what has it measured.

`/healthz` says that the event loop turns. `/readyz` says that every store is synced and fresh; `?verbose` says which of them is, what more
there is to know, and whether the rules on disk are the ones that run. A store whose kind is not served or not permitted is named there, and
keeps nobody from being ready: it stops the children that need it and nothing else.

They are asked in a thread with an event loop of its own. So what is asked is answered in time while the operator's loop is busy, and who
asks `/healthz` learns of a loop that hangs by the answer, and not by having none: whether that is a reason to begin anew is not a question
of how patient a probe is. All else is asked on the operator's loop, because only there its state stands still.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST

from ruleop.engine.telemetry.http_server import HttpResponse, Server
from ruleop.errors import RuleopError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from ruleop.engine.telemetry.http_server import Answering, HttpRequest
    from ruleop.engine.telemetry.loop_watchdog import LoopWatchdog
    from ruleop.engine.telemetry.metrics import Metrics

T = TypeVar("T")

PATIENCE = 10.0  # seconds that the operator's loop is given to answer


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that has to hold."""

    name: str
    ok: bool
    message: str = ""
    counts: bool = True  # False: told, but no reason not to be ready


class Probes:
    def __init__(self, checks: Callable[[], Iterable[Check]], metrics: Metrics, loop_watchdog: LoopWatchdog) -> None:
        self.checks = checks
        self.metrics = metrics
        self.loop_watchdog = loop_watchdog
        self._servers: list[Server] = []
        self._operator: asyncio.AbstractEventLoop | None = None
        self._own: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def serve(self, *, health: str, metrics: str) -> None:
        """Listens on the two addresses, `host:port` or `:port`; `0` is off. Both may be the same."""
        index: dict[str, dict[str, Answering]] = {}
        if _wanted(health):
            index[health] = {"/healthz": self._alive, "/livez": self._alive, "/readyz": self._ready}
        if _wanted(metrics):
            index.setdefault(metrics, {})["/metrics"] = self._metrics
        if not index:
            return
        self._operator, self._own = asyncio.get_running_loop(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._own.run_forever, name="health", daemon=True)
        self._thread.start()
        for address, answers in index.items():
            await self._there(self._listen(address, answers))

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where it listens: host and port of each address, in the order in which they were given."""
        return [server.address for server in self._servers]

    async def _listen(self, address: str, answers: Mapping[str, Answering]) -> None:
        host, _, port = address.rpartition(":")
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise RuleopError(f"cannot listen on {address!r}: an address is host:port, :port, or 0 for none")
        try:
            self._servers.append(await Server.open(host.strip("[]") or None, int(port), answers))
        except (OSError, UnicodeError) as error:
            raise RuleopError(f"cannot listen on {address}: {_why(error, host)}; choose another address, or 0 for none") from error

    async def stop(self) -> None:
        if self._own is None or self._thread is None:
            return
        while self._servers:
            await self._there(self._servers.pop().close())
        self._own.call_soon_threadsafe(self._own.stop)
        await asyncio.to_thread(self._thread.join)
        self._own.close()
        self._own = None

    async def _there(self, what: Coroutine[Any, Any, T]) -> T:
        """In the thread."""
        assert self._own is not None, "it serves"
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(what, self._own))

    async def _asked(self, question: Callable[[], T]) -> T:
        """On the operator's loop. Raises TimeoutError where that does not come to it."""

        async def answer() -> T:
            return question()

        assert self._operator is not None, "it serves"
        async with asyncio.timeout(PATIENCE):
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answer(), self._operator))

    def _silent(self) -> HttpResponse:
        return HttpResponse(f"the event loop has not turned for {self.loop_watchdog.silence():.0f} s\n", 503)

    async def _alive(self, _question: HttpRequest) -> HttpResponse:
        return self._silent() if self.loop_watchdog.hangs else HttpResponse("ok")

    async def _ready(self, question: HttpRequest) -> HttpResponse:
        try:
            checks = await self._asked(lambda: list(self.checks()))
        except TimeoutError:
            return self._silent()
        ready = all(check.ok for check in checks if check.counts)
        lines = [_line(check) for check in checks]
        text = "\n".join([*lines, "ready" if ready else "not ready"]) if "verbose" in question.query or not ready else "ok"
        return HttpResponse(text + "\n", 200 if ready else 503)

    async def _metrics(self, _question: HttpRequest) -> HttpResponse:
        try:
            return HttpResponse(await self._asked(self.metrics.text), content_type=CONTENT_TYPE_LATEST)
        except TimeoutError:
            return self._silent()


def _line(check: Check) -> str:
    """A check is one line; what more it has to say stands below it, indented, so that it cannot be taken for another check."""
    first, *more = check.message.splitlines() or [""]
    return "\n".join([f"[{'+' if check.ok else '-'}] {check.name}{': ' + first if first else ''}", *("    " + line for line in more)])


def _why(error: OSError | UnicodeError, host: str) -> str:
    if isinstance(error, UnicodeError):  # of the encoding that names of hosts have
        return f"{host} is not the name of a host"
    if isinstance(error, socket.gaierror):  # its numbers are the resolver's own
        return error.strerror or str(error)
    return os.strerror(error.errno) if error.errno else str(error)  # asyncio's own words name the address once more


def _wanted(address: str) -> bool:
    return address not in {"", "0", ":0"}
