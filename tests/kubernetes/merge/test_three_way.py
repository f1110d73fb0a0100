"""What a merge does to the objects people have: Deployments with injected sidecars, Services with two ports of one
number, shared labels."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.merge import FieldSet, MergeError, create_fields, merge_patch, three_way
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape
from tests.kubernetes.merge.shapes import CONFIG_MAP, DEPLOYMENT, ENV, SERVICE, SET, TEXT, keyed, struct


def merge(live, wanted, before=None, shape=UNKNOWN, **options):
    """The merged object; `before` is what we created the object as, None that we have no record."""
    applied = None if before is None else create_fields(before, shape)
    return three_way(live, wanted, applied, shape, **options).object


def pod(**spec):
    return {"spec": {"template": {"spec": spec}}}


def containers(*items):
    return pod(containers=list(items))


def test_desired_fields_are_set_and_fields_of_others_stay():
    assert merge({"a": 1, "theirs": 2}, {"a": 3, "b": 4}, {"a": 1}) == {"a": 3, "theirs": 2, "b": 4}


def test_a_field_that_is_no_longer_desired_is_removed_even_if_others_changed_it():
    assert merge({"a": 9, "theirs": 2}, {}, {"a": 1}) == {"theirs": 2}


def test_a_merge_without_a_record_removes_nothing():
    assert merge({"a": 1, "b": 2}, {"a": 5}) == {"a": 5, "b": 2}


def test_a_missing_object_becomes_the_desired_one():
    merged = three_way(None, {"a": 1, "b": None}, None, UNKNOWN)
    assert merged.object == {"a": 1}
    assert merged.fields == create_fields({"a": 1}, UNKNOWN)


def test_a_merge_without_differences_returns_the_live_object_and_the_record():
    wanted = containers({"name": "app", "image": "x", "ports": [{"containerPort": 80}]})
    live = containers(
        {"name": "app", "image": "x", "ports": [{"containerPort": 80, "protocol": "TCP"}], "imagePullPolicy": "Always"}
    )
    applied = create_fields(wanted, DEPLOYMENT)
    merged = three_way(live, wanted, applied, DEPLOYMENT)
    assert merged.object is live
    assert merged.fields is applied
    with_sidecar = containers({"name": "sidecar"}, *live["spec"]["template"]["spec"]["containers"])
    merged = three_way(with_sidecar, wanted, applied, DEPLOYMENT)
    assert merged.object is with_sidecar
    assert merged.fields is applied


def test_an_injected_sidecar_stays():
    live = containers({"name": "a"}, {"name": "b"}, {"name": "sidecar"})
    assert merge(live, containers({"name": "a"}), containers({"name": "a"}, {"name": "b"}), DEPLOYMENT) == containers(
        {"name": "a"}, {"name": "sidecar"}
    )


def test_tcp_and_udp_ports_of_one_number_are_two_ports():
    udp, tcp = {"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}

    def dns(*ports):
        return containers({"name": "dns", "ports": list(ports)})

    assert merge(dns(tcp, udp), dns(udp), dns(tcp, udp), DEPLOYMENT) == dns(udp)
    assert merge(dns(tcp), dns(udp, tcp), dns(tcp), DEPLOYMENT) == dns(udp, tcp)


@pytest.mark.parametrize("live_port", [{"port": 53}, {"port": 53, "protocol": "TCP"}])
@pytest.mark.parametrize("wanted_port", [{"port": 53}, {"port": 53, "protocol": "TCP"}])
def test_a_port_without_protocol_is_the_tcp_port_on_either_side(live_port, wanted_port):
    live, wanted = ({"spec": {"ports": [port]}} for port in ({**live_port, "nodePort": 30053}, wanted_port))
    merged = merge(live, wanted, {"spec": {"ports": [{"port": 53, "protocol": "TCP"}]}}, SERVICE)
    assert merged == {"spec": {"ports": [{**live_port, **wanted_port, "nodePort": 30053}]}}, (
        "no key is ever taken from an item that stays"
    )


def test_a_port_of_another_protocol_is_another_item():
    theirs, ours = {"port": 53, "protocol": "UDP", "name": "theirs"}, {"port": 53, "name": "ours"}
    live, wanted = {"spec": {"ports": [theirs]}}, {"spec": {"ports": [ours]}}
    assert merge(live, wanted, wanted, SERVICE) == {"spec": {"ports": [theirs, ours]}}


def test_a_union_in_a_keyed_list_keeps_its_keys():
    shape = struct(
        l=keyed(
            Shape(type="object", retain_keys=True, fields={"k": TEXT, "p": TEXT, "a": TEXT, "b": TEXT}), "k", "p", p="x"
        )
    )
    assert merge({"l": [{"k": 1, "p": "x", "a": 1}]}, {"l": [{"k": 1, "b": 2}]}, None, shape) == {
        "l": [{"k": 1, "p": "x", "b": 2}]
    }


def test_only_the_removed_environment_variable_is_removed():
    def app(*env):
        return containers({"name": "app", "env": list(env)})

    a, b, injected = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}
    assert merge(app(a, injected, b), app(a), app(a, b), DEPLOYMENT) == app(a, injected)


def test_an_environment_variable_that_becomes_a_reference_loses_its_value():
    def app(**env):
        return containers({"name": "app", "env": [{"name": "A", **env}]})

    reference = {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}
    assert merge(app(value="1"), app(**reference), app(value="1"), DEPLOYMENT) == app(**reference)


def test_labels_of_others_are_kept():
    def labels(**labels):
        return {"metadata": {"labels": labels}}

    assert merge(labels(a="1", b="2", team="x"), labels(a="3"), labels(a="1", b="2"), DEPLOYMENT) == labels(
        a="3", team="x"
    )


def test_atomic_lists_and_maps_are_replaced_as_a_whole():
    mine, theirs = {"key": "a"}, {"key": "b"}
    assert merge(pod(tolerations=[mine, theirs]), pod(tolerations=[mine]), None, DEPLOYMENT) == pod(tolerations=[mine])
    assert merge(pod(nodeSelector={"a": "1", "b": "2"}), pod(nodeSelector={"a": "1"}), None, DEPLOYMENT) == pod(
        nodeSelector={"a": "1"}
    )
    before = pod(tolerations=[mine], nodeSelector={"a": "1"})
    assert merge(before, pod(), before, DEPLOYMENT) == pod()


def test_a_set_keeps_members_of_others_and_loses_those_no_longer_desired():
    def finalizers(*names):
        return {"metadata": {"finalizers": list(names)}}

    assert merge(finalizers("theirs", "a", "b"), finalizers("b", "c"), finalizers("a", "b"), DEPLOYMENT) == finalizers(
        "theirs", "b", "c"
    )
    merged = three_way(
        finalizers("theirs", "a"), finalizers("a"), create_fields(finalizers("a"), DEPLOYMENT), DEPLOYMENT
    )
    assert merge_patch(finalizers("theirs", "a"), merged.object) is None


def test_integers_floats_and_booleans_are_different_values():
    for live, wanted in ((1, True), (1, 1.0), (True, 1), (0, False), (0.0, 0)):
        merged = merge({"a": live}, {"a": wanted}, {"a": wanted})["a"]
        assert merged == wanted
        assert type(merged) is type(wanted)
    as_set = Shape(type="list", list_type="set")
    assert merge({"a": [1]}, {"a": [True]}, None, struct(a=as_set)) == {"a": [1, True]}
    assert len(merge({"a": [{"k": 1}]}, {"a": [{"k": True}]}, None, struct(a=keyed(UNKNOWN, "k")))["a"]) == 2


@pytest.mark.parametrize("live", ["text", 5, None, [1], {"x": 1}])
@pytest.mark.parametrize("wanted", ["other", 7, [2], {"y": 2}])
def test_a_value_of_another_type_is_replaced(live, wanted):
    merged = merge({"a": live}, {"a": wanted}, {"a": "text"})
    assert merged == {"a": {"x": 1, "y": 2} if type(live) is type(wanted) is dict else wanted}
    shape = struct(a=Shape(list_type="map", keys=("k",), items=UNKNOWN))
    assert merge({"a": live}, {"a": [{"k": 2}]}, None, shape) == {
        "a": [*(live if type(live) is list else []), {"k": 2}]
    }


def test_nulls_in_the_desired_state_mean_missing():
    live = {"a": 1, "m": {"x": 1}, "l": [{"x": 1}]}
    merged = three_way(
        live,
        {"a": None, "m": {"x": 1, "y": None}, "l": [{"x": 1, "y": None}]},
        create_fields({"m": {"x": 1}}, UNKNOWN),
        UNKNOWN,
    )
    assert merged.object is live
    assert merge({}, {"m": {"y": None}, "l": [{"x": 1, "y": None}]}) == {"m": {}, "l": [{"x": 1}]}
    assert merge({"a": 1}, {"a": None}, {"a": 1}) == {}, "wanting null is giving up"


def test_live_nulls_are_kept():
    assert merge({"theirs": None, "a": 1}, {"a": 2}, {"a": 1}) == {"theirs": None, "a": 2}


def test_undeclared_fields_are_granular_maps_and_atomic_lists():
    live = {"x": {"a": 1, "theirs": 2}, "l": [1, 2]}
    assert merge(live, {"x": {"a": 3}, "l": [1]}, {"x": {"a": 1}, "l": [1]}, Shape(preserve_unknown=True)) == {
        "x": {"a": 3, "theirs": 2},
        "l": [1],
    }


def test_a_change_deep_in_an_atomic_list_is_a_change():
    assert merge({"l": [{"x": {"y": 1}}]}, {"l": [{"x": {"y": 2}}]}) == {"l": [{"x": {"y": 2}}]}
    assert merge({"l": [[1]]}, {"l": [[2]]}) == {"l": [[2]]}


def test_quantities_compare_by_amount_where_the_schema_declares_them():
    def limited(**limits):
        return containers({"name": "app", "resources": {"limits": limits}})

    live = limited(cpu="1", memory="1Gi")
    assert merge(live, limited(cpu="1000m", memory="1024Mi"), None, DEPLOYMENT) is live
    assert merge(live, limited(cpu=1, memory="1Gi"), None, DEPLOYMENT) is live
    assert merge(live, limited(cpu="1001m", memory="1Gi"), None, DEPLOYMENT) == limited(cpu="1001m", memory="1Gi")
    atomic = struct(a=Shape(type="list", items=Shape(type="object", values=Shape(format="quantity"))))
    live = {"a": [{"x": "1"}]}
    assert merge(live, {"a": [{"x": "1000m"}]}, None, atomic) is live
    assert merge(live, {"a": [{"x": "1000m"}, {}]}, None, atomic) == {"a": [{"x": "1000m"}, {}]}
    assert merge(live, {"a": [{"y": "1000m"}]}, None, atomic) == {"a": [{"y": "1000m"}]}
    assert merge(live, {"a": [{"x": "1001m"}]}, None, atomic) == {"a": [{"x": "1001m"}]}
    assert merge({"l": ["1"]}, {"l": ["1000m"]}) == {"l": ["1000m"]}
    assert merge({"a": "1"}, {"a": "1000m"}) == {"a": "1000m"}, "text that is no quantity by the schema is text"


def test_a_volume_that_changes_its_source_loses_the_old_one():
    def volume(**source):
        return pod(volumes=[{"name": "data", **source}])

    claim = {"persistentVolumeClaim": {"claimName": "x"}}
    assert merge(volume(emptyDir={}), volume(**claim), volume(emptyDir={}), DEPLOYMENT) == volume(**claim)
    assert merge(volume(emptyDir={}), volume(**claim), None, DEPLOYMENT) == volume(**claim), (
        "also where we have no record"
    )
    assert merge(volume(emptyDir={}), volume(), volume(emptyDir={}), DEPLOYMENT) == volume()


def test_a_changed_strategy_loses_the_defaults_of_the_old_one():
    def strategy(**strategy):
        return {"spec": {"strategy": strategy}}

    live = strategy(type="RollingUpdate", rollingUpdate={"maxSurge": "25%"})
    assert merge(live, strategy(type="Recreate"), strategy(type="RollingUpdate"), DEPLOYMENT) == strategy(
        type="Recreate"
    )
    assert merge(live, strategy(type="RollingUpdate"), strategy(type="RollingUpdate"), DEPLOYMENT) is live, (
        "but not as long as nothing of ours changes"
    )
    assert merge(live, strategy(), strategy(type="RollingUpdate"), DEPLOYMENT) == strategy(), (
        "a member of ours that goes takes them with it"
    )


def test_an_invalid_desired_list_is_refused_with_its_path_and_key():
    def refusal(wanted, shape, live=None):
        with pytest.raises(MergeError) as caught:
            three_way(live, wanted, None, shape)
        return str(caught.value)

    port = {"containerPort": 80}
    twice = containers({"name": "a", "ports": [port, {"name": "x", "containerPort": 81}, {**port, "protocol": "TCP"}]})
    place = "spec.template.spec.containers[name=a].ports[2]: "
    for live in (None, {}, containers({"name": "a"}), containers({"name": "a", "ports": [port]})):
        assert (
            refusal(twice, DEPLOYMENT, live)
            == place + "an item with containerPort=80,protocol=TCP is already in this list"
        )
    assert refusal(containers({"name": "a"}, {"image": "x"}), DEPLOYMENT) == (
        "spec.template.spec.containers[1]: the item has no name; items of this list are identified by name"
    )
    assert refusal({"ports": [{}]}, struct(ports=keyed(UNKNOWN, "port", "ip"))) == (
        "ports[0]: the item has no port and no ip; items of this list are identified by port, ip"
    )
    assert refusal({"ports": [{}]}, struct(ports=keyed(UNKNOWN, "port", "protocol", protocol="TCP"))) == (
        "ports[0]: the item has no port; items of this list are identified by port, protocol"
    )
    assert (
        refusal({"ports": ["x"]}, struct(ports=keyed(UNKNOWN, "port")))
        == "ports[0]: items of this list must be mappings with port"
    )
    assert (
        refusal({"ports": [{"port": {}}]}, struct(ports=keyed(UNKNOWN, "port")))
        == "ports[0]: the keys of an item (port) must be scalars"
    )
    assert (
        refusal({"s": ["a", "b", "a"]}, struct(s=SET))
        == "s[2]: the same value is already in this list, which the API declares as a set"
    )
    assert (
        refusal({"p": [{"on": True}, {"on": True}]}, struct(p=keyed(UNKNOWN, "on")))
        == "p[1]: an item with on=true is already in this list"
    )
    error = MergeError("", "wrong")
    assert str(error) == "wrong"
    assert (error.within("a").path, error.within("a").message) == ("a", "wrong")


def test_an_invalid_desired_list_is_refused_although_the_live_one_has_the_same_error():
    twice = {"env": [{"name": "X"}, {"name": "X"}]}
    for recorded in ([{"name": "X"}], [{"name": "X"}, {"name": "Y"}]):
        with pytest.raises(MergeError):
            three_way(twice, twice, create_fields({"env": recorded}, struct(env=ENV)), struct(env=ENV))
    for recorded in (["a"], ["a", "b"]):
        with pytest.raises(MergeError):
            three_way(
                {"s": ["a", "a"]}, {"s": ["a", "a"]}, create_fields({"s": recorded}, struct(s=SET)), struct(s=SET)
            )


def test_an_error_never_shows_a_member_of_a_set():
    with pytest.raises(MergeError) as caught:
        create_fields({"s": ["hunter2", "hunter2"]}, struct(s=SET))
    assert "hunter2" not in str(caught.value)


def test_duplicate_live_keys_are_tolerated():
    shape = struct(env=ENV)
    live = {"env": [{"name": "X", "value": "1"}, {"name": "A", "value": "1"}, {"name": "X", "value": "2"}]}
    assert merge(live, {"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "value": "1"}]}, shape) is live
    ours = merge(live, {"env": [{"name": "X", "value": "3"}]}, None, shape)
    assert ours == {"env": [{"name": "X", "value": "3"}, {"name": "A", "value": "1"}, {"name": "X", "value": "3"}]}, (
        "each copy gets our fields"
    )
    given_up = merge(ours, {"env": []}, {"env": [{"name": "X", "value": "3"}]}, shape)
    assert given_up == {"env": [{"name": "A", "value": "1"}]}
    members = {"s": ["a", "b", "a"]}
    assert merge(members, {"s": ["a"]}, None, struct(s=SET)) is members
    assert merge(members, {"s": ["b", "a"]}, None, struct(s=SET)) == {"s": ["b", "a", "a"]}


def test_live_items_without_keys_are_left_alone():
    live = {"env": [{"value": "?"}, "text", {"name": "A"}]}
    assert merge(live, {"env": [{"name": "A", "value": "1"}]}, None, struct(env=ENV)) == {
        "env": [{"value": "?"}, "text", {"name": "A", "value": "1"}]
    }
    assert merge(live, {"env": []}, {"env": [{"name": "A"}]}, struct(env=ENV)) == {"env": [{"value": "?"}, "text"]}


def test_atomic_items_of_a_list_are_replaced_as_a_whole():
    def owners(*owners):
        return {"metadata": {"ownerReferences": list(owners)}}

    mine, theirs = {"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}
    live = owners({**mine, "controller": True}, theirs)
    assert merge(live, owners(mine), owners(mine), DEPLOYMENT) == owners(mine, theirs)
    assert merge(live, owners(), owners(mine), DEPLOYMENT) == owners(theirs)
    assert merge(owners(mine, theirs), owners(mine), owners(mine), DEPLOYMENT) == owners(mine, theirs)


def test_desired_items_keep_their_order_among_those_of_others():
    def order(live, wanted, before=""):
        env = {"env": [{"name": name} for name in live]}
        result = merge(
            env,
            {"env": [{"name": name} for name in wanted]},
            {"env": [{"name": name} for name in before]},
            struct(env=ENV),
        )
        letters = merge({"s": list(live)}, {"s": list(wanted)}, {"s": list(before)}, struct(s=SET))["s"]
        assert letters == [item["name"] for item in result["env"]], "sets and keyed lists are ordered alike"
        return "".join(letters)

    assert order("xaybz", "ab") == "xaybz", "what stands in our order is not touched"
    assert order("xaybz", "acb") == "xaycbz", "a new item comes before the next of ours"
    assert order("xaybz", "abc") == "xaybzc", "or at the end"
    assert order("xaybz", "ba") == "xybza", "what stands in another order moves, and others do not"
    assert order("x", "ab") == "xab"
    assert order("axb", "b", "ab") == "xb"
    assert order("abcd", "dcba") == "dcba"
    assert order("axbcydz", "bdnac") == "xbydzna" + "c"


def test_a_list_whose_type_changed_loses_nothing_in_that_pass():
    by_name, by_both = struct(l=ENV), struct(l=keyed(UNKNOWN, "name", "value"))
    as_set, atomic = struct(l=Shape(type="list", list_type="set")), struct(l=Shape(type="list"))
    items = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    live, wanted = {"l": [*items, {"name": "C", "value": "3"}]}, {"l": items[:1]}
    kinds = [by_name, by_both, as_set, atomic]
    left_of_a = {
        id(by_name): [{"name": "A"}],
        id(by_both): items[:1],
        id(as_set): [],
    }  # an item that we did not create keeps its keys
    for old in kinds:
        applied = create_fields({"l": items}, old)
        for new in kinds:
            given_up = three_way(live, {}, applied, new)
            fewer = three_way(live, wanted, applied, new)
            if old is not new:
                assert given_up.object is live, "nobody knows any more which items are ours"
                assert given_up.fields == FieldSet()
                assert fewer.object == (wanted if new is atomic else live), (
                    "an atomic list is ours as a whole, because we want it"
                )
                next_pass = three_way(fewer.object, {}, fewer.fields, new).object
                assert next_pass == ({} if new is atomic else {"l": [*left_of_a[id(new)], *live["l"][1:]]})


def test_the_record_follows_a_changed_type_of_a_value():
    kinds = {
        "scalar": ("text", TEXT),
        "map": ({"a": 1}, UNKNOWN),
        "atomic map": ({"a": 1}, Shape(type="object", atomic=True)),
        "atomic list": ([{"name": "A"}], UNKNOWN),
        "keyed list": ([{"name": "A"}], ENV),
        "set": ([{"name": "A"}], SET),
    }
    for was, (recorded, old) in kinds.items():
        for now, (value, new) in kinds.items():
            applied = create_fields({"x": recorded}, struct(x=old))
            merged = three_way({"x": value}, {"x": value}, applied, struct(x=new))
            assert merged.object == {"x": value}
            fields, expected = (
                f.to_json()["x"]
                for f in (merged.fields, three_way({"x": value}, {"x": value}, None, struct(x=new)).fields)
            )
            if {was, now} == {"keyed list", "set"}:
                expected[1] = 1  # the list is one that we created, whatever kind of list it is by now
            assert fields == (applied.to_json()["x"] if was == now else expected)


def test_a_map_that_became_granular_or_atomic_keeps_the_fields_of_others():
    granular, atomic = struct(m=Shape(type="object", values=UNKNOWN)), struct(m=Shape(type="object", atomic=True))
    live = {"m": {"a": 1, "theirs": 2}}
    assert three_way(live, {}, create_fields({"m": {"a": 1}}, atomic), granular).object is live
    assert three_way(live, {}, create_fields({"m": {"a": 1}}, granular), atomic).object == {"m": {"theirs": 2}}


def test_keys_of_others_in_the_data_of_a_config_map_are_kept():
    live = {"data": {"a": "1", "b": "2", "theirs": "3"}}
    assert merge(live, {"data": {"a": "x"}}, {"data": {"a": "1", "b": "2"}}, CONFIG_MAP) == {
        "data": {"a": "x", "theirs": "3"}
    }
