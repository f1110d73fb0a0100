"""The connections to one API server, with the current credentials.

Credentials are loaded again before they expire, and once when they are rejected, for all requests together. Until they
expire they are used: a slow plugin or OIDC provider delays only requests that were rejected, and these no longer than
their timeout. Certificates belong to connections: when they change, new requests get new connections, and the old ones
are closed after their last request.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ruleop.operator.wire.client.server_errors import READS, ApiError, Problem
from ruleop.operator.wire.http.access import CredentialsError
from ruleop.operator.wire.http.connection import BrokenError, TooLargeError
from ruleop.operator.wire.http.pool import NotConnectedError, Pool

if TYPE_CHECKING:
    from ruleop.operator.wire.http.access import Access, Credentials
    from ruleop.operator.wire.http.connection import Connection, PreparedRequest

log = structlog.get_logger(__name__)

RELOAD_AGAIN = 10.0
# New credentials usually arrive at once; requests wait this long for them.
PATIENCE = 1.0
# What to do about a response that is too large.
SENDS_LESS = "a Kubernetes API server sends less, so check which server or proxy answers"
# What `connection_error` converts.
FAILURES = (NotConnectedError, BrokenError, TimeoutError)


class _Loading(NamedTuple):
    task: asyncio.Task[None]
    forced: bool
    started: float


class Session:
    """Opened by `Session.open`, closed by `close`. Belongs to the event loop that it was opened in."""

    def __init__(self, credentials: Credentials, access: Access) -> None:
        self._credentials = credentials
        self._current = Pool(access)
        self._due = _due(access)  # when the credentials are loaded again
        self._loading: _Loading | None = None
        self._retired: list[Pool] = []

    @classmethod
    async def open(cls, credentials: Credentials) -> Session:
        """Raises CredentialsError. Sends no request."""
        return cls(credentials, await credentials.load())

    @property
    def server(self) -> str:
        """For messages: without credentials."""
        return self._current.access.address

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.task.cancel()
            await asyncio.wait({self._loading.task})
        for pool in (self._current, *self._retired):
            await pool.close()
        self._retired.clear()

    async def exchange(self, request: PreparedRequest, seconds: float, *, whole: bool = True) -> Connection:
        """Sends the request and returns the connection with the response, or (not `whole`) its head, whatever the
        status.

        The caller releases the connection. A 401 is retried once, if there are other credentials. Raises ApiError.
        """
        access, connection = await self._send(request, seconds, whole=whole)
        if connection.response.status == 401:
            try:
                renewed = await self._renewed(access, request, seconds)
            except BaseException:
                connection.abort()
                raise
            if renewed:
                connection.release()
                _, connection = await self._send(request, seconds, whole=whole)
        return connection

    async def _send(self, request: PreparedRequest, seconds: float, *, whole: bool) -> tuple[Access, Connection]:
        if self._loading is not None or (self._due is not None and time.monotonic() >= self._due):
            await self._refresh()
        pool, access = self._current, self._current.access
        try:
            return access, await pool.exchange(request, time.monotonic() + seconds, whole=whole)
        except FAILURES as error:
            raise connection_error(error, request) from error

    async def _refresh(self) -> None:
        """Loads credentials, if that has not begun, and waits a moment for them."""
        loading = self._loading or self._load(forced=False)
        if (patience := loading.started + PATIENCE - time.monotonic()) > 0:
            await asyncio.wait({loading.task}, timeout=patience)

    async def _renewed(self, refused: Access, request: PreparedRequest, seconds: float) -> bool:
        """Whether there are other credentials than those that were just rejected."""
        try:
            async with asyncio.timeout(seconds):
                while self._current.access is refused:
                    loading = self._loading or self._load(forced=True)
                    await asyncio.shield(loading.task)
                    if loading.forced:
                        break
        except (CredentialsError, TimeoutError) as error:
            why = str(error) or f"none came within {seconds:g} s"
            raise ApiError(
                Problem.UNAUTHORIZED,
                verb=request.verb,
                resource=request.resource,
                text=f"401, and no new credentials: {why}",
                status=401,
            ) from error
        now = self._current.access
        return (now.authorization, now.tls_digest) != (refused.authorization, refused.tls_digest)

    def _load(self, *, forced: bool) -> _Loading:
        """Starts to load credentials. The task has the outcome."""
        loading = _Loading(
            asyncio.get_running_loop().create_task(self._reload(forced=forced)), forced, time.monotonic()
        )
        self._loading = loading
        return loading

    async def _reload(self, *, forced: bool) -> None:
        """Raises CredentialsError if the old ones were rejected and there are no others."""
        try:
            access = await self._credentials.load(forced=forced)
        except CredentialsError as error:
            if forced:
                raise
            # The old ones may still be valid; else the server rejects them.
            log.warning(
                "could not refresh credentials; using the current ones until they expire",
                error=str(error),
                again_in=RELOAD_AGAIN,
            )
            self._due = time.monotonic() + RELOAD_AGAIN
            return
        finally:
            self._loading = None
        current, used = self._current, self._current.access
        self._due = _due(access)
        if (access.server, access.tls_digest, access.proxy) == (used.server, used.tls_digest, used.proxy):
            current.use(access)
            return
        self._current = Pool(access)
        current.retire()
        self._retired = [pool for pool in (*self._retired, current) if pool.in_use]


def _due(access: Access) -> float | None:
    return None if access.fresh_for is None else time.monotonic() + access.fresh_for


def connection_error(error: BaseException, request: PreparedRequest) -> ApiError:
    """Four cases: no connection, so nothing was sent; a response to a read that is too large; no valid response to a
    read; no valid response to a write, whose outcome is unknown."""
    if isinstance(error, NotConnectedError):
        problem = Problem.UNTRUSTED if error.untrusted else Problem.UNREACHABLE
        return ApiError(problem, verb=request.verb, resource=request.resource, text=str(error))
    if isinstance(error, TooLargeError) and request.verb in READS:
        text = f"{error}; {SENDS_LESS}"
        return ApiError(Problem.TOO_LARGE, verb=request.verb, resource=request.resource, text=text)
    what = "no answer in time" if isinstance(error, TimeoutError) else f"the connection broke ({error})"
    text = what if request.verb in READS else f"{what}; it may have been done or not"
    return ApiError(Problem.TIMEOUT, verb=request.verb, resource=request.resource, text=text)
