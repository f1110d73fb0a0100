"""Selectors of which a custom resource gives values, mappings, or the whole: it never selects more than the constant
part does, and an invalid selector selects nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.errors import RenderError
from ruleop.language.rules import Selector
from ruleop.language.templates import MapView
from ruleop.planning import ServerSideApply
from ruleop.planning.model.targets import MAX_TERMS, MAX_VALUES, compile_selector, terms_of
from tests.planning.harness import Harness, config, key, rule

VALUE = "{team: '{{ spec.team }}'}"
WHOLE = "'{{ spec.selector }}'"
LABELS = "{matchLabels: '{{ spec.labels }}', matchExpressions: [{key: tier, operator: In, values: [web]}]}"
VALUES = "{matchExpressions: [{key: team, operator: In, values: '{{ spec.teams }}'}]}"
NOT_IN = "{matchExpressions: [{key: team, operator: NotIn, values: '{{ spec.teams }}'}, {key: tier, operator: Exists}]}"


def selector(written: str) -> Selector:
    observe = rule(f"observe: {{seen: {{version: v1, kind: ConfigMap, selector: {written}}}}}").observe["seen"]
    assert observe.selector is not None
    return observe.selector


def matches(written: str, spec: Any, labels: dict[str, str]) -> bool:
    return compile_selector(selector(written), {"spec": MapView(spec, "spec")})(labels)


@pytest.mark.parametrize(
    ("written", "spec", "labels", "expected"),
    [
        (VALUE, {"team": "red"}, {"team": "red"}, True),
        (VALUE, {"team": "red"}, {"team": "blue"}, False),
        (VALUE, {"team": ""}, {"team": ""}, True),
        (VALUE, {"team": ""}, {"team": "red"}, False),
        (VALUE, {"team": ""}, {}, False),
        (WHOLE, {"selector": {"team": "red"}}, {"team": "red", "a": "b"}, True),
        (WHOLE, {"selector": {"team": "red"}}, {}, False),
        (WHOLE, {"selector": {"matchLabels": {"team": "red"}}}, {"team": "red"}, True),
        (
            WHOLE,
            {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]}},
            {"a": "b", "c": "d"},
            False,
        ),
        (
            WHOLE,
            {"selector": {"matchExpressions": [{"key": "c", "operator": "Exists", "values": []}]}},
            {"c": ""},
            True,
        ),
        (LABELS, {"labels": {"team": "red"}}, {"team": "red", "tier": "web"}, True),
        (LABELS, {"labels": {"team": "red"}}, {"team": "red", "tier": "db"}, False),
        (LABELS, {"labels": {"tier": "db"}}, {"tier": "db"}, False),
        (LABELS, {"labels": {}}, {"tier": "web"}, True),
        (LABELS, {"labels": {}}, {"tier": "db"}, False),
        (VALUES, {"teams": ["red", "blue"]}, {"team": "blue"}, True),
        (VALUES, {"teams": ["red", "blue"]}, {"team": "green"}, False),
        (VALUES, {"teams": ["red", "blue"]}, {}, False),
        (NOT_IN, {"teams": ["red"]}, {"team": "blue", "tier": "x"}, True),
        (NOT_IN, {"teams": ["red"]}, {"tier": "x"}, True),
        (NOT_IN, {"teams": ["red"]}, {"team": "blue"}, False),
    ],
)
def test_a_custom_resource_gives_a_part_of_a_selector(
    written: str, spec: Any, labels: dict[str, str], expected: bool
) -> None:
    assert matches(written, spec, labels) is expected


EMPTY = "the selector is empty, and would match all objects of the kind"
FORM = "a selector is a mapping of labels, or has matchLabels and matchExpressions"
BAD = "in a selector, {!r}, is not valid: use at most 63 letters"


@pytest.mark.parametrize(
    ("written", "spec", "message"),
    [
        (VALUE, {"team": "red,tier"}, "the value of the label team " + BAD.format("red,tier")),
        (VALUE, {"team": "red) , team in (blue"}, BAD.format("red) , team in (blue")),
        (VALUE, {"team": "!a"}, BAD.format("!a")),
        (VALUE, {"team": "a\n"}, BAD.format("a\n")),
        (VALUE, {"team": "x" * 64}, "is not valid"),
        (WHOLE, {"selector": {}}, EMPTY),
        (WHOLE, {"selector": {"matchLabels": {}, "matchExpressions": []}}, EMPTY),
        (WHOLE, {"selector": {"matchLabels": None}}, EMPTY),
        (WHOLE, {"selector": None}, FORM),
        (WHOLE, {"selector": "team=red"}, FORM),
        (WHOLE, {"selector": ["team"]}, FORM),
        (WHOLE, {"selector": {"matchLabels": {"a": "b"}, "c": "d"}}, FORM),
        (WHOLE, {"selector": {"matchLabels": "a"}}, FORM),
        (WHOLE, {"selector": {"matchExpressions": {"a": "b"}}}, FORM),
        (WHOLE, {"selector": {"a,b": "c"}}, "the key of a label " + BAD.format("a,b")),
        (WHOLE, {"selector": {"": "c"}}, BAD.format("")),
        (WHOLE, {"selector": {"a": 1}}, "the value of the label a must be text"),
        (WHOLE, {"selector": {"matchExpressions": ["a"]}}, "a requirement of a selector has key, operator and values"),
        (WHOLE, {"selector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}, "the operator"),
        (WHOLE, {"selector": {"matchExpressions": [{"key": "a", "operator": ["In"]}]}}, "the operator"),
        (
            WHOLE,
            {"selector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": []}]}},
            "a requirement with the operator NotIn needs a list of values",
        ),
        (
            WHOLE,
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
            "must not have values",
        ),
        (WHOLE, {"selector": {f"l{n}": "x" for n in range(MAX_TERMS + 1)}}, f"more than {MAX_TERMS} labels"),
        (LABELS, {"labels": "tier=web"}, FORM),
        (VALUES, {"teams": []}, "a requirement with the operator In needs a list of values"),
        (VALUES, {"teams": "red"}, "a requirement with the operator In needs a list of values"),
        (VALUES, {"teams": ["a,b"]}, "the value of the label team " + BAD.format("a,b")),
        (VALUES, {"teams": [f"v{n}" for n in range(MAX_VALUES + 1)]}, f"have more than {MAX_VALUES} values"),
        (NOT_IN, {"teams": []}, "a requirement with the operator NotIn needs a list of values"),
        (NOT_IN, {"teams": ["a)"]}, "is not valid"),
        (VALUES, {}, "spec.teams is not set"),
    ],
)
def test_an_invalid_selector_is_an_error_with_its_place(written: str, spec: Any, message: str) -> None:
    with pytest.raises(RenderError) as caught:
        matches(written, spec, {})
    assert message in caught.value.message
    assert str(caught.value.site).startswith("watches.yaml:4:")


def test_an_error_quotes_no_value_where_it_may_come_from_a_secret() -> None:
    for written, spec in ((VALUE, {"team": "s3cret!"}), (WHOLE, {"selector": {"s3cret!": "a"}})):
        with pytest.raises(RenderError) as caught:
            matches(written, spec, {})
        assert "s3cret!" in caught.value.message
        assert "s3cret!" not in caught.value.redacted


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "web", "", "x,y", "tier", "In", "NotIn"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["matchLabels", "matchExpressions", "key", "operator", "values", "tier", "team"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
SOME_LABELS = st.dictionaries(st.sampled_from(["tier", "team"]), st.sampled_from(["a", "web", ""]), max_size=2)
LABELS_SELECTOR, WHOLE_SELECTOR = selector(LABELS), selector(WHOLE)


@given(value=JSON, labels=SOME_LABELS)
def test_no_value_selects_what_the_constant_part_does_not(value: Any, labels: dict[str, str]) -> None:
    try:
        found = compile_selector(LABELS_SELECTOR, {"spec": MapView({"labels": value}, "spec")})(labels)
    except RenderError:
        return
    assert not found or labels.get("tier") == "web"


@given(value=JSON, labels=SOME_LABELS)
def test_a_whole_selector_has_at_least_one_term(value: Any, labels: dict[str, str]) -> None:
    try:
        terms = terms_of(WHOLE_SELECTOR, {"spec": MapView({"selector": value}, "spec")})
    except RenderError:
        return
    assert terms.labels or terms.requirements
    assert terms.match(labels) in (True, False)


# -- in a pass ---------------------------------------------------------------------------------------------------------

OBSERVES = """
observe: {seen: {version: v1, kind: ConfigMap, selector: '{{ spec.selector }}'}}
children:
  a: {object: {apiVersion: v1, kind: ServiceAccount, metadata: {name: a, annotations: {seen: "{{ seen | map(attribute='metadata.name') | join }}"}}}}
  b: {object: {apiVersion: v1, kind: Secret, metadata: {name: b}}}
