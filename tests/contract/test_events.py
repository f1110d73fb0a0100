"""Events of v1 and of events.k8s.io/v1 are the same objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.client import Server
from tests.contract.recording import Recording


def core(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": namespace},
        "message": "text",
        "reason": "Some",
        "type": "Normal",
        "source": {"component": "c"},
        "count": 2,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }


def new(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "a"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": namespace},
        "note": "text",
        "reason": "Some",
        "type": "Normal",
        "action": "Act",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
    }


@pytest.mark.parametrize("made", [core, new])
def test_an_event_is_readable_in_both_apis(server: Server, namespace: str, made: Any, recording: Recording) -> None:
    paths = {
        "core": f"/api/v1/namespaces/{namespace}/events",
        "new": f"/apis/events.k8s.io/v1/namespaces/{namespace}/events",
    }
    version = server.get(paths["core"])["metadata"]["resourceVersion"]
    server.create(paths[made.__name__], made(namespace))
    for name, path in paths.items():
        found = server.get(f"{path}/a")
        recording.check(f"{made.__name__} seen in {name}", found, namespace)
        (item,) = server.get(path, fieldSelector="metadata.name=a")["items"]
        assert item["metadata"]["uid"] == found["metadata"]["uid"]
        with server.watch(path, resourceVersion=version) as watch:
            assert watch.next() == ("ADDED", found)
    (described,) = server.get(paths["core"], fieldSelector="involvedObject.name=p,involvedObject.kind=Pod")["items"]
    assert described["metadata"]["name"] == "a"


def test_the_series_of_an_event_can_be_patched(server: Server, namespace: str) -> None:
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    server.create(path, new(namespace))
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    assert server.merge(f"{path}/a", {"series": series})["series"] == series
    seen = server.get(f"/api/v1/namespaces/{namespace}/events/a")
    assert (seen["series"], seen["message"]) == (series, "text")
    server.delete(f"/api/v1/namespaces/{namespace}/events/a")
    assert not server.exists(f"{path}/a")
