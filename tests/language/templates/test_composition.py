"""Includes, imports, macros, inheritance, loops and the helpers of Jinja, over objects."""

from __future__ import annotations

from typing import ClassVar

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates import RuleErrors
from ruleop.language.templates.compile import Library
from tests.language.templates.rendering import documents, evaluate, render, scope


class TestIncludes:
    def test_an_include_is_laid_out_at_the_column_of_its_tag(self):
        files = {"i": "x: {{ v }}\nl:\n- {{ v }}\n"}
        assert render("a:\n    {% include 'i' %}\nb: 1", files, v=2) == {"a": {"x": 2, "l": [2]}, "b": 1}
        assert render("a: '{% include 'i' %}'", {"i": "x{{ v }}"}, v=2) == {"a": "x2"}

    def test_an_include_sees_the_names_around_it_unless_it_is_without_context(self):
        assert render(
            "{% set w = 1 %}\n{% for i in [5] %}\n{% include 'i' %}\n{% endfor %}",
            {"i": "a: {{ w }}{{ i }}{{ v }}"},
            v=3,
        ) == {"a": "153"}
        with pytest.raises(RenderError, match="v"):
            render("{% include 'i' without context %}", {"i": "a: {{ v }}"}, v=3)
        assert render("{% include 'i' without context %}", {"i": "a: {{ v | default(1) }}"}, v=3) == {"a": 1}

    def test_an_include_may_be_missing_with_ignore_missing_or_alternatives(self):
        assert render("a: 1\n{% include 'no' ignore missing %}\nb: 2") == {"a": 1, "b": 2}
        assert render("{% include ['no', 'i'] %}", {"i": "a: 1"}) == {"a": 1}
        with pytest.raises(
            RuleErrors, match=r"templates/main.j2:2: templates/lables does not exist \(did you mean labels\?\)"
        ):
            documents("a: 1\n{% include 'lables' %}", {"labels": ""})
        with pytest.raises(RenderError, match="none of these templates exists"):
            render("a: 1\n{% include ['no', 'nope'] %}")

    def test_a_missing_include_inside_an_include_is_found_at_load(self):
        with pytest.raises(RuleErrors, match=r"templates/i:1: templates/deeper does not exist"):
            documents("{% include 'i' %}", {"i": "{% include 'deeper' %}"})

    def test_an_include_may_contain_documents(self):
        assert documents("a: 1\n{% include 'i' %}\n", {"i": "---\nb: 1\n"}) == [{"a": 1}, {"b": 1}]

    def test_an_indented_include_in_a_filter_block_still_works(self):
        source = "a:\n  b:\n      {% filter indent(6) %}{% include 'i' %}{% endfilter %}\n"
        assert render(source, {"i": "x: {{ v }}\nl:\n  - q: {{ v }}\n"}, v=1) == {"a": {"b": {"x": 1, "l": [{"q": 1}]}}}


class TestNoResourceLeaksIntoAnother:
    def test_an_imported_macro_may_render_and_an_include_without_context_may_not(self):
        files = {"m": "{% set x = render('r') %}{% macro now() %}{{ render('r') }}{% endmacro %}", "r": "{{ v }}"}
        made = Library(
            {
                "main.j2": "{% import 'm' as m %}\na: {{ m.now() }}\n",
                "included.j2": "{% include 'i' without context %}",
                "i": "a: {{ render('r') }}",
                **files,
            }
        )
        imported, included = made.text_mapping("main.j2"), made.text_mapping("included.j2")
        for value in (1, 2):
            assert imported.render(scope({"v": value})) == [{"a": str(value)}]
            with pytest.raises(RenderError, match=r"render\(\) has no resource here"):
                included.render(scope({"v": value}))

    def test_an_imported_macro_renders_for_the_current_resource(self):
        made = Library(
            {
                "main.j2": "{% import 'm' as m %}\na: {{ m.now() }}\n",
                "m": "{% macro now() %}{{ render('r') }}{% endmacro %}",
                "r": "v={{ v }}",
            }
        )
        template = made.text_mapping("main.j2")
        assert [template.render(scope({"v": value})) for value in (1, 2)] == [[{"a": "v=1"}], [{"a": "v=2"}]]

    def test_names_added_to_a_scope_between_renders_are_seen(self):
        names = scope({"v": 1})
        template = Library(
            {"main.j2": "a: {{ v }}\nb: {{ w | default(0) }}\nc: {{ render('r') }}", "r": "{{ w | default(0) }}"}
        ).text_mapping("main.j2")
        assert template.render(names) == [{"a": 1, "b": 0, "c": "0"}]
        names["w"] = 7
        assert template.render(names) == [{"a": 1, "b": 7, "c": "7"}]


