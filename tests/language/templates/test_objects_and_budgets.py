"""Views of lists of objects, limits within this process, and other rare cases."""

from __future__ import annotations

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates import Lazy, ObjectsView, Origin, TemplateFunction, Waiting, plain, view
from ruleop.language.templates.compile import Library
from ruleop.language.templates.values.cost import MAX_OUTPUT, Exhausted, measure
from ruleop.language.templates.values.faults import Fault
from tests.language.templates.rendering import HERE, documents, evaluate, library, render, scope

PODS = [
    {"kind": "Pod", "metadata": {"name": "a"}},
    {"kind": "Job", "metadata": {"name": "a"}},
    {"kind": "Pod", "metadata": {"name": "7"}},
]


class TestListsOfObjects:
    def value(self, expression):
        return library().expression(expression, HERE).evaluate({"pods": ObjectsView(PODS, "pods", Origin.LATER)})

    def test_an_item_of_a_list_is_found_by_name_kind_and_name_or_index(self):
        assert self.value("pods['a'].kind") == "Pod"
        assert self.value("pods['Job/a'].kind") == "Job"
        assert self.value("pods[1].kind") == "Job"
        assert self.value("pods | length") == 3
        assert self.value("pods | map(attribute='metadata.name') | list") == ["a", "a", "7"]

    def test_a_name_of_digits_is_not_an_index(self):
        assert self.value("pods['7'].metadata.name") == "7"
        assert self.value("pods['Pod/7'].metadata.name") == "7"
        assert self.value("pods[2].metadata.name") == "7"

    def test_a_missing_item_of_a_list_is_waited_for_by_name(self):
        waited = [
            ("pods['b'].kind", "pods.b.kind"),
            ("pods['Service/a'].x", "pods['Service/a'].x"),
            ("pods['1'].kind", "pods['1'].kind"),
        ]
        for expression, path in waited:
            with pytest.raises(Waiting) as caught:
                self.value(expression)
            assert caught.value.path == path
        assert self.value("pods['b'] is defined") is False


class TestViews:
    def test_views_compare_and_print_as_their_values_and_cannot_be_hashed(self):
        one, other = view("a", {"x": [1, {"z": 2}]}), view("b", {"x": [1, {"z": 2}]})
        assert one == other
        assert one == {"x": [1, {"z": 2}]}
        assert one["x"] == [1, {"z": 2}]
        assert one["x"][1:] == [{"z": 2}]
        assert "x" in one
        assert 5 not in one
        assert 1 in one["x"]
        assert repr(one["x"]) == "<a.x>"
        for value in (one, one["x"]):
            with pytest.raises(TypeError):
                hash(value)

    def test_the_truth_of_a_view_is_that_of_its_value(self):
        assert evaluate("1 if v else 2", v={}) == 2
        assert evaluate("1 if v.l else 2", v={"l": [0]}) == 1

    def test_plain_converts_template_values_to_json(self):
        assert plain((1, view("a", {"x": 1}), {"k": range(2)})) == [1, {"x": 1}, {"k": [0, 1]}]
        for value in (object(), len, {1, 2}, iter([])):
            with pytest.raises(Fault, match="a function is not data"):
                plain(value)
        with pytest.raises(Fault, match="two keys of a mapping are the same when converted to text"):
            plain({1: "a", "1": "b"})
        with pytest.raises(RenderError, match="two keys of a mapping"):
            render("a: {{ {1: 'a', '1': 'b'} }}")
        assert render("a: {{ {1: 'a', true: 'b', 1.5: 'c'} }}") == {"a": {"1": "b", "1.5": "c"}}


