"""Pruning and defaulting of custom resources, as by the API server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.crd import declares, default, drop_unknown, is_kept, prune, schema_at, unknown_fields
from ruleop.kubernetes.schema.validation import validate

OPEN = {"x-kubernetes-preserve-unknown-fields": True}
STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def tree(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def listed(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def pruned(spec: Any, schema: dict[str, Any]) -> Any:
    return prune({"spec": spec}, tree(spec=schema))["spec"]


def defaulted(spec: Any, schema: dict[str, Any]) -> Any:
    return default({"spec": spec}, tree(spec=schema))["spec"]


def test_unknown_fields_are_pruned_at_every_depth():
    schema = tree(a=STRING, b=tree(c=STRING), d=listed(tree(e=STRING)))
    spec = {"a": "1", "x": 1, "b": {"c": "2", "x": {}}, "d": [{"e": "3", "x": []}, {}]}
    assert pruned(spec, schema) == {"a": "1", "b": {"c": "2"}, "d": [{"e": "3"}, {}]}


def test_api_version_kind_and_metadata_are_kept_whatever_the_schema_declares():
    obj = {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"x": 1}}
    assert prune(obj, {"type": "object"}) == {key: obj[key] for key in ("apiVersion", "kind", "metadata")}
    assert prune(obj, {}) == {key: obj[key] for key in ("apiVersion", "kind", "metadata")}


def test_api_version_kind_and_metadata_below_the_root_are_ordinary_fields():
    assert pruned({"kind": "A", "metadata": {}}, tree(a=STRING)) == {}


def test_an_object_without_declared_fields_is_pruned_to_nothing():
    assert pruned({"a": 1}, {"type": "object"}) == {}
    assert pruned([{"a": 1}, 2], listed({"type": "object"})) == [{}, 2]


def test_an_open_map_keeps_its_keys_and_prunes_its_values():
    assert pruned({"a": {"b": "1", "c": 2}}, {"type": "object", "additionalProperties": tree(b=STRING)}) == {
        "a": {"b": "1"}
    }


def test_additional_properties_true_keeps_scalars_and_empties_objects():
    schema = {"type": "object", "additionalProperties": True}
    assert pruned({"a": 1, "b": {"c": 2}, "d": [1, {"e": 3}]}, schema) == {"a": 1, "b": {}, "d": [1, {}]}


def test_preserved_unknown_fields_keep_everything_inside():
    spec = {"x": {"y": [{"z": 1}]}, "n": None}
    assert pruned(spec, {"type": "object", **OPEN}) == spec


def test_declared_fields_below_preserved_unknown_fields_are_pruned():
    schema = {**tree(known=tree(a=STRING), open=tree(a=STRING) | OPEN), **OPEN}
    spec = {"x": {"y": 1}, "known": {"a": "1", "b": 2}, "open": {"a": "1", "b": 2}}
    assert pruned(spec, schema) == {"x": {"y": 1}, "known": {"a": "1"}, "open": {"a": "1", "b": 2}}


def test_preserved_unknown_fields_apply_through_lists_and_open_maps():
    assert pruned([{"x": 1, "known": {"y": 2}}], {**listed(tree(known=tree())), **OPEN}) == [{"x": 1, "known": {}}]
    assert pruned({"a": {"x": 1}}, {"type": "object", "additionalProperties": tree(b=STRING), **OPEN}) == {"a": {}}
    assert pruned([[{"x": 1}]], {"type": "array", **OPEN}) == [[{"x": 1}]]


def test_an_embedded_resource_keeps_type_and_metadata():
    schema = {**tree(spec=tree(a=STRING)), "x-kubernetes-embedded-resource": True}
    spec = {"apiVersion": "v1", "kind": "P", "metadata": {"x": 1}, "spec": {"a": "1", "b": 2}, "c": 3}
    assert pruned(spec, schema) == {"apiVersion": "v1", "kind": "P", "metadata": {"x": 1}, "spec": {"a": "1"}}
    assert pruned(spec, {**tree(metadata=tree()), "x-kubernetes-embedded-resource": True, **OPEN}) == spec
    closed = {**tree(metadata=tree(), spec=tree()), "x-kubernetes-embedded-resource": True, **OPEN}
    assert pruned(spec, closed) == {**spec, "spec": {}}
    assert pruned(spec, {**tree(metadata=tree()), **OPEN}) == {**spec, "metadata": {}}


def test_a_value_of_the_wrong_type_is_left_to_validation():
    assert pruned("text", tree(a=STRING)) == "text"
    assert pruned([1], tree(a=STRING)) == [1]
    assert pruned({"a": 1}, listed(tree(a=STRING))) == {}


def test_only_the_outermost_unknown_fields_are_reported():
    schema = tree(spec=tree(a=listed(tree(b=STRING))))
    obj = {"kind": "A", "spec": {"a": [{"b": "1"}, {"c": {"d": 1}}], "x": {"y": 1}}, "extra": []}
    assert unknown_fields(obj, schema) == (("spec", "a", 1, "c"), ("spec", "x"), ("extra",))
    assert unknown_fields(prune(obj, schema), schema) == ()


def test_defaults_fill_only_missing_fields():
    schema = tree(size={**INTEGER, "default": 3}, name={**STRING, "default": "x"})
    assert defaulted({"name": "y"}, schema) == {"size": 3, "name": "y"}
    assert defaulted({"size": 0, "name": ""}, schema) == {"size": 0, "name": ""}


def test_a_default_appears_only_where_its_parent_exists():
    schema = tree(a=tree(b={**INTEGER, "default": 1}))
    assert defaulted({}, schema) == {}
    assert defaulted({"a": {}}, schema) == {"a": {"b": 1}}


def test_a_default_of_an_empty_object_is_filled_with_nested_defaults():
    schema = tree(a={**tree(b={**INTEGER, "default": 1}), "default": {}})
    assert defaulted({}, schema) == {"a": {"b": 1}}


def test_defaults_apply_to_items_of_lists_and_values_of_open_maps():
    item = tree(protocol={**STRING, "default": "TCP"})
    assert defaulted([{}, {"protocol": "UDP"}], listed(item)) == [{"protocol": "TCP"}, {"protocol": "UDP"}]
    assert defaulted({"a": {}}, {"type": "object", "additionalProperties": item}) == {"a": {"protocol": "TCP"}}


def test_a_null_that_is_not_nullable_is_replaced_by_the_default():
    schema = tree(gone=STRING, filled={**STRING, "default": "x"}, kept={**STRING, "nullable": True, "default": "y"})
    assert defaulted({"gone": None, "filled": None, "kept": None}, schema) == {"filled": "x", "kept": None}


def test_nulls_in_open_maps_are_removed_and_nulls_in_lists_stay():
    plain, filled = (
        {"type": "object", "additionalProperties": STRING},
        {"type": "object", "additionalProperties": {**STRING, "default": "x"}},
    )
    assert defaulted({"a": None, "b": "1"}, plain) == {"b": "1"}
    assert defaulted({"a": None}, filled) == {"a": "x"}
    assert defaulted([None, "a"], listed(STRING)) == [None, "a"]
    assert defaulted([None, "a"], listed({**STRING, "default": "x"})) == ["x", "a"]
    assert defaulted([{"a": None}], listed(tree(a=STRING))) == [{}]


def test_nulls_of_unknown_fields_are_kept():
    assert defaulted({"x": None}, {"type": "object", **OPEN}) == {"x": None}
    assert defaulted({"x": {"y": None}}, {"type": "object", "additionalProperties": True}) == {"x": {"y": None}}
    assert defaulted([{"x": None}], {"type": "array", **OPEN}) == [{"x": None}]


def test_defaults_are_pruned():
    assert defaulted({}, tree(a={**tree(b=STRING), "default": {"b": "1", "c": 2}})) == {"a": {"b": "1"}}


def test_a_default_of_false_or_zero_applies_and_a_default_of_null_does_not():
    assert defaulted(
        {}, tree(a={"type": "boolean", "default": False}, b={**INTEGER, "default": 0}, c={**STRING, "default": None})
    ) == {
        "a": False,
        "b": 0,
    }


def test_fields_that_the_server_would_drop_are_removed_from_a_status():
    schema = tree(phase=STRING, conditions=listed(tree(type=STRING)), note={**STRING, "nullable": True})
    status = {"phase": "Up", "x": 1, "conditions": [{"type": "Ready", "y": 2}], "note": None}
    assert drop_unknown(status, schema) == {"phase": "Up", "conditions": [{"type": "Ready"}], "note": None}
    assert drop_unknown({"phase": None, "kind": "no metadata here"}, schema) == {}


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        (("status", "phase"), True),
        (("status", "conditions"), True),
        (("status", "conditions", "reason"), True),
        (("status", "conditions", "message"), False),
        (("status", "observedGeneration"), False),
        (("status", "empty"), True),
        (("status", "empty", "a"), False),
        (("status", "map", "any"), True),
        (("status", "map", "any", "deeper"), False),
        (("status", "loose", "any"), True),
        (("status", "loose", "any", "deeper"), False),
        (("status", "open", "any", "deeper"), True),
        (("status", "open", "closed"), True),
        (("status", "open", "closed", "any"), False),
        (("status", "openList", "any", "deeper"), True),
        (("status", "pod", "metadata", "labels"), True),
        (("status", "pod", "spec", "x"), False),
        (("status", "phase", "x"), False),
        (("metadata", "labels", "a"), True),
        (("elsewhere",), False),
        ((), True),
    ],
)
def test_a_path_is_kept_if_the_server_would_keep_a_value_there(path: tuple[str, ...], kept: bool):
    status = tree(
        phase=STRING,
        conditions=listed(tree(reason=STRING)),
        empty={"type": "object"},
        map={"type": "object", "additionalProperties": STRING},
        loose={"type": "object", "additionalProperties": True},
        open={**tree(closed={"type": "object"}), **OPEN},
        openList={**listed({"type": "object"}), **OPEN},
        pod={**tree(spec={"type": "object"}), "x-kubernetes-embedded-resource": True},
    )
    schema = tree(status=status)
    assert declares(schema, path) is kept
    # The promise behind it: what there is kept for survives.
    value: Any = "v"
    for name in reversed(path[1:]):
        value = {name: value}
    if path and path[1:2] not in (("conditions",), ("openList",)):
        assert (prune({path[0]: value}, schema) == {path[0]: value}) is kept


def test_the_schema_at_a_path_is_found():
    schema = tree(
        a=listed(tree(b=STRING)),
        m={"type": "object", "additionalProperties": INTEGER},
        t={"additionalProperties": True},
    )
    assert schema_at(schema, ()) is schema
    assert schema_at(schema, ("a", 0, "b")) == STRING
    assert schema_at(schema, ("a", "b")) == STRING
    assert schema_at(schema, ("m", "x")) == INTEGER
    assert schema_at(schema, ("t", "x")) is None
    assert schema_at(schema, ("nowhere", 0, "b")) is None


# A small algebra: schemas of a few levels, and values that half fit them.

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "x"]))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> dict[str, Any]:
    """Structural schemas whose defaults are valid by them, as the server demands of a CRD."""
    kinds = ["string", "integer", "boolean", "open"] + (["object", "map", "array"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    schema: dict[str, Any]
    if kind == "open":
        return {"type": "object", **OPEN}
    if kind == "object":
        schema = tree(**draw(st.dictionaries(NAMES, schemas(depth - 1), max_size=3)))
        if draw(st.booleans()):
            schema |= OPEN
        if draw(st.booleans()):
            schema["default"] = {}
    elif kind == "map":
        schema = {"type": "object", "additionalProperties": draw(schemas(depth - 1))}
    elif kind == "array":
        schema = listed(draw(schemas(depth - 1)))
    else:
        schema = {"type": kind}
        if draw(st.booleans()):
            schema["default"] = {"string": "d", "integer": 0, "boolean": False}[kind]
    if draw(st.booleans()):
        schema["nullable"] = True
    return schema


@st.composite
def fitting(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """A value that its schema allows, with unknown fields and needless nulls strewn in."""
    if schema.get("nullable") and draw(st.booleans()):
        return None
    kind = schema["type"]
    if kind == "array":
        return [draw(fitting(schema["items"])) for _ in range(draw(st.integers(0, 2)))]
    if kind == "object":
        known = schema.get("properties", {})
        value = {
            name: draw(fitting(sub)) if draw(st.booleans()) else None
            for name, sub in known.items()
            if draw(st.booleans())
        }
        others = schema.get("additionalProperties")
        if others:
            return {name: draw(fitting(others)) for name in draw(st.sets(NAMES))}
        return value | draw(st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2))
    return {"string": "s", "integer": 7, "boolean": True}[kind]


roots = st.dictionaries(NAMES, schemas(), max_size=3).map(lambda properties: tree(**properties))


@given(schema=roots, obj=st.dictionaries(NAMES, VALUES, max_size=3))
def test_pruning_and_defaulting_are_idempotent_and_modify_no_argument(schema: dict[str, Any], obj: dict[str, Any]):
    before = copy.deepcopy((schema, obj))
    once = prune(obj, schema)
    assert prune(once, schema) == once
    filled = default(once, schema)
    assert default(filled, schema) == filled
    assert prune(filled, schema) == filled, "defaults need no pruning"
    assert drop_unknown(filled, schema) == filled
    assert unknown_fields(once, schema) == ()
    assert (schema, obj) == before


@given(data=st.data(), schema=roots)
def test_a_fitting_object_is_valid_after_pruning_and_defaulting(data: st.DataObject, schema: dict[str, Any]):
    obj = data.draw(fitting(schema))
    assert validate(default(prune(obj, schema), schema), schema) == []


@given(schema=roots, obj=st.dictionaries(NAMES, VALUES, max_size=3))
def test_pruning_only_removes_unknown_fields(schema: dict[str, Any], obj: dict[str, Any]):
    lost = unknown_fields(obj, schema)
    assert (prune(obj, schema) == obj) is (not lost)
    for path in lost:
        holder: Any = obj
        for part in path[:-1]:
            holder = holder[part]
        assert path[-1] in holder


@given(data=st.data(), schema=roots, obj=st.dictionaries(NAMES, VALUES, max_size=3))
def test_the_quick_check_for_kept_fields_agrees_with_the_thorough_one(
    data: st.DataObject, schema: dict[str, Any], obj: dict[str, Any]
):
    for value in (obj, data.draw(fitting(schema)), default(drop_unknown(obj, schema), schema)):
        if is_kept(value, schema):
            assert drop_unknown(value, schema) == value
            assert default(value, schema) == value


def test_the_quick_check_accepts_a_usual_status():
    schema = tree(
        replicas={"type": "integer"}, conditions=listed(tree(type={"type": "string"}, reason={"type": "string"}))
    )
    assert is_kept({"replicas": 2, "conditions": [{"type": "Ready", "reason": "Ready"}]}, schema)
    assert not is_kept({"replicas": None}, schema)
    assert not is_kept({"replicas": 2, "conditions": [{"type": "Ready", "message": ""}]}, schema)
    assert not is_kept({}, tree(replicas={"type": "integer", "default": 0}))
