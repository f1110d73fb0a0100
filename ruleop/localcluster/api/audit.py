"""The requests that a cluster has answered, for tests that count what a client asks for.

The users of requests: names for tokens. Every user may do everything; the names tell the requests of several clients
apart.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import orjson

from ruleop.localcluster.api.requests import Route, parse_route, verb_of
from ruleop.localcluster.http import Response, ResponseStream
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.localcluster.http import AnyResponse, Request

LOCAL_ADMIN: Final = "local-admin"


@dataclass(slots=True)
class Users:
    """The users of one cluster by their tokens. Any thread may add some."""

    by_token: dict[str, str] = field(default_factory=dict)

    def token_for(self, name: str) -> str:
        """The token of a user, who is added if there is none of that name."""
        known = next((token for token, user in self.by_token.items() if user == name), None)
        return known if known is not None else self.add(name, secrets.token_urlsafe(24))

    def add(self, name: str, token: str) -> str:
        self.by_token = {**self.by_token, token: name}
        return token

    def name_of(self, token: str) -> str | None:
        given, found = token.encode(), None
        for known, name in self.by_token.items():  # all of them, so that the time tells nothing
            if secrets.compare_digest(given, known.encode()):
                found = name
        return found


_NOWHERE: Final = Route("", "", "", "")


@dataclass(frozen=True, slots=True)
class Audited:
    """A request. Those that name no resource, such as /version, have a method for verb and an empty resource."""

    time: float  # when it was answered, or a watch began
    user: str
    user_agent: str
    verb: str
    uri: str
    group: str
    resource: str
    namespace: str
    name: str  # that of the new object, where one was created
    subresource: str
    status: int  # 0 if it got no response, or gets one later


@dataclass(slots=True)
class Audit:
    """`enabled` starts it: a cluster that is not asked to remembers nothing."""

    enabled: bool = False
    entries: list[Audited] = field(default_factory=list)

    def record(self, request: Request, response: AnyResponse) -> None:
        route = parse_route(request.path)
        where = route or _NOWHERE
        name = where.name or (_created(response) if request.method == "POST" else "")
        uri = quote(request.path) + (f"?{urlencode(request.query)}" if request.query else "")
        verb = verb_of(request, route) if route is not None else request.method.lower()
        status = (
            response.status if isinstance(response, Response) else 200 if isinstance(response, ResponseStream) else 0
        )
        self.entries.append(
            Audited(
                time.time(),
                request.user,
                request.headers.get("user-agent", ""),
                verb,
                uri,
                where.group,
                where.plural,
                where.namespace or (name if where.plural == "namespaces" else ""),
                name,
                where.subresource,
                status,
            )
        )


def _created(response: AnyResponse) -> str:
    if not isinstance(response, Response) or response.status >= 300:
        return ""
    try:
        document = orjson.loads(response.body)
    except orjson.JSONDecodeError:  # a table, or YAML
        return ""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
