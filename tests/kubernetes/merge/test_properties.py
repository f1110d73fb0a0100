"""What holds for every merge: random shapes with lists of every kind, and random triples of what we applied, what is
live and what we want.

A triple comes about as it does in a cluster: we created or adopted the object, others changed it in any way they like,
and then we want something else.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ruleop.kubernetes.merge import (
    FieldSet,
    Learned,
    Record,
    as_sent,
    create_fields,
    decode,
    encode,
    merge_patch,
    parse_path,
    same,
    three_way,
)
from ruleop.kubernetes.merge.fields import MapFields
from ruleop.kubernetes.merge.lists import item_key
from ruleop.kubernetes.merge.server_changes import _differences, is_in_sync
from ruleop.kubernetes.merge.server_changes import holds as holds_at_a_glance
from ruleop.kubernetes.schema.shape import Shape
from tests.exploration import examples

NAMES = ["a", "b", "c", "d"]
SCALAR = Shape(type="scalar")
scalars = st.sampled_from([0, 1, 1.0, True, False, "", "x", "1"])
MANY = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def shapes(depth: int = 3) -> st.SearchStrategy[Shape]:
    leaves = st.sampled_from(
        [SCALAR, Shape(type="list", items=SCALAR), Shape(type="list", list_type="set", items=SCALAR)]
    )
    if depth == 0:
        return leaves
    inner = shapes(depth - 1)
    members = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3)
    structs = st.builds(
        lambda fields, atomic: Shape(type="object", fields=fields, atomic=atomic), members, st.booleans()
    )
    granular = st.builds(lambda fields: Shape(type="object", fields=fields), members)
    unions = st.builds(lambda fields: Shape(type="object", fields=fields, retain_keys=True), members)
    opens = st.builds(lambda values: Shape(type="object", values=values), inner)
    atomics = st.builds(lambda items: Shape(type="list", items=items), inner)
    keyed = st.builds(_keyed, members, st.booleans(), st.booleans())
    return st.one_of(leaves, structs, granular, unions, opens, atomics, keyed, keyed)


def _keyed(fields, two_keys, atomic_items) -> Shape:
    keys = ("k", "p") if two_keys else ("k",)
    items = Shape(type="object", fields={**fields, **dict.fromkeys(keys, SCALAR)}, atomic=atomic_items)
    return Shape(type="list", list_type="map", items=items, keys=keys, key_defaults={"p": "TCP"} if two_keys else {})


roots = st.dictionaries(st.sampled_from(NAMES), shapes(), min_size=1, max_size=4).map(
    lambda fields: Shape(type="object", fields=fields)
)


def values_of(shape: Shape) -> st.SearchStrategy:
    if shape.type == "scalar":
        return scalars
    if shape.type == "object":
        if shape.values is not None:
            return st.dictionaries(st.sampled_from(NAMES), values_of(shape.values), max_size=3)
        return st.fixed_dictionaries({}, optional={name: values_of(inner) for name, inner in shape.fields.items()})
    if shape.list_type == "map":
        required = {"k": st.sampled_from([1, 2, True, "x"])}
        optional = {name: values_of(inner) for name, inner in shape.items.fields.items() if name not in ("k", "p")}
        if "p" in shape.keys:
            optional["p"] = st.sampled_from(["TCP", "UDP"])
        items = st.fixed_dictionaries(required, optional=optional)
        return st.lists(items, max_size=4, unique_by=lambda item: item_key(item, shape))
    unique = (lambda item: (type(item), item)) if shape.list_type == "set" else None
    return st.lists(values_of(shape.items), max_size=4, unique_by=unique)


@dataclass
class Triple:
    shape: Shape
    live: dict
    wanted: dict
    applied: FieldSet | None
    before: dict  # what was wanted when `applied` was recorded


@st.composite
def triples(draw) -> Triple:
    shape = draw(roots)
    objects = values_of(shape)
    before, wanted = draw(objects), draw(objects)
    existing = draw(st.none() | objects)
    first = three_way(existing, before, None, shape)
    # others: nothing, something unrelated, or changes to what is there
    live = draw(st.sampled_from(["as we left it", "changed by others", "anything"]))
    if live == "as we left it":
        live = first.object
    elif live == "changed by others":
        live = three_way(first.object, draw(objects), None, shape).object
    else:
        live = draw(objects)
    return Triple(shape, live, wanted, first.fields, before)


def holds(value, wanted, shape) -> bool:
    """Whether `value` has every field of `wanted`, by the shape."""
    if type(wanted) is dict and not shape.atomic:
        return type(value) is dict and all(
            name in value and holds(value[name], inner, member(shape, name)) for name, inner in wanted.items()
        )
    if type(wanted) is list and shape.list_type == "set":
        return type(value) is list and all(any(same(item, other) for other in value) for item in wanted)
    if type(wanted) is list and shape.list_type == "map":
        by_key = {item_key(item, shape): item for item in value}
        ours = [item_key(item, shape) for item in wanted]
        in_order = [key for key in by_key if key in ours] == ours
        return in_order and all(holds(by_key[key], item, shape.items) for key, item in zip(ours, wanted, strict=True))
    return same(value, wanted)


def member(shape, name) -> Shape:
    return shape.fields.get(name) or shape.values


def fields_in(value, shape, path=()):
    """Every single field of a value by its path: the fields of a merge, computed independently of FieldSet."""
    if type(value) is dict and not shape.atomic:
        yield (*path, ".")
        for name, inner in value.items():
            yield from fields_in(inner, member(shape, name), (*path, name))
    elif type(value) is list and shape.list_type == "map":
        yield (*path, ".")
        for item in value:
            yield from fields_in(item, shape.items, (*path, (repr(item_key(item, shape)),)))
    elif type(value) is list and shape.list_type == "set":
        yield (*path, ".")
        yield from ((*path, (repr(item),)) for item in value)
    else:
        yield path


def in_a_union(path, shape) -> bool:
    """Whether a path leads through an object whose members exclude each other; there, others' members may be
    cleared."""
    for step in path:
        if shape.retain_keys:
            return True
        if step == "." or shape.type == "scalar":
            return False
        shape = shape.items if type(step) is tuple else member(shape, step)
    return False


def is_key(path, shape) -> bool:
    return len(path) > 1 and type(path[-2]) is tuple and path[-1] in ("k", "p")


def merged(t: Triple, **options):
    return three_way(t.live, t.wanted, t.applied, t.shape, **options)


def patched(target, patch):
    """RFC 7386, word by word."""
    if type(patch) is not dict:
        return patch
    result = dict(target) if type(target) is dict else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = patched(result.get(name), value)
    return result


@pytest.mark.slow
@MANY
@given(triples())
def test_every_desired_value_is_in_the_result(t):
    assert holds(merged(t).object, t.wanted, t.shape)


@MANY
@given(triples())
def test_fields_of_others_survive(t):
    theirs = set(fields_in(t.live, t.shape)) - set(fields_in(t.before, t.shape))
    result = set(fields_in(merged(t).object, t.shape))
    lost = {path for path in theirs - result if not in_a_union(path, t.shape)}
    # what was inside something that we created and gave up went with it; what became another value is there as a whole
    wanted = set(fields_in(t.wanted, t.shape))
    for path in lost:
        containers = [path[:length] for length in range(len(path))]
        assert any((*container, ".") in set(fields_in(t.before, t.shape)) - wanted for container in containers)


@pytest.mark.slow
@MANY
@given(triples())
def test_a_merge_without_a_record_removes_nothing(t):
    result = set(fields_in(three_way(t.live, t.wanted, None, t.shape).object, t.shape))
    assert all(in_a_union(path, t.shape) for path in set(fields_in(t.live, t.shape)) - result)


@pytest.mark.slow
@MANY
@given(triples())
def test_fields_that_are_no_longer_desired_are_removed(t):
    """But for the keys of items that stay, and for containers that were there before us or that others put something
    into."""
    given_up = set(fields_in(t.before, t.shape)) - set(fields_in(t.wanted, t.shape))
    left = given_up & set(fields_in(merged(t).object, t.shape))
    assert all(path[-1] == "." or is_key(path, t.shape) for path in left)


@MANY
@given(triples())
def test_a_second_merge_changes_nothing(t):
    first = merged(t)
    second = three_way(first.object, t.wanted, first.fields, t.shape)
    assert second.object is first.object
    assert second.fields == first.fields
    assert merge_patch(first.object, second.object) is None
    assert three_way(copy.deepcopy(first.object), t.wanted, first.fields, t.shape).fields == first.fields


@pytest.mark.slow
@MANY
@given(triples())
def test_the_record_lists_the_desired_fields(t):
    def unmarked(fields):
        return FieldSet.from_json(strip(fields.to_json()))

    def strip(data):
        match data:
            case [dict() as members]:
                return strip(members)
            case dict():
                return {name: strip(inner) for name, inner in data.items()}
            case ["k", _, keys, items]:
                return ["k", 0, keys, [[*item[:-1], strip(item[-1])] for item in items]]
            case ["s", _, *rest]:
                return ["s", 0, *rest]
        return data

    assert unmarked(merged(t).fields) == unmarked(create_fields(t.wanted, t.shape))


@pytest.mark.slow
@MANY
@given(triples(), st.randoms())
def test_the_order_of_items_does_not_change_the_merged_items(t, random):
    def shuffled(value, shape):
        if type(value) is dict and not shape.atomic:
            return {name: shuffled(inner, member(shape, name)) for name, inner in value.items()}
        if type(value) is list and shape.list_type != "atomic":
            items = [shuffled(item, shape.items) for item in value]
            random.shuffle(items)
            return items
        return value

    one = merged(t)
    live, wanted = shuffled(t.live, t.shape), shuffled(t.wanted, t.shape)
    other = three_way(live, wanted, t.applied, t.shape)
    assert set(fields_in(one.object, t.shape)) == set(fields_in(other.object, t.shape))
    assert one.fields == other.fields


@pytest.mark.slow
@MANY
@given(triples())
def test_arguments_of_a_merge_are_not_modified_and_types_are_kept(t):
    copies = copy.deepcopy((t.live, t.wanted))
    record = encode(Record("x", t.applied))
    result = merged(t).object
    learned = Learned.NOTHING.learn(t.wanted, t.live, t.shape)
    three_way(t.live, t.wanted, t.applied, t.shape, learned=learned, ignore=[parse_path("a.b"), parse_path("c[k=1].a")])
    merge_patch(t.live, result)
    assert same(t.live, copies[0])
    assert same(t.wanted, copies[1])
    assert encode(Record("x", t.applied)) == record
    known = [*leaves_of(t.live), *leaves_of(t.wanted)]
    assert all(any(same(leaf, other) for other in known) for leaf in leaves_of(result))


def leaves_of(value):
    if type(value) is dict:
        for inner in value.values():
            yield from leaves_of(inner)
    elif type(value) is list:
        for inner in value:
            yield from leaves_of(inner)
    else:
        yield value


@MANY
@given(triples())
def test_the_patch_turns_the_live_object_into_the_merged_one(t):
    result = merged(t).object
    patch = merge_patch(t.live, result)
    assert (patch is None) == same(t.live, result)
    assert same(patched(t.live, patch or {}), result)
    assert patch is not None or result is t.live


@pytest.mark.slow
@MANY
@given(triples())
def test_a_record_survives_writing_and_reading(t):
    for fields in (t.applied, merged(t).fields):
        assert decode(encode(Record("id", fields))) == Record("id", fields)
        assert encode(decode(encode(Record("id", fields)))) == encode(Record("id", fields))


@pytest.mark.slow
@MANY
@given(triples())
def test_the_quick_comparison_agrees_with_the_thorough_one(t):
    """An ignored path forces the thorough comparison; one that does not exist leaves the result the same."""
    for live, applied in (
        (t.live, t.applied),
        (merged(t).object, merged(t).fields),
        (t.wanted, create_fields(t.wanted, t.shape)),
    ):
        notes = [parse_path(f"{name}.nowhere.at.all") for name in NAMES]
        glance, closer = (
            three_way(live, t.wanted, applied, t.shape),
            three_way(live, t.wanted, applied, t.shape, ignore=notes),
        )
        assert same(glance.object, closer.object)
        assert glance.fields == closer.fields
        if is_in_sync(live, t.wanted, MapFields(applied.root.members, created=False), t.shape):
            assert closer.object is live
            assert closer.fields == applied
    assert is_in_sync(t.wanted, t.wanted, create_fields(t.wanted, t.shape).root, t.shape), (
        "what was just created is at rest"
    )


@pytest.mark.slow
@MANY
@given(triples(), roots, st.data())
def test_the_quick_comparison_is_correct_for_a_record_of_another_schema(t, other, data):
    notes = [parse_path(f"{name}.nowhere.at.all") for name in NAMES]
    applied = create_fields(data.draw(values_of(other)), other)
    for live in (t.wanted, t.live):
        glance, closer = (
            three_way(live, t.wanted, applied, t.shape),
            three_way(live, t.wanted, applied, t.shape, ignore=notes),
        )
        assert same(glance.object, closer.object)
        assert glance.fields == closer.fields


@pytest.mark.slow
@MANY
@given(triples())
def test_after_any_learned_answer_the_same_desired_state_is_not_a_difference(t):
    """Whatever the server answers, the same desired state is not a difference."""
    learned = Learned.NOTHING.learn(t.wanted, t.live, t.shape)
    merged = three_way(t.live, t.wanted, create_fields(t.wanted, t.shape), t.shape, learned=learned)
    assert merged.object is t.live
    assert merged.fields == create_fields(t.wanted, t.shape)


def parts_of(value, shape, path=()):
    """What can be learned one by one: scalars, atomic values, sets, and that a container is there."""
    if type(value) is dict and not shape.atomic:
        yield (*path, "."), None
        for name, inner in value.items():
            yield from parts_of(inner, member(shape, name), (*path, name))
    elif type(value) is list and shape.list_type == "map":
        yield (*path, "."), None
        for item in value:
            yield from parts_of(item, shape.items, (*path, (repr(item_key(item, shape)),)))
    else:
        yield path, value


@pytest.mark.slow
@MANY
@given(triples(), st.data())
def test_a_learned_answer_applies_only_to_the_same_sent_and_answered_values(t, data):
    objects = values_of(t.shape)
    sent, answered = data.draw(st.just(t.wanted) | objects), data.draw(st.just(t.live) | objects)
    learned = Learned.NOTHING.learn(sent, answered, t.shape)
    result = dict(parts_of(merged(t, learned=learned).object, t.shape))
    plain = dict(parts_of(merged(t).object, t.shape))
    was_sent, was_answered, live = (dict(parts_of(value, t.shape)) for value in (sent, answered, t.live))
    for path, wanted in parts_of(t.wanted, t.shape):
        if path not in result or not same(result[path], plain[path]):
            assert path in was_sent
            assert same(was_sent[path], wanted)
            assert (path in was_answered) == (path in live)
            assert same(was_answered.get(path), live.get(path))


@pytest.mark.slow
@MANY
@given(triples(), st.sampled_from(NAMES))
def test_an_ignored_field_keeps_its_live_value_and_is_not_recorded(t, name):
    result = merged(t, ignore=[parse_path(name)])
    assert same(result.object.get(name), t.live.get(name))
    assert name not in result.fields.root.members
    rest = {key: value for key, value in t.wanted.items() if key != name}
    assert same(result.object, three_way(t.live, rest, without(t.applied, name), t.shape).object)


@pytest.mark.slow
@MANY
@given(
    triples(),
    st.lists(st.sampled_from(["a", "b", "a.b", "b.a.c", "c[k=1]", "c[k=1].a", "a[k=x].b", "b[a=1].c"]), min_size=1),
)
def test_a_server_that_keeps_all_values_teaches_nothing_about_ignored_fields(t, texts):
    ignore = [parse_path(text) for text in texts]
    first = merged(t, ignore=ignore)
    learned = Learned.NOTHING.learn(as_sent(t.wanted, t.live, ignore, t.shape), first.object, t.shape)
    for after in (ignore, []):
        plain = three_way(first.object, t.wanted, first.fields, t.shape, ignore=after)
        assert same(
            three_way(first.object, t.wanted, first.fields, t.shape, ignore=after, learned=learned).object, plain.object
        )


def without(fields: FieldSet, name: str) -> FieldSet:
    return FieldSet(MapFields({key: value for key, value in fields.root.members.items() if key != name}, created=False))


@pytest.mark.slow
@MANY
@given(triples(), st.data())
def test_an_answer_with_all_sent_values_is_not_learned(t, data):
    """The quick look and the close one agree: where the first sees nothing to learn, there is nothing."""
    answer = data.draw(
        st.sampled_from(
            [t.live, t.wanted, {**t.live, **t.wanted}, three_way(t.live, t.wanted, t.applied, t.shape).object]
        )
    )
    if holds_at_a_glance(answer, t.wanted, t.shape):
        assert not list(_differences(t.wanted, answer, t.shape, ()))
    assert holds_at_a_glance(t.wanted, t.wanted, t.shape)
