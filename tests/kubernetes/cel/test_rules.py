"""Rules of a schema against objects: where they apply, what an update leaves alone, and their findings."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.cel import CelRules, RuleVerdict, cel_rules


def schema(rule: str, /, **keywords: Any) -> dict[str, Any]:
    """A schema of spec, with a rule."""
    spec = {"type": "object", "x-kubernetes-validations": [{"rule": rule}], **keywords}
    return {"type": "object", "properties": {"spec": spec}}


def said(found: dict[str, Any], spec: Any, old: Any = None) -> list[str]:
    before = None if old is None else {"spec": old}
    return [f"{each.verdict.value}: {each.finding}" for each in CelRules(found).broken({"spec": spec}, before)]


PAIR = {"properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}}


def test_a_broken_rule_names_its_field_and_itself() -> None:
    assert said(schema("self.min <= self.max", **PAIR), {"min": 2, "max": 1}) == [
        "broken: spec: must satisfy the rule self.min <= self.max"
    ]


def test_the_message_of_a_rule_is_shown_with_it() -> None:
    found = schema("self.min <= self.max", **PAIR)
    (rule,) = found["properties"]["spec"]["x-kubernetes-validations"]
    rule |= {"message": "min is more than max", "fieldPath": ".min"}
    assert said(found, {"min": 2, "max": 1}) == ["broken: spec.min: min is more than max (rule: self.min <= self.max)"]
    rule["messageExpression"] = "'min is ' + string(self.min)"
    assert said(found, {"min": 2, "max": 1}) == ["broken: spec.min: min is 2 (rule: self.min <= self.max)"]


@pytest.mark.parametrize("expression", ["self.max / 0 == 1 ? 'a' : 'b'", "'a\\nb'", "'  '", "ip('x')", "1"])
def test_a_message_that_the_server_does_not_use_is_replaced_by_the_other_one(expression: str) -> None:
    found = schema("self.min <= self.max", **PAIR)
    (rule,) = found["properties"]["spec"]["x-kubernetes-validations"]
    rule |= {"message": "the message", "messageExpression": expression}
    assert said(found, {"min": 2, "max": 1}) == ["broken: spec: the message (rule: self.min <= self.max)"]


def test_a_rule_that_fails_rejects_the_object() -> None:
    assert said(schema("self.min <= self.max", **PAIR), {"min": 2}) == [
        "failed: spec: the rule self.min <= self.max cannot be evaluated: no such key: max"
    ]


def test_a_rule_does_not_concern_a_missing_or_null_value() -> None:
    found = schema("self.min <= self.max", **PAIR, nullable=True)
    assert not said(found, None)
    assert not CelRules(found).broken({})


def test_a_transition_rule_applies_to_updates_only() -> None:
    found = schema("self == oldSelf", **PAIR)
    assert not said(found, {"min": 1})
    assert not said(found, {"min": 1}, old={"min": 1})
    assert said(found, {"min": 1}, old={"min": 2}) == ["broken: spec: must satisfy the rule self == oldSelf"]


def test_a_rule_with_an_optional_old_self_applies_to_creations_too() -> None:
    found = schema("self.min > oldSelf.?min.orValue(3)", **PAIR)
    found["properties"]["spec"]["x-kubernetes-validations"][0]["optionalOldSelf"] = True
    assert not said(found, {"min": 4})
    assert said(found, {"min": 3})
    assert not said(found, {"min": 2}, old={"min": 1})
    assert said(found, {"min": 2}, old={"min": 2})


def test_a_value_that_an_update_leaves_as_it_was_is_not_rejected_again() -> None:
    found = schema("self.min <= self.max", **PAIR)
    assert not said(found, {"min": 2, "max": 1}, old={"max": 1, "min": 2})
    assert said(found, {"min": 3, "max": 1}, old={"min": 2, "max": 1})


def test_a_value_for_which_a_rule_fails_is_rejected_even_unchanged() -> None:
    assert said(schema("self.min <= self.max", **PAIR), {"min": 2}, old={"min": 2})


def test_the_metadata_of_a_resource_can_be_read_and_not_compared() -> None:
    root = {"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name == 'a'"}]}
    assert not CelRules(root).broken({"metadata": {"name": "a", "labels": {}}})
    assert CelRules(root).broken({"metadata": {"name": "b"}})
    root["x-kubernetes-validations"] = [{"rule": "self == oldSelf"}, {"rule": "self.metadata.labels.a == 'b'"}]
    (compares, reads_labels) = CelRules(root).rules
    assert (compares.problem, compares.is_invalid) == ("it compares metadata", False)
    assert (reads_labels.problem, reads_labels.is_invalid) == ("labels is not in the schema", True)


@pytest.mark.parametrize(
    ("rule", "keywords", "problem"),
    [
        ("cel.bind(x, self.s, x == '')", {}, "cel.bind() is not implemented"),
        ("self.port", {}, "the result is of type dyn, not bool"),
    ],
)
def test_a_rule_that_is_not_evaluated_has_a_reason(rule: str, keywords: Any, problem: str) -> None:
    found = schema(rule, properties={"s": {"type": "string"}, "port": {"x-kubernetes-int-or-string": True}})
    found["properties"]["spec"]["x-kubernetes-validations"][0] |= keywords
    (each,) = CelRules(found).not_evaluated
    assert each.problem == problem
    (verdict,) = CelRules(found).broken({"spec": {"s": "x", "port": 1}})
    assert verdict.verdict is RuleVerdict.NOT_EVALUATED


@pytest.mark.slow
def test_the_rules_of_an_object_share_a_bound_of_steps() -> None:
    inner = {
        "type": "array",
        "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": "self.all(x, x >= 0)"}],
    }
    found = schema("true", properties={f"p{number}": inner for number in range(400)})
    verdicts = CelRules(found).broken({"spec": {f"p{number}": [1] * 3_000 for number in range(400)}})
    assert verdicts
    assert {each.detail for each in verdicts} == {"it takes too many steps"}


def test_a_value_that_is_nested_deeply_is_not_a_crash() -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    found = schema("self.free == oldSelf.free", properties={"free": free})

    def nested() -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(3_000):
            value = {"x": value}
        return {"free": value}

    (verdict,) = CelRules(found).broken({"spec": nested()}, {"spec": nested()})
    assert verdict.detail == "the value is nested too deeply"


def test_the_rules_of_a_schema_are_compiled_once() -> None:
    found = schema("self.min <= self.max", **PAIR)
    assert cel_rules(found) is cel_rules(found)
    assert cel_rules(found) is not cel_rules(dict(found))
