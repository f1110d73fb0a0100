"""Serves the page of an operator, on loopback beside `ruleop dev` or at an address of `ruleop run`: routes, headers,
limits.

It answers GET and nothing else. What it sends may load only its own style sheet and scripts, may be in no frame, and is
kept by no cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from yarl import URL

from ruleop.errors import RuleopError
from ruleop.messages import shortened
from ruleop.operator.telemetry import (
    ServerCertificate,
    is_loopback,
    not_listening,
    resolve,
    reviewed_by,
    split_address,
)
from ruleop.page.guards import ReviewGuard, TokenGuard, hosts_of, refusal
from ruleop.page.live import Live, PageFragment, TooManyViewers
from ruleop.page.source import HEALTHS, NotFound, PageFilter, PageSource, resource_url
from ruleop.printable import json_document, printable_lines
from ruleop.values import dataclass

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from ruleop.authoring.report import LastWrite, ObjectView
    from ruleop.kubernetes.kinds import ObjectKey
    from ruleop.operator.manager.manager import Manager
    from ruleop.page.guards import RequestGuard


# -- pages -------------------------------------------------------------------------------------------------------------
# One function for each: from a URL to HTML.
#
# Everything is escaped by Jinja, a name that a template misspells is an error, and characters that would change what a
# reader sees are printed as escapes. The only markup that is not of the templates is the graph, which escapes its
# texts.

HERE: Final = Path(__file__).parent
MAX_DOCUMENT: Final = 20_000  # characters of an object of the plan
MAX_QUERY: Final = 2000  # characters of a value in a URL


@dataclass(frozen=True, slots=True)
class Page:
    """The content of one URL. `about`: the custom resource whose changes alone change it; None: any change does."""

    title: str
    template: str
    data: Mapping[str, Any]
    about: ObjectKey | None = None
    label: str = ""  # of its children


def problem(status: int, message: str) -> Page:
    return Page(str(status), "problem.html", {"status": status, "message": message})


async def kinds(source: PageSource, _query: Mapping[str, str]) -> Page:
    return Page("Kinds", "kinds.html", {"kinds": await source.kinds()})


async def resources(source: PageSource, query: Mapping[str, str]) -> Page:
    page = query.get("page", "")
    number = int(page) if page.isascii() and page.isdecimal() and len(page) < 7 else 1
    texts = {name: query.get(name, "")[:MAX_QUERY] for name in ("kind", "namespace", "reason", "state", "text")}
    return Page("Custom resources", "resources.html", await source.resources(PageFilter(**texts, page=number)))


async def resource(source: PageSource, query: Mapping[str, str]) -> Page:
    title, namespace, name = (query.get(each, "")[:MAX_QUERY] for each in ("kind", "namespace", "name"))
    found = await source.resource(title, namespace, name, query.get("node", "")[:MAX_QUERY])
    data = {**found, "graph": Markup(found["graph"])}  # noqa: S704 - see above
    return Page(f"{found['key'].kind} {name}", "resource.html", data, found["key"], found["label"])


async def rollouts(source: PageSource, _query: Mapping[str, str]) -> Page:
    return Page("Rollouts", "rollouts.html", {"rollouts": await source.rollouts()})


async def operator(source: PageSource, _query: Mapping[str, str]) -> Page:
    return Page("Operator", "operator.html", source.operator())


PAGES: Final[Mapping[str, Callable[[PageSource, Mapping[str, str]], Awaitable[Page]]]] = {
    "/": kinds,
    "/resources": resources,
    "/resource": resource,
    "/rollouts": rollouts,
    "/operator": operator,
}


def _shown(value: Any) -> Any:
    """A value as it is printed: markup as it is, text without characters that hide or reorder what follows."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable_lines(value)


def _document(value: Any) -> str:
    return shortened(json_document(value).strip(), MAX_DOCUMENT)


def _writes(found: ObjectView) -> list[LastWrite]:
    """The last write of each client that owns fields of an object, the latest first."""
    writes = [*(one for each in found.fields for one in each.managers), *filter(None, [found.last_change])]
    writes.sort(key=lambda each: each.time)
    latest = {(each.manager, each.operation): each for each in writes}
    return sorted(latest.values(), key=lambda each: each.time, reverse=True)


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["document"] = _document
    made.filters["writes"] = _writes
    made.filters["health"] = lambda view: HEALTHS[view.tone]
    made.globals["url_of"] = resource_url
    return made


