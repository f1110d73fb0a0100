"""The text of `/metrics`: worked out at most once a second, by one thread at a time.

Any client that reaches the port can ask as often as it likes. So a text is kept for a second, in each format and
compressed, and a request for some metrics by name is answered from its parts.
"""

from __future__ import annotations

import gzip
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from prometheus_client import exposition as plain
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

    from prometheus_client.core import Metric

KEPT = 1.0  # seconds; a scraper asks twice a minute
PATIENCE = 10.0  # seconds that a request waits while another one works the text out
_OPENMETRICS = "application/openmetrics-text"
_END = b"# EOF\n"  # of a text in OpenMetrics


@dataclass(frozen=True, slots=True)
class _Page:
    """The metrics in one format."""

    content_type: str
    parts: list[tuple[frozenset[str], bytes]]  # a metric's name and those of its samples, and its text
    end: bytes
    whole: bytes
    compressed: bytes

    def chosen(self, names: Iterable[str]) -> bytes:
        requested = frozenset(names)
        return b"".join([*(text for known, text in self.parts if known & requested), self.end])


class _Family(Collector):
    """One metric, for the formatters of the library."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        yield self._metric


class Exposition:
    """A WSGI application. Raises TimeoutError if the metrics cannot be read in time."""

    def __init__(self, registry: Collector, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._lock = threading.Lock()
        self._families: list[Metric] = []
        self._pages: dict[bool, _Page] = {}
        self._until = clock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        page = self._page(in_openmetrics=_accepts_openmetrics(environ.get("HTTP_ACCEPT", "")))
        headers = [("Content-Type", page.content_type)]
        if names := parse_qs(environ.get("QUERY_STRING", "")).get("name[]"):
            body = page.chosen(names)
        elif plain.gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING", "")):
            body = page.compressed
            headers.append(("Content-Encoding", "gzip"))
        else:
            body = page.whole
        start_response(f"{HTTPStatus.OK.value} {HTTPStatus.OK.phrase}", [*headers, ("Content-Length", str(len(body)))])
        return [body]

    def _page(self, *, in_openmetrics: bool) -> _Page:
        if not self._lock.acquire(timeout=PATIENCE):
            raise TimeoutError
        try:
            if self._clock() >= self._until:
                self._families, self._pages = list(self._registry.collect()), {}
                self._until = self._clock() + KEPT
            if in_openmetrics not in self._pages:
                self._pages[in_openmetrics] = _format(self._families, in_openmetrics=in_openmetrics)
            return self._pages[in_openmetrics]
        finally:
            self._lock.release()


def _format(families: Iterable[Metric], *, in_openmetrics: bool) -> _Page:
    parts = [
        (frozenset({family.name, *(sample.name for sample in family.samples)}), _text(family, in_openmetrics))
        for family in families
    ]
    end = _END if in_openmetrics else b""
    whole = b"".join([*(text for _, text in parts), end])
    content_type = openmetrics.CONTENT_TYPE_LATEST if in_openmetrics else plain.CONTENT_TYPE_PLAIN_0_0_4
    return _Page(content_type, parts, end, whole, gzip.compress(whole, compresslevel=5))


def _text(family: Metric, in_openmetrics: bool) -> bytes:
    if in_openmetrics:
        text: bytes = openmetrics.generate_latest(_Family(family))  # type: ignore[no-untyped-call]
        return text.removesuffix(_END)
    return plain.generate_latest(_Family(family))


def _accepts_openmetrics(accept: str) -> bool:
    """In its version 1; a client that knows only a draft gets plain text."""
    kinds = (each.partition(";") for each in accept.split(","))
    return any(kind.strip() == _OPENMETRICS and "version=0." not in settings for kind, _, settings in kinds)