class TestBudgets:
    """What `test_limits` shows from outside, with its words."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("source", "message"),
        [
            (
                "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}",
                "the templates do too much work for one resource",
            ),
            ("a: {{ 'x' * 4000000 }}", "text of 4,000,000 characters; at most 3,145,728 are allowed"),
            ("a: {{ [1] * 100001 }}", "a list of 100,001 items; at most 100,000 are allowed"),
            ("a: {{ range(10001) }}", "range of 10,001 numbers; at most 10,000 are allowed"),
            (
                "{% set n = namespace(n=7) %}{% for i in range(99) %}{% set n.n = n.n * 7 * n.n %}{% endfor %}",
                "a number of more than 512 bits",
            ),
            ("a: {{ 10 ** 600 }}", r"\{\{ 10 \*\* 600 \}\}: a power of more than 512 bits"),
            ("a: {{ 'a' | regex_match('a' * 4097) }}", "the regular expression has more than 4,096 characters"),
            (
                "a:\n{% for i in range(20) %}\n- {{ v }}\n{% endfor %}",
                f"the printed values have more than {MAX_OUTPUT:,} characters",
            ),
            ("a: {{ [v] * 20 }}", f"data of more than {MAX_OUTPUT:,} characters"),
            ("{% set x %}{{ v }}{{ v }}{{ v }}{{ v }}{% endset %}\na: {{ x }}", "text of "),
            ("{% for i in range(5001) %}\n---\na: 1\n{% endfor %}", "more than 5,000 documents; 5,000 are allowed"),
            (
                "{% set n = namespace(n=1) %}{% for i in range(130) %}{% set n.n = [n.n] %}{% endfor %}\na: {{ n.n }}",
                "data nested deeper than 128 levels",
            ),
            ("a: {{ v }}" + "x" * 3_200_000, "text of 4,200,000 characters"),
            (
                "{% macro m() %}{{ m() }}{% endmacro %}\na: {{ m() }}",
                "macros, includes or values are nested too deeply",
            ),
            ("a: {{ render('main.j2') }}", "render: templates render each other recursively"),
        ],
    )
    def test_an_exceeded_limit_reports_its_number_and_template(self, source, message):
        with pytest.raises(RenderError, match=message) as caught:
            documents(source, v="a" * 1_000_000)
        assert caught.value.site.path == "templates/main.j2"

    def test_a_value_in_a_comment_costs_nothing(self):
        assert render("a: 1 # {{ 'x' * 4000000 }}") == {"a": 1}

    @pytest.mark.slow
    def test_a_let_counts_against_the_budget_of_the_render_that_reads_it(self):
        made = library("a: {{ v }}{{ w }}")
        burn = made.expression("range(9000) | map('string') | list | length", HERE)
        names = scope({})

        class Burning:
            asked = 0

        def force():
            Burning.asked += 1
            for _ in range(60):
                burn.value(names)
            return 1

        with pytest.raises(RenderError, match="too much work"):
            made.text_mapping("main.j2").render({"v": Lazy("v", force), "w": Lazy("w", force)})
        assert Burning.asked

    @pytest.mark.slow
    def test_measuring_data_stops_at_the_limit(self):
        values, weight = measure({"a": ["x" * 100, 1]})
        assert values == 4
        assert weight >= 100
        with pytest.raises(Exhausted, match="data of more than"):
            measure([[1] * 1000] * 1000)

    def test_data_with_unpaired_surrogates_is_measured(self):
        assert render("a:\n  {{ v }}\nb: {{ v }}", v={"x": "\ud800"}) == {"a": {"x": "\ud800"}, "b": {"x": "\ud800"}}
        with pytest.raises(RenderError, match="cannot be written as JSON"):
            evaluate("v | to_json", v={"x": "\ud800"})

    def test_running_out_of_memory_is_an_error_of_the_template(self):
        made = library("a: {{ f() }}\n")

        def fail():
            raise MemoryError

        with pytest.raises(RenderError, match="needs too much memory"):
            made.text_mapping("main.j2").render({"f": TemplateFunction("f", fail)})


@pytest.mark.slow
def test_a_template_may_have_many_slots():
    source = "".join(f"k{number}: {{{{ v }}}}\n" for number in range(700))
    assert render(source, v=3) == {f"k{number}": 3 for number in range(700)}
    assert render("a:\n{% for i in range(2500) %}\n- {{ i }}\n{% endfor %}") == {"a": list(range(2500))}


def test_a_template_renders_the_same_result_each_time():
    source = "a: {{ v.i }}\nb: x-{{ v.s }}-{{ v.i }}\nc: '{{ v.b }}'\nd: {e: {{ v.m }}, f: [1, {{ v.l }}, {g: null}]}\nh: {{ v.f }}\ni: {{ v.s }}\nj: {k: [1, {l: 'm'}], n1: true}\n"
    template = Library({"main.j2": source}).text_mapping("main.j2")
    for number in range(5):
        values = {"i": number, "s": f"s{number}", "b": bool(number % 2), "m": {"x": number}, "l": [number], "f": 1.5}
        assert template.render(scope({"v": values})) == [
            {"a": number, "b": f"x-s{number}-{number}", "c": "true" if number % 2 else "false", "d": {"e": {"x": number}, "f": [1, [number], {}]}, "h": 1.5, "i": f"s{number}", "j": {"k": [1, {"l": "m"}], "n1": True}}
        ]  # fmt: skip
    fresh = template.render(scope({"v": values}))
    fresh[0]["j"]["k"].append("changed")
    assert template.render(scope({"v": values}))[0]["j"]["k"] == [1, {"l": "m"}]


def test_the_fast_and_the_slow_layout_give_the_same_result():
    source = "a: {{ v }}\nb: x{{ v }}\nc: '{{ v }}'\n"
    template = Library({"main.j2": source}).text_mapping("main.j2")
    for value in [1, "x", 2.5, True, "", 0, False, -1.5, "y"] * 3:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        assert template.render(scope({"v": value})) == [{"a": value, "b": f"x{text}", "c": text}]
    with pytest.raises(RenderError, match="JSON cannot represent"):
        Library({"main.j2": "a: {{ v * 1e300 * 1e300 }}\n"}).text_mapping("main.j2").render({"v": 1.5})
