"""Parses the response to one HTTP/1.1 request, with llhttp, from chunks of any size. No I/O.

If two parsers read one response differently, a body can be smuggled past one of them. llhttp is strict about framing;
the checks that it leaves to its user are here: unexpected versions and codings, numbers out of range, and data that
never forms a response. No memory is allocated according to a declared length.
"""

from __future__ import annotations

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

# Go's server sends heads of a kilobyte. Proxies add cookies and policies.
MAX_HEAD = 1 << 16
# Bytes that are neither head nor body: at first, and for each chunk. Servers need twelve for a chunk.
MAX_FRAMING, MAX_CHUNK_FRAMING = 1 << 12, 1 << 6

PIECE = 64  # bytes that the smallest piece of a body takes

_BODILESS = frozenset({204, 304})
_START = b"HTTP/1."
_HEAD_TOO_LONG = f"its head is longer than {MAX_HEAD} bytes"


class MalformedError(Exception):
    """The other side does not speak HTTP/1.1, or left in the middle of it."""


class ResponseParser:
    """Fed with `feed` and, when no more comes, `end`. Of no further use after a MalformedError or `drop`."""

    __slots__ = (
        "_framing",
        "_head",
        "_parser",
        "_problem",
        "_received",
        "_tunnel",
        "_until_end",
        "done",
        "headers",
        "pieces",
        "reason",
        "reusable",
        "status",
        "unread",
    )

    def __init__(self, *, tunnel: bool = False) -> None:
        """`tunnel`: the response is that to a CONNECT, and a good one has no body."""
        self.status = 0  # until the head is complete
        self.reason = b""
        self.headers: dict[bytes, bytes] = {}  # by names in lower case
        self.pieces: list[bytes] = []  # of the body
        self.unread = 0  # bytes that the pieces take
        self.done = False
        self.reusable = False  # the connection, when the response is done
        self._tunnel = tunnel
        self._until_end = False
        self._received = 0
        self._head = len(b"HTTP/1.1 200 \r\n\r\n")  # bytes of the status line and of headers
        self._framing = 0  # received bytes that are not of the body, less those that were allowed for
        self._problem: MalformedError | None = None
        self._parser: HttpResponseParser | None = HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        if self.done:
            self.reusable &= not data.strip(b"\r\n")  # llhttp skips empty lines before a response, too
            return
        if self._received < len(_START):
            expected = _START[self._received : self._received + len(data)]
            if not data.startswith(expected):
                raise MalformedError(f"not an answer in HTTP/1.1: {data[:50].decode('latin-1')!r}")
        self._received += len(data)
        self._framing += len(data)
        assert self._parser is not None, "not dropped"
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._reject(str(error))
        self._check()

    def _reject(self, why: str) -> None:
        if not self.done:
            raise self._problem or self._malformed(why) from None
        self.reusable = False  # only what follows the response is malformed

    def _check(self) -> None:
        if self.done:
            self._parser = None
        elif self._framing > (MAX_FRAMING if self.status else MAX_HEAD):
            raise self._malformed("it has too much framing" if self.status else _HEAD_TOO_LONG)

    def end(self) -> None:
        """The other side will send nothing more."""
        self.drop()
        if self._until_end:
            self.done = True
        elif not self.done:
            where = "in the middle of the answer" if self._received else "without an answer"
            raise MalformedError(f"the connection ended {where}")

    def drop(self) -> None:
        """Breaks the cycle between this object and llhttp: else only the garbage collector would free the body."""
        self._parser = None

    def take(self) -> bytes:
        """The part of the body that arrived since the last time."""
        pieces, self.pieces, self.unread = self.pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    # Called by llhttp, while it is fed

    def on_status(self, reason: bytes) -> None:
        if b"\0" in reason:
            raise self._malformed("its reason holds a NUL")
        self.reason += reason
        self._head += len(reason)

    def on_header(self, name: bytes, value: bytes) -> None:
        size = len(name) + len(value) + 4
        self._head += size
        if self._head > MAX_HEAD:
            raise self._malformed(_HEAD_TOO_LONG)
        if self.status:  # a trailer
            self._framing -= size
            return
        key, value = name.lower(), value.strip(b" ")  # no tab: "chunked" and a tab is another coding to llhttp
        self.headers[key] = self.headers[key] + b", " + value if key in self.headers else value

    def on_headers_complete(self) -> None:
        assert self._parser is not None, "it calls this"
        status, headers, version = self._parser.get_status_code(), self.headers, self._parser.get_http_version()
        length, coding = headers.get(b"content-length"), headers.get(b"transfer-encoding")
        if status < 200:
            if not 100 <= status <= 199 or status == 101 or length is not None or coding is not None:
                raise self._malformed(f"unexpected {status} response")
            self.headers, self.reason = {}, b""  # of an early response; the real one follows
            return
        if status > 599 or version not in {"1.0", "1.1"}:
            raise self._malformed(f"status {status} in HTTP/{version}")
        self.status = status
        self._framing -= self._head
        self.reusable = self._parser.should_keep_alive()
        if status in _BODILESS or (self._tunnel and status < 300):
            # A body may follow all the same, and it is not that of the next response.
            self.reusable &= coding is None and (status == 304 or length in {None, b"0"})
            self.done = True
            return
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise self._malformed("unexpected compression")
        if coding is not None and (coding.lower() != b"chunked" or version != "1.1"):
            raise self._malformed("its transfer encoding is unknown")
        if length is not None and len(length) > 15:
            raise self._malformed("its length is too large")
        self._until_end = length is None and coding is None

    def on_chunk_header(self) -> None:
        self._framing -= MAX_CHUNK_FRAMING

    def on_body(self, piece: bytes) -> None:
        if self.done:
            self.reusable = False
            return
        self.pieces.append(piece)
        self.unread += max(len(piece), PIECE)
        self._framing -= len(piece)

    def on_message_begin(self) -> None:
        if self.done:
            raise self._malformed("a second answer")  # `feed` ignores it

    def on_message_complete(self) -> None:
        if self.status:
            self.done = True

    def _malformed(self, why: str) -> MalformedError:
        self.drop()
        self._problem = MalformedError(f"not a valid answer in HTTP/1.1: {why}")
        return self._problem
