"""Expected objects are compared as parts, and lists are matched by the keys of the API."""

from __future__ import annotations

import pytest

from ruleop.authoring.ruletests.results import Mismatch, mismatches
from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape
from ruleop.language.templates import read_yaml
from ruleop.planning.changes.differences import NOTHING

SERVICE = builtin_shape(Kind("", "v1", "Service"))
DEPLOYMENT = builtin_shape(Kind("apps", "v1", "Deployment"))
SET = Shape(type="list", list_type="set")


def compare(expected: str, actual: str, shape: Shape | None = UNKNOWN, *, exact: bool = False) -> list[Mismatch]:
    [wanted], _ = read_yaml(expected, "a.test.yaml")
    [found], _ = read_yaml(actual, "actual")
    assert shape is not None
    return list(mismatches(wanted, found.data(), shape, exact=exact))


def paths(found: list[Mismatch]) -> list[str]:
    return [".".join(map(str, each.path)) for each in found]


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("{a: 1}", "{a: 1, b: 2}"),
        ("{a: {b: x}}", "{a: {b: x, c: y}}"),
        ("{a: {}}", "{a: {}}"),
        ("{a: []}", "{a: []}"),
        ("{a: null}", "{b: 1}"),
        ("{a: {b: null}}", "{c: 1}"),
        ("[{a: 1}, {b: 2}]", "[{a: 1, c: 3}, {b: 2}]"),
    ],
)
def test_an_object_matches_if_it_contains_the_expected_fields(expected: str, actual: str) -> None:
    assert compare(expected, actual) == []


@pytest.mark.parametrize(
    ("expected", "actual", "path"),
    [
        ("{a: 1}", "{a: 2}", "a"),
        ("{a: 1}", '{a: "1"}', "a"),
        ("{a: true}", "{a: 1}", "a"),
        ("{a: 1}", "{b: 1}", "a"),
        ("{a: {}}", "{a: {b: 1}}", "a"),
        ("{a: []}", "{a: [1]}", "a"),
        ("{a: null}", "{a: 1}", "a"),
        ("{a: {b: 1}}", "{a: [1]}", "a"),
        ("[1, 2]", "[1]", ""),
        ("[1, 2]", "[2, 1]", "[0] [1]"),
        ("[{a: 1}]", "[{a: 2}]", "[0].a"),
    ],
)
def test_a_difference_has_its_path(expected: str, actual: str, path: str) -> None:
    assert " ".join(paths(compare(expected, actual))) == path


def test_items_are_matched_by_the_keys_of_the_api() -> None:
    actual = "{spec: {ports: [{port: 53, name: tcp, protocol: TCP}, {port: 53, name: udp, protocol: UDP}]}}"
    assert compare("{spec: {ports: [{port: 53, protocol: UDP, name: udp}]}}", actual, SERVICE) == []
    assert compare("{spec: {ports: [{port: 53, name: tcp}]}}", actual, SERVICE) == []  # protocol is TCP by default
    [wrong] = compare("{spec: {ports: [{port: 53, name: udp}]}}", actual, SERVICE)
    assert (wrong.expected, wrong.actual) == ("udp", "tcp")
    assert paths([wrong]) == ["spec.ports.[port=53].name"]


def test_an_item_that_is_missing_is_one_difference() -> None:
    actual = "{spec: {template: {spec: {containers: [{name: web, image: a}]}}}}"
    [missing] = compare("{spec: {template: {spec: {containers: [{name: proxy}]}}}}", actual, DEPLOYMENT)
    assert (missing.expected, missing.actual) == ({"name": "proxy"}, NOTHING)


def test_an_item_without_its_key_may_be_any_item() -> None:
    actual = "{spec: {template: {spec: {containers: [{name: web, image: a}, {name: proxy, image: b}]}}}}"
    assert compare("{spec: {template: {spec: {containers: [{image: b}]}}}}", actual, DEPLOYMENT) == []
    [missing] = compare("{spec: {template: {spec: {containers: [{image: c}]}}}}", actual, DEPLOYMENT)
    assert "identified by name" in missing.note


def test_members_of_a_set_have_no_order() -> None:
    assert compare("[b, a]", "[a, b, c]", SET) == []
    assert paths(compare("[d]", "[a, b, c]", SET)) == ["[-1]"]
    assert paths(compare("[b, a]", "[a, b, c]", SET, exact=True)) == ["[2]"]


def test_an_exact_match_allows_no_other_fields() -> None:
    assert paths(compare("{a: {b: 1}}", "{a: {b: 1, c: 2}, d: 3}", exact=True)) == ["a.c", "d"]
    ports = "{spec: {ports: [{port: 80}]}}"
    assert paths(compare(ports, "{spec: {ports: [{port: 80}, {port: 81}]}}", SERVICE, exact=True)) == [
        "spec.ports.[port=81]"
    ]


def test_a_misspelled_field_has_a_suggestion() -> None:
    [missing] = compare("{spec: {replica: 1}}", "{spec: {replicas: 1}}")
    assert missing.note == "there is no replica; did you mean replicas?"
    assert (missing.site.line, missing.site.column) == (1, 9)
