"""Fields that ruleop sets on creation and then leaves to others."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.merge import Learned, as_sent, create_fields, parse_path, three_way
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape
from tests.kubernetes.merge.shapes import DEPLOYMENT, ENV, SERVICE, TEXT, keyed, struct


def paths(*texts):
    return [parse_path(text) for text in texts]


def merge(live, wanted, before, shape, *ignore):
    return three_way(live, wanted, create_fields(before, shape), shape, ignore=paths(*ignore))


def containers(*items):
    return {"spec": {"template": {"spec": {"containers": list(items)}}}}


def scaled(replicas, **more):
    return {"spec": {"replicas": replicas, **more}}


def test_an_ignored_field_is_set_on_creation_and_not_recorded():
    created = three_way(None, scaled(3, paused=True), None, DEPLOYMENT, ignore=paths("spec.replicas"))
    assert created.object == scaled(3, paused=True)
    assert created.fields == create_fields({"spec": {"paused": True}}, DEPLOYMENT)
    assert created.fields == create_fields(scaled(3, paused=True), DEPLOYMENT, ignore=paths("spec.replicas"))


def test_after_creation_the_live_value_of_an_ignored_field_stays():
    for live in (scaled(7), {"spec": {}}):
        merged = merge(live, scaled(3), scaled(3), DEPLOYMENT, "spec.replicas")
        assert merged.object is live
        assert merged.fields == create_fields({"spec": {}}, DEPLOYMENT)
        again = three_way(live, scaled(3), merged.fields, DEPLOYMENT, ignore=paths("spec.replicas"))
        assert again.object is live
        assert again.fields == merged.fields


def test_a_field_that_becomes_ignored_leaves_the_record():
    wanted = containers({"name": "app", "image": "v1", "env": [{"name": "A", "value": "1"}]})
    for path, ours in {
        "spec": {},
        "spec.template.spec.containers": {"spec": {"template": {"spec": {}}}},
        "spec.template.spec.containers[name=app].image": containers(
            {"name": "app", "env": [{"name": "A", "value": "1"}]}
        ),
        "spec.template.spec.containers[name=app].env[name=A].value": containers(
            {"name": "app", "image": "v1", "env": [{"name": "A"}]}
        ),
        "spec.template.spec.containers[name=app].env[name=A]": containers({"name": "app", "image": "v1", "env": []}),
    }.items():
        merged = merge(wanted, wanted, wanted, DEPLOYMENT, path)
        assert merged.object is wanted
        assert merged.fields == create_fields(ours, DEPLOYMENT)


def test_an_ignored_field_that_is_no_longer_desired_is_kept():
    assert merge(
        scaled(7, paused=True), {"spec": {}}, scaled(3, paused=True), DEPLOYMENT, "spec.replicas"
    ).object == scaled(7)


def test_a_field_that_is_no_longer_ignored_is_recorded_again():
    left = merge(scaled(7), scaled(3), scaled(3), DEPLOYMENT, "spec.replicas")
    assert three_way(scaled(7), scaled(3), left.fields, DEPLOYMENT).object == scaled(3)


def test_a_field_of_a_list_item_can_be_ignored():
    ours = {"name": "app", "image": "v1", "args": ["a"]}
    image = "spec.template.spec.containers[name=app].image"
    live = containers({"name": "app", "image": "v9", "args": ["b"]}, {"name": "other", "image": "v9"})
    wanted = containers(ours, {"name": "other", "image": "v1"})
    merged = merge(live, wanted, wanted, DEPLOYMENT, image)
    assert merged.object == containers({"name": "app", "image": "v9", "args": ["a"]}, {"name": "other", "image": "v1"})
    for live in (containers(), {"spec": {}}, {}):
        added = merge(live, wanted, {}, DEPLOYMENT, image)
        assert added.object == wanted, "what we add comes whole"
        assert image_is_ours(added.fields, wanted) is False
        again = three_way(added.object, wanted, added.fields, DEPLOYMENT, ignore=paths(image))
        assert again.object is added.object
        assert again.fields is added.fields


def image_is_ours(fields, wanted):
    """Whether we would take back the image of app if we wanted it no longer."""
    left = three_way(wanted, containers({"name": "app", "args": ["a"]}, {"name": "other"}), fields, DEPLOYMENT).object
    return "image" not in left["spec"]["template"]["spec"]["containers"][0]


def test_a_whole_item_or_subtree_can_be_ignored():
    wanted = containers({"name": "app", "image": "v1"}, {"name": "b"})
    live = containers({"name": "app", "image": "v9"}, {"name": "b"})
    assert merge(live, wanted, wanted, DEPLOYMENT, "spec.template.spec.containers[name=app]").object is live
    assert merge(
        containers({"name": "b"}), wanted, wanted, DEPLOYMENT, "spec.template.spec.containers[name=app]"
    ).object == containers({"name": "b"})
    assert (
        merge(live, containers({"name": "b"}), wanted, DEPLOYMENT, "spec.template.spec.containers[name=app]").object
        is live
    )
    assert merge({"spec": {}}, wanted, wanted, DEPLOYMENT, "spec.template").object == {"spec": {}}
    assert (
        merge(live, containers(), wanted, DEPLOYMENT, "spec.template.spec", "spec.template.spec.containers").object
        is live
    )
    created = create_fields(wanted, DEPLOYMENT, ignore=paths("spec.template.spec.containers[name=app]"))
    assert created == create_fields(containers({"name": "b"}), DEPLOYMENT)


def test_selectors_compare_defaulted_keys_numbers_and_booleans_as_text():
    live = {"spec": {"ports": [{"port": 53, "nodePort": 1}, {"port": 53, "protocol": "UDP", "nodePort": 2}]}}
    wanted = {"spec": {"ports": [{"port": 53, "nodePort": 7}, {"port": 53, "protocol": "UDP", "nodePort": 8}]}}

    def node_ports(*ignore):
        return [port["nodePort"] for port in merge(live, wanted, wanted, SERVICE, *ignore).object["spec"]["ports"]]

    assert node_ports("spec.ports[port=53,protocol=TCP].nodePort") == [1, 8]
    assert node_ports("spec.ports[port=53].nodePort") == [1, 2]
    assert node_ports("spec.ports[port=54].nodePort") == [7, 8]
    assert node_ports("spec.ports[port=53].nodePort", "spec.ports[protocol=UDP].name") == [1, 2]
    assert node_ports("spec.ports[port=53].name", "spec.ports[protocol=UDP].nodePort") == [7, 2]
    assert node_ports("spec.ports[port=53,name=x].nodePort") == [7, 8], "a field that is not there has no value"
    flags = struct(l=keyed(struct(on=TEXT, v=TEXT), "on"))
    assert merge({"l": [{"on": True, "v": 1}]}, {"l": [{"on": True, "v": 2}]}, {}, flags, "l[on=true].v").object == {
        "l": [{"on": True, "v": 1}]
    }


def test_overlapping_selectors_are_combined():
    shape = struct(l=keyed(struct(k=TEXT, inner=keyed(struct(n=TEXT, v=TEXT), "n")), "k"))
    live, wanted = (
        {"l": [{"k": "1", "x": "a", "inner": [{"n": "1", "v": value}, {"n": "2", "v": value}]}]}
        for value in ("theirs", "ours")
    )
    merged = merge(live, wanted, wanted, shape, "l[k=1].inner[n=1].v", "l[x=a].inner[n=2].v", "l[x=a].inner[n=1].z")
    assert merged.object is live
    assert merge(live, {"l": []}, wanted, shape, "l[k=1]", "l[x=a].inner").object is live


def test_a_quoted_name_in_a_path_can_be_ignored():
    def notes(**notes):
        return {"metadata": {"annotations": {f"a/{name}": value for name, value in notes.items()}}}

    merged = merge(
        notes(b="live", c="live"), notes(b="w", c="w"), notes(b="w", c="w"), DEPLOYMENT, "metadata.annotations['a/b']"
    )
    assert merged.object == notes(b="live", c="w")
    assert merge({"metadata": {}}, notes(b="w"), {}, DEPLOYMENT, "metadata.annotations['a/b']").object == notes(
        b="w"
    ), "set with the map that holds it"


def test_an_ignored_member_of_a_union_is_not_cleared():
    volume = Shape(type="object", retain_keys=True, fields={"a": TEXT, "b": TEXT, "c": TEXT})
    assert merge({"v": {"a": 1, "b": 2, "c": 3}}, {"v": {"a": 9}}, {}, struct(v=volume), "v.b").object == {
        "v": {"a": 9, "b": 2}
    }


def test_a_field_inside_an_atomic_list_or_map_can_be_ignored():
    shape = struct(l=Shape(type="list", items=struct(k=TEXT, v=TEXT)), m=Shape(type="object", atomic=True, values=TEXT))

    def list_of(*items):
        return {"l": [{"k": key, "v": value} for key, value in items]}

    live = list_of(("a", 1), ("b", 2))
    assert merge(live, list_of(("a", 7), ("b", 2)), {}, shape, "l[k=a].v").object is live
    assert merge(live, list_of(("a", 7), ("b", 8)), {}, shape, "l[k=a].v").object == list_of(("a", 1), ("b", 8))
    assert merge(live, list_of(("c", 7)), {}, shape, "l[k=c].v").object == list_of(("c", 7)), (
        "an item that is not live comes whole"
    )
    assert merge(live, list_of(("c", 7), ("a", 9), ("d", 8)), {}, shape, "l[k=a]").object == list_of(
        ("c", 7), ("a", 1), ("d", 8)
    )
    assert merge(live, list_of(("c", 7)), {}, shape, "l[k=a]").object == list_of(("c", 7), ("a", 1))
    assert merge(live, list_of(("c", 7)), {}, shape, "l[k=x]").object == list_of(("c", 7))
    assert merge({}, list_of(("a", 7)), {}, shape, "l[k=a].v").object == list_of(("a", 7))
    assert merge({"l": "text"}, list_of(("a", 7)), {}, shape, "l[k=a].v").object == list_of(("a", 7))
    assert merge({"m": {"x": 1, "y": 2}}, {"m": {"y": 3, "z": 4}}, {}, shape, "m.x", "m.z").object == {
        "m": {"x": 1, "y": 3}
    }
    nested = struct(m=Shape(type="object", atomic=True, fields={"in": Shape(type="object", values=TEXT)}))
    assert merge({"m": {"in": {"x": 1}}}, {"m": {"in": {"x": 2, "y": 3}}}, {}, nested, "m.in.x").object == {
        "m": {"in": {"x": 1, "y": 3}}
    }
    assert merge({"m": {}}, {"m": {"in": {"x": 2}}}, {}, nested, "m.in.x").object == {"m": {"in": {"x": 2}}}
    assert merge({"m": {"in": {"x": 1}}}, {"m": {}}, {}, nested, "m.in.x").object == {"m": {}}
    unknown = merge(
        {"l": [{"k": "a", "m": {"x": 1}}]}, {"l": [{"k": "a", "m": {"x": 2, "y": 3}}]}, {}, UNKNOWN, "l[k=a].m.x"
    )
    assert unknown.object == {"l": [{"k": "a", "m": {"x": 1, "y": 3}}]}
    for live, wanted in (
        ({"x": 1}, 5),
        (5, {"x": 1}),
        ([1], {"x": 1}),
        ({"x": 1}, [1]),
        ([{"k": "a"}], "text"),
        ("text", [{"k": "a"}]),
    ):
        ignore = ("m.in.x", "m.in[k=a].v", "m.in[k=a]")
        assert merge({"m": {"in": live}}, {"m": {"in": wanted}}, {}, nested, *ignore).object == {"m": {"in": wanted}}
    assert merge({"l": ["a"]}, {"l": ["b"]}, {}, shape, "l[k=a]").object == {"l": ["b"]}, (
        "an item without fields is not selected"
    )


@pytest.mark.parametrize(
    "path", ["nothing.here", "spec.replicas.further", "spec[a=b]", "l.x", "l[name=A].value.further"]
)
def test_an_ignored_path_that_does_not_exist_changes_nothing(path):
    shape = struct(spec=struct(replicas=TEXT), l=ENV)
    live, wanted = (
        {"spec": {"replicas": 7}, "l": [{"name": "A"}]},
        {"spec": {"replicas": 3}, "l": [{"name": "A", "value": "1"}]},
    )
    assert merge(live, wanted, wanted, shape, path).object == wanted
    assert merge(wanted, wanted, wanted, UNKNOWN, path).object is wanted


# -- what is learned while a field is ignored --------------------------------------------------------------------------

LISTS = struct(
    replicas=TEXT,
    env=ENV,
    plain=Shape(type="list", items=struct(k=TEXT, v=TEXT, cpu=TEXT)),
    map=Shape(type="object", atomic=True, values=TEXT),
)


def item(value, cpu="1"):
    return {"k": "a", "v": value, "cpu": cpu}


@pytest.mark.parametrize(
    ("path", "theirs", "ours"),
    [
        ("replicas", {"replicas": 7}, {"replicas": 3}),
        ("env[name=A].value", {"env": [{"name": "A", "value": "7"}]}, {"env": [{"name": "A", "value": "3"}]}),
        ("env[name=A]", {"env": [{"name": "A", "value": "7"}]}, {"env": [{"name": "A", "value": "3"}]}),
        ("env[name=A]", {"env": []}, {"env": [{"name": "A", "value": "3"}]}),
        ("plain[k=a].v", {"plain": [item(7)]}, {"plain": [item(3)]}),
        ("map.a", {"map": {"a": 7, "b": 1}}, {"map": {"a": 3, "b": 1}}),
    ],
)
def test_a_field_that_was_ignored_during_a_write_is_recorded_afterwards(path, theirs, ours):
    """Values that others set there are never learned as an answer of the server."""
    before, wanted = {**theirs, "other": 1}, {**ours, "other": 2}
    written = three_way(before, wanted, create_fields(wanted, LISTS, ignore=paths(path)), LISTS, ignore=paths(path))
    assert written.object == {**theirs, "other": 2}
    learned = Learned.NOTHING.learn(as_sent(wanted, before, paths(path), LISTS), written.object, LISTS)
    assert not len(learned)
    assert (
        three_way(written.object, wanted, written.fields, LISTS, ignore=paths(path), learned=learned).object
        is written.object
    )
    assert three_way(written.object, wanted, written.fields, LISTS, learned=learned).object == wanted


def test_a_learned_answer_beside_an_ignored_field_applies():
    before, wanted, answered = {"plain": [item(7)]}, {"plain": [item(3, "1000m")]}, {"plain": [item(7, "1")]}
    ignore = paths("plain[k=a].v")
    learned = Learned.NOTHING.learn(as_sent(wanted, before, ignore, LISTS), answered, LISTS)
    fields = create_fields(wanted, LISTS)
    assert three_way(answered, wanted, fields, LISTS, ignore=ignore, learned=learned).object is answered
    assert three_way(answered, wanted, fields, LISTS, learned=learned).object == wanted


def test_an_ignored_field_is_sent_with_a_new_container():
    ignore = paths("env[name=A].value", "env[name=B]", "map.a")
    wanted = {"env": [{"name": "A", "value": "3"}, {"name": "B"}], "map": {"a": 3}}
    assert as_sent(wanted, {}, ignore, LISTS) == wanted
    assert as_sent(wanted, {"env": []}, ignore, LISTS) == {"env": [{"name": "A", "value": "3"}], "map": {"a": 3}}
    assert as_sent(wanted, wanted, paths("nowhere"), LISTS) == as_sent(wanted, wanted, (), LISTS) == wanted
