"""Serves the probes for Kubernetes and the metrics for Prometheus.

`/healthz` reports whether the event loop runs, `/readyz` whether every cache is synced and fresh; `?verbose` lists
each check, and whether the rules on disk are those in force. A kind that is not served or not permitted is listed there
and does not make the operator unready: only the children that need it wait.

Requests are served by threads, so `/healthz` is answered while the event loop is busy, and reports a blocked loop by
its response: a restart does not depend on how patient a probe is. TLS and authorization are for the metrics alone: the
kubelet has no token, and does not verify certificates. The operator's state is read on the event loop, where
it does not change while it is read; metrics are counted, formatted and compressed in the thread."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs

import structlog

from ruleop.errors import RuleopError
from ruleop.operator.telemetry.http_server import Exposition, HttpServer, is_on, not_listening, split_address
from ruleop.values import dataclass

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from ruleop.operator.telemetry.http_server import ServerCertificate
    from ruleop.operator.telemetry.metrics import Metrics
    from ruleop.operator.wire.client.client import Client

    Review = Callable[[str], HTTPStatus]
    """The status for a request with this header `Authorization`: 200, 401, 403, or a server error."""


# -- loop watchdog -----------------------------------------------------------------------------------------------------
#
# Whether the event loop runs, seen from other threads: a blocked loop cannot report anything itself.


T = TypeVar("T")

BEAT_INTERVAL = 1.0
CALL_TIMEOUT = 10.0  # seconds for the event loop to take a call from another thread
BLOCKED_AFTER = 60.0
"""Seconds without a beat. One iteration of the loop can be long: a render may take a second of CPU time, which is many
seconds if the process gets little of it. An iteration of a minute will probably never end, and a restart is better."""


class LoopWatchdog:
    """Calls `report_lag` once a second with the seconds by which the loop was late."""

    def __init__(self, report_lag: Callable[[float], object], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._report_lag = report_lag
        self._clock = clock
        self._last_beat = clock()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(BEAT_INTERVAL)
            self._report_lag(max(0.0, self.since_beat() - BEAT_INTERVAL))
            self._last_beat = self._clock()

    def since_beat(self) -> float:
        """Seconds since the last beat; safe from any thread."""
        return self._clock() - self._last_beat

    @property
    def is_blocked(self) -> bool:
        return self.since_beat() > BLOCKED_AFTER


def call_on_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], T]) -> T:
    """Calls a function on the event loop, from another thread. Raises TimeoutError if the loop does not get to it."""

    async def call() -> T:
        return function()

    return run_on_loop(loop, call())


def run_on_loop(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """The same for a coroutine, which is cancelled if it takes longer."""
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result(CALL_TIMEOUT)
    except TimeoutError:
        future.cancel()
        raise


def reviewed_by(client: Client, path: str) -> Review:
    """Asks the cluster whether it lets a client read the path. Called on the event loop; the result is for threads."""
    from ruleop.operator.telemetry.authorization import Authorizer, review  # noqa: PLC0415 - seldom used

    loop = asyncio.get_running_loop()
    return Authorizer(lambda token: run_on_loop(loop, review(client, path, token))).status_of


# -- probes ------------------------------------------------------------------------------------------------------------


log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """One condition of readiness."""

    name: str
    ok: bool
    message: str = ""
    counts: bool = True  # False: listed, but the operator is ready without it


class Probes:
    def __init__(self, checks: Callable[[], Iterable[Check]], metrics: Metrics, loop_watchdog: LoopWatchdog) -> None:
        self.checks = checks
        self.loop_watchdog = loop_watchdog
        self._loop = asyncio.get_running_loop()
        self._metrics = Exposition(metrics.registry)
        self._servers: list[HttpServer] = []

    async def serve(
        self,
        *,
        health: str,
        metrics: str,
        certificate: ServerCertificate | None = None,
        review: Review | None = None,
    ) -> None:
        """Listens on the two addresses, `host:port` or `:port`; `0` is off. Both may be the same, unless metrics have a
        certificate or are reviewed."""
        routes: dict[str, dict[str, WSGIApplication]] = {}
        if is_on(health):
            routes[health] = {"/healthz": self._healthz, "/livez": self._healthz, "/readyz": self._readyz}
        if is_on(metrics):
            if metrics in routes and (certificate or review):
                raise RuleopError(
                    f"metrics with TLS or authorization need an address of their own; {metrics} is that of the probes"
                )
            routes.setdefault(metrics, {})["/metrics"] = _protected(self._metrics, review)
        for address, apps in routes.items():
            tls = certificate.context if certificate and address == metrics else None
            self._servers.append(await asyncio.to_thread(_listen, address, self._dispatcher(apps), tls))
            self._servers[-1].start()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each address that it listens on, in the order in which they were given."""
        return [(server.server_name, server.server_port) for server in self._servers]

    async def stop(self) -> None:
        while self._servers:
            await asyncio.to_thread(self._servers.pop().close)

    def _dispatcher(self, apps: Mapping[str, WSGIApplication]) -> WSGIApplication:
        def dispatch(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
            if path not in apps:
                return _text(start_response, HTTPStatus.NOT_FOUND, "not found\n")
            if method not in {"GET", "HEAD"}:
                return _text(start_response, HTTPStatus.METHOD_NOT_ALLOWED, "only GET is allowed\n", Allow="GET, HEAD")
            try:
                body = apps[path]({**environ, "REQUEST_METHOD": "GET"}, start_response)
            except TimeoutError:
                return self._loop_is_blocked(start_response)
            except Exception:
                log.exception("request failed with an internal error", path=path)
                return _text(start_response, HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log\n")
            return body if method == "GET" else []

        return dispatch

    def _loop_is_blocked(self, start_response: StartResponse) -> Iterable[bytes]:
        message = f"the event loop has been blocked for {self.loop_watchdog.since_beat():.0f} s\n"
        return _text(start_response, HTTPStatus.SERVICE_UNAVAILABLE, message)

    def _healthz(self, _environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if self.loop_watchdog.is_blocked:
            return self._loop_is_blocked(start_response)
        return _text(start_response, HTTPStatus.OK, "ok")

    def _readyz(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        checks = call_on_loop(self._loop, lambda: list(self.checks()))
        ready = all(check.ok for check in checks if check.counts)
        text = "ok"
        if not ready or "verbose" in parse_qs(environ["QUERY_STRING"], keep_blank_values=True):
            text = "\n".join([*map(_line, checks), "ready" if ready else "not ready"])
        return _text(start_response, HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE, text + "\n")


def _protected(app: WSGIApplication, review: Review | None) -> WSGIApplication:
    if review is None:
        return app

    def check(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        status = review(environ.get("HTTP_AUTHORIZATION", ""))
        if status is HTTPStatus.OK:
            return app(environ, start_response)
        headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
        return _text(start_response, status, f"{status.phrase.lower()}\n", **headers)

    return check


def _text(start_response: StartResponse, status: HTTPStatus, text: str, **headers: str) -> list[bytes]:
    body = text.encode()
    fields = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), **headers}
    start_response(f"{status.value} {status.phrase}", list(fields.items()))
    return [body]


def _line(check: Check) -> str:
    """A check is one line. More lines of its message are indented, so that none can be taken for another check."""
    first, *more = check.message.splitlines() or [""]
    return "\n".join(
        [f"[{'+' if check.ok else '-'}] {check.name}{': ' + first if first else ''}", *("    " + line for line in more)]
    )


def _listen(address: str, app: WSGIApplication, tls: Callable[[], ssl.SSLContext] | None) -> HttpServer:
    host, port = split_address(address)
    try:
        return HttpServer(host, port, app, tls)
    except (OSError, UnicodeError) as error:
        raise not_listening(address, host, error) from error
