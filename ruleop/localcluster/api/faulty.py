"""The API with the faults that a test asked for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ruleop.localcluster.api.requests.timeouts import TIMED_OUT, parse_timeout
from ruleop.localcluster.api.responses import refusal
from ruleop.localcluster.api.route import parse_route
from ruleop.localcluster.api.verbs import verb_of
from ruleop.localcluster.http.message import Disconnect, Later, Stream
from ruleop.localcluster.injected_faults import OF_WATCHES, Effect, Fault, Faults
from ruleop.localcluster.status_errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.localcluster.api.api import Api
    from ruleop.localcluster.api.route import Route
    from ruleop.localcluster.http.message import AnyResponse, Request, Sink

OF_REQUESTS: Final = frozenset(Effect) - OF_WATCHES
STALE_BY: Final = 10  # writes
_REASONS: Final = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class FaultyApi:
    def __init__(self, api: Api, faults: Faults) -> None:
        self.api, self.faults = api, faults

    def handle(self, request: Request) -> AnyResponse:
        if not self.faults.active or (route := parse_route(request.path)) is None:
            return self.api.handle(request)
        verb = verb_of(request, route)
        fault = self._next(verb, route, OF_REQUESTS)
        if fault is None:
            return self._watched(self.api.handle(request), verb, route)
        if fault.effect is Effect.ERROR:
            return refusal(_error(fault))
        if fault.effect is Effect.LOSE_REQUEST:
            return Disconnect()
        if fault.effect is Effect.STALE:
            return self.api.handle(request, max(1, self.api.store.version - STALE_BY))
        if fault.effect is Effect.DELAY:
            return self._delayed(request, verb, route, fault.seconds)
        self.api.handle(request)
        return Disconnect()  # the response is lost

    def _delayed(self, request: Request, verb: str, route: Route, seconds: float) -> AnyResponse:
        """A request is not carried out if its client does not wait for long enough."""
        try:
            limit = parse_timeout(request.query) if verb != "watch" else seconds
        except Rejected as error:
            return refusal(error)
        if seconds > limit:
            return Later(limit, lambda: TIMED_OUT)
        return Later(seconds, lambda: self._watched(self.api.handle(request), verb, route))

    def _next(self, verb: str, route: Route, effects: frozenset[Effect]) -> Fault | None:
        resource = f"{route.plural}/{route.subresource}" if route.subresource else route.plural
        return self.faults.next(verb, resource, route.namespace, route.name, effects)

    def _watched(self, response: AnyResponse, verb: str, route: Route) -> AnyResponse:
        if verb != "watch" or not isinstance(response, Stream):
            return response

        def start(sink: Sink) -> Callable[[], None]:
            return response.start(_FaultySink(sink, lambda: self._next("watch", route, OF_WATCHES)))

        return Stream(start, response.content_type, response.headers)


class _FaultySink:
    """The sink of a watch that applies faults to its events."""

    def __init__(self, sink: Sink, next_fault: Callable[[], Fault | None]) -> None:
        self.sink, self.next_fault = sink, next_fault
        self._frozen = False

    @property
    def is_behind(self) -> bool:
        return self.sink.is_behind

    def send(self, data: bytes) -> None:
        if self._frozen:
            return
        fault = self.next_fault()
        effect = fault.effect if fault is not None else None
        if effect is Effect.CLOSE:
            self.sink.abort()
        elif effect is Effect.FREEZE:
            self._frozen = True
        elif effect is Effect.DELAY_EVENTS and fault is not None:
            asyncio.get_running_loop().call_later(fault.seconds, self.sink.send, data)
        elif effect is not Effect.DROP_EVENTS:
            self.sink.send(data)
            if effect is Effect.DUPLICATE_EVENTS:
                self.sink.send(data)

    def end(self) -> None:
        if not self._frozen:
            self.sink.end()

    def abort(self) -> None:
        self.sink.abort()


def _error(fault: Fault) -> Rejected:
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
    details = {"retryAfterSeconds": fault.retry_after} if fault.retry_after is not None else {}
    reason = _REASONS.get(fault.status, "InternalError")
    return Rejected(fault.status, reason, f"a fault that was asked for: {reason}", details, headers)
