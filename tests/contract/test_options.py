"""The options of requests, and what is not accepted in them."""

from __future__ import annotations

from typing import Any

from tests.contract.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Reply, Server
from tests.contract.kinds import CONFIG_MAPS, WIDGETS, Sample, config_map

TIMEOUTS = {
    "x": 'invalid duration "x"',
    "5": 'missing unit in duration "5"',
    "1d": 'unknown unit "d" in duration "1d"',
    "1s2": 'missing unit in duration "1s2"',
    "..5s": 'invalid duration "..5s"',
    "99999999h": 'invalid duration "99999999h"',
}


def causes(reply: Reply) -> list[tuple[str, str]]:
    status = reply.refused(422, "Invalid")
    return [(each["field"], each["message"]) for each in status["details"]["causes"]]


# -- writes ------------------------------------------------------------------------------------------------------------


def test_an_empty_dry_run_is_refused(server: Server, namespace: str, sample: Sample) -> None:
    for reply in (
        server.send("POST", sample.path(namespace), sample.obj(), dryRun=""),
        server.send("DELETE", sample.path(namespace, "a"), dryRun=""),
    ):
        assert causes(reply) == [("dryRun", 'Unsupported value: [""]: supported values: "All"')]


def test_unknown_fields_of_a_status_that_is_not_written_are_reported(
    server: Server, namespace: str, sample: Sample
) -> None:
    obj = {**sample.obj(), "status": {"nothing": 1}}
    warning = ('unknown field \\"status.nothing\\"',)
    assert server.send("POST", sample.path(namespace), obj).warnings == warning
    found = server.get(sample.path(namespace, "a"))
    assert server.send("PUT", sample.path(namespace, "a"), {**found, "status": {"nothing": 1}}).warnings == warning
    assert server.send("POST", sample.path(namespace), obj, fieldValidation="Strict").status == 400


def test_unknown_fields_beside_a_written_status_are_reported(server: Server, namespace: str, sample: Sample) -> None:
    server.create(sample.path(namespace), sample.obj())
    path, patch = sample.path(namespace, "a", "status"), {"spec": {"nothing": 1}, "status": sample.status}
    reply = server.send("PATCH", path, patch, media=MERGE)
    assert (reply.status, reply.warnings) == (200, ('unknown field \\"spec.nothing\\"',))
    assert server.send("PATCH", path, patch, media=MERGE, fieldValidation="Strict").status in (400, 422)


def test_a_refused_request_has_its_warnings(server: Server, namespace: str) -> None:
    obj = {**WIDGETS.obj(), "spec": {"size": 99, "nothing": 1}}
    reply = server.send("POST", WIDGETS.path(namespace), obj)
    assert (reply.status, reply.warnings) == (422, ('unknown field \\"spec.nothing\\"',))


def test_an_object_cannot_be_marked_as_deleted_by_a_write(server: Server, namespace: str, sample: Sample) -> None:
    server.create(sample.path(namespace), sample.obj())
    for field, value, shown in (
        ("deletionTimestamp", "2020-01-01T00:00:00Z", '"2020-01-01T00:00:00Z"'),
        ("deletionGracePeriodSeconds", 5, "5"),
    ):
        reply = server.send("PATCH", sample.path(namespace, "a"), {"metadata": {field: value}}, media=MERGE)
        assert set(causes(reply)) == {(f"metadata.{field}", f"Invalid value: {shown}: field is immutable")}


def test_a_patch_cannot_change_the_kind_of_a_builtin_object(server: Server, namespace: str) -> None:
    server.create(CONFIG_MAPS.path(namespace), config_map())
    path = CONFIG_MAPS.path(namespace, "a")
    for patch, media in (
        ({"kind": "Secret"}, MERGE),
        ({"apiVersion": "v2"}, MERGE),
        ([{"op": "replace", "path": "/kind", "value": "X"}], JSON_PATCH),
    ):
        ((field, _),) = causes(server.send("PATCH", path, patch, media=media))
        assert field == "patch"
    assert server.send("PATCH", path, {"kind": "Secret"}, media=STRATEGIC).ok()["kind"] == "ConfigMap"


def test_a_list_is_not_an_object(server: Server, namespace: str) -> None:
    for kind in ("List", "ConfigMapList"):
        given = {"apiVersion": "v1", "kind": kind, "items": []}
        server.send("POST", CONFIG_MAPS.path(namespace), given).refused(400, "BadRequest")


def test_metadata_of_the_wrong_type_in_a_patch_cannot_be_decoded(server: Server, namespace: str) -> None:
    server.create(CONFIG_MAPS.path(namespace), config_map())
    path = CONFIG_MAPS.path(namespace, "a")
    for metadata in ({"labels": {"a": 1}}, {"name": 1}, {"finalizers": "x"}):
        for media in (MERGE, STRATEGIC):
            ((field, _),) = causes(server.send("PATCH", path, {"metadata": metadata}, media=media))
            assert field == "patch"


# -- apply -------------------------------------------------------------------------------------------------------------


def apply(server: Server, path: str, obj: Any) -> Reply:
    return server.send("PATCH", path, obj, media=APPLY, fieldManager="one")


