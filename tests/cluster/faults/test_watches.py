"""The operator's stores are outdated, because its watches are slow, repeat events, or deliver an older state. It does
not revert newer changes, and writes nothing twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.faults.lab import Lab, is_quiet
from tests.cluster.faults.proxy import Call
from tests.cluster.server import RefusedError

EXPIRED = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Expired",
        "code": 410,
        "message": "too old",
    },
}


@pytest.fixture
def ledger(lab: Lab) -> Lab:
    """One that is ready."""
    lab.make("ledgers", "all", "Ledger", spec={"text": "one", "pages": ["a", "b"]})
    lab.eventually("the ledger", lambda: lab.is_observed("ledgers", "all", "Ready"))
    return lab


def rest(lab: Lab) -> None:
    while not is_quiet(lab.proxy, 0.7):
        pass


def test_written_objects_are_known_before_their_watch_event(ledger: Lab) -> None:
    rest(ledger)
    with ledger.proxy.holding("configmaps"):
        for text in ("two", "three", "four"):
            mark = ledger.proxy.mark()
            ledger.edit("ledgers", "all", {"spec": {"text": text}})
            ledger.eventually("the ledger", lambda: ledger.is_observed("ledgers", "all", "Ready"))
            assert ledger.proxy.written(mark) == ["patch configmaps all-book", "patch ledgers/status all"]
        mark = ledger.proxy.mark()
    rest(ledger)
    assert [str(call) for call in ledger.proxy.calls[mark:] if call.is_write] == []
    assert ledger.get("configmaps", "all-book")["data"]["text"] == "four"


def test_a_child_changed_during_an_outage_is_read_before_it_is_written(ledger: Lab) -> None:
    """The field of the other client stays, ruleop's is reverted, and the write that was planned from the outdated store
    is not made."""
    rest(ledger)
    with ledger.proxy.holding("configmaps"):
        ledger.edit("configmaps", "all-book", {"data": {"text": "by hand", "theirs": "kept"}})
        mark = ledger.proxy.mark()
        ledger.edit("ledgers", "all", {"spec": {"text": "two"}})
        ledger.eventually("the ledger", lambda: ledger.is_observed("ledgers", "all", "Ready"))
        assert ledger.get("configmaps", "all-book")["data"] == {"text": "two", "currency": "none", "theirs": "kept"}
        patches = [call.status for call in ledger.proxy.calls[mark:] if str(call) == "patch configmaps all-book"]
        assert patches == [409, 200]
    rest(ledger)
    assert ledger.get("configmaps", "all-book")["data"] == {"text": "two", "currency": "none", "theirs": "kept"}


def test_an_object_that_replaced_a_child_during_an_outage_is_not_deleted(ledger: Lab) -> None:
    rest(ledger)
    with ledger.proxy.holding("configmaps"):
        ledger.admin.delete(ledger.path("configmaps", "all-page-a"))
        foreign = ledger.make("configmaps", "all-page-a", "ConfigMap", data={"whose": "somebody's"})
        ledger.edit("ledgers", "all", {"spec": {"pages": ["b"]}})
        ledger.eventually("the ledger", lambda: ledger.is_observed("ledgers", "all"))
    rest(ledger)
    assert ledger.get("configmaps", "all-page-a")["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert "delete configmaps all-page-a" not in [str(call) for call in ledger.proxy.calls]


def test_a_cr_edited_during_an_outage_gets_no_outdated_status(ledger: Lab) -> None:
    """Its status write is rejected. The operator then reads the CR, and does not wait for the watch's event."""
    ledger.make("configmaps", "all-settings", "ConfigMap", data={"currency": "EUR"})
    ledger.eventually("the currency", lambda: ledger.get("configmaps", "all-book")["data"]["currency"] == "EUR")
    rest(ledger)
    with ledger.proxy.holding("ledgers"):
        ledger.edit("ledgers", "all", {"spec": {"text": "two", "pages": ["a"]}})
        mark = ledger.proxy.mark()
        ledger.edit("configmaps", "all-settings", {"data": {"currency": "CHF"}})
        ledger.eventually("the ledger", lambda: ledger.is_observed("ledgers", "all", "Ready"))

        def answered() -> list[Call]:
            calls = [call for call in ledger.proxy.calls[mark:] if str(call) == "patch ledgers/status all"]
            return calls if all(call.status for call in calls) else []

        calls = ledger.eventually("the responses to its writes", answered)
        outdated, accepted, *others = [
            (call.status, json.loads(call.body)["status"].get("observedGeneration")) for call in calls
        ]
        assert outdated == (409, None), "it differs from the last status in the currency alone"
        assert accepted == (200, 2)
        assert {status for status, _ in others} <= {200}
    ledger.eventually("the ledger", lambda: ledger.is_observed("ledgers", "all", "Ready"))
    rest(ledger)
    assert ledger.get("configmaps", "all-book")["data"] == {"text": "two", "currency": "CHF"}
    assert ledger.get("ledgers", "all")["status"]["pages"] == 1
    assert ledger.get("ledgers", "all")["status"]["currency"] == "CHF"
    assert len([call for call in ledger.proxy.calls[mark:] if call.is_write]) < 30


