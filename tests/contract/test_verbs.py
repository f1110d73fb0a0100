"""Create, read, replace, patch and delete: for a built-in and a custom kind."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.contract.client import JSON_PATCH, MERGE, STRATEGIC, Server
from tests.contract.kinds import CONFIG_MAPS, GADGETS, INGRESSES, WIDGETS, Sample, config_map
from tests.contract.recording import Recording
from tests.waiting import eventually

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def version_of(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


# -- create ------------------------------------------------------------------------------------------------------------


def test_a_new_object_has_metadata_of_the_server(server: Server, namespace: str, sample: Sample) -> None:
    reply = server.send("POST", sample.path(namespace), sample.obj(labels={"a": "b"}))
    assert reply.status == 201
    assert server.get(sample.path(namespace, "a")) == reply.body
    metadata = reply.body["metadata"]
    assert metadata.pop("uid")
    assert metadata.pop("creationTimestamp")
    assert version_of({"metadata": metadata})
    metadata.pop("managedFields", None)
    metadata.pop("resourceVersion")
    assert metadata == {"name": "a", "namespace": namespace, "labels": {"a": "b"}, "generation": 1}
    assert (reply.body["kind"], reply.body["apiVersion"]) == (sample.kind, sample.api_version)


def test_server_set_metadata_in_a_creation_is_ignored(server: Server, namespace: str, sample: Sample) -> None:
    given = {
        "uid": "mine",
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "deletionTimestamp": "2000-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 3,
        "generation": 17,
        "selfLink": "/x",
    }
    found = server.create(sample.path(namespace), sample.obj(**given))["metadata"]
    assert found["uid"] != "mine"
    assert found["creationTimestamp"] > "2000-01-01T00:00:00Z"
    assert found["generation"] == 1
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & set(found)


def test_the_namespace_of_an_object_is_that_of_the_path(server: Server, namespace: str, sample: Sample) -> None:
    assert server.create(sample.path(namespace), sample.obj())["metadata"]["namespace"] == namespace
    same = server.create(sample.path(namespace), sample.obj("b", namespace=namespace))
    assert same["metadata"]["namespace"] == namespace


def test_a_status_in_a_creation_is_ignored(server: Server, namespace: str, sample: Sample) -> None:
    found = server.create(sample.path(namespace), {**sample.obj(), "status": sample.status})
    assert found.get("status", {}) in ({}, {"loadBalancer": {}})


def test_generate_name_generates_a_unique_name(server: Server, namespace: str, sample: Sample) -> None:
    names = {
        server.create(sample.path(namespace), sample.obj("", generateName="web-"))["metadata"]["name"] for _ in range(3)
    }
    assert len(names) == 3
    assert all(re.fullmatch("web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    long = server.create(sample.path(namespace), sample.obj("", generateName="x" * 100))["metadata"]
    assert len(long["name"]) == 63
    assert long["generateName"] == "x" * 100


def test_a_name_takes_precedence_over_generate_name(server: Server, namespace: str, sample: Sample) -> None:
    assert server.create(sample.path(namespace), sample.obj("a", generateName="b-"))["metadata"]["name"] == "a"


def test_a_body_may_be_yaml(server: Server, namespace: str) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: 'off'\n"
    found = server.send("POST", CONFIG_MAPS.path(namespace), body, media="application/yaml")
    assert found.ok()["data"] == {"x": "off"}


def test_empty_metadata_fields_are_dropped(server: Server, namespace: str) -> None:
    given = config_map(labels={}, annotations={}, finalizers=[], ownerReferences=[], generateName="")
    found = server.create(CONFIG_MAPS.path(namespace), given)
    assert not {"labels", "annotations", "finalizers", "ownerReferences", "generateName"} & set(found["metadata"])
    custom = server.create(WIDGETS.path(namespace), {**WIDGETS.obj(), "metadata": given["metadata"]})
    assert not {"labels", "annotations", "finalizers", "ownerReferences", "generateName"} & set(custom["metadata"])


# -- replace and patch -------------------------------------------------------------------------------------------------


def test_a_replacement_needs_the_current_version(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    first = server.create(sample.path(namespace), sample.obj())
    second = server.merge(path, {"metadata": {"labels": {"a": "b"}}})
    assert version_of(second) > version_of(first)
    status = server.send("PUT", path, first).refused(409, "Conflict")
    assert status["message"] == f'Operation cannot be fulfilled on {sample.title} "a": {MODIFIED}'
    assert status["details"] == {"name": "a", "group": sample.group, "kind": sample.plural}
    third = server.replace(path, {**second, "spec": {**second["spec"], **sample.changed}})
    assert third["metadata"]["generation"] == 2


def test_a_replacement_without_a_version_is_refused_for_custom_resources_only(server: Server, namespace: str) -> None:
    """A custom resource needs one; of the built-in kinds most do not."""
    server.create(INGRESSES.path(namespace), INGRESSES.obj(labels={"a": "b"}))
    found = server.replace(INGRESSES.path(namespace, "a"), INGRESSES.obj())
    assert "labels" not in found["metadata"]
    server.create(WIDGETS.path(namespace), WIDGETS.obj())
    status = server.send("PUT", WIDGETS.path(namespace, "a"), WIDGETS.obj()).refused(422, "Invalid")
    assert status["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: 0: must be specified for an update",
            "field": "metadata.resourceVersion",
        }
    ]


def test_a_replacement_with_another_uid_is_a_conflict(server: Server, namespace: str, sample: Sample) -> None:
    found = server.create(sample.path(namespace), sample.obj())
    changed = {**found, "metadata": {**found["metadata"], "uid": "another"}}
    status = server.send("PUT", sample.path(namespace, "a"), changed).refused(409, "Conflict")
    assert status["message"].endswith(
        f"Precondition failed: UID in precondition: another, UID in object meta: {found['metadata']['uid']}"
    )


@pytest.mark.parametrize("subresource", ["", "/status"])
def test_a_patch_with_another_uid_is_a_conflict_if_its_version_is_outdated_too(
    server: Server, namespace: str, sample: Sample, subresource: str
) -> None:
    """With the current version, it is invalid, because the uid is immutable. Only a patch of the status of a custom
    resource ignores the uid."""
    path = sample.path(namespace, "a")
    first = server.create(sample.path(namespace), sample.obj())["metadata"]
    second = server.merge(path, {"metadata": {"labels": {"a": "b"}}})["metadata"]
    patch = {"metadata": {"uid": "another", "resourceVersion": first["resourceVersion"]}}
    status = server.send("PATCH", path + subresource, patch, media=MERGE).refused(409, "Conflict")
    assert status["message"] == f'Operation cannot be fulfilled on {sample.title} "a": {MODIFIED}'
    patch["metadata"]["resourceVersion"] = second["resourceVersion"]
    reply = server.send("PATCH", path + subresource, patch, media=MERGE)
    if subresource and sample is WIDGETS:
        assert reply.ok()["metadata"] == second
    else:
        assert {each["field"] for each in reply.refused(422, "Invalid")["details"]["causes"]} == {"metadata.uid"}


def test_a_write_without_changes_keeps_the_resource_version(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    found = server.create(sample.path(namespace), sample.obj())
    assert version_of(server.replace(path, found)) == version_of(found)
    assert version_of(server.merge(path, {"spec": sample.spec})) == version_of(found)


def test_a_replacement_cannot_change_server_set_metadata(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    before = server.create(sample.path(namespace), sample.obj())["metadata"]
    given = {
        **sample.obj(),
        "metadata": {"name": "a", "resourceVersion": before["resourceVersion"], "generation": 9, "labels": {"a": "b"}},
    }
    after = server.replace(path, given)["metadata"]
    assert [after[each] for each in ("uid", "creationTimestamp", "generation")] == [
        before[each] for each in ("uid", "creationTimestamp", "generation")
    ]


def test_the_generation_counts_changes_of_the_spec(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    server.create(sample.path(namespace), sample.obj())
    assert server.merge(path, {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert server.merge(f"{path}/status", {"status": sample.status})["metadata"]["generation"] == 1
    assert server.merge(path, {"spec": sample.changed})["metadata"]["generation"] == 2
    assert server.merge(path, {"spec": sample.changed})["metadata"]["generation"] == 2


def test_a_kind_without_status_subresource_counts_status_changes_in_the_generation(
    server: Server, namespace: str
) -> None:
    path = GADGETS.path(namespace, "a")
    found = server.create(GADGETS.path(namespace), {**GADGETS.obj(), "status": {"phase": "New"}})
    assert found["status"] == {"phase": "New"}
    found = server.merge(path, {"status": {"phase": "Ready"}})
    assert (found["status"], found["metadata"]["generation"]) == ({"phase": "Ready"}, 2)


def test_a_status_is_only_written_through_its_subresource(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    found = server.create(sample.path(namespace), sample.obj())
    empty = found.get("status")
    assert server.merge(path, {"status": sample.status}).get("status") == empty
    found = server.merge(
        f"{path}/status",
        {
            "spec": sample.changed,
            "status": sample.status,
            "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/stay"]},
        },
    )
    assert found["status"] == sample.status
    assert {name: found["spec"][name] for name in sample.spec} == sample.spec
    assert server.get(f"{path}/status") == found
    changed = server.merge(path, {"spec": sample.changed, "status": None})
    assert changed["status"] == sample.status


def test_a_status_write_changes_metadata_of_builtin_kinds_only(server: Server, namespace: str) -> None:
    metadata = {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/stay"]}
    kept = {}
    for sample in (INGRESSES, WIDGETS):
        server.create(sample.path(namespace), sample.obj())
        found = server.merge(f"{sample.path(namespace, 'a')}/status", {"metadata": metadata, "status": sample.status})
        kept[sample.plural] = sorted(set(metadata) & set(found["metadata"]))
    assert kept == {"ingresses": ["annotations", "finalizers", "labels"], "widgets": []}


def test_a_merge_patch_removes_nulls_and_merges_maps(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    server.create(sample.path(namespace), sample.obj(labels={"a": "1", "b": "2"}, annotations={"x": "y"}))
    found = server.merge(path, {"metadata": {"labels": {"a": None, "c": "3"}, "annotations": None}})
    assert found["metadata"]["labels"] == {"b": "2", "c": "3"}
    assert "annotations" not in found["metadata"]


def test_a_json_patch_applies_its_operations_in_order(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    server.create(sample.path(namespace), sample.obj(labels={"a/b": "1"}))
    patch = [
        {"op": "test", "path": "/metadata/name", "value": "a"},
        {"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/one"]},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/two"},
        {"op": "copy", "from": "/metadata/labels/a~1b", "path": "/metadata/labels/c"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    found = server.send("PATCH", path, patch, media=JSON_PATCH).ok()
    assert found["metadata"]["labels"] == {"a/b": "2", "c": "2"}
    assert found["metadata"]["finalizers"] == ["example.com/two"]


def test_a_strategic_merge_patch_merges_lists(server: Server, namespace: str) -> None:
    server.create(INGRESSES.path(namespace), INGRESSES.obj(labels={"a": "1"}))
    path = INGRESSES.path(namespace, "a")
    patch = {"metadata": {"labels": {"b": "2"}, "finalizers": ["example.com/one"]}}
    server.send("PATCH", path, patch, media=STRATEGIC).ok()
    patch = {"metadata": {"finalizers": ["example.com/two"]}}
    found = server.send("PATCH", path, patch, media=STRATEGIC).ok()
    assert found["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert sorted(found["metadata"]["finalizers"]) == ["example.com/one", "example.com/two"]


def test_a_patch_with_an_outdated_resource_version_is_a_conflict(
    server: Server, namespace: str, sample: Sample
) -> None:
    path = sample.path(namespace, "a")
    first = server.create(sample.path(namespace), sample.obj())
    given = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"], "labels": {"a": "b"}}}
    server.merge(path, given)
    server.send("PATCH", path, given, media="application/merge-patch+json").refused(409, "Conflict")


# -- delete ------------------------------------------------------------------------------------------------------------


def test_a_deletion_is_answered_with_a_status(server: Server, namespace: str, sample: Sample) -> None:
    found = server.create(sample.path(namespace), sample.obj())
    status = server.delete(sample.path(namespace, "a"))
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": "a",
            "group": sample.group,
            "kind": sample.plural,
            "uid": found["metadata"]["uid"],
        },
    }
    server.send("GET", sample.path(namespace, "a")).refused(404, "NotFound")


def test_a_deletion_with_wrong_preconditions_is_a_conflict(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    found = server.create(sample.path(namespace), sample.obj())["metadata"]
    status = server.send("DELETE", path, {"preconditions": {"uid": "other"}}).refused(409, "Conflict")
    title = f"{sample.kind}.{sample.group}"
    assert status["message"] == (
        f'Operation cannot be fulfilled on {title} "a": the UID in the precondition (other) does not match the UID in '
        f"record ({found['uid']}). The object might have been deleted and then recreated"
    )
    assert status["details"] == {"name": "a", "group": sample.group, "kind": sample.kind}
    status = server.send("DELETE", path, {"preconditions": {"resourceVersion": "1"}}).refused(409, "Conflict")
    assert status["message"] == (
        f'Operation cannot be fulfilled on {title} "a": the ResourceVersion in the precondition (1) does not match the '
        f"ResourceVersion in record ({found['resourceVersion']}). The object might have been modified"
    )
    server.delete(path, {"preconditions": {"uid": found["uid"], "resourceVersion": found["resourceVersion"]}})


def test_finalizers_keep_a_deleted_object(server: Server, namespace: str, sample: Sample, recording: Recording) -> None:
    path = sample.path(namespace, "a")
    server.create(sample.path(namespace), sample.obj(finalizers=["example.com/stay"]))
    first = server.delete(path)
    assert first["metadata"]["deletionTimestamp"]
    assert first["metadata"]["deletionGracePeriodSeconds"] == 0
    assert first["metadata"]["generation"] == 2
    assert server.delete(path) == first
    found = server.merge(path, {"spec": sample.changed})
    assert found["metadata"]["generation"] == 3
    status = server.send(
        "PATCH",
        path,
        {"metadata": {"finalizers": ["example.com/stay", "example.com/more"]}},
        media="application/merge-patch+json",
    ).refused(422, "Invalid")
    recording.check(f"a finalizer is added to {sample.plural}", status, namespace)
    last = server.merge(path, {"metadata": {"finalizers": None}})
    assert last["metadata"]["deletionTimestamp"] == first["metadata"]["deletionTimestamp"]
    assert not server.exists(path)


def test_a_deletion_timestamp_cannot_be_removed(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    server.create(sample.path(namespace), sample.obj(finalizers=["example.com/stay"]))
    deleted = server.delete(path)["metadata"]
    found = server.merge(path, {"metadata": {"deletionTimestamp": None, "labels": {"a": "b"}}})["metadata"]
    assert found["deletionTimestamp"] == deleted["deletionTimestamp"]
    server.merge(path, {"metadata": {"finalizers": None}})


def test_creating_an_object_that_is_being_deleted_is_refused(server: Server, namespace: str, sample: Sample) -> None:
    server.create(sample.path(namespace), sample.obj(finalizers=["example.com/stay"]))
    server.delete(sample.path(namespace, "a"))
    status = server.send("POST", sample.path(namespace), sample.obj()).refused(409, "AlreadyExists")
    assert status["message"] == f'object is being deleted: {sample.title} "a" already exists'
    server.merge(sample.path(namespace, "a"), {"metadata": {"finalizers": None}})


def test_deletecollection_deletes_the_selected_objects(server: Server, namespace: str, sample: Sample) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        server.create(sample.path(namespace), sample.obj(name, labels={"l": label}))
    found = server.delete(sample.path(namespace), labelSelector="l=x")
    assert found["kind"] == f"{sample.kind}List"
    assert [each["metadata"]["name"] for each in found["items"]] == ["a", "b"]
    assert [each["metadata"]["name"] for each in server.get(sample.path(namespace))["items"]] == ["c"]
    server.delete(sample.path(namespace))
    assert server.get(sample.path(namespace))["items"] == []


def test_a_pod_is_deleted_after_its_grace_period(server: Server, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "a"}], "terminationGracePeriodSeconds": 1},
    }
    server.create(pods, pod)
    eventually("it runs", lambda: server.get(f"{pods}/a")["status"].get("phase") == "Running")
    found = server.delete(f"{pods}/a")["metadata"]
    assert found["deletionGracePeriodSeconds"] == 1
    assert found["deletionTimestamp"] > found["creationTimestamp"]
    eventually("it is gone", lambda: not server.exists(f"{pods}/a"))
    server.create(pods, pod)
    server.delete(f"{pods}/a", {"gracePeriodSeconds": 0})
    assert not server.exists(f"{pods}/a")


# -- dry runs ----------------------------------------------------------------------------------------------------------


def test_a_dry_run_answers_and_writes_nothing(server: Server, namespace: str, sample: Sample) -> None:
    collection, path = sample.path(namespace), sample.path(namespace, "a")
    made = server.create(f"{collection}?dryRun=All", sample.obj())
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    assert not server.exists(path)
    first = server.create(collection, sample.obj())
    server.send("POST", f"{collection}?dryRun=All", sample.obj()).refused(409, "AlreadyExists")
    patched = server.merge(f"{path}?dryRun=All", {"spec": sample.changed})
    assert patched["metadata"]["generation"] == 2
    assert patched["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    server.replace(f"{path}?dryRun=All", {**first, "spec": {**first["spec"], **sample.changed}})
    assert server.merge(f"{path}/status?dryRun=All", {"status": sample.status})["status"] == sample.status
    assert server.delete(f"{path}?dryRun=All")["status"] == "Success"
    server.delete(path, {"dryRun": ["All"]})
    server.delete(f"{collection}?dryRun=All")
    assert server.get(path) == first


# -- scale -------------------------------------------------------------------------------------------------------------


def test_a_custom_resource_has_a_scale_subresource(server: Server, namespace: str) -> None:
    path = WIDGETS.path(namespace, "a")
    made = server.create(WIDGETS.path(namespace), WIDGETS.obj())
    server.merge(f"{path}/status", {"status": {"replicas": 2, "selector": "a=b"}})
    scale = server.get(f"{path}/scale")
    metadata = scale.pop("metadata")
    assert scale == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "spec": {"replicas": 1},
        "status": {"replicas": 2, "selector": "a=b"},
    }
    assert set(metadata) == {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}
    assert metadata["uid"] == made["metadata"]["uid"]
    assert server.merge(f"{path}/scale", {"spec": {"replicas": 3}})["spec"] == {"replicas": 3}
    found = server.get(path)
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (3, 2)
    stale = {**scale, "metadata": metadata, "spec": {"replicas": 4}}
    server.send("PUT", f"{path}/scale", stale).refused(409, "Conflict")
    del metadata["resourceVersion"]
    assert server.replace(f"{path}/scale", stale)["spec"] == {"replicas": 4}


def test_a_stateful_set_has_a_scale_subresource(server: Server, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
    labels = {"a": "b"}
    server.create(
        path,
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "a"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "serviceName": "a",
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "a", "image": "a"}]},
                },
            },
        },
    )
    scale = server.get(f"{path}/a/scale")
    assert (scale["spec"], scale["status"]) == ({}, {"replicas": 0, "selector": "a=b"})
    assert server.merge(f"{path}/a/scale", {"spec": {"replicas": 1}})["spec"] == {"replicas": 1}
    assert server.get(f"{path}/a")["spec"]["replicas"] == 1
