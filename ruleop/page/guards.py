"""Guards of the page.

Beside `ruleop dev`, a client needs the token of the URL that was printed, which no other site can guess. In the
operator, it needs a bearer token of a user who may `get` the path `/page`, which a browser asks for as a password; on a
loopback address, it only has to reach it, as by `kubectl port-forward`.

On a loopback address the Host header must name this machine, so that a name that another site lets point here (DNS
rebinding) is of no use to it; and a request that another site makes a browser send is refused.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
MAX_AT_ONCE: Final = 8  # requests whose token is reviewed


class RequestGuard(Protocol):
    async def admit(self, request: web.Request) -> web.StreamResponse | None:
        """None: the request is answered. Otherwise the answer in place of the page."""
        ...


def refusal(status: HTTPStatus, text: str, **headers: str) -> web.Response:
    return web.Response(status=status.value, text=f"{text}\n", headers=headers)


def of_another_site(request: web.Request, hosts: frozenset[str]) -> web.Response | None:
    """The refusal of a request that does not come from this page. `hosts`: the names of this server; empty: any."""
    host = request.headers.get("Host", "")
    if hosts and host not in hosts:
        return refusal(HTTPStatus.FORBIDDEN, "the Host header does not name this machine")
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != host:
        return refusal(HTTPStatus.FORBIDDEN, "the request comes from another site")
    if request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"} and not _is_navigation(request):
        return refusal(HTTPStatus.FORBIDDEN, "the request comes from another site")
    return None


def _is_navigation(request: web.Request) -> bool:
    """Whether a person followed a link: then no other site can read the answer."""
    headers = request.headers
    return headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"


def hosts_of(port: int) -> frozenset[str]:
    return frozenset(f"{name}:{port}" for name in LOOPBACK)


class TokenGuard:
    """Admits clients with the token: in the URL, then in a cookie that no script can read and no other site send."""

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(24)
        self.hosts = hosts_of(port)
        self.cookie = f"ruleop-page-{port}"  # cookies are shared by all ports of a machine

    async def admit(self, request: web.Request) -> web.StreamResponse | None:
        if (refused := of_another_site(request, self.hosts)) is not None:
            return refused
        if self._is_right(request.query.get("token", "")):
            rest = {name: value for name, value in request.query.items() if name != "token"}
            headers = {"Location": str(request.rel_url.with_query(rest))}
            answer = web.Response(status=HTTPStatus.FOUND.value, headers=headers)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
            return answer
        if self._is_right(request.cookies.get(self.cookie, "")):
            return None
        return refusal(HTTPStatus.UNAUTHORIZED, "open the URL that ruleop dev printed; it has a token")

    def _is_right(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())


class ReviewGuard:
    """Admits clients with a token that the cluster reviews; without a review, all that reach the address."""

    def __init__(self, review: Callable[[str], HTTPStatus] | None, hosts: frozenset[str]) -> None:
        """`hosts`: the names of a loopback address; empty: any name is right."""
        self.review, self.hosts = review, hosts
        self._reviews = asyncio.Semaphore(MAX_AT_ONCE)

    async def admit(self, request: web.Request) -> web.StreamResponse | None:
        if (refused := of_another_site(request, self.hosts)) is not None:
            return refused
        if self.review is None:
            return None
        header = _as_bearer(request.headers.get("Authorization", ""))
        if self._reviews.locked():
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at once")
        async with self._reviews:
            status = await asyncio.to_thread(self.review, header)
        if status is HTTPStatus.OK:
            return None
        if status is HTTPStatus.UNAUTHORIZED:
            text = "a token is needed: as a bearer token, or as the password of any user name"
            return refusal(status, text, **{"WWW-Authenticate": 'Basic realm="ruleop: the password is a token"'})
        return refusal(status, status.phrase.lower())


def _as_bearer(header: str) -> str:
    """A browser has no field for a token, but one for a password."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return header
    try:
        decoded = base64.b64decode(value.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return f"Bearer {decoded.partition(':')[2]}"
