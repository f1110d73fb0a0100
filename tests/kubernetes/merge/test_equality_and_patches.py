"""Single values: equality, patches, and the normal form of whole kinds."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import merge_patch, normalise_desired, normalise_ignored, parse_path, same
from ruleop.kubernetes.merge.equality import canonical, fingerprint

DIFFERENT = [
    None,
    False,
    True,
    0,
    1,
    1.0,
    0.0,
    "",
    "1",
    "true",
    [],
    [0],
    [False],
    [[1]],
    [[True]],
    {},
    {"a": 1},
    {"a": 1.0},
    {"a": True},
    {"a": [1]},
]


@pytest.mark.parametrize("a", range(len(DIFFERENT)))
def test_values_of_different_kinds_are_never_the_same(a):
    for b, other in enumerate(DIFFERENT):
        assert same(DIFFERENT[a], other) is (a == b)
        assert (canonical(DIFFERENT[a]) == canonical(other)) is (a == b)
        assert (fingerprint(DIFFERENT[a]) == fingerprint(other)) is (a == b)


def test_the_order_of_fields_is_not_a_difference():
    assert same({"a": 1, "b": [{"c": 1, "d": 2}]}, {"b": [{"d": 2, "c": 1}], "a": 1})
    assert not same([1, 2], [2, 1])
    assert canonical({"b": 1, "a": {"d": 1, "c": 2}}) == b'{"a":{"c":2,"d":1},"b":1}'


def test_integers_beyond_64_bits_and_surrogates_are_compared():
    assert canonical({"b": 2**70, "a": 1}) == b'{"a":1,"b":1180591620717411303424}'
    assert fingerprint(2**70) != fingerprint(2**70 + 1)
    assert fingerprint("\ud800") != fingerprint("\ud801")
    assert not same(2**70, 2**70 + 1)


@pytest.mark.parametrize(
    ("live", "merged", "patch"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": 1}, {"a": 1.0}, {"a": 1.0}),
        ({"a": 1}, {}, {"a": None}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, {"a": {"b": 2}}),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}, None),
        ({"a": [1, 2]}, {"a": [1, 2]}, None),
        ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": None}, {"a": None}, None),
        ({"a": None}, {}, {"a": None}),
        ({"a": None}, {"a": 1}, {"a": 1}),
    ],
)
def test_a_merge_patch_contains_only_the_difference(live, merged, patch):
    assert merge_patch(live, merged) == patch
    assert same(merge_patch(live, merged), patch)


SECRET, WIDGET = Kind("", "v1", "Secret"), Kind("example.com", "v1", "Widget")


def test_string_data_of_a_secret_is_encoded_over_its_data():
    wanted = {"kind": "Secret", "data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "né", "c": ""}}
    assert normalise_desired(wanted, SECRET) == {"kind": "Secret", "data": {"a": "bsOp", "b": "Yg==", "c": ""}}
    assert set(wanted) == {"kind", "data", "stringData"}
    assert wanted["data"] == {"a": "b2xk", "b": "Yg=="}
    assert normalise_desired({"stringData": {"a": "x"}}, SECRET) == {"data": {"a": "eA=="}}
    assert normalise_desired({"stringData": {}}, SECRET) == {}
    encoded = {"data": {"a": "eA=="}}
    assert normalise_desired(encoded, SECRET) is encoded


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("stringData.a", ["data.a"]),
        ("stringData['a.b'].c", ["data['a.b'].c"]),
        ("stringData", ["data.a", "data['a.b']"]),
        ("data", ["data"]),
        ("metadata.labels.stringData", ["metadata.labels.stringData"]),
    ],
)
def test_an_ignored_path_of_string_data_becomes_one_of_data(path, places):
    wanted = {"stringData": {"a": "x", "a.b": "x"}, "data": {"c": ""}}
    assert normalise_ignored(parse_path(path), wanted, SECRET) == tuple(map(parse_path, places))
    assert normalise_ignored(parse_path(path), wanted, WIDGET) == (parse_path(path),)
    assert normalise_ignored(parse_path("stringData"), {"stringData": "x"}, SECRET) == ()


@pytest.mark.parametrize(
    "wrong", [{"stringData": {"a": 5}}, {"stringData": "x"}, {"stringData": {"a": "x"}, "data": []}]
)
def test_an_invalid_secret_is_left_to_the_server_to_reject(wrong):
    assert normalise_desired(wrong, SECRET) is wrong


@pytest.mark.parametrize("kind", [Kind("", "v1", "ConfigMap"), Kind("example.com", "v1", "Secret")])
def test_string_data_of_other_kinds_is_not_encoded(kind):
    wanted = {"stringData": {"a": "x"}}
    assert normalise_desired(wanted, kind) == wanted


def test_the_rules_of_an_aggregated_cluster_role_are_left_to_the_server():
    kind = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    aggregated = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    assert normalise_desired({**aggregated, "rules": rules}, kind) == aggregated
    assert normalise_desired({**aggregated, "rules": []}, kind) == aggregated
    assert normalise_desired({"aggregationRule": None, "rules": rules}, kind) == {"rules": rules}
    for plain, other in (({"rules": rules}, kind), ({**aggregated, "rules": rules}, kind._replace(kind="Role"))):
        assert normalise_desired(plain, other) is plain


def test_nulls_are_dropped_at_any_depth_without_needless_copies():
    kind = Kind("", "v1", "ConfigMap")
    wanted = {"a": None, "b": {"c": None}, "l": [None, {"d": None, "e": 1}, [{"f": None}]], "t": "null"}
    assert normalise_desired(wanted, kind) == {"b": {}, "l": [None, {"e": 1}, [{}]], "t": "null"}
    assert "a" in wanted
    assert normalise_desired({"t": "null"}, kind) == {"t": "null"}
    plain = {"a": {"b": [1]}}
    assert normalise_desired(plain, kind) is plain


@pytest.mark.parametrize(
    ("number", "stored"),
    [
        (2.0, 2),
        (-0.0, 0),
        (0.5, 0.5),
        (1e3, 1000),
        (-(2.0**63), -(2**63)),
        (2.0**63, 2.0**63),
        (1e21, 1e21),
        (True, True),
        ("2.0", "2.0"),
    ],
)
def test_whole_floats_in_a_custom_resource_become_integers(number, stored):
    """Go writes the float 2 as `2`, and every client reads that as an integer."""
    wanted = {"spec": {"n": number, "l": [number, {"n": number}]}}
    assert same(normalise_desired(wanted, WIDGET), {"spec": {"n": stored, "l": [stored, {"n": stored}]}})
    assert same(wanted["spec"]["n"], number)


def test_floats_in_builtin_kinds_are_left_to_the_server():
    """`replicas: 2.0` is an error that the server reports."""
    wanted = {"spec": {"replicas": 2.0}}
    assert normalise_desired(wanted, Kind("apps", "v1", "Deployment")) is wanted
    assert normalise_desired(wanted, Kind("apps", "v1beta1", "Deployment")) is wanted
