"""One connection that speaks HTTP/1.1: one exchange at a time, on the loop's transports, with TLS or without.

It is made for many small exchanges: a request is one write, a response wakes its task once, and one timer serves all
exchanges of a connection and the time between them. An exchange that ends early (a time limit, a cancelled task, a
malformed response) ends the connection, so that no request ever reads the rest of another one's response."""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, Any, Protocol

from ruleop.operator.wire.http.response_parser import MalformedError, ResponseParser
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


# -- prepared request --------------------------------------------------------------------------------------------------
#
# A prepared request to an API server: everything that a connection sends, and the names for messages.


JSON_TYPE = "application/json"
# A webhook may take 30 s. A shorter timeout would save nothing and leave the outcome unknown.
TIMEOUT = 35.0


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    method: str
    path: str
    verb: str  # as in RBAC
    resource: str  # "deployments.apps prod/web", for messages
    query: str = ""
    body: bytes | None = None
    content_type: str = ""
    accept: str = JSON_TYPE
    timeout: float = TIMEOUT
    etag: str = ""
    as_user: str = ""  # whom it impersonates; empty: nobody but whom the credentials say


# -- connection --------------------------------------------------------------------------------------------------------


UNREAD = 1 << 20  # bytes that a stream holds for its reader before it stops the sender
LARGEST = 64 << 20  # bytes of a response that is read as a whole; a page of objects has some megabytes


class BrokenError(Exception):
    """The connection ended, or the response is malformed. `responded`: a part of a response had arrived."""

    def __init__(self, why: str, *, responded: bool) -> None:
        super().__init__(why)
        self.responded = responded


class TooLargeError(BrokenError):
    """The response is larger than `LARGEST`, and was not read to its end."""


