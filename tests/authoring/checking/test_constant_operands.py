"""Text and numbers that are tested for truth decide nothing, so they are probably meant otherwise."""

from __future__ import annotations

import pytest

from tests.authoring.checking.typed_projects import findings as findings_of
from tests.authoring.checking.typed_projects import found_in, said

COMPARE = "compare a field with it, or remove it"
MISTAKES = [
    ("spec.image == 'a' or 'b'", "'b' is text, which always counts as true: write `spec.image in ['a', 'b']`"),
    ("spec.size == 1 or 2 or 3", "2 is a number, which always counts as true: write `spec.size in [1, 2, 3]`"),
    ("spec.image != 'a' and 'b'", "'b' is text, which always counts as true: write `spec.image not in ['a', 'b']`"),
    ("spec.size < 10 and 'x'", f"'x' is text, which always counts as true: {COMPARE}"),
    ("'x' and spec.debug", f"'x' is text, which always counts as true: {COMPARE}"),
    ("spec.debug or 0", f"0 is a number, which always counts as false: {COMPARE}"),
    ("not (spec.debug or '')", f"'' is text, which always counts as false: {COMPARE}"),
    ("spec.debug and (spec.size > 1 or 'y')", f"'y' is text, which always counts as true: {COMPARE}"),
    (
        "'spec.debug'",
        "'spec.debug' is text, which always counts as true: remove the quotes if it is an expression",
    ),
    ("1", "1 is a number, which always counts as true: remove it"),
]
QUIET = ["spec.debug", "true", "false", "spec.debug or true", "spec.image in ['a', 'b']", "(spec.note or 'x') == 'x'"]


def when(expression: str) -> list[str]:
    found = findings_of(f'children:\n  db: {{template: a.yaml, when: "{expression}"}}')
    return [each for each in said(found) if "constant-condition" in each]


@pytest.mark.parametrize(("expression", "message"), MISTAKES)
def test_a_constant_in_a_condition_is_found(expression: str, message: str) -> None:
    assert when(expression) == [f"warning constant-condition: {message}"]


@pytest.mark.parametrize("expression", QUIET)
def test_a_condition_without_constants_is_not_found(expression: str) -> None:
    assert [each for each in when(expression) if "counts as" in each] == []


@pytest.mark.parametrize(
    "watch",
    [
        "validate: [{rule: \"spec.image == 'a' or 'b'\", message: m}]",
        "children: {db: {template: a.yaml, waitFor: \"spec.image == 'a' or 'b'\"}}",
        "children: {db: {template: a.yaml, readyWhen: \"this.metadata.name == 'a' or 'b'\"}}",
        "children: {db: {template: a.yaml, apply: {ignore: [{path: spec.replicas, when: \"spec.image == 'a' or 'b'\"}]}}}",
        "conditions: [{type: A, status: \"spec.image == 'a' or 'b'\"}]",
        "children: {db: {template: a.yaml, forEach: \"spec.hosts if spec.image == 'a' or 'b' else []\"}}",
    ],
)
def test_every_condition_of_a_rule_is_read(watch: str) -> None:
    (found,) = [each for each in findings_of(watch) if each.code == "constant-condition"]
    assert "'b' is text, which always counts as true: write `" in found.message
    assert found.site.column > 1


def test_conditions_of_templates_are_read() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
        "  {% if spec.image == 'a' or 'b' %}\n  x: v\n  {% endif %}\n"
    )
    (found,) = findings_of("children: {db: {template: body.yaml}}", body=text)
    assert (found.site.line, found.site.column, found.severity) == (5, 30, "warning")


def test_text_as_the_status_of_a_condition_is_found_unless_it_names_a_status() -> None:
    def status(expression: str) -> list[str]:
        return said(findings_of(f'conditions: [{{type: A, status: "{expression}"}}]'))

    (found,) = status("'yes'")
    assert "'yes' is text, which always counts as true" in found
    assert status("'Unknown'") == []
    assert status("'True' if spec.debug else 'False'") == []
    assert status("spec.debug and 'True' or 'False'") == []


def test_a_fallback_is_a_value_and_no_condition() -> None:
    assert found_in("spec.image or 'nginx'") == []
    assert found_in("spec.debug and 'yes' or 'no'") == []
    assert found_in("spec.image == 'a' and 'yes' or 'no'") == []
    (found,) = found_in("spec.image == 'a' or 'b'")
    assert "write `spec.image in ['a', 'b']`" in found


def test_a_function_that_is_not_called_is_found() -> None:
    assert found_in("namespace") == [
        "error type-mismatch: `namespace` is a function here, not data: write metadata.namespace"
    ]
    assert found_in("now ~ 'x'") == ["error type-mismatch: `now` is a function here, not data: call it: `now(...)`"]
    assert found_in("range(3) | join") == []


@pytest.mark.parametrize(
    ("phase", "found"),
    [
        ("bound", ["warning constant-condition: this.status.phase is never bound: the API writes Bound"]),
        ("Bound", []),
        ("Released", []),
    ],
)
def test_a_text_that_the_api_writes_in_other_letters_is_found(phase: str, found: list[str]) -> None:
    claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}"
    child = f"children:\n  data:\n    readyWhen: this.status.phase == '{phase}'\n    object: {claim}"
    assert [each for each in said(findings_of(child)) if "constant-condition" in each] == found
