"""The requests of the reflector and their times. The contents of the store, in any history, are in
test_reflector_model."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import orjson
import pytest
from structlog.testing import capture_logs

from ruleop.operator.wire.client.json_depth import MAX_VALUES
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.watch.reflector import SILENCE, Fetch, Follow, Phase, Reflector, Rest
from ruleop.operator.wire.watch.store import Store, StoreState
from tests.operator.wire.model_server import SOURCE, bookmark, line, refusal


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


def in_pages(reflector: Reflector) -> None:
    """It lists in pages, and asks for the first."""
    reflector.next(0.0)
    reflector.failed(refusal(422), 0.0)
    reflector.next(0.0)


def page(version: int, *items: Any, more: bool = False) -> bytes:
    metadata = {"resourceVersion": str(version), **({"continue": "next"} if more else {})}
    return orjson.dumps({"metadata": metadata, "items": items})


def expired_pages(reflector: Reflector) -> None:
    in_pages(reflector)
    reflector.page(page(50, widget("a", 1), more=True), 0.1)
    reflector.next(0.1)
    reflector.failed(refusal(410, "Expired", verb="list"), 0.2)


def rested(reflector: Reflector, now: float) -> float:
    step = reflector.next(now)
    assert isinstance(step, Rest)
    return step.until


def test_a_list_is_repeated_when_that_is_asked_for_and_only_once(reflector: Reflector) -> None:
    watching(reflector, at=100)
    reflector.closed(2.0)
    assert query(reflector.next(2.0))["resourceVersion"] == "100", "until then, the watch is resumed"
    reflector.opened(2.0)
    reflector.list_again()
    assert not reflector.reading
    assert "sendInitialEvents" in query(reflector.next(3.0))
    reflector.opened(3.0)
    reflector.lines([bookmark(104, ends=True)], 3.0)
    reflector.closed(9.0)
    assert query(reflector.next(9.0))["resourceVersion"] == "104"


def test_the_reflector_starts_with_a_streaming_list_that_continues_as_a_watch(
    reflector: Reflector, store: Store
) -> None:
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
    assert store.state is StoreState.PENDING
    reflector.lines([bookmark(10, ends=True), line("MODIFIED", widget("a", 11))], 0.2)
    assert store.state is StoreState.SYNCED
    assert (len(store), store.version) == (2, 11)
    reflector.closed(240.0)
    assert query(reflector.next(240.0))["resourceVersion"] == "11"


def test_a_deleted_object_is_removed_and_an_older_event_does_not_restore_it(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines(
        [line("ADDED", widget("a", 101)), line("DELETED", widget("a", 102)), line("ADDED", widget("a", 101))], 1.0
    )
    assert len(store) == 0
    assert store.version == 102


def test_an_object_deleted_during_the_streaming_list_is_not_in_the_list(reflector: Reflector, store: Store) -> None:
    reflector.next(0.0)
    reflector.opened(0.0)
    reflector.lines([line("ADDED", widget("a", 9)), line("DELETED", widget("a", 10)), bookmark(10, ends=True)], 0.1)
    assert len(store) == 0


@pytest.mark.parametrize("status", [400, 405, 422])
def test_a_server_without_streaming_lists_is_listed_in_pages(reflector: Reflector, store: Store, status: int) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(status), 0.0)
    assert query(reflector.next(0.0)) == {"limit": "500"}, "at once"
    reflector.page(page(50, widget("a", 1), more=True), 0.1)
    assert query(reflector.next(0.1)) == {"limit": "500", "continue": "next"}
    reflector.page(page(51, widget("b", 2)), 0.2)
    assert store.state is StoreState.SYNCED
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


def test_a_page_of_too_many_values_is_followed_by_a_smaller_one(reflector: Reflector) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(422), 0.0)
    assert query(reflector.next(0.0)) == {"limit": "500"}
    with pytest.raises(ApiError) as caught:
        reflector.page(b'{"metadata": {}, "items": [' + b"{}," * MAX_VALUES + b"{}]}", 0.0)
    reflector.failed(caught.value, 0.0)
    assert query(reflector.next(0.0)) == {"limit": "50"}


def test_a_whole_list_that_is_too_large_is_followed_by_pages(reflector: Reflector) -> None:
    expired_pages(reflector)
    at = rested(reflector, 0.2)
    assert query(reflector.next(at)) == {}
    reflector.failed(ApiError(Problem.TOO_LARGE, verb="list", resource="widgets", text="too large"), at)
    assert query(reflector.next(at)) == {"limit": "500"}


def test_a_watch_past_its_deadline_is_reopened_although_events_arrive(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines([line("ADDED", widget("a", 101))], 241.0)
    assert reflector.reading
    reflector.lines([line("ADDED", widget("a", 102))], 242.0)
    assert not reflector.reading
    assert query(reflector.next(242.0))["resourceVersion"] == "102"
    assert store.problem == ""


def test_a_streaming_list_without_progress_is_ended_although_bookmarks_arrive(
    reflector: Reflector, store: Store
) -> None:
    reflector.next(0.0)
    reflector.opened(0.0)
    reflector.lines([bookmark(7)], 59.0)
    assert reflector.reading
    reflector.lines([bookmark(8)], 60.0)
    assert not reflector.reading
    assert "neither an object nor the end of the list received for 60 s" in store.problem


def test_an_object_that_was_folded_is_taken_once(reflector: Reflector) -> None:
    """Else a list of numbers could have one large object read as often as it likes."""
    in_pages(reflector)
    deep = b'{"metadata":{"name":"a","namespace":"ns"},"spec":%s1%s}' % (b'{"a":' * 1100, b"}" * 1100)
    with pytest.raises(ApiError, match="the answer is not a list"):
        reflector.page(b'{"metadata":{"resourceVersion":"5"},"items":[%s,0,0]}' % deep, 0.0)


def test_expired_pages_are_followed_by_one_whole_list(reflector: Reflector) -> None:
    expired_pages(reflector)
    assert query(reflector.next(rested(reflector, 0.2))) == {}


def test_a_failed_page_is_requested_again(reflector: Reflector) -> None:
    in_pages(reflector)
    reflector.page(page(50, more=True), 0.1)
    reflector.next(0.1)
    reflector.failed(refusal(503, verb="list"), 0.2)
    assert query(reflector.next(rested(reflector, 0.2)))["continue"] == "next"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_watch_of_an_unavailable_server_resumes_without_a_list(
    reflector: Reflector, store: Store, status: int
) -> None:
    watching(reflector)
    reflector.closed(10.0)
    reflector.next(10.0)
    reflector.failed(refusal(status), 10.0)
    assert store.state is StoreState.SYNCED
    assert store.problem
    step = reflector.next(rested(reflector, 10.0))
    assert query(step)["resourceVersion"] == "100"
    reflector.opened(20.0)
    assert store.problem == ""
    assert reflector.lists == 1


def test_the_backoff_grows_up_to_a_cap_and_shrinks_after_success(reflector: Reflector) -> None:
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


def test_the_reflector_waits_for_the_retry_after_of_the_server(reflector: Reflector) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(429, retry_after="17"), 0.0)
    assert rested(reflector, 0.0) == 17.0


def test_after_an_outage_the_reflector_waits_only_for_the_retry_after(reflector: Reflector) -> None:
    """After minutes without it, and not for as long as it had been away."""
    now = 0.0
    for _ in range(8):
        reflector.next(now)
        reflector.failed(refusal(503), now)
        now = rested(reflector, now)
    reflector.next(now)
    reflector.failed(refusal(429, retry_after="1"), now)
    assert rested(reflector, now) == now + 1.0


def test_an_expired_resource_version_causes_a_list_while_the_old_objects_stay(
    reflector: Reflector, store: Store
) -> None:
    watching(reflector)
    reflector.lines([line("ADDED", widget("a", 101))], 1.0)
    reflector.lines([line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})], 2.0)
    assert not reflector.reading
    assert len(store) == 1, "until the list is there, the old is better than nothing"
    assert "sendInitialEvents" in query(reflector.next(rested(reflector, 2.0)))


def test_a_transient_error_in_the_stream_resumes_from_the_same_version(reflector: Reflector) -> None:
    watching(reflector)
    reflector.lines([line("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError"})], 2.0)
    assert query(reflector.next(rested(reflector, 2.0)))["resourceVersion"] == "100"


def test_a_server_that_does_not_know_the_resource_version_yet_is_listed_again(reflector: Reflector) -> None:
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


def test_a_list_older_than_the_store_is_refused(reflector: Reflector, store: Store) -> None:
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


def test_missing_permission_is_a_state_and_is_checked_again(reflector: Reflector, store: Store) -> None:
    reflector.next(0.0)
    reflector.failed(refusal(403, "Forbidden"), 0.0)
    assert store.state is StoreState.FORBIDDEN
    assert "watch widgets.example.com" in store.problem
    reflector.wake(0.1)
    watching(reflector, now=0.2)
    assert store.state is StoreState.SYNCED


def test_a_permission_restored_during_a_watch_makes_the_store_synced_without_a_list(
    reflector: Reflector, store: Store
) -> None:
    watching(reflector)
    reflector.closed(5.0)
    reflector.next(5.0)
    reflector.failed(refusal(403, "Forbidden"), 5.0)
    now = rested(reflector, 5.0)
    reflector.next(now)
    reflector.opened(now)
    assert store.state is StoreState.SYNCED
    assert reflector.lists == 1


def test_a_removed_kind_is_a_state_and_waits_for_its_crd(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines([line("ADDED", widget("a", 101))], 1.0)
    reflector.closed(5.0)
    now = 5.0
    for _ in range(12):
        reflector.next(now)
        reflector.failed(refusal(404, "NotFound"), now)
        before, now = now, rested(reflector, now)
    assert store.state is StoreState.UNSERVED
    assert len(store) == 0
    assert now - before == 300.0, "nobody asks every second for what a CRD announces"
    reflector.wake(before + 1)
    assert "sendInitialEvents" in query(reflector.next(before + 1))


def test_a_stream_that_ends_at_once_is_a_failure_and_one_that_lasted_is_not(reflector: Reflector) -> None:
    watching(reflector)
    reflector.closed(240.0)
    assert isinstance(reflector.next(240.0), Follow)
    reflector.opened(240.0)
    reflector.closed(240.2)
    assert isinstance(reflector.next(240.2), Rest)


def test_a_watch_that_is_never_closed_ends_at_its_deadline(reflector: Reflector) -> None:
    watching(reflector)
    assert reflector.deadline == 232 + 10
    reflector.silent(200.0)
    assert reflector.reading
    reflector.silent(242.0)
    assert not reflector.reading
    assert query(reflector.next(rested(reflector, 242.0)))["resourceVersion"] == "100"


def test_silence_is_detected_earlier_once_bookmarks_arrived(reflector: Reflector) -> None:
    watching(reflector)
    reflector.lines([bookmark(120)], 60.0)
    assert reflector.deadline == 150.0
    reflector.lines([bookmark(130)], 120.0)
    assert reflector.deadline == 210.0
    reflector.lines([bookmark(130)], 180.0)
    assert reflector.deadline == 242.0, "the end of the watch, which comes first"


def test_a_stalled_streaming_list_is_detected(reflector: Reflector) -> None:
    reflector.next(0.0)
    reflector.opened(0.0)
    reflector.lines([line("ADDED", widget("a", 9))], 30.0)
    assert reflector.deadline == 90.0
    reflector.silent(90.0)
    assert "neither an object nor the end of the list received for 60 s" in reflector._sink.problem


def unmarked_end(reflector: Reflector, how: str) -> float:
    """A streaming list that ends without its final bookmark."""
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
def test_a_streaming_list_without_its_end_bookmark_is_replaced_by_pages(
    reflector: Reflector, store: Store, how: str
) -> None:
    """As aggregated API servers were seen to do that know the parameter and not the bookmark."""
    reflector.next(0.0)
    end = unmarked_end(reflector, how)
    now = rested(reflector, end)
    assert query(reflector.next(now)) == {"limit": "500"}
    reflector.page(page(50, widget("b", 2)), now)
    assert [key.name for key in store.select_keys()] == ["b"]
    assert store.state is StoreState.SYNCED
    assert query(reflector.next(now))["resourceVersion"] == "50"


@pytest.mark.parametrize(
    ("status", "pages"), [(500, True), (501, True), (429, False), (502, False), (503, False), (504, False)]
)
def test_a_server_that_fails_at_streaming_lists_is_listed_in_pages(
    reflector: Reflector, status: int, pages: bool
) -> None:
    """One that is away or busy is none of those."""
    now = 0.0
    for _ in range(4):
        assert "sendInitialEvents" in query(reflector.next(now))
        reflector.failed(refusal(status), now)
        now = rested(reflector, now)
    assert (query(reflector.next(now)) == {"limit": "500"}) == pages


def test_unknown_types_of_watch_events_are_skipped(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines([line("SPARKLED", widget("a", 101)), line("ADDED", widget("b", 102))], 1.0)
    assert [key.name for key in store.select_keys()] == ["b"]


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"metadata":{"resourceVersion":"5"},"items":[{}]}'])
def test_an_answer_that_is_not_a_list_is_a_failure(reflector: Reflector, store: Store, body: bytes) -> None:
    in_pages(reflector)
    with pytest.raises(ApiError) as raised:
        reflector.page(body, 0.0)
    reflector.failed(raised.value, 0.0)
    assert isinstance(reflector.next(0.0), Rest)
    assert "not a list" in store.problem


# -- whether what is known may be the past -----------------------------------------------------------------------------


def test_an_open_stream_may_be_silent_until_its_deadline(reflector: Reflector) -> None:
    watching(reflector)
    assert not reflector.overdue(reflector.deadline)
    assert reflector.overdue(reflector.deadline + 1)
    reflector.lines([bookmark(101)], 50.0)
    assert reflector.deadline == 50.0 + SILENCE
    assert not reflector.overdue(50.0 + SILENCE)
    assert reflector.overdue(50.0 + SILENCE + 1)


def test_a_stream_that_ended_regularly_is_not_overdue(reflector: Reflector) -> None:
    watching(reflector)
    reflector.closed(232.0)
    assert not reflector.overdue(232.0)
    reflector.next(232.0)
    assert not reflector.overdue(232.0 + SILENCE), "it is being opened"


def test_an_unavailable_server_is_overdue_after_the_time_between_two_bookmarks(reflector: Reflector) -> None:
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


def test_nothing_is_overdue_before_the_first_answer(reflector: Reflector) -> None:
    reflector.next(0.0)
    assert not reflector.overdue(10_000.0)


# -- objects that cannot be read ---------------------------------------------------------------------------------------


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
def test_a_deeply_nested_object_is_read_like_any_other(
    reflector: Reflector, store: Store, levels: int, pages: bool
) -> None:
    listed(reflector, deep("a", 3, 1), deep("deep", 4, levels), deep("z", 5, 1), pages=pages)
    assert store.state is StoreState.SYNCED
    assert names(store) == ["a", "deep", "z"]
    value = store.select("ns")[1]["spec"]
    for _ in range(levels):
        (value,) = value.values()
    assert value == 1


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("levels", [1024, 3000, 100_000])
def test_an_object_that_cannot_be_read_is_omitted_alone(
    reflector: Reflector, store: Store, levels: int, pages: bool
) -> None:
    with capture_logs() as lines:
        listed(reflector, deep("a", 3, 1), deep("deep", 4, levels), deep("z", 5, 1), pages=pages)
    assert store.state is StoreState.SYNCED
    assert names(store) == ["a", "z"]
    assert query(reflector.next(2.0))["resourceVersion"] == "50"
    assert [(each["log_level"], each["object"]) for each in lines] == [("warning", "Widget/ns/deep")]


def test_the_watch_continues_after_an_unreadable_object_and_logs_it_once(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    with capture_logs() as lines:
        added = [event("ADDED", deep("a", 101, 1)), event("ADDED", deep("b", 102, 1))]
        reflector.lines([*added, event("MODIFIED", deep("a", 103, 3000))], 1.0)
        reflector.lines([event("MODIFIED", deep("a", 104, 3001)), event("MODIFIED", deep("b", 105, 2))], 1.0)
    assert reflector.phase is Phase.WATCHING
    assert store.version == 105
    assert [(key.name, entry.version) for key, entry in store.entries()] == [("a", 101), ("b", 105)], "it is not gone"
    assert len(lines) == 1
    reflector.closed(200.0)
    assert query(reflector.next(200.0))["resourceVersion"] == "105"


def test_a_list_keeps_the_stored_version_of_an_object_that_cannot_be_read(reflector: Reflector, store: Store) -> None:
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


def test_the_deletion_of_an_unreadable_object_is_understood(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    reflector.lines([line("ADDED", widget("a", 101)), event("DELETED", deep("a", 103, 3000))], 1.0)
    assert names(store) == []


def test_an_unreadable_object_with_a_new_uid_replaces_its_predecessor(reflector: Reflector, store: Store) -> None:
    watching(reflector)
    other = deep("a", 103, 3000).replace(b'"uid":"a"', b'"uid":"other"')
    reflector.lines([line("ADDED", widget("a", 101)), event("ADDED", other)], 1.0)
    assert names(store) == []


def test_an_object_that_becomes_unreadable_again_is_logged_again(reflector: Reflector) -> None:
    watching(reflector)
    with capture_logs() as lines:
        for kind, version, levels in (("ADDED", 103, 3000), ("MODIFIED", 104, 3), ("MODIFIED", 105, 3000)):
            reflector.lines([event(kind, deep("a", version, levels))], 1.0)
    assert len(lines) == 2
