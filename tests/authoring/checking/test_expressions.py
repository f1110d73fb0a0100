"""Expressions against the CRD's schema and the schemas of children: what is found, and what is not."""

from __future__ import annotations

import pytest

from tests.authoring.checking.typed_projects import found_in

MISTAKES = [
    ("spec.serivce.port", "error unknown-field: spec.serivce is not in the schema (did you mean spec.service?)"),
    ("spec.serivce | default('')", "error unknown-field: spec.serivce is not in"),
    ("spec.service.prot | default(0)", "(did you mean spec.service.port?)"),
    ("spec.get('imgae')", "(did you mean spec.image?)"),
    ("spec['imgae'] | default('')", "(did you mean spec.image?)"),
    ("spec.ports | map(attribute='prot') | join(',')", "error unknown-field: spec.ports[].prot is not in"),
    ("spec.ports | selectattr('nmae') | list | length", "error unknown-field: spec.ports[].nmae"),
    ("spec.ports | sort(attribute='prot') | list | length", "error unknown-field: spec.ports[].prot"),
    ("db.status.readyReplica | default(0)", "(did you mean db.status.readyReplicas?)"),
    ("live.db.spec.replica | default(0)", "(did you mean live.db.spec.replicas?)"),
    ("pods | map(attribute='status.podIp') | join", "(did you mean pods[].status.podIP?)"),
    ("metadata.lables | default({}) | length", "(did you mean metadata.labels?)"),
    ("spec.note", "warning maybe-missing: spec.note may be missing (it is optional in the CRD)"),
    ("spec.tls.secret", "warning maybe-missing: spec.tls may be missing"),
    ("'a' ~ spec.note", "warning maybe-missing: spec.note"),
    ("spec.note | upper", "warning maybe-missing: spec.note"),
    ("'a' if spec.note else 'b'", "warning maybe-missing: spec.note"),
    ("spec.tls.issuer if spec.tls is defined else ''", "warning maybe-missing: spec.tls.issuer may be missing"),
    ("spec.hosts[0]", "warning maybe-missing: spec.hosts[0] may be missing (the list may be shorter)"),
    ("spec.ports | default([]) | items2dict | length", "error unknown-field: spec.ports[].key is not in the schema"),
    ("spec.hosts | map('dict2items') | length", "error type-mismatch: an item is a string, and dict2items takes"),
    ("spec.image | regex_replace('a')", "error template: regex_replace: replacement is missing"),
    ("spec.image | b64encode('utf-8', 'a')", "error template: b64encode: it takes fewer arguments"),
    ("spec.image | truncate(3, ende='')", "error template: truncate: unknown argument ende"),
    ("spec.image | sha256(8, length=8)", "error template: sha256: the argument length is given twice"),
    ("spec.hosts | map('replace', 'a') | join", "error template: replace: new is missing"),
    ("spec | pick | to_json", "error template: pick: target is missing"),
    ("spec | pick('imgae')", "error unknown-field: spec.imgae is not in the schema (did you mean spec.image?)"),
    ("spec.ports | default([]) | map('pick', ['nmae'])", "error unknown-field: spec.ports[].nmae is not in"),
    ("spec.size | keep_keys('a')", "error type-mismatch: spec.size is an integer, and keep_keys takes"),
    ("spec.size | host(1)", "error type-mismatch: spec.size is an integer, and host takes a string"),
    ("spec.hosts | subelements('x') | length", "error type-mismatch"),
    ("'a' if spec.image is version(spec.note) else 'b'", "warning maybe-missing: spec.note"),
    ("spec.hosts[1] if spec.hosts else ''", "warning maybe-missing: spec.hosts[1] may be missing"),
    ("spec.hosts | first", "warning maybe-missing: spec.hosts may be empty, and first of an empty list"),
    ("metadata.labels.app", "warning maybe-missing: metadata.labels may be missing"),
    ("live.db.spec.replicas", "warning maybe-missing: live.db may not exist yet, and `live` does not wait"),
    ("extra.metadata.name", "warning maybe-missing: extra has no value while `when` of the child is false"),
    ("spec.size + '1'", "error type-mismatch: an integer + a string fails; join text with ~"),
    ("spec.image * spec.image", "error type-mismatch: a string * a string fails"),
    ("spec.memory + 1", "warning type-mismatch: a string + an integer can fail"),
    ("spec.size > '3'", "error type-mismatch: spec.size is an integer and the right side is a string"),
    ("spec.size == '3'", "error type-mismatch: spec.size is an integer, so it is never equal to a string"),
    ("spec.hosts == 'a'", "error type-mismatch: spec.hosts is a list, so it is never equal to a string"),
    ("'a' in spec.size", "error type-mismatch: spec.size is an integer: `in` needs text, a list or a mapping"),
    ("spec.hosts.name", "error type-mismatch: spec.hosts is a list, which has no field name"),
    ("spec.hosts.items() | list | length", "error type-mismatch: spec.hosts is a list, which has no method items()"),
    ("spec.size.value", "error type-mismatch: spec.size is an integer, which has no fields"),
    ("spec.hosts | upper ~ spec.hosts", "error type-mismatch: spec.hosts is a list, which cannot be a part of text"),
    ("spec.size | join(',')", "error type-mismatch: spec.size is an integer, and join takes"),
    ("spec.labels | union([]) | length", "error type-mismatch: spec.labels is a mapping, and union takes a list"),
    ("pods.status | default('')", "error type-mismatch: pods is a list, which has no field status"),
    ("many.metadata.name | default('')", "error type-mismatch: many is a list, which has no field metadata"),
    ("'a' if spec.mode == 'Prod' else 'b'", "warning constant-condition: this is always false: spec.mode is one of"),
    ("'a' if spec.size is defined else 'b'", "warning constant-condition: this is always true: spec.size is always"),
    ("item.name | default('')", "error type-mismatch: spec.hosts[] is a string, which has no fields"),
    ("'x' ~ (spec.image if spec.debug)", "warning maybe-missing: an `if` without `else`"),
]

