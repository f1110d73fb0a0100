"""Filters that Ansible has too: under its names, with its meaning."""

from __future__ import annotations

import base64
import ipaddress
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.errors import RenderError
from ruleop.language.templates import Waiting, view
from ruleop.language.templates.values.undefined import Origin
from tests.exploration import examples
from tests.language.templates.rendering import evaluate, paths_read, render

NAMES = {
    "team": [{"name": "a", "keys": {"ssh": ["k1", "k2"]}, "x": 1}, {"name": "b", "keys": {"ssh": []}}], "net": "10.0.0.5/24",
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
    "'a.b' | regex_escape": "a\\.b", "'x' is match('x')": True, "'yx' is match('x')": False, "'yx' is search('x')": True, "['ab', 'Ba'] | select('match', 'b', ignorecase=true)": ["Ba"], "'a\nb' is match('b', multiline=true)": False,
    # some keys
    "m | keep_keys(['a', 'x'])": {"a": 1}, "m | keep_keys(target=['a'])": {"a": 1}, "m | pick('a', 'b') == m": True, "team | keep_keys('x')": [{"x": 1}, {}], "m | remove_keys(['b'])": {"a": 1}, "team | remove_keys('keys', 'x')": [{"name": "a"}, {"name": "b"}],
    "team | map('pick', ['name'])": [{"name": "a"}, {"name": "b"}], "{} | pick('a')": {}, "m | pick([])": {},
    # rows
    "[1, 2] | product(['a', 'b'])": [[1, "a"], [1, "b"], [2, "a"], [2, "b"]], "[1, 2] | product([])": [], "[0, 1] | product(repeat=2)": [[0, 0], [0, 1], [1, 0], [1, 1]], "l | product == l | zip": True,
    "team | subelements('keys.ssh') | map('last')": ["k1", "k2"], "team | subelements(['keys', 'ssh']) | length": 2, "{'u': {'g': ['w']}} | subelements('g')": [[{"g": ["w"]}, "w"]], "[{'a': [1]}, {}] | subelements('a', skip_missing=true) | length": 1,
    # sets
    "[1] is subset(l)": True, "l is subset([1])": False, "l is superset([1, 3])": True, "l is contains(1)": True, "m is contains('b')": True, "[['a'], ['b']] | select('contains', 'a')": [["a"]],
    # hashes and encodings
    "'a' | sha1": "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8", "'a' | hash": "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8", "'a' | hash('sha256') == 'a' | sha256": True, "m | hash('sha256') == m | sha256": True, "'a' | hash(hashtype='sha512') | length": 128,
    "'a' | b64encode(encoding='utf-16-le')": "YQA=", "'YQA=' | b64decode('utf-16-le')": "a", "'/wA=' | b64decode('latin-1') | b64encode('latin-1')": "/wA=", "'//4=' | b64decode('latin-1') | length": 2,
    # YAML
    "m | to_nice_yaml ~ ''": "a: 1\nb:\n    l:\n    - 1\n    - 2\n    x: 1", "m | to_nice_yaml(indent=2, width=9999, sort_keys=false) == m | to_yaml": True, "m | to_nice_yaml | from_yaml == m": True,
    # addresses
    "net | ip_network": "10.0.0.0/24", "net | ip_network('network')": "10.0.0.0", "net | ip_network('prefix')": 24, "net | ip_network('netmask')": "255.255.255.0", "net | ip_network('broadcast')": "10.0.0.255", "net | ip_network('size')": 256, "'FD00::1' | ip_network('version')": 6,
    "'10.0.0.5/255.255.0.0' | ip_network": "10.0.0.0/16", "'fd00:0:0::1/64' | ip_network": "fd00::/64", "net | host(1)": "10.0.0.1", "net | host(-1)": "10.0.0.255", "'fd00::/64' | host(10)": "fd00::a", "'10.0.0.7' | ip_in(net)": True, "'10.0.1.7' | ip_in('fd00::/8', net)": False,
    "'10.0.0.0/25' | ip_in(['fd00::/8', net])": True, "'10.0.0.0/23' | ip_in(net)": False, "['10.0.0.1', '11.0.0.1'] | reject('ip_in', '10.0.0.0/8')": ["11.0.0.1"], "'10.0.0.1' is ip_address": True, "net is ip_address": False, "5 is ip_address": False,
    "'fd00::1' is ipv6_address": True, "'fd00::1' is ipv4_address": False, "['a', '1.2.3.4'] | select('ipv4_address')": ["1.2.3.4"],
    # versions
    "'1.10' is version('1.9', '>')": True, "'v1.10' is version('1.9', 'gt')": True, "'1.2' is version('1.2.0', '<')": True, "'1.2' is version('1.2')": True, "1.5 is version('1.5', '==')": True, "'1.a' is version('1.2', '!=')": True,
    "'1.0.0-rc.2' is version('1.0.0-rc.10', '<', version_type='semver')": True, "'1.0.0' is version('1.0.0-rc.1', '>', version_type='semver')": True, "'1.0.0+a' is version('1.0.0+b', 'eq', version_type='semver')": True,
    "['1.9', '1.10', '1.8'] | select('version', '1.9', '>=')": ["1.9", "1.10"], "[{'v': '2'}, {'v': '10'}] | selectattr('v', 'version', '9', '>') | map(attribute='v')": ["10"],
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
    "5 | keep_keys('a')": "keep_keys takes a mapping or a list of mappings, not a number",
    "l | remove_keys('a')": "remove_keys takes a mapping or a list of mappings, not a number",
    "m | pick": "pick: target is missing",
    "l | product('ab')": "product takes lists, not text",
    "l | product(repeat=65)": "product takes a repeat from 1 to 64",
    "[0, 1] | product(repeat=20)": "a list of 1,048,576 items; at most 100,000 are allowed",
    "team | subelements('x')": "subelements needs a list in each item, not a number",
    "'ab' | subelements('x')": "subelements takes a list or a mapping, not text",
    "pods | subelements('x')": "pods[0].x is not set (pods[0] has n, p); use `default(...)` if it may be missing",
    "'a' | hash('crc')": "hash takes md5, sha1, sha224, sha256, sha384 or sha512",
    "'a' | b64encode('idna')": "unknown encoding: use utf-8, latin-1, utf-16-le or utf-16-be",
    "'\u20ac' | b64encode('latin-1')": "b64encode: latin-1 has only the characters up to U+00FF, one for each byte",
    "'/w==' | b64decode": "b64decode: not base64 of UTF-8 text; encoding='latin-1' reads any bytes, as one character each",
    "m | to_nice_yaml(indent=1)": "to_nice_yaml takes an indent from 2 to 4",
    "'x' | ip_network": "ip_network: not an IP address or network, such as 10.0.0.1, 10.0.0.0/16 or fd00::/48",
    "'fe80::1%eth0' | host(1)": "host: not an IP address or network, such as 10.0.0.1, 10.0.0.0/16 or fd00::/48",
    "net | ip_network('usable')": "ip_network has no such part; use one of network, prefix, netmask, broadcast, size, version",
    "net | host(256)": "host: the network has fewer addresses",
    "'1.a' is version('1.2', '<')": "version: one version has a number where the other has text, so they have no order",
    "'1.2' is version('1.2', '=>')": "version takes one of the operators ==, !=, <, <=, > and >=",
    "'1.2' is version('1.2', version_type='pep440')": "version: version_type is 'loose' or 'semver'",
    "'1.2' is version('1.2', version_type='semver')": "version: not a version by SemVer, such as 1.2.3 or 1.2.3-rc.1",
    "'' is version('1.2')": "version takes versions of 1 to 256 characters",
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
    "keep_keys('a')",
    "product([])",
    "subelements('a')",
    "sha1",
    "ip_network",
    "ip_in('10.0.0.0/8')",
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


@pytest.mark.slow
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


MAPPINGS = st.dictionaries(st.sampled_from("abcd"), DATA.filter(lambda value: value is not None), max_size=4)


@given(MAPPINGS, st.lists(st.sampled_from("abcd"), max_size=3))
@settings(deadline=None, max_examples=examples(100))
def test_kept_and_removed_keys_make_up_the_whole_mapping(mapping, keys):
    def of(expression):
        return evaluate(expression, m=mapping, k=keys)

    assert of("m | keep_keys(k) | combine(m | remove_keys(k))") == mapping
    assert of("m | keep_keys(k) | keep_keys(k) == m | keep_keys(k)")
    assert of("m | keep_keys(k) | remove_keys(k)") == {}
    assert of("[m] | keep_keys(k) == [m | keep_keys(k)]")


@given(LISTS, LISTS, LISTS)
@settings(deadline=None, max_examples=examples(100))
def test_the_rows_of_a_product_are_those_of_the_standard_library(a, b, c):
    found = evaluate("a | product(b, c)", a=a, b=b, c=c)
    assert [tuple(row) for row in found] == list(itertools.product(a, b, c))


@given(st.text(max_size=12))
@settings(deadline=None, max_examples=examples(150))
def test_an_escaped_text_matches_only_itself(text):
    assert evaluate("t | regex_search(t | regex_escape) == t", t=text) or "\0" in text
    assert evaluate("(t ~ 'x') is match((t | regex_escape) ~ '$')", t=text) is False


@given(st.binary(max_size=40))
@settings(deadline=None, max_examples=examples(100))
def test_any_bytes_survive_as_latin_1(data):
    encoded = base64.b64encode(data).decode()
    assert evaluate("e | b64decode('latin-1') | b64encode('latin-1')", e=encoded) == encoded


@pytest.mark.slow
@given(st.ip_addresses(), st.integers(0, 32), st.ip_addresses(v=4) | st.ip_addresses(v=6))
@settings(deadline=None, max_examples=examples(200))
def test_networks_contain_the_addresses_that_the_standard_library_puts_there(address, prefix, other):
    network = ipaddress.ip_network(f"{address}/{prefix}", strict=False)
    text = f"{address}/{prefix}"
    assert evaluate("t | ip_network", t=text) == str(network)
    assert evaluate("o | ip_in(t)", t=text, o=str(other)) is (other in network)
    assert evaluate("(t | host(0)) | ip_in(t) and (t | host(-1)) is ip_in(t)", t=text)


class _LooseVersion:
    """The order of versions in Ansible."""

    def __init__(self, text):
        parts = [part for part in re.split(r"(\d+|[a-z]+|\.)", text) if part and part != "."]
        self.parts = [int(part) if part.isdigit() else part for part in parts]


VERSIONS = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,3}(-?(rc|a|b)\.?[0-9])?", fullmatch=True)


@pytest.mark.slow
@given(VERSIONS, VERSIONS)
@settings(deadline=None, max_examples=examples(300))
def test_loose_versions_have_the_order_of_ansible(a, b):
    one, two = _LooseVersion(a).parts, _LooseVersion(b).parts
    try:
        expected = one < two
    except TypeError:
        with pytest.raises(RenderError, match="they have no order"):
            evaluate("a is version(b, '<')", a=a, b=b)
        return
    assert evaluate("a is version(b, '<')", a=a, b=b) is expected
    assert evaluate("a is version(b, '>=')", a=a, b=b) is not expected
    assert evaluate("('v' ~ a) is version(b, 'lt')", a=a, b=b) is expected


SEMVER = "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 2.0.0 2.1.0 2.1.1"


def test_versions_of_semver_have_the_order_of_its_specification():
    versions = SEMVER.split()
    for number, one in enumerate(versions):
        for place, two in enumerate(versions):
            found = evaluate("a is version(b, '<', version_type='semver')", a=one, b=two)
            assert found is (number < place)
