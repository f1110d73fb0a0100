"""What the reflector asks for, and when. The store's side, in any history, is in test_reflector_model."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import orjson
import pytest
from structlog.testing import capture_logs

from ruleop.kube.client.errors import ApiError, Problem
from ruleop.kube.watch.reflector import SILENCE, Fetch, Follow, Phase, Reflector, Rest
from ruleop.kube.watch.store import State, Store
from tests.kube.model_server import SOURCE, bookmark, line, refusal


def widget(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}}


@pytest.fixture
def store() -> Store:
    return Store(SOURCE)


@pytest.fixture
def reflector(store: Store) -> Reflector:
    return Reflector(SOURCE, store, chance=lambda: 0.0)


def query(step: Any) -> dict[str, str]:
    assert isinstance(step, Fetch | Follow), step
    return dict(parse_qsl(step.request.query))


def watching(reflector: Reflector, at: int = 100, now: float = 0.0) -> None:
    reflector.next(now)
    reflector.opened(now)
    reflector.lines([bookmark(at, ends=True)], now)
    assert reflector.phase is Phase.WATCHING


def rested(reflector: Reflector, now: float) -> float:
    step = reflector.next(now)
    assert isinstance(step, Rest)
    return step.until


def test_it_begins_with_a_streaming_list_that_goes_on_as_a_watch(reflector: Reflector, store: Store) -> None:
    step = reflector.next(0.0)
    assert query(step) == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "232",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    reflector.opened(0.0)
    reflector.lines([line("ADDED", widget("b", 9)), line("ADDED", widget("a", 3)), bookmark(7)], 0.1)
    assert store.state is State.PENDING
    reflector.lines([bookmark(10, ends=True), line("MODIFIED", widget("a", 11))], 0.2)
    assert store.state is State.SYNCED
    assert (len(store), store.version) == (2, 11)
    reflector.closed(240.0)
    assert query(reflector.next(240.0))["resourceVersion"] == "11"


def test_a_deletion_is_a_deletion_and_an_old_event_brings_nothing_back(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines(
        [line("ADDED", widget("a", 101)), line("DELETED", widget("a", 102)), line("ADDED", widget("a", 101))], 1.0
    )
    assert len(store) == 0
    assert store.version == 102


def test_what_is_deleted_while_the_list_is_streamed_is_not_in_it(reflector: Reflector, store: Store) -> None:
    reflector.next(0.0)
    reflector.opened(0.0)
    reflector.lines([line("ADDED", widget("a", 9)), line("DELETED", widget("a", 10)), bookmark(10, ends=True)], 0.1)
    assert len(store) == 0


@pytest.mark.parametrize("status", [400, 405, 422])
def test_a_server_without_streaming_lists_is_listed_by_pages(reflector: Reflector, store: Store, status: int) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(status), 0.0)
    assert query(reflector.next(0.0)) == {"limit": "500"}, "at once"
    reflector.page(
        orjson.dumps({"metadata": {"resourceVersion": "50", "continue": "next"}, "items": [widget("a", 1)]}), 0.1
    )
    assert query(reflector.next(0.1)) == {"limit": "500", "continue": "next"}
    reflector.page(orjson.dumps({"metadata": {"resourceVersion": "51"}, "items": [widget("b", 2)]}), 0.2)
    assert store.state is State.SYNCED
    assert query(reflector.next(0.2))["resourceVersion"] == "50", "of the first page: the list is as of then"


def test_pages_that_are_too_large_are_followed_by_smaller_ones(reflector: Reflector, store: Store) -> None:
    too_large = ApiError(Problem.TOO_LARGE, verb="list", resource="widgets", text="too large")
    reflector.next(0.0)
    reflector.failed(refusal(422), 0.0)
    limits = []
    for _ in range(4):
        limits.append(query(reflector.next(0.0))["limit"])
        reflector.failed(too_large, 0.0)
    assert limits == ["500", "50", "5", "1"]
    rested(reflector, 0.0)
    assert "too large" in store.problem


def test_one_list_in_a_piece_that_is_too_large_is_followed_by_pages(reflector: Reflector) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(422), 0.0)
    reflector.next(0.0)
    reflector.page(
        orjson.dumps({"metadata": {"resourceVersion": "50", "continue": "next"}, "items": [widget("a", 1)]}), 0.1
    )
    reflector.next(0.1)
    reflector.failed(refusal(410, "Expired", verb="list"), 0.2)
    at = rested(reflector, 0.2)
    assert query(reflector.next(at)) == {}
    reflector.failed(ApiError(Problem.TOO_LARGE, verb="list", resource="widgets", text="too large"), at)
    assert query(reflector.next(at)) == {"limit": "500"}


def test_a_watch_that_the_server_does_not_end_is_reopened_although_events_arrive(
    reflector: Reflector, store: Store
) -> None:
    watching(reflector)
    reflector.lines([line("ADDED", widget("a", 101))], 241.0)
    assert reflector.reading
    reflector.lines([line("ADDED", widget("a", 102))], 242.0)
    assert not reflector.reading
    assert query(reflector.next(242.0))["resourceVersion"] == "102"
    assert store.problem == ""


def test_a_streaming_list_without_progress_ends_although_bookmarks_arrive(reflector: Reflector, store: Store) -> None:
    reflector.next(0.0)
    reflector.opened(0.0)
    reflector.lines([bookmark(7)], 59.0)
    assert reflector.reading
    reflector.lines([bookmark(8)], 60.0)
    assert not reflector.reading
    assert "neither an object nor the end of the list received for 60 s" in store.problem


def test_an_object_that_was_folded_is_taken_once(reflector: Reflector) -> None:
    """Else a list of numbers could have one large object read as often as it likes."""
    reflector.next(0.0)
    reflector.failed(refusal(422), 0.0)
    reflector.next(0.0)
    deep = b'{"metadata":{"name":"a","namespace":"ns"},"spec":%s1%s}' % (b'{"a":' * 1100, b"}" * 1100)
    with pytest.raises(ApiError, match="the answer is not a list"):
        reflector.page(b'{"metadata":{"resourceVersion":"5"},"items":[%s,0,0]}' % deep, 0.0)


def test_pages_that_expire_are_followed_by_one_list_in_a_piece(reflector: Reflector) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(422), 0.0)
    reflector.next(0.0)
    reflector.page(
        orjson.dumps({"metadata": {"resourceVersion": "50", "continue": "next"}, "items": [widget("a", 1)]}), 0.1
    )
    reflector.next(0.1)
    reflector.failed(refusal(410, "Expired", verb="list"), 0.2)
    assert query(reflector.next(rested(reflector, 0.2))) == {}


def test_a_page_that_fails_is_asked_for_again(reflector: Reflector) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(422), 0.0)
    reflector.next(0.0)
    reflector.page(orjson.dumps({"metadata": {"resourceVersion": "50", "continue": "next"}, "items": []}), 0.1)
    reflector.next(0.1)
    reflector.failed(refusal(503, verb="list"), 0.2)
    assert query(reflector.next(rested(reflector, 0.2)))["continue"] == "next"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_away_is_not_listed_again(reflector: Reflector, store: Store, status: int) -> None:
    watching(reflector)
    reflector.closed(10.0)
    reflector.next(10.0)
    reflector.failed(refusal(status), 10.0)
    assert store.state is State.SYNCED
    assert store.problem
    step = reflector.next(rested(reflector, 10.0))
    assert query(step)["resourceVersion"] == "100"
    reflector.opened(20.0)
    assert store.problem == ""
    assert reflector.lists == 1


def test_waits_grow_up_to_a_cap_and_shrink_after_health(reflector: Reflector) -> None:
    watching(reflector)
    reflector.closed(10.0)
    now, waits = 10.0, []
    for _ in range(8):
        reflector.next(now)
        reflector.failed(refusal(503), now)
        until = rested(reflector, now)
        waits.append(round(until - now, 3))
        now = until
    assert waits == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    reflector.next(now)
    reflector.opened(now)
    reflector.closed(now + 130)
    reflector.next(now + 130)
    reflector.failed(refusal(503), now + 130)
    assert rested(reflector, now + 130) == pytest.approx(now + 130.8)


def test_retry_after_is_kept(reflector: Reflector) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(429, retry_after="17"), 0.0)
    assert rested(reflector, 0.0) == 17.0


def test_a_server_that_is_back_and_asks_to_wait_is_waited_for_as_long_as_it_says(reflector: Reflector) -> None:
    """After minutes without it, and not for as long as it had been away."""
    now = 0.0
    for _ in range(8):
        reflector.next(now)
        reflector.failed(refusal(503), now)
        now = rested(reflector, now)
    reflector.next(now)
    reflector.failed(refusal(429, retry_after="1"), now)
    assert rested(reflector, now) == now + 1.0


def test_a_version_that_the_server_forgot_makes_a_list(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines([line("ADDED", widget("a", 101))], 1.0)
    reflector.lines([line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})], 2.0)
    assert not reflector.reading
    assert len(store) == 1, "until the list is there, the old is better than nothing"
    assert "sendInitialEvents" in query(reflector.next(rested(reflector, 2.0)))


def test_errors_in_the_stream_that_time_heals_go_on_from_the_same_version(reflector: Reflector) -> None:
    watching(reflector)
    reflector.lines([line("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError"})], 2.0)
    assert query(reflector.next(rested(reflector, 2.0)))["resourceVersion"] == "100"


def test_a_server_that_does_not_know_our_version_yet_is_listed(reflector: Reflector) -> None:
    watching(reflector)
    reflector.closed(5.0)
    reflector.next(5.0)
    reflector.failed(
        refusal(
            504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        ),
        5.0,
    )
    assert "resourceVersion" not in query(reflector.next(rested(reflector, 5.0)))


def test_a_list_older_than_what_was_seen_is_refused(reflector: Reflector, store: Store) -> None:
    watching(reflector, at=100)
    reflector.lines([line("ADDED", widget("a", 101)), line("ERROR", {"kind": "Status", "code": 410})], 1.0)
    now = rested(reflector, 1.0)
    reflector.next(now)
    reflector.opened(now)
    reflector.lines([bookmark(90, ends=True)], now)
    assert len(store) == 1
    assert "older" in store.problem
    assert reflector.phase is Phase.RESTING
    reflector.next(rested(reflector, now))
    assert reflector.phase is Phase.STREAMING, "it ended its list as it should, and has the present next time"


def test_missing_rights_are_a_state_and_are_looked_at_again(reflector: Reflector, store: Store) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(403, "Forbidden"), 0.0)
    assert store.state is State.FORBIDDEN
    assert "watch widgets.example.com" in store.problem
    reflector.wake(0.1)
    watching(reflector, now=0.2)
    assert store.state is State.SYNCED


def test_a_right_that_comes_back_during_a_watch_makes_it_synced_without_a_list(
    reflector: Reflector, store: Store
) -> None:
    watching(reflector)
    reflector.closed(5.0)
    reflector.next(5.0)
    reflector.failed(refusal(403, "Forbidden"), 5.0)
    now = rested(reflector, 5.0)
    reflector.next(now)
    reflector.opened(now)
    assert store.state is State.SYNCED
    assert reflector.lists == 1


def test_a_kind_that_goes_is_a_state_and_waits_for_its_crd(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines([line("ADDED", widget("a", 101))], 1.0)
    reflector.closed(5.0)
    now = 5.0
    for _ in range(12):
        reflector.next(now)
        reflector.failed(refusal(404, "NotFound"), now)
        before, now = now, rested(reflector, now)
    assert store.state is State.UNSERVED
    assert len(store) == 0
    assert now - before == 300.0, "nobody asks every second for what a CRD announces"
    reflector.wake(before + 1)
    assert "sendInitialEvents" in query(reflector.next(before + 1))


def test_a_stream_that_ends_at_once_is_a_failure_and_one_that_lasted_is_none(reflector: Reflector) -> None:
    watching(reflector)
    reflector.closed(240.0)
    assert isinstance(reflector.next(240.0), Follow)
    reflector.opened(240.0)
    reflector.closed(240.2)
    assert isinstance(reflector.next(240.2), Rest)


def test_a_close_that_never_arrives_is_noticed(reflector: Reflector) -> None:
    watching(reflector)
    assert reflector.deadline == 232 + 10
    reflector.silent(200.0)
    assert reflector.reading
    reflector.silent(242.0)
    assert not reflector.reading
    assert query(reflector.next(rested(reflector, 242.0)))["resourceVersion"] == "100"


def test_once_bookmarks_came_silence_is_noticed_sooner(reflector: Reflector) -> None:
    watching(reflector)
    reflector.lines([bookmark(120)], 60.0)
    assert reflector.deadline == 150.0
    reflector.lines([bookmark(130)], 120.0)
    assert reflector.deadline == 210.0
    reflector.lines([bookmark(130)], 180.0)
    assert reflector.deadline == 242.0, "the end of the watch, which comes first"


def test_a_streaming_list_that_stalls_is_noticed(reflector: Reflector) -> None:
    reflector.next(0.0)
    reflector.opened(0.0)
    reflector.lines([line("ADDED", widget("a", 9))], 30.0)
    assert reflector.deadline == 90.0
    reflector.silent(90.0)
    assert "neither an object nor the end of the list received for 60 s" in reflector._sink.problem


def unmarked_end(reflector: Reflector, how: str) -> float:
    """A streaming list that ends without the bookmark that says so."""
    reflector.opened(0.0)
    reflector.lines([line("ADDED", widget("a", 9))], 1.0)
    reflector.lines([bookmark(10)], 50.0)
    if how == "closed":
        reflector.closed(55.0)
    elif how == "broken":
        reflector.failed(ApiError(Problem.TIMEOUT, verb="watch", resource="widgets", text="the connection broke"), 55.0)
    else:
        assert reflector.deadline == 61.0, "bookmarks are no progress"
        reflector.silent(61.0)
        return 61.0
    return 55.0


@pytest.mark.parametrize("how", ["closed", "silent", "broken"])
def test_a_streaming_list_that_is_never_ended_is_listed_by_pages(reflector: Reflector, store: Store, how: str) -> None:
    """As aggregated API servers were seen to do that know the parameter and not the bookmark."""
    reflector.next(0.0)
    end = unmarked_end(reflector, how)
    now = rested(reflector, end)
    assert query(reflector.next(now)) == {"limit": "500"}
    reflector.page(orjson.dumps({"metadata": {"resourceVersion": "50"}, "items": [widget("b", 2)]}), now)
    assert [key.name for key in store.select_keys()] == ["b"]
    assert store.state is State.SYNCED
    assert query(reflector.next(now))["resourceVersion"] == "50"


@pytest.mark.parametrize(
    ("status", "pages"), [(500, True), (501, True), (429, False), (502, False), (503, False), (504, False)]
)
def test_a_server_that_stumbles_over_a_streaming_list_is_listed_by_pages(
    reflector: Reflector, status: int, pages: bool
) -> None:
    """One that is away or busy is none of those."""
    now = 0.0
    for _ in range(4):
        assert "sendInitialEvents" in query(reflector.next(now))
        reflector.failed(refusal(status), now)
        now = rested(reflector, now)
    assert (query(reflector.next(now)) == {"limit": "500"}) == pages


def test_events_of_a_newer_server_are_passed_over(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines([line("SPARKLED", widget("a", 101)), line("ADDED", widget("b", 102))], 1.0)
    assert [key.name for key in store.select_keys()] == ["b"]


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"metadata":{"resourceVersion":"5"},"items":[{}]}'])
def test_an_answer_that_is_no_list_is_a_failure(reflector: Reflector, store: Store, body: bytes) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(422), 0.0)
    reflector.next(0.0)
    with pytest.raises(ApiError) as raised:
        reflector.page(body, 0.0)
    reflector.failed(raised.value, 0.0)
    assert isinstance(reflector.next(0.0), Rest)
    assert "not a list" in store.problem


# -- whether what is known may be the past -----------------------------------------------------------------------------------------------


def test_an_open_stream_may_be_silent_until_its_deadline(reflector: Reflector) -> None:
    watching(reflector)
    assert not reflector.overdue(reflector.deadline)
    assert reflector.overdue(reflector.deadline + 1)
    reflector.lines([bookmark(101)], 50.0)
    assert reflector.deadline == 50.0 + SILENCE
    assert not reflector.overdue(50.0 + SILENCE)
    assert reflector.overdue(50.0 + SILENCE + 1)


def test_a_stream_that_ended_as_it_should_is_no_silence(reflector: Reflector) -> None:
    watching(reflector)
    reflector.closed(232.0)
    assert not reflector.overdue(232.0)
    reflector.next(232.0)
    assert not reflector.overdue(232.0 + SILENCE), "it is being opened"


def test_a_server_that_is_away_is_overdue_after_the_time_between_two_bookmarks(reflector: Reflector) -> None:
    watching(reflector)
    reflector.lines([bookmark(101)], 10.0)
    reflector.failed(refusal(503), 20.0)
    now = 20.0
    for _ in range(40):  # whether it rests or tries at the moment
        step = reflector.next(now)
        assert reflector.overdue(now) == (now > 10.0 + SILENCE)
        if isinstance(step, Rest):
            now = step.until
        else:
            reflector.failed(refusal(503), now)
    assert now > 200
    reflector.next(now)
    reflector.opened(now)
    assert not reflector.overdue(now)


def test_before_the_first_answer_there_is_nothing_to_be_late(reflector: Reflector) -> None:
    reflector.next(0.0)
    assert not reflector.overdue(10_000.0)


# -- objects that cannot be read ---------------------------------------------------------------------------------------------------------


def deep(name: str, version: int, levels: int) -> bytes:
    spec = b'{"}\\"":' * levels + b"1" + b"}" * levels
    return orjson.dumps(widget(name, version))[:-1] + b',"spec":' + spec + b"}"


def event(kind: str, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}' % (kind.encode(), obj)


def names(store: Store) -> list[str]:
    return [key.name for key in store.select_keys()]


def listed(reflector: Reflector, *objects: bytes, pages: bool) -> None:
    reflector.next(0.0)
    if pages:
        reflector.failed(refusal(422), 0.0)
        reflector.next(0.0)
        reflector.page(b'{"metadata":{"resourceVersion":"50"},"items":[' + b",".join(objects) + b"]}", 1.0)
    else:
        reflector.opened(0.0)
        reflector.lines([*(event("ADDED", each) for each in objects), bookmark(50, ends=True)], 1.0)


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("levels", [252, 260, 900, 1022, 1023])
def test_an_object_that_is_nested_deeply_is_read_like_another(
    reflector: Reflector, store: Store, levels: int, pages: bool
) -> None:
    listed(reflector, deep("a", 3, 1), deep("deep", 4, levels), deep("z", 5, 1), pages=pages)
    assert store.state is State.SYNCED
    assert names(store) == ["a", "deep", "z"]
    value = store.select("ns")[1]["spec"]
    for _ in range(levels):
        (value,) = value.values()
    assert value == 1


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("levels", [1024, 3000, 100_000])
def test_an_object_that_cannot_be_read_is_left_out_alone(
    reflector: Reflector, store: Store, levels: int, pages: bool
) -> None:
    with capture_logs() as lines:
        listed(reflector, deep("a", 3, 1), deep("deep", 4, levels), deep("z", 5, 1), pages=pages)
    assert store.state is State.SYNCED
    assert names(store) == ["a", "z"]
    assert query(reflector.next(2.0))["resourceVersion"] == "50"
    assert [(each["log_level"], each["object"]) for each in lines] == [("warning", "Widget/ns/deep")]


def test_the_watch_goes_on_past_what_cannot_be_read_and_says_so_once(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    with capture_logs() as lines:
        reflector.lines(
            [
                event("ADDED", deep("a", 101, 1)),
                event("ADDED", deep("b", 102, 1)),
                event("MODIFIED", deep("a", 103, 3000)),
            ],
            1.0,
        )
        reflector.lines([event("MODIFIED", deep("a", 104, 3001)), event("MODIFIED", deep("b", 105, 2))], 1.0)
    assert reflector.phase is Phase.WATCHING
    assert store.version == 105
    assert [(key.name, entry.version) for key, entry in store.entries()] == [("a", 101), ("b", 105)], "it is not gone"
    assert len(lines) == 1
    reflector.closed(200.0)
    assert query(reflector.next(200.0))["resourceVersion"] == "105"


def test_a_list_takes_nothing_away_that_is_there_and_cannot_be_read(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines([line("ADDED", widget("a", 101)), line("ADDED", widget("b", 102))], 1.0)
    with capture_logs() as lines:
        for version in (110, 120):
            reflector.failed(refusal(410, "Expired"), 2.0)
            now = rested(reflector, 2.0) + 100
            reflector.next(now)
            reflector.opened(now)
            reflector.lines([event("ADDED", deep("a", version, 3000)), bookmark(version, ends=True)], now)
    assert names(store) == ["a"]
    assert len(lines) == 1


def test_the_end_of_what_cannot_be_read_is_understood(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines([line("ADDED", widget("a", 101)), event("DELETED", deep("a", 103, 3000))], 1.0)
    assert names(store) == []


def test_a_new_object_that_cannot_be_read_is_not_taken_for_the_one_before_it(
    reflector: Reflector, store: Store
) -> None:
    watching(reflector)
    other = deep("a", 103, 3000).replace(b'"uid":"a"', b'"uid":"other"')
    reflector.lines([line("ADDED", widget("a", 101)), event("ADDED", other)], 1.0)
    assert names(store) == []


def test_what_can_be_read_again_is_told_again_when_it_cannot(reflector: Reflector) -> None:
    watching(reflector)
    with capture_logs() as lines:
        reflector.lines(
            [
                event("ADDED", deep("a", 103, 3000)),
                event("MODIFIED", deep("a", 104, 3)),
                event("MODIFIED", deep("a", 105, 3000)),
            ],
            1.0,
        )
    assert len(lines) == 2
