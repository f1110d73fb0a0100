"""Server-side apply and the managers of fields. The expected values are answers of a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ruleop.kubernetes.schema.shape import Shape
from ruleop.localcluster.objects.fieldsets import InvalidFieldsError, check_fields, path_text
from ruleop.localcluster.objects.server_side_apply import (
    LAST_APPLIED,
    ApplyConflictError,
    apply,
    keep_unchanged,
    read_managers,
    track_update,
)
from ruleop.localcluster.status_errors import Rejected
from tests.cluster import objects
from tests.localcluster.objects.kinds import TRACKING, tracking_of

JSON = Any
DEPLOYMENT, CONFIG_MAP = TRACKING["Deployment"], TRACKING["ConfigMap"]
THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def deployment(image: str = "app:1", **spec: JSON) -> JSON:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {**spec, "template": {"spec": {"containers": [{"name": "a", "image": image}]}}},
    }


def config_map(**data: str) -> JSON:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}


def test_the_fields_of_a_new_object_belong_to_its_applier() -> None:
    live = apply(None, deployment(replicas=1), DEPLOYMENT, manager="kubectl", now=THEN)
    fields = {
        "f:spec": {
            "f:replicas": {},
            "f:template": {
                "f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}, "f:name": {}}}},
            },
        }
    }
    assert live["metadata"]["managedFields"] == [
        {
            "manager": "kubectl",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": THEN,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
    ]


def test_the_creator_owns_fields_except_maps_that_always_exist() -> None:
    live = track_update(None, deployment(replicas=1), DEPLOYMENT, manager="curl", now=THEN)
    (entry,) = live["metadata"]["managedFields"]
    assert entry["operation"] == "Update"
    containers = {'k:{"name":"a"}': {".": {}, "f:image": {}, "f:name": {}}}
    assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": containers}}}}


def test_a_conflict_names_field_and_manager() -> None:
    live = track_update(None, deployment("app:1", replicas=1), DEPLOYMENT, manager="kubectl", now=THEN)
    with pytest.raises(ApplyConflictError) as caught:
        apply(live, deployment("app:2", replicas=2), DEPLOYMENT, manager="other", now=NOW)
    error = caught.value
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == (
        'Apply failed with 2 conflicts: conflicts with "kubectl" using apps/v1:\n'
        '- .spec.replicas\n- .spec.template.spec.containers[name="a"].image'
    )
    assert error.details["causes"][1] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "kubectl" using apps/v1',
        "field": '.spec.template.spec.containers[name="a"].image',
    }


def test_force_takes_the_field_from_its_manager() -> None:
    live = apply(None, config_map(a="1", b="1"), CONFIG_MAP, manager="one", now=THEN)
    live = apply(live, config_map(a="2"), CONFIG_MAP, manager="two", now=NOW, force=True)
    owned = {entry["manager"]: entry["fieldsV1"] for entry in live["metadata"]["managedFields"]}
    assert live["data"] == {"a": "2", "b": "1"}
    assert owned == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_a_field_is_removed_with_its_last_manager() -> None:
    live = apply(None, config_map(a="1", b="1"), CONFIG_MAP, manager="one", now=THEN)
    live = apply(live, config_map(a="1"), CONFIG_MAP, manager="two", now=THEN)
    live = apply(live, config_map(c="1"), CONFIG_MAP, manager="one", now=NOW)
    assert live["data"] == {"a": "1", "c": "1"}


def test_an_update_keeps_fields_of_appliers_that_it_does_not_change() -> None:
    live = apply(None, config_map(a="1", b="1"), CONFIG_MAP, manager="one", now=THEN)
    new = {**live, "data": {"a": "2", "b": "1"}}
    tracked = track_update(live, new, CONFIG_MAP, manager="editor", now=NOW)
    owned = {entry["manager"]: (entry["fieldsV1"], entry["time"]) for entry in tracked["metadata"]["managedFields"]}
    assert owned == {"one": ({"f:data": {"f:b": {}}}, THEN), "editor": ({"f:data": {"f:a": {}}}, NOW)}


def test_a_write_that_changes_nothing_keeps_the_object() -> None:
    live = apply(None, config_map(a="1"), CONFIG_MAP, manager="one", now=THEN)
    assert apply(live, config_map(a="1"), CONFIG_MAP, manager="one", now=NOW) is live
    copied = json.loads(json.dumps(live))
    copied["metadata"]["managedFields"][0]["time"] = NOW
    assert keep_unchanged(live, copied) is live


def test_an_object_without_managers_gets_one_at_its_first_apply() -> None:
    live = apply(config_map(a="1", b="1"), config_map(a="1", c="1"), CONFIG_MAP, manager="one", now=NOW)
    entries = {entry["manager"]: entry for entry in live["metadata"]["managedFields"]}
    assert entries["before-first-apply"]["fieldsV1"] == {"f:data": {".": {}, "f:a": {}, "f:b": {}}}
    assert entries["before-first-apply"]["operation"] == "Update"


def test_reset_managers_are_not_tracked_until_the_next_apply() -> None:
    live = apply(None, config_map(a="1"), CONFIG_MAP, manager="one", now=THEN)
    for reset in ([], [{}]):
        new = {**live, "metadata": {"name": "x", "managedFields": reset}}
        bare = track_update(live, new, CONFIG_MAP, manager="two", now=NOW)
        assert bare["metadata"] == {"name": "x"}
        assert track_update(bare, {**bare, "data": {}}, CONFIG_MAP, manager="two", now=NOW)["metadata"] == {"name": "x"}


def test_a_manager_of_the_status_subresource_owns_only_the_status() -> None:
    status = tracking_of(objects.DEPLOYMENT, "status")
    live = {**apply(None, deployment(), DEPLOYMENT, manager="one", now=THEN), "status": {}}
    new = {**live, "status": {"observedGeneration": 1}, "spec": {**live["spec"], "replicas": 3}}
    (update,) = track_update(live, new, status, manager="controller", now=NOW)["metadata"]["managedFields"][1:]
    assert update["subresource"] == "status"
    assert update["fieldsV1"] == {"f:status": {"f:observedGeneration": {}}}


def test_kubectl_applies_on_the_server_where_it_did_so_itself_before() -> None:
    annotated = {
        **config_map(a="1"),
        "metadata": {"name": "x", "annotations": {LAST_APPLIED: json.dumps(config_map(a="1"))}},
    }
    live = track_update(None, annotated, CONFIG_MAP, manager="kubectl-client-side-apply", now=THEN)
    with pytest.raises(ApplyConflictError):
        apply(live, config_map(a="2"), CONFIG_MAP, manager="other", now=NOW)
    applied = apply(live, config_map(a="2"), CONFIG_MAP, manager="kubectl", now=NOW)
    assert applied["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**config_map(), "metadata": {"name": "x", "managedFields": []}}, "metadata.managedFields must be nil"),
        (
            {**config_map(), "apiVersion": "v2"},
            "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1",
        ),
    ],
)
def test_an_invalid_apply_configuration_is_refused(config: JSON, message: str) -> None:
    with pytest.raises(Rejected) as caught:
        apply(None, config, CONFIG_MAP, manager="one", now=NOW)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_fields_below_a_map_that_became_atomic_are_merged_into_one() -> None:
    atomic = Shape(type="object", atomic=True, values=Shape(type="scalar", scalar="string"))
    shape = Shape(type="object", fields={**CONFIG_MAP.shape.fields, "data": atomic})
    tracking = type(CONFIG_MAP)("v1", shape)
    live = apply(None, config_map(a="1", b="1"), CONFIG_MAP, manager="one", now=THEN)
    live = apply(live, config_map(a="1", b="1"), tracking, manager="one", now=NOW)
    assert [entry["fieldsV1"] for entry in live["metadata"]["managedFields"]] == [{"f:data": {}}]


def test_entries_of_a_version_that_is_not_served_are_dropped() -> None:
    entry = {
        "manager": "old",
        "operation": "Update",
        "apiVersion": "v0",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {}},
    }
    live = {**config_map(a="1"), "metadata": {"name": "x", "managedFields": [entry]}}
    assert [
        each["manager"]
        for each in apply(live, config_map(a="1"), CONFIG_MAP, manager="one", now=NOW)["metadata"]["managedFields"]
    ] == ["one"]


@pytest.mark.parametrize(
    "entry",
    [
        {"operation": "Patch", "apiVersion": "v1", "fieldsType": "FieldsV1"},
        {"operation": "Apply", "fieldsType": "FieldsV1"},
        {"operation": "Apply", "apiVersion": "v1"},
        {"operation": "Apply", "apiVersion": "v1", "fieldsType": "X"},
    ],
)
def test_an_invalid_managed_fields_entry_is_an_error(entry: JSON) -> None:
    with pytest.raises(InvalidFieldsError, match="entry 0 of managedFields"):
        read_managers([entry])


def test_the_fields_that_a_client_writes_are_checked() -> None:
    check_fields({"f:a": {".": {}}, 'k:{"a":"x","b":1}': {"f:c": {}}, "v:1": {}, "i:0": {}})
    for wrong in ("f", "fa", "k:{", "v:", "k:1", "x:a"):
        with pytest.raises(InvalidFieldsError):
            check_fields({"f:a": {wrong: {}}})


def test_paths_are_spelled_as_the_server_does() -> None:
    path = ("f:spec", 'k:{"containerPort":80,"protocol":"TCP"}', 'v:"x"', "v:true", "i:3")
    assert path_text(path) == '.spec[containerPort=80,protocol="TCP"][="x"][=true][3]'
