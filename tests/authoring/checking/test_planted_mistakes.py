"""Mistakes that authors make, planted in an example: check finds each at its line."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ruleop.authoring.checking.typing.watches import check_types
from ruleop.language.rules import Findings
from ruleop.language.rules.checking import build_with_sources, load_with_sources
from tests.docs.messages import ROOT

DB, ACCESS, BACKUP, WATCHES = (
    "templates/postgres/db.yaml.j2",
    "templates/postgres/access.yaml.j2",
    "templates/postgres/backup.yaml.j2",
    "watches.yaml",
)

PLANTED = [
    ("a port in quotes", "templates/postgres/service.yaml.j2", "      port: 5432", '      port: "5432"', "invalid-literal"),
    ("a number in env", DB, "              value: /var/lib/postgresql/data", "              value: 7", "invalid-literal"),
    ("a misspelt key", DB, "  replicas: {{", "  replica: {{", "unknown-field"),
    ("a misspelt field of the CR", "templates/postgres/config.yaml.j2", "in spec.parameters", "in spec.parametrs", "unknown-field"),
    ("a misspelt field of a child", WATCHES, "db.status.readyReplicas | default(0)", "db.status.readyReplica | default(0)", "unknown-field"),
    ("a misspelt field of an item", BACKUP, "backup.claim", "backup.clam", "unknown-field"),
    ("a misspelt attribute", WATCHES, "attribute='status.capacity.storage'", "attribute='status.capcity.storage'", "unknown-field"),
    ("a field without default", DB, "spec.storageClass | default(omit)", "spec.storageClass", "maybe-missing"),
    ("a field without guard", ACCESS, "{% if client.namespace is defined %}", "{% if true %}", "maybe-missing"),
    ("a string for an integer", "templates/postgres/service.yaml.j2", "      port: 5432", "      port: {{ spec.version }}", "type-mismatch"),
    ("an integer for a string", DB, "image: {{ image }}", "image: {{ backups | length }}", "type-mismatch"),
    ("a mapping for a string", DB, "serviceName: {{ headless.metadata.name }}", "serviceName: {{ headless.metadata }}", "type-mismatch"),
    ("a mapping inside text", "templates/postgres/headless.yaml.j2", "{{ metadata.name }}-pods", "{{ metadata }}-pods", "type-mismatch"),
    ("a loop over a string", ACCESS, "in spec.clients", "in spec.version", "type-mismatch"),
    ("a sum of text and a number", BACKUP, "backup.keep + 1", "backup.keep + '1'", "type-mismatch"),
    ("a list as one object", WATCHES, 'host: "{{ service.metadata.name }}', 'host: "{{ claims.metadata.name }}', "type-mismatch"),
    ("a status of the wrong type", WATCHES, "    port: 5432", '    port: "5432"', "invalid-literal"),
    ("a status of the wrong expression", WATCHES, '"{{ db.status.readyReplicas | default(0) }}"', '"{{ passwordSecret }}"', "type-mismatch"),
    ("a word that is none of the allowed", BACKUP, "concurrencyPolicy: Forbid", "concurrencyPolicy: Forbit", "invalid-literal"),
    ("a word of an expression", BACKUP, "restartPolicy: Never", "restartPolicy: {{ 'Nevr' if spec.hibernate else 'OnFailure' }}", "invalid-literal"),
    ("a required field", BACKUP, "            - name: dump\n", "            -\n", "invalid-literal"),
    ("a quantity", DB, "limits: {memory: {{ spec.memory }}}", "limits: {memory: 1GB}", "invalid-literal"),
    ("a comparison of types", WATCHES, "status: db.status.readyReplicas > 0", "status: db.status.readyReplicas == '1'", "type-mismatch"),
    ("a condition that is always true", WATCHES, "when: spec.protect", "when: spec.protect is defined", "constant-condition"),
    ("a list for a mapping", DB, "exec: {command: [pg_isready, -U, postgres]}", "exec: [pg_isready, -U, postgres]", "invalid-literal"),
]  # fmt: skip


@pytest.fixture(scope="module")
def files() -> Mapping[str, str]:
    return load_with_sources(ROOT / "examples/postgres", environ={}).files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "right", "wrong", "code"), [row[1:] for row in PLANTED], ids=[row[0] for row in PLANTED]
)
def test_a_planted_mistake_is_found(files: Mapping[str, str], file: str, right: str, wrong: str, code: str) -> None:
    text = files[file]
    assert right in text
    line = text[: text.index(right)].count("\n") + 1
    loaded = build_with_sources({**files, file: text.replace(right, wrong, 1)}, root="/project", environ={})
    found = Findings(loaded.files)
    check_types(loaded, found)
    lines = [each.site.line for each in found.sorted() if (each.code, each.site.path) == (code, file)]
    assert any(line <= each <= line + 2 for each in lines), found.sorted()
