"""What a template renders with any values, and a child cannot be, is found when it is loaded."""

from __future__ import annotations

from tests.language.rules.projects import Row, said, table, watch

HEAD = "apiVersion: v1\nkind: ConfigMap\n"
WATCH = watch("children: {a: {template: a.yaml}}")


def row(title: str, template: str, *expected: str, **others: str) -> Row:
    files = {"templates/a.yaml": template, **{f"templates/{name}.j2": text for name, text in others.items()}}
    return Row(title, WATCH, [f"templates/{each}" for each in expected], files)


@table(
    row(
        "fields that a child cannot set, in a branch",
        HEAD
        + "metadata:\n  name: a\n{% if spec.x %}\n  finalizers: [a]\n  labels: {ruleop.dev/x: a}\n{% endif %}\n{% if spec.x %}\nstatus: {}\n{% endif %}\n",
        "a.yaml:6:3: `metadata.finalizers` is set by ruleop or the API server: remove it",
        "a.yaml:7:12: `metadata.labels['ruleop.dev/x']` is set by ruleop or the API server: remove it",
        "a.yaml:10:1: `status` is set by ruleop or the API server: remove it",
    ),
    row(
        "a generated name that the resource decides",
        HEAD + "metadata:\n  generateName: {{ spec.x }}\n",
        "a.yaml:4:3: `metadata.generateName` is not allowed: set metadata.name: ruleop finds objects by name",
    ),
    row(
        "a generated name",
        HEAD + "metadata:\n  generateName: a-\n",
        "a.yaml:4:3: `metadata.generateName` is not allowed: set metadata.name: ruleop finds objects by name",
    ),
    row(
        "a name that no object can have",
        HEAD + "metadata: {name: a_b}\n",
        'a.yaml:3:18: "a_b" is not valid: a name has lowercase letters, digits, `-` and `.`, each part between dots with'
        " a letter or digit at both ends, at most 253",
    ),
    row("no name", HEAD + "metadata: {labels: {a: b}}\n", "a.yaml:3:11: metadata.name of the object is missing"),
    row("no metadata", HEAD + "data: {}\n", "a.yaml:1:1: metadata.name of the object is missing"),
    row(
        "a document without a kind",
        HEAD + "metadata: {name: a}\n---\napiVersion: v1\nmetadata: {name: b}\n",
        "a.yaml:5:1: this document has no kind, which every object needs",
    ),
    row(
        "a document that is a list",
        HEAD + "metadata: {name: a}\n---\n- a\n",
        "a.yaml:5:1: a template must render objects (mappings with apiVersion, kind and metadata), not a list or text",
    ),
    row(
        "a template without a kind whose YAML is the mistake",
        "apiVersion: v1\nn: ConfigMap\nmetadata: {name: a}\n",
        'a.yaml:2:1: the key n is not a string in YAML: put it in quotes, "n"',
    ),
    row(
        "a name in each of two branches that exclude each other",
        HEAD
        + "metadata:\n{% if spec.x %}\n  name: a\n{% endif %}\n{% if spec.y %}\n  name: b\n{% endif %}\n  labels: {a: b}\n",
    ),
    row(
        "a kind in each of two branches that exclude each other",
        "{% if spec.x %}\n" + HEAD + "{% endif %}\n{% if spec.y %}\n" + HEAD + "{% endif %}\nmetadata: {name: a}\n",
    ),
    row(
        "metadata of a macro",
        "{% from 'm.j2' import m %}\n" + HEAD + "metadata:\n  {{ m() }}\n",
        m="{% macro m() %}\nname: {{ metadata.name }}\n{% endmacro %}\n",
    ),
    row("metadata of values", HEAD + "metadata:\n  {{ spec.metadata }}\n"),
    row("fields that may be omitted", HEAD + "metadata: {name: a, finalizers: {{ omit }}}\nstatus: {{ omit }}\n"),
)
def test_a_child_that_no_values_make_valid_is_a_mistake(row):
    assert said(row.watches, row.files) == row.said
