"""A request, and what may be answered to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

JSON_TYPE: Final = "application/json"
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # decoded
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""
    user: str = ""  # who sent it, once that is known


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)


class ResponseSink(Protocol):
    """Where a stream sends its parts."""

    def send(self, data: bytes) -> None: ...
    def end(self) -> None:
        """Ends the stream in order."""
        ...

    def abort(self) -> None:
        """Closes the connection in the middle of the stream."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether the client reads more slowly than the stream sends."""
        ...


@dataclass(frozen=True, slots=True)
class ResponseStream:
    """A response without an end that is known in advance. `start` begins it and returns what stops it when the client
    is gone."""

    start: Callable[[ResponseSink], Callable[[], None]]
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)


@dataclass(frozen=True, slots=True)
class LaterResponse:
    """A response that is worked out after some seconds."""

    seconds: float
    response: Callable[[], AnyResponse]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """No response: the connection is closed."""


AnyResponse: TypeAlias = Response | ResponseStream | LaterResponse | Disconnect
Handler: TypeAlias = Callable[[Request], AnyResponse]
