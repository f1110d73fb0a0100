"""Values that the server rewrites are learned from its answer, and never hide a change by others."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.merge import Learned, create_fields, merge_patch, three_way
from ruleop.kubernetes.merge.server_changes import MAX_DIFFERENCES
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape
from tests.kubernetes.merge.shapes import ENV, SET, TEXT, TEXTS, keyed, struct

SHAPE = struct(
    text=TEXT,
    inner=struct(text=TEXT, deeper=TEXTS),
    whole=Shape(type="list", items=UNKNOWN),
    map=Shape(type="object", atomic=True, values=TEXT),
    env=ENV,
    ports=keyed(struct(port=TEXT, protocol=TEXT, name=TEXT), "port", "protocol", protocol="TCP"),
    set=SET,
    flags=keyed(struct(on=TEXT, v=TEXT), "on"),
)


def after(sent, answered, *, live=None, wanted=None):
    """The merge after `sent` was answered with `answered`: of what we then want into what is then live."""
    learned = Learned.NOTHING.learn(sent, answered, SHAPE)
    live = answered if live is None else live
    return three_way(live, sent if wanted is None else wanted, create_fields(sent, SHAPE), SHAPE, learned=learned), live


ANSWERS = {
    "a rewritten text": ({"text": "1000m"}, {"text": "1"}),
    "another kind of number": ({"text": 1.0}, {"text": 1}),
    "a dropped value": ({"text": "x", "inner": {}}, {"inner": {}}),
    "a field that was pruned": ({"inner": {"text": "x", "unknown": {"a": 1}}}, {"inner": {"text": "x"}}),
    "a dropped empty map": ({"inner": {}}, {}),
    "a dropped empty list": ({"set": [], "env": [], "whole": []}, {}),
    "a map with nulls that was dropped": ({"inner": {"text": None}}, {}),
    "defaults in an atomic list": ({"whole": [{"port": 1}]}, {"whole": [{"port": 1, "protocol": "TCP"}]}),
    "defaults in an atomic map": ({"map": {"a": "1", "x": None}}, {"map": {"a": "1", "b": "2"}}),
    "a value in an item": ({"env": [{"name": "A", "value": "x"}]}, {"env": [{"name": "A", "value": "X", "added": 1}]}),
    "a value in an item with a defaulted key": (
        {"ports": [{"port": 1, "name": "x"}]},
        {"ports": [{"port": 1, "protocol": "TCP", "name": "X"}]},
    ),
    "a value in an item known by a boolean": ({"flags": [{"on": True, "v": 1}]}, {"flags": [{"on": True, "v": 2}]}),
    "a dropped item": ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "B"}]}),
    "items in another order": (
        {"env": [{"name": "B"}, {"name": "A"}]},
        {"env": [{"name": "A"}, {"name": "X"}, {"name": "B"}]},
    ),
    "a sorted set": ({"set": ["b", "a"]}, {"set": ["a", "b"]}),
    "a re-cased member of a set": ({"set": ["Retain"]}, {"set": ["retain"]}),
    "a list that became something else": ({"env": [{"name": "A"}]}, {"env": {"A": ""}}),
    "a map that became a list": ({"env": {"A": ""}, "set": {"A": ""}}, {"env": [{"name": "A"}], "set": ["A"]}),
    "a map that became something else": ({"inner": {"text": "x"}}, {"inner": "x"}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_learned_answer_is_not_a_difference(name):
    sent, answered = ANSWERS[name]
    assert merge_patch(answered, three_way(answered, sent, create_fields(sent, SHAPE), SHAPE).object), (
        "without learning it is one"
    )
    merged, live = after(sent, answered)
    assert merged.object is live
    assert merged.fields == create_fields(sent, SHAPE), "it is ours all the same"


@pytest.mark.parametrize("name", ANSWERS)
def test_a_changed_desired_value_is_a_difference_despite_a_learned_answer(name):
    sent, answered = ANSWERS[name]
    wanted = {
        "text": "2",
        "inner": {"text": "2"},
        "whole": [2],
        "map": {"z": "2"},
        "set": ["z"],
        "env": [{"name": "Z"}],
        "flags": [],
        "ports": [],
    }
    merged, live = after(sent, answered, wanted=wanted)
    plain = three_way(live, wanted, create_fields(sent, SHAPE), SHAPE)
    assert merged.object == plain.object != live


@pytest.mark.parametrize(
    ("name", "live"),
    [
        ("a rewritten text", {"text": "2"}),
        ("a rewritten text", {}),
        ("a dropped value", {"text": "theirs", "inner": {}}),
        ("a dropped empty map", {"inner": 5}),
        ("defaults in an atomic list", {"whole": [{"port": 1, "protocol": "UDP"}]}),
        ("a value in an item", {"env": [{"name": "A", "value": "theirs"}]}),
        ("a sorted set", {"set": ["a"]}),
        ("items in another order", {"env": [{"name": "X"}, {"name": "A"}, {"name": "B"}]}),
    ],
)
def test_a_changed_live_value_is_a_difference_despite_a_learned_answer(name, live):
    sent, answered = ANSWERS[name]
    merged, _ = after(sent, answered, live=live)
    assert merge_patch(live, merged.object)
    assert merged.object == three_way(live, sent, create_fields(sent, SHAPE), SHAPE).object


def test_a_change_beside_a_learned_answer_keeps_the_answer():
    sent, answered = {"text": "1000m", "inner": {"text": "x"}}, {"text": "1", "inner": {"text": "x"}}
    merged, live = after(sent, answered, wanted={"text": "1000m", "inner": {"text": "y"}})
    assert merged.object == {"text": "1", "inner": {"text": "y"}}
    assert merge_patch(live, merged.object) == {"inner": {"text": "y"}}


def test_a_member_of_a_union_changes_beside_a_learned_answer():
    shape = struct(volume=Shape(type="object", retain_keys=True, fields={"name": TEXT, "a": TEXT, "b": TEXT}))
    learned = Learned.NOTHING.learn({"volume": {"name": "X", "a": 1}}, {"volume": {"name": "x", "a": 1}}, shape)
    merged = three_way(
        {"volume": {"name": "x", "a": 1}}, {"volume": {"name": "X", "b": 2}}, None, shape, learned=learned
    )
    assert merged.object == {"volume": {"name": "x", "b": 2}}


def test_the_order_of_items_chosen_by_the_server_stays_when_an_item_changes():
    sent = {"env": [{"name": "B"}, {"name": "A", "value": "1"}]}
    answered = {"env": [{"name": "A", "value": "1"}, {"name": "B"}]}
    merged, _ = after(sent, answered, wanted={"env": [{"name": "B"}, {"name": "A", "value": "2"}]})
    assert merged.object == {"env": [{"name": "A", "value": "2"}, {"name": "B"}]}


def test_an_item_dropped_by_the_server_is_sent_again_when_it_changes():
    sent = {"env": [{"name": "B"}, {"name": "A"}, {"name": "D", "value": "1"}]}
    answered = {"env": [{"name": "A"}, {"name": "B"}]}
    wanted = {"env": [{"name": "B"}, {"name": "A"}, {"name": "D", "value": "2"}]}
    merged, _ = after(sent, answered, wanted=wanted)
    assert merged.object == wanted
    assert after(sent, answered)[0].object is answered


def test_an_answer_does_not_apply_after_the_server_accepts_the_value():
    learned = Learned.NOTHING.learn({"text": "x"}, {"text": "X"}, SHAPE)
    assert len(learned) == 1
    learned = learned.learn({"text": "x"}, {"text": "x"}, SHAPE)
    assert len(learned) == 0
    assert three_way({"text": "X"}, {"text": "x"}, None, SHAPE, learned=learned).object == {"text": "x"}


def test_additions_of_the_server_are_not_learned():
    assert (
        Learned.NOTHING.learn(
            {"env": [{"name": "A"}]}, {"env": [{"name": "A", "value": ""}, {"name": "B"}], "text": "x"}, SHAPE
        )
        is Learned.NOTHING
    )
    assert (
        Learned.NOTHING.learn({"text": None, "set": ["a"]}, {"text": "x", "set": ["b", "a"]}, SHAPE) is Learned.NOTHING
    )


def test_learning_is_bounded_and_does_not_modify_earlier_answers():
    sent = {f"n{number}": 1 for number in range(MAX_DIFFERENCES * 2)}
    many = Learned.NOTHING.learn(sent, {}, UNKNOWN)
    assert len(many) == MAX_DIFFERENCES
    assert len(Learned.NOTHING) == 0
    many.learn({"a": 1}, {"a": 1}, UNKNOWN)
    assert len(many) == MAX_DIFFERENCES


def test_no_learned_value_is_stored_in_clear_text():
    learned = Learned.NOTHING.learn({"text": "hunter2"}, {"text": "hunter3"}, SHAPE)
    assert "hunter" not in repr(learned) + repr(learned.answers)


def test_a_duplicate_key_in_the_answer_counts_once():
    sent, answered = (
        {"env": [{"name": "A", "value": "1"}]},
        {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"value": "x"}]},
    )
    assert len(Learned.NOTHING.learn(sent, answered, SHAPE)) == 1, "the order: A stands there twice"


def test_duplicate_or_keyless_items_of_others_are_tolerated_in_an_answer():
    """An ignored item is sent as it is live when the whole object is replaced."""
    sent = {
        "env": [
            {"name": "A", "value": "1"},
            {"name": "A", "value": "2"},
            {"value": "x"},
            {"name": "B", "value": "1000m"},
        ]
    }
    answered = {"env": [*sent["env"][:3], {"name": "B", "value": "1"}]}
    assert len(Learned.NOTHING.learn(sent, answered, SHAPE)) == 2, "a value, and the order: A stands there twice"


def test_an_emptied_map_that_the_server_drops_stays_in_the_record():
    """The second pass changed only the record, in a write of its own."""
    shape = Shape(type="object", fields={"labels": Shape(type="object", values=Shape(type="scalar"))})
    adopted = three_way({"labels": {"a": "x"}}, {"labels": {"a": "x"}}, None, shape)
    emptied_by_us = three_way(adopted.object, {"labels": {}}, adopted.fields, shape)
    answer = {}
    learned = Learned.NOTHING.learn({"labels": {}}, answer, shape)
    again = three_way(answer, {"labels": {}}, emptied_by_us.fields, shape, learned=learned)
    assert again.object is answer
    assert again.fields == emptied_by_us.fields
