"""The way to one API server: a pool of connections, which carry the credentials of the moment.

Credentials are loaded again before they end and once when they are refused, once for all requests. Those that end soon are good until
then: a plugin or a provider of logins that takes its time holds up nothing but requests that were refused, and these only as long as
they would have waited for an answer. Certificates belong to connections: when they change, new requests get new connections, and the
old ones end with the last request on them.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ruleop.kube.client.errors import READS, ApiError, Problem
from ruleop.kube.http.access import CredentialsError
from ruleop.kube.http.connection import BrokenError
from ruleop.kube.http.pool import NotConnectedError, Pool

if TYPE_CHECKING:
    from ruleop.kube.http.access import Access, Credentials
    from ruleop.kube.http.connection import Connection
    from ruleop.kube.http.request import Request

log = structlog.get_logger(__name__)

RELOAD_AGAIN = 10.0
# Mostly new credentials are there at once, and then also those have them who asked meanwhile.
PATIENCE = 1.0
# What `connection_error` makes a sentence of.
FAILURES = (NotConnectedError, BrokenError, TimeoutError)


class _Loading(NamedTuple):
    task: asyncio.Task[None]
    forced: bool
    begun: float


class Session:
    """Opened by `Session.open`, closed by `close`. Belongs to the event loop that it was opened in."""

    def __init__(self, credentials: Credentials, access: Access) -> None:
        self._credentials = credentials
        self._current = Pool(access)
        self._due = _due(access)  # when it is to be loaded again
        self._loading: _Loading | None = None
        self._retired: list[Pool] = []

    @classmethod
    async def open(cls, credentials: Credentials) -> Session:
        """Raises CredentialsError; does not talk to the API server yet."""
        return cls(credentials, await credentials.load())

    @property
    def server(self) -> str:
        return self._current.access.server

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.task.cancel()
            await asyncio.wait({self._loading.task})
        for pool in (self._current, *self._retired):
            await pool.close()
        self._retired.clear()

    async def exchange(self, request: Request, seconds: float, *, whole: bool = True) -> Connection:
        """Sends the request and gives the connection with the answer, or with its head, whatever its status; the time is for that.

        Who gets the connection releases it. 401 is tried again once, if there are other credentials now. Raises ApiError.
        """
        access, connection = await self._once(request, seconds, whole=whole)
        if connection.answered.status == 401:
            try:
                renewed = await self._renewed(access, request, seconds)
            except BaseException:
                connection.abort()
                raise
            if renewed:
                connection.release()
                _, connection = await self._once(request, seconds, whole=whole)
        return connection

    async def _once(self, request: Request, seconds: float, *, whole: bool) -> tuple[Access, Connection]:
        pool = await self._fresh()
        access = pool.access
        try:
            return access, await pool.exchange(request, time.monotonic() + seconds, whole=whole)
        except FAILURES as error:
            raise connection_error(error, request) from error

    async def _fresh(self) -> Pool:
        now = time.monotonic()
        if self._loading is None and self._due is not None and now >= self._due:
            self._load(forced=False)
        if self._loading is not None and (patience := self._loading.begun + PATIENCE - now) > 0:
            await asyncio.wait({self._loading.task}, timeout=patience)
        return self._current

    async def _renewed(self, refused: Access, request: Request, seconds: float) -> bool:
        """Whether there are other credentials than those that were just refused."""
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
                Problem.UNAUTHORIZED, verb=request.verb, resource=request.resource, text=f"401, and no new credentials: {why}", status=401
            ) from error
        now = self._current.access
        return (now.authorization, now.tls_digest) != (refused.authorization, refused.tls_digest)

    def _load(self, *, forced: bool) -> _Loading:
        """Begins to look for credentials; whoever wants to know what came of it waits for the task."""
        loading = _Loading(asyncio.get_running_loop().create_task(self._reload(forced=forced)), forced, time.monotonic())
        self._loading = loading
        return loading

    async def _reload(self, *, forced: bool) -> None:
        """Raises CredentialsError where the old ones were refused and there are no others."""
        try:
            access = await self._credentials.load(forced=forced)
        except CredentialsError as error:
            if forced:
                raise
            # The old ones may still be good; the server says so if they are not.
            log.warning("no new credentials; those that end soon are used on", error=str(error), again_in=RELOAD_AGAIN)
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


def connection_error(error: BaseException, request: Request) -> ApiError:
    """Three cases: there was no connection, so nothing was sent; there was one and no good answer came; and that for a mere read."""
    if isinstance(error, NotConnectedError):
        problem = Problem.UNTRUSTED if error.untrusted else Problem.UNREACHABLE
        return ApiError(problem, verb=request.verb, resource=request.resource, text=str(error))
    what = "no answer in time" if isinstance(error, TimeoutError) else f"the connection broke ({error})"
    text = what if request.verb in READS else f"{what}; it may have been done or not"
    return ApiError(Problem.TIMEOUT, verb=request.verb, resource=request.resource, text=text)
