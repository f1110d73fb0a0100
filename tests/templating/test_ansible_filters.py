"""Filters that Ansible has too: under its names, with its meaning."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.core.errors import RenderError
from ruleop.core.templating import Waiting, view
from ruleop.core.templating.values.undefined import Origin
from tests.exploration import examples
from tests.templating.rendering import evaluate, paths_read, render

NAMES = {
    "l": [3, 1, 3, 2], "m": {"b": {"x": 1, "l": [1, 2]}, "a": 1}, "pods": [{"n": "a", "p": 1}, {"n": "b", "p": 2}], "deep": [1, [2, [3, [None, []]]], None],
    "path": "/etc/app/conf.d/x.yaml", "text": "release v1.20 and v1.21\nRelease V2",
}  # fmt: skip
VALUES = {
    # a choice
    "true | ternary('a', 'b')": "a", "0 | ternary('a', 'b')": "b", "'' | ternary(1, 2)": 2, "none | ternary(1, 2)": 2, "none | ternary(1, 2, 3)": 3, "l | ternary(1, 2)": 1,
    "true | ternary('a', nothing.x)": "a", "{'a': 1, 'b': false | ternary(1, omit)}": {"a": 1},
    # truth
    "true | bool": True, "'yes' | bool": True, "'On' | bool": True, "'TRUE' | bool": True, "'1' | bool": True, "1 | bool": True, "'y' | bool": True, "'t' | bool": True, "1.0 | bool": True,
    "false | bool": False, "'no' | bool": False, "'off' | bool": False, "'False' | bool": False, "0 | bool": False, "'0' | bool": False, "'n' | bool": False, "'f' | bool": False, "'' | bool": False, "none | bool": None,
    # mappings and lists of entries
    "m | dict2items": [{"key": "b", "value": {"x": 1, "l": [1, 2]}}, {"key": "a", "value": 1}], "{} | dict2items": [], "{'a': 1} | dict2items('name', 'size')": [{"name": "a", "size": 1}],
    "{'a': 1} | dict2items(key_name='name', value_name='size')": [{"name": "a", "size": 1}], "m | dict2items | items2dict == m": True, "pods | items2dict('n', 'p')": {"a": 1, "b": 2},
    "pods | items2dict(key_name='n', value_name='p')": {"a": 1, "b": 2}, "[] | items2dict": {}, "[{'key': 1, 'value': 2}] | items2dict": {"1": 2}, "m | dictsort | items2dict == m": True,
    "[{'key': 'a', 'value': 1}, {'key': 'a', 'value': 2}] | items2dict": {"a": 2},
    # lists as sets
    "l | difference([3])": [1, 2], "l | difference([])": [3, 1, 2], "l | intersect([2, 3, 9])": [3, 2], "l | union([9, 1, 9])": [3, 1, 2, 9], "l | symmetric_difference([1, 9])": [3, 2, 9],
    "[m] | difference([{'a': 1, 'b': {'l': [1, 2], 'x': 1}}])": [], "[1, '1', true, 1.0] | difference([1])": ["1", True, 1.0], "range(3) | difference(range(2))": [2],
    # lists of lists
    "deep | flatten": [1, 2, 3], "deep | flatten(levels=1)": [1, 2, [3, [None, []]]], "deep | flatten(1, false)": [1, 2, [3, [None, []]], None], "deep | flatten(skip_nulls=false)": [1, 2, 3, None, None], "['ab', ['cd']] | flatten": ["ab", "cd"],
    "deep | flatten(levels=0)": [1, [2, [3, [None, []]]]], "[m] | flatten == [m]": True,
    "[1, 2] | zip(['a', 'b', 'c'])": [[1, "a"], [2, "b"]], "[1] | zip(l, ['x'])": [[1, 3, "x"]], "[] | zip(l)": [], "l | zip": [[3], [1], [3], [2]], "dict(['a', 'b'] | zip([1, 2]))": {"a": 1, "b": 2},
    "[1, 2] | zip_longest(['a'])": [[1, "a"], [2, None]], "[1, 2] | zip_longest(['a'], fillvalue='-')": [[1, "a"], [2, "-"]],
    # paths
    "path | basename": "x.yaml", "path | dirname": "/etc/app/conf.d", "'x' | dirname": "", "'/a/' | basename": "", "'/a/' | dirname": "/a", "'/' | dirname": "/",
    # regular expressions
    "text | regex_search('v[0-9.]+')": "v1.20", "text | regex_search('x')": None, "text | regex_search('x') | default('none', true)": "none", "text | regex_search('v([0-9]+)[.]([0-9]+)', '\\\\2', '\\\\1')": ["20", "1"],
    "text | regex_search('v(?P<major>[0-9]+)', '\\\\g<major>')": ["1"], "text | regex_search('x(.)', '\\\\1')": None, "'ab' | regex_search('a(c)?', '\\\\1')": [None], "text | regex_search('^RELEASE', ignorecase=true)": "release",
    "text | regex_search('^Release', multiline=true)": "Release", "text | regex_findall('^release', multiline=true, ignorecase=true)": ["release", "Release"], "text | regex_replace('^release .*$', '-', ignorecase=true, multiline=true)": "-\n-",
    "text | regex_match('^RELEASE', ignorecase=true)": True,
    # combine
    "m | combine({'b': {'y': 2}})": {"b": {"x": 1, "l": [1, 2], "y": 2}, "a": 1}, "m | combine({'b': {'y': 2}}, recursive=true)": {"b": {"x": 1, "l": [1, 2], "y": 2}, "a": 1}, "m | combine({'b': {'y': 2}}, recursive=false)": {"b": {"y": 2}, "a": 1},
    "m | combine({'b': {'l': [2, 3]}})": {"b": {"x": 1, "l": [2, 3]}, "a": 1}, "m | combine({'b': {'l': [2, 3]}}, list_merge='replace')": {"b": {"x": 1, "l": [2, 3]}, "a": 1}, "m | combine({'b': {'l': [2, 3]}}, list_merge='keep')": {"b": {"x": 1, "l": [1, 2]}, "a": 1},
    "m | combine({'b': {'l': [2, 3]}}, list_merge='append')": {"b": {"x": 1, "l": [1, 2, 2, 3]}, "a": 1}, "m | combine({'b': {'l': [2, 3]}}, list_merge='prepend')": {"b": {"x": 1, "l": [2, 3, 1, 2]}, "a": 1},
    "m | combine({'b': {'l': [2, 3]}}, list_merge='append_rp')": {"b": {"x": 1, "l": [1, 2, 3]}, "a": 1}, "m | combine({'b': {'l': [2, 3]}}, list_merge='prepend_rp')": {"b": {"x": 1, "l": [2, 3, 1]}, "a": 1},
    "{'l': [1]} | combine({'l': [2]}, recursive=false, list_merge='append')": {"l": [1, 2]}, "[{'a': 1}, {'b': 2}] | combine": {"a": 1, "b": 2}, "{'a': 1} | combine([{'b': 2}, {'c': 3}])": {"a": 1, "b": 2, "c": 3},
}  # fmt: skip


@pytest.mark.parametrize("expression", VALUES)
def test_each_filter_of_ansible_has_its_value_and_type(expression):
    found = evaluate(expression, **NAMES)
    assert found == VALUES[expression]
    assert (
        [type(each) for each in found] == [type(each) for each in VALUES[expression]]
        if isinstance(found, list)
        else True
    )
    assert type(found) is type(VALUES[expression])


SAYINGS = {
    "'maybe' | bool": "bool takes true, yes, on, y, t, 1, false, no, off, n, f or 0",
    "2 | bool": "bool takes true, yes, on, y, t, 1, false, no, off, n, f or 0",
    "l | bool": "bool takes true, yes, on, y, t, 1, false, no, off, n, f or 0",
    "l | dict2items": "dict2items takes a mapping",
    "m | dict2items('x', 'x')": "dict2items: the key and the value need different names",
    "m | items2dict": "items2dict takes a list",
    "pods | items2dict": "pods[0].key is not set (pods[0] has n, p); use `default(...)` if it may be missing",
    "l | difference('abc')": "difference takes lists, not text",
    "m | union([])": "union takes lists, not a mapping",
    "l | intersect(5)": "intersect takes lists, not a number",
    "l | symmetric_difference(m)": "symmetric_difference takes lists, not a mapping",
    "5 | flatten": "flatten takes lists, not a number",
    "l | flatten(-1)": "flatten takes levels from 0",
    "l | zip('ab')": "zip takes lists, not text",
    "l | zip_longest(5)": "zip_longest takes lists, not a number",
    "5 | basename": "basename takes text, not a number",
    "l | dirname": "dirname takes text, not a list",
    "text | regex_search('a', 'b')": r"regex_search: after the pattern it takes groups, such as '\\1' or '\\g<name>'",
    "text | regex_search('v', '\\\\7')": "regex_search: the pattern has no such group",
    "m | combine({}, list_merge='merge')": "combine: list_merge must be replace, keep, append, prepend, append_rp or prepend_rp",
    "m | combine({}, deep=true)": "combine: unknown argument deep",
    "m | combine([5])": "combine takes mappings",
}  # fmt: skip


@pytest.mark.parametrize("expression", SAYINGS)
def test_an_error_of_an_ansible_filter_has_a_plain_message(expression):
    with pytest.raises(RenderError) as caught:
        evaluate(expression, **NAMES)
    assert caught.value.message == f"{{{{ {expression} }}}}: {SAYINGS[expression]}"


LATER = (
    "ternary(1, 2)",
    "bool",
    "dict2items",
    "items2dict",
    "difference([])",
    "flatten",
    "zip([])",
    "basename",
    "regex_search('a')",
)


@pytest.mark.parametrize("call", LATER)
def test_a_filter_over_a_value_that_is_not_available_yet_waits(call):
    service = view("service", {"spec": {}}, Origin.LATER)
    with pytest.raises(Waiting, match=r"service.spec.clusterIP is not available yet"):
        evaluate(f"service.spec.clusterIP | {call}", service=service)
    for other in ("difference", "intersect", "union", "zip", "combine"):
        with pytest.raises(Waiting, match=r"service.spec.clusterIP is not available yet"):
            evaluate(f"[] | {other}(service.spec.clusterIP)", service=service)
    with pytest.raises(Waiting, match=r"service.spec.clusterIP is not available yet"):
        evaluate("true | ternary(service.spec.clusterIP, 'b')", service=service)


def test_ansible_filters_treat_captured_text_as_text():
    source = (
        "{% set t %}a{{ v }}{% endset %}\nd: {{ [t] | difference(['a1']) }}\nu: {{ [t] | union(['b']) }}\nf: {{ [[t]] | flatten }}\nz: {{ [t] | zip([t]) }}\n"
        "i: {{ [{'key': t, 'value': t}] | items2dict }}\nb: {{ (t ~ '/x') | dirname }}\nr: {{ t | regex_search('[0-9]') }}\nc: {{ {'x': [t]} | combine({'x': ['y']}, list_merge='append') }}\n"
        "k: {{ true | ternary(t, 0) }}\ne: {{ {'k': t} | dict2items }}"
    )
    assert render(source, v=1) == {
        "d": [], "u": ["a1", "b"], "f": ["a1"], "z": [["a1", "a1"]], "i": {"a1": "a1"}, "b": "a1", "r": "1", "c": {"x": ["a1", "y"]}, "k": "a1", "e": [{"key": "k", "value": "a1"}],
    }  # fmt: skip


DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "1", "key"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=8,
)
LISTS = st.lists(DATA, max_size=6)


@given(LISTS, LISTS)
@settings(deadline=None, max_examples=examples(150))
def test_lists_as_sets_obey_the_laws_of_sets(a, b):
    def of(expression):
        return evaluate(expression, a=a, b=b)

    def size(expression):
        return evaluate(f"({expression}) | length", a=a, b=b)

    assert of("a | union(b)") == of("(a + b) | unique(true)")
    assert of("a | intersect(b)") == of("a | difference(a | difference(b))")
    assert of("a | symmetric_difference(b)") == of("(a | difference(b)) | union(b | difference(a))")
    assert size("a | union(b)") == size("a | difference(b)") + size("a | intersect(b)") + size("b | difference(a)")
    assert of("(a | difference(b)) | intersect(b)") == []


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=3), max_size=5))
@settings(deadline=None, max_examples=examples(100))
def test_dict2items_and_items2dict_are_inverse(mapping):
    mapping = {
        key: value
        for key, value in mapping.items()
        if value is not None and (not isinstance(value, int) or abs(value) < 2**63)
    }
    assert evaluate("m | dict2items | items2dict", m=mapping) == mapping
    assert evaluate("dict((m.keys() | list) | zip(m.values() | list))", m=mapping) == mapping


def test_a_loop_over_set_filters_is_known_to_read_the_items():
    assert paths_read("{% for p in spec.a | difference(spec.b) %}{{ p.x }}{% endfor %}") == {
        ("spec", "a"),
        ("spec", "b"),
        ("spec", "a", None, "x"),
    }
    assert paths_read("{% for p in spec.a | intersect(spec.b) %}{{ p.x }}{% endfor %}") == {
        ("spec", "a"),
        ("spec", "b"),
        ("spec", "a", None, "x"),
    }
