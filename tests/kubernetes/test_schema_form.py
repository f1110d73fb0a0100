"""Keywords of a CRD's schema with values of the wrong type: each is reported, and nobody else sees it."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from ruleop.kubernetes.crd import SchemaForm, crd_shape, default, parse_crd, prune
from ruleop.kubernetes.crd_checks import check_crd
from ruleop.kubernetes.schema.validation import SchemaError, validate
from tests.contract.kinds import CRDS, WIDGETS
from tests.contract.walk.making import Chance
from tests.localcluster.rubbish import changed

A_SCHEMA = "must be a schema such as {type: string}, not"


@pytest.mark.parametrize(
    ("keyword", "value", "finding"),
    [
        ("properties", {"a": None}, f"properties.a: {A_SCHEMA} null"),
        ("properties", {"a": "text"}, f'properties.a: {A_SCHEMA} "text"'),
        ("properties", {"a": {"properties": {"b": []}}}, f"properties.a.properties.b: {A_SCHEMA} a list"),
        ("properties", ["a"], "properties: must be a mapping of names to schemas, not a list"),
        ("items", "text", f'items: {A_SCHEMA} "text"'),
        ("items", [{"type": "string"}], "items: must be one schema, not a list of them"),
        ("additionalProperties", 5, f"additionalProperties: {A_SCHEMA} 5"),
        ("allOf", {"type": "string"}, "allOf: must be a list of schemas, not an object"),
        ("anyOf", [None], f"anyOf[0]: {A_SCHEMA} null"),
        ("type", ["string"], "type: must be text, not a list"),
        ("required", "a", 'required: must be a list of names, not "a"'),
        ("required", [1], "required: must be a list of names, not a list"),
        ("enum", "a", 'enum: must be a list, not "a"'),
        ("minimum", "a", 'minimum: must be a number, not "a"'),
        ("minLength", 1.5, "minLength: must be an integer, not 1.5"),
        ("maxItems", True, "maxItems: must be an integer, not true"),
        ("nullable", "yes", 'nullable: must be true or false, not "yes"'),
        (
            "x-kubernetes-validations",
            [{"message": "a"}],
            "x-kubernetes-validations: must be a list of rules such as {rule: self.a < self.b}, not a list",
        ),
        *(
            (
                "x-kubernetes-validations",
                [{"rule": "true"}, {"rule": "true", name: ["a"]}],
                f"x-kubernetes-validations[1].{name}: must be {words}, not a list",
            )
            for name, words in {
                **dict.fromkeys(("message", "messageExpression", "reason", "fieldPath"), "text"),
                "optionalOldSelf": "true or false",
            }.items()
        ),
    ],
)
def test_a_keyword_with_a_value_of_another_type_is_reported(keyword: str, value: Any, finding: str) -> None:
    form = SchemaForm({"type": "object", keyword: value})
    assert [str(each) for each in form.findings] == [finding]
    assert SchemaForm(form.schema).findings == [], "the rest has the right form"


@pytest.mark.parametrize("keyword", ["properties", "items", "type", "required", "minimum"])
def test_a_keyword_without_a_value_is_none(keyword: str) -> None:
    form = SchemaForm({"description": "a", keyword: None})
    assert (form.schema, form.findings) == ({"description": "a"}, [])


def test_a_schema_of_the_right_form_stays_as_it_is() -> None:
    for crd in CRDS:
        for version in crd["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            form = SchemaForm(schema)
            assert (form.schema, form.findings) == (schema, [])


@pytest.mark.parametrize("seed", range(150))
def test_a_crd_with_any_mistakes_can_be_checked_and_used(seed: int) -> None:
    chance = Chance(Random(seed))  # noqa: S311 - for reproducible documents
    document = changed(chance, copy.deepcopy(CRDS[0]), 0.02)
    if not isinstance(document, dict):
        return
    try:
        found = parse_crd(document)
    except SchemaError:
        return
    check_crd(document)
    for version in found.versions:
        crd_shape(version.schema)
        validate(prune(default(WIDGETS.obj(), version.schema), version.schema), version.schema)
