"""The API server, or a proxy in front of it, is unreachable, silent, slow, or throttles requests. The operator resumes
by itself, repeats no write, and logs each problem once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs

from tests.cluster.faults.lab import Lab, Make
from tests.cluster.faults.proxy import Answer, Call


def begin(lab: Lab, name: str = "all") -> None:
    lab.make("ledgers", name, "Ledger", spec={"text": "one", "pages": ["a", "b"]})
    lab.eventually("the ledger", lambda: lab.is_observed("ledgers", name, "Ready"))


def is_ready(lab: Lab, name: str, text: str) -> bool:
    return (
        bool(lab.is_observed("ledgers", name, "Ready"))
        and lab.get("configmaps", f"{name}-book")["data"]["text"] == text
    )


def told_once(lab: Lab) -> None:
    """Each kind of line appears at most twice per watch, which may log once that it was interrupted and once that it
    resumed, and none has a traceback."""
    lines = Counter(line["event"] for line in lab.log() if line.get("level") in {"warning", "error"})
    asked = ((call.path, parse_qs(call.query)) for call in lab.proxy.calls if call.is_watch)
    watches = {(path, *map(str, map(query.get, ("labelSelector", "fieldSelector")))) for path, query in asked}
    assert all(times <= 2 * len(watches) for times in lines.values()), (lines, watches)
    lab.check()


def test_changes_during_an_outage_are_caught_up_with(lab: Lab) -> None:
    begin(lab)
    lab.proxy.stop_listening()
    mark = lab.proxy.mark()
    lab.edit("ledgers", "all", {"spec": {"text": "two"}})
    lab.make("ledgers", "new", "Ledger", spec={"text": "new"})
    lab.admin.delete(lab.path("configmaps", "all-page-a"))
    lab.eventually("it to notice", lambda: "interrupted" in lab.log_file.read_text())
    lab.proxy.listen_again()
    lab.eventually("the edit", lambda: is_ready(lab, "all", "two"))
    lab.eventually("the new one", lambda: is_ready(lab, "new", "new"))
    lab.eventually("the deleted child", lambda: lab.get("configmaps", "all-page-a"))
    # Nothing was listed again: the watches resumed at their last version.
    assert [call for call in lab.proxy.calls[mark:] if "sendInitialEvents" in call.query] == []
    told_once(lab)


def test_an_api_server_that_does_not_answer_is_retried(lab: Lab) -> None:
    begin(lab)
    lab.proxy.freeze()
    mark = lab.proxy.mark()
    lab.edit("configmaps", "all-book", {"data": {"text": "by hand"}})
    lab.edit("ledgers", "all", {"spec": {"text": "two"}})
    assert lab.probe("/healthz")[0] == 200
    lab.proxy.thaw()
    lab.eventually("the edit", lambda: is_ready(lab, "all", "two"))
    assert len(lab.proxy.writes(mark)) <= 4
    told_once(lab)


def test_hanging_writes_are_carried_out_once(lab: Lab) -> None:
    begin(lab)

    async def slow(call: Call) -> None:
        if call.is_write:
            await asyncio.sleep(0.7)

    lab.proxy.before = slow
    mark = lab.proxy.mark()
    lab.edit("ledgers", "all", {"spec": {"text": "two", "pages": ["b", "c"]}})
    lab.eventually("the edit", lambda: is_ready(lab, "all", "two"))
    written = Counter(each for each in lab.proxy.written(mark) if "status" not in each)
    assert written == Counter(
        [
            "patch configmaps all-book",
            "create configmaps all-page-c",
            "patch configmaps all-page-b",
            "delete configmaps all-page-a",
        ]
    )
    told_once(lab)


STORMS: dict[str, Callable[[], Answer]] = {
    "429": lambda: Answer(429, "TooManyRequests", {"Retry-After": "1"}),
    "500": lambda: Answer(500, "InternalError"),
    "503": lambda: Answer(503, "ServiceUnavailable"),
    "504": lambda: Answer(504, "Timeout"),
    "a page of a load balancer": lambda: Answer(502),
}


def test_a_throttled_operator_resumes_when_throttling_ends(make: Make) -> None:
    """All connections end. Then every request (watches, reads, writes and discovery) gets this answer for a while."""
    with ThreadPoolExecutor(len(STORMS)) as threads:  # mostly waits
        list(threads.map(lambda storm: lives_through(make, storm), STORMS))


def lives_through(make: Make, storm: str) -> None:
    with make("storm") as lab:
        lab.start_and_wait()
        begin(lab)
        left = 25

        async def answer(call: Call) -> Answer | None:
            nonlocal left
            left -= 1
            return STORMS[storm]() if left > 0 and call.resource != "events" else None

        mark = lab.proxy.mark()
        lab.proxy.before = answer
        lab.proxy.cut()
        lab.edit("ledgers", "all", {"spec": {"text": "two"}})
        lab.eventually("something to be refused", lambda: left < 15)
        lab.edit("ledgers", "all", {"spec": {"text": "three"}})
        lab.admin.delete(lab.path("configmaps", "all-page-a"))
        left = 8
        lab.eventually(f"the edit after {storm}", lambda: is_ready(lab, "all", "three"))
        lab.eventually(f"the deleted child after {storm}", lambda: lab.get("configmaps", "all-page-a"))
        made = "create configmaps all-page-a"
        assert Counter(lab.proxy.written(mark))[made] == 1
        told_once(lab)


def test_an_operator_started_under_throttling_waits(lab: Lab) -> None:
    begin(lab)
    lab.kill()
    lab.proxy.stop_listening()
    lab.start()
    lab.eventually("it to say so", lambda: "API server not reachable" in lab.log_file.read_text())
    lab.edit("ledgers", "all", {"spec": {"text": "two"}})
    lab.proxy.listen_again()
    lab.eventually("the edit", lambda: is_ready(lab, "all", "two"))
    told_once(lab)
