"""Answers in HTTP/1.1, whole and in pieces, good and bad."""

from __future__ import annotations

import http.client
import io
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.operator.wire.http.connection import MAX_FRAMING, MAX_HEAD, PIECE, MalformedError, ResponseParser

Said = tuple[int, dict[bytes, bytes], bytes, bool, bool] | str


def read(pieces: list[bytes], *, ended: bool = False) -> Said:
    """What the parser makes of it: status, headers, body, whether it is done, and whether the connection may be used
    again."""
    parser = ResponseParser()
    try:
        for piece in pieces:
            parser.feed(piece)
        if ended:
            parser.end()
    except MalformedError:
        return "malformed"
    return parser.status, parser.headers, parser.take(), parser.done, parser.reusable


def answer(body: bytes = b"", status: bytes = b"200 OK", **headers: str) -> bytes:
    lines = [b"HTTP/1.1 " + status, *(f"{name.replace('_', '-')}: {value}".encode() for name, value in headers.items())]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def test_a_body_with_a_content_length_is_read() -> None:
    said = read([answer(b"hello", Content_Length="5", ETag='"1"')])
    assert said == (200, {b"content-length": b"5", b"etag": b'"1"'}, b"hello", True, True)


def test_a_chunked_body_with_extensions_and_trailers_is_read() -> None:
    body = b'5;name="va;lue"\r\nhello\r\n001\r\n!\r\n0;last\r\nChecksum: 1\r\nOther: 2\r\n\r\n'
    assert read([answer(body, Transfer_Encoding="Chunked")]) == (
        200,
        {b"transfer-encoding": b"Chunked"},
        b"hello!",
        True,
        True,
    )


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    assert read([answer(b"hello")]) == (200, {}, b"hello", False, False)
    assert read([answer(b"hello")], ended=True) == (200, {}, b"hello", True, False)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_answers_with_status_204_and_304_have_no_body(status: bytes) -> None:
    assert read([answer(status=status)]) == (int(status[:3]), {}, b"", True, True)


def test_a_forbidden_body_is_not_taken_for_the_next_answer() -> None:
    for bad in ({"Content_Length": "5"}, {"Transfer_Encoding": "chunked"}):
        assert read([answer(b"", b"204 No Content", **bad)])[3:] == (True, False)
    assert read([answer(b"", b"304 Not Modified", Content_Length="5")])[3:] == (True, True), (
        "the length of what has not changed"
    )


def test_informational_answers_before_the_final_one_are_skipped() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
    assert read([early + answer(b"hello", Content_Length="5")])[:3] == (200, {b"content-length": b"5"}, b"hello")


@pytest.mark.parametrize(
    ("said", "reusable"),
    [
        (answer(Content_Length="0"), True),
        (answer(Content_Length="0", Connection="keep-alive"), True),
        (answer(Content_Length="0", Connection="Close"), False),
        (answer(Content_Length="0", Connection="x, CLOSE ,y"), False),
        (answer(Content_Length="0").replace(b"1.1", b"1.0"), False),
        (answer(Content_Length="0") + b"more", False),
        (answer(b"0\r\n\r\nmore", Transfer_Encoding="chunked"), False),
    ],
)
def test_a_connection_is_reusable_according_to_length_and_connection_header(said: bytes, reusable: bool) -> None:
    assert read([said])[2:] == (b"", True, reusable)


