"""The types of lists of observed objects: their items, and `this` of `where`."""

from __future__ import annotations

import pytest

from tests.authoring.checking.typed_projects import findings, said

ORDER = "this.spec.nodeName is a string and the right side is an integer: they cannot be compared in order"


def unknown(field: str, meant: str) -> list[str]:
    return [f"error unknown-field: {field} is not in the schema (did you mean {meant}?)"]


@pytest.mark.parametrize(
    ("observe", "value", "found"),
    [
        ("selector: {a: b}, where: this.status.phase == 'x'", "p | length", []),
        (
            "selector: {a: b}, where: this.status.phse == 'x'",
            "p | length",
            unknown("this.status.phse", "this.status.phase"),
        ),
        (
            "forEach: spec.hosts, name: a, where: this.spec.nodeName > 3",
            "p | length",
            [f"error type-mismatch: {ORDER}"],
        ),
        (
            "forEach: spec.size, name: a",
            "p | length",
            ["error type-mismatch: spec.size is an integer: forEach needs a list or a mapping"],
        ),
        (
            "forEach: spec.ports | default([]), as: x, name: '{{ x.prt }}'",
            "p | length",
            unknown("spec.ports[].prt", "spec.ports[].port"),
        ),
        ("forEach: spec.hosts, name: '{{ item }}-{{ index }}'", "p['z'].metadata.name | length", []),
        ("ownedBy: web, where: this.spec.nodeName == 'x'", "p['z'].metadata.name | length", []),
        ("ownedBy: web, through: []", "p['z'].metdata.name", unknown("p[].metdata", "p[].metadata")),
        ("forEach: spec.hosts, name: a", "p['z'].metdata.name | length", unknown("p[].metdata", "p[].metadata")),
    ],
)
def test_a_list_is_typed(observe: str, value: str, found: list[str]) -> None:
    observe = observe.replace("forEach: spec.ports | default([])", 'forEach: "spec.ports | default([])"')
    child = "{object: {apiVersion: batch/v1, kind: Job, metadata: {name: a}}}" if "ownedBy" in observe else ""
    watch = f"children: {{web: {child}}}\n" if child else ""
    watch += f'observe: {{p: {{version: v1, kind: Pod, {observe}}}}}\nstatus: {{ready: "{{{{ {value} }}}}"}}'
    assert list(dict.fromkeys(said(findings(watch)))) == found
