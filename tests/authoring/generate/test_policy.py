"""Admission policies of the rules of `validate`. tests/cluster asks a real API server about the same rules."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.authoring.checking.typing.types import SchemaNode
from ruleop.authoring.generate.cel_terms import CelTerm, InexactError, described, quantity
from ruleop.authoring.generate.policies import policies, policy_objects, policy_text
from ruleop.authoring.offline import prepare
from ruleop.kubernetes.cel import EvaluationError
from ruleop.kubernetes.cel.cel_compiler import CelProgram, compile_rule
from ruleop.kubernetes.cel.values import Budget, to_value, type_of_schema
from ruleop.language.rules.checking import build_with_sources
from ruleop.language.rules.loading import Loaded
from ruleop.language.rules.operator_choices import Choices
from tests.authoring.generate.policy_rules import CRD, METADATA, RULES, SHARED, SPEC, SPECS, project, verdict, widget
from tests.exploration import examples

PLAIN = Choices()
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
TEXT = {"type": "string"}
METADATA_SCHEMA = {"name": TEXT, "namespace": TEXT, "labels": TEXTS, "annotations": TEXTS}


def as_object() -> Any:
    """The type of `object` in a policy."""
    properties = {"spec": yaml.safe_load(SPEC), "metadata": {"type": "object", "properties": METADATA_SCHEMA}}
    return type_of_schema({"type": "object", "properties": properties})


OBJECT = as_object()
compared = cache(project)


@cache
def program(number: int) -> CelProgram:
    found, _ = policies(compared())
    return compile_rule(found[number].spec["validations"][0]["expression"], {"object": OBJECT})


def decided(number: int, resource: dict[str, Any]) -> str:
    metadata = {name: resource["metadata"][name] for name in METADATA_SCHEMA if name in resource["metadata"]}
    try:
        value = to_value({**resource, "metadata": metadata}, OBJECT)
        found = program(number).evaluate({"object": value}, Budget(100_000))
    except EvaluationError:
        return "fails"
    return {True: "holds", False: "broken"}[found]  # type: ignore[index]


def test_each_rule_of_the_comparison_is_in_a_policy() -> None:
    found, kept = policies(compared())
    assert kept == []
    assert [each.name for each in found] == [f"widgets.policy.example.com-r{number}" for number in range(len(RULES))]


@pytest.mark.slow
@settings(max_examples=examples(1500))
@given(number=st.sampled_from(range(len(RULES))), spec=SPECS, metadata=METADATA)
def test_a_policy_decides_as_the_operator(number: int, spec: Any, metadata: Any) -> None:
    resource = widget(spec, number, **metadata)
    stored, _ = prepare(compared().project, resource)
    expected, _ = verdict(compared().project, compared().project.rules[number], resource)
    assert decided(number, stored) == expected, RULES[number]


# -- expressions -------------------------------------------------------------------------------------------------------


def loaded(*rules: str, message: str = "no", head: str = "") -> Loaded:
    """A project with one watch of Widget."""
    shared = yaml.safe_load(SHARED)
    shared["vars"] |= {"region": "${REGION:-eu}"}
    shared["let"] |= {"long": "{{ spec.image }}-x", "sum": "{{ spec.count + 1 }}"}
    watch = {
        "group": "policy.example.com",
        "version": "v1",
        "kind": "Widget",
        **(yaml.safe_load(head) or {}),
        "validate": [{"rule": rule, "message": message} for rule in rules],
        "observe": {"tiers": {"version": "v1", "kind": "ConfigMap", "name": "tiers"}},
        "children": {},
    }
    text = yaml.safe_dump({**shared, "watches": [watch]}, sort_keys=False)
    return build_with_sources({"watches.yaml": text, "crds/widgets.yaml": MORE}, root="", environ={})


FIELDS = """
 maybe: {type: string, nullable: true}, port: {x-kubernetes-int-or-string: true}, free: {x-kubernetes-preserve-unknown-fields: true},
 when: {type: string, format: date-time}, amount: {type: string}, my-field: {type: string}"""
MORE = CRD.replace("spec: {properties: {", f"spec: {{required: [image], properties: {{{FIELDS}, ").replace(
    "          type: object\n", "          type: object\n          required: [spec]\n"
)
IMAGE = "object.spec.image"


@pytest.mark.parametrize(
    ("rule", "cel"),
    [
        ("spec.image == 'a'", f'{IMAGE} == "a"'),
        ("spec.replicas > 1 or spec.strict", "object.spec.replicas > 1 || object.spec.strict"),
        ("spec.strict", "object.spec.strict == true"),
        ("spec.enabled or spec.strict", "(object.spec.enabled ? true : object.spec.strict) == true"),
        ("spec.enabled or not spec.strict", "object.spec.enabled ? true : !object.spec.strict"),
        ("spec.strict and spec.enabled", "object.spec.strict && object.spec.enabled"),
        ("spec.enabled and spec.strict", "(object.spec.enabled ? object.spec.strict : false) == true"),
        ("not spec.strict", "!object.spec.strict"),
        ("not (spec.strict or spec.replicas > 1)", "!(object.spec.strict || object.spec.replicas > 1)"),
        (
            "spec.strict and (spec.image or spec.size)",
            f'object.spec.strict && ({IMAGE} != "" || object.spec.size != "")',
        ),
        ("spec.tls is defined", "has(object.spec.tls)"),
        ("spec.tls.secret is not defined", "!(has(object.spec.tls) && has(object.spec.tls.secret))"),
        ("spec.count | default(1) == 1", "(has(object.spec.count) ? object.spec.count : 1) == 1"),
        ("spec.share == 1", "object.spec.share == 1.0"),
        ("spec.replicas + 1 <= 10", "int(object.spec.replicas) + 1 <= 10"),
        ("spec.count == spec.other", "int(object.spec.count) == int(object.spec.other)"),
        ('spec.image in [\'a"b\', "c\\nd"]', f'{IMAGE} in ["a\\"b", "c\\nd"]'),
        ("spec.labels.app is defined", 'has(object.spec.labels) && "app" in object.spec.labels'),
        ("spec.tags | length", "size(object.spec.tags) != 0"),
        ("spec.tags | select('eq', 'a') | list | length > 1", 'size(object.spec.tags.filter(item, item == "a")) > 1'),
        ("spec.memory | quantity < '2Gi' | quantity", 'quantity(object.spec.memory).compareTo(quantity("2Gi")) < 0'),
        ("cr.spec.image == 'a'", f'{IMAGE} == "a"'),
        ("true", "true"),
    ],
)
def test_a_rule_becomes_cel(rule: str, cel: str) -> None:
    (found,), kept = policies(loaded(rule))
    assert (found.spec["validations"], kept) == ([{"expression": cel, "message": "no"}], [])


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("spec.maybe == 'a'", "spec.maybe may be null"),
        ("spec.port == 80", "the type of spec.port is not certain"),
        ("spec.free.x == 1", "the type of spec.free is not certain"),
        ("spec.when == 'a'", "CEL does not read the format date-time of spec.when as text"),
        ("spec.tls", "whether spec.tls is empty depends on fields that the schema does not list; use `is defined`"),
        ("spec['my-field'] == 'a'", "CEL cannot name the field spec.my-field"),
        ("spec.image == 1", "it compares spec.image (string) with 1 (integer)"),
        ("spec.ratio == spec.count", "spec.ratio and spec.count are numbers without bounds, of which CEL may lose digits"),
        ("spec.count + 1 > 0", "an integer overflows in CEL: give spec.count a minimum and a maximum"),
        ("spec.least // 2 > 0", "// of negative numbers or by zero is otherwise in CEL: give both a minimum"),
        ("spec.replicas / 2 > 1", "CEL has no equal of Div"),
        ("spec.share * 2 > 1", "CEL calculates number * integer otherwise"),
        ("spec.ratio ~ 'x' == '1x'", "the text of spec.ratio (number) is otherwise in CEL"),
        ("spec.image | upper == 'A'", "upper is otherwise in CEL for letters beyond ASCII, which spec.image may have"),
        ("spec.image | regex_match('\\\\pL')", "the regular expression may match other text in the API server"),
        ("spec.image | trim == 'a'", "CEL has no equal of the filter trim"),
        ("spec.amount | quantity > '1Gi' | quantity",
         "CEL rounds quantities: give spec.amount a pattern without a fraction, such as ^[0-9]+[MG]i$"),
        ("spec.users | selectattr('name', 'eq', spec.enabled | string) | list", "an argument of a loop may be undefined"),
        ("spec.labels | select | list | length == 1", None),
        ("spec.image in tiers.data", "it reads tiers, which only the operator knows"),
        ("status.ready | default(true)", "it reads status, which only the operator knows"),
        ("metadata.generation == 1", "it reads metadata.generation, which the API server does not have yet"),
        ("vars.region == spec.image", "vars.region comes from an environment variable of the operator"),
        ("long == 'a'", "the let long is not one expression"),
        ("sum | default(1) == 1", "an integer overflows in CEL: give spec.count a minimum and a maximum"),
        ("(spec.enabled or 1) == 1", "it is boolean or integer, depending on the custom resource"),
        ("spec.image is string", "CEL has no equal of the test string"),
        ("has_kind('v1', 'Pod')", "it calls a function, which only the operator can do"),
    ],
)  # fmt: skip
def test_a_rule_that_cel_cannot_express_exactly_stays_with_the_operator(rule: str, reason: str | None) -> None:
    found, kept = policies(loaded(rule))
    if reason is None:
        assert found
    else:
        assert found == []
        assert [each.reason for each in kept] == [f"only the operator checks this rule: {reason}"]


@pytest.mark.parametrize(
    ("pattern", "is_whole"),
    [
        ("^[1-9][0-9]*[MG]i$", True),
        ("^[0-9]+(Mi|Gi|Ti)$", True),
        ("^\\d+[KMGT]i?$", True),
        ("^[1-9][0-9]{0,3}(k|M)?$", True),
        ("^[0-9]+$", True),
        ("^[0-9]*Mi$", False),
        ("[0-9]+Mi", False),
        ("^[0-9.]+Mi$", False),
        ("^[0-9]+m?$", False),
        ("^[0-9]+Mi|.*$", False),
        ("^[0-9]+e-[0-9]$", False),
    ],
)
def test_a_pattern_shows_that_quantities_have_no_fraction(pattern: str, is_whole: bool) -> None:
    node = SchemaNode({"type": "string", "pattern": pattern})
    field = described(node, CelTerm("object.spec.a", "any", path="spec.a"))
    if is_whole:
        assert quantity(field).text == "quantity(object.spec.a)"
    else:
        with pytest.raises(InexactError, match="CEL rounds quantities"):
            quantity(field)


# -- objects -----------------------------------------------------------------------------------------------------------


def spec_of(*rules: str, head: str = "", message: str = "no") -> Any:
    (found,), _ = policies(loaded(*rules, head=head, message=message))
    return found.spec


def conditions(*rules: str, head: str = "") -> dict[str, str]:
    return {each["name"]: each["expression"] for each in spec_of(*rules, head=head)["matchConditions"]}


def test_a_policy_is_for_the_version_that_the_watch_reads() -> None:
    found = spec_of("spec.image")["matchConstraints"]
    assert found["matchPolicy"] == "Equivalent"
    assert found["resourceRules"] == [
        {
            "apiGroups": ["policy.example.com"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["widgets"],
            "scope": "*",
        }
    ]


def test_updates_of_what_no_rule_reads_and_of_deleted_resources_are_admitted() -> None:
    spec = "has(object.spec) != has(oldObject.spec) || has(object.spec) && object.spec != oldObject.spec"
    assert conditions("spec.image") == {
        "not-deleted": "!has(object.metadata.deletionTimestamp)",
        "changed": f"request.operation == 'CREATE' || {spec}",
    }
    assert "metadata.labels" in conditions("metadata.labels.a is defined")["changed"]
    assert conditions("metadata.name != 'a'")["changed"] == "request.operation == 'CREATE'"


def test_a_policy_selects_as_its_watch() -> None:
    head = """
    namespaces: [shop, blog]
    selector:
      matchLabels: {a: b}
      matchExpressions:
        - {key: x/y, operator: NotIn, values: [c, d]}
        - {key: e, operator: Exists}
    """
    found = conditions("spec.image", head=head)
    labels = "object.metadata.labels"
    assert [found[f"selected-{number}"] for number in (1, 2, 3)] == [
        f'has({labels}) && "a" in {labels} && {labels}["a"] in ["b"]',
        f'!(has({labels}) && "x/y" in {labels} && {labels}["x/y"] in ["c", "d"])',
        f'has({labels}) && "e" in {labels}',
    ]
    assert labels in found["changed"], "a label may bring the resource to the watch"
    selector = spec_of("spec.image", head=head)["matchConstraints"]["namespaceSelector"]
    (expression,) = selector["matchExpressions"]
    assert expression == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop", "blog"]}


def test_a_binding_is_for_the_namespaces_of_the_operator() -> None:
    found, _ = policies(loaded("spec.image"))
    names = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]}]}
    policy, binding = policy_objects(found, Choices(name="app", namespaces=("shop",)))
    assert policy["metadata"]["name"] == "app-widgets.policy.example.com"
    assert binding["spec"] == {
        "policyName": "app-widgets.policy.example.com",
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": names},
    }
    assert "matchResources" not in policy_objects(found, PLAIN)[1]["spec"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("plain\n  text", {"message": "plain text"}),
        (
            "{{ spec.replicas }} of {{ spec.size }}",
            {
                "message": "... of ...",
                "messageExpression": 'string(int(object.spec.replicas)) + " of " + object.spec.size',
            },
        ),
        (
            "{{ spec.tags | join }} or {{ spec.size }}",
            {"message": "... or ...", "messageExpression": '"..." + " or " + object.spec.size'},
        ),
        ("no {{ spec.tags | join }}", {"message": "no ..."}),
    ],
)
def test_the_message_is_that_of_the_rule(message: str, expected: dict[str, str]) -> None:
    (found,) = spec_of("spec.image", message=message)["validations"]
    assert found == {"expression": 'object.spec.image != ""', **expected}


def test_a_file_lists_what_is_not_in_it() -> None:
    text = policy_text(*policies(loaded("spec.image", "spec.maybe")), PLAIN)
    line = text.splitlines()[1]
    assert re.fullmatch(r"# watches.yaml:\d+: only the operator checks this rule: spec.maybe may be null", line)
    assert [each["kind"] for each in yaml.safe_load_all(text)] == [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]


def test_a_kind_without_a_crd_in_the_project_has_no_policy() -> None:
    files = {
        "watches.yaml": "- {version: v1, kind: ConfigMap, validate: [{rule: metadata.name, message: 'no'}], children: {}}\n"
    }
    found, kept = policies(build_with_sources(files, root="", environ={}))
    assert (found, [each.reason for each in kept]) == (
        [],
        ["only the operator checks this rule: ConfigMap has no CRD in the project"],
    )