class TestMacros:
    def test_macros_take_defaults_varargs_and_kwargs(self):
        macro = "{% macro m(a, b=2, c=a) %}{{ a }},{{ b }},{{ c }};{{ varargs | join('+') }};{{ kwargs.x | default('-') }}{% endmacro %}\n"
        assert render(macro + "a: {{ m(1) }}\nb: {{ m(1, 3, 4, 5, 6, x=7) }}\nc: {{ m(a=1, b=0) }}") == {
            "a": "1,2,1;;-",
            "b": "1,3,4;5+6;7",
            "c": "1,0,1;;-",
        }

    def test_wrong_macro_arguments_are_reported(self):
        with pytest.raises(RenderError, match="macro 'm' takes no keyword argument of a name that is used here"):
            render("{% macro m(a) %}{{ a }}{% endmacro %}\na: {{ m(1, z=2) }}")
        with pytest.raises(RenderError, match="takes not more than 1 argument"):
            render("{% macro m(a) %}{{ a }}{% endmacro %}\na: {{ m(1, 2) }}")
        with pytest.raises(RenderError, match="parameter 'a' was not provided"):
            render("{% macro m(a) %}{{ a }}{% endmacro %}\na: {{ m() }}")

    def test_call_blocks_with_and_without_arguments(self):
        macro = "{% macro each(l) %}\n{% for i in l %}\n{{ caller(i, loop.index) }}\n{% endfor %}\n{% endmacro %}\n"
        assert render(
            macro + "a:\n  {% call(item, n) each(v) %}\n  - name: {{ item }}\n    nr: {{ n }}\n  {% endcall %}\n",
            v=["x", "z"],
        ) == {"a": [{"name": "x", "nr": 1}, {"name": "z", "nr": 2}]}
        assert render("{% macro box() %}[{{ caller() }}]{% endmacro %}\na: x{% call box() %}b{% endcall %}y") == {
            "a": "x[b]y"
        }
        assert render(
            "{% import 'm' as m %}\na: {% call m.box() %}b{% endcall %}",
            {"m": "{% macro box() %}<{{ caller() }}>{% endmacro %}"},
        ) == {"a": "<b>"}

    def test_a_macro_in_a_mapping_can_be_called(self):
        assert render("{% macro m(a) %}<{{ a }}>{% endmacro %}{% set t = {'f': m} %}\na: {{ t.f(1) }}") == {"a": "<1>"}


class TestInheritance:
    BASE = "a: 1\n{% block body %}\nb: base\n{% endblock %}\nspec:\n  {% block inner scoped %}{% endblock %}\n"

    def test_blocks_are_overridden_and_super_renders_the_base_block(self):
        source = "{% extends 'base' %}\n{% block body %}\n{{ super() }}\nc: {{ v }}\n{% endblock %}\n"
        assert render(source, {"base": self.BASE}, v=2) == {"a": 1, "b": "base", "c": 2}

    def test_a_scoped_block_sees_the_loop(self):
        base = "l:\n{% for i in v %}\n{% block item scoped %}\n- {{ i }}\n{% endblock %}\n{% endfor %}\n"
        assert render(
            "{% extends 'base' %}\n{% block item %}\n- x{{ i }}\n{% endblock %}", {"base": base}, v=[1, 2]
        ) == {"l": ["x1", "x2"]}

    def test_self_renders_a_block_again(self):
        assert render("a: {% block b %}x{{ v }}{% endblock %}\nc: {{ self.b() }}", v=1) == {"a": "x1", "c": "x1"}

    def test_text_outside_of_blocks_in_a_child_template_is_not_printed(self):
        assert render("{% extends 'base' %}\nz: 1\n{{ v }}\n{% set q = 1 %}", {"base": "a: 1"}, v=2) == {"a": 1}