QUIET = [
    "spec.hosts[1] if spec.hosts | length > 1 else ''", "spec.hosts[0] if spec.hosts | length != 0 else ''",
    "(spec.labels | dictsort)[0][1] if spec.labels else ''", "(spec.hosts | sort)[0] if spec.hosts else ''",
    "spec.get('tls', {}).get('secret', '')", "spec.debug | ternary('a', 'b')", "0 < spec.size < 10",
    "spec.tls.secret if 'tls' in spec else 'x'", "metadata.get('labels', {}).get('a', 'b')",
    "{'Test': 1, 'Production': 2}[spec.mode]", "(spec.tls | default({'secret': 'a'})).secret",
    "spec.memory if (spec.memory is string) else spec.memory * 2", "spec.nothing if spec.nothing is not none else 'a'",
    "spec.image.split('/')[0]", "([spec.image] + spec.hosts) | join", "(spec.ports | default([]) | groupby('port')) | length",
    "spec.ports is defined and spec.ports | length > 0 and spec.ports[0].port > 80",
    "spec.size", "spec.service.port", "spec.tls.issuer | default('')", "spec.tls.issuer | default(omit)",
    "spec.note if spec.note is defined else 'a'", "spec.note | default(spec.image)", "spec.note | required('a')",
    "spec.tls.secret if spec.tls is defined else ''", "spec.tls.issuer if spec.tls.issuer is defined else ''",
    "spec.tls is defined and spec.tls.secret == 'a'", "spec.tls is not defined or spec.tls.secret == 'a'",
    "not (spec.note is defined and spec.note == 'a')", "(spec.more | default({})).anything.at.all", "spec.labels.app | default('')",
    "spec.labels['a/b'] if 'a/b' in spec.labels else ''", "spec.labels.items() | list | length",
    "spec.labels.get('x', 'y')", "spec.hosts[0] | default('')", "spec.hosts[0] if spec.hosts else ''",
    "spec.hosts | first | default('')", "spec.hosts[0] if spec.hosts | length > 0 else ''",
    "(spec.ports | default([]))[0].port | default(1)", "spec.ports | default([]) | map(attribute='port') | join(',')",
    "spec.ports | default([]) | map(attribute='name') | join(',')", "(spec.size + 1) * 2", "spec.size / 2.5",
    "spec.ratio | round | int", "spec.memory | quantity * 2", "spec.memory == '1Gi'", "spec.memory == 5",
    "db.status.readyReplicas | default(0)", "db.metadata.name", "db.status.readyReplicas == 1", "db | condition('Available') == 'True'",
    "pods | map(attribute='status.podIP') | join(',')", "pods | selectattr('status.phase', 'eq', 'Running') | list | length",
    "(spec.more | default({})).parts | selectattr('a', 'eq', 'x') | selectattr('b', 'eq', 'y') | list | length",
    "live.db.spec.replicas | default(spec.size)", "live.db is defined", "ready.db", "many['a'].data.x | default('')",
    "extra.metadata.name if spec.debug else ''", "extra.metadata.name | default('')", "extra is defined",
    "metadata.name ~ metadata.namespace ~ metadata.uid", "metadata.annotations['a/b'] | default('')",
    "cr.spec.size", "cr.metadata.name", "cr.spec.note | default('')", "cr | to_json", "vars.zones | join(item)",
    "vars.replicas + 1", "item ~ index", "spec.mode == 'Test'", "'a' if spec.mode in ['Test'] else 'b'",
    "spec.nothing | default('a', true)", "spec.debug and 'a' or 'b'", "spec.image.split(':')[0] | default('')",
    "spec | to_json", "spec.tls | default({}) | to_json", "(spec.tls | default({})).secret | default('')",
    "'%s-%d' % (spec.image, spec.size)", "[spec.size, 3] | max", "range(spec.size) | list | length",
    "{'a': spec.size}.a", "dict(a=1).a", "spec.image is string", "1 if spec.debug == true else 0",
    "spec | pick('note', 'image') | to_json", "spec.labels | remove_keys(['x']) | to_json", "(spec.image | ip_network('prefix')) + 1",
    "spec.hosts | product(spec.hosts) | map('join', '-') | join", "spec.image is version('1.2', '>=', version_type='semver')",
    "(spec.hosts | product([spec.size]) | map('last') | sum) + 1", "spec.hosts | reject('ip_address') | join",
    "spec.image | indent(width=2)", "spec.hosts | map('replace', 'a', new='b') | join", "spec.hosts | list | join(d=',')",
    "spec.image | truncate(9, true, end='')", "status.ready | default(0)", "status.phase == 'x'", "omit", "spec.size if spec.debug",
]  # fmt: skip


@pytest.mark.parametrize(("expression", "message"), MISTAKES, ids=[each for each, _ in MISTAKES])
def test_an_invalid_expression_has_a_finding(expression: str, message: str) -> None:
    found = found_in(expression)
    assert any(message in each for each in found), found


@pytest.mark.parametrize("expression", QUIET)
def test_a_valid_expression_has_no_finding(expression: str) -> None:
    assert found_in(expression) == []
