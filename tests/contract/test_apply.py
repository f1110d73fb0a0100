"""Server-side apply, for a built-in and a custom kind."""

from __future__ import annotations

import uuid
from typing import Any

from tests.contract.client import APPLY, Reply, Server
from tests.contract.kinds import INGRESSES, Sample


def apply(server: Server, path: str, obj: Any, manager: str = "one", **query: Any) -> Reply:
    return server.send("PATCH", path, obj, media=APPLY, fieldManager=manager, **query)


def managers(obj: Any) -> list[tuple[str, str, str]]:
    found = obj["metadata"]["managedFields"]
    return [(each["manager"], each["operation"], each.get("subresource", "")) for each in found]


def test_apply_creates_a_missing_object(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    reply = apply(server, path, sample.obj(labels={"a": "b"}))
    assert reply.status == 201
    (entry,) = reply.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("one", "Apply", sample.api_version)
    assert entry["fieldsV1"]["f:metadata"] == {"f:labels": {"f:a": {}}}
    assert set(entry["fieldsV1"]["f:spec"]) == {f"f:{name}" for name in sample.spec}
    assert server.get(path) == reply.body


def test_apply_with_the_uid_of_an_object_that_is_gone_creates_none(
    server: Server, namespace: str, sample: Sample
) -> None:
    path, obj = sample.path(namespace, "a"), sample.obj()
    obj["metadata"]["uid"] = str(uuid.uuid4())
    status = apply(server, path, obj).refused(409, "Conflict")
    assert status["message"] == (
        f'Operation cannot be fulfilled on {sample.title} "a": uid mismatch: the provided object specified uid '
        f"{obj['metadata']['uid']}, and no existing object was found"
    )
    assert status["details"] == {"name": "a", "group": sample.group, "kind": sample.plural}
    assert not server.exists(path)


def test_apply_with_a_version_creates_a_missing_object(server: Server, namespace: str, sample: Sample) -> None:
    path, obj = sample.path(namespace, "a"), sample.obj()
    obj["metadata"]["resourceVersion"] = "1"
    reply = apply(server, path, obj)
    assert reply.status == 201
    assert server.get(path) == reply.body


def test_apply_with_another_uid_is_invalid(server: Server, namespace: str, sample: Sample) -> None:
    path, obj = sample.path(namespace, "a"), sample.obj(labels={"a": "b"})
    server.create(sample.path(namespace), sample.obj())
    obj["metadata"]["uid"] = str(uuid.uuid4())
    status = apply(server, path, obj, force="true").refused(422, "Invalid")
    assert {each["field"] for each in status["details"]["causes"]} == {"metadata.uid"}


def test_applying_the_same_configuration_again_writes_nothing(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    first = apply(server, path, sample.obj()).ok()
    again = apply(server, path, sample.obj())
    assert (again.status, again.body) == (200, first)


def test_a_field_that_is_no_longer_applied_is_removed(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    apply(server, path, sample.obj(labels={"a": "b", "c": "d"})).ok()
    found = apply(server, path, sample.obj(labels={"c": "d"})).ok()
    assert found["metadata"]["labels"] == {"c": "d"}


def test_apply_keeps_fields_of_other_managers(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    apply(server, path, sample.obj(labels={"a": "b"})).ok()
    server.merge(path, {"metadata": {"labels": {"c": "d"}}}, fieldManager="other")
    found = apply(server, path, sample.obj(labels={"a": "changed"})).ok()
    assert found["metadata"]["labels"] == {"a": "changed", "c": "d"}
    assert managers(found) == [("one", "Apply", ""), ("other", "Update", "")]


def test_a_conflict_names_the_other_manager(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    apply(server, path, sample.obj(labels={"a": "b"})).ok()
    status = apply(server, path, sample.obj(labels={"a": "c"}), "two").refused(409, "Conflict")
    assert status["message"] == ('Apply failed with 1 conflict: conflict with "one": .metadata.labels.a')
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".metadata.labels.a"}
    ]
    forced = apply(server, path, sample.obj(labels={"a": "c"}), "two", force="true").ok()
    assert forced["metadata"]["labels"] == {"a": "c"}
    assert managers(forced) == [("one", "Apply", ""), ("two", "Apply", "")]


def test_the_status_subresource_has_its_own_managers(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    apply(server, path, sample.obj()).ok()
    obj = {"apiVersion": sample.api_version, "kind": sample.kind, "status": sample.status}
    found = apply(server, f"{path}/status", obj, "status").ok()
    assert found["status"] == sample.status
    assert managers(found) == [("one", "Apply", ""), ("status", "Apply", "status")]
    again = apply(server, path, {**sample.obj(), "spec": {**sample.spec, **sample.changed}}).ok()
    assert again["status"] == sample.status
    assert again["metadata"]["generation"] == 2


def test_a_dry_run_of_apply_writes_nothing(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    reply = apply(server, path, sample.obj(), dryRun="All")
    assert reply.status == 201
    assert not server.exists(path)


def test_an_outdated_resource_version_in_a_configuration_is_a_conflict(
    server: Server, namespace: str, sample: Sample
) -> None:
    path = sample.path(namespace, "a")
    first = apply(server, path, sample.obj()).ok()
    version = first["metadata"]["resourceVersion"]
    apply(server, path, sample.obj(labels={"a": "b"}, resourceVersion=version)).ok()
    apply(server, path, sample.obj(labels={"a": "c"}, resourceVersion=version)).refused(409, "Conflict")


def test_defaulted_fields_have_no_manager(server: Server, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services/a"
    obj = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    found = apply(server, path, obj).ok()
    (entry,) = found["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}
    assert apply(server, path, obj).ok() == found


def test_an_update_owns_the_fields_that_it_sends(server: Server, namespace: str) -> None:
    found = server.create(INGRESSES.path(namespace), INGRESSES.obj(labels={"a": "b"}), fieldManager="m")
    (entry,) = found["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("m", "Update")
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {"f:defaultBackend": {".": {}, "f:service": {".": {}, "f:name": {}, "f:port": {}}}},
    }


def test_the_owner_of_a_part_of_an_atomic_map_owns_the_whole(server: Server, namespace: str) -> None:
    path = INGRESSES.path(namespace, "a")
    obj = apply(server, path, INGRESSES.obj()).ok()
    part = {"f:spec": {"f:defaultBackend": {"f:resource": {"f:kind": {}}}}}
    obj["metadata"]["managedFields"][0]["fieldsV1"] = part
    found = server.replace(path, obj)
    assert found["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:defaultBackend": {"f:resource": {}}}}
