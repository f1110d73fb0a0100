"""`apply.own`: a list owned as a whole, so that items of others are removed."""

from __future__ import annotations

import pytest
from hypothesis import given

from ruleop.kubernetes.merge import FieldSet, create_fields, parse_path, three_way
from tests.kubernetes.merge.shapes import DEPLOYMENT, SERVICE, SET, TEXT, keyed, struct
from tests.kubernetes.merge.test_edited_properties import MANY, any_ports, desired_ports, ports, states

POSTGRES = {"name": "postgres", "port": 5432}
METRICS = {"name": "metrics", "port": 9187}
OWN = [parse_path("spec.ports")]


def merge(live, wanted, before, shape=SERVICE, *, own=OWN, **options):
    return three_way(
        live, wanted, None if before is None else create_fields(before, shape), shape, own=own, **options
    ).object


@pytest.mark.parametrize(
    "before", [None, ports([POSTGRES]), ports([POSTGRES, METRICS])], ids=["no record", "recorded", "given up"]
)
def test_items_of_others_are_removed_from_an_owned_list(before):
    assert merge(ports([METRICS, POSTGRES, {"name": "x", "port": 1}]), ports([POSTGRES]), before) == ports([POSTGRES])


def test_items_of_others_stay_in_a_list_that_is_not_owned():
    assert merge(ports([METRICS, POSTGRES]), ports([POSTGRES]), None, own=[]) == ports([METRICS, POSTGRES])


def test_fields_that_others_set_in_desired_items_of_an_owned_list_stay():
    live = ports([{**POSTGRES, "protocol": "TCP", "nodePort": 30001}, METRICS])
    assert merge(live, ports([POSTGRES]), ports([POSTGRES])) == ports(
        [{**POSTGRES, "protocol": "TCP", "nodePort": 30001}]
    )


def test_an_unrecorded_item_that_conflicts_with_a_desired_one_is_removed():
    assert merge(ports([{**POSTGRES, "port": 6000}]), ports([POSTGRES]), None) == ports([POSTGRES])


def test_an_edited_item_of_an_owned_list_is_corrected_and_keeps_its_node_port():
    live = ports([{**POSTGRES, "port": 6000, "nodePort": 30001}, METRICS])
    assert merge(live, ports([POSTGRES]), ports([POSTGRES])) == ports(
        [{**POSTGRES, "nodePort": 30001, "protocol": "TCP"}]
    )


def test_an_owned_list_in_the_desired_state_is_not_a_difference():
    live = ports([{**POSTGRES, "protocol": "TCP"}])
    applied = create_fields(ports([POSTGRES]), SERVICE)
    merged = three_way(live, ports([POSTGRES]), applied, SERVICE, own=OWN)
    assert merged.object is live
    assert merged.fields is applied


def test_a_duplicate_item_of_an_owned_list_is_removed():
    live = ports([{**POSTGRES, "targetPort": 1}, {**POSTGRES, "targetPort": 2}])
    assert merge(live, ports([POSTGRES]), ports([POSTGRES])) == ports([{**POSTGRES, "targetPort": 1}])


def test_an_omitted_owned_list_is_emptied():
    assert merge({"spec": {"ports": [METRICS], "clusterIP": "None"}}, {"spec": {}}, None) == {
        "spec": {"clusterIP": "None"}
    }
    live = {"spec": {"clusterIP": "None"}}
    assert merge(live, {"spec": {}}, None) is live


def test_an_owned_list_whose_parent_is_missing_in_the_rule_is_kept():
    live = {"metadata": {}, **ports([METRICS])}
    assert merge(live, {"metadata": {}}, None) is live


def test_a_list_inside_an_item_of_another_list_can_be_owned():
    def app(*containers):
        return {"spec": {"template": {"spec": {"containers": list(containers)}}}}

    a, b = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}
    live = app({"name": "app", "env": [a, b]}, {"name": "sidecar", "env": [b]})
    own = [parse_path("spec.template.spec.containers[name=app].env")]
    assert merge(live, app({"name": "app", "env": [a]}), None, DEPLOYMENT, own=own) == app(
        {"name": "app", "env": [a]}, {"name": "sidecar", "env": [b]}
    )
    assert merge(live, app({"name": "app"}), None, DEPLOYMENT, own=own) == app(
        {"name": "app"}, {"name": "sidecar", "env": [b]}
    )


def test_ignored_items_of_an_owned_list_stay():
    live = ports([METRICS, {"name": "x", "port": 1}, POSTGRES])
    assert merge(live, ports([POSTGRES]), None, ignore=[parse_path("spec.ports[name=metrics]")]) == ports(
        [METRICS, POSTGRES]
    )
    assert merge(live, ports([POSTGRES]), None, ignore=[parse_path("spec.ports")]) is live
    assert merge(live, {"spec": {}}, None, ignore=[parse_path("spec.ports")]) is live
    assert merge(live, {"spec": {}}, None, ignore=[parse_path("spec.ports[name=metrics]")]) == ports([METRICS])
    kept = ports([METRICS])
    assert merge(kept, {"spec": {}}, None, ignore=[parse_path("spec.ports[name=metrics]")]) is kept


def test_members_of_others_are_removed_from_an_owned_set():
    shape = struct(hosts=SET, other=SET)
    merged = three_way(
        {"hosts": ["c", "a"], "other": ["c"]}, {"hosts": ["a", "b"]}, None, shape, own=[parse_path("hosts")]
    )
    assert merged.object == {"hosts": ["a", "b"], "other": ["c"]}


def test_existing_items_of_others_are_removed_with_their_keys():
    """Without `own` an adopted item keeps its keys when it is no longer desired."""
    shape = struct(list=keyed(struct(k=TEXT, v=TEXT), "k"))
    existing = three_way({"list": [{"k": 1, "v": 1}]}, {"list": [{"k": 1, "v": 1}]}, None, shape)
    for own, left in ((), [{"k": 1}]), ([parse_path("list")], []):
        assert three_way(existing.object, {"list": []}, existing.fields, shape, own=own).object["list"] == left


@pytest.mark.slow
@MANY
@given(states())
def test_an_owned_list_equals_the_desired_list_and_a_second_merge_changes_nothing(t):
    desired = ports(t.desired)
    first = three_way(t.live, desired, t.applied, t.shape, own=OWN)
    listed = first.object["spec"]["ports"]
    assert [(item["port"], item.get("protocol", "TCP")) for item in listed] == [
        (item["port"], item.get("protocol", "TCP")) for item in t.desired
    ]
    assert all(item.items() <= found.items() for item, found in zip(t.desired, listed, strict=True))
    second = three_way(first.object, desired, first.fields, t.shape, own=OWN)
    assert second.object is first.object
    assert second.fields == first.fields


@MANY
@given(any_ports, desired_ports, desired_ports)
def test_the_record_is_the_same_for_owned_and_shared_lists(live, before, desired):
    def fields(own) -> FieldSet:
        return three_way(ports(live), ports(desired), create_fields(ports(before), SERVICE), SERVICE, own=own).fields

    assert fields(OWN) == fields([])