class TestLoops:
    def test_loop_has_the_fields_of_jinja(self):
        names = ["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"]
        source = (
            "{% for i in [7, 8] %}\n- [" + ", ".join("{{ loop." + name + " }}" for name in names) + "]\n{% endfor %}"
        )
        assert render(source) == [[1, 0, 2, 1, True, False, 2, 1, 0], [2, 1, 1, 0, False, True, 2, 1, 0]]

    def test_loop_has_neighbours_cycle_and_changed(self):
        source = "{% for i in [1, 1, 2] %}\n- [{{ loop.previtem | default('-') }}, {{ loop.nextitem | default('-') }}, {{ loop.cycle('a', 'b') }}, {{ loop.changed(i) }}]\n{% endfor %}"
        assert render(source) == [["-", 1, "a", True], [1, 2, "b", False], [1, "-", "a", True]]

    def test_loops_support_else_filters_and_unpacking(self):
        assert render("{% for i in [] %}\na: 1\n{% else %}\nb: 1\n{% endfor %}") == {"b": 1}
        assert render("{% for i in [1, 2, 3, 4] if i % 2 %}\n- {{ i }}{{ loop.length }}\n{% endfor %}") == ["12", "32"]
        assert render("{% for k, v in v.items() %}\n{{ k }}: {{ v }}\n{% endfor %}", v={"a": 1, "b": [2]}) == {
            "a": 1,
            "b": [2],
        }
        assert render("{% for k in v %}\n- {{ k }}\n{% endfor %}", v={"a": 1, "b": 2}) == ["a", "b"]
        assert render("{% for c in 'ab' %}\n- {{ c }}\n{% endfor %}") == ["a", "b"]
        assert render("{% for g, l in v | groupby('k') %}\n{{ g }}: {{ l | map(attribute='n') | list }}\n{% endfor %}", v=[{"k": "a", "n": 1}, {"k": "B", "n": 2}, {"k": "a", "n": 3}]) == {
            "a": [1, 3], "B": [2],
        }  # fmt: skip

    def test_a_recursive_loop_inserts_its_inner_iterations(self):
        tree = [{"n": "a", "c": [{"n": "b", "c": [{"n": "d"}]}]}, {"n": "e"}]
        source = "{% for i in v recursive %}\n- name: {{ i.n }}\n  {% if i.c is defined %}\n  c:\n    {{ loop(i.c) }}\n  {% endif %}\n{% endfor %}"
        assert render(source, v=tree) == [{"name": "a", "c": [{"name": "b", "c": [{"name": "d"}]}]}, {"name": "e"}]

    @pytest.mark.parametrize(
        ("value", "what"), [(5, "a number"), (None, "null"), (True, "a boolean"), (1.5, "a number")]
    )
    def test_a_loop_over_a_scalar_reports_the_type_of_the_value(self, value, what):
        with pytest.raises(RenderError, match=f"a loop needs a list or a mapping, not {what}"):
            render("{% for i in v %}\n- 1\n{% endfor %}", v=value)

    def test_names_set_in_a_loop_end_with_it_and_namespaces_keep_values(self):
        source = "{% set x = 1 %}{% set ns = namespace(n=0) %}\n{% for i in [1, 2] %}{% set x = i %}{% set ns.n = ns.n + i %}{% endfor %}\na: {{ x }}\nb: {{ ns.n }}\nc: {{ ns.m | default('none') }}"
        assert render(source) == {"a": 1, "b": 3, "c": "none"}


class TestHelpers:
    def test_cycler_and_joiner_work_as_in_jinja(self):
        source = "{% set c = cycler('a', 'b') %}{% set j = joiner('|') %}\na: {{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}\nb: {% for i in [1, 2] %}{{ j() }}{{ i }}{% endfor %}\nc: {{ c.reset() | default('', true) }}{{ c.next() }}"
        assert render(source) == {"a": "abaa", "b": "1|2", "c": "a"}

    def test_dict_and_range_work_as_in_jinja(self):
        assert evaluate("dict(a=1, b=2)") == {"a": 1, "b": 2}
        assert evaluate("dict(v, b=2)", v={"a": 1}) == {"a": 1, "b": 2}
        assert evaluate("dict([['a', 1]])") == {"a": 1}
        assert evaluate("range(2, 6, 2) | list") == [2, 4]
        assert evaluate("range(3)") == [0, 1, 2]
        assert evaluate("range(3)[1]") == 1
        assert evaluate("range(5)[1:3]") == [1, 2]
        assert evaluate("range('2' | quantity) | list") == [0, 1]
        for wrong in ("'3'", "1.5", "true", "none"):
            with pytest.raises(RenderError, match="range takes whole numbers"):
                evaluate(f"range({wrong})")

    def test_omit_leaves_out_its_field(self):
        assert render("a: {{ omit }}\nb: {{ 1 if false else omit }}\nc: 1") == {"c": 1}


