"""Properties of edited keys of recorded items, and of lists in which two items may not share a value."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.kubernetes.merge import (
    FieldSet,
    Learned,
    Record,
    create_fields,
    decode,
    encode,
    merge_patch,
    same,
    three_way,
)
from ruleop.kubernetes.merge.conflicts import conflicting_field
from ruleop.kubernetes.merge.lists import item_key
from ruleop.kubernetes.schema.shape import Shape
from tests.exploration import examples
from tests.kubernetes.merge.shapes import SERVICE, SERVICE_PORTS

MANY = settings(max_examples=examples(100), deadline=None)
PROTOCOLS = ["TCP", "UDP"]


def ports(items):
    return {"spec": {"ports": items}}


def key_of(item):
    return item_key(item, SERVICE_PORTS)


def valid(items) -> bool:
    """Whether the API server takes the list: its keys and its other unique fields are unique."""
    keys = [key_of(item) for item in items]
    pairs = ((one, other) for at, one in enumerate(items) for other in items[:at])
    return len(set(keys)) == len(keys) and all(
        conflicting_field(one, other, SERVICE_PORTS) is None for one, other in pairs
    )


def a_port(numbers, names, *, of_server: bool):
    optional = {"targetPort": st.sampled_from([1, "x"]), "nodePort": st.sampled_from([30001, 30002, 30003])}
    optional |= {} if of_server else {"protocol": st.sampled_from(PROTOCOLS)}
    required = {"port": st.sampled_from(numbers), "name": st.sampled_from(names)}
    return st.fixed_dictionaries(
        required | ({"protocol": st.sampled_from(PROTOCOLS)} if of_server else {}), optional=optional
    )


def lists(numbers, names, *, of_server: bool = False, **sizes):
    return st.lists(a_port(numbers, names, of_server=of_server), **sizes).filter(valid)


desired_ports = lists([1, 2, 3], ["a", "b", "c"], max_size=3)
foreign_ports = lists([11, 12, 13], ["x", "y"], of_server=True, max_size=2)
any_ports = lists([1, 2, 3, 11, 12], ["a", "b", "c", "x"], of_server=True, max_size=4)


@dataclass
class Edit:
    desired: list
    applied: FieldSet
    before: dict  # as it was until the edit
    foreign: list
    live: dict


@st.composite
def edits(draw) -> Edit:
    """Our items stand among those of others, and somebody gives some of them other keys."""
    desired = draw(desired_ports)
    applied = create_fields(ports(desired), SERVICE)
    foreign = draw(foreign_ports.filter(lambda theirs: valid([*theirs, *desired])))
    ours = [{"protocol": "TCP", **item} for item in desired]
    standing = draw(st.permutations([*ours, *foreign]))
    before = three_way(ports(standing), ports(desired), applied, SERVICE).object
    live = []
    for number, item in enumerate(before["spec"]["ports"]):
        edited = item not in foreign and draw(st.booleans())
        live.append({**item, "port": 100 + number, "protocol": draw(st.sampled_from(PROTOCOLS))} if edited else item)
    return Edit(desired, applied, before, foreign, ports(live))


@MANY
@given(edits().filter(lambda edit: valid(edit.live["spec"]["ports"])))
def test_a_merge_restores_all_hand_edited_keys(edit):
    merged = three_way(edit.live, ports(edit.desired), edit.applied, SERVICE)
    assert same(merged.object, edit.before)
    assert merged.fields == edit.applied


@dataclass
class State:
    shape: Shape
    live: dict
    desired: list
    applied: FieldSet | None


@st.composite
def states(draw) -> State:
    recorded = draw(st.none() | desired_ports)
    applied = None if recorded is None else create_fields(ports(recorded), SERVICE)
    return State(SERVICE, ports(draw(any_ports)), draw(desired_ports), applied)


def merged(t: State):
    return three_way(t.live, ports(t.desired), t.applied, t.shape)


@MANY
@given(states())
def test_a_second_merge_finds_nothing_to_do(t):
    first = merged(t)
    second = three_way(first.object, ports(t.desired), first.fields, t.shape)
    assert second.object is first.object
    assert second.fields == first.fields
    assert merge_patch(first.object, second.object) is None
    assert decode(encode(Record("x", first.fields))) == Record("x", first.fields)


@MANY
@given(states())
def test_each_desired_item_is_in_the_result_once(t):
    found = [key_of(item) for item in merged(t).object["spec"]["ports"]]
    assert len(set(found)) == len(found)
    by_key = {key_of(item): item for item in merged(t).object["spec"]["ports"]}
    assert all(item.items() <= by_key[key_of(item)].items() for item in t.desired)


@MANY
@given(states())
def test_items_of_others_are_kept_unless_they_conflict_with_a_missing_recorded_item(t):
    live, recorded = t.live["spec"]["ports"], set() if t.applied is None else set(items_of(t.applied))
    present, desired = {key_of(item) for item in live}, {key_of(item) for item in t.desired}
    result = merged(t).object["spec"]["ports"]
    missing = [item for item in t.desired if key_of(item) not in present]
    for item in live:
        if key_of(item) in recorded | desired or item in result:
            continue
        assert recorded - present, "no recorded item was missing"
        assert any(conflicting_field(item, ours, SERVICE_PORTS) for ours in missing)


@MANY
@given(states())
def test_at_most_one_item_is_corrected_for_each_missing_recorded_item(t):
    live, result = t.live["spec"]["ports"], merged(t).object["spec"]["ports"]
    recorded = set() if t.applied is None else set(items_of(t.applied))
    desired = {key_of(item) for item in t.desired}
    foreign = [item for item in live if key_of(item) not in recorded | desired]
    lost = recorded - {key_of(item) for item in live}
    assert sum(item not in result for item in foreign) <= len(lost)


@MANY
@given(states(), any_ports)
def test_the_same_answer_of_the_server_is_not_a_difference(t, answered):
    answer, desired = ports(answered), ports(t.desired)
    learned = Learned.NOTHING.learn(desired, answer, t.shape)
    assert three_way(answer, desired, create_fields(desired, t.shape), t.shape, learned=learned).object is answer


def items_of(fields: FieldSet):
    return fields.root.members["spec"].members["ports"].items
