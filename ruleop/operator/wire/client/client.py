"""Sends prepared requests.

It limits the requests under way, turns every failure into an `ApiError`, and retries nothing: whether to retry depends
on what else was written, which only the engine knows. (One exception, in the session: a request that is rejected with
401 is sent again with new credentials.)"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import structlog

from ruleop.operator.wire.client.json_depth import TooManyValuesError, parse_json
from ruleop.operator.wire.client.server_errors import READS, ApiError, Problem, response_error, too_many_values
from ruleop.operator.wire.http.access import CredentialsError
from ruleop.operator.wire.http.connection import BrokenError, TooLargeError
from ruleop.operator.wire.http.pool import NotConnectedError, Pool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from ruleop.operator.wire.http.access import Access, Credentials
    from ruleop.operator.wire.http.connection import Connection, PreparedRequest, ResponseParser


# -- session -----------------------------------------------------------------------------------------------------------
#
# The connections to one API server, with the current credentials.
#
# Credentials are loaded again before they expire, and once when they are rejected, for all requests together. Until
# they expire they are used: a slow plugin or OIDC provider delays only requests that were rejected, and these no longer
# than their timeout. Certificates belong to connections: when they change, new requests get new connections, and the
# old ones are closed after their last request.


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


# -- client ------------------------------------------------------------------------------------------------------------


# API priority and fairness gives a service account a fair share of some 245 seats. 16 requests at once use an API
# server well; more are not faster.
CONCURRENCY = 16
# The head of a watch arrives at once; that of a streaming list when the server's cache is up to date.
OPEN_TIMEOUT = 60.0
# Bytes of a line of a watch. It has one object, and etcd takes up to 1.5 MiB.
LONGEST_LINE = 16 << 20


_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class LineTooLongError(Exception):
    """A line is longer than `LONGEST_LINE`."""


class LineSplitter:
    """Splits chunks, which may end anywhere, into lines. A line of a megabyte is joined once, not for each chunk."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._size = 0  # bytes of the partial line

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that the chunk completes. Raises LineTooLongError."""
        lines = chunk.split(b"\n")
        self._size += len(lines[0])
        if self._size > LONGEST_LINE:
            raise LineTooLongError
        if len(lines) == 1:
            self._partial.append(chunk)
            return []
        if self._partial:
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
        rest = lines.pop()
        self._partial, self._size = [rest] if rest else [], len(rest)
        return [line for line in lines if line]


class Stream:
    """The response to a watch. It ends with None; an incomplete last line is dropped."""

    def __init__(self, connection: Connection, request: PreparedRequest) -> None:
        self._connection = connection
        self._request = request
        self._splitter = LineSplitter()

    async def lines(self, until: float) -> list[bytes] | None:
        """The lines that arrived; empty if the time (by the loop's clock, time.monotonic) is over, None at the end.

        The time also ends while bytes of a line arrive.
        """
        try:
            while chunk := await self._connection.read(until):
                if lines := self._splitter.feed(chunk):
                    return lines
                if time.monotonic() >= until:
                    return []
        except BrokenError as error:
            raise connection_error(error, self._request) from error
        except LineTooLongError:
            text = f"a line of the watch is longer than {LONGEST_LINE >> 20} MiB; {SENDS_LESS}"
            raise _of_another_form(self._request, text) from None
        return None if chunk is None else []


class Client:
    """One per API server. `observe` is called for each request: verb, status (0 without a response) and seconds.
    `warned` is called for each warning in a response, and `dated` with its header `Date` and the seconds since the
    request was sent."""

    def __init__(
        self,
        session: Session,
        *,
        concurrency: int = CONCURRENCY,
        qps: float | None = None,
        observe: Callable[[str, int, float], None] | None = None,
        warned: Callable[[str], None] | None = None,
        dated: Callable[[str, float], None] | None = None,
    ) -> None:
        self._session = session
        self._slots = asyncio.Semaphore(concurrency)
        self._pause = 1 / qps if qps else 0.0
        self._next_start = 0.0
        self._observe = observe
        self._warned = warned
        self._dated = dated

    @property
    def server(self) -> str:
        return self._session.server

    async def send(self, request: PreparedRequest) -> Any:
        """The response as JSON. Raises ApiError."""
        body, _ = await self.fetch(request)
        return parse_object(body, request)

    async def fetch(self, request: PreparedRequest) -> tuple[bytes, str]:
        """The response's bytes and its ETag; no bytes if the document has not changed since the request's ETag."""
        async with self._slots:
            if self._pause:
                await self._wait_for_turn()
            started, status = time.perf_counter(), 0
            try:
                connection = await self._session.exchange(request, request.timeout)
                response = connection.response
                status, body = response.status, response.take()
                self._report_date(response, started)
                connection.release()
            finally:
                if self._observe is not None:
                    self._observe(request.verb, status, time.perf_counter() - started)
        if self._warned is not None:
            for text in parse_warnings(response.header(b"warning") or ""):
                self._warned(text)
        if status < 300:
            return body, response.header(b"etag") or ""
        if status == 304:
            return b"", request.etag
        raise _refusal(request, response, body)

    @contextlib.asynccontextmanager
    async def stream(self, request: PreparedRequest) -> AsyncIterator[Stream]:
        """Opens a watch. It takes no slot, because it lasts for minutes. Leaving the context closes its connection."""
        started, status = time.perf_counter(), 0
        try:
            connection = await self._session.exchange(request, OPEN_TIMEOUT, whole=False)
            status = connection.response.status
            self._report_date(connection.response, started)
        finally:
            if self._observe is not None:
                self._observe(request.verb, status, time.perf_counter() - started)
        try:
            if status != 200:
                raise _refusal(request, connection.response, await self._read_body(connection, request))
            yield Stream(connection, request)
        finally:
            connection.release()

    def _report_date(self, response: ResponseParser, started: float) -> None:
        if self._dated is not None and (date := response.header(b"date")) is not None:
            self._dated(date, time.perf_counter() - started)

    async def _read_body(self, connection: Connection, request: PreparedRequest) -> bytes:
        try:
            return await connection.rest(time.monotonic() + OPEN_TIMEOUT)
        except FAILURES as error:
            raise connection_error(error, request) from error

    async def _wait_for_turn(self) -> None:
        now = time.monotonic()
        start = max(now, self._next_start)
        self._next_start = start + self._pause
        if start > now:
            await asyncio.sleep(start - now)


def parse_object(body: bytes, request: PreparedRequest) -> dict[str, Any]:
    """Parses a JSON object. Raises ApiError for anything else, such as a proxy's login page; the response is not
    quoted, because it may hold a Secret."""
    try:
        response = parse_json(body)
    except orjson.JSONDecodeError:
        response = None
    except TooManyValuesError as error:
        raise too_many_values(error, request.verb, request.resource) from None
    if isinstance(response, dict):
        return response
    raise _of_another_form(request, "the answer is not a JSON object")


def stored_object(response: Any, request: PreparedRequest) -> dict[str, Any]:
    """The response, if it is an object as an API server stores it. Raises ApiError for anything else, such as a
    gateway's own JSON. An object of a dry run has no version."""
    metadata = response.get("metadata") if isinstance(response, dict) else None
    if isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
        found: dict[str, Any] = response
        return found
    raise _of_another_form(request, "the answer is not an object")


@contextlib.contextmanager
def reading(request: PreparedRequest) -> Iterator[None]:
    """Raises ApiError if the code inside finds values of other types than the response should have."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise _of_another_form(request, f"the answer has another form ({type(error).__name__})") from error


def _of_another_form(request: PreparedRequest, text: str) -> ApiError:
    return ApiError(Problem.SERVER, verb=request.verb, resource=request.resource, text=text, status=200)


def parse_warnings(header: str) -> list[str]:
    """The texts of the header `Warning`: `299 - "text"`, separated by commas."""
    return [_ESCAPED.sub(r"\1", text) for text in _WARNING.findall(header)]


def _refusal(request: PreparedRequest, response: ResponseParser, body: bytes) -> ApiError:
    return response_error(
        response.status, body, verb=request.verb, resource=request.resource, retry_after=response.header(b"retry-after")
    )
