"""Bodies show each `{{ ... }}` at its field, in every branch, without rendering."""

import pytest

from ruleop.language.rules.checking import build_with_sources
from ruleop.language.rules.scopes import possible_in
from ruleop.language.templates.bodies.body import Printed
from tests.definitions import definition
from tests.language.rules.projects import watch


def fields(template: str, **others: str) -> list[dict[str, object]]:
    """The fields of each body: path -> the literal, or the text with the expressions in braces."""
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    files = {
        "watches.yaml": watch("children: {a: {template: a.yaml}}"),
        "crds/apps.yaml": definition(),
        "templates/a.yaml": head + template,
        **{f"templates/{name}": text for name, text in others.items()},
    }
    return of(build_with_sources(files, root="/project", environ={}))


def of(loaded):
    (part,) = (part for part in loaded.watches[0].parts if part.body)
    found = []
    for body in possible_in(part, loaded.library).bodies:
        shown = {}
        for each in body.fields:
            path = ".".join(map(str, each.path)) + (".**" if each.spread else "")
            if each.path[0] in ("apiVersion", "kind") or path == "metadata.name":
                continue
            shown[path] = text(each.pieces) if any(each.slots) else each.value
        found.append(shown)
    return found


def text(pieces) -> str:
    return "".join(
        piece
        if isinstance(piece, str)
        else "{" + (text(piece.captured) if piece.captured else piece.place.expression) + "}"
        for piece in pieces
        if isinstance(piece, (str, Printed))
    )


def test_a_slot_is_at_its_field():
    assert fields("data:\n  a: {{ spec.a }}-x\n  b: 1\n  c: [x, {{ spec.c }}]\n") == [
        {"data.a": "{spec.a}-x", "data.b": 1, "data.c.0": "x", "data.c.1": "{spec.c}"}
    ]


def test_every_branch_is_in_some_body():
    found = fields(
        "data:\n{% if spec.x %}\n  a: 1\n{% elif spec.y %}\n  b: 2\n{% endif %}\n{% if spec.z %}\n  z: 3\n{% endif %}\n"
    )
    assert {key for body in found for key in body if key.startswith("data.")} == {"data.a", "data.b", "data.z"}


def test_equal_conditions_have_one_outcome():
    found = fields(
        "{% if spec.x %}\na: 1\n{% endif %}\n{% if not spec.x %}\na: 2\n{% endif %}\nb: {% if spec.x %}1{% endif %}\n"
    )
    assert found == [{"a": 1, "b": 1}, {"a": 2, "b": None}]


def test_a_slot_alone_on_its_line_is_spread_among_its_neighbours():
    assert fields("data:\n  a: 1\n  {{ spec.more }}\nlist:\n  - 1\n  {{ spec.items }}\nall:\n  {{ spec.all }}\n") == [
        {"data.a": 1, "data.**": "{spec.more}", "list.0": 1, "list.**": "{spec.items}", "all": "{spec.all}"}
    ]


def test_macros_includes_and_captured_text_are_shown_where_they_are_printed():
    found = fields(
        "{% macro labels(name) %}\nx: {{ name }}\n{% endmacro %}\n"
        "{% set more %}\ny1: {{ spec.y }}\n{% endset %}\n"
        "{% from 'm.j2' import full %}\n"
        "a:\n  {{ labels(spec.x) }}\nb:\n  {{ more | indent(2) }}\nc:\n  {% include 'c.j2' %}\n"
        "d: {{ full() }}-d\n",
        **{"m.j2": "{% macro full() %}{{ metadata.name }}-full{% endmacro %}", "c.j2": "z: {{ spec.z }}\n"},
    )
    assert found == [
        {"a.x": "{name}", "b.y1": "{spec.y}", "c.z": "{spec.z}", "d": "{{metadata.name}-full}-d"},
    ]


def test_a_name_that_is_set_in_branches_has_the_value_of_each():
    found = fields(
        "{% if spec.x %}\n{% set more %}\na: {{ spec.a }}\n{% endset %}\n{% elif spec.y %}\n"
        "{% macro other() %}\nb: {{ spec.b }}\n{% endmacro %}\n{% set more = other() %}\n"
        "{% else %}\n{% set more = spec.more %}\n{% endif %}\nm:\n  {{ more }}\n"
    )
    assert found == [{"m.a": "{spec.a}"}, {"m.b": "{spec.b}"}, {"m": "{more}"}]


def test_text_with_a_condition_in_it_has_each_of_its_outcomes():
    found = fields(
        "a: x-{% if spec.x %}{{ spec.a }}{% else %}1{% endif %}\nb: |\n  {% if spec.x %}\n  y\n  {% endif %}\n  z\n"
    )
    assert found == [{"a": "x-{spec.a}", "b": "y\nz\n"}, {"a": "x-1", "b": "z\n"}]


def test_an_object_in_watches_yaml_has_one_body():
    body = "children:\n  a:\n    object:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: a}\n      data:\n        a: '{{ spec.a }}'\n        '{{ spec.more }}':\n"
    files = {"watches.yaml": watch(body), "crds/apps.yaml": definition()}
    assert of(build_with_sources(files, root="/project", environ={})) == [
        {"data.a": "{spec.a}", "data.**": "{spec.more}"}
    ]


def test_the_position_of_a_slot_is_that_of_the_template():
    files = {
        "watches.yaml": watch("children: {a: {template: a.yaml}}"),
        "crds/apps.yaml": definition(),
        "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n{% if spec.x %}\ndata:\n  a: '80'\n{% endif %}\n",
    }
    loaded = build_with_sources(files, root="/project", environ={})
    (part,) = (part for part in loaded.watches[0].parts if part.body)
    sites = {
        str(each.site)
        for body in possible_in(part, loaded.library).bodies
        for each in body.fields
        if each.value == "80"
    }
    assert sites == {"templates/a.yaml:6:6"}


@pytest.mark.slow
def test_many_strings_of_objects_have_bodies_of_their_own_account():
    """Nothing of the account of a pass is used up: each string has a full one."""
    data = "".join(f"        k{number}: '{{{{ metadata.name }}}}-{number}'\n" for number in range(300))
    head = "children:\n  a:\n    object:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: a}\n      data:\n"
    files = {"watches.yaml": watch(head + data), "crds/apps.yaml": definition()}
    loaded = build_with_sources(files, root="/project", environ={})
    for _ in range(3):
        (found,) = of(loaded)
        assert len(found) == 300
