"""The API with the faults that a test asks for: errors, delays, lost responses, watches that lie or fall silent.

A fault names the requests that it concerns, and how often it happens. `LocalCluster.faults` holds the active ones.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ruleop.errors import RuleopError
from ruleop.kubernetes.schema import validate
from ruleop.localcluster.api.requests import parse_route, parse_timeout, verb_of
from ruleop.localcluster.api.responses import refusal
from ruleop.localcluster.http import Disconnect, LaterResponse, ResponseStream
from ruleop.localcluster.status_errors import Rejected
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.localcluster.api.api import Api
    from ruleop.localcluster.api.requests import Route
    from ruleop.localcluster.http import AnyResponse, Request, ResponseSink


class Effect(Enum):
    """The effect of a fault on a request, or on the events of a watch."""

    ERROR = "error"  # it is answered with `status`, and not carried out
    LOSE_REQUEST = "lose-request"  # the connection ends before it is carried out
    LOSE_ANSWER = "lose-answer"  # it is carried out, and then the connection ends
    DELAY = "delay"  # it is answered after `seconds`
    STALE = "stale"  # a read is answered with the state of some writes ago
    DROP_EVENTS = "drop-events"  # events of a watch do not arrive
    DUPLICATE_EVENTS = "duplicate-events"  # each arrives twice
    DELAY_EVENTS = "delay-events"  # each arrives after `seconds`
    FREEZE = "freeze"  # a watch stays open and falls silent
    CLOSE = "close"  # a watch ends in the middle


VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
OF_WATCHES: Final = frozenset(
    {Effect.DROP_EVENTS, Effect.DUPLICATE_EVENTS, Effect.DELAY_EVENTS, Effect.FREEZE, Effect.CLOSE}
)


@dataclass(frozen=True, slots=True)
class Fault:
    effect: Effect
    verbs: tuple[str, ...] = ()  # of VERBS; empty: all
    resources: tuple[str, ...] = ()  # plurals, with a subresource after a slash; empty: all
    namespace: str = ""
    name: str = ""
    times: int | None = None  # how often it happens; None: each time
    after: int = 0  # how many requests or events that it concerns pass before
    status: int = 500
    retry_after: int | None = None
    seconds: float = 0.0

    @classmethod
    def parse(cls, document: Any) -> Fault:
        """A fault of a file. Raises RuleopError."""
        if problems := validate(document, _FORM):
            raise RuleopError("; ".join(map(str, problems)))
        values: dict[str, Any] = {name.replace("-", "_"): _read(value) for name, value in document.items()}
        return cls(**{**values, "effect": Effect(document["effect"])})

    def concerns(self, verb: str, resource: str, namespace: str, name: str) -> bool:
        return (
            (not self.verbs or verb in self.verbs)
            and (not self.resources or resource in self.resources)
            and (not self.namespace or namespace == self.namespace)
            and (not self.name or name == self.name)
        )


def _read(value: Any) -> Any:
    """To a schema, 503.0 is an integer."""
    if isinstance(value, list):
        return tuple(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


_COUNT: Final = {"type": "integer", "minimum": 0}
_FORM: Final = {
    "type": "object",
    "required": ["effect"],
    "additionalProperties": False,
    "properties": {
        "effect": {"type": "string", "enum": [each.value for each in Effect]},
        "verbs": {"type": "array", "items": {"type": "string", "enum": VERBS}},
        "resources": {"type": "array", "items": {"type": "string"}},
        "namespace": {"type": "string"},
        "name": {"type": "string"},
        "times": {**_COUNT, "nullable": True},
        "after": _COUNT,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "retry-after": {**_COUNT, "nullable": True},
        "seconds": {"type": "number", "minimum": 0, "maximum": 86400},
    },
}
"""The schema of a fault in a file."""


@dataclass(slots=True)
class _Active:
    fault: Fault
    passed: int = 0
    happened: int = 0


@dataclass(slots=True)
class Faults:
    """The faults that are active. Any thread may add and remove them."""

    _active: list[_Active] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *faults: Fault) -> None:
        with self._lock:
            self._active += [_Active(each) for each in faults]

    @property
    def active(self) -> bool:
        return bool(self._active)

    def clear(self) -> None:
        with self._lock:
            self._active.clear()

    def happened(self, effect: Effect) -> int:
        """The number of times that this effect has happened to requests and events since the faults were cleared."""
        with self._lock:
            return sum(each.happened for each in self._active if each.fault.effect is effect)

    def next(self, verb: str, resource: str, namespace: str, name: str, effects: Iterable[Effect]) -> Fault | None:
        """The fault of these effects that happens to a request or an event; None if it is spared."""
        among = frozenset(effects)
        with self._lock:
            for each in self._active:
                fault = each.fault
                if fault.effect not in among or not fault.concerns(verb, resource, namespace, name):
                    continue
                if each.passed < fault.after:
                    each.passed += 1
                elif fault.times is None or each.happened < fault.times:
                    each.happened += 1
                    return fault
        return None


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
            problem = "Timeout: request did not complete within the allotted timeout"
            return LaterResponse(limit, lambda: refusal(Rejected(504, "Timeout", problem)))
        return LaterResponse(seconds, lambda: self._watched(self.api.handle(request), verb, route))

    def _next(self, verb: str, route: Route, effects: frozenset[Effect]) -> Fault | None:
        resource = f"{route.plural}/{route.subresource}" if route.subresource else route.plural
        return self.faults.next(verb, resource, route.namespace, route.name, effects)

    def _watched(self, response: AnyResponse, verb: str, route: Route) -> AnyResponse:
        if verb != "watch" or not isinstance(response, ResponseStream):
            return response

        def start(sink: ResponseSink) -> Callable[[], None]:
            return response.start(_FaultySink(sink, lambda: self._next("watch", route, OF_WATCHES)))

        return ResponseStream(start, response.content_type, response.headers)


class _FaultySink:
    """The sink of a watch that applies faults to its events."""

    def __init__(self, sink: ResponseSink, next_fault: Callable[[], Fault | None]) -> None:
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
