"""Whether an observed resource is read beyond its metadata is known from the rules alone, and when in doubt the whole
object is watched."""

from __future__ import annotations

import json

import pytest

from ruleop.errors import RenderError
from ruleop.kubernetes.kinds import Kind
from ruleop.language.rules.checking import build_project
from ruleop.language.templates import Fault, partial_view
from ruleop.planning import FixedObjects, KindInfo, Observed, Served, plan
from tests.language.templates.rendering import evaluate

OBSERVE = {
    "one": {"group": "", "version": "v1", "kind": "Secret", "name": "credentials"},
    "many": {"group": "", "version": "v1", "kind": "Secret", "selector": {"matchLabels": {"a": "b"}}},
}
CHILD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: "


def observed(template="x", files=None, **watch):
    """Which of the two are read as metadata only."""
    sources = {"templates/c.yaml": CHILD + template, **(files or {})}
    rule = {
        "group": "example.com",
        "version": "v1",
        "kind": "App",
        "observe": OBSERVE,
        "children": {"c": {"template": "c.yaml"}},
        **watch,
    }
    project = build_project({"watches.yaml": json.dumps([rule]), **sources}, root="rules", environ={})
    return {name for name, each in project.rules[0].observe.items() if each.metadata_only}


METADATA_ONLY = [
    "'{{ one.metadata.resourceVersion }}'",
    "'{{ one.metadata[\"labels\"] | to_json }}'",
    "'{{ one.kind }} {{ many | length }}'",
    "'{{ many[0].metadata.name }}'",
    '\'{{ many | map(attribute="metadata.name") | join(",") }}\'',
    "'{% for s in many %}{{ s.metadata.name }}{{ loop.index }}{% endfor %}'",
    "'{% for s in many | sort(attribute=\"metadata.name\") | reverse %}{{ s.metadata.name }}{% endfor %}'",
    '\'{% for s in many | selectattr("metadata.labels.x") if s.metadata.name %}{{ s["metadata"].name }}{% endfor %}\'',
    "'{% for s in many %}{% set m = s.metadata %}{{ m.name }}{% endfor %}'",
    '\'{{ "x" if many is defined else "y" }}\'',
]
WHOLE = {
    "one": [
        "'{{ one.data.password }}'",
        "'{{ one.data is defined }}'",
        "'{{ one.data | default({}) | length }}'",
        "'{{ one | to_json }}'",
        "'{{ one | length }}'",
        "'{{ one[spec.field] }}'",
        "'{{ one.get(\"data\") }}'",
        "'{% for key in one %}{{ key }}{% endfor %}'",
        "'{% set o = one %}{{ o.metadata.name }}'",
        "'{% macro m(o) %}{{ o.data }}{% endmacro %}{{ m(one) }}'",
        "'{{ {\"a\": one} | to_json }}'",
        "'{% with o = one %}{{ o.data }}{% endwith %}'",
    ],
    "many": [
        "'{{ many | to_json }}'",
        "'{{ many[0] | to_json }}'",
        "'{{ (many | first).data }}'",
        "'{{ many | map(attribute=\"data.x\") | list }}'",
        "'{{ many | map(attribute=spec.field) | list }}'",
        "'{% for s in many %}{{ s.data.x }}{% endfor %}'",
        "'{% for s in many %}{{ s | to_json }}{% endfor %}'",
        "'{% for s in many %}{{ s.metadata.name }}{{ loop.previtem.data is defined }}{% endfor %}'",
        "'{% for s in many | sort(attribute=\"metadata.name,data.x\") %}{{ s.metadata.name }}{% endfor %}'",
        "'{% for s in many | unique %}{{ s.metadata.name }}{% endfor %}'",
        "'{% for s in many %}{% include \"part.j2\" %}{% endfor %}'",
        "'{% for s in many %}{% set t = s %}{{ t.metadata.name }}{% endfor %}'",
        "'{% for a, b in many | dictsort %}{{ b }}{% endfor %}'",
        "'{{ many | selectattr(\"metadata.name\") | list | to_json }}'",
        "'{{ many | groupby(\"metadata.name\") | list | length }}'",
    ],
}
PART = {"templates/part.j2": "{{ s.data.x }}"}


@pytest.mark.parametrize("template", METADATA_ONLY)
def test_an_observe_read_only_by_its_metadata_is_watched_as_metadata(template):
    assert observed(template) == {"one", "many"}


@pytest.mark.parametrize(
    ("name", "template"), [(name, template) for name, templates in WHOLE.items() for template in templates]
)
def test_an_observe_that_may_be_read_beyond_its_metadata_is_watched_whole(name, template):
    assert observed(template, PART) == {"one", "many"} - {name}


@pytest.mark.parametrize(
    "watch",
    [
        {"let": {"x": "{{ one.data.x }}"}},
        {"status": {"x": "{{ one.type }}"}},
        {"conditions": [{"type": "There", "status": "{{ one.type == 'Opaque' }}"}]},
        {"validate": [{"rule": "one.data.x == 'y'", "message": "no"}]},
        {"children": {"c": {"template": "c.yaml", "when": "one.data.x == 'y'"}}},
        {"children": {"c": {"template": "c.yaml", "readyWhen": "one.data.x == 'y'"}}},
    ],
    ids=["let", "status", "condition", "validation", "when", "readyWhen"],
)
def test_every_part_of_a_rule_is_searched_for_reads_of_an_observe(watch):
    assert observed("x", **watch) == {"many"}


def test_reading_another_field_of_a_metadata_only_object_is_an_internal_error():
    one, many = ({"metadata": {"name": "x"}} for _ in range(2))
    names = {"one": partial_view("one", one), "many": partial_view("many", [many])}
    assert evaluate("one.metadata.name ~ many[0].metadata.name", **names) == "xx"
    for expression in ("one.data.x", "many[0].data.x", "one.data | default('y')"):
        with pytest.raises((RenderError, Fault), match="internal error"):
            evaluate(expression, **names)


def test_planning_reads_metadata_only_observes_as_metadata():
    """Of a world that has more it takes no more either."""
    watch = {
        "group": "example.com",
        "version": "v1",
        "kind": "App",
        "observe": OBSERVE,
        "children": {"c": {"template": "c.yaml"}},
    }
    sources = {"watches.yaml": json.dumps([watch]), "templates/c.yaml": CHILD + "'{{ one.metadata.uid }}'"}
    (rule,) = build_project(sources, root="rules", environ={}).rules
    asked = []

    class Objects(FixedObjects):
        def get(self, key, *, version="", partial=False):
            asked.append((key.kind, version, partial))
            return super().get(key)

    class Kinds:
        def info(self, kind):
            return KindInfo(kind)

        def state_of(self, _observe):
            return Served.SYNCED

    metadata = {"name": "credentials", "namespace": "shop", "uid": "u"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": "eA=="}}
    app = {"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "web", "namespace": "shop", "uid": "1"}}
    found = plan(rule, app, Observed(Objects([secret, app]), Kinds()))
    assert found.actions[0].object["data"] == {"a": "u"}
    assert ("Secret", "v1", True) in asked
    assert ("ConfigMap", "v1", False) in asked
    assert rule.observe["one"].kind == Kind("", "v1", "Secret")
