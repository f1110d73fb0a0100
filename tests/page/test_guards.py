"""The users that the page admits, and what it sends to those that ask."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path

import pytest

from ruleop.operator.telemetry import authorization
from ruleop.operator.telemetry.authorization import Authorizer
from ruleop.page import serving
from ruleop.page.guards import ReviewGuard
from tests.operator.wire.certificates import Certificates
from tests.page.projects import NOTES, note
from tests.page.session import NotedPage, Running, running
from tests.waiting import eventually, until


def with_page(folder: Path, check: Callable[[Running], Awaitable[None]], page: NotedPage | None = None) -> None:
    async def run() -> None:
        async with running(folder, [note("a")], files=NOTES, page=page) as shown:
            await check(shown)

    asyncio.run(run())


@pytest.mark.slow
def test_without_the_token_nothing_is_shown(tmp_path: Path) -> None:
    async def check(shown: Running) -> None:
        shown.http.cookie_jar.clear()
        for path in ("/", "/resources", "/live?page=/", "/static/page.js", "/?token=wrong", "/?token=%ff"):
            found = await shown.get(path)
            assert found.status == 401
            assert "Note" not in found.text

    with_page(tmp_path, check)


def test_the_token_of_the_url_becomes_a_cookie_that_only_this_page_sends(tmp_path: Path) -> None:
    async def check(shown: Running) -> None:
        url = f"{shown.base}/resources?text=a&token={shown.token}"
        async with shown.http.get(url, allow_redirects=False) as found:
            assert found.status == 302
            assert found.headers["Location"] == "/resources?text=a"
            (cookie,) = found.headers.getall("Set-Cookie")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert len(shown.token) >= 32

    with_page(tmp_path, check)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8080"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "127.0.0.1"},  # of another port
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},  # another port of this machine
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ],
)
def test_requests_that_another_site_makes_a_browser_send_are_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async def check(shown: Running) -> None:
        found = await shown.get("/resources", **headers)
        assert found.status == 403
        assert "Note" not in found.text

    with_page(tmp_path, check)


def test_the_page_itself_and_a_followed_link_are_admitted(tmp_path: Path) -> None:
    async def check(shown: Running) -> None:
        for headers in (
            {"Origin": shown.base, "Sec-Fetch-Site": "same-origin"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
            {"Host": f"localhost:{shown.base.rpartition(':')[2]}"},
        ):
            assert (
                await shown.get("/resources", Cookie=f"{shown.page.guard.cookie}={shown.token}", **headers)
            ).status == 200

    with_page(tmp_path, check)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_only_get_is_answered(tmp_path: Path, method: str) -> None:
    async def check(shown: Running) -> None:
        assert (await shown.get("/", method)).status == 405

    with_page(tmp_path, check)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["/", "/resource?kind=Note", "/other", "/static/style.css", "/static/page.js", "/?token=x"]
)
def test_every_answer_may_load_only_what_is_the_pages_own(tmp_path: Path, path: str) -> None:
    async def check(shown: Running) -> None:
        found = await shown.get(path)
        policy = found.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        assert found.headers["Referrer-Policy"] == "no-referrer"
        assert found.headers["Cache-Control"] == "no-store"
        assert "http://" not in found.text.replace("http://www.w3.org/", "")
        assert " style=" not in found.text
        assert "<style" not in found.text

    with_page(tmp_path, check)


@pytest.mark.slow
def test_a_stream_has_the_same_headers(tmp_path: Path) -> None:
    async def check(shown: Running) -> None:
        async with shown.http.get(f"{shown.base}/live?page=/") as stream:
            assert stream.headers["Content-Security-Policy"] == serving.HEADERS["Content-Security-Policy"]
        assert (await shown.get("/live?page=http://evil.example/")).status == 404

    with_page(tmp_path, check)


# -- in the operator ---------------------------------------------------------------------------------------------------


class Reviewed(NotedPage):
    """A page that is guarded as in the operator."""

    def __init__(self, guard: ReviewGuard) -> None:
        super().__init__()
        self.guard = guard  # type: ignore[assignment] - of another kind


def reviewed(token: str) -> HTTPStatus:
    return {"good": HTTPStatus.OK, "poor": HTTPStatus.FORBIDDEN}.get(token, HTTPStatus.UNAUTHORIZED)


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("", 401),
        ("Bearer good", 200),
        ("Bearer poor", 403),
        ("Bearer other", 401),
        (basic("good"), 200),
        (basic("poor"), 403),
        (basic(""), 401),
        ("Basic !", 401),
        ("Digest good", 401),
    ],
)
def test_a_user_of_the_cluster_shows_a_token_or_types_it_as_a_password(
    tmp_path: Path, header: str, status: int
) -> None:
    async def check(shown: Running) -> None:
        found = await shown.get("/", **({"Authorization": header} if header else {}))
        assert found.status == status
        if status == 401:
            assert found.headers["WWW-Authenticate"].startswith("Basic ")

    page = Reviewed(ReviewGuard(Authorizer(reviewed).status_of, frozenset()))
    with_page(tmp_path, check, page)


@pytest.mark.slow
def test_a_user_needs_permission_for_the_path_of_the_page(tmp_path: Path) -> None:
    """As for /metrics: the cluster reviews the token, and whether its user may get /page."""
    asked: list[tuple[str, str]] = []

    async def review(_client: object, path: str, token: str) -> HTTPStatus:
        asked.append((path, token))
        return HTTPStatus.OK

    async def check(shown: Running) -> None:
        options = shown.manager.options
        address = f"127.0.0.1:{free_port()}"
        object.__setattr__(options, "metrics_auth", True)
        headers = {"Authorization": "Bearer x"}
        async with (
            serving.operator_page(address, shown.manager),
            shown.http.get(f"http://{address}/", headers=headers) as found,
        ):
            assert found.status == 200
        assert asked == [("/page", "x")]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authorization, "review", review)
        with_page(tmp_path, check)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
def test_a_renewed_certificate_is_used_for_the_next_connection(tmp_path: Path) -> None:
    made = Certificates(tmp_path)
    made.sign("renewed", "subjectAltName=IP:127.0.0.1")
    certificate, key = Path(made.path("server.crt")), Path(made.path("server.key"))

    def renew(address: str) -> None:
        first = served_certificate(address)
        certificate.write_bytes(Path(made.path("renewed.crt")).read_bytes())
        key.write_bytes(Path(made.path("renewed.key")).read_bytes())
        eventually("the renewed certificate", lambda: served_certificate(address) != first)

    async def check(shown: Running) -> None:
        object.__setattr__(shown.manager.options, "metrics_certificate", (certificate, key))
        address = f"127.0.0.1:{free_port()}"
        async with serving.operator_page(address, shown.manager):
            await asyncio.to_thread(renew, address)

    with_page(tmp_path / "project", check)


def served_certificate(address: str) -> str:
    host, _, port = address.partition(":")
    return ssl.get_server_certificate((host, int(port)))


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_connection_that_sends_no_request_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "TIMEOUT", 0.1)
    monkeypatch.setattr(serving, "KEEP_ALIVE", 0.1)

    async def check(shown: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(shown.base.rpartition(":")[2]))
        writer.write(b"GET / HTTP/1.1\r\nHost: ")
        async with asyncio.timeout(30):
            assert await reader.read() == b""
        writer.close()

    with_page(tmp_path, check)


def test_further_viewers_are_refused_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ruleop.page.live.MAX_VIEWERS", 2)

    async def check(shown: Running) -> None:
        async with shown.watched("/"), shown.watched("/"):
            assert (await shown.get("/live?page=/")).status == 503
        assert shown.page.server is not None
        live = shown.page.server.live
        await until("nobody looks", lambda: live.viewers == 0)

    with_page(tmp_path, check)
