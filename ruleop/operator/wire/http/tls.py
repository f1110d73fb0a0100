"""TLS on a connection, by OpenSSL in memory: bytes of the network go in, decrypted bytes come out.

asyncio's TLS has a buffer of 256 KB for each connection, and an operator has dozens of watches that are silent most of
the time (docs/contributing/decisions/own-tls-transport.md has the figures). The context decides what is verified, as
with asyncio. Connections are closed without a close_notify, because HTTP marks the end of a response itself. But a
connection that the other side closes without one is broken, never complete.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ruleop.operator.wire.http.connection import Connection, Wire

RECORD = 1 << 14  # bytes; OpenSSL never returns more at once


def trusting_context(authority: bytes | None) -> ssl.SSLContext:
    """A context that trusts these certificates (PEM); None: those of the system. Raises ssl.SSLError or ValueError."""
    text = None if authority is None else authority.decode("ascii", "ignore")  # comments may be in any encoding
    if text is not None and not text.strip():
        raise ValueError("the file of the CA is empty")  # which must not mean those of the system
    context = ssl.create_default_context(cadata=text)
    # Python 3.13 requires extensions that the CAs of many clusters lack, and that Go does not require.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.hostname_checks_common_name = False  # only subjectAltName counts, as in Go
    # Python 3.11.2 takes an end without close_notify for the end of a response: anybody on the way could shorten it.
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    return context


class Tls(asyncio.BufferedProtocol):
    """The transport of a connection, and the protocol of the transport below: a socket's, or the TLS to a proxy."""

    def __init__(self, under: Wire, buffer: bytearray) -> None:
        """`buffer` is for the bytes being received; all connections of a loop may share one."""
        self._under = under
        self._above: Connection | Tls | None = None
        self._buffer = memoryview(buffer)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._shaken: asyncio.Future[None] | None = None
        self._unwritten: list[bytes] = []  # while the server wants to exchange keys first
        self._problem: Exception | None = None

    async def shake_hands(self, above: Connection | Tls, context: ssl.SSLContext, host: str) -> None:
        """Raises OSError, of which ssl.SSLError is one, or ValueError for a host that cannot be verified."""
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._above = above
        self._shaken = asyncio.get_running_loop().create_future()
        self._under.set_protocol(self)
        self._shake()
        try:
            await self._shaken
        finally:
            self._shaken = None
        if self._incoming.pending:  # data arrived with the end of the handshake, and nothing else may trigger a read
            self._read()

    # For the connection above

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, Tls)
        self._above = protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._under.get_extra_info(name, default)

    def write(self, data: bytes) -> None:
        self._unwritten.append(data)
        self._write()

    def abort(self) -> None:
        self._under.abort()

    def pause_reading(self) -> None:
        self._under.pause_reading()

    def resume_reading(self) -> None:
        self._under.resume_reading()

    # For the transport below

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the buffer is always the same
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self._buffer[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        self._incoming.write(data)
        if self._shaken is not None and not self._shaken.done():
            self._shake()
        else:
            self._read()

    def eof_received(self) -> None:
        self._incoming.write_eof()
        if self._shaken is not None:
            self._fail(ConnectionResetError("it has closed the connection"))
        else:
            self._read()

    def connection_lost(self, error: Exception | None) -> None:
        problem = self._problem or error
        if self._shaken is not None:
            self._fail(problem or ConnectionResetError("it has closed the connection"))
        elif self._above is not None:
            self._above.connection_lost(problem)
        self._above = None

    # Between them

    def _shake(self) -> None:
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except OSError as error:
            self._flush()  # the alert that says why
            self._fail(error)
            return
        self._flush()
        if self._shaken is not None and not self._shaken.done():
            self._shaken.set_result(None)

    def _read(self) -> None:
        pieces: list[bytes] = []
        ended = False
        try:
            while True:
                piece = self._ssl.read(RECORD)
                if not piece:
                    ended = True
                    break
                pieces.append(piece)
                if not self._incoming.pending and len(piece) < RECORD and not self._incoming.eof:
                    break  # another read would raise
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            ended = True
        except OSError as error:
            self._fail(error)
        self._write()  # key exchange, or data that waited for it
        above = self._above
        if above is None:
            return
        if pieces:
            above.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if ended:
            above.eof_received()

    def _write(self) -> None:
        try:
            while self._unwritten:
                data = self._unwritten[0]
                sent = self._ssl.write(data)
                if sent < len(data):
                    self._unwritten[0] = data[sent:]
                else:
                    del self._unwritten[0]
        except ssl.SSLWantReadError:
            pass
        except OSError as error:
            self._fail(error)
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._under.write(self._outgoing.read())

    def _fail(self, error: Exception) -> None:
        self._problem = self._problem or error
        if self._shaken is not None and not self._shaken.done():
            self._shaken.set_exception(error)
        self._under.abort()
