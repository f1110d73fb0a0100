"""The managers of each field that ruleop sets, from the record on the object and its managedFields."""

from ruleop.authoring.live.history import last_change, managed_fields
from ruleop.kubernetes.merge import FieldSet, Record, encode

PODS = {"k:" + '{"name":"web"}': {".": {}, "f:image": {}, "f:name": {}}}
OWN = {
    "f:metadata": {
        "f:labels": {"f:app": {}, "f:ruleop.dev/part-of": {}},
        "f:annotations": {"f:ruleop.dev/applied": {}},
    },
    "f:spec": {"f:replicas": {}, "f:selector": {}, "f:containers": PODS, "f:finalizers": {'v:"a"': {}}},
}
RECORD = {
    "apiVersion": 1,
    "kind": 1,
    "metadata": {"name": 1, "labels": [{"app": 1, "ruleop.dev/part-of": 1}]},
    "spec": [
        {
            "replicas": 1,
            "selector": "m",
            "finalizers": ["s", 1, "fingerprint"],
            "containers": ["k", 1, ["name"], [["web", [{"image": 1, "name": 1}]]]],
        }
    ],
}


VALUES = {
    "metadata": {"name": "a", "labels": {"app": "x", "ruleop.dev/part-of": "y"}},
    "spec": {
        "replicas": 2,
        "selector": {"app": "x"},
        "finalizers": ["a"],
        "containers": [{"name": "side"}, {"name": "web", "image": "nginx"}],
        "ports": [{"port": 80}],
    },
}


def entry(manager, fields, time="2026-01-01T00:00:00Z", operation="Update", **more):
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields, **more}


def obj(*entries, record=RECORD, **spec):
    """The object; None in `spec` removes a field."""
    notes = {"ruleop.dev/applied": encode(Record("web", FieldSet.from_json(record)))} if record else {}
    metadata = {**VALUES["metadata"], "annotations": notes, "managedFields": list(entries)}
    return {"metadata": metadata, "spec": {**VALUES["spec"], **spec}}


def by_path(found):
    return {each.path: [one.manager for one in each.managers] for each in managed_fields(found)}


def test_each_recorded_field_has_its_manager():
    assert by_path(obj(entry("ruleop", OWN))) == {
        "metadata.labels.app": ["ruleop"],
        "spec.containers[name=web].image": ["ruleop"],
        "spec.containers[name=web].name": ["ruleop"],
        "spec.finalizers": ["ruleop"],
        "spec.replicas": ["ruleop"],
        "spec.selector": ["ruleop"],
    }


def test_a_field_that_another_manager_took_is_changed():
    without = {**OWN, "f:spec": {name: fields for name, fields in OWN["f:spec"].items() if name != "f:replicas"}}
    edited = entry("kubectl-edit", {"f:spec": {"f:replicas": {}}}, "2026-01-01T00:05:00Z")
    found = {each.path: each for each in managed_fields(obj(entry("ruleop", without), edited))}
    assert [each.path for each in found.values() if each.changed] == ["spec.replicas"]
    assert found["spec.replicas"].managers[0].time == "2026-01-01T00:05:00Z"


def test_the_latest_of_several_managers_is_first():
    other = entry("helm", {"f:spec": {"f:replicas": {}}}, "2026-01-01T00:05:00Z", "Apply")
    found = {each.path: each for each in managed_fields(obj(entry("ruleop", OWN), other))}
    assert [each.manager for each in found["spec.replicas"].managers] == ["helm", "ruleop"]
    assert not found["spec.replicas"].changed


def test_a_field_that_does_not_exist_has_no_manager():
    found = by_path(obj(entry("ruleop", OWN), replicas=None))
    assert found["spec.replicas"] == []
    assert found["spec.selector"] == ["ruleop"]


def test_a_missing_field_is_changed_only_if_the_plan_sets_it_again():
    found = {each.path: each for each in managed_fields(obj(entry("ruleop", OWN), replicas=None), ["spec.replicas"])}
    assert [each.path for each in found.values() if each.changed] == ["spec.replicas"]
    found = {each.path: each for each in managed_fields(obj(entry("ruleop", OWN), replicas=None), ["spec.replicasX"])}
    assert [each.path for each in found.values() if each.changed] == []
    found = {
        each.path: each for each in managed_fields(obj(entry("ruleop", OWN), containers=None), ["spec.containers"])
    }
    assert [each.path for each in found.values() if each.changed] == [
        "spec.containers[name=web].image",
        "spec.containers[name=web].name",
    ]


def test_a_map_that_ruleop_still_owns_does_not_make_its_fields_ruleops():
    """After another client changed the only field of a map, ruleop is still the manager of the map."""
    record = {"spec": [{"selector": [{"app": 1}]}]}
    left, taken = (
        entry("ruleop", {"f:spec": {"f:selector": {}}}),
        entry("kubectl", {"f:spec": {"f:selector": {"f:app": {}}}}),
    )
    assert by_path(obj(left, taken, record=record)) == {"spec.selector.app": ["kubectl"]}


def test_a_field_below_one_that_is_owned_as_a_whole_is_owned():
    record = {"spec": {"selector": {"app": 1}}}
    assert by_path(obj(entry("ruleop", {"f:spec": {"f:selector": {}}}), record=record)) == {
        "spec.selector.app": ["ruleop"]
    }


def test_a_recorded_key_may_lack_a_default_of_the_server():
    key = 'k:{"port":80,"protocol":"TCP"}'
    record = {"spec": {"ports": ["k", 1, ["port"], [[80, [{"port": 1}]]]]}}
    assert by_path(obj(entry("ruleop", {"f:spec": {"f:ports": {key: {".": {}, "f:port": {}}}}}), record=record)) == {
        "spec.ports[port=80].port": ["ruleop"]
    }


def test_without_a_record_the_fields_are_those_that_ruleop_applied():
    found = by_path(obj(entry("ruleop", OWN, operation="Apply"), entry("x", {"f:data": {"f:a": {}}}), record=None))
    assert "data.a" not in found
    assert found["spec.containers[name=web].image"] == ["ruleop"]


def test_the_last_change_leaves_the_status_out():
    status = entry("kubelet", {"f:status": {}}, "2026-01-01T09:00:00Z", subresource="status")
    edited = entry("kubectl-edit", {}, "2026-01-01T00:05:00Z")
    found = last_change(obj(entry("ruleop", OWN), edited, status))
    assert found is not None
    assert found.manager == "kubectl-edit"
    assert last_change({"metadata": {}}) is None


def test_entries_that_are_not_understood_are_left_out():
    assert by_path(obj("x", {"manager": ""}, {"manager": "y", "fieldsV1": "?"}, entry("ruleop", OWN)))[
        "spec.replicas"
    ] == ["ruleop"]
