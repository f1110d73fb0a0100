"""What check passes works: random custom resources, valid by their CRD, are planned, and no value is missing or of a
wrong type. What check warns of fails for some of them."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.authoring.checking.refused_objects import with_violations
from ruleop.authoring.offline import EPOCH, OfflineKinds, prepare
from ruleop.language.rules.checking import build_with_sources, load_with_sources
from ruleop.language.rules.loading import Loaded
from ruleop.planning import FixedObjects, Observed, choose_rule, plan
from tests.authoring.checking.random_resources import ImpossibleError, resource
from tests.authoring.checking.test_expressions import MISTAKES, QUIET
from tests.authoring.checking.test_no_false_alarms import PROJECTS
from tests.authoring.checking.typed_projects import CRD
from tests.docs.messages import ROOT

_BY_TYPE = re.compile(
    r"is not set|is undefined|has no (such )?field|does not wait|not possible|only text can be added|list is empty"
    r"|inside longer text|omits its field|a loop needs|takes (a |lists)|cannot be unpacked|cannot use|`in` needs"
    r"|must be an? (integer|string|boolean|number|list|object)|unknown field|cannot be used together"
)
"""Failures that types decide. Others depend on values: a string that is not a quantity, a name that is too long."""
FAST, MANY = 20, 1000
LARGE = {"examples/memcached-chart": 200}
"""Fewer resources of projects whose resources have hundreds of fields."""


def problems(loaded: Loaded, count: int, *, start: int = 0) -> list[str]:
    """The failures of random CRs of each rule that are decided by types."""
    found: dict[str, None] = {}
    kinds = OfflineKinds(loaded.project)
    for rule in loaded.project.rules:
        crd = next(
            (crd for crd in loaded.project.crds if (crd.group, crd.kind) == (rule.kind.group, rule.kind.kind)), None
        )
        version = crd.version(rule.kind.version) if crd is not None else None
        if version is None:
            continue
        for seed in range(start, start + count):
            try:
                given = resource(rule.kind, version.schema, random.Random(seed))  # noqa: S311 - for test data
            except ImpossibleError:
                continue
            stored, refused = prepare(loaded.project, given)
            if refused or choose_rule(loaded.project.rules, stored) is None:
                continue
            observed = Observed(FixedObjects([stored]), kinds, now=EPOCH, seed=b"")
            planned = with_violations(plan(rule, stored, observed), rule, loaded.project)
            for problem in planned.problems:
                if _BY_TYPE.search(problem.message):
                    found[f"{problem.site}: {problem.message}"] = None
    return list(found)


@pytest.mark.slow
@pytest.mark.parametrize("project", PROJECTS)
def test_projects_without_findings_render_random_resources(project: str) -> None:
    assert problems(with_definitions(load_with_sources(ROOT / project, environ={})), FAST) == []


@pytest.mark.slow
@pytest.mark.parametrize("project", PROJECTS)
def test_projects_without_findings_render_a_thousand_random_resources(project: str) -> None:
    loaded = with_definitions(load_with_sources(ROOT / project, environ={}))
    assert problems(loaded, LARGE.get(project, MANY), start=FAST) == []


def of(expression: str) -> Loaded:
    """A project in which an expression is a value of a ConfigMap."""
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {{{{ ({expression}) | to_json }}}}}}\n"
    watch = (
        "- group: example.com\n  version: v1\n  kind: App\n"
        "  vars: {registry: example.com, replicas: 3, zones: [a, b]}\n"
        "  children: {body: {template: body.yaml, forEach: vars.zones}}\n"
    )
    files: dict[str, Any] = {"watches.yaml": watch, "crds/apps.yaml": CRD, "templates/body.yaml": text}
    return build_with_sources(files, root="/project", environ={})


_OF_THE_CR = re.compile(r"^(?!.*\b(db|pods|live|ready|many|extra|status|omit|spec\.more)\b)(?!.*spec\.size if)")
"""Expressions over the CR alone."""


@pytest.mark.parametrize("expression", [*filter(_OF_THE_CR.match, QUIET)])
def test_an_expression_without_findings_renders(expression: str) -> None:
    assert problems(of(expression), FAST) == []


@pytest.mark.slow
@pytest.mark.parametrize("expression", [*filter(_OF_THE_CR.match, QUIET)])
def test_an_expression_without_findings_renders_for_many(expression: str) -> None:
    assert problems(of(expression), 200, start=FAST) == []


@pytest.mark.parametrize(
    "expression",
    [
        expression
        for expression, message in MISTAKES
        if _OF_THE_CR.match(expression) and ("maybe-missing" in message or "fails" in message or "can fail" in message)
    ],
)
def test_an_expression_that_may_be_missing_fails_for_some(expression: str) -> None:
    assert problems(of(expression), FAST) != []
