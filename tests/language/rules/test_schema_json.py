"""The JSON Schema of watches.yaml agrees with the loader, because both use the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ruleop.language.rules.keys.tables import keys
from ruleop.language.rules.keys.watches_yaml import TABLES, ChildTable, watches_schema
from ruleop.language.templates import read_yaml
from tests.language.rules import (
    test_definitions,
    test_env_vars,
    test_mistakes,
    test_names,
    test_order,
    test_randomness,
    test_schema,
    test_watches,
)
from tests.language.rules.projects import Row, table, watch
from tests.language.secrets import test_secret_reads

VALIDATOR = jsonschema.Draft202012Validator(watches_schema())


def data(text: str) -> Any:
    documents, mistakes = read_yaml(text, "watches.yaml")
    assert not mistakes
    return documents[0].data()


def accepted(text: str) -> bool:
    return bool(VALIDATOR.is_valid(data(text)))


@pytest.mark.slow
def test_the_json_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(watches_schema())


# Projects that are right, as far as their text goes; each uses many keys.
EXAMPLES = {
    "memcached": watch(
        """
        children:
          deployment: {template: memcached/deployment.yaml.j2}
        observe:
          pods: {version: v1, kind: Pod, selector: {app: memcached, memcached_cr: "{{ metadata.name }}"}}
        status:
          nodes: "{{ pods | map(attribute='metadata.name') | sort }}"
        """
    ),
    "all keys of a child": watch(
        """
        children:
          a: {template: a.yaml, when: false, waitFor: "{{ spec.x }}", forEach: spec.list, as: thing, dependsOn: [b], readyWhen: this.x,
              apply: {strategy: create-only, ignore: [spec.x, {path: spec.y, when: spec.z}], onImmutable: recreate}, adopt: orphans,
              deletion: "{{ spec.deletion }}", namespace: "{{ metadata.namespace }}", optional: true}
          b: {object: {apiVersion: v1, kind: Service, metadata: {name: b}}, deletion: orphan}
          c: {template: a.yaml, forEach: {team: spec.teams, env: team.envs}}
        """
    ),
    "all keys of a watch": watch(
        """
        name: a
        status: status.yaml
        conditions: [{type: Fine, status: true, reason: A, message: b}]
        validate: [{rule: spec.x, message: no}]
        vars: {a: {b: [1, x]}}
        let: {a: [1, "{{ spec.x }}"], b: {c: d}}
        finalize: {a: {template: a.yaml}}
        selector: {matchExpressions: [{key: a, operator: Exists}, {key: b, operator: In, values: [c]}]}
        namespaces: [a]
        reconcilePeriod: 0s
        maxConcurrentReconciles: 1
        manageStatus: false
        apply: {ignore: [spec.replicas]}
        reach: cluster
        """.replace("message: no", "message: 'no'")
    ),
    "templates that give selectors and words": watch(
        """
        observe:
          all: {version: v1, kind: Pod}
          everywhere: {version: v1, kind: Pod, namespaces: all, where: this.spec}
          whole: {version: v1, kind: Pod, selector: "{{ spec.selector }}"}
          parts:
            version: v1
            kind: Pod
            selector: {matchLabels: "{{ spec.labels }}", matchExpressions: [{key: a, operator: In, values: "{{ spec.a }}"}]}
        children:
          a: {template: a.yaml, apply: {onImmutable: "{{ spec.how }}"}, forEach: spec.list, once: "{{ item.v }}"}
        """
    ),
    "the mapping form": "vars: {a: 1}\nlet: {b: 2}\napply: {strategy: merge}\ninclude: [rules/*.yaml]\nwatches:\n"
    + watch("reach: cluster"),
    "only an include": "include: [rules/*.yaml]\n",
    "a built-in kind": "- {version: v1, kind: ConfigMap}\n",
}


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_valid_examples_are_accepted_by_the_json_schema(text: str) -> None:
    VALIDATOR.validate(data(text))


ROOT = Path(__file__).parents[3]
SHIPPED = [path for path in (ROOT / "watches.yaml", *sorted(ROOT.glob("examples/*/watches.yaml"))) if path.is_file()]


@pytest.mark.parametrize("path", SHIPPED, ids=[str(path.relative_to(ROOT)) for path in SHIPPED])
def test_the_shipped_examples_are_accepted_by_the_json_schema(path: Path) -> None:
    VALIDATOR.validate(data(path.read_text()))


STRUCTURAL = {
    "unknown key in a child",
    "unknown key in a watch",
    "no near key",
    "unknown key in observe",
    "neither template nor object",
    "both template and object",
    "missing version",
    "version with its group",
    "version as a number",
    "a watch outside of a list",
    "a watch that is text",
    "text for a file",
    "an empty list",
    "child is text",
    "children is a list",
    "choice",
    "choice of another type",
    "strategy",
    "duration without unit",
    "duration of nonsense",
    "duration as a list",
    "flag",
    "count too small",
    "count as text",
    "count as boolean",
    "no namespaces",
    "a namespace that is none",
    "id with a capital",
    "as without forEach",
    "loops in loops",
    "template outside",
    "expression of a list",
    "selector number",
    "selector requirement",
    "selector mixed",
    "selector empty",
    "selector text",
    "observe with name and selector",
    "ignore paths",
    "deletion",
    "conditions",
    "validate",
    "status of another sort",
    "include outside",
    "forms of templates",
    "text that is a number",
    "a mapping is wanted",
    "a list is wanted",
    "empty values",
    "path of a field",
    "text of several lines",
}
"""The mistakes that a schema can see. What is left to the reader: names, files, templates, what two places have to do
with each other."""


@table(*(row for row in test_mistakes.ROWS if row.title in STRUCTURAL))
def test_a_structural_error_is_refused_by_the_json_schema_too(row: Row) -> None:
    assert row.said
    assert not accepted(row.watches)


def test_each_listed_structural_error_is_a_row_of_the_table() -> None:
    assert {row.title for row in test_mistakes.ROWS} >= STRUCTURAL


OTHERS = [
    test_names,
    test_schema,
    test_order,
    test_secret_reads,
    test_randomness,
    test_watches,
    test_definitions,
    test_env_vars,
]
STRUCTURAL_TOO = {
    "hidden by namespaces",
    "hidden by selector",
    "kinds that Kubernetes does not have",
    "a field with a mistake in the short form",
    "unknown keys and missing ones",
}  # y is a boolean; a kind is missing


@table(*(row for module in OTHERS for row in module.ROWS if row.title not in STRUCTURAL_TOO))
def test_errors_that_only_the_loader_detects_are_accepted_by_the_json_schema(row: Row) -> None:
    VALIDATOR.validate(data(row.watches))


def test_every_key_has_a_description_and_its_default_in_the_json_schema() -> None:
    schema = watches_schema()
    for each in TABLES:
        properties = schema["$defs"][each.DEFINITION]["properties"]
        assert set(properties) == {known.name for _, known in keys(each)}
        assert all(property_["description"] for property_ in properties.values())
    assert schema["$defs"]["watch"]["properties"]["reconcilePeriod"]["default"] == "10h"
    assert schema["$defs"]["child"]["properties"]["adopt"]["default"] == "never"
    assert "default" not in schema["$defs"]["child"]["properties"]["template"]
    assert {known.name for _, known in keys(ChildTable)} >= {"template", "object", "forEach", "as"}