def test_a_repeated_header_is_joined_with_commas() -> None:
    said = b"HTTP/1.1 200 OK\r\nVary: a\r\nvary: b\r\nContent-Length: 1\r\n\r\nx"
    assert read([said])[1:4] == ({b"vary": b"a, b", b"content-length": b"1"}, b"x", True)


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"<html>",
        b"\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 600 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 +20 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n Folded: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 5\r\n\r\n",
        answer(Content_Length="-1"),
        answer(Content_Length="+1"),
        answer(Content_Length="0x1"),
        answer(Content_Length="1_0"),
        answer(Content_Length=""),
        answer(Content_Length="1, 2"),
        answer(Content_Length="1, 1"),
        answer(b"x", Content_Length="1").replace(b"\r\n\r\n", b"\r\nContent-Length: 1\r\n\r\n"),
        answer(b"x", Content_Length="1").replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n"),
        b"HTTP/1.1 103 Early Hints\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/0.9 200 OK\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 O\0K\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"RTSP/1.0 200 OK\r\n\r\n",
        answer(Content_Length="9" * 16),
        answer(b"hello", Content_Length="5", Transfer_Encoding="chunked"),
        answer(Transfer_Encoding="gzip, chunked"),
        answer(Transfer_Encoding="identity"),
        answer(Transfer_Encoding="chunked\t"),
        answer(Transfer_Encoding="chunked, chunked"),
        answer(Transfer_Encoding="chunked").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
        answer(Transfer_Encoding="chunked").replace(b"1.1", b"1.0"),
        answer(Content_Length="5", Content_Encoding="gzip"),
        *(
            answer(chunk, Transfer_Encoding="chunked")
            for chunk in (
                *(
                    b"\r\n",
                    b"-1\r\n",
                    b"+1\r\nx\r\n",
                    b"0x1\r\nx\r\n",
                    b"1_0\r\n",
                    b" 1\r\nx\r\n",
                    b"1 \r\nx\r\n",
                    b"g\r\n",
                    b"g",
                    b"1\nx\r\n",
                    b"f" * 17,
                ),
                *(
                    b"5\r\nhello!\r\n",
                    b"5\r\nhello\n",
                    b"0\r\nno colon\r\n\r\n",
                    b"0\r\nA: b\n",
                    b"5;\0\r\n",
                    b"5;" + b"x" * MAX_FRAMING,
                ),
            )
        ),
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * MAX_HEAD,
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * (MAX_HEAD // 6) + b"\r\n",
        answer(b"0\r\n" + b"A: b\r\n" * (MAX_HEAD // 4), Transfer_Encoding="chunked"),
        answer(b"0\r\nA: " + b"x" * MAX_HEAD, Transfer_Encoding="chunked"),
    ],
    ids=lambda said: repr(said[:70]),
)
def test_bytes_that_are_not_an_http_answer_are_an_error_at_once(said: bytes) -> None:
    """The connection has not ended, so nobody waits for what will not come."""
    assert read([said]) == "malformed"
    assert read([said[at : at + 1] for at in range(min(len(said), 3000))] + [said[3000:]]) == "malformed"


@pytest.mark.parametrize(
    "said",
    [answer(b"hello", Content_Length="5"), answer(b"5\r\nhello\r\n0;x\r\nA: b\r\n\r\n", Transfer_Encoding="chunked")],
)
def test_a_connection_that_ends_at_any_byte_is_an_error_and_never_a_shorter_body(said: bytes) -> None:
    for end in range(len(said)):
        assert read([said[:end]] if end else [], ended=True) == "malformed"
    assert read([said], ended=True)[2:] == (b"hello", True, True)


def test_a_false_content_length_allocates_nothing() -> None:
    assert read([answer(b"hello", Content_Length="9" * 15)])[2:4] == (b"hello", False)
    assert read([answer(b"f" * 15 + b"\r\nhello", Transfer_Encoding="chunked")])[2:4] == (b"hello", False)


def test_an_opened_tunnel_has_no_body_and_a_refused_one_has() -> None:
    opened = ResponseParser(tunnel=True)
    opened.feed(answer(status=b"200 Connection established", Content_Length="5"))
    assert opened.done
    refused = ResponseParser(tunnel=True)
    refused.feed(answer(status=b"407 Proxy Authentication Required", Content_Length="5"))
    assert (refused.status, refused.reason, refused.done) == (407, b"Proxy Authentication Required", False)


bodies = st.binary(max_size=60)


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    early = b"HTTP/1.1 100 Continue\r\n\r\n" if draw(st.booleans()) else b""
    status = draw(st.sampled_from([b"200 OK", b"404 Not Found", b"500 ", b"204 No Content", b"304 Not Modified"]))
    head = b"HTTP/1.1 " + status + b"\r\n"
    for name, value in draw(
        st.lists(
            st.tuples(
                st.from_regex(r"X-[A-Za-z0-9!#]{1,8}", fullmatch=True), st.from_regex(r"[ -~]{0,9}", fullmatch=True)
            )
        )
    ):
        head += f"{name}:{value}\r\n".encode()
    if status[:1] in b"23" and status[:3] != b"200":
        return early + head + b"\r\n"
    how = draw(st.sampled_from(["length", "chunks", "end"]))
    if how == "chunks":
        body = b""
        for chunk in draw(st.lists(bodies.filter(bool))):
            extension = draw(st.sampled_from([b"", b";x", b';a="b"']))
            body += b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk)
        trailer = draw(st.sampled_from([b"", b"A: b\r\n", b"A: b\r\nC: d\r\n"]))
        return early + head + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n" + trailer + b"\r\n"
    body = draw(bodies)
    return early + head + (b"Content-Length: %d\r\n" % len(body) if how == "length" else b"") + b"\r\n" + body


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    ends = sorted(draw(st.sets(st.integers(0, len(data)), max_size=12)))
    return [data[begin:end] for begin, end in zip([0, *ends], [*ends, len(data)], strict=True)]


class Pretending:
    """A socket for http.client."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, *_: Any) -> io.BytesIO:
        return io.BytesIO(self.data)


@pytest.mark.slow
@given(st.data())
def test_an_answer_in_any_chunks_is_read_as_the_standard_library_reads_it(data: st.DataObject) -> None:
    said = data.draw(answers())
    status, headers, body, done, _ = read(data.draw(cut(said)), ended=True)
    theirs = http.client.HTTPResponse(Pretending(said))  # type: ignore[arg-type]
    theirs.begin()
    assert (status, body, done) == (theirs.status, theirs.read(), True)
    assert {name.decode(): value.decode() for name, value in headers.items()} == {
        name.lower(): ", ".join(each.strip() for each in theirs.headers.get_all(name)) for name in theirs.headers
    }


@pytest.mark.slow
@given(st.data())
def test_any_bytes_are_parsed_alike_however_they_are_chunked(data: st.DataObject) -> None:
    said = bytearray(data.draw(answers()) + data.draw(st.sampled_from([b"", b"more"])))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(said) - 1))
        said[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b"\r", b"\n", b"\r\n", b"0", b"5", b":", b" ", b"\0", b";"])
        )
        said += b"x"
    ended = data.draw(st.booleans())
    whole = read([bytes(said)], ended=ended)
    assert read(data.draw(cut(bytes(said))), ended=ended) == whole
    assert read([bytes(said[at : at + 1]) for at in range(len(said))], ended=ended) == whole


def test_a_small_piece_of_a_body_counts_by_the_memory_that_it_takes() -> None:
    """Else chunks of one byte take ten times the limit of an answer."""
    parser = ResponseParser()
    parser.feed(answer(Transfer_Encoding="chunked") + b"1\r\nx\r\n" * 1000)
    assert parser.unread == 1000 * PIECE
    assert sys.getsizeof(b"x") + 8 <= PIECE
    assert parser.take() == b"x" * 1000
    assert parser.unread == 0