def test_a_slow_second_watch_of_a_kind_does_not_delay_recreation(ledger: Lab) -> None:
    """One watch delivers the children, the other one the observed objects. While they differ, the deleted child may
    seem to exist."""
    rest(ledger)
    with ledger.proxy.holding("configmaps", all_objects=True):
        ledger.admin.delete(ledger.path("configmaps", "all-page-a"))
        ledger.eventually(
            "the other watch",
            lambda: "ConfigMap where ruleop.dev/part-of: 2 objects" in ledger.probe("/readyz?verbose")[1],
        )
        rest(ledger)
    ledger.eventually("it to be made again", lambda: ledger.get("configmaps", "all-page-a"))


@pytest.mark.newest("lists are streams")
def test_an_older_state_of_the_server_is_rejected(ledger: Lab) -> None:
    """A list that is older than the store is rejected; nothing is created again or deleted because of it."""
    rest(ledger)
    mark = ledger.proxy.mark()
    with ledger.proxy.replaying("configmaps"):
        ledger.proxy.inject("configmaps", EXPIRED)
        ledger.eventually("the past events to be sent", lambda: len(lists(ledger, mark)) >= 3)
        ledger.edit("ledgers", "all", {"spec": {"text": "two"}})
        ledger.eventually("the ledger", lambda: ledger.is_observed("ledgers", "all", "Ready"))
        assert ledger.proxy.written(mark) == ["patch configmaps all-book", "patch ledgers/status all"]
    ledger.eventually("the present to be listed", lambda: "older than" not in ledger.probe("/readyz?verbose")[1])
    ledger.admin.delete(ledger.path("configmaps", "all-page-b"))
    ledger.eventually("what went to be made again", lambda: ledger.get("configmaps", "all-page-b"))


def lists(lab: Lab, mark: int) -> list[Any]:
    return [
        call for call in lab.proxy.calls[mark:] if "sendInitialEvents" in call.query and call.parts[0] == "configmaps"
    ]


def test_repeated_watch_events_cause_no_write(ledger: Lab) -> None:
    """Old events do not make the operator believe that a deleted object exists."""
    old = ledger.get("configmaps", "all-page-a")
    ledger.edit("ledgers", "all", {"spec": {"pages": ["b"]}})
    ledger.eventually("the ledger", lambda: ledger.is_observed("ledgers", "all", "Ready"))
    with pytest.raises(RefusedError):
        ledger.get("configmaps", "all-page-a")
    rest(ledger)
    mark = ledger.proxy.mark()
    for kind in ("ADDED", "MODIFIED", "DELETED", "ADDED"):
        ledger.proxy.inject("configmaps", {"type": kind, "object": {"apiVersion": "v1", "kind": "ConfigMap", **old}})
    rest(ledger)
    assert [str(call) for call in ledger.proxy.calls[mark:] if not call.is_watch] == []
