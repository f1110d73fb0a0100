"""Serves the page of an operator: on loopback beside `ruleop dev`, or at an address of `ruleop run`."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from ruleop.operator.telemetry import (
    Authorizer,
    ServerCertificate,
    is_loopback,
    not_listening,
    resolve,
    review,
    run_on_loop,
    split_address,
)
from ruleop.page.guards import ReviewGuard, TokenGuard, hosts_of
from ruleop.page.page_server import PageServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from ruleop.operator.manager.manager import Manager

PATH: Final = "/page"  # that a user must be permitted to get
SHARE: Final = 0.01  # of the time of the operator's loop, for the live parts of all pages
SHARE_OF_DEV: Final = 0.2

log = structlog.get_logger(__name__)


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
    options, loop = manager.options, asyncio.get_running_loop()
    authorizer = None
    if options.metrics_auth:
        authorizer = Authorizer(lambda token: run_on_loop(loop, review(manager.server.client, PATH, token)))
    tls = _context(ServerCertificate(*options.metrics_certificate)) if options.metrics_certificate else None
    listening = _bound(address)
    hosts = hosts_of(listening.getsockname()[1]) if is_loopback(address) else frozenset[str]()
    server = PageServer(manager, ReviewGuard(authorizer, hosts), share=SHARE)
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
