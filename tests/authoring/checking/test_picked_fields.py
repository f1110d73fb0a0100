"""`pick` by literal names: the fields of its result are known, and compared one by one with the CRD and the child."""

from __future__ import annotations

import pytest

from tests.authoring.checking.test_body_types import deployment
from tests.authoring.checking.test_definitions import inferred
from tests.authoring.checking.test_exposed_secrets import exposed
from tests.authoring.checking.test_sensitive_fields import sensitive
from tests.authoring.checking.typed_projects import findings, found_in, said

MISSING = "may be missing (it is optional in the CRD)"
LEFT_OUT = "may be missing (`pick` leaves out what is not set)"


@pytest.mark.parametrize(
    ("expression", "finding"),
    [
        ("(spec | pick('tls', 'note')).note", f"warning maybe-missing: spec.note {MISSING}"),
        ("(spec | keep_keys(['note'])).note", f"warning maybe-missing: spec.note {MISSING}"),
        ("(spec | pick('size')).size ~ (spec | pick('mode')).mode", ""),
        ("(spec | pick('note')).note | default('')", ""),
        ("(spec | pick('size')).siez", "error unknown-field: siez is not in the mapping (did you mean size?)"),
        ("(spec | pick('imgae')).imgae", "error unknown-field: spec.imgae is not in the schema (did you mean spec.image?)"),
        ("(spec | pick('hosts')).hosts + 1", "error type-mismatch: a list + an integer fails"),
        ("(spec.tls | default({}) | pick('secret')).secret", f"warning maybe-missing: spec.tls.secret {MISSING}"),
        ("spec.ports | default([]) | pick('port') | map(attribute='name') | join", "error unknown-field: name is not in the mapping (the mapping has port)"),
        ("(spec.ports | default([]) | pick('port') | map(attribute='port') | sum) + 1", ""),
        ("(spec | pick(vars.zones)).size", ""),
        ("(db.status | pick('readyReplicas')).readyReplicas", f"warning maybe-missing: db.status.readyReplicas {LEFT_OUT}"),
        ("({'note': 'a'} | combine(spec | pick('note'))).note", ""),
        ("(spec | pick('note') | combine(spec | pick('size'))).note", f"warning maybe-missing: spec.note {MISSING}"),
    ],
)  # fmt: skip
def test_the_fields_of_the_result_have_their_types(expression: str, finding: str) -> None:
    found = found_in(expression)
    assert len(found) == bool(finding), found
    assert all(each.startswith(finding) for each in found), found


REPLICAS = "spec | pick('size') sets spec.size, which is not in the schema of Deployment"


@pytest.mark.parametrize(
    ("spec", "container", "message"),
    [
        ("{{ spec | pick('size') }}", "", f"error unknown-field: {REPLICAS}"),
        ("{{ spec | pick('replica') }}", "", "error unknown-field: spec.replica is not in the schema (spec has"),
        ("strategy: {{ spec.service | pick('type') }}", "", ""),
        ("strategy: {{ spec.service | pick('type', 'port') }}", "", "error unknown-field: spec.service | pick('type', 'port') sets spec.strategy.port"),
        ("", "{{ spec | pick('image') }}", "error yaml: spec | pick('image') adds spec.template.spec.containers[0].image a second time: merge the two with `combine`"),
        ("", "{{ {'stdin': true} | combine(spec | pick('tls')) }}", "sets spec.template.spec.containers[0].tls, which is not in"),
        ("", "resources: {limits: {{ spec | pick('memory', 'ratio') }}}", ""),
        ("", "resources: {limits: {{ spec | pick('hosts') }}}", "error type-mismatch: spec.hosts is a list, and spec.template.spec.containers[0].resources.limits.hosts must be a number or a string"),
        ("", "env: [{{ spec | pick('note') }}]", "error unknown-field: spec | pick('note') sets spec.template.spec.containers[0].env[0].note"),
    ],
)  # fmt: skip
def test_picked_fields_are_compared_with_the_schema_of_the_child(spec: str, container: str, message: str) -> None:
    found = deployment(spec, container)
    assert len(found) == bool(message), found
    assert all(message in each for each in found), found


@pytest.mark.parametrize(
    "spread",
    [
        "{{ {'stdin': true} if spec.debug }}",
        "{{ {'stdin': true} if spec.debug else {} }}",
        "{{ {'stdin': true if spec.debug} }}",
        "{{ spec.more | default({}) | pick('stdin') }}",
        "{{ {'tty': true} | combine(spec.more | default({}) | pick('stdin')) }}",
    ],
)
def test_a_key_may_be_written_beside_a_spread_that_can_leave_it_out(spread: str) -> None:
    assert deployment("", f"stdin: false\n{spread}") == []


def test_a_finding_is_at_the_line_of_the_spread() -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nimmutable: true\n{{ spec | pick('size') }}\n"
    (found,) = findings("children: {body: {template: body.yaml}}", body=body)
    assert (str(found.site), found.code) == ("templates/body.yaml:5:4", "unknown-field")


def test_picked_fields_count_as_given_where_the_child_requires_them() -> None:
    service = """\
    apiVersion: v1
    kind: Service
    metadata: {name: a}
    spec:
      ports:
        {% for each in spec.ports | default([]) %}
        - protocol: TCP
          {{ each | pick('name', 'port') }}
        {% endfor %}
    """
    watch = "children: {body: {template: body.yaml}}"
    assert said(findings(watch, body=service)) == []
    (found,) = said(findings(watch, body=service.replace("'name', 'port'", "'name'")))
    assert "spec.ports[0].port is required by the schema of Service" in found


@pytest.mark.parametrize(
    "status",
    [
        "{web: \"{{ web.status | pick('replicas', 'readyReplicas') }}\"}",
        "{web: {\"{{ web.status | pick('replicas', 'readyReplicas') }}\": null}}",
        "{web: {readyReplicas: 1, \"{{ web.status | pick('replicas') }}\": null}}",
    ],
)
def test_the_fields_of_a_status_that_picks_are_inferred(status: str) -> None:
    number = {"type": "integer"}
    fields = inferred(f"status: {status}\n")["web"]
    assert fields == {"type": "object", "properties": {"replicas": number, "readyReplicas": number}}


POD = "spec:\n  template:\n    spec:\n      containers:\n        - name: a\n          {{ spec | pick(NAMES) }}"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("'port', 'level'", []),
        ("'shell'", []),
        ("'command'", ["`spec | pick('command')` lets a CR decide which program runs (spec.template.spec.containers.command)"]),
    ],
)  # fmt: skip
def test_only_the_picked_fields_decide_over_a_pod(names: str, expected: list[str]) -> None:
    assert sensitive(POD.replace("NAMES", names)) == expected


def test_only_the_picked_data_of_a_secret_is_exposed() -> None:
    assert exposed("config", "{{ creds.data | pick('user', 'ca.crt') | to_json }}") != []
    assert exposed("config", "{{ creds.data | pick('ca.crt') }}") == []
    assert exposed("config", "{{ creds.data | pick('password') }}") != []
