"""Properties of all objects: field sets are an algebra, apply is idempotent, and patches have their result."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ruleop.kubernetes.merge import merge_patch as smallest_merge_patch
from ruleop.kubernetes.merge import same
from ruleop.kubernetes.merge.server_changes import without_nulls
from ruleop.localcluster.objects.decoding import decode
from ruleop.localcluster.objects.fieldsets import (
    check_fields,
    contains,
    difference,
    intersection,
    paths,
    union,
    without,
)
from ruleop.localcluster.objects.patches import json_patch, merge_patch, strategic_merge_patch
from ruleop.localcluster.objects.server_side_apply import ApplyConflictError, apply, track_update
from ruleop.localcluster.objects.typed import compare, field_set
from tests.exploration import examples
from tests.localcluster.objects.kinds import SUBJECTS, TRACKING

JSON = Any
MANY = settings(
    max_examples=examples(60),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # the objects are large, and small ones are drawn first
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
subjects = st.sampled_from(SUBJECTS)


@st.composite
def several(draw: Any, count: int, *, kinds: Any = subjects) -> tuple[Any, list[JSON]]:
    """Objects of one kind, with the same name."""
    subject = draw(kinds)
    return subject.kind, [subject.named(draw(subject.whole), "x") for _ in range(count)]


@st.composite
def field_sets(draw: Any) -> list[JSON]:
    kind, found = draw(several(3))
    return [field_set(each, TRACKING[kind].shape) for each in found]


def without_empty(value: JSON) -> JSON:
    """The value without empty maps and lists, which the server drops after it has tracked them."""
    if isinstance(value, dict):
        members = {name: without_empty(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if member not in (None, {}, [])}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def members(fields: JSON) -> set[tuple[str, ...]]:
    return set(paths(fields))


@pytest.mark.slow
@MANY
@given(field_sets())
def test_operations_on_field_sets_are_those_on_sets_of_paths(three: list[JSON]) -> None:
    a, b, c = three
    assert members(union(a, b)) == members(a) | members(b)
    assert members(intersection(a, b)) == members(a) & members(b)
    assert members(difference(a, b)) == members(a) - members(b)
    assert union(a, union(b, c)) == union(union(a, b), c)
    assert union(difference(a, b), intersection(a, b)) == a
    assert union(a, b) == union(b, a)


@pytest.mark.slow
@MANY
@given(field_sets())
def test_fields_are_removed_from_a_set_with_their_children(three: list[JSON]) -> None:
    a, b, _ = three
    removed = members(b)
    expected = {path for path in members(a) if not any(path[:length] in removed for length in range(1, len(path) + 1))}
    assert members(without(a, b)) == expected


@pytest.mark.slow
@MANY
@given(field_sets())
def test_written_field_sets_contain_their_paths(three: list[JSON]) -> None:
    for fields in three:
        check_fields(fields)
        assert all(contains(fields, path) for path in paths(fields))


@MANY
@given(several(2))
def test_a_comparison_accounts_for_all_fields(drawn: Any) -> None:
    kind, (old, new) = drawn
    tracking = TRACKING[kind]
    changes = compare(old, new, tracking.shape)
    back = compare(new, old, tracking.shape)
    assert members(changes.added) == members(back.removed)
    assert members(changes.modified) == members(back.modified)
    assert not members(changes.added) & members(changes.removed)
    equal = compare(old, copy.deepcopy(old), tracking.shape)
    assert not members(union(union(equal.added, equal.removed), equal.modified))


@pytest.mark.slow
@MANY
@given(several(3), st.booleans())
def test_applying_again_changes_nothing(drawn: Any, force: bool) -> None:
    kind, configs = drawn
    tracking, (first, second, third) = TRACKING[kind], map(without_empty, configs)
    live = apply(None, first, tracking, manager="one", now=NOW)
    live = apply(live, second, tracking, manager="two", now=NOW, force=True)
    live = without_nulls(apply(live, third, tracking, manager="one", now=LATER, force=True))
    before = copy.deepcopy(live)
    assert apply(live, third, tracking, manager="one", now="2026-01-01T00:00:02Z", force=force) is live
    assert live == before


@MANY
@given(several(2))
def test_managers_of_different_fields_do_not_conflict(drawn: Any) -> None:
    kind, (first, second) = drawn
    tracking = TRACKING[kind]
    live = apply(None, first, tracking, manager="one", now=NOW)
    owned = live["metadata"].get("managedFields", [])
    try:
        apply(live, second, tracking, manager="two", now=NOW)
    except ApplyConflictError as error:
        ours = field_set(second, tracking.shape)
        for conflict in error.conflicts:
            assert contains(owned[0]["fieldsV1"], conflict.path)
            # An atomic value of untyped fields may become a map, of whose fields each is applied.
            assert any(each[: len(conflict.path)] == conflict.path for each in members(ours))
    else:
        shared = intersection(field_set(first, tracking.shape), field_set(second, tracking.shape))
        assert not intersection(shared, compare(first, second, tracking.shape).modified)


@MANY
@given(several(2))
def test_a_field_that_is_no_longer_applied_is_removed(drawn: Any) -> None:
    kind, (first, second) = drawn
    tracking = TRACKING[kind]
    live = apply(None, first, tracking, manager="one", now=NOW)
    live = apply(live, second, tracking, manager="one", now=NOW)
    gone = difference(field_set(first, tracking.shape), field_set(second, tracking.shape))
    left = field_set(without_nulls({**live, "metadata": {"name": "x"}}), tracking.shape)
    assert not intersection(left, {name: node for name, node in gone.items() if name != "f:metadata"})


@MANY
@given(several(2))
def test_an_updater_owns_the_fields_that_it_changes(drawn: Any) -> None:
    kind, (first, second) = drawn
    tracking = TRACKING[kind]
    live = track_update(None, first, tracking, manager="one", now=NOW)
    managed = live["metadata"].get("managedFields", [])
    new = track_update(
        live,
        {**second, "metadata": {**second["metadata"], "managedFields": managed}},
        tracking,
        manager="two",
        now=LATER,
    )
    entries = {entry["manager"]: entry["fieldsV1"] for entry in new["metadata"].get("managedFields", [])}
    changes = compare(first, second, tracking.shape)
    changed = members(union(changes.added, changes.modified))
    assert members(entries.get("two", {})) <= changed
    assert not members(entries.get("one", {})) & changed
    assert track_update(new, new, tracking, manager="three", now=LATER) == new


@MANY
@given(several(2))
def test_patches_turn_one_object_into_another(drawn: Any) -> None:
    _, (old, new) = drawn
    before = copy.deepcopy(old)
    patch = smallest_merge_patch(old, new)
    assert same(merge_patch(old, patch or {}), new)
    assert same(json_patch(old, jsonpatch.make_patch(old, new).patch), new)
    assert old == before


@MANY
@given(several(2, kinds=st.sampled_from(SUBJECTS[:-1])))
def test_a_strategic_merge_patch_keeps_fields_that_it_does_not_name(drawn: Any) -> None:
    kind, (old, new) = drawn
    tracking = TRACKING[kind]
    before = copy.deepcopy(old)
    assert strategic_merge_patch(old, {}, tracking.shape) == old
    once = strategic_merge_patch(old, new, tracking.shape)
    assert strategic_merge_patch(once, {}, tracking.shape) == once
    assert set(once) == set(old) | set(new)
    assert old == before


@MANY
@given(several(1, kinds=st.sampled_from(SUBJECTS[:-1])))
def test_an_object_that_fits_its_kind_is_decoded_unchanged(drawn: Any) -> None:
    kind, (obj,) = drawn
    tracking = TRACKING[kind]
    decoded = decode(obj, tracking.shape)
    assert decoded.unknown == ()
    assert decoded.obj == obj
