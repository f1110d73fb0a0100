"""Follows a collection of the API server: lists it, then watches, for ever. A state machine without I/O.

The driver asks `next` what to do, does it, and says what came of it. The reflector is in one of four phases:

    LISTING    asks for the objects page by page; they are put aside until the last page is there
    STREAMING  the same as a stream, where the server can: the objects come as events, in no order, up to the bookmark that ends them.
               A stream that ends without that bookmark is not tried again: there are servers that never send it
    WATCHING   the changes come, in the order in which they happened
    RESTING    waits before it tries again; a list begins anew, a watch goes on where the last one ended

What it holds, whatever the server and the network do:

- no deletion is lost: after every gap that the server cannot fill (410), a list replaces all that was known;
- nothing goes back in time: lists are consistent reads, a list older than what was seen already is refused, and so are events;
- a stream that says nothing is found: the server ends a watch after a time that we choose, bookmarks come every minute, and both are
  waited for only so long;
- an API server that has been away is not stormed: only a gap makes a list, and waits grow and are jittered;
- a missing right or kind is a state, looked at again later and later, and stops nothing else.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import orjson

from ruleop.kube.client import requests
from ruleop.kube.client.errors import ApiError, Problem, status_error
from ruleop.kube.client.json_depth import folded
from ruleop.kube.watch.store import State, parse_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.kube.client.requests import Source
    from ruleop.kube.http.request import Request

# The server ends a watch after this long (less some jitter, so that thirty watches do not end together). Idle connections are forgotten
# by balancers after 240 s at the earliest; bookmarks, one a minute, keep them in use.
WATCH_SECONDS = 290
# A close that never arrives is noticed by not having arrived.
CLOSE_MARGIN = 10.0
# Once a stream has had a bookmark, it has one each minute; one may be late when the server is busy. The first does not count on it: of a
# kind in which nothing happens it was seen to take two minutes, and the bookmark that ends a streaming list is none of these.
SILENCE = 90.0
# Between two objects of a streaming list. The server may first have to bring its cache up to date.
STREAMING_SILENCE = 60.0
STUMBLES = 3  # so often a server is asked again for a streaming list to which it said 500 or 501
PAGE = 500
FIRST_WAIT, LONGEST_WAIT = 0.8, 30.0
# A kind that is not served is announced by its CRD; this is for those whose CRD we may not watch.
LONGEST_UNSERVED_WAIT = 300.0
HEALTHY = 120.0  # a stream that lasted so long ends a row of failures
SHORT = 1.0  # a watch that ended sooner and brought nothing is a failure: else it would be opened again without a pause
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Phase(Enum):
    LISTING = "listing"
    STREAMING = "streaming"
    WATCHING = "watching"
    RESTING = "resting"


class Sink(Protocol):
    """What the reflector tells. `Store` is one."""

    def begin_list(self) -> None: ...
    def list_object(self, obj: dict[str, Any]) -> None: ...
    def unlist_object(self, obj: dict[str, Any]) -> None: ...
    def end_list(self, version: int) -> None: ...
    def apply(self, obj: dict[str, Any]) -> None: ...
    def delete(self, obj: dict[str, Any]) -> None: ...
    def leave_out(self, obj: dict[str, Any], problem: str) -> None: ...
    def bookmark(self, version: int) -> None: ...
    def set_state(self, state: State, problem: str = "") -> None: ...
    def set_problem(self, problem: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send this, and give the answer to `page`."""

    request: Request


@dataclass(frozen=True, slots=True)
class Follow:
    """Open this, say `opened`, and give what comes to `lines` while `reading`."""

    request: Request


@dataclass(frozen=True, slots=True)
class Rest:
    until: float


Step: TypeAlias = Fetch | Follow | Rest


