"""Follows a collection of the API server: lists it, then watches it. A state machine without I/O.

The driver asks `next` for a step, carries it out, and reports its outcome. The reflector is in one of four phases:

    LISTING    pages of objects are requested; the sink sees none of them before the last page has arrived
    STREAMING  a streaming list: the objects arrive as events, in no order, up to the bookmark that ends them.
               A server that ends the stream without that bookmark is not asked for one again: some never send it
    WATCHING   changes arrive, in the order in which they happened
    RESTING    backs off before the next attempt; a list restarts, a watch resumes at its last version

Invariants, whatever the server and the network do:

- No deletion is lost. After a gap that the server cannot fill (410), a list replaces everything that was known.
- Nothing goes back in time. Lists are consistent reads; lists and events older than what was seen are rejected.
- A silent stream is detected. The server ends a watch after a time that the reflector chooses, bookmarks arrive every
  minute, and both have a deadline.
- An API server that comes back is not overloaded. Only a gap causes a list, and waits grow and are jittered.
- A missing permission or kind is a state. It is retried with growing waits and stops nothing else.
"""

from __future__ import annotations

import random
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import orjson

from ruleop.kubernetes.kinds import parse_version
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.json_depth import TooManyValuesError, fold, parse_json
from ruleop.operator.wire.client.server_errors import ApiError, Problem, status_error, too_many_values
from ruleop.operator.wire.watch.store import StoreState
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.operator.wire.client.requests import ObjectSource
    from ruleop.operator.wire.http.connection import PreparedRequest

# The server ends a watch after this long (less some jitter, so that thirty watches do not end together). Load balancers
# drop idle connections after 240 s at the earliest; bookmarks, one a minute, keep them in use.
WATCH_SECONDS = 290
# How late the server's close may be before the stream counts as dead.
CLOSE_MARGIN = 10.0
# Once a stream has had a bookmark, it has one each minute; a busy server may be late. This applies from the first
# bookmark on: for an idle kind it can take two minutes, and the bookmark that ends a streaming list is not one of
# these.
SILENCE = 90.0
# Between two objects of a streaming list. The server may have to bring its cache up to date first.
STREAMING_SILENCE = 60.0
STUMBLES = 3  # retries of a streaming list that the server answers with 500 or 501
PAGE = 500
SMALLER = 10  # a page that is larger than the client reads is followed by one with this fraction of its objects
FIRST_WAIT, LONGEST_WAIT = 0.8, 30.0
# The CRD announces when a kind is served; this is for operators without permission to watch CRDs.
LONGEST_UNSERVED_WAIT = 300.0
HEALTHY = 120.0  # a stream that lasted this long resets the backoff
SHORT = 1.0  # a watch that ended sooner without an event is a failure; without a backoff it would be reopened in a loop
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Phase(Enum):
    LISTING = "listing"
    STREAMING = "streaming"
    WATCHING = "watching"
    RESTING = "resting"


