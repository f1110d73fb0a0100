"""In watches.yaml, a key that is one expression and has no value spreads a mapping in its place, as a slot alone on its
line does in a template."""

from __future__ import annotations

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates import Disabled, Lazy, NotThereYet, Waiting, read_yaml, view
from tests.language.templates.rendering import library, render, tree

LABELS = {"team": "red", "tier": "web"}


@pytest.mark.parametrize("value", ["", " null", " ~"])
def test_a_mapping_is_spread_among_the_keys(value):
    source = f'labels:\n  app: shop\n  "{{{{ l }}}}":{value}\n  last: x\n'
    assert tree(source, l=LABELS) == {"labels": {"app": "shop", "team": "red", "tier": "web", "last": "x"}}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("{{ l }}", LABELS),
        ("{{ l | combine({'b': 'c'}) }}", {**LABELS, "b": "c"}),
        ("{{ l | to_yaml }}", LABELS),
        ("{% if l %}{{ l }}{% endif %}", LABELS),
        ("{% if not l %}{{ l }}{% endif %}", {}),
        ("{{ {} }}", {}),
        ("{{ omit }}", {}),
        ("{{ none }}", {}),
        ("{{ l if false }}", {}),
        ("{{ {'kept': 1, 'gone': none} }}", {"kept": 1}),
    ],
)
def test_an_expression_as_a_key_without_value_spreads_its_mapping(key, expected):
    assert tree(f'"{key}":\na: 1\n', l=LABELS) == {**expected, "a": 1}


def test_spreading_in_watches_yaml_gives_the_same_as_in_a_template():
    for value in (LABELS, {}, None, {"a": [1, {"b": None}], "c": None}):
        assert tree('{x: 1, "{{ v }}": null}', v=value) == render("x: 1\n{{ v }}\n", v=value)


@pytest.mark.parametrize(("value", "what"), [("x", "text"), ([1], "a list"), (5, "a number"), (True, "a boolean")])
def test_spreading_a_value_that_is_not_a_mapping_is_an_error_with_position_and_expression(value, what):
    with pytest.raises(RenderError) as caught:
        tree('a: 1\nlabels:\n  "{{ v }}":\n', v=value)
    assert (
        str(caught.value)
        == f"watches.yaml:3:3: {{{{ v }}}}: a key without a value spreads a mapping, and this is {what}"
    )


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ('team: blue\n"{{ l }}":\n', "watches.yaml:2:1", '{{ l }}: spreading this adds the duplicate key "team"'),
        (
            '"{{ l }}":\nteam: blue\n',
            "watches.yaml:2:1",
            'duplicate key "team": the mapping that is spread above adds it too',
        ),
        (
            '"{{ l }}":\n"{{ l | combine({}) }}":\n',
            "watches.yaml:2:1",
            '{{ l | combine({}) }}: spreading this adds the duplicate key "team"',
        ),
        (
            "\"{{ l }}\":\n\"{{ 'te' ~ 'am' }}\": 1\n",
            "watches.yaml:2:1",
            "{{ 'te' ~ 'am' }}: this results in a duplicate key",
        ),
    ],
)
def test_a_duplicate_key_from_spreading_is_an_error(source, place, message):
    with pytest.raises(RenderError) as caught:
        tree(source, l=LABELS)
    assert str(caught.value).startswith(f"{place}: {message}")


def test_spreading_an_unavailable_value_waits_and_is_omitted_from_a_status():
    def later():
        raise NotThereYet("db")

    (node,), _ = read_yaml('{a: 1, "{{ db.metadata.labels }}": null}', "watches.yaml")
    compiled = library().tree(node)
    names = {"db": Lazy("db", later)}
    with pytest.raises(Waiting):
        compiled.evaluate(names)
    assert compiled.evaluate(names, lenient=True) == {"a": 1}


def test_a_missing_value_is_an_error_unless_it_has_a_default():
    with pytest.raises(RenderError, match=r"spec\.labels is not set"):
        tree('"{{ spec.labels }}":\n', spec={})
    assert tree('"{{ spec.labels | default({}) }}":\na: 1\n', spec={}) == {"a": 1}


def test_null_below_a_computed_key_leaves_the_key_out_as_in_a_template():
    assert tree('"{{ v }}-x": null\na: 1\n', v="k") == {"a": 1} == render("{{ v }}-x: null\na: 1\n", v="k")
    with pytest.raises(RenderError, match=r"spec\.k is not set"):
        tree('"{{ spec.k }}-x": null\n', spec={})


def test_names_and_references_of_a_spread_expression_are_known():
    (node,), _ = read_yaml('labels:\n  "{{ spec.labels }}":\n', "watches.yaml")
    compiled = library().tree(node)
    assert compiled.names == {"spec"}
    assert [reference.path for reference in compiled.references] == [("spec", "labels")]


def test_spreading_a_disabled_child_is_an_error():
    with pytest.raises(RenderError):
        tree('"{{ web.metadata.labels }}":\n', web=view("web", Disabled("web")))
