"""Events: one object in two groups, with other names for the same fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.contract.client import Server

ABOUT = {"kind": "ConfigMap", "name": "web", "apiVersion": "v1"}
MOMENT = "2026-01-02T03:04:05.000006Z"


def old(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/events/{name}".rstrip("/")


def new(namespace: str, name: str = "") -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}".rstrip("/")


def event(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "it", "namespace": namespace},
        "eventTime": MOMENT,
        "action": "Sync",
        "reason": "Synced",
        "note": "all is well",
        "type": "Normal",
        "regarding": {**ABOUT, "namespace": namespace},
        "reportingController": "example.com/it",
        "reportingInstance": "it-1",
    }


def without_metadata(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name != "metadata"}


def test_an_event_of_the_new_group_is_one_of_the_old_group(server: Server, namespace: str) -> None:
    made = server.create(new(namespace), event(namespace))
    assert without_metadata(made) == without_metadata(event(namespace)) | {
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    found = server.get(old(namespace, "it"))
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert without_metadata(found) == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {**ABOUT, "namespace": namespace},
        "reason": "Synced",
        "message": "all is well",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": MOMENT,
        "action": "Sync",
        "reportingComponent": "example.com/it",
        "reportingInstance": "it-1",
    }
    (listed,) = server.get(new(namespace))["items"]
    assert (listed["note"], "kind" in listed) == ("all is well", False)


def test_an_event_of_the_old_group_is_one_of_the_new_group(server: Server, namespace: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "it"},
        "involvedObject": {**ABOUT, "namespace": namespace},
        "reason": "Synced",
        "message": "all is well",
        "count": 2,
        "source": {"component": "it"},
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:06Z",
        "type": "Normal",
    }
    server.create(old(namespace), body)
    assert without_metadata(server.get(new(namespace, "it"))) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "regarding": {**ABOUT, "namespace": namespace},
        "reason": "Synced",
        "note": "all is well",
        "deprecatedCount": 2,
        "deprecatedSource": {"component": "it"},
        "deprecatedFirstTimestamp": "2026-01-02T03:04:05Z",
        "deprecatedLastTimestamp": "2026-01-02T03:04:06Z",
        "type": "Normal",
        "eventTime": None,
    }


def test_a_patch_and_a_watch_of_the_new_group_have_its_names(server: Server, namespace: str) -> None:
    made = server.create(new(namespace), event(namespace))
    with server.watch(new(namespace), resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        series = {"count": 2, "lastObservedTime": MOMENT}
        assert server.merge(new(namespace, "it"), {"series": series})["series"] == series
        kind, found = watch.next()
    assert (kind, found["note"], found["series"]) == ("MODIFIED", "all is well", series)
    assert server.get(old(namespace, "it"))["series"] == series
