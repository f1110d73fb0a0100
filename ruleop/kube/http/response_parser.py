"""The answer to one HTTP/1.1 request, read from bytes that arrive in any pieces. No I/O.

It takes what RFC 9112 allows and nothing else: two readings of one answer are a way to smuggle a body past somebody, so what could be read
in two ways (a length and chunks, two lengths, a bare line feed, a folded line) is an error and not a guess. Nothing is made as large as a
length says before that much has come.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Go's server sends heads of a kilobyte. Proxies add cookies and policies.
MAX_HEAD = 1 << 16
MAX_CHUNK_LINE = 1 << 12

_NAME = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: ([^\r\n\0]*+))?\r\n")
_FIELD = re.compile(rb"(" + _NAME + rb"):([^\r\n\0]*+)\r\n")
_FIELDS = re.compile(rb"(?:" + _NAME + rb":[^\r\n\0]*+\r\n)*+")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15}+)[ \t]*+(?:;[^\r\n\0]*+)?\r\n")
_BEGUN_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,15}+[ \t]*+(?:;[^\r\n\0]*+)?\r?")
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_BEGIN = b"HTTP/1."

_BODILESS = frozenset({204, 304})


class MalformedError(Exception):
    """The other side does not speak HTTP/1.1, or left in the middle of it."""


class AnswerParser:
    """Fed with `feed` and, when no more comes, `end`. After a MalformedError it is of no further use."""

    __slots__ = ("_left", "_rest", "_searched", "_state", "_tunnel", "done", "headers", "pieces", "reason", "reusable", "status", "unread")

    def __init__(self, *, tunnel: bool = False) -> None:
        """`tunnel`: the answer is that to a CONNECT, and a good one has no body."""
        self.status = 0  # until the head is there
        self.reason = b""
        self.headers: dict[bytes, bytes] = {}  # by names in lower case
        self.pieces: list[bytes] = []  # of the body
        self.unread = 0  # bytes in the pieces
        self.done = False
        self.reusable = False  # the connection, when the answer is done
        self._tunnel = tunnel
        # Plain functions: a bound method would make each parser, with its body, garbage that only the collector finds.
        self._state: Callable[[AnswerParser, bytes, int], int] = AnswerParser._head
        self._rest = b""  # of what is understood only as a whole
        self._searched = 0  # how much of it holds no end
        self._left = 0  # bytes of the body, or of the chunk

    def feed(self, data: bytes) -> None:
        if self._rest:
            data, self._rest = self._rest + data, b""
        at = 0
        while at < len(data):
            after = self._state(self, data, at)
            if after < 0:
                self._rest = data[at:] if at else data
                return
            at = after

    def end(self) -> None:
        """The other side will send nothing more."""
        if self._state is AnswerParser._until_end:
            self._finish()
        elif not self.done:
            where = "in the middle of the answer" if self.status or self._rest else "without an answer"
            raise MalformedError(f"the connection ended {where}")

    def take(self) -> bytes:
        """What has come of the body since the last time."""
        pieces, self.pieces, self.unread = self.pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    # The states. Each takes what it can from `at` on and gives the place behind it, or -1 where it needs more.

    def _head(self, data: bytes, at: int) -> int:
        end = data.find(b"\r\n\r\n", max(at, at + self._searched - 3))
        if (len(data) if end < 0 else end) - at > MAX_HEAD:
            raise MalformedError(f"the head of the answer is longer than {MAX_HEAD} bytes")
        if end < 0:
            if not data.startswith(_BEGIN[: len(data) - at], at) or _BARE_LINE_FEED.search(data, at + max(self._searched - 1, 0)):
                raise _no_http(data[at:])
            self._searched = len(data) - at
            return -1
        self._searched = 0
        first = _STATUS.match(data, at)
        fields_end = end + 2
        if first is None or not _FIELDS.fullmatch(data, first.end(), fields_end):
            raise _no_http(data[at:end])
        status = int(first[2])
        if status == 101:
            raise MalformedError("the answer changes the protocol, which was not asked for")
        if status >= 200:
            self.reason = first[3] or b""
            self._begin(status, first[1] == b"1", _fields(data, first.end(), fields_end))
        return end + 4

    def _begin(self, status: int, one_one: bool, headers: dict[bytes, bytes]) -> None:
        self.status, self.headers = status, headers
        self.reusable = one_one and (b"connection" not in headers or b"close" not in _list(headers[b"connection"]))
        length, coding = headers.get(b"content-length"), headers.get(b"transfer-encoding")
        if status in _BODILESS or (self._tunnel and status < 300):
            self.reusable &= coding is None and (status == 304 or length in {None, b"0"})  # or a body may follow all the same
            self._finish()
            return
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise MalformedError("the answer is compressed, which was not asked for")
        if coding is not None:
            if length is not None or not one_one or coding.lower() != b"chunked":
                raise MalformedError("the answer does not say where it ends: a length and chunks, or a transfer encoding that is not known")
            self._state = AnswerParser._chunk
        elif length is not None:
            self._left = _number(length)
            self._state = AnswerParser._counted
            if not self._left:
                self._finish()
        else:
            self.reusable = False
            self._state = AnswerParser._until_end

    def _counted(self, data: bytes, at: int) -> int:
        after = self._some(data, at)
        if not self._left:
            self._finish()
        return after

    def _chunk(self, data: bytes, at: int) -> int:
        line = _CHUNK.match(data, at)
        if line is None:
            begun = _BEGUN_CHUNK.fullmatch(data, at)
            if begun is None or len(data) - at > MAX_CHUNK_LINE:
                raise MalformedError("a chunk of the answer has no proper length")
            return -1
        begin = line.end()
        if begin - at > MAX_CHUNK_LINE:
            raise MalformedError("a chunk of the answer has no proper length")
        size = int(line[1], 16)
        if not size:
            self._state = AnswerParser._trailers
            return begin
        end = begin + size
        if data.startswith(b"\r\n", end):  # nearly always: a server writes a chunk at once
            self.pieces.append(data[begin:end])
            self.unread += size
            return end + 2
        self._left = size
        self._state = AnswerParser._in_chunk
        return begin

    def _in_chunk(self, data: bytes, at: int) -> int:
        after = self._some(data, at)
        if not self._left:
            self._state = AnswerParser._behind_chunk
        return after

    def _behind_chunk(self, data: bytes, at: int) -> int:
        if data.startswith(b"\r\n", at):
            self._state = AnswerParser._chunk
            return at + 2
        if len(data) - at == 1 and data.endswith(b"\r"):
            return -1
        raise MalformedError("a chunk of the answer is longer than it says")

    def _trailers(self, data: bytes, at: int) -> int:
        if data.startswith(b"\r\n", at):
            self._finish()
            return at + 2
        end = data.find(b"\r\n\r\n", max(at, at + self._searched - 3))
        if (len(data) if end < 0 else end) - at > MAX_HEAD:
            raise MalformedError(f"what follows the answer is longer than {MAX_HEAD} bytes")
        if end < 0:
            if _BARE_LINE_FEED.search(data, at + max(self._searched - 1, 0)):
                raise _no_http(data[at:])
            self._searched = len(data) - at
            return -1
        if not _FIELDS.fullmatch(data, at, end + 2):
            raise _no_http(data[at:end])
        self._finish()
        return end + 4

    def _until_end(self, data: bytes, at: int) -> int:
        self._left = len(data) - at
        return self._some(data, at)

    def _surplus(self, data: bytes, at: int) -> int:  # noqa: ARG002 - nobody asked for it
        self.reusable = False
        return len(data)

    def _some(self, data: bytes, at: int) -> int:
        piece = data[at : at + self._left] if at or len(data) > self._left else data
        self.pieces.append(piece)
        self.unread += len(piece)
        self._left -= len(piece)
        return at + len(piece)

    def _finish(self) -> None:
        self.done = True
        self._state = AnswerParser._surplus


def _fields(data: bytes, begin: int, end: int) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for name, value in _FIELD.findall(data, begin, end):
        key = name.lower()
        headers[key] = headers[key] + b", " + value.strip() if key in headers else value.strip()
    return headers


def _list(value: bytes) -> list[bytes]:
    return [each.strip() for each in value.lower().split(b",")]


def _number(text: bytes) -> int:
    """Said twice is allowed, if it is the same."""
    length, *others = {text} if text.isdigit() else set(_list(text))
    if others or not length.isdigit() or len(length) > 15:
        raise MalformedError(f"the answer has no proper length: {text[:50].decode('latin-1')!r}")
    return int(length)


def _no_http(data: bytes) -> MalformedError:
    return MalformedError(f"not an answer in HTTP/1.1: {data[:50].decode('latin-1')!r}")