class PageTemplates:
    def __init__(self, name: str) -> None:
        """`name` of the operator."""
        self._environment, self._name = _environment(), name

    def fragment(self, page: Page) -> str:
        """The part of the page that changes."""
        return self._environment.get_template(page.template).render(page.data)

    def whole(self, page: Page, url: str) -> str:
        """`url` of the page, from which its changes come."""
        names = {"title": page.title, "operator": self._name, "url": url, "path": url.partition("?")[0]}
        body = Markup(self.fragment(page))  # noqa: S704 - a template's
        return self._environment.get_template("layout.html").render(**names, body=body)


# -- server ------------------------------------------------------------------------------------------------------------

log = structlog.get_logger(__name__)

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "ruleop",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
STATIC: Final = {"style.css": "text/css", "page.js": "text/javascript", "idiomorph.min.js": "text/javascript"}
MAX_LINE: Final = 8190  # bytes of the first line of a request, and of a header
MAX_CONNECTIONS: Final = 100
TIMEOUT: Final = 10.0  # seconds for a request to arrive
KEEP_ALIVE: Final = 15.0  # seconds without a request, after which a connection is closed
HEARTBEAT: Final = 15.0  # seconds; shows that a viewer has left
LIFETIME: Final = 600.0  # seconds of a stream; the browser opens another one, which is authorized again


class PageServer:
    def __init__(self, manager: Manager, guard: RequestGuard, *, share: float) -> None:
        """`share`: of the time of the loop, for the live parts of all pages."""
        self.guard = guard
        self.source = PageSource(manager)
        self.templates = PageTemplates(manager.options.name)
        self.live = Live(manager, self._fragment, share=share)
        self._files = {name: (HERE / "static" / name).read_bytes() for name in STATIC}
        self._connections: dict[web.RequestHandler, tuple[float, int]] = {}  # idle since, and running requests

    # -- serving -------------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def serving(self, listening: socket.socket, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        app = web.Application(middlewares=[self._guarded], client_max_size=1)
        app.router.add_get("/live", self._stream)
        app.router.add_get("/static/{name}", self._static)
        for path in PAGES:
            app.router.add_get(path, self._page)
        runner = web.AppRunner(
            app,
            handle_signals=False,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=KEEP_ALIVE,
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
            shutdown_timeout=0.5,
        )
        await runner.setup()
        server = runner.server
        assert server is not None, "it is set up"

        def connected() -> asyncio.BaseProtocol:
            handler = server()
            self._connections[handler] = (time.monotonic(), 0)
            return handler

        listener = await asyncio.get_running_loop().create_server(connected, sock=listening, ssl=tls)
        sweeping = asyncio.create_task(self._sweep(server), name="connections of the page")
        try:
            yield
        finally:
            sweeping.cancel()
            self.live.stop()
            listener.close()
            await runner.cleanup()

    async def _sweep(self, server: web.Server) -> None:
        """Closes connections that send no request, and the oldest idle ones if there are too many."""
        while True:
            await asyncio.sleep(1.0)
            now, open_ = time.monotonic(), set(server.connections)
            self._connections = {each: found for each, found in self._connections.items() if each in open_}
            idle = [(since, each) for each, (since, running) in self._connections.items() if not running]
            idle.sort(key=lambda found: found[0])
            excess = len(self._connections) - MAX_CONNECTIONS
            for number, (since, each) in enumerate(idle):
                if number < excess or now - since > max(TIMEOUT, KEEP_ALIVE):
                    each.force_close()

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        _, running = self._connections.get(request.protocol, (0.0, 0))
        self._connections[request.protocol] = (time.monotonic(), running + 1)
        try:
            answer = await self._answer(request, handler)
        finally:
            self._connections[request.protocol] = (time.monotonic(), running)
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.method not in {"GET", "HEAD"}:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is allowed", Allow="GET, HEAD")
        if len(self._connections) > MAX_CONNECTIONS:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
        if (refused := await self.guard.admit(request)) is not None:
            return refused
        try:
            return await handler(request)
        except web.HTTPException as error:
            return self._problem(error.status, error.reason)
        except NotFound as error:
            return self._problem(404, str(error))
        except RuleopError as error:
            return self._problem(502, str(error))
        except Exception:
            log.exception("request failed with an internal error", path=request.path)
            return self._problem(500, "internal error; see the log")

    def _problem(self, status: int, message: str) -> web.Response:
        return web.Response(
            status=status, text=self.templates.whole(problem(status, message), ""), content_type="text/html"
        )

    # -- answers -------------------------------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.Response:
        page = await self._found(request.rel_url)
        text = self.templates.whole(page, str(request.rel_url))
        return web.Response(text=text, content_type="text/html")

    async def _found(self, url: URL) -> Page:
        """Raises NotFound and RuleopError."""
        if (make := PAGES.get(url.path)) is None:
            raise NotFound(f"there is no page {url.path}")
        return await make(self.source, url.query)

    async def _fragment(self, url: str) -> PageFragment:
        try:
            page = await self._found(URL(url))
        except (NotFound, RuleopError) as error:
            return PageFragment(
                self.templates.fragment(problem(404 if isinstance(error, NotFound) else 502, str(error)))
            )
        return PageFragment(self.templates.fragment(page), page.about, page.label)

    async def _static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._files:
            raise NotFound(f"there is no file {name}")
        return web.Response(body=self._files[name], content_type=STATIC[name], charset="utf-8")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """The changing part of a page after each change."""
        url = request.query.get("page", "")
        if url.partition("?")[0] not in PAGES:
            raise NotFound("there is no such page")
        try:
            viewer = self.live.join(url)
        except TooManyViewers:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many viewers", **{"Retry-After": "30"})
        try:
            return await self._send(request, viewer.next)
        finally:
            self.live.leave(url, viewer)

    async def _send(self, request: web.Request, following: Callable[[], Awaitable[str]]) -> web.StreamResponse:
        stream = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(b"retry: 2000\n\n")
        end = time.monotonic() + LIFETIME
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < end:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        html = await following()
                except TimeoutError:
                    await stream.write(b": still here\n\n")
                    continue
                lines = "".join(f"data: {line}\n" for line in html.split("\n"))
                await stream.write(f"event: page\n{lines}\n".encode())
        return stream


