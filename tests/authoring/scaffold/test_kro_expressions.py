"""CEL of kro in Jinja: the same value for the same custom resource, or a refusal with its reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ruleop.authoring.scaffold.kro.cel_to_jinja import JinjaNames, names_in, translated
from ruleop.authoring.scaffold.kro.graphs import Cel, only_expression, parts
from ruleop.authoring.scaffold.kro.jinja_terms import InexpressibleError, JinjaTerm, text_literal
from ruleop.errors import RuleError, RuleopError
from ruleop.kubernetes.cel import EvaluationError, InvalidRuleError, NotEvaluatedError
from ruleop.kubernetes.cel.cel_compiler import compile_rule
from ruleop.kubernetes.cel.values import Budget, ListValue, to_value, type_of_schema
from ruleop.language.templates import NotThereYet, Waiting
from tests.language.templates.rendering import evaluate

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["name", "size", "on"],
    "properties": {
        "name": {"type": "string"},
        "size": {"type": "integer"},
        "port": {"type": "integer", "minimum": 1, "default": 80},
        "on": {"type": "boolean"},
        "ratio": {"type": "number"},
        "maybe": {"type": "string"},
        "words": {"type": "array", "items": {"type": "string"}, "default": []},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "users": {
            "type": "array",
            "default": [],
            "items": {
                "type": "object",
                "required": ["name", "age"],
                "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "mail": {"type": "string"}},
            },
        },
        "tls": {"type": "object", "default": {}, "properties": {"host": {"type": "string"}}},
        "db": {"type": "object", "properties": {"host": {"type": "string"}}},
    },
}
IDS = {"web": "web", "range": "range2"}


def jinja(text: str, *, lenient: bool = False, **variables: JinjaTerm) -> str:
    return translated(text, JinjaNames(SPEC, IDS, variables), lenient=lenient).code


def remarks(text: str, *, lenient: bool = False) -> tuple[str, ...]:
    return translated(text, JinjaNames(SPEC, IDS), lenient=lenient).remarks


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("schema.spec.name", "spec.name"),
        ("schema.spec.labels['a-b']", "spec.labels['a-b']"),
        ("schema.metadata.name + '-db'", "metadata.name + '-db'"),
        ("schema.kind", "cr.kind"),
        ("web.status.readyReplicas", "web.status.readyReplicas"),
        ("range.metadata.name", "range2.metadata.name"),
        ("schema.spec.on ? 1 : 2", "1 if spec.on else 2"),
        ("schema.spec.size > 1 && !schema.spec.on", "spec.size > 1 and not spec.on"),
        ("(schema.spec.size + 1) * 2", "(spec.size + 1) * 2"),
        ("has(schema.spec.maybe)", "spec.maybe is defined"),
        ("has(schema.spec.db.host)", "'host' in spec.db"),
        ("schema.spec.?maybe.orValue('x')", "spec.maybe | default('x')"),
        ("schema.spec.?db.?host.orValue('x')", "spec.db.host | default('x')"),
        ("schema.spec.db.?host.orValue('x')", "spec.db.host if 'host' in spec.db else 'x'"),
        ("web.status.?phase.orValue('')", "web.status.phase if 'phase' in web.status else ''"),
        ("schema.spec.?maybe", "spec.maybe | default(omit)"),
        ("schema.spec.?maybe.hasValue()", "spec.maybe is defined"),
        ("schema.spec.labels[?'a'].orValue('x')", "spec.labels.a if 'a' in spec.labels else 'x'"),
        ("size(schema.spec.words)", "spec.words | length"),
        ("string(schema.spec.size)", "spec.size | string"),
        ("string(schema.spec.name)", "spec.name"),
        ("schema.spec.name in ['a', 'b']", "spec.name in ['a', 'b']"),
        ("schema.spec.name.startsWith('a')", "spec.name.startswith('a')"),
        ("schema.spec.name.contains('a')", "'a' in spec.name"),
        ("schema.spec.name.matches('^a')", "spec.name | regex_match('^a')"),
        ("schema.spec.name.split('.')[0]", "spec.name.split('.')[0]"),
        ("schema.spec.name.split('.' + schema.spec.name)[0]", "spec.name.split('.' + spec.name)[0]"),
        ("schema.spec.words.join(',')", "spec.words | join(',')"),
        ("schema.spec.users.map(u, u.name)", "spec.users | map(attribute='name') | list"),
        ("schema.spec.users.map(u, string(u.age))", "spec.users | map(attribute='age') | map('string') | list"),
        (
            "schema.spec.users.filter(u, u.age > 3 && u.name != 'x')",
            "spec.users | selectattr('age', 'gt', 3) | selectattr('name', 'ne', 'x') | list",
        ),
        ("schema.spec.users.exists(u, 3 < u.age)", "spec.users | selectattr('age', 'gt', 3) | list | length > 0"),
        (
            "schema.spec.users.all(u, u.age in [1, 2])",
            "spec.users | selectattr('age', 'in', [1, 2]) | list | length == spec.users | length",
        ),
        ("{'a': {'b': schema.spec.size}}", "{'a': {'b': spec.size } }"),
        ("lists.range(size(schema.spec.words))", "range(spec.words | length)"),
        ("schema.spec.port / 2", "spec.port // 2"),
        ("quantity('1Gi').isLessThan(quantity('2Gi'))", "'1Gi' | quantity < '2Gi' | quantity"),
        ("math.greatest(schema.spec.size, 2)", "[spec.size, 2] | max"),
        ("omit()", "omit"),
        ("string(base64.decode(schema.spec.name))", "spec.name | b64decode"),
    ],
)
def test_an_expression_becomes_the_jinja_that_a_person_would_write(text, code):
    assert jinja(text) == code


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("schema", "the custom resource as a whole"),
        ("schema.status.x", "schema.status"),
        ("other.spec.x", "there is no counterpart of other"),
        ("random.seededString(10, schema.metadata.uid)", "random.seededString"),
        ("hash.sha256(schema.spec.name)", "hash.sha256"),
        ("base64.encode(b'x')", "not implemented"),
        ("schema.spec.size / 2", "negative number"),
        ("schema.spec.size % 2", "negative number"),
        ("schema.spec.words[schema.spec.size]", "counts from the end"),
        ("string(schema.spec.ratio)", "string() of a double"),
        ("schema.spec.?maybe == 'x'", "without orValue"),
        ("schema.spec.?maybe.size()", "without orValue"),
        ("has(schema.spec.?db.host)", "optional"),
        ("schema.spec.words[?0].orValue('')", "item of a list"),
        ("schema.spec.maybe.orValue('x')", "not optional"),
        ("schema.spec.users.map(u, u.name + '!')", "computed items"),
        ("schema.spec.users.exists(u, u.age > u.age)", "filters do not have"),
        ("schema.spec.users.exists(u, u.age > 1 || u.age < 0)", "filters do not have"),
        ("schema.spec.labels.exists(k, k == 'a')", "over a map"),
        ("schema.spec.name.split('')", "separator"),
        ("schema.spec.name.split(schema.spec.name)", "separator"),
        ("schema.spec.name + 1", "with +"),
        ("{schema.spec.name: 1}", "not plain strings"),
        ("schema.spec.a__dash__b", "escaped"),
        ("schema.spec.name.unknown()", "no counterpart of unknown()"),
        ("type(schema.spec.name)", "no counterpart of type()"),
        ("cel.bind(x, 1, x)", "cel.bind"),
        ("schema.spec.users.all(i, u, true)", "not implemented"),
        ("schema.spec.", "syntax error"),
        ("timestamp('2026-01-01T00:00:00Z')", "timestamp()"),
    ],
)
def test_an_expression_without_a_counterpart_is_refused_with_the_reason(text, reason):
    with pytest.raises(InexpressibleError) as error:
        jinja(text)
    assert reason in str(error.value)


def test_a_side_that_always_has_a_value_is_tested_first():
    assert jinja("web.status.ready && schema.spec.on") == "spec.on and web.status.ready"
    assert jinja("has(schema.spec.maybe) && schema.spec.maybe == 'x'") == "spec.maybe is defined and spec.maybe == 'x'"
    assert remarks("has(schema.spec.maybe) && schema.spec.maybe == 'x'") == ()


def test_two_sides_that_may_be_missing_are_a_remark_except_where_missing_is_false():
    text = "web.status.a == 1 && web.status.b == 2"
    assert "where the other side of && decides" in remarks(text)[0]
    assert remarks(text, lenient=True) == ()
    assert remarks(f"!({text})", lenient=True) != ()
    assert remarks(text.replace("&&", "||"), lenient=True) != ()


def test_a_test_makes_its_field_certain():
    assert jinja("has(schema.spec.maybe) ? schema.spec.maybe : 'x'") == "spec.maybe if spec.maybe is defined else 'x'"
    assert jinja("!has(schema.spec.maybe) || schema.spec.maybe == 'x'") == (
        "not spec.maybe is defined or spec.maybe == 'x'"
    )


def test_items_without_the_attribute_are_a_remark_where_they_may_exist():
    assert remarks("schema.spec.users.map(u, u.name)") == ()
    assert remarks("schema.spec.users.map(u, u.mail)") == (
        "kro waits while an item has no mail; here such an item is skipped",
    )
    assert remarks("schema.spec.users.filter(u, has(u.mail) && u.mail == 'x')") == ()
    assert remarks("web.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')") == ()
    assert remarks("web.status.parts.exists(p, p.ok == true)", lenient=True) == ()


def test_iterators_and_each_are_variables():
    assert jinja("user.name + '-x'", user=JinjaTerm("person", certain=True)) == "person.name + '-x'"
    assert jinja("each.status.phase == 'Up'", each=JinjaTerm("this", certain=True)) == "this.status.phase == 'Up'"


def test_names_in_an_expression_are_its_variables():
    assert names_in("web.status.a + schema.spec.web + '${x}'") == {"web", "schema"}
    assert names_in("a +") == frozenset()


# -- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("plain", ["plain"]),
        ("", [""]),
        ("${a}", [Cel("a")]),
        ("x-${a}-${b.c}", ["x-", Cel("a"), "-", Cel("b.c")]),
        ('${{"a": 1}}', [Cel('{"a": 1}')]),
        ('${"}" + a}', [Cel('"}" + a')]),
        ('${"\\"}" + a}', [Cel('"\\"}" + a')]),
        ("${a", ["${a"]),
        ("${a ${b}", ["${a ", Cel("b")]),
        ("$a {b} ${c}}", ["$a {b} ", Cel("c"), "}"]),
    ],
)
def test_expressions_in_a_text_end_at_their_brace(text, found):
    assert parts(text) == found


def test_only_a_whole_text_is_one_expression():
    assert only_expression("${a}") == Cel("a")
    assert only_expression(" ${a}") is None
    assert only_expression("${a}${b}") is None


@given(st.text() | st.text("{}%#'\"\\ \n"))
def test_any_text_is_a_string_of_jinja_without_tags(text):
    literal = text_literal(text)
    assert not any(tag in literal for tag in ("{{", "}}", "{%", "%}", "{#", "#}"))
    assert evaluate(literal) == text


# -- the same value ----------------------------------------------------------------------------------------------------

TEXTS = st.sampled_from(["", "a", "b-c", "a.b", "x,y", "Ready", "{{ 1 }}", "é"])
NUMBERS = st.integers(-3, 9)
MAILS = st.just({}) | st.fixed_dictionaries({"mail": TEXTS})
USERS = st.lists(
    st.builds(lambda name, age, more: {"name": name, "age": age, **more}, TEXTS, NUMBERS, MAILS), max_size=3
)
RESOURCES = st.fixed_dictionaries(
    {"name": TEXTS, "size": NUMBERS, "port": st.integers(1, 9), "on": st.booleans(), "words": st.lists(TEXTS, max_size=3),
     "users": USERS, "tls": st.fixed_dictionaries({}, optional={"host": TEXTS})},
    optional={"maybe": TEXTS, "labels": st.dictionaries(TEXTS, TEXTS, max_size=2),
              "db": st.fixed_dictionaries({}, optional={"host": TEXTS})},
)  # fmt: skip


def _calls(inner: st.SearchStrategy[str], *patterns: str) -> st.SearchStrategy[str]:
    return st.builds(lambda pattern, one, other: pattern.format(one, other), st.sampled_from(patterns), inner, inner)


_TEXT_LEAVES = st.sampled_from(
    ["schema.spec.name", "schema.spec.maybe", "schema.spec.db.host", "schema.spec.labels['a']", "schema.spec.words[0]",
     "'a'", "'b-c'", "''", "schema.spec.tls.host", "schema.spec.users[0].name"]
)  # fmt: skip
_NUMBER_LEAVES = st.sampled_from(
    ["schema.spec.size", "schema.spec.port", "1", "-2", "7", "size(schema.spec.words)", "size(schema.spec.name)",
     "schema.spec.users[0].age"]
)  # fmt: skip
_TEXTUAL = st.recursive(
    _TEXT_LEAVES,
    lambda inner: _calls(inner, "({0} + {1})", "{0}.replace('a', {1})", "{0}.split('.')[0]", "({0}).lowerAscii()"),
    max_leaves=3,
)
_NUMERIC = st.recursive(
    _NUMBER_LEAVES,
    lambda inner: _calls(inner, "({0} + {1})", "{0} * {1}", "({0} - {1})", "-({0})", "{0} / {1}", "{0} % {1}"),
    max_leaves=3,
)
_USERS = st.sampled_from(
    ["schema.spec.users.exists(u, u.age > 3)", "schema.spec.users.all(u, u.name != 'a' && u.age < 5)",
     "schema.spec.users.exists_one(u, u.name == 'a')", "size(schema.spec.users.filter(u, u.age in [1, 2, 3])) > 1",
     "schema.spec.users.all(u, has(u.mail))", "schema.spec.users.filter(u, has(u.mail) && u.mail == 'a').size() == 1",
     "schema.spec.users.exists(u, !(u.age == 1))"]
)  # fmt: skip
_BOOLEAN = st.recursive(
    st.sampled_from(["schema.spec.on", "has(schema.spec.maybe)", "has(schema.spec.db)", "has(schema.spec.db.host)",
                     "has(schema.spec.tls.host)", "schema.spec.name in schema.spec.words", "true"])
    | _USERS
    | _calls(_NUMERIC, "{0} < {1}", "{0} == {1}", "{0} >= {1}")
    | _calls(_TEXTUAL, "{0} == {1}", "{0} != {1}", "{0}.startsWith({1})", "{0}.contains({1})", "{0} < {1}"),
    lambda inner: _calls(inner, "({0} && {1})", "({0} || {1})", "!({0})", "({0} ? {1} : {0})"),
    max_leaves=4,
)  # fmt: skip
EXPRESSIONS = (
    _TEXTUAL
    | _NUMERIC
    | _BOOLEAN
    | st.builds("({} ? {} : {})".format, _BOOLEAN, _TEXTUAL, _TEXTUAL)
    | st.builds("string({})".format, _NUMERIC | _BOOLEAN)
    | st.sampled_from(
        ["schema.spec.words.join(',')", "schema.spec.users.map(u, u.name)", "schema.spec.users.map(u, u.age)",
         "schema.spec.words + ['a']", "schema.spec.name.split('-')"]
    )
)  # fmt: skip
ROOT: dict[str, Any] = {"type": "object", "properties": {"spec": SPEC}, "required": ["spec"]}
ERROR = object()


def by_cel(text: str, spec: dict[str, Any]) -> Any:
    type_ = type_of_schema(ROOT)
    try:
        found = compile_rule(text, {"schema": type_}).evaluate(
            {"schema": to_value({"spec": spec}, type_)}, Budget(9999)
        )
    except EvaluationError:
        return ERROR
    return list(found) if isinstance(found, ListValue) else found


def by_jinja(code: str, spec: dict[str, Any]) -> Any:
    try:
        return evaluate(code, spec=spec)
    except (RuleError, RuleopError, NotThereYet, Waiting):
        return ERROR


@given(EXPRESSIONS, RESOURCES)
def test_jinja_has_the_value_of_cel_for_each_custom_resource(text, spec):
    try:
        expected = by_cel(text, spec)
        found = translated(text, JinjaNames(SPEC, {}))
    except (InvalidRuleError, NotEvaluatedError, InexpressibleError):
        assume(False)
    if found.remarks:
        return  # it says in which case the value differs
    value = by_jinja(found.code, spec)
    assert (type(value), value) == (type(expected), expected), found.code
