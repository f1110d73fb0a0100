"""Loading and checking a project of many watches holds little more than its rules."""

from __future__ import annotations

import gc

import pytest

from ruleop.authoring import checking
from ruleop.authoring.checking.known_names import KnownNames
from ruleop.language.rules.checking import build_with_sources
from ruleop.language.templates.tree.evaluation import Evaluator
from ruleop.language.templates.tree.expressions import Expressions
from ruleop.language.templates.tree.writing import Writer

WATCHES = 12
BODY = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ metadata.name }}'}\ndata: {a: '{{ spec.a }} {{ spec.b }}'}\n"
)


def loaded():
    watches = [
        f"- {{group: example.com, version: v1, kind: App{number}, schema: {{spec: {{a: string, b: string}}}},\n"
        "   children: {a: {template: a.yaml, when: spec.a is defined}, b: {object: {apiVersion: v1, kind: Service,\n"
        "     metadata: {name: '{{ metadata.name }}-b'}, spec: {clusterIP: None}}}}}\n"
        for number in range(WATCHES)
    ]
    return build_with_sources({"watches.yaml": "".join(watches), "templates/a.yaml": BODY}, root="/p", environ={})


def test_loading_makes_no_function_of_a_template(monkeypatch):
    for owner, name in ((Evaluator, "documents"), (Writer, "body"), (Expressions, "compute")):
        monkeypatch.setattr(owner, name, lambda *_: pytest.fail("it is made on first use"))
    assert len(loaded().for_operator().rules) == WATCHES


def test_checks_of_one_watch_hold_nothing_of_another(monkeypatch):
    held = []

    def last_check(*_):
        gc.collect()
        held.append(sum(isinstance(each, KnownNames) for each in gc.get_objects()))

    monkeypatch.setattr(checking, "check_exposed_secrets", last_check)
    checking.check_project(loaded())
    assert held == [1] * WATCHES
