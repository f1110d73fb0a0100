"""What a new version of an object shares with the stored one, and that nothing else comes of it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.builtin.completion import complete
from ruleop.localcluster.objects.decoding import decode, with_parts_of
from tests.localcluster.objects.kinds import TRACKING

SHAPE = TRACKING["Deployment"].shape
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5, "", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def deployment(**container: Any) -> Any:
    containers = [{"name": "a", "image": "a:1", "ports": [{"containerPort": 80}], **container}, {"name": "b"}]
    pod = {"containers": containers, "volumes": [{"name": "v", "configMap": {"name": "c"}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {}, "spec": pod}},
    }


def copied(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


@given(OBJECTS, OBJECTS)
def test_an_object_with_parts_of_another_is_the_same_text(old: Any, new: Any) -> None:
    assert orjson.dumps(with_parts_of(old, new)) == orjson.dumps(new)


def test_parts_without_a_change_are_shared() -> None:
    old, new = deployment(), deployment(image="a:2")
    shared = with_parts_of(old, new)
    assert shared["metadata"] is old["metadata"]
    assert shared["spec"]["selector"] is old["spec"]["selector"]
    before, after = (each["spec"]["template"]["spec"] for each in (old, shared))
    assert after["volumes"] is before["volumes"]
    assert after["containers"][0]["ports"] is before["containers"][0]["ports"]
    assert after["containers"][1] is before["containers"][1]
    assert after["containers"][0]["image"] == "a:2"


def test_a_number_too_large_for_json_is_kept() -> None:
    assert with_parts_of({"a": {"b": 1}}, {"a": {"b": 2**70}}) == {"a": {"b": 2**70}}


@pytest.mark.parametrize(
    "changed",
    [
        {"image": "a:2"},
        {"ports": [{"containerPort": 81}]},
        {"ports": [{"containerPort": 81, "name": ""}, {"containerPort": 80}]},
        {"env": [{"name": "A", "value": None}], "foo": 1},
        {"image": None, "resources": {"limits": {"cpu": "1000m", "memory": None}}},
        {"imagePullPolicy": ""},
    ],
)
def test_a_changed_object_is_read_and_completed_as_without_the_stored_one(changed: Any) -> None:
    old = complete(decode(deployment(), SHAPE).obj, SHAPE)
    new = copied(old)
    new["spec"]["template"]["spec"]["containers"][0].update(changed)
    stored = orjson.dumps(old)
    shared = decode(with_parts_of(old, new), SHAPE, old)
    alone = decode(copied(new), SHAPE)
    assert shared == alone
    assert complete(shared.obj, SHAPE, old) == complete(alone.obj, SHAPE)
    assert orjson.dumps(old) == stored