class Sink(Protocol):
    """Receives the objects. `Store` is one."""

    def begin_list(self) -> None: ...
    def list_object(self, obj: dict[str, Any]) -> None: ...
    def remove_listed(self, obj: dict[str, Any]) -> None: ...
    def end_list(self, version: int) -> None: ...
    def apply(self, obj: dict[str, Any]) -> None: ...
    def delete(self, obj: dict[str, Any]) -> None: ...
    def skip_unreadable(self, obj: dict[str, Any], problem: str) -> None: ...
    def bookmark(self, version: int) -> None: ...
    def set_state(self, state: StoreState, problem: str = "") -> None: ...
    def set_problem(self, problem: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send this request and pass the response to `page`."""

    request: PreparedRequest


@dataclass(frozen=True, slots=True)
class Follow:
    """Open this stream, call `opened`, and pass its lines to `lines` while `reading`."""

    request: PreparedRequest


@dataclass(frozen=True, slots=True)
class Rest:
    until: float


Step: TypeAlias = Fetch | Follow | Rest


class Reflector:
    """Call `failed` after a failed step, `closed` at the end of a stream, and `silent` when `deadline` passes in
    silence.

    `page` and `lines` raise ApiError for an invalid response; pass it to `failed` like any other.
    """

    def __init__(
        self, source: ObjectSource, sink: Sink, *, chance: Callable[[], float] = random.random, highest: int = 0
    ) -> None:
        self.source = source
        self.phase = Phase.RESTING
        self.last_response_at: float | None = None  # when the server last answered, for readiness
        self.lists = 0  # lists started: one, if there is no gap
        self.lists_done = 0
        self._sink = sink
        self._chance = chance
        self._can_stream = True
        self._version = 0  # the watch resumes from here; 0: list first
        self._highest = highest  # the newest version seen; a list must not be older
        self._listed = False  # at least once, so that a resumed watch makes it synced again
        self._token = ""
        self._list_version = 0
        self._page_size = PAGE
        self._failures = 0
        self._not_before = 0.0
        self._opened_at = 0.0
        self._open = False
        self._streamed_at = 0.0  # when the last object of a streaming list came
        self._seconds = WATCH_SECONDS
        self._bookmarked = False
        self._eventful = False
        self._outdated = False  # what is known was read by an old schema

    def next(self, now: float) -> Step:
        if now < self._not_before:
            self.phase = Phase.RESTING
            return Rest(self._not_before)
        if self._outdated:
            self._outdated = False
            self._restart()
        self._opened_at, self._open = now, False
        self._seconds = int(WATCH_SECONDS * (0.8 + 0.2 * self._chance()))
        if self._version:
            self.phase = Phase.WATCHING
            return Follow(requests.watch(self.source, version=str(self._version), seconds=self._seconds))
        if self._can_stream:
            self.phase = Phase.STREAMING
            self._begin_list()
            return Follow(requests.watch(self.source, version="", seconds=self._seconds))
        self.phase = Phase.LISTING
        if not self._token:
            self._begin_list()
        return Fetch(requests.list_page(self.source, limit=self._page_size, token=self._token))

    @property
    def reading(self) -> bool:
        """Whether lines of the open stream still count."""
        return self.phase is Phase.WATCHING or self.phase is Phase.STREAMING

    @property
    def deadline(self) -> float:
        """When the open stream counts as dead, unless something arrives."""
        if self.phase is Phase.STREAMING:
            return max(self._opened_at, self._streamed_at) + STREAMING_SILENCE  # bookmarks do not count
        heard = self.last_response_at if self.last_response_at is not None else self._opened_at
        end = self._opened_at + self._seconds + CLOSE_MARGIN
        return min(end, heard + SILENCE) if self._bookmarked else end

    def overdue(self, now: float) -> bool:
        """Whether the server's next sign of life is overdue: on an open stream by its deadline, else after the time
        between two bookmarks."""
        if self.last_response_at is None:
            return False
        is_open = self.reading and self.last_response_at >= self._opened_at
        return now > (self.deadline if is_open else self.last_response_at + SILENCE)

    def wake(self, now: float) -> None:
        """Retry now: the CRD was established, or a permission was granted."""
        self._not_before = min(self._not_before, now)

    def list_again(self) -> None:
        """Restarts with a list, without a gap: the objects read differently, as the schema of their kind has changed.
        The open stream does not count any more."""
        self._outdated = True
        if self.reading:
            self.phase = Phase.RESTING

    # Outcomes of a step

    def opened(self, now: float) -> None:
        self._opened_at = self.last_response_at = now
        self._open = True
        self._bookmarked = self._eventful = False
        if self.phase is Phase.WATCHING and self._listed:
            self._sink.set_state(StoreState.SYNCED)

    def page(self, body: bytes, now: float) -> None:
        self.last_response_at = now
        try:
            document, objects = _parse_list(body)
            metadata = document.get("metadata") or {}
            if not self._token:
                self._list_version = parse_version(metadata.get("resourceVersion"))
                if self._is_older(self._list_version, now):
                    return
            for obj, problem in objects:
                self._pass_on(self._sink.list_object, obj, problem)
        except TooManyValuesError as error:
            raise too_many_values(error, "list", str(self.source)) from None
        except (orjson.JSONDecodeError, AttributeError, LookupError, TypeError) as error:
            self._restart()
            raise self._invalid_response("list", "the answer is not a list", error) from None
        self._token = metadata.get("continue") or ""
        if not self._token:
            self._end_list(self._list_version)
            self._failures = 0

    def lines(self, lines: Iterable[bytes], now: float) -> None:
        self.last_response_at = now
        for line in lines:
            if not self.reading:
                return  # nothing counts after an ERROR event
            try:
                kind, obj, problem = _parse_event(line)
                self._event(kind, obj, problem, now)
            except (orjson.JSONDecodeError, TooManyValuesError, LookupError, TypeError, AttributeError) as error:
                # Half a line, or a proxy's page. The next watch brings the event again.
                raise self._invalid_response("watch", "a line is not an event", error) from None
        if self.phase is Phase.STREAMING:
            self.silent(now)  # bookmarks are no progress
        elif self.reading and now >= self.deadline:
            self.closed(now)  # the server should have ended the stream

    def _invalid_response(self, verb: str, what: str, error: Exception) -> ApiError:
        text = f"{what} ({type(error).__name__}: {error})"
        return ApiError(Problem.SERVER, verb=verb, resource=str(self.source), text=text, status=200)

    def closed(self, now: float) -> None:
        """The stream ended. That is normal unless it was too short."""
        if not self.reading:
            return  # the reflector had ended it before
        lasted = now - self._opened_at
        if self.phase is Phase.STREAMING or (lasted < SHORT and not self._eventful):
            self._rest(now, problem=f"watch {self.source}: the stream ended after {lasted:.1f} s")
            return
        if lasted >= HEALTHY:
            self._failures = 0
        self.last_response_at = now
        self.phase = Phase.RESTING

    def silent(self, now: float) -> None:
        if now >= self.deadline and self.reading:
            if self.phase is Phase.STREAMING:
                what, since = "neither an object nor the end of the list", self.deadline - STREAMING_SILENCE
            else:
                what, since = "no event", self.last_response_at or self._opened_at
            self._rest(now, problem=f"watch {self.source}: {what} received for {now - since:.0f} s")

    def failed(self, error: ApiError, now: float) -> None:
        """A request or a stream failed. The reaction depends on the error, never on how often it happened."""
        problem = error.problem
        if problem is Problem.FORBIDDEN:
            self._sink.set_state(StoreState.FORBIDDEN, str(error))
            self._rest(now, problem=str(error))
        elif problem is Problem.NOT_FOUND:
            self._restart()
            self._sink.set_state(StoreState.UNSERVED, str(error))
            self._rest(now, problem=str(error), longest=LONGEST_UNSERVED_WAIT)
        elif problem is Problem.GONE and self._token:
            # The pages took longer than the server keeps a version. A list in one page is heavier and cannot expire.
            self._restart(page_size=0)
            self._rest(now, problem=str(error))
        elif problem is Problem.TOO_LARGE and self.phase is Phase.LISTING and self._page_size != 1:
            self._restart(page_size=max(1, self._page_size // SMALLER) if self._page_size else PAGE)
            self.phase = Phase.RESTING
        elif self.phase is Phase.STREAMING and problem in {Problem.INVALID, Problem.UNSUPPORTED}:
            self._can_stream = False  # an older or an aggregated server
            self.phase = Phase.RESTING
        elif self.phase is Phase.STREAMING and error.status in {500, 501} and self._failures >= STUMBLES:
            self._can_stream = False  # some aggregated servers fail on it
            self._rest(now, problem=str(error))
        elif error.retryable and not any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes):
            # The server is away or busy. The watch resumes at its last version: no list.
            # A server that throttles is back and names the wait itself; earlier failures do not count.
            longest = error.retry_after if problem is Problem.THROTTLED and error.retry_after else LONGEST_WAIT
            self._rest(now, problem=str(error), longest=longest, retry_after=error.retry_after)
        else:
            self._restart()
            self._rest(now, problem=str(error), retry_after=error.retry_after)

    def _event(self, kind: str, obj: dict[str, Any], problem: str, now: float) -> None:
        if kind == "ERROR":
            self.failed(status_error(obj, verb="watch", resource=str(self.source)), now)
            return
        if kind not in {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}:
            return  # an event type of a newer server; the next list has its effect
        metadata = obj["metadata"]
        version = parse_version(metadata.get("resourceVersion"))
        if self.phase is Phase.STREAMING:
            self._initial_event(kind, obj, problem, now)
        elif 0 < version <= self._version:
            # Seen before. An old ADDED must not bring back an object that was deleted since.
            self._bookmarked = self._bookmarked or kind == "BOOKMARK"
        else:
            if kind == "BOOKMARK":
                self._bookmarked = True
                self._sink.bookmark(version)
            elif kind == "DELETED":
                self._sink.delete(obj)
                self._eventful = True
            else:
                self._pass_on(self._sink.apply, obj, problem)
                self._eventful = True
            if version:
                self._version = self._highest = max(version, self._highest)

    def _initial_event(self, kind: str, obj: dict[str, Any], problem: str, now: float) -> None:
        if kind == "DELETED":
            self._sink.remove_listed(obj)
            self._streamed_at = now
        elif kind != "BOOKMARK":
            self._pass_on(self._sink.list_object, obj, problem)
            self._streamed_at = now
        elif (obj["metadata"].get("annotations") or {}).get(INITIAL_EVENTS_END) == "true":
            self.phase = Phase.WATCHING  # the stream is complete, even if it is too old
            version = parse_version(obj["metadata"].get("resourceVersion"))
            if self._is_older(version, now):
                return
            self._end_list(version)
            self._eventful = True

    def _pass_on(self, take: Callable[[dict[str, Any]], None], obj: dict[str, Any], problem: str) -> None:
        """An object that cannot be read is not stored, and does not count as deleted."""
        if problem:
            self._sink.skip_unreadable(obj, problem)
        else:
            take(obj)

    def _begin_list(self) -> None:
        self.lists += 1
        self._sink.begin_list()

    def _end_list(self, version: int) -> None:
        self._sink.end_list(version)
        self.lists_done += 1
        self._version = self._highest = max(version, self._highest)
        self._listed = True
        self._token, self._page_size = "", PAGE

    def _is_older(self, version: int, now: float) -> bool:
        """A consistent read older than an earlier one: a backup was restored, or an API server of several lags
        behind."""
        if version >= self._highest and version:
            return False
        self._restart()
        problem = f"list {self.source}: the server's state {version} is older than an earlier one ({self._highest})"
        self._rest(now, problem=problem)
        return True

    def _restart(self, *, page_size: int = PAGE) -> None:
        """Restarts with a list. Pages that have arrived do not count."""
        self._version, self._token, self._page_size = 0, "", page_size

    def _rest(
        self, now: float, *, problem: str, longest: float = LONGEST_WAIT, retry_after: float | None = None
    ) -> None:
        if self.reading and now - self._opened_at >= HEALTHY:
            self._failures = 0
        if self.phase is Phase.STREAMING and self._open:
            self._can_stream = False
        wait = min(longest, FIRST_WAIT * 2.0 ** min(self._failures, 60)) * (1 + self._chance())
        self._failures += 1
        self._not_before = now + max(wait, retry_after or 0.0)
        self.phase = Phase.RESTING
        self._sink.set_problem(problem)


def _parse_list(body: bytes) -> tuple[dict[str, Any], Iterable[tuple[dict[str, Any], str]]]:
    """A page without its objects, and the objects. Of one that cannot be read: its metadata, and the problem."""
    try:
        document = parse_json(body)
    except orjson.JSONDecodeError:
        shell, inner = fold(body, 2)
        document = orjson.loads(shell)
        return document, [_parse_folded(inner, number) for number in document.get("items") or ()]
    return document, ((obj, "") for obj in document.get("items") or ())


def _parse_event(line: bytes) -> tuple[str, dict[str, Any], str]:
    """Type and object of a line of a watch, and the problem where the object cannot be read.

    The line of an own write is parsed as well: a search of its bytes for the version might find a label of that name.
    """
    try:
        event = parse_json(line)
    except orjson.JSONDecodeError:
        shell, inner = fold(line, 1)
        event = orjson.loads(shell)
        return event["type"], *_parse_folded(inner, event["object"])
    return event["type"], event["object"], ""


def _parse_folded(inner: list[bytes], number: int) -> tuple[dict[str, Any], str]:
    """Each once: a number may also come from the server, and an object could be parsed any number of times."""
    text, inner[number] = inner[number], b""
    try:
        return orjson.loads(text), ""
    except orjson.JSONDecodeError as error:
        return orjson.loads(fold(text, 2)[0]), str(error)
