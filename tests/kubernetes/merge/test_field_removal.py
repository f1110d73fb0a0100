"""Which fields are removed with a container that is no longer desired. The rules are in docs/merge.md."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.merge import FieldSet, create_fields, parse_path, three_way
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape
from tests.kubernetes.merge.shapes import DEPLOYMENT, ENV, SET, TEXT, TEXTS, keyed, struct


def created_then(live, wanted, *, created, shape, **options):
    return three_way(live, wanted, create_fields(created, shape), shape, **options).object


def adopted_then(live, wanted, *, adopted, shape, existing):
    """`adopted` was merged into `existing` of others; now `live` is merged with `wanted`."""
    first = three_way(existing, adopted, None, shape)
    return three_way(live, wanted, first.fields, shape).object


def labels(**labels):
    return {"metadata": {"labels": labels}}


def pod(**spec):
    return {"spec": {"template": {"spec": spec}}}


META = struct(metadata=struct(name=TEXT, labels=TEXTS))


def test_an_open_map_loses_applied_keys_and_is_removed_when_empty():
    wanted = {"metadata": {"name": "x"}}
    created = {"metadata": {"name": "x", "labels": {"a": "1"}}}
    assert created_then(created, wanted, created=created, shape=META) == wanted
    shared = {"metadata": {"name": "x", "labels": {"a": "1", "theirs": "2"}}}
    assert created_then(shared, wanted, created=created, shape=META) == {
        "metadata": {"name": "x", "labels": {"theirs": "2"}}
    }


def test_an_undeclared_map_is_an_open_map():
    assert created_then({"x": {"a": {"b": 1}}}, {}, created={"x": {"a": {"b": 1}}}, shape=UNKNOWN) == {}
    assert created_then({"x": {"a": {"b": 1}, "theirs": 1}}, {}, created={"x": {"a": {"b": 1}}}, shape=UNKNOWN) == {
        "x": {"theirs": 1}
    }


def test_a_created_struct_is_removed_with_its_defaults():
    probe = {"httpGet": {"path": "/", "port": 80}}
    created = pod(containers=[{"name": "app", "livenessProbe": probe}])
    live = pod(containers=[{"name": "app", "livenessProbe": {**probe, "periodSeconds": 10}}])
    assert created_then(live, pod(containers=[{"name": "app"}]), created=created, shape=DEPLOYMENT) == pod(
        containers=[{"name": "app"}]
    )


def test_a_created_item_is_removed_with_everything_in_it():
    app, sidecar = {"name": "app", "image": "x"}, {"name": "sidecar"}
    live = pod(containers=[{**app, "imagePullPolicy": "Always", "env": [{"name": "INJECTED"}]}, sidecar])
    assert created_then(live, pod(containers=[]), created=pod(containers=[app]), shape=DEPLOYMENT) == pod(
        containers=[sidecar]
    )


def test_an_adopted_struct_loses_the_applied_fields_and_stays():
    for existing, left in (({}, {}), ({"fsGroup": 5}, {"fsGroup": 5})):
        result = adopted_then(
            pod(securityContext={**existing, "runAsUser": 7}),
            pod(),
            adopted=pod(securityContext={"runAsUser": 7}),
            existing=pod(securityContext=existing),
            shape=DEPLOYMENT,
        )
        assert result == pod(securityContext=left)


def test_an_adopted_item_loses_the_applied_fields_and_keeps_its_keys():
    adopted = pod(containers=[{"name": "app", "image": "ours"}])
    existing = pod(containers=[{"name": "app", "image": "theirs", "args": ["x"]}])
    live = pod(containers=[{"name": "app", "image": "ours", "args": ["x"]}])
    for wanted in (pod(containers=[]), pod()):
        left = adopted_then(live, wanted, adopted=adopted, existing=existing, shape=DEPLOYMENT)
        assert left == pod(containers=[{"name": "app", "args": ["x"]}])
    bare = adopted_then(adopted, pod(), adopted=adopted, existing=pod(containers=[{"name": "app"}]), shape=DEPLOYMENT)
    assert bare == pod(containers=[{"name": "app"}])


def test_a_container_created_inside_an_item_of_others_is_marked():
    existing = pod(containers=[{"name": "app"}])
    adopted = pod(containers=[{"name": "app", "securityContext": {"runAsUser": 1}}])
    live = pod(containers=[{"name": "app", "securityContext": {"runAsUser": 1, "capabilities": {"drop": ["ALL"]}}}])
    assert adopted_then(live, existing, adopted=adopted, existing=existing, shape=DEPLOYMENT) == existing


def test_a_container_created_inside_an_item_of_others_is_removed_with_the_applied_fields():
    existing = pod(containers=[{"name": "app"}])
    adopted = pod(containers=[{"name": "app", "livenessProbe": {"httpGet": {"port": 80}}}])
    live = pod(containers=[{"name": "app", "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 10}}])
    for wanted in (pod(), pod(containers=[]), existing):
        assert adopted_then(live, wanted, adopted=adopted, existing=existing, shape=DEPLOYMENT) == existing


@pytest.mark.parametrize(("shape", "mine", "theirs"), [(SET, "a", "b"), (ENV, {"name": "a"}, {"name": "b"})])
def test_a_created_list_loses_applied_items_and_is_removed_when_empty(shape, mine, theirs):
    shape = struct(l=shape)
    assert created_then({"l": [mine, theirs]}, {}, created={"l": [mine]}, shape=shape) == {"l": [theirs]}
    assert created_then({"l": [mine]}, {}, created={"l": [mine]}, shape=shape) == {}
    assert created_then({"l": [mine]}, {"l": []}, created={"l": [mine]}, shape=shape) == {"l": []}, (
        "wanted empty is empty, not gone"
    )
    assert created_then({"l": [theirs]}, {}, created={"l": [mine]}, shape=shape) == {"l": [theirs]}


def test_an_adopted_list_stays_when_it_is_empty():
    shape = struct(s=SET, e=ENV)
    live = {"s": ["a"], "e": [{"name": "a"}]}
    adopted = adopted_then(live, {}, adopted=live, existing={"s": [], "e": []}, shape=shape)
    assert adopted == {"s": [], "e": []}


def test_a_created_container_stays_marked_while_it_is_desired_and_live():
    wanted, fewer = pod(securityContext={"runAsUser": 1, "fsGroup": 2}), pod(securityContext={"runAsUser": 1})
    first = three_way(wanted, fewer, create_fields(wanted, DEPLOYMENT), DEPLOYMENT)
    assert first.object == fewer
    assert three_way(first.object, pod(), first.fields, DEPLOYMENT).object == pod()


def test_a_container_that_was_removed_and_recreated_is_marked_as_created():
    existing = pod(securityContext={})
    first = three_way(existing, pod(securityContext={"runAsUser": 1}), None, DEPLOYMENT)
    again = three_way(pod(), pod(securityContext={"runAsUser": 1}), first.fields, DEPLOYMENT)
    assert three_way(again.object, pod(), again.fields, DEPLOYMENT).object == pod()


def test_another_type_of_value_in_place_of_an_applied_container_is_kept():
    shape = struct(m=TEXTS, l=ENV, s=SET)
    created = {"m": {"a": "1"}, "l": [{"name": "A"}], "s": ["a"]}
    for theirs in (
        {"m": "text", "l": "text", "s": "text"},
        {"m": [1], "l": {}, "s": {}},
        {"m": None, "l": None, "s": None},
    ):
        assert created_then(theirs, {}, created=created, shape=shape) == theirs


def test_an_applied_field_is_removed_whatever_its_value():
    created = {"a": 1, "l": [1]}
    assert created_then({"a": {"b": 1}, "l": "text"}, {}, created=created, shape=UNKNOWN) == {}


def test_applied_fields_inside_values_of_an_open_map_are_removed():
    pools = struct(pools=Shape(type="object", values=struct(size=TEXT, zone=TEXT)))
    created = {"pools": {"a": {"size": 1}, "b": {"size": 2}}}
    live = {"pools": {"a": {"size": 1, "zone": "x"}, "b": {"size": 2}, "theirs": {"size": 3}}}
    assert created_then(live, {"pools": {"b": {"size": 2}}}, created=created, shape=pools) == {
        "pools": {"b": {"size": 2}, "theirs": {"size": 3}}
    }


def test_nested_containers_of_others_stay_when_the_applied_fields_are_removed():
    shape = struct(outer=struct(open=TEXTS, list=keyed(struct(k=TEXT, v=TEXT, open=TEXTS), "k")))
    existing = {"outer": {"open": {}, "list": [{"k": "1", "open": {}}]}}
    adopted = {"outer": {"open": {"a": "1"}, "list": [{"k": "1", "v": "2", "open": {"a": "1"}}, {"k": "2"}]}}
    first = three_way(existing, adopted, None, shape)
    assert first.object == adopted
    assert three_way(first.object, {}, first.fields, shape).object == existing
    assert three_way(existing, {}, first.fields, shape).object is existing, "gone already"


def test_removed_fields_leave_the_record():
    created = pod(containers=[{"name": "app"}], securityContext={"fsGroup": 1})
    merged = three_way(created, {}, create_fields(created, DEPLOYMENT), DEPLOYMENT)
    assert merged.object == {}
    assert merged.fields == FieldSet()


def test_an_ignored_field_stays_in_an_adopted_container_that_is_no_longer_desired():
    existing = pod(containers=[{"name": "app"}], securityContext={})
    adopted = pod(
        containers=[{"name": "app", "image": "x", "args": ["a"]}], securityContext={"runAsUser": 1, "fsGroup": 2}
    )
    first = three_way(existing, adopted, None, DEPLOYMENT)
    ignore = [
        parse_path("spec.template.spec.containers[name=app].image"),
        parse_path("spec.template.spec.securityContext.fsGroup"),
    ]
    left = three_way(first.object, {}, first.fields, DEPLOYMENT, ignore=ignore)
    assert left.object == pod(containers=[{"name": "app", "image": "x"}], securityContext={"fsGroup": 2})
    whole = three_way(
        first.object, pod(), first.fields, DEPLOYMENT, ignore=[parse_path("spec.template.spec.containers[name=app]")]
    )
    assert whole.object["spec"]["template"]["spec"]["containers"] == adopted["spec"]["template"]["spec"]["containers"]
    assert create_fields(adopted, DEPLOYMENT) != first.fields, "what we create is marked"
