"""The three types of patches. The expected values are answers of a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.localcluster.objects.patches import (
    json_patch,
    merge_patch,
    strategic_merge_patch,
)
from ruleop.localcluster.status_errors import Rejected
from tests.localcluster.objects.kinds import TRACKING

JSON = Any
SHAPE = TRACKING["Deployment"].shape
GENERIC = "the server rejected our request due to an error in our request"


def pod(**spec: JSON) -> JSON:
    return {"spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3], "b": {"c": 1}}),
        ([{"op": "add", "path": "/a/0", "value": 3}], {"a": [3, 1, 2], "b": {"c": 1}}),
        ([{"op": "add", "path": "/a/-1", "value": 3}], {"a": [1, 2, 3], "b": {"c": 1}}),
        ([{"op": "add", "path": "/x"}], {"a": [1, 2], "b": {"c": 1}, "x": None}),
        ([{"op": "replace", "path": "/b/d~1e~0", "value": 2}], {"a": [1, 2], "b": {"c": 1, "d/e~": 2}}),
        ([{"op": "remove", "path": "/a/1"}, {"op": "remove", "path": "/b/c"}], {"a": [1], "b": {}}),
        ([{"op": "move", "from": "/b/c", "path": "/a/1"}], {"a": [1, 1, 2], "b": {}}),
        ([{"op": "copy", "from": "/b", "path": "/d"}], {"a": [1, 2], "b": {"c": 1}, "d": {"c": 1}}),
        ([{"op": "test", "path": "/b/missing", "value": None}], {"a": [1, 2], "b": {"c": 1}}),
        ([{"op": "replace", "path": "", "value": {"n": 1}}, {"op": "test", "path": "", "value": {"n": 1}}], {"n": 1}),
    ],
)
def test_json_patch_operations_have_their_results(operations: JSON, expected: JSON) -> None:
    before = {"a": [1, 2], "b": {"c": 1}}
    assert json_patch(before, operations) == expected
    assert before == {"a": [1, 2], "b": {"c": 1}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/b/c", "value": 2},
        {"op": "test", "path": "/b/c", "value": True},
        {"op": "remove", "path": "/x"},
        {"op": "remove", "path": "/a/2"},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/9", "value": 1},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "value": 1},
        {"op": "move", "from": "/x", "path": "/y"},
        {"op": "copy", "path": "/y"},
        {"op": "frob", "path": "/a"},
    ],
)
def test_the_error_of_a_failed_operation_does_not_name_it(operation: JSON) -> None:
    with pytest.raises(Rejected) as caught:
        json_patch({"a": [1, 2], "b": {"c": 1}}, [operation])
    assert (caught.value.code, caught.value.reason, caught.value.message) == (422, "Invalid", GENERIC)


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"op": "add"}, 400, "a JSON patch must be a list, not an object"),
        ([1], 400, "an operation of a JSON patch must be an object, not a number"),
        ([{"op": "add", "path": 1}], 400, "path of a JSON patch must be a string, not a number"),
    ],
)
def test_an_invalid_json_patch_is_refused(patch: JSON, code: int, message: str) -> None:
    with pytest.raises(Rejected) as caught:
        json_patch({}, patch)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_a_json_patch_whose_result_is_not_an_object_is_refused() -> None:
    with pytest.raises(Rejected):
        json_patch({}, [{"op": "replace", "path": "", "value": [1]}])


def test_a_merge_patch_removes_fields_with_null_and_prunes_new_values() -> None:
    before = {"a": {"b": 1, "c": 2}, "l": [1]}
    patch = {"a": {"b": None, "d": {"e": None, "f": [{"g": None}]}}, "l": {"x": None, "y": 1}, "n": None}
    assert merge_patch(before, patch) == {"a": {"c": 2, "d": {"f": [{}]}}, "l": {"y": 1}}
    with pytest.raises(Rejected, match="must be an object, not a list"):
        merge_patch({}, [])


def test_items_are_merged_by_the_key_of_patches() -> None:
    live = pod(containers=[{"name": "a", "image": "1"}, {"name": "b", "image": "1", "args": ["x"]}])
    patch = pod(containers=[{"name": "c", "image": "2"}, {"name": "b", "args": ["y"], "image": None}])
    merged = strategic_merge_patch(live, patch, SHAPE)
    assert merged == pod(
        containers=[{"name": "a", "image": "1"}, {"name": "c", "image": "2"}, {"name": "b", "args": ["y"]}]
    ) or merged == pod(
        containers=[{"name": "c", "image": "2"}, {"name": "a", "image": "1"}, {"name": "b", "args": ["y"]}]
    )


def test_an_empty_list_stays_empty() -> None:
    assert strategic_merge_patch(pod(containers=[]), pod(containers=[]), SHAPE) == pod(containers=[])


def test_a_strategic_merge_patch_can_set_the_order_of_items() -> None:
    live = pod(containers=[{"name": "a"}, {"name": "b"}, {"name": "c"}])
    patch = pod(
        **{"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "a", "image": "x"}]}
    )
    merged = strategic_merge_patch(live, patch, SHAPE)
    names = [each["name"] for each in merged["spec"]["template"]["spec"]["containers"]]
    assert names.index("c") < names.index("a")
    assert sorted(names) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("live", "patch", "expected"),
    [
        ({"a": 1}, {"$patch": "replace", "b": 2}, {"b": 2}),
        ({"a": 1}, {"$patch": "delete"}, {}),
        ({"a": 1, "b": 2}, {"$retainKeys": ["b", "c"], "c": 3}, {"b": 2, "c": 3}),
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["b", "c"]}},
            {"metadata": {"finalizers": ["a", "b", "c"]}},
        ),
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}},
        ),
        (
            pod(containers=[{"name": "a"}, {"name": "b"}]),
            pod(containers=[{"name": "a", "$patch": "delete"}]),
            pod(containers=[{"name": "b"}]),
        ),
        (
            pod(containers=[{"name": "a"}, {"name": "b"}]),
            pod(containers=[{"name": "c"}, {"$patch": "replace"}]),
            pod(containers=[{"name": "c"}]),
        ),
        (pod(tolerations=[{"key": "a"}]), pod(tolerations=[{"key": "b"}]), pod(tolerations=[{"key": "b"}])),
        (
            {},
            pod(containers=[{"name": "a", "$patch": "delete"}, {"name": "b", "env": None}]),
            pod(containers=[{"name": "b"}]),
        ),
        ({"x": 1}, {"x": {"a": {"$patch": "delete"}, "b": 1}}, {"x": {"b": 1}}),
    ],
)
def test_directives_of_strategic_merge_patches_are_applied(live: JSON, patch: JSON, expected: JSON) -> None:
    assert strategic_merge_patch(live, patch, SHAPE) == expected


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        (pod(containers=[{"image": "z"}]), 500, "an item does not contain declared merge key: name"),
        (pod(containers=[{"name": "a", "$patch": "merge"}]), 500, "merging lists cannot yet be specified in the patch"),
        (pod(containers=[{"name": "a", "$patch": "x"}]), 500, "unknown patch type: x"),
        (pod(containers=["a"]), 500, "list element types are not identical"),
        ({"spec": {"$patch": "bogus"}}, 500, "unknown patch type: bogus"),
        (
            pod(**{"$setElementOrder/containers": "x"}),
            500,
            "$setElementOrder/containers must be a list, not a string",
        ),
        (
            pod(
                **{"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}]},
                containers=[{"name": "b"}, {"name": "a"}],
            ),
            500,
            "The order in patch list does not match $setElementOrder/containers",
        ),
        (
            pod(**{"$setElementOrder/containers": [{"name": "a"}]}, containers=[{"name": "a"}, {"$patch": "replace"}]),
            500,
            "The order in patch list does not match $setElementOrder/containers",
        ),
        ({"$setElementOrder/foo": [1]}, 500, 'there is no field "foo" whose order could be set'),
        ({"spec": {"$retainKeys": ["a"], "b": 1}}, 400, "invalid patch format of retainKeys"),
        ([], 400, "a strategic merge patch must be an object, not a list"),
    ],
)
def test_an_invalid_strategic_merge_patch_is_refused(patch: JSON, code: int, message: str) -> None:
    with pytest.raises(Rejected) as caught:
        strategic_merge_patch(pod(containers=[{"name": "a"}]), patch, SHAPE)
    assert (caught.value.code, caught.value.message) == (code, message)