class Reflector:
    """After each step that failed, say `failed`; after a stream's end, `closed`; when `deadline` has passed in silence, `silent`.

    `page` and `lines` raise ApiError for what is no answer of an API server; it is said to `failed` like another.
    """

    def __init__(self, source: Source, sink: Sink, *, chance: Callable[[], float] = random.random, highest: int = 0) -> None:
        self.source = source
        self.phase = Phase.RESTING
        self.heard_at: float | None = None  # when the server was last known to be there, for readiness
        self.lists = 0  # how many lists were begun: in peace, one
        self.lists_done = 0
        self._sink = sink
        self._chance = chance
        self._can_stream = True
        self._version = 0  # the watch goes on from here; 0: list first
        self._highest = highest  # no list may be older than this
        self._listed = False  # at least once, so that going on makes it synced again
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

    def next(self, now: float) -> Step:
        if now < self._not_before:
            self.phase = Phase.RESTING
            return Rest(self._not_before)
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
        """Whether what the stream brings is still of interest."""
        return self.phase in {Phase.STREAMING, Phase.WATCHING}

    @property
    def deadline(self) -> float:
        """When the open stream is given up, if nothing comes."""
        if self.phase is Phase.STREAMING:
            return max(self._opened_at, self._streamed_at) + STREAMING_SILENCE  # bookmarks do not count
        heard = self.heard_at if self.heard_at is not None else self._opened_at
        end = self._opened_at + self._seconds + CLOSE_MARGIN
        return min(end, heard + SILENCE) if self._bookmarked else end

    def overdue(self, now: float) -> bool:
        """Whether the server should have been heard again by now: on an open stream by its deadline, else after as long as between two
        bookmarks."""
        if self.heard_at is None:
            return False
        is_open = self.reading and self.heard_at >= self._opened_at
        return now > (self.deadline if is_open else self.heard_at + SILENCE)

    def wake(self, now: float) -> None:
        """There is reason to believe that it would work now: its CRD was established, a right was granted."""
        self._not_before = min(self._not_before, now)

    # What came of it

    def opened(self, now: float) -> None:
        self._opened_at = self.heard_at = now
        self._open = True
        self._bookmarked = self._eventful = False
        if self.phase is Phase.WATCHING and self._listed:
            self._sink.set_state(State.SYNCED)

    def page(self, body: bytes, now: float) -> None:
        self.heard_at = now
        try:
            answer, objects = _list_in(body)
            metadata = answer.get("metadata") or {}
            if not self._token:
                self._list_version = parse_version(metadata.get("resourceVersion"))
                if self._is_older(self._list_version, now):
                    return
            for obj, problem in objects:
                self._hand(self._sink.list_object, obj, problem)
        except (orjson.JSONDecodeError, AttributeError, LookupError, TypeError) as error:
            self._forget()
            raise self._not_understood("list", "the answer is no list", error) from None
        self._token = metadata.get("continue") or ""
        if not self._token:
            self._end_list(self._list_version)
            self._failures = 0

    def lines(self, lines: Iterable[bytes], now: float) -> None:
        self.heard_at = now
        for line in lines:
            if not self.reading:
                return  # nothing counts after an ERROR
            try:
                kind, obj, problem = _event_in(line)
                self._event(kind, obj, problem, now)
            except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError) as error:
                # Half a line, or a proxy's page. What was not understood is brought again by the next watch.
                raise self._not_understood("watch", "a line that is no event", error) from None

    def _not_understood(self, verb: str, what: str, error: Exception) -> ApiError:
        text = f"{what} ({type(error).__name__}: {error})"
        return ApiError(Problem.SERVER, verb=verb, resource=str(self.source), text=text, status=200)

    def closed(self, now: float) -> None:
        """The stream ended, which is its normal end unless it was too short."""
        if not self.reading:
            return  # its end was decided before
        lasted = now - self._opened_at
        if self.phase is Phase.STREAMING or (lasted < SHORT and not self._eventful):
            self._rest(now, problem=f"watch {self.source}: the stream ended after {lasted:.1f} s")
            return
        if lasted >= HEALTHY:
            self._failures = 0
        self.heard_at = now
        self.phase = Phase.RESTING

    def silent(self, now: float) -> None:
        if now >= self.deadline and self.reading:
            if self.phase is Phase.STREAMING:
                what, since = "neither an object nor the end of the list", self.deadline - STREAMING_SILENCE
            else:
                what, since = "nothing", self.heard_at or self._opened_at
            self._rest(now, problem=f"watch {self.source}: {what} came for {now - since:.0f} s")

    def failed(self, error: ApiError, now: float) -> None:
        """A request, or a stream, failed. What to do depends on what it says, and never on how often."""
        problem = error.problem
        if problem is Problem.FORBIDDEN:
            self._sink.set_state(State.FORBIDDEN, str(error))
            self._rest(now, problem=str(error))
        elif problem is Problem.NOT_FOUND:
            self._forget()
            self._sink.set_state(State.UNSERVED, str(error))
            self._rest(now, problem=str(error), longest=LONGEST_UNSERVED_WAIT)
        elif problem is Problem.GONE and self._token:
            # The pages took longer than the server keeps a version. All at once is heavier, and cannot expire.
            self._forget(page_size=0)
            self._rest(now, problem=str(error))
        elif self.phase is Phase.STREAMING and problem in {Problem.INVALID, Problem.UNSUPPORTED}:
            self._can_stream = False  # an older server, or an aggregated one
            self.phase = Phase.RESTING
        elif self.phase is Phase.STREAMING and error.status in {500, 501} and self._failures >= STUMBLES:
            self._can_stream = False  # it may be this that an aggregated one stumbles over
            self._rest(now, problem=str(error))
        elif error.retryable and not any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes):
            # The server is away or busy. The watch goes on from where it was: no list.
            # Asked to wait, it is there again, and says itself for how long; what failed before does not count.
            longest = error.retry_after if problem is Problem.THROTTLED and error.retry_after else LONGEST_WAIT
            self._rest(now, problem=str(error), longest=longest, retry_after=error.retry_after)
        else:
            self._forget()
            self._rest(now, problem=str(error), retry_after=error.retry_after)

    def _event(self, kind: str, obj: dict[str, Any], problem: str, now: float) -> None:
        if kind == "ERROR":
            self.failed(status_error(obj, verb="watch", resource=str(self.source)), now)
            return
        if kind not in {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}:
            return  # of a newer server; what it means to say will be in the next list
        metadata = obj["metadata"]
        version = parse_version(metadata.get("resourceVersion"))
        if self.phase is Phase.STREAMING:
            self._initial_event(kind, obj, problem, now)
        elif 0 < version <= self._version:
            # Said before. An old ADDED must not bring back what was deleted since.
            self._bookmarked = self._bookmarked or kind == "BOOKMARK"
        else:
            if kind == "BOOKMARK":
                self._bookmarked = True
                self._sink.bookmark(version)
            elif kind == "DELETED":
                self._sink.delete(obj)
                self._eventful = True
            else:
                self._hand(self._sink.apply, obj, problem)
                self._eventful = True
            if version:
                self._version = self._highest = max(version, self._highest)

    def _initial_event(self, kind: str, obj: dict[str, Any], problem: str, now: float) -> None:
        if kind == "DELETED":
            self._sink.unlist_object(obj)
            self._streamed_at = now
        elif kind != "BOOKMARK":
            self._hand(self._sink.list_object, obj, problem)
            self._streamed_at = now
        elif (obj["metadata"].get("annotations") or {}).get(INITIAL_EVENTS_END) == "true":
            self.phase = Phase.WATCHING  # it ended as it should, whatever it told
            version = parse_version(obj["metadata"].get("resourceVersion"))
            if self._is_older(version, now):
                return
            self._end_list(version)
            self._eventful = True

    def _hand(self, take: Callable[[dict[str, Any]], None], obj: dict[str, Any], problem: str) -> None:
        """What cannot be read is not taken, and not gone either."""
        if problem:
            self._sink.leave_out(obj, problem)
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
        """A consistent read older than what was seen: a backup was restored, or another API server is wrong about the present."""
        if version >= self._highest and version:
            return False
        self._give_up(f"list {self.source}: the server's state {version} is older than what it showed before ({self._highest})", now)
        return True

    def _give_up(self, problem: str, now: float) -> None:
        self._forget()
        self._rest(now, problem=problem)

    def _forget(self, *, page_size: int = PAGE) -> None:
        """A list is needed. What of one is there already does not count."""
        self._version, self._token, self._page_size = 0, "", page_size

    def _rest(self, now: float, *, problem: str, longest: float = LONGEST_WAIT, retry_after: float | None = None) -> None:
        if self.reading and now - self._opened_at >= HEALTHY:
            self._failures = 0
        if self.phase is Phase.STREAMING and self._open:
            self._can_stream = False
        wait = min(longest, FIRST_WAIT * 2.0 ** min(self._failures, 60)) * (1 + self._chance())
        self._failures += 1
        self._not_before = now + max(wait, retry_after or 0.0)
        self.phase = Phase.RESTING
        self._sink.set_problem(problem)


def _list_in(body: bytes) -> tuple[dict[str, Any], Iterable[tuple[dict[str, Any], str]]]:
    """A page without its objects, and these; with what is wrong where one cannot be read and is known by its metadata only."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        shell, inner = folded(body, 2)
        answer = orjson.loads(shell)
        return answer, [_read(inner[number]) for number in answer.get("items") or ()]
    return answer, ((obj, "") for obj in answer.get("items") or ())


def _event_in(line: bytes) -> tuple[str, dict[str, Any], str]:
    """The same for a line of a watch."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        shell, inner = folded(line, 1)
        event = orjson.loads(shell)
        return event["type"], *_read(inner[event["object"]])
    return event["type"], event["object"], ""


def _read(text: bytes) -> tuple[dict[str, Any], str]:
    try:
        return orjson.loads(text), ""
    except orjson.JSONDecodeError as error:
        return orjson.loads(folded(text, 2)[0]), str(error)