def test_an_applied_object_has_the_name_of_its_path(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    without = "the name of the object (a based on URL) was undeterminable: name must be provided"
    assert apply(server, path, sample.obj("")).refused(400, "BadRequest")["message"] == without
    for _ in range(2):  # a new object, then an existing one
        status = apply(server, path, sample.obj("b")).refused(400, "BadRequest")
        assert status["message"] == "the name of the object (b) does not match the name on the URL (a)"
        assert apply(server, path, {**sample.obj(), "metadata": {"name": ""}}).body["message"] == without
        apply(server, path, sample.obj()).ok()
    assert apply(server, path, sample.obj("")).ok()["metadata"]["name"] == "a"
    assert [each["metadata"]["name"] for each in server.get(sample.path(namespace))["items"]] == ["a"]


def test_an_applied_new_object_may_have_a_version_and_no_uid(server: Server, namespace: str, sample: Sample) -> None:
    assert apply(server, sample.path(namespace, "a"), sample.obj(resourceVersion="1")).status == 201
    status = apply(server, sample.path(namespace, "b"), sample.obj("b", uid="x")).refused(409, "Conflict")
    assert status["message"] == (
        f'Operation cannot be fulfilled on {sample.title} "b": uid mismatch: the provided object specified uid x, '
        "and no existing object was found"
    )


# -- deletions ---------------------------------------------------------------------------------------------------------


def test_the_options_of_a_deletion_are_decoded(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace, "a")
    for body, problem in (
        ("{{", ""),
        ('{"kind":"Foo","apiVersion":"v1"}', "Foo"),
        ('{"dryRun":"All"}', "dryRun"),
        ('{"gracePeriodSeconds":"x"}', "gracePeriodSeconds"),
        ('{"gracePeriodSeconds":1.5}', "gracePeriodSeconds"),
        ('{"orphanDependents":"x"}', "orphanDependents"),
        ('{"preconditions":[]}', "preconditions"),
        ("[1]", ""),
    ):
        assert problem in server.send("DELETE", path, body).refused(400, "BadRequest")["message"]
    status = server.send("DELETE", path, gracePeriodSeconds="x").refused(400, "BadRequest")
    assert status["message"] == 'strconv.ParseInt: parsing "x": invalid syntax'
    server.send("DELETE", path, {"gracePeriodSeconds": -5, "kind": "DeleteOptions"}).refused(404, "NotFound")


def test_collections_of_all_namespaces_cannot_be_deleted(server: Server) -> None:
    server.send("DELETE", CONFIG_MAPS.everywhere(), labelSelector="a=b").refused(405, "MethodNotAllowed")
    server.send("DELETE", "/api/v1/namespaces", labelSelector="a=b").refused(405, "MethodNotAllowed")
    assert server.send("DELETE", WIDGETS.everywhere(), labelSelector="a=b").status == 404


# -- forms -------------------------------------------------------------------------------------------------------------

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def test_the_rows_of_a_table_include_what_is_asked(server: Server, namespace: str, sample: Sample) -> None:
    made = server.create(sample.path(namespace), sample.obj())
    metadata = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    for path in (sample.path(namespace), sample.path(namespace, "a")):
        for include, expected in {"None": None, "": metadata, "Metadata": metadata, "Object": made}.items():
            (row,) = server.get(path, accept=TABLE, includeObject=include)["rows"]
            assert row["object"] == expected
            with server.watch(sample.path(namespace), accept=TABLE, includeObject=include) as watch:
                assert watch.next()[1]["rows"][0]["object"] == expected
        server.send("GET", path, accept=TABLE, includeObject="All").refused(400, "BadRequest")


def test_a_bookmark_has_the_form_of_the_watch(server: Server, namespace: str, sample: Sample) -> None:
    end = {"annotations": {"k8s.io/initial-events-end": "true"}}
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    found = {}
    for form, accept in (("", "application/json"), ("partial", PARTIAL), ("table", TABLE)):
        with server.watch(sample.path(namespace), accept=accept, **query) as watch:
            type_, found[form] = watch.next()
            assert type_ == "BOOKMARK"
            assert found[form]["metadata"].pop("resourceVersion")
    empty = {} if sample is WIDGETS else {"spec": {}, "status": {"loadBalancer": {}}}
    assert found[""] == {"kind": sample.kind, "apiVersion": sample.api_version, "metadata": end, **empty}
    assert found["partial"] == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": end}
    (row,) = found["table"]["rows"]
    assert row["object"]["metadata"].pop("resourceVersion")
    assert row["object"] == found["partial"]


# -- all requests ------------------------------------------------------------------------------------------------------


def test_a_timeout_has_to_be_a_duration(server: Server, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace)
    for given, problem in TIMEOUTS.items():
        for reply in (
            server.send("GET", path, timeout=given),
            server.send("POST", path, config_map(), timeout=given),
            server.send("GET", "/version", timeout=given),
        ):
            expected = f"invalid timeout specified in the request URL - time: {problem}"
            assert reply.refused(400, "BadRequest")["message"] == expected
    for given in ("", "0", "5s", "-5s", "+.5s", "1h1m1.5s", "100h"):
        server.get(path, timeout=given)


def test_the_timeout_of_a_watch_is_ignored(server: Server, namespace: str) -> None:
    server.create(CONFIG_MAPS.path(namespace), config_map())
    with server.watch(CONFIG_MAPS.path(namespace), timeout="x", fieldSelector="metadata.name=a") as watch:
        assert watch.named(1) == [("ADDED", "a")]