# -- where it is served ------------------------------------------------------------------------------------------------

PATH: Final = "/page"  # that a user must be permitted to get
SHARE: Final = 0.01  # of the time of the operator's loop, for the live parts of all pages
SHARE_OF_DEV: Final = 0.2


class DevPage:
    """The page of a session of `ruleop dev`. It has its port and its token before the operator runs."""

    def __init__(self, port: int = 0) -> None:
        """Raises RuleopError if the port is in use."""
        self.server: PageServer | None = None  # while it is served
        self._listening = _bound(f"127.0.0.1:{port}")
        found: int = self._listening.getsockname()[1]
        self.guard = TokenGuard(found)
        self.url = f"http://127.0.0.1:{found}/?token={self.guard.token}"

    def close(self) -> None:
        self._listening.close()

    @contextlib.asynccontextmanager
    async def serve(self, manager: Manager) -> AsyncIterator[None]:
        server = PageServer(manager, self.guard, share=SHARE_OF_DEV)
        async with server.serving(self._listening):
            self.server = server
            yield


@contextlib.asynccontextmanager
async def operator_page(address: str, manager: Manager) -> AsyncIterator[PageServer]:
    """The page at an address, `host:port` or `:port`, with the certificate and the authorization of /metrics. Raises
    RuleopError."""
    options = manager.options
    review = reviewed_by(manager.server.client, PATH) if options.metrics_auth else None
    tls = _context(ServerCertificate(*options.metrics_certificate)) if options.metrics_certificate else None
    listening = _bound(address)
    hosts = hosts_of(listening.getsockname()[1]) if is_loopback(address) else frozenset[str]()
    server = PageServer(manager, ReviewGuard(review, hosts), share=SHARE)
    async with server.serving(listening, tls):
        log.info("page served", address=address)
        yield server


def _bound(address: str) -> socket.socket:
    """Raises RuleopError."""
    host, port = split_address(address)
    try:
        family, resolved = resolve(host, port)
        made = socket.socket(family)
    except (OSError, UnicodeError) as error:
        raise not_listening(address, host, error) from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(resolved[0] != "::"))
        made.bind(resolved)
    except OSError as error:
        made.close()
        raise not_listening(address, host, error) from error
    return made


def _context(certificate: ServerCertificate) -> ssl.SSLContext:
    """A context that takes the certificate of the moment for each handshake."""
    outer = certificate.context()
    outer.sni_callback = partial(_chosen, certificate)  # also called for a client that names no server
    return outer


def _chosen(certificate: ServerCertificate, connection: ssl.SSLObject, _name: str | None, _outer: object) -> None:
    connection.context = certificate.context()
