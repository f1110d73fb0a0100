"""Rules reach the operator as they were loaded, whatever they hold."""

from __future__ import annotations

import pickle
import sys

import pytest

from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.transfer import from_parts, to_parts
from tests.language.rules.projects import load, watch

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
BODY = "children: {a: {template: a.yaml}}"


def rendered(project, **names):
    (rule,) = project.rules
    return rule.children["a"].body.render(names)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("data: {a: " + "(" * 150 + "1" + "+ 1)" * 150 + "}", id="text"),
        pytest.param("data: {a: '{{ " + "(" * 60 + "1" + " + 1)" * 60 + " }}'}", id="an expression"),
        pytest.param("data: " + "{a: " * 60 + "b" + "}" * 60, id="mappings"),
        pytest.param("data:\n" + "".join(" " * n + "- \n" for n in range(1, 60)) + " " * 60 + "- a", id="lists"),
    ],
)
def test_deep_templates_are_sent(data):
    project = load(watch(BODY), {"templates/a.yaml": f"{CONFIG}{data}\n"})
    before = sys.getrecursionlimit()
    sent = from_parts(to_parts(project))
    assert sys.getrecursionlimit() == before
    assert rendered(sent) == rendered(project)


def test_pieces_of_other_files_are_sent():
    macros = "{% macro labels(name) %}\napp: {{ name }}\n{% endmacro %}\n"
    text = f"{{% from 'm.j2' import labels %}}\n{CONFIG}data:\n  {{{{ labels(spec.name) }}}}\n  b: {{{{ file('b.txt') }}}}\n"
    project = load(watch(BODY), {"templates/a.yaml": text, "templates/m.j2": macros, "templates/b.txt": "text"})
    sent = from_parts(to_parts(project))
    (found,) = rendered(sent, spec={"name": "x"})
    assert found["data"] == {"app": "x", "b": "text"}
    assert rendered(project, spec={"name": "x"}) == [found]


@pytest.mark.parametrize("watches", [1, 20])
def test_each_part_is_one_rule_or_one_template(watches):
    rules = [f"- group: example.com\n  version: v1\n  kind: App{n}\n  {BODY}\n" for n in range(watches)]
    project = load("".join(rules), {"templates/a.yaml": f"{CONFIG}data: {{b: '{{{{ spec.b }}}}'}}\n"})
    common, *parts = to_parts(project)
    assert len(parts) == watches + 1
    assert max(map(len, parts)) < 4000
    assert [str(each.kind) for each in from_parts([common, *parts]).rules] == [str(each.kind) for each in project.rules]


def test_a_mistake_can_be_sent():
    with pytest.raises(ProjectErrors) as found:
        load(watch(BODY), {"templates/a.yaml": "{% if %}"})
    (mistake,) = found.value.mistakes
    again = pickle.loads(pickle.dumps(mistake))  # noqa: S301 - written here
    assert (type(again), again.message, again.site) == (type(mistake), mistake.message, mistake.site)
