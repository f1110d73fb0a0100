"""An undefined value is never silently used as a value; its meaning depends on its origin."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.errors import RenderError, Site
from ruleop.language.templates import (
    OMIT,
    Broken,
    Disabled,
    Fault,
    Later,
    Lazy,
    Missing,
    NotThereYet,
    Origin,
    Waiting,
    read_yaml,
    view,
)
from ruleop.language.templates.compile import Library
from ruleop.language.templates.values.undefined import NotLive, Unknown
from tests.language.templates.rendering import HERE, documents, evaluate, library, render, tree

# What each origin says when its absence is used; `a` is there and has no `b`.
ABSENT: dict[str, tuple[Any, type[Exception], str]] = {
    "given": (view("a", {"x": 1}), RenderError, r"a\.b\S* is not set \(a has x\); use `default\(...\)`"),
    "later": (view("a", {"x": 1}, Origin.LATER), Waiting, r"a\.b\S* is not available yet"),
    "live": (view("a", {"x": 1}, Origin.LIVE), RenderError, r"a\.b\S* does not exist, and `live` does not wait"),
    "unwanted": (Disabled("a"), RenderError, r"a\.b\S* is undefined because `when` of the child a is false"),
    "broken": (Broken("a", Fault("a burnt down")), RenderError, r"a burnt down"),
    "waiting": (Broken("a", NotThereYet("a (Secret/x)")), Waiting, r"a \(Secret/x\) is not available yet"),
}

USES = [
    "a.b", "a.b.c", "a.b[0]", "a.b['c'].d", "[1][a.b]", "{'k': 1}[a.b]", "'x'[a.b]",
    "a.b + 1", "1 + a.b", "a.b - 1", "1 - a.b", "a.b * 2", "2 * a.b", "a.b / 2", "2 / a.b", "a.b // 2", "2 // a.b", "a.b % 2", "2 % a.b", "a.b ** 2", "2 ** a.b",
    "-a.b", "+a.b", "a.b ~ 'x'", "'x' ~ a.b", "'%s' % a.b",
    "a.b == 1", "1 == a.b", "a.b != 1", "1 != a.b", "a.b < 1", "1 < a.b", "a.b <= 1", "a.b > 1", "a.b >= 1", "a.b == a.b", "1 < 2 < a.b", "a.b == ''", "'' == a.b",
    "a.b in [1]", "1 in a.b", "a.b not in [1]", "1 not in a.b", "a.b in 'text'", "a.b in {'x': 1}", "'x' in [a.b]", "[a.b] == [1]", "[1] == [a.b]",
    "not a.b", "a.b and true", "true and a.b", "a.b or true", "false or a.b", "1 if a.b else 2", "a.b if true",
    "[a.b]", "{'k': a.b}", "{a.b: 1}", "(a.b, 1)", "[[a.b]] | to_json", "a.b[1:]", "'x'[a.b:]",
    "a.b.upper()", "'x'.replace(a.b, 'y')", "'x'.join(a.b)", "','.join([a.b])", "a.b.items()", "range(a.b)", "dict(k=a.b)", "dict(a.b)",
    "a.b is none", "a.b is string", "a.b is mapping", "a.b is sequence", "a.b is iterable", "a.b is number", "a.b is odd", "a.b is sameas(1)", "1 is sameas(a.b)", "a.b is in([1])",
    "1 is in(a.b)", "1 is equalto(a.b)", "a.b is equalto(1)", "1 is divisibleby(a.b)",
    *(
        f"a.b | {name}"
        for name in (
            "upper", "string", "int", "float", "length", "list", "first", "last", "sort", "unique", "min", "max", "sum", "join", "reverse", "items", "dictsort", "to_yaml",
            "to_json", "from_yaml", "from_json", "b64encode", "b64decode", "sha256", "quote", "shell_quote", "regex_match('x')", "regex_replace('x', 'y')",
            "regex_findall('x')", "dns_label", "quantity", "combine({})", "condition('Ready')", "map('upper')", "map(attribute='x')", "select", "selectattr('x')", "rejectattr('x')",
            "groupby('x')", "batch(2)", "slice(2)", "indent", "trim", "truncate", "wordwrap", "center", "round", "abs", "urlencode", "split", "format", "title", "wordcount",
        )
    ),
    "'x' | replace('x', a.b)", "{} | combine(a.b)", "'x' | regex_replace('x', a.b)", "[1] | join(a.b)", "'x' | dns_label(a.b)", "[1] | map(a.b) | list", "'x' | indent(a.b)",
    "[a.b] | sort", "[a.b] | sum", "[a.b] | max", "[a.b] | join", "[a.b] | unique", "[a.b] | list", "[a.b] | first", "[a.b] | map('upper')", "[a.b] | select", "[a.b] | map('string')",
    "'x' | default(a.b) ~ a.b",
]  # fmt: skip


@pytest.mark.parametrize("origin", ABSENT)
@pytest.mark.parametrize("use", USES)
def test_using_an_undefined_value_is_an_error_or_a_wait(use, origin):
    value, error, message = ABSENT[origin]
    with pytest.raises(error, match=message) as caught:
        library().expression(use, HERE).evaluate({"a": value})
    assert (type(caught.value) is Waiting) is (error is Waiting)
    assert caught.value.site == HERE


@pytest.mark.parametrize("origin", ABSENT)
@pytest.mark.parametrize(
    "source",
    [
        "{% if a.b %}\nx: 1\n{% endif %}", "{% for i in a.b %}\nx: 1\n{% endfor %}", "x: {{ a.b }}", "x: '{{ a.b }}'", "x: y{{ a.b }}", "x:\n  {{ a.b }}", "{{ a.b }}: 1", "x: [{{ a.b }}]",
        "x:\n  q: 1\n  {{ a.b }}\n", "x: |\n  {{ a.b }}\n", "{% set y = a.b %}\nx: {{ y }}", "{% set y %}{{ a.b }}{% endset %}\nx: {{ y }}", "{% set y = a.b.c %}\nx: {{ y + 1 }}",
        "{% macro m(v) %}{{ v }}{% endmacro %}\nx: {{ m(a.b) }}", "{% macro m(v) %}{{ v }}{% endmacro %}\nx:\n  {{ m(a.b) }}\n", "x: {% filter upper %}{{ a.b }}{% endfilter %}",
        "{% with y = a.b %}\nx: {{ y }}\n{% endwith %}", "x: {{ {'k': a.b} }}", "x:\n  {{ {'k': a.b} }}\n", "x: {{ [a.b] }}", "x:\n  {{ [a.b] }}\n",
        "{% for i in [a.b] %}\nx: {{ i }}\n{% endfor %}", "{% set ns = namespace(v=a.b) %}\nx: {{ ns.v }}", "{% if x is defined and a.b %}\n{% endif %}{% if a.b == 1 %}{% endif %}",
    ],
)  # fmt: skip
def test_a_template_file_neither_drops_nor_prints_undefined_values(source, origin):
    value, error, message = ABSENT[origin]
    with pytest.raises(error, match=message) as caught:
        Library({"main.j2": source}).text_mapping("main.j2").render({"a": value})
    assert caught.value.site.path == "templates/main.j2"
    assert caught.value.site.line


LOOKS = {
    "a.b | default(1)": 1, "a.b.c | default(1)": 1, "a.b.c['d'][0].e | default(1)": 1, "a.b | default(omit)": None, "a.b | d('x')": "x", "a.b | default": "",
    "(a.b | default({})).x | default(2)": 2, "a.b | default(a.b) | default(3)": 3, "5 | default(a.b)": 5, "a.b | default(none) is none": True,
    "a.b is defined": False, "a.b is undefined": True, "a.b.c is defined": False, "a.b.c is not defined": True, "1 if a.b is defined else 2": 2,
    "a.b is defined and a.b > 1": False, "[a.b] | map('default', 4) | list": [4], "[a] | selectattr('b', 'defined') | list": [], "[a.b | default(1), 2] | max": 2,
}  # fmt: skip


@pytest.mark.parametrize("origin", ["given", "later", "live", "unwanted", "broken", "waiting"])
@pytest.mark.parametrize("look", LOOKS)
def test_default_and_is_defined_work_also_through_undefined_parents(look, origin):
    if "[a]" in look and origin not in {"given", "later", "live"}:
        return
    assert library().expression(look, HERE).evaluate({"a": ABSENT[origin][0]}) == LOOKS[look]


SKIPS = {
    "l | map(attribute='n') | list": [1, 3],
    "l | map(attribute='n', default=0) | list": [1, 0, 3],
    "l | map(attribute='m.x') | list": [5],
    "l | map(attribute='p.1') | list": [8],
    "l | sum(attribute='n')": 4,
    "l | sort(attribute='n', reverse=true) | map(attribute='n') | list": [3, 1],
    "l | sort(attribute='k,n') | map(attribute='n') | list": [1, 3],
    "l | selectattr('n') | list | length": 2,
    "l | selectattr('n', '>', 1) | map(attribute='n') | list": [3],
    "l | selectattr('n', 'defined') | list | length": 2,
    "l | selectattr('n', 'undefined') | map(attribute='k') | list": ["b"],
    "l | rejectattr('n', '>', 1) | map(attribute='k') | list": ["a", "b"],
    "l | rejectattr('n') | map(attribute='k') | list": ["b"],
    "l | rejectattr('n', 'defined') | map(attribute='k') | list": ["b"],
    "l | max(attribute='n') | to_json": '{"k":"a","n":3,"m":{"x":5},"p":[7,8]}',
    "(l | min(attribute='n')).n": 1,
    "l | join(',', attribute='n')": "1,3",
    "l | unique(attribute='n') | list | length": 2,
    "l | groupby('n') | map(attribute='grouper') | list": [1, 3],
    "l | groupby('n', default=0) | map(attribute='grouper') | list": [0, 1, 3],
    "l | groupby('k') | map(attribute='list') | map('length') | list": [2, 1],
}


@pytest.mark.parametrize("origin", [Origin.GIVEN, Origin.LATER, Origin.LIVE])
@pytest.mark.parametrize("expression", SKIPS)
def test_an_item_without_the_attribute_is_skipped(expression, origin):
    items = [{"k": "a", "n": 1}, {"k": "b"}, {"k": "a", "n": 3, "m": {"x": 5}, "p": [7, 8]}]
    assert library().expression(expression, HERE).evaluate({"l": view("l", items, origin)}) == SKIPS[expression]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "spec.autoscalng.min",
            "spec.autoscalng.min is not set (did you mean spec.autoscaling?); use `default(...)` if it may be missing",
        ),
        (
            "spec.autoscaling.mon",
            "spec.autoscaling.mon is not set (did you mean spec.autoscaling.min?); use `default(...)` if it may be missing",
        ),
        ("spec.list[7]", "spec.list[7] is not set (spec.list has 1 items); use `default(...)` if it may be missing"),
        (
            "spec.list[0].nme",
            "spec.list[0].nme is not set (did you mean spec.list[0].name?); use `default(...)` if it may be missing",
        ),
        ("spec.empty.x", "spec.empty.x is not set (spec.empty is empty); use `default(...)` if it may be missing"),
        (
            "spec['a/b']",
            "spec['a/b'] is not set (spec has autoscaling, list, empty, key, text); use `default(...)` if it may be missing",
        ),
        (
            "spec.list.name",
            "spec.list.name is not set (spec.list has 1 items); use `default(...)` if it may be missing",
        ),
        (
            "spec.autoscaling[spec.key]",
            "spec.autoscaling[...] is not set (spec.autoscaling has min); use `default(...)` if it may be missing",
        ),
        ("{'a': 1}[spec.key]", "this mapping[...] is not set; use `default(...)` if it may be missing"),
        ("{'a': 1}.b", "this mapping.b is not set; use `default(...)` if it may be missing"),
        ("[1][5]", "this list[5] is not set; use `default(...)` if it may be missing"),
        ("spec.text.x", "text has no field x"),
        ("spec.text[spec.key]", "text has no such field"),
        ("spec.autoscaling.min.x", "a number has no field x"),
        ("(1 == 1).x", "a boolean has no field x"),
        ("none.x", "null has no field x"),
        ("nothing", "'nothing' is undefined"),
        ("[] | first", "first: the list is empty; use `default(...)` if it may be"),
        ("[] | max", "max: the list is empty; use `default(...)` if it may be"),
    ],
)
def test_messages_have_the_path_and_a_similar_field_and_never_a_value(expression, message):
    spec = {"autoscaling": {"min": 1}, "list": [{"name": "n"}], "empty": {}, "key": "TOP-SECRET", "text": "TOP-SECRET"}
    with pytest.raises(RenderError) as caught:
        evaluate(expression, spec=spec)
    said = caught.value.message.removeprefix(f"{{{{ {expression} }}}}: ")
    assert said == message or (message.startswith("'nothing'") and "nothing" in said)
    assert "TOP-SECRET" not in str(caught.value)
    assert caught.value.expression == expression


def test_a_waiting_names_its_path_without_computed_keys():
    with pytest.raises(Waiting) as caught:
        library().expression("pods[spec.name].status.ip", HERE).evaluate(
            {"pods": view("pods", {}, Origin.LATER), "spec": view("spec", {"name": "kafka-0"})}
        )
    assert caught.value.path == "pods[...].status.ip"
    assert caught.value.expression == "pods[spec.name].status.ip"


def test_a_lenient_render_omits_only_unavailable_values():
    later, given = view("a", {"x": 1}, Origin.LATER), view("s", {})
    source = "p: {{ a.x }}\nq: {{ a.y }}\nr: t-{{ a.y }}\nu: {v: {{ a.y }}, w: 1}\nl: [{{ a.y }}, 2]\nb: |\n  {{ a.y }}\n{{ a.y }}: 1\nk:\n  z: 1\n  {{ a.y }}\nm:\n  {{ {'n': a.y} }}\nd:\n  - 1\n  {{ [a.y] }}\n"
    template = Library({"main.j2": source}).text_mapping("main.j2")
    expected = {"p": 1, "u": {"w": 1}, "l": [2], "k": {"z": 1}, "d": [1]}
    assert template.render({"a": later}, lenient=True) == [expected]
    with pytest.raises(Waiting):
        template.render({"a": later})
    with pytest.raises(RenderError, match="not set"):
        Library({"main.j2": source.replace("a.x", "s.x")}).text_mapping("main.j2").render(
            {"a": later, "s": given}, lenient=True
        )
    assert lenient_tree(
        '{p: "{{ a.x }}", q: "{{ a.y }}", r: "t-{{ a.y }}", l: ["{{ a.y }}", 2], "{{ a.y }}": 1, "{{ a.x }}": 3}', later
    ) == {"p": 1, "l": [2], "1": 3}


def lenient_tree(source: str, value: Any) -> Any:
    (node,), _ = read_yaml(source, "watches.yaml")
    return library().tree(node).evaluate({"a": value}, lenient=True)


def test_live_finds_objects_and_reports_missing_ones():
    live = view("live", {"app": {"spec": {"replicas": 3}}}, Origin.LIVE)
    assert library().expression("live.app.spec.replicas", HERE).value({"live": live}) == 3
    with pytest.raises(RenderError, match=r"live\.db\.spec does not exist, and"):
        library().expression("live.db.spec", HERE).value({"live": live})


def test_a_name_that_a_branch_did_not_set_is_undefined():
    with pytest.raises(RenderError, match="x"):
        render("{% if false %}{% set x = 1 %}{% endif %}\na: {{ x }}")


def test_required_has_its_own_message_but_still_waits():
    for missing in ("a.b", "none", "''"):
        with pytest.raises(RenderError, match="say which database"):
            evaluate(f"{missing} | required('say which database')", a={})
    assert evaluate("0 | required('x')") == 0
    with pytest.raises(Waiting):
        library().expression("a.b | required('x')", HERE).evaluate({"a": view("a", {}, Origin.LATER)})


class TestLazy:
    def test_an_unused_lazy_value_is_not_evaluated(self):
        def fail() -> Any:
            raise AssertionError

        assert render("a: 1", v=Lazy("v", fail)) == {"a": 1}

    def test_a_lazy_value_is_evaluated_once(self):
        asked = []

        def force() -> Any:
            asked.append(1)
            return 5

        assert render("a: {{ v }}\nb: {{ v }}", v=Lazy("v", force)) == {"a": 5, "b": 5}
        assert len(asked) == 1

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (Fault("it broke"), RenderError),
            (NotThereYet("db"), Waiting),
            (RenderError("it broke", Site("w", 3)), RenderError),
            (Waiting("db", Site("w", 3)), Waiting),
        ],
    )
    def test_an_error_of_a_lazy_value_is_raised_at_each_use(self, error, expected):
        def force() -> Any:
            raise error

        lazy = Lazy("v", force)
        for _ in range(2):
            with pytest.raises(expected, match=r"it broke|db is not available yet") as caught:
                library().expression("v", HERE).evaluate({"v": lazy})
            assert caught.value.site == getattr(error, "site", None) or caught.value.site == HERE
        assert library().expression("v is defined", HERE).evaluate({"v": lazy}) is False

    def test_a_fault_of_a_lazy_value_has_the_position_of_each_use(self):
        def force() -> Any:
            raise NotThereYet("db")

        lazy, sites = Lazy("v", force), []
        for source in ("a: {{ v }}", "\n\na: {{ v }}"):
            with pytest.raises(Waiting) as caught:
                documents(source, v=lazy)
            sites.append(caught.value.site.line)
        assert sites == [1, 3]

    def test_a_lazy_value_that_depends_on_itself_is_an_error(self):
        lazies: dict[str, Lazy] = {}
        lazies["v"] = Lazy("v", lambda: library().expression("v + 1", HERE).value(lazies))
        with pytest.raises(RenderError, match="v depends on itself"):
            library().expression("v", HERE).value(lazies)

    def test_a_view_may_contain_lazy_values_at_its_top_level(self):
        assert render("a: {{ v }}", v={"x": Lazy("x", lambda: 3), "q": view("q", {"r": 1})}) == {
            "a": {"x": 3, "q": {"r": 1}}
        }


def test_the_repr_of_an_undefined_value_is_only_its_type():
    assert repr(Missing("a")) == "<Missing>"
    assert isinstance(OMIT.step("x").fault(), Fault)
    assert str(Missing("a").step("b").fault()) == "a.b is not set; use `default(...)` if it may be missing"
    assert str(NotLive("live.a").step("b").fault()).startswith("live.a.b does not exist, and")
    assert str(Unknown("no such thing").step("x").fault()) == "no such thing"
    assert str(Unknown(name="x").fault()) == "x is undefined here"
    assert str(Later("a").step(0).step("b c").fault()) == "a[0]['b c'] is not available yet"
    for use in (bool, len, iter, str, hash, int, float):
        with pytest.raises(Fault):
            use(Missing("a"))


def test_errors_in_trees_have_the_site_of_the_string():
    with pytest.raises(RenderError) as caught:
        tree('a: 1\nb:\n  - "{{ v.x }}"\n', v={})
    assert (caught.value.site.path, caught.value.site.line, caught.value.site.column) == ("watches.yaml", 3, 5)
    assert caught.value.expression == "v.x"
