"""Somebody changes the key of a recorded item by hand: the port of a Service, 5432 -> 6000. It is corrected, and not
added twice."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.merge import FieldSet, Learned, create_fields, merge_patch, parse_path, three_way
from ruleop.kubernetes.merge.fields import KeyedFields, MapFields
from tests.kubernetes.merge.shapes import DEPLOYMENT, SERVICE

POSTGRES = {"name": "postgres", "port": 5432, "targetPort": "db"}
METRICS = {"name": "metrics", "port": 9187}


def ports(*items, **spec):
    return {"spec": {"ports": list(items), **spec}}


def merge(live, wanted, before, shape=SERVICE, **options):
    """The merged object; `before` is what we created, None that there is no record."""
    return three_way(live, wanted, None if before is None else create_fields(before, shape), shape, **options).object


def as_served(item, **changed):
    return {"protocol": "TCP", **item, **changed}


def test_a_hand_edited_port_number_is_corrected_and_server_fields_are_kept():
    live = ports(as_served(POSTGRES, port=6000, nodePort=30123, appProtocol="sql"))
    assert merge(live, ports(POSTGRES), ports(POSTGRES)) == ports(
        as_served(POSTGRES, nodePort=30123, appProtocol="sql")
    )


def test_after_an_edited_key_is_corrected_nothing_differs():
    applied = create_fields(ports(POSTGRES), SERVICE)
    first = three_way(ports(as_served(POSTGRES, port=6000)), ports(POSTGRES), applied, SERVICE)
    again = three_way(first.object, ports(POSTGRES), first.fields, SERVICE)
    assert again.object is first.object
    assert first.fields == again.fields == applied


def test_a_hand_edited_protocol_is_corrected_to_the_default():
    live = ports(as_served(POSTGRES, protocol="UDP"))
    assert merge(live, ports(POSTGRES), ports(POSTGRES)) == ports(as_served(POSTGRES))


def test_the_edited_item_is_restored_in_place_and_items_of_others_are_kept():
    mesh = as_served({"name": "mesh", "port": 15000})
    live = ports(as_served(METRICS), mesh, as_served(POSTGRES, port=6000))
    wanted = ports(METRICS, POSTGRES)
    assert merge(live, wanted, wanted) == ports(as_served(METRICS), mesh, as_served(POSTGRES))


def test_an_edited_port_is_recognised_by_its_node_port():
    wanted = ports({**POSTGRES, "nodePort": 30001})
    live = ports(as_served(POSTGRES, port=6000, name="other", nodePort=30001))
    assert merge(live, wanted, wanted) == ports(as_served(POSTGRES, nodePort=30001))


def test_tcp_and_udp_ports_of_one_node_port_are_two_ports():
    tcp, udp = (
        {"name": protocol.lower(), "port": 53, "protocol": protocol, "nodePort": 30053} for protocol in ("TCP", "UDP")
    )
    assert merge(ports(udp), ports(tcp), ports(tcp)) == ports(udp, tcp)
    assert merge(ports({**udp, "port": 54}), ports(tcp), ports(tcp)) == ports(tcp)


def test_a_port_is_recognised_by_its_name_before_its_node_port():
    wanted = ports({**POSTGRES, "nodePort": 30001})
    taken, edited = (
        as_served({"name": "x", "port": 1, "nodePort": 30001}),
        as_served(POSTGRES, port=6000, nodePort=30002),
    )
    assert merge(ports(taken, edited), wanted, wanted) == ports(taken, as_served(POSTGRES, nodePort=30001))


@pytest.mark.parametrize("live_name", [{}, {"name": ""}, {"name": "postgres"}])
@pytest.mark.parametrize("wanted_name", [{}, {"name": "postgres"}])
def test_the_only_port_of_a_service_is_recognised_without_a_name(live_name, wanted_name):
    """Two ports both need names, so the only one without a name is the recorded one, edited."""
    wanted = ports({"port": 5432, **wanted_name})
    live = ports({"port": 6000, "protocol": "TCP", **live_name})
    assert merge(live, wanted, wanted) == ports({"port": 5432, "protocol": "TCP", **live_name, **wanted_name})


def test_a_port_without_a_name_among_several_is_not_matched():
    wanted = ports({"port": 5432})
    a, b = as_served(METRICS, name="a"), as_served(METRICS, name="b", port=9188)
    assert merge(ports(a, b), wanted, wanted) == ports(a, b, {"port": 5432})


def test_several_hand_edited_ports_are_corrected_at_once():
    wanted = ports(POSTGRES, METRICS)
    live = ports(as_served(POSTGRES, port=6000), as_served(METRICS, port=6001))
    assert merge(live, wanted, wanted) == ports(as_served(POSTGRES), as_served(METRICS))


def test_a_hand_edited_port_follows_a_change_of_the_rule():
    """The operator was down: the recorded port is gone, and the desired port has its name."""
    live = ports(as_served(POSTGRES, port=6000))
    merged = three_way(live, ports({**POSTGRES, "port": 7000}), create_fields(ports(POSTGRES), SERVICE), SERVICE)
    assert merged.object == ports(as_served(POSTGRES, port=7000))
    assert merged.fields == create_fields(ports({**POSTGRES, "port": 7000}), SERVICE), (
        "and goes as a whole when it is given up"
    )


def test_fields_that_are_no_longer_desired_are_removed_with_the_edit():
    live = ports(as_served(POSTGRES, port=6000))
    assert merge(live, ports({"name": "postgres", "port": 5432}), ports(POSTGRES)) == ports(
        {"name": "postgres", "port": 5432, "protocol": "TCP"}
    )


def test_without_a_record_no_item_counts_as_edited():
    live = ports(as_served(POSTGRES, port=6000))
    assert merge(live, ports(POSTGRES), None) == ports(as_served(POSTGRES, port=6000), POSTGRES)


def test_while_the_desired_item_is_live_no_item_of_others_counts_as_edited():
    live = ports(as_served(POSTGRES, name="x"), as_served(POSTGRES, port=6000))
    assert merge(live, ports(POSTGRES), ports(POSTGRES)) == ports(as_served(POSTGRES), as_served(POSTGRES, port=6000))


def test_a_recorded_item_is_not_taken_for_an_edited_one():
    """9187 is recorded and no longer desired; having the name of another recorded port by now does not make it that
    port."""
    live = ports(as_served(METRICS, name="postgres"))
    assert merge(live, ports(POSTGRES), ports(POSTGRES, METRICS)) == ports(POSTGRES)


def test_an_item_with_another_name_does_not_count_as_edited():
    live = ports(as_served(POSTGRES, port=6000, name="other"))
    assert merge(live, ports(POSTGRES), ports(POSTGRES)) == ports(
        as_served(POSTGRES, port=6000, name="other"), POSTGRES
    )


def test_an_ignored_item_does_not_count_as_edited():
    live = ports(as_served(POSTGRES, port=6000))
    assert merge(live, ports(POSTGRES), ports(POSTGRES), ignore=[parse_path("spec.ports[port=6000]")]) == ports(
        as_served(POSTGRES, port=6000), POSTGRES
    )


def test_an_ignored_field_of_the_item_keeps_the_value_it_has():
    wanted = ports({**POSTGRES, "targetPort": 1})
    live = ports(as_served(POSTGRES, port=6000, targetPort=2))
    assert merge(live, wanted, wanted, ignore=[parse_path("spec.ports[name=postgres].targetPort")]) == ports(
        as_served(POSTGRES, targetPort=2)
    )


def test_a_key_rewritten_by_a_webhook_on_every_write_is_not_corrected():
    """A webhook that turns 5432 into 6000 in every write has been learned; reverting it each time would never end."""
    answer = ports(as_served(POSTGRES, port=6000))
    learned = Learned.NOTHING.learn(ports(POSTGRES), answer, SERVICE)
    assert merge(answer, ports(POSTGRES), ports(POSTGRES), learned=learned) is answer


def test_an_edited_container_port_is_recognised_by_its_name():
    def app(*items):
        return {"spec": {"template": {"spec": {"containers": [{"name": "app", "ports": list(items)}]}}}}

    web, anonymous = {"name": "web", "containerPort": 80}, {"containerPort": 81}
    edited, injected = as_served(web, containerPort=8080, hostIP="127.0.0.1"), as_served({"containerPort": 15000})
    wanted = app(web, anonymous)
    assert merge(app(edited, injected), wanted, wanted, DEPLOYMENT) == app(
        as_served(web, hostIP="127.0.0.1"), injected, anonymous
    ), "a port without a name conflicts with none here"


def test_the_patch_contains_only_the_list():
    live = ports(as_served(POSTGRES, port=6000), clusterIP="10.0.0.1")
    assert merge_patch(live, merge(live, ports(POSTGRES), ports(POSTGRES))) == ports(as_served(POSTGRES))


def test_fields_of_others_are_kept_when_the_item_is_removed_later():
    """An adopted item is recorded as such, also after the correction."""
    existing = three_way(ports(as_served(POSTGRES)), ports(POSTGRES), None, SERVICE)
    repaired = three_way(ports(as_served(POSTGRES, port=6000)), ports(POSTGRES), existing.fields, SERVICE)
    assert repaired.fields == existing.fields
    fields: FieldSet = repaired.fields
    spec = fields.root.members["spec"]
    assert isinstance(spec, MapFields)
    listed = spec.members["ports"]
    assert isinstance(listed, KeyedFields)
    assert not listed.created
