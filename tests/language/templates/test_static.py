"""Facts about a template that are known without rendering it."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.errors import Site
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates import RuleErrors, read_yaml
from ruleop.language.templates.compile import Library
from tests.language.templates.rendering import HERE, library, paths_read

DEPLOYMENT, SERVICE, SECRET = Kind("apps", "v1", "Deployment"), Kind("", "v1", "Service"), Kind("", "v1", "Secret")

KINDS = {
    "one": ("apiVersion: apps/v1\nkind: Deployment\n", {DEPLOYMENT}, False),
    "one, kind first": ("kind: Deployment\nmetadata: {}\napiVersion: apps/v1\n", {DEPLOYMENT}, False),
    "quotes": ("apiVersion: \"apps/v1\"\nkind: 'Deployment'\n", {DEPLOYMENT}, False),
    "comments behind": ("apiVersion: apps/v1  # why\nkind: Deployment # {{ x }}\n", {DEPLOYMENT}, False),
    "carriage returns": ("apiVersion: apps/v1\r\nkind: Deployment\r\n", {DEPLOYMENT}, False),
    "two documents": ("apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: v1\nkind: Service\n", {DEPLOYMENT, SERVICE}, True),
    "documents in a loop": ("{% for i in x %}\n---\napiVersion: v1\nkind: Secret\n{% endfor %}\n", {SECRET}, True),
    "a separator with a comment": ("apiVersion: v1\nkind: Secret\n--- # next\napiVersion: v1\nkind: Service\n", {SECRET, SERVICE}, True),
    "branches": ("{% if x %}\napiVersion: apps/v1\nkind: Deployment\n{% else %}\napiVersion: v1\nkind: Service\n{% endif %}\n", {DEPLOYMENT, SERVICE}, False),
    "the kind in branches": ("apiVersion: v1\n{% if x %}\nkind: Secret\n{% else %}\nkind: Service\n{% endif %}\n", {SECRET, SERVICE}, False),
    "a branch in a line": ("apiVersion: v1\nkind: {% if x %}Secret{% else %}Service{% endif %}\n", {SECRET, SERVICE}, False),
    "a choice": ("apiVersion: v1\nkind: {{ 'Secret' if x else 'Service' }}\n", {SECRET, SERVICE}, False),
    "a choice in quotes": ("apiVersion: v1\nkind: \"{{ 'Secret' if x else 'Service' }}\" # why\n", {SECRET, SERVICE}, False),
    "a choice of choices": ("apiVersion: v1\nkind: {{ 'Secret' if x else ('Service' if y else 'Secret') }}\n", {SECRET, SERVICE}, False),
    "a literal": ("apiVersion: {{ 'v1' }}\nkind: Secret\n", {SECRET}, False),
    "a choice in a flow mapping": ("{apiVersion: v1, kind: {{ 'Secret' if x else 'Service' }}, metadata: {name: a}}\n", {SECRET, SERVICE}, False),
    "a choice of a part": ("apiVersion: {{ 'apps/' if x else 'batch/' }}v1\nkind: A\n", {Kind("apps", "v1", "A"), Kind("batch", "v1", "A")}, False),
    "choices by one condition": ("apiVersion: {{ 'apps/v1' if x.y else 'v1' }}\nkind: {{ 'Deployment' if x.y else 'Service' }}\n", {DEPLOYMENT, SERVICE}, False),
    "choices by two conditions": ("apiVersion: {{ 'v1' if x else 'v2' }}\nkind: {{ 'A' if y else 'B' }}\n", {Kind("", v, k) for v in ("v1", "v2") for k in "AB"}, False),
    "branches by one condition": ("{% if x %}\napiVersion: apps/v1\n{% else %}\napiVersion: v1\n{% endif %}\nmetadata: {}\n{% if x %}\nkind: Deployment\n{% else %}\nkind: Service\n{% endif %}\n", {DEPLOYMENT, SERVICE}, False),
    "branches by two conditions": ("{% if x %}\napiVersion: v1\n{% else %}\napiVersion: v2\n{% endif %}\n{% if y %}\nkind: A\n{% else %}\nkind: B\n{% endif %}\n", {Kind("", v, k) for v in ("v1", "v2") for k in "AB"}, False),
    "a choice in an included file": ("apiVersion: v1\n{% include 'choice' %}\n", {SECRET, SERVICE}, False),
    "a choice in a loop": ("{% for i in x %}\n---\napiVersion: v1\nkind: {{ 'Secret' if i else 'Service' }}\n{% endfor %}\n", {SECRET, SERVICE}, True),
    "a flow mapping": ("{apiVersion: v1, kind: Secret, metadata: {name: {{ x }}}}\n", {SECRET}, False),
    "a flow mapping of mappings": ("{metadata: {kind: Nested, apiVersion: v9}, apiVersion: v1, kind: Secret}\n", {SECRET}, False),
    "nested ones do not count": ("apiVersion: v1\nkind: Secret\nspec:\n  ref:\n    apiVersion: v2\n    kind: Other\n  items:\n  - kind: Item\n", {SECRET}, False),
    "in a block scalar": ("apiVersion: v1\nkind: Secret\ndata: |\n  apiVersion: v2\n  kind: Other\n", {SECRET}, False),
    "behind a tag on the line": ("{% set x = 1 %}apiVersion: v1\nkind: Secret\n", {SECRET}, False),
    "an include": ("{% include 'document' %}\n", {SERVICE}, False),
    "half in an include": ("apiVersion: v1\n{% include 'kind' %}\n", {SECRET}, False),
    "a macro that makes documents": ("{% from 'macros' import service %}\n{{ service(1) }}\n", {SERVICE}, False),
    "a base": ("{% extends 'base' %}{% block spec %}x: 1{% endblock %}", {SERVICE}, False),
    "a macro that is chosen and given to another": ("{% macro a() %}\napiVersion: v1\nkind: Secret\n{% endmacro %}\n{% from 'macros' import service %}\n{% macro made(f) %}\n{{ f(1) }}\n{% endmacro %}\n{% set one = a if x else service %}\n{{ made(one) }}\n", {SECRET, SERVICE}, False),
    "a macro that is not called does not count": ("{% macro a() %}\napiVersion: v1\nkind: Secret\n{% endmacro %}\napiVersion: v1\nkind: Service\n", {SERVICE}, False),
    "branches by a condition and its opposite": ("apiVersion: {{ 'apps/v1' if x else 'v1' }}\n{% if not x %}\nkind: Service\n{% else %}\nkind: Deployment\n{% endif %}\n", {DEPLOYMENT, SERVICE}, False),
    "a document that a condition separates": ("apiVersion: v1\nkind: {{ 'Secret' if x else 'Service' }}\n{% if x %}\n---\napiVersion: apps/v1\nkind: Deployment\n{% endif %}\n", {DEPLOYMENT, SECRET, SERVICE}, True),
    "a rendered file does not count": ("apiVersion: v1\nkind: Secret\ndata: {x: {{ render('document') }}}\n", {SECRET}, False),
}  # fmt: skip
FILES = {
    "document": "apiVersion: v1\nkind: Service\n",
    "kind": "kind: Secret\n",
    "choice": "kind: {{ 'Secret' if x else 'Service' }}\n",
    "macros": "{% macro service(x) %}\napiVersion: v1\nkind: Service\n{% endmacro %}\n",
    "base": "apiVersion: v1\nkind: Service\nspec:\n  {% block spec %}{% endblock %}\n",
}


@pytest.mark.parametrize("case", KINDS)
def test_kinds_and_plurality_of_a_template_are_known_without_rendering(case):
    source, kinds, many = KINDS[case]
    template = library(source, FILES).text("main.j2")
    assert (set(template.kinds), template.many) == (kinds, many)


CONDITIONS = st.sampled_from(["a", "b", "not a", "a and b", "a or not b"])


def _written(key: str, texts: tuple[str, str]) -> st.SearchStrategy[str]:
    """The ways in which a field may be one of two texts."""
    first, second = texts
    inline = "{{% if {} %}}{}{{% else %}}{}{{% endif %}}"
    return st.one_of(
        st.just(f"{key}: {first}\n"),
        CONDITIONS.map(lambda test: f"{key}: {{{{ '{first}' if {test} else '{second}' }}}}\n"),
        CONDITIONS.map(lambda test: f"{key}: {inline.format(test, first, second)}\n"),
        CONDITIONS.map(lambda test: inline.format(test, f"\n{key}: {first}\n", f"\n{key}: {second}\n") + "\n"),
        CONDITIONS.map(lambda test: f"{{% if {test} %}}\n{key}: {second}\n{{% endif %}}\n"),
        st.just(f"{{{{ {key.lower()}() }}}}\n"),
    )


FIELDS = _written("apiVersion", ("v1", "v2")), _written("kind", ("A", "B"))
DOCUMENTS = st.one_of(
    st.builds("---\n{}{}".format, *FIELDS),
    st.builds("{{% if {} %}}\n---\n{}{}{{% endif %}}\n".format, CONDITIONS, *FIELDS),
    st.builds("{{% if {} %}}\n---\n{}{}{{% else %}}\n---\n{}{}{{% endif %}}\n".format, CONDITIONS, *FIELDS, *FIELDS),
)
MACROS = """\
{% macro apiversion() %}
apiVersion: {{ 'v1' if a else 'v2' }}
{% endmacro %}
{% macro kind() %}
{% if b %}
kind: A
{% else %}
kind: C
{% endif %}
{% endmacro %}
"""


@given(st.lists(DOCUMENTS, min_size=1, max_size=3).map("".join))
def test_the_known_kinds_are_those_that_some_values_render(text: str):
    made = library(MACROS + text)
    found: set[Kind] = set()
    for a, b in product((False, True), repeat=2):
        for each in made.text_mapping("main.j2").render({"a": a, "b": b}):
            if isinstance(each, dict) and {"apiVersion", "kind"} <= each.keys():
                found.add(Kind.of(each))
    assert made.possible("main.j2").kinds == (found, [])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("apiVersion: v1\nkind: {{ x }}\n", "templates/main.j2:2:1: kind must be plain text"),
        ("a: 1\napiVersion: {{ x }}\nkind: Secret\n", "templates/main.j2:2:1: apiVersion must be plain text"),
        ("apiVersion: v{{ x }}\nkind: Secret\n", "templates/main.j2:1:1: apiVersion must be plain text"),
        ("apiVersion: v1\nkind: '{{ x }}'\n", "templates/main.j2:2:1: kind must be plain text"),
        ("{apiVersion: v1, kind: {{ x }}}\n", "templates/main.j2:1:18: kind must be plain text"),
        (
            "{% if x %}\napiVersion: {{ x }}\n{% endif %}\nkind: Secret",
            "templates/main.j2:2:1: apiVersion must be plain text",
        ),
        ("apiVersion: v1\nkind: {{ 'A' if x }}\n", "kind must be plain text, .* or a choice of literals such as"),
        ("apiVersion: v1\nkind: {{ 'A' if x else y }}\n", "kind must be plain text"),
        ("apiVersion: v1\nkind: {{ 'A' ~ x }}\n", "kind must be plain text"),
        ("apiVersion: v1\nkind: {{ 'A: 1' if x else 'B' }}\n", "kind must be plain text"),
        ("apiVersion: {{ '1.2' if x else '3' }}\nkind: A\n", "apiVersion must be plain text"),
        ("{% set k = 'A' if x else 'B' %}\napiVersion: v1\nkind: {{ k }}\n", "kind must be plain text"),
        ("apiVersion: v1\nkind: {% if x %}A{% endif %}\n", "templates/main.j2:2:1: kind must be plain text"),
        ("{% include 'dynamic' %}", "templates/dynamic:1:1: kind must be plain text"),
        ("apiVersion: v1\nkind: List\n", "`kind: List` is not supported"),
        ("a: 1\n", "no apiVersion and kind in plain text"),
        ("kind: Secret\n", "no apiVersion and kind in plain text"),
        ("", "no apiVersion and kind in plain text"),
    ],
)
def test_a_computed_api_version_or_kind_is_refused(source, message):
    with pytest.raises(RuleErrors, match=message):
        library(source, {"dynamic": "kind: {{ x }}\n"}).text("main.j2")


@pytest.mark.parametrize(("x", "kind"), [(True, "Secret"), (False, "Service")])
def test_a_chosen_kind_is_rendered_as_text(x, kind):
    source = (
        "# {{ x }}\napiVersion: v1\nkind: {{ 'Secret' if x else 'Service' }}\nroleRef:\n  kind: {{ 'A' if x else 5 }}\n"
    )
    (document,) = library(source).text("main.j2").render({"x": x})
    assert document == {"apiVersion": "v1", "kind": kind, "roleRef": {"kind": "A" if x else 5}}


def test_the_kinds_of_an_inline_object_may_be_a_choice():
    def tree_of(version, kind):
        (node,), _ = read_yaml(f"{{apiVersion: {version}, kind: {kind}}}", "watches.yaml")
        return library().tree(node)

    chosen = tree_of("v1", "\"{{ 'Secret' if x else 'Service' }}\"")
    assert chosen.kinds == {SECRET, SERVICE}
    assert chosen.render({"x": False}) == [{"apiVersion": "v1", "kind": "Service"}]
    assert tree_of("\"{{ 'apps/v1' if x else 'v1' }}\"", "\"{{ 'Deployment' if x else 'Service' }}\"").kinds == {
        DEPLOYMENT,
        SERVICE,
    }
    assert tree_of("v1", "'{% if x %}Secret{% else %}Service{% endif %}'").kinds == {SECRET, SERVICE}
    for kind in ("\"{{ 'A' if x }}\"", "\"{{ 'A' if x else y }}\"", "\"{{ 'a' ~ 'b' }}\"", '"{{ x }}"'):
        refused = tree_of("v1", kind)
        assert not refused.kinds
        assert "kind must be plain text" in refused.kind_mistake.message
        assert "`{{ 'A' if spec.x else 'B' }}`" in refused.kind_mistake.message
        assert refused.kind_mistake.site.column == 24
    assert "apiVersion must be plain text" in tree_of('"{{ x }}"', "A").kind_mistake.message


def test_the_kind_of_an_inline_object_is_known_or_an_error():
    def tree_of(source):
        (node,), _ = read_yaml(source, "watches.yaml")
        return library().tree(node)

    assert tree_of("{apiVersion: apps/v1, kind: Deployment}").kinds == {DEPLOYMENT}
    assert tree_of("{apiVersion: apps/v1, kind: Deployment}").kind_mistake is None
    assert tree_of("{apiVersion: apps/v1, kind: Deployment}").many is False
    for source, message in [
        ("[1]", "an object is a mapping"), ("{kind: x}", "an object needs apiVersion"), ("{apiVersion: v1}", "an object needs kind"), ("{apiVersion: v1, kind: 5}", "an object needs kind"),
        ("{apiVersion: v1, kind: ''}", "an object needs kind"), ("{apiVersion: v1, kind: '{{ x }}'}", "kind must be plain text"),
    ]:  # fmt: skip
        made = tree_of(source)
        assert not made.kinds
        assert message in made.kind_mistake.message
    with pytest.raises(RuleErrors) as caught:
        tree_of("a: '{{ 1 + }}'\nb: ['{{ x | nope }}']\n'{{ y | nope }}': 1")
    assert [mistake.site.line for mistake in caught.value.mistakes] == [1, 2, 3]
    assert tree_of("{a: 1, b: null, c: [null, {d: null}]}").evaluate({}) == {"a": 1, "c": [{}]}
    assert tree_of("{a: 1}").constant
    assert tree_of("{a: 1}").render({}) == [{"a": 1}]
    assert tree_of("'{{ omit }}'").render({}) == []
    assert tree_of("'{{ 1 }}'").view({}) == 1
    assert tree_of("x").view({}) == "x"
    assert str(tree_of("'a{{ 1 }}'").view({})) == "a1"


REFERENCES = {
    "{{ a.b.c }}": {("a", "b", "c")},
    "{{ a['b']['c/d'] }}": {("a", "b", "c/d")},
    "{{ a.b[0].c }}": {("a", "b", None, "c")},
    "{{ a[x.y].c }}": {("a", None, "c"), ("x", "y")},
    "{{ a }}": {("a",)},
    "{% for i in a.b %}{{ i.c }}{% endfor %}": {("a", "b"), ("a", "b", None, "c")},
    "{% for i in a.b | sort | default([]) %}{{ i.c }}{% endfor %}": {("a", "b"), ("a", "b", None, "c")},
    "{% for k, v in a.b.items() %}{{ v.c }}{% endfor %}": {("a", "b")},
    "{% for i in a if i.x == b.y %}{% endfor %}": {("a",), ("a", None, "x"), ("b", "y")},
    "{% set x = a.b %}{{ x.c }}": {("a", "b"), ("a", "b", "c")},
    "{% set x %}{{ a.b }}{% endset %}{{ x }}": {("a", "b")},
    "{% with x = a.b %}{{ x.c }}{% endwith %}{{ c.d }}": {("a", "b"), ("a", "b", "c"), ("c", "d")},
    "{% macro m(x, z=a.b) %}{{ x.c }}{{ d.e }}{{ varargs }}{{ caller() }}{% endmacro %}{{ m(h.g) }}": {("a", "b"), ("d", "e"), ("h", "g")},
    "{% if a.b is defined %}{% endif %}": {("a", "b", "?")},
    "{{ a.b | length }}": {("a", "b", "?")},
    "{{ a.b | default(c.d) }}": {("a", "b"), ("c", "d")},
    "{{ a | map(attribute='x.y') | list }}": {("a", None, "x", "y")},
    "{{ a | selectattr('x', 'equalto', b.c) | list }}": {("a",), ("a", None, "x"), ("b", "c")},
    "{{ a | sort(attribute='x') }}": {("a",), ("a", None, "x")},
    "{{ a | sum(attribute='0.x') }}": {("a", None, None, "x")},
    "{{ a.b ~ c.d + e.f }}": {("a", "b"), ("c", "d"), ("e", "f")},
    "{{ a.b if c.d else e.f }}": {("a", "b"), ("c", "d"), ("e", "f")},
    "{{ [a.b, {'x': c.d}] }}": {("a", "b"), ("c", "d")},
    "{{ a.b.upper() }}": {("a", "b")},
    "{{ f(a.b, *c.d, **e.g) }}": {("a", "b"), ("c", "d"), ("e", "g")},
    "{{ (a or b).c }}": {("a",), ("b",)},
    "{{ a.b[1:c.d] }}": {("a", "b", None), ("c", "d")},
    "{% for i in [1] %}{{ loop.index }}{% endfor %}": set(),
    "{% call(i) m(a.b) %}{{ i.x }}{{ c.d }}{% endcall %}": {("a", "b"), ("c", "d")},
    "{% filter indent(a.b) %}{{ c.d }}{% endfilter %}": {("a", "b"), ("c", "d")},
    "{% set x | indent(4) %}{{ c.d }}{% endset %}": {("c", "d")},
    "{{ 1 if a.b is equalto(c.d) }}": {("a", "b"), ("c", "d")},
    "{% include 'i' %}": {("v", "w")},
    "{% set v = 1 %}{% include 'i' %}": set(),
    "{{ render('i') }}": {("v", "w")},
    "{{ file('i') }}": set(),
    "{# {{ a.b }} #}'{% raw %}{{ c.d }}{% endraw %}'": set(),
}  # fmt: skip


@pytest.mark.parametrize("source", REFERENCES)
def test_references_of_a_template_are_known_as_paths(source):
    found = paths_read(source, {"i": "{{ v.w }}"})
    assert {path for path in found if path[0] not in {"m", "f"}} == REFERENCES[source]


def test_names_calls_and_assignments_are_known_with_their_lines():
    source = "{% set x = a.b %}\n{% for i, j in c %}\n- {{ i | upper }}{{ now() }}\n{% endfor %}\n{% import 'm' as l %}\n{% from 'm' import f as g, h %}\n- {{ x.items() }}{{ y is odd }}"
    template = library(source, {"m": "{% macro f() %}{{ z | lower }}{% endmacro %}{% set h = 1 %}"}).text_mapping(
        "main.j2"
    )
    assert template.names == {"a", "c", "now", "y", "z"}
    calls = {(name, site.path, site.line) for name, site in template.calls}
    main = "templates/main.j2"
    assert {
        ("upper", main, 3),
        ("now", main, 3),
        (".items", main, 7),
        ("odd", main, 7),
        ("lower", "templates/m", 1),
    } <= calls
    assert {(name, site.path, site.line) for name, site in template.assigned} == {
        ("x", main, 1), ("i", main, 2), ("j", main, 2), ("l", main, 5), ("g", main, 6), ("h", main, 6), ("f", "templates/m", 1), ("h", "templates/m", 1),
    }  # fmt: skip
    assert template.files == {"main.j2", "m"}
    assert {reference.site for reference in template.references if reference.name == "c"} == {Site(main, 2)}


def test_names_and_references_include_those_of_rendered_templates():
    made = Library({"r": "{{ c.d }}{% include 'i' %}", "i": "{{ e.f | lower }}"})
    string = made.string("{{ a.b }}{{ render('r') }}", HERE)
    assert {reference.path for reference in string.references} == {("a", "b"), ("c", "d"), ("e", "f")}
    assert string.names == {"a", "c", "e", "render"} or string.names == {"a", "c", "e"}
    assert "lower" in {name for name, _ in string.calls}
    assert made.expression("a.b > c", HERE).names == {"a", "c"}
    assert made.string("plain", HERE).names == frozenset()


def test_a_template_included_several_times_is_read_once():
    made = Library({"a": "{% include 'c' %}", "b": "{% include 'c' %}", "c": "x: 1"})
    assert made.text_mapping("a").render({}) == made.text_mapping("b").render({}) == [{"x": 1}]
    assert made.source("c") is made.source("c")


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "many"),
    [
        (POD, False),
        ("---\n" + POD, False),
        ("{% set x = 1 %}\n\n---\n" + POD, False),
        ("---\n" + POD + "---\n" + POD, True),
        (POD + "---\n" + POD, True),
        ("{% for x in spec.xs %}\n---\n" + POD + "{% endfor %}\n", True),
        ("{{ spec.x }}\n---\n" + POD, True),
    ],
)
def test_a_document_marker_before_the_first_document_makes_no_list(text, many):
    assert Library({"a.j2": text}).text("a.j2").many is many