"""


def seen(harness: Harness) -> str:
    return str(harness.objects[key("a", "ServiceAccount")]["metadata"]["annotations"]["seen"])


def test_the_list_follows_the_selector_of_the_custom_resource() -> None:
    harness = Harness.of(OBSERVES, {"selector": {"matchLabels": {"team": "red"}}})
    for name, team in (("x", "red"), ("y", "blue"), ("z", "red")):
        harness.add(config(name, labels={"team": team}))
    harness.settle()
    assert seen(harness) == "xz"
    harness.edit({"selector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]}})
    harness.settle()
    assert seen(harness) == "y"


def test_an_invalid_selector_fails_what_reads_it_and_nothing_else() -> None:
    harness = Harness.of(OBSERVES, {"selector": {}})
    harness.add(config("x"))
    planned = harness.plan()
    (problem,) = planned.problems
    assert (problem.child, problem.reason) == ("a", "RenderFailed")
    assert problem.message.endswith(EMPTY)
    assert str(planned.problems[0].site) == "watches.yaml:4:60"
    assert not planned.watches


PATCHES = """
children:
  maps: {patch: {version: v1, kind: ConfigMap, selector: %s, fields: {data: {team: '{{ spec.team }}'}}}}
"""


def teams(harness: Harness) -> dict[str, str | None]:
    return {each.name: found.get("data", {}).get("team") for each, found in harness.objects.items()}


def test_fields_are_set_on_what_the_custom_resource_selects_within_the_constant_part() -> None:
    harness = Harness.of(PATCHES % LABELS, {"team": "red", "labels": {"app": "a"}})
    for name, labels in (("x", {"app": "a", "tier": "web"}), ("y", {"app": "a"}), ("z", {"tier": "web"})):
        harness.add(config(name, labels=labels))
    harness.settle()
    assert teams(harness) == {"x": "red", "y": None, "z": None}
    harness.edit({"team": "red", "labels": {}})
    harness.settle()
    assert teams(harness) == {"x": "red", "y": None, "z": "red"}


@pytest.mark.parametrize("labels", ["x", {"app": "a,b"}, {"app": 1}, [{}]])
def test_fields_stay_as_they_are_while_the_selector_is_invalid(labels: Any) -> None:
    harness = Harness.of(PATCHES % LABELS, {"team": "red", "labels": {"app": "a"}})
    harness.add(config("x", labels={"app": "a", "tier": "web"}))
    harness.settle()
    harness.edit({"team": "blue", "labels": labels})
    planned = harness.plan()
    assert not [each for each in planned.actions if isinstance(each, ServerSideApply)]
    assert planned.conditions.ready.reason == "RenderFailed"
    harness.settle()
    assert teams(harness) == {"x": "red"}


def test_a_missing_value_is_an_error_and_selects_nothing() -> None:
    harness = Harness.of(PATCHES % VALUES, {"team": "red"})
    harness.add(config("x", labels={"team": "a"}))
    harness.settle()
    assert teams(harness) == {"x": None}
    assert "spec.teams is not set" in harness.ready()[2]