class TestFiles:
    FILES: ClassVar = {
        "x.conf": "a={{ v }}\n{# kept #}\n",
        "x.conf.j2": "a={{ v }}\n{# gone #}\nb=${#c}\n{% for i in [1] %}\n{{ i }}\n{% endfor %}\n",
    }

    def test_file_inserts_a_file_verbatim_and_render_inserts_a_rendered_one(self):
        source = "data:\n  x.conf: {{ file('x.conf') }}\n  y.conf: {{ render('x.conf.j2') }}\n  z.conf: |\n    {{ file('x.conf') }}\n"
        assert render(source, self.FILES, v="a: b") == {
            "data": {
                "x.conf": "a={{ v }}\n{# kept #}\n",
                "y.conf": "a=a: b\nb=${#c}\n1\n",
                "z.conf": "a={{ v }}\n{# kept #}\n\n",
            }
        }

    def test_a_render_sees_the_scope_but_not_the_names_that_the_template_set(self):
        assert render("{% set w = 1 %}\na: {{ render('r') }}", {"r": "{{ v }}{{ w | default('-') }}"}, v=2) == {
            "a": "2-"
        }

    def test_a_missing_file_of_file_or_render_is_found_at_load(self):
        for word in ("file", "render"):
            with pytest.raises(
                RuleErrors,
                match=r"templates/main.j2:2: templates/nginx.cnf does not exist \(did you mean nginx.conf\?\)",
            ):
                documents(f"a: 1\nb: {{{{ {word}('nginx.cnf') }}}}", {"nginx.conf": ""})

    def test_nested_renders_are_limited_to_a_depth_of_twenty(self):
        files = {f"r{number}": f"{{{{ render('r{number + 1}') }}}}" for number in range(30)}
        assert render("a: {{ render('r11') }}", {**files, "r30": "x"}) == {"a": "x"}
        with pytest.raises(RenderError, match="render each other recursively"):
            render("a: {{ render('r10') }}", {**files, "r30": "x"})

    def test_a_verbatim_file_may_contain_text_that_is_invalid_in_a_template(self):
        assert render("a: {{ file('x') }}", {"x": "{{ {% \ufdd0"}) == {"a": "{{ {% \ufdd0"}

    def test_a_syntax_error_in_a_rendered_template_is_found_at_load_with_its_file(self):
        with pytest.raises(RuleErrors, match=r"templates/r:2"):
            documents("a: {{ render('r') }}", {"r": "x\n{{ 1 + }}"})

    def test_an_error_in_a_rendered_template_names_its_file(self):
        with pytest.raises(RenderError, match=r"templates/r:2: v.x is not set"):
            render("a: {{ render('r') }}", {"r": "x\n{{ v.x }}"}, v={})


def test_from_yaml_and_from_json_parse_text():
    assert evaluate("v | from_yaml", v="a: [1, yes, 0777]\nb: x") == {"a": [1, True, 511], "b": "x"}
    assert evaluate("v | from_json", v='{"a": [1, null]}') == {"a": [1, None]}
    assert evaluate("(v | from_yaml).items", v="items: 3") == 3
    assert evaluate("v | from_yaml", v="") is None
    assert evaluate("v | to_yaml | from_yaml", v={"a": [1, {"b": "2"}]}) == {"a": [1, {"b": "2"}]}
    for text in ("a: &x 1", "a: *x", "!t a", "a: [", "a: 1\na: 2", "<<: {}"):
        with pytest.raises(RenderError, match="from_yaml: not YAML, or YAML with anchors or tags") as caught:
            evaluate("v | from_yaml", v=text)
        assert text not in caught.value.message
    with pytest.raises(RenderError, match="from_json: not JSON"):
        evaluate("v | from_json", v="{a: 1}")
    with pytest.raises(RenderError, match=r"main.j2:3:3: from_yaml: not YAML"):
        render("{% set t %}\na: 1\n b: {{ v }}\n{% endset %}\na: {{ t | from_yaml }}", v=1)
    with pytest.raises(RenderError, match="from_json"):
        render("{% set t %}{{ '{' }}{% endset %}\na: {{ (t ~ '') | from_json | length }}{{ (t | string) | from_json }}")
    assert evaluate("'' | from_yaml | default('none', true)") == "none"


def test_repeated_renders_are_equal():
    template = Library(
        {
            "main.j2": "{% for k, v in v | dictsort %}\n{{ k }}: {{ v }}-{{ v | sha256(8) }}\n{% endfor %}\nz:\n  {{ v }}\n"
        }
    ).text_mapping("main.j2")
    value = {f"k{i}": i for i in range(9, 0, -1)}
    renders = [template.render(scope({"v": value})) for _ in range(100)]
    assert all(list(each[0]) == list(renders[0][0]) and each == renders[0] for each in renders)