class Wire(Protocol):
    """The transport of a connection: one of the loop, or TLS on one."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...
    def get_extra_info(self, name: str, default: Any = None) -> Any: ...
    def write(self, data: bytes) -> None: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Connection(asyncio.Protocol):
    """Belongs to one exchange from `ask` until its response is done. `keep` waits for another one."""

    __slots__ = (
        "_deadline",
        "_gone",
        "_incoming",
        "_loop",
        "_paused",
        "_problem",
        "_received",
        "_released",
        "_timer",
        "_waiter",
        "_whole",
        "parser",
        "transport",
    )

    transport: Wire  # once it is connected

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        released: Callable[[Connection], None],
        gone: Callable[[Connection], None],
    ) -> None:
        """`released` is called when the exchange is over, and `gone` when the socket is closed."""
        self.parser: ResponseParser | None = None
        self._loop = loop
        self._released = released
        self._gone = gone
        self._incoming = select.poll()
        self._problem: Exception | None = None  # why it has ended
        self._waiter: asyncio.Future[None] | None = None
        self._whole = False
        self._received = False
        self._paused = False
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # For the user of the connection

    @property
    def response(self) -> ResponseParser:
        assert self.parser is not None, "something was asked"
        return self.parser

    @property
    def problem(self) -> Exception | None:
        """The error that ended the connection; None if it has not ended."""
        return self._problem

    async def ask(self, request: bytes, deadline: float, *, whole: bool = True, tunnel: bool = False) -> ResponseParser:
        """Sends the request and returns its response when it is complete or, not `whole`, when its head is. Raises
        BrokenError, TimeoutError."""
        parser = self.parser = ResponseParser(tunnel=tunnel)
        self._whole, self._received = whole, False
        if self._problem is None:
            self.transport.write(request)
            await self._wait(deadline)
        else:  # the pool was closed while the connection was made
            self.abort()
            self._raise(self._problem)
        return parser

    async def rest(self, deadline: float) -> bytes:
        """The body, after `ask` that was not `whole`."""
        assert self.parser is not None, "something was asked"
        self._whole = True
        self._resume()
        if not self.parser.done:
            await self._wait(deadline)
        return self.parser.take()

    async def read(self, until: float) -> bytes | None:
        """The part of the body that has arrived; empty if the time is over, which keeps the connection, and None at the
        end."""
        parser = self.parser
        assert parser is not None, "something was asked"
        while True:
            if parser.pieces:
                self._resume()
                return parser.take()
            if parser.done:
                return None
            try:
                await self._wait(until, harmless=True)
            except TimeoutError:
                return b""

    def release(self) -> None:
        """Called once after `ask`, whether the response was read or not."""
        self._released(self)

    def keep(self, until: float) -> bool:
        """Keeps the connection for another request, until then, if its response is done and it may have another."""
        parser = self.parser
        if self._problem is not None or (parser is not None and not (parser.done and parser.reusable)):
            return False
        self.parser = None
        self._resume()
        self._set_timer(until)
        return True

    def is_usable(self) -> bool:
        """Whether a request may be sent: the time is not over, and the other side has sent nothing, so no close either.

        The kernel is asked, because on a busy loop a close may not have been read yet.
        """
        return self._problem is None and self._deadline > self._loop.time() and not self._incoming.poll(0)

    def abort(self) -> None:
        """Closes at once, without a close_notify of TLS: waiting for its response would hold the socket."""
        self._end(ConnectionAbortedError("closed from this side"))
        if hasattr(self, "transport"):
            self.transport.abort()

    # For the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._incoming.register(transport.get_extra_info("socket"), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        parser = self.parser
        if parser is None or self._problem is not None:
            self.abort()  # no request was sent
            return
        self._received = True
        try:
            parser.feed(data)
        except MalformedError as error:
            self._end(error)
            self.abort()
            return
        if self._whole:
            if parser.done:
                self._wake()
            elif parser.unread > LARGEST:
                self._end(TooLargeError(f"the answer is larger than {LARGEST / (1 << 20):.3g} MiB", responded=True))
                self.abort()
        elif parser.status:
            if parser.unread > UNREAD and not self._paused:
                self._paused = True
                self.transport.pause_reading()
            self._wake()

    def eof_received(self) -> None:
        self._end(None)
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error)
        self._gone(self)

    # Waiting and ending

    async def _wait(self, deadline: float, *, harmless: bool = False) -> None:
        """Waits until woken. Every failure ends the connection, except a deadline that is `harmless`."""
        if self._problem is not None:
            self._raise(self._problem)
        waiter = self._waiter = self._loop.create_future()
        self._set_timer(deadline)
        try:
            await waiter
        except TimeoutError:
            if not harmless:
                self.abort()
            raise
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            if self._problem is None:
                self.transport.resume_reading()

    def _end(self, error: Exception | None) -> None:
        """Nothing more arrives; without an error, because the other side closed. That completes a response without a
        length; any other is broken."""
        if self._problem is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        parser = self.parser
        if parser is not None:
            try:
                parser.end() if error is None else parser.drop()
            except MalformedError as cut:
                error = cut
        self._problem = error or ConnectionResetError("the other side has closed it")
        waiter = self._waiter
        if parser is None or waiter is None or waiter.done():
            return
        if parser.done or (parser.pieces and not self._whole):
            waiter.set_result(None)  # what has arrived counts; the next read finds the end
        else:
            waiter.set_exception(self._broken(self._problem))

    def _broken(self, problem: Exception) -> BrokenError:
        if isinstance(problem, TooLargeError):
            return problem
        text = str(problem) if isinstance(problem, MalformedError) else f"{type(problem).__name__}: {problem}"
        return BrokenError(text, responded=self._received)

    def _raise(self, problem: Exception) -> None:
        broken = self._broken(problem)
        raise broken from (None if broken is problem else problem)

    def _set_timer(self, deadline: float) -> None:
        self._deadline = deadline
        timer = self._timer
        if timer is None or timer.when() > deadline:
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        """The timer fired; by now there may be a later deadline."""
        self._timer = None
        if self._deadline > self._loop.time():
            self._set_timer(self._deadline)
        elif self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_exception(TimeoutError())
        elif self.parser is None:
            self.abort()
