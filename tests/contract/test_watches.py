"""Watches: from a version, with selectors, bookmarks and initial events."""

from __future__ import annotations

import pytest

from tests.contract.client import Server
from tests.contract.kinds import INGRESSES, WIDGETS, Sample
from tests.contract.recording import Recording

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def version_of(server: Server, namespace: str, sample: Sample) -> str:
    version: str = server.get(sample.path(namespace))["metadata"]["resourceVersion"]
    return version


def test_a_watch_sends_the_events_since_its_version(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace)
    server.create(path, sample.obj("early"))
    version = version_of(server, namespace, sample)
    server.create(path, sample.obj("a"))
    server.merge(f"{path}/a", {"spec": sample.changed})
    with server.watch(path, resourceVersion=version, timeoutSeconds=30) as watch:
        assert watch.named(2) == [("ADDED", "a"), ("MODIFIED", "a")]
        last = server.delete(f"{path}/a")
        type_, obj = watch.next()
        assert (type_, obj["metadata"]["name"], last["status"]) == ("DELETED", "a", "Success")
        assert int(obj["metadata"]["resourceVersion"]) > int(version)
        assert obj["spec"]
        assert obj["kind"] == sample.kind
        assert obj["apiVersion"] == sample.api_version
        server.create(path, sample.obj("b"))
        assert watch.named(1) == [("ADDED", "b")]


def test_a_deletion_event_has_a_new_resource_version(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace)
    made = server.create(path, sample.obj())
    with server.watch(path, resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        server.delete(f"{path}/a")
        _, obj = watch.next()
        assert int(obj["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        obj["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
        assert obj == made


def test_a_watch_without_a_version_starts_with_the_existing_objects(
    server: Server, namespace: str, sample: Sample
) -> None:
    path = sample.path(namespace)
    for name in "ba":
        server.create(path, sample.obj(name))
    for query in ({}, {"resourceVersion": "0"}):
        with server.watch(path, **query) as watch:
            assert sorted(watch.named(2)) == [("ADDED", "a"), ("ADDED", "b")]


def test_an_object_with_finalizers_is_modified_then_deleted(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace)
    server.create(path, sample.obj(finalizers=["example.com/stay"]))
    with server.watch(path, resourceVersion=version_of(server, namespace, sample)) as watch:
        server.delete(f"{path}/a")
        type_, obj = watch.next()
        assert type_ == "MODIFIED"
        assert obj["metadata"]["deletionTimestamp"]
        server.merge(f"{path}/a", {"metadata": {"finalizers": None}})
        type_, obj = watch.next()
        assert type_ == "DELETED"
        assert "finalizers" in obj["metadata"]


def test_an_object_that_starts_or_stops_matching_a_selector_is_added_or_deleted(
    server: Server, namespace: str, sample: Sample
) -> None:
    path = sample.path(namespace)
    server.create(path, sample.obj("a", labels={"l": "x"}))
    server.create(path, sample.obj("b", labels={"l": "y"}))
    with server.watch(path, resourceVersion=version_of(server, namespace, sample), labelSelector="l=x") as watch:
        server.merge(f"{path}/b", {"spec": sample.changed})
        server.merge(f"{path}/b", {"metadata": {"labels": {"l": "x"}}})
        server.merge(f"{path}/a", {"spec": sample.changed})
        left = server.merge(f"{path}/a", {"metadata": {"labels": {"l": "z"}}})
        server.delete(f"{path}/a")
        server.delete(f"{path}/b")
        assert watch.named(2) == [("ADDED", "b"), ("MODIFIED", "a")]
        type_, obj = watch.next()
        assert (type_, obj["metadata"]["name"], obj["metadata"]["labels"]) == ("DELETED", "a", {"l": "x"})
        assert obj["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
        assert watch.named(1) == [("DELETED", "b")]


def test_a_watch_can_be_of_one_object(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace)
    version = version_of(server, namespace, sample)
    with server.watch(path, resourceVersion=version, fieldSelector="metadata.name=b") as watch:
        for name in "abc":
            server.create(path, sample.obj(name))
        server.delete(f"{path}/b")
        assert watch.named(2) == [("ADDED", "b"), ("DELETED", "b")]


def test_a_watch_can_span_all_namespaces(server: Server, namespace: str, sample: Sample) -> None:
    version = version_of(server, namespace, sample)
    query = {"resourceVersion": version, "fieldSelector": f"metadata.namespace={namespace}"}
    with server.watch(sample.everywhere(), **query) as watch:
        server.create(sample.path(namespace), sample.obj())
        assert watch.named(1) == [("ADDED", "a")]


@pytest.mark.slow
def test_a_watch_ends_at_its_timeout(server: Server, namespace: str) -> None:
    """Of a built-in and of a custom kind, at the same time."""
    with (
        server.watch(INGRESSES.path(namespace), timeoutSeconds=1) as builtin,
        server.watch(WIDGETS.path(namespace), timeoutSeconds=1) as custom,
    ):
        assert builtin.rest() == custom.rest() == []


def test_a_watch_can_send_initial_events_and_a_bookmark(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace)
    for name in "ab":
        server.create(path, sample.obj(name))
    query = {
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
        "timeoutSeconds": 30,
    }
    with server.watch(path, **query) as watch:
        assert sorted(watch.named(2)) == [("ADDED", "a"), ("ADDED", "b")]
        type_, obj = watch.next()
        assert type_ == "BOOKMARK"
        assert obj["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert (obj["kind"], obj["apiVersion"]) == (sample.kind, sample.api_version)
        version = obj["metadata"]["resourceVersion"]
        server.create(path, sample.obj("c"))
        assert watch.named(1) == [("ADDED", "c")]
    with server.watch(path, resourceVersion=version) as watch:
        assert watch.named(1) == [("ADDED", "c")]
    with server.watch(path, **{**query, "sendInitialEvents": "false", "resourceVersion": version}) as watch:
        assert watch.named(1) == [("ADDED", "c")]


def test_events_of_a_metadata_only_watch_contain_only_metadata(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace)
    made = server.create(path, sample.obj())
    with server.watch(path, accept=PARTIAL) as watch:
        _, obj = watch.next()
        assert obj == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}


def test_a_watch_from_an_expired_version_ends_with_an_error(
    server: Server, namespace: str, recording: Recording
) -> None:
    """Custom resources of a new kind: nothing is known of what happened before it was served."""
    server.create(WIDGETS.path(namespace), WIDGETS.obj())
    with server.watch(WIDGETS.path(namespace), resourceVersion="1") as watch:
        if watch.status == 200:
            ((type_, status),) = watch.rest()
            assert type_ == "ERROR"
        else:
            status = {}
    status["message"] = status["message"].partition(" (")[0]
    recording.check("too old", status, namespace)
