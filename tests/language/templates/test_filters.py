"""The filters, tests and methods that templates may use."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.errors import RenderError
from tests.exploration import examples
from tests.language.templates.rendering import evaluate, render

POD = {
    "metadata": {"name": "p"},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}, {"type": "Odd"}]
    },
}

VALUES = {
    # text
    "'aB' | upper": "AB", "'aB' | lower": "ab", "'ab cd' | title": "Ab Cd", "'ab' | capitalize": "Ab", "' a ' | trim": "a", "'xax' | trim('x')": "a", "5 | string": "5", "true | string": "true",
    "'a-b' | replace('-', '.')": "a.b", "'aaa' | replace('a', 'b', 2)": "bba", "'aaa' | replace('a', 'b', -1)": "bbb", "'a\nb' | indent(2)": "a\n  b", "'a\nb' | indent(2, true)": "  a\n  b",
    "'a\n\nb' | indent(2, false, true)": "a\n  \n  b", "'a\nb' | indent('> ')": "a\n> b", "'a' | center(5)": "  a  ", "'a' | center(width=3)": " a ", "'a\nb' | indent(width=2)": "a\n  b", "'abcdef' | truncate(4, true, '..', 0)": "ab..", "'a b c' | wordwrap(3)": "a b\nc",
    "'a\n\nb' | wordwrap(3)": "a\n\nb", "'a b c' | wordcount": 3, "'a,b' | split(',')": ["a", "b"], "'a b' | split": ["a", "b"], "'a,b,c' | split(',', 1)": ["a", "b,c"], "'a b/&' | urlencode": "a%20b/%26", "{'a': 'b c'} | urlencode": "a=b%20c",
    "'%s-%03d' | format('a', 5)": "a-005", "'%(x)s' | format(x=1)": "1", "'%s' % 'a'": "a", "'%s,%s' % (1, true)": "1,true", "'%(a)d' % {'a': 3}": "3", "'%.2f' % 1.005": "1.00", "'%d%%' % 5": "5%", "'%.1f' % ('1500m' | quantity)": "1.5",
    "'%s' % none | default('x')": RenderError, "5 | quote": "5", "'a b' | shell_quote": "'a b'", "\"it's\" | shell_quote": "'it'\"'\"'s'", "'' | shell_quote": "''", "'abc' | reverse": "cba", "'abc' | first": "a", "'abc' | last": "c", "'abc' | length": 3, "'abc' | list": ["a", "b", "c"],
    "1234567 | filesizeformat": "1.2 MB",
    # numbers
    "'42' | int": 42, "'x' | int": 0, "'x' | int(7)": 7, "'0x1f' | int(0, 16)": 31, "'1.5' | float": 1.5, "1.55 | round(1)": 1.6, "1.2 | round(0, 'ceil')": 2.0, "-3 | abs": 3, "(-3) | abs": 3, "7 // 2": 3, "7 / 2": 3.5, "7 % 4": 3, "2 ** 10": 1024, "2 ** -1": 0.5,
    "1 / 0": RenderError, "(-8) ** 0.5": RenderError, "1 + 1.5": 2.5, "1 + 'a'": RenderError, "'a' + 1": RenderError, "'a' ~ 1 ~ true": "a1true", "'ab' * 2": "abab", "2 * 'ab'": "abab", "[1] * 2": [1, 1], "(1, 2) * 2": [1, 2, 1, 2], "'a' * -1": "", "[1] + [2]": [1, 2], "'a' - 1": RenderError, "{} + {}": RenderError,
    "l + [9]": [3, 1, 2, 9], "[9] + l": [9, 3, 1, 2], "l + l": [3, 1, 2, 3, 1, 2], "l[1:]": [1, 2], "l[::-1]": [2, 1, 3], "l[-1]": 2, "'hello'[1:3]": "el", "'hello'[0]": "h", "5[1:]": RenderError, "(5)[1:2]": RenderError, "l['1']": 1, "(1, 2)[0]": 1,
    # lists and mappings
    "l | sort": [1, 2, 3], "l | sort(true)": [3, 2, 1], "['b', 'A', 'c'] | sort": ["A", "b", "c"], "['b', 'A'] | sort(case_sensitive=true)": ["A", "b"], "[1, 'a'] | sort": RenderError, "['a', 'A', 'b'] | unique": ["a", "b"], "['a', 'A'] | unique(true)": ["a", "A"], "[1, 1.0, true] | unique | length": 3,
    "l | min": 1, "l | max": 3, "l | sum": 6, "l | sum(start=10)": 16, "[[1], [2, 3]] | sum(start=[])": [1, 2, 3], "['a'] | sum": RenderError, "['1', '2'] | map('quantity') | sum": 3, "l | first": 3, "l | last": 2, "l | length": 3, "l | count": 3, "l | reverse": [2, 1, 3], "l | join(',')": "3,1,2", "l | join": "312",
    "l | map('string') | join('-')": "3-1-2", "l | select('odd')": [3, 1], "l | reject('odd')": [2], "[0, 1] | select": [1], "[0, 1] | reject": [0], "l | batch(2)": [[3, 1], [2]], "l | batch(2, 0)": [[3, 1], [2, 0]], "[] | batch(2, 0)": [], "l | batch(0)": RenderError,
    "l | slice(2)": [[3, 1], [2]], "l | slice(2, 0)": [[3, 1], [2, 0]], "[1, 2] | slice(2, 0)": [[1], [2]], "[1] | slice(3)": [[1], [], []], "l | slice(0)": RenderError, "l | map": RenderError, "l | map(attribute='a', other=1)": RenderError,
    "m | items": [["b", 2], ["a", 1]], "m | dictsort": [["a", 1], ["b", 2]], "m | dictsort(by='value', reverse=true)": [["b", 2], ["a", 1]], "m | dictsort(by='x')": RenderError, "m | list": ["b", "a"], "m | length": 2, "5 | items": RenderError, "m | first": "b", "m | sort": ["a", "b"],
    "m | combine({'b': 3, 'c': {'d': 1}}, {'c': {'e': 2}})": {"b": 3, "a": 1, "c": {"d": 1, "e": 2}}, "m | combine({'a': {'x': 1}})": {"b": 2, "a": {"x": 1}}, "m | combine(5)": RenderError, "5 | combine(m)": RenderError, "m | combine": {"b": 2, "a": 1},
    # comparisons, membership, tests
    "1 == 1.0": True, "l == [3, 1, 2]": True, "[3, 1, 2] == l": True, "l != [1]": True, "m == {'a': 1, 'b': 2}": True, "(1, 2) == [1, 2]": True, "l == l": True, "m == l": False, "'a' < 'b'": True, "1 < 2 < 3": True, "1 < 3 < 2": False, "[1] < [2]": True, "1 < 'a'": RenderError, "{} < {}": RenderError,
    "1 in l": True, "9 in l": False, "9 not in l": True, "'a' in m": True, "5 in m": False, "[] in m": False, "'a' in 'abc'": True, "1 in 'abc'": RenderError, "1 in 5": RenderError, "m in [m]": True, "{'a': 1, 'b': 2} in [m]": True, "1 in range(3)": True, "1 in (1, 2)": True, "m in p": False, "{'x': 1} in p": True, "none in [none]": True,
    "1 is odd": True, "2 is even": True, "4 is divisibleby(2)": True, "none is none": True, "l is sequence": True, "'a' is sequence": True, "m is sequence": False, "m is mapping": True, "l is mapping": False, "l is iterable": True, "5 is iterable": False, "1 is number": True, "'1' is number": False, "1 is integer": True, "1.0 is float": True,
    "true is boolean": True, "true is true": True, "false is false": True, "'a' is string": True, "'a' is lower": True, "'A' is upper": True, "1 is in(l)": True, "1 is sameas(1)": True, "'upper' is filter": True, "'nope' is filter": False, "'odd' is test": True, "1 is eq(1)": True, "1 is ne(2)": True, "1 is lt(2)": True, "l is eq([3, 1, 2])": True, "('1' | quantity) is number": True,
    "range(3) is sequence": True, "l | select('in', [1, 2]) | list": [1, 2],
    # methods
    "'aB'.upper()": "AB", "'a b'.split()": ["a", "b"], "'a,b'.split(',')": ["a", "b"], "'a\nb'.splitlines()": ["a", "b"], "'abc'.startswith('a')": True, "'abc'.endswith('c')": True, "'a=b'.partition('=')": ["a", "=", "b"], "'v1.2'.removeprefix('v')": "1.2", "'aXa'.replace('X', 'y')": "aya", "'aaa'.replace('a', 'b', 1)": "baa", "','.join(['a', 1])": "a,1",
    "'abc'.find('c')": 2, "'aa'.count('a')": 2, "'12'.isdigit()": True, "' a '.strip()": "a", "'a'.replace('a')": RenderError, "'a'.nothing()": RenderError, "'a'.find()": RenderError, "m.items()": [["b", 2], ["a", 1]], "m.keys()": ["b", "a"], "m.values()": [2, 1], "l.index(1)": 1, "l.index(9)": RenderError, "l.count(1)": 1, "[[1], [1]].count([1])": 2, "[m].index(m)": 0, "m.get('a')": 1,
    # data in other forms
    "m | to_json": '{"b":2,"a":1}', "m | tojson": '{"b":2,"a":1}', "'a' | to_json": '"a"', "l | to_json(indent=2)": "[\n  3,\n  1,\n  2\n]", "m | to_yaml": "b: 2\na: 1", "['yes', '1e3', '2024-01-01'] | to_yaml": '- "yes"\n- "1e3"\n- \'2024-01-01\'', "'\u00e4' | to_json": '"\u00e4"',
    "'a' | b64encode": "YQ==", "'YQ==' | b64decode": "a", "'\u00e4' | b64encode | b64decode": "\u00e4", "'%%%' | b64decode": RenderError, "'/w==' | b64decode": RenderError, "'a' | sha256": hashlib.sha256(b"a").hexdigest(), "'a' | sha256(8)": hashlib.sha256(b"a").hexdigest()[:8], "'a' | sha256(0)": RenderError, "'a' | sha256(65)": RenderError,
    "(m | sha256) == ({'a': 1, 'b': 2} | sha256)": True, "(m | sha256) == (l | sha256)": False, "pod | condition('Ready')": "True", "pod | condition('Other')": "False", "pod | condition('None')": "Unknown", "pod | condition('Odd')": "Unknown", "{} | condition('Ready')": "Unknown", "{'status': 5} | condition('Ready')": "Unknown", "5 | condition('Ready')": RenderError,
    # regular expressions
    "'abc' | regex_match('b')": True, "'abc' | regex_match('^b')": False, "'a1b22' | regex_findall('[0-9]+')": ["1", "22"], "'a1b2' | regex_findall('([a-z])([0-9])')": [["a", "1"], ["b", "2"]], "'a1b2' | regex_findall('([a-z])[0-9]')": ["a", "b"], "'a1' | regex_replace('([a-z])([0-9])', '\\\\2\\\\1')": "1a", "'abc' | regex_replace('x*', '-')": "-a-b-c-",
    "'a' | regex_match('(')": RenderError, "'a' | regex_match('(?=a)')": RenderError, "'a' | regex_replace('a', '\\\\7')": RenderError, "'\u00e4b\u00f6' | regex_replace('b', 'x')": "\u00e4x\u00f6", "'\u00e4b\u00f6' | regex_findall('.')": ["\u00e4", "b", "\u00f6"],
    # quantities
    "'500m' | quantity": 0.5, "'1Gi' | quantity": 1073741824, "'1.5Gi' | quantity('Mi')": 1536, "'2' | quantity * 2": 4, "('1Gi' | quantity * 0.5) | int": 536870912, "'100m' | quantity + 0.1": 0.2, "'1e3' | quantity": 1000, "'1E3' | quantity": 1000, "'1E' | quantity": 10**18, "'-1k' | quantity": -1000, "'.5' | quantity": 0.5, "5 | quantity": 5, "0.1 | quantity == '100m' | quantity": True,
    "'1900Ki' | quantity('Mi')": 1, "('1' | quantity) / 3 * 3 == 1": True, "-('1k' | quantity)": -1000, "'1k' | quantity ~ 'x'": "1000x", "('3' | quantity) // 2": 1, "2 - ('1' | quantity)": 1, "('1' | quantity) < 2": True, "['2Gi', '1000Mi'] | map('quantity') | max": 2147483648, "('-1' | quantity) | abs": 1, "('2' | quantity) ** 3": 8, "2 ** ('3' | quantity)": 8, "2 ** -('1' | quantity)": 0.5, "2 ** ('1500m' | quantity)": 2**1.5,
    "'x' | quantity": RenderError, "'1Zi' | quantity": RenderError, "true | quantity": RenderError, "none | quantity": RenderError, "'1e31' | quantity": RenderError, "1 | quantity('XX')": RenderError, "('1' | quantity) + true": RenderError, "('1' | quantity) + 'a'": RenderError, "'' | quantity": RenderError, "'1n' | quantity * 1000000000": 1,
    # absence
    "none | default('x')": None, "none | default('x', true)": "x", "'' | default('x', true)": "x", "0 | default(5)": 0, "'a' | required('x')": "a",
}  # fmt: skip


@pytest.mark.parametrize("expression", VALUES)
def test_each_expression_has_its_value_and_type(expression):
    names = {"l": [3, 1, 2], "m": {"b": 2, "a": 1}, "pod": POD, "p": [{"x": 1}]}
    expected = VALUES[expression]
    if expected is RenderError:
        with pytest.raises(RenderError):
            evaluate(expression, **names)
        return
    found = evaluate(expression, **names)
    assert found == expected
    assert type(found) is type(expected)
    assert list(found) == list(expected) if isinstance(expected, dict) else True


def test_the_hash_of_an_object_ignores_fields_of_the_server():
    bare = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "v"}}
    live = {
        **bare,
        "status": {"x": 1},
        "metadata": {**bare["metadata"], "uid": "u", "resourceVersion": "5", "managedFields": [], "generation": 3, "creationTimestamp": "t", "ownerReferences": [{}], "annotations": {"ruleop.dev/applied": "x"},
                     "labels": {"x": "1", "ruleop.dev/part-of": "h"}},
    }  # fmt: skip
    assert evaluate("o | sha256", o=bare) == evaluate("o | sha256", o=live)
    assert evaluate("o | sha256", o=bare) != evaluate("o | sha256", o={**live, "data": {"k": "w"}})
    assert evaluate("o | sha256", o=bare) != evaluate("o | sha256", o={**live, "metadata": {"name": "b"}})
    assert evaluate("o | sha256", o={"status": 1}) != evaluate("o | sha256", o={"status": 2}), "only of an object"


LABEL = st.text("ab-.A9_ h", max_size=8) | st.text(max_size=70)


@pytest.mark.slow
@given(st.integers(1, 3).flatmap(lambda size: st.tuples(*[st.lists(LABEL, min_size=size, max_size=size)] * 2)))
@settings(deadline=None, max_examples=examples(400))
def test_dns_labels_are_valid_and_never_equal_for_different_parts(both):
    def label(parts):
        return evaluate(
            "v[0] | dns_label(" + ", ".join(f"v[{number}]" for number in range(1, len(parts))) + ")", v=parts
        )

    one, other = map(label, both)
    for name in (one, other):
        assert 0 < len(name) <= 63
        assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert name[0] != "-" != name[-1]
    assert (one == other) == (both[0] == both[1])


@pytest.mark.parametrize(
    ("parts", "name"),
    [(["web"], "web"), (["web", "0"], "web-0"), (["my-app", "db", "1"], "my-app-db-1"), (["a" * 63], "a" * 63)],
)
def test_a_dns_label_is_a_plain_join_when_nothing_is_lost(parts, name):
    assert (
        evaluate("v[0] | dns_label(" + ", ".join(f"v[{number}]" for number in range(1, len(parts))) + ")", v=parts)
        == name
    )


@pytest.mark.parametrize(
    "parts",
    [["Web"], ["a.b"], ["a", "b-c"], ["a" * 64], ["-a"], ["a-"], [""], ["a", ""], ["\u00e4"], ["a-h" + "a" * 13]],
)
def test_a_dns_label_carries_a_hash_when_something_is_lost(parts):
    name = evaluate("v[0] | dns_label(" + ", ".join(f"v[{number}]" for number in range(1, len(parts))) + ")", v=parts)
    assert name != "-".join(parts)
    assert len(name) <= 63


def test_a_filter_reports_invalid_arguments():
    for expression, message in [
        ("5 | truncate('x')", "truncate"), ("'a' | upper(1)", "upper: it takes no more arguments"), ("[1] | join(5, 6, 7)", "join: it takes 2 arguments here"), ("l | sort(nope=1)", "sort: unknown argument nope"),
        ("'a\x00' | shell_quote", "contains a NUL"), ("[1] | map('nope')", "the name of an existing filter"), ("[1] | select('nope')", "unknown test"), ("{} | first", "the list is empty"),
        ("'x' | indent('x' * 300)", "an indentation of 300"), ("'a' | center(300)", "a width of 300"), ("1.5 | round(30)", "round takes a precision"), ("'%*d' % (1, 2)", r"the width \* is not"), ("'%d' % 'x'", "do not match the directives"),
    ]:  # fmt: skip
        with pytest.raises(RenderError, match=message):
            evaluate(expression, l=[1])


def test_methods_and_operators_see_captured_text_as_a_string():
    assert render("{% set t %}a{{ 1 }}{% endset %}\na: {{ t.upper() }}\nb: {{ '%s' % t }}\nc: {{ t + 'x' }}\nd: {{ t * 2 }}\ne: {{ [t, 'a1'] | unique | length }}\nf: {{ {t: t} }}\ng: {{ [t] }}\nh: {{ t in ['a1'] }}\ni: {{ {'a1': 5}[t] }}") == {
        "a": "A1", "b": "a1", "c": "a1x", "d": "a1a1", "e": 1, "f": {"a1": "a1"}, "g": ["a1"], "h": True, "i": 5,
    }  # fmt: skip
