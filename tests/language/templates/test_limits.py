"""Known attacks on a template engine, each in a process of its own with little memory and time: it ends soon, with an
error that a person understands."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates.values.cost import MAX_TEXT
from tests.language.templates.rendering import evaluate, render

MEMORY = 600 * 1024 * 1024
SECONDS = 12

ATTACKS = {
    # loops
    "nested ranges": "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}",
    "a range too long": "a: {{ range(10 ** 9) | length }}",
    "a range of huge numbers": "a: {{ range(10 ** 30) | length }}",
    "nested loops over a list": "{% set l = range(3000) | list %}{% for i in l %}{% for j in l %}{% endfor %}{% endfor %}",
    "printing in nested loops": "{% for i in range(9000) %}{% for j in range(9000) %}\n- {{ i }}\n{% endfor %}{% endfor %}",
    "text in nested loops": "a: {% for i in range(9000) %}{% for j in range(9000) %}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
    "map in a loop": "{% set l = range(9999) | list %}{% for i in l %}{% set m = l | map('string') | list %}{% endfor %}",
    "membership in a loop": "{% set l = range(9999) | list %}{% for i in l %}{% if 'x' in l %}{% endif %}{% endfor %}",
    "membership of the CR's list": "{% for i in range(9999) %}{% for j in range(20) %}{% if 'x' in spec.list %}{% endif %}{% endfor %}{% endfor %}",
    "membership of the CR's mappings": "{% for i in range(9999) %}{% for j in range(20) %}{% if spec.deep in spec.list %}{% endif %}{% endfor %}{% endfor %}",
    "comparing the CR's mappings": "{% for i in range(9999) %}{% for j in range(99) %}{% if spec.big == spec.copy %}{% endif %}{% endfor %}{% endfor %}",
    "comparing by selectattr": "{% for i in range(9999) %}{% set x = spec.items_ | selectattr('v', 'equalto', spec.copy) | list %}{% endfor %}",
    "sorting in a loop": "{% for i in range(9999) %}{% set x = spec.list | sort %}{% endfor %}",
    "slices of a list in a loop": "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = ns.l + [spec.list[0:]] %}{% endfor %}",
    "hashing in a loop": "{% for i in range(9999) %}{% for j in range(100) %}{% set x = spec.big | sha256 %}{% endfor %}{% endfor %}",
    "combining in a loop": "{% for i in range(9999) %}{% for j in range(100) %}{% set x = spec.big | combine(spec.copy) %}{% endfor %}{% endfor %}",
    "dumping in a loop": "{% for i in range(9999) %}{% for j in range(100) %}{% set x = spec.big | to_yaml | length %}{% endfor %}{% endfor %}",
    "parsing in a loop": "{% set t = spec.big | to_json %}{% for i in range(9999) %}{% for j in range(100) %}{% set x = (t ~ '') | from_yaml %}{% endfor %}{% endfor %}",
    "parsing JSON in a loop": "{% set t = spec.big | to_json %}{% for i in range(9999) %}{% for j in range(100) %}{% set x = (t ~ '') | from_json %}{% endfor %}{% endfor %}",
    "dict in a loop": "{% for i in range(9999) %}{% for j in range(100) %}{% set x = dict(spec.big) %}{% endfor %}{% endfor %}",
    "items in a loop": "{% for i in range(9999) %}{% for j in range(100) %}{% set x = spec.big.items() %}{% endfor %}{% endfor %}",
    "join in a loop": "{% set l = [''] * 9999 %}{% for i in range(9999) %}{% for j in range(100) %}{% set x = ''.join(l) %}{% endfor %}{% endfor %}",
    "empty spreads": "a:\n  b: 1\n{% for i in range(9000) %}{% for j in range(99) %}\n  {{ {} }}\n{% endfor %}{% endfor %}",
    "mappings on one line": "a: 1\n{% for i in range(9000) %}{% for j in range(50) %}{{ {'x': 1} }}{% endfor %}{% endfor %}",
    # text
    "text times a number": "a: {{ 'A' * 10 ** 9 }}",
    "a number times text": "a: {{ 10 ** 9 * 'A' }}",
    "doubling by ~": "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "doubling by +": "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "doubling by join": "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] | join %}{% endfor %}",
    "doubling by format": "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set ns.s = '%s%s' % (ns.s, ns.s) %}{% endfor %}",
    "doubling by named format": "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set ns.s = '%(s)s%(s)s' | format(s=ns.s) %}{% endfor %}",
    "doubling by replace": "{% set ns = namespace(s='aa') %}{% for i in range(99) %}{% set ns.s = ns.s | replace('a', 'aaaa') %}{% endfor %}",
    "doubling by the method replace": "{% set ns = namespace(s='aa') %}{% for i in range(99) %}{% set ns.s = ns.s.replace('a', 'aaaa') %}{% endfor %}",
    "doubling by regex_replace": "{% set ns = namespace(s='aa') %}{% for i in range(99) %}{% set ns.s = ns.s | regex_replace('a', 'aaaa') %}{% endfor %}",
    "doubling by an empty replace": "a: {{ ('a' * 3000000) | replace('', 'aaaaaaaaaaaaaa') | length }}",
    "doubling captured text": "{% set x %}aaaaaaaa{{ spec.s }}{% endset %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 50 + "a: {{ x | length }}",
    "doubling captured text printed": "{% set x %}aaaaaaaa{{ spec.s }}{% endset %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 50 + "a: {{ x }}",
    "doubling captured lines": "{% set x %}\n- {{ spec.s }}\n{% endset %}\n" + "{% set x %}\n{{ x }}\n{{ x }}\n{% endset %}\n" * 50 + "a:\n  {{ x }}\n",
    "doubling joined captured text": "{% set x %}aaaaaaaa{{ spec.s }}{% endset %}" + "{% set x = x ~ x %}" * 50 + "a: {{ x }}",
    "doubling by macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% else %}aaaa{% endif %}{% endmacro %}a: {{ m(60) }}",
    "a large value many times in text": "a: {% for i in range(9999) %}{{ spec.megabyte }}{% endfor %}",
    "a large value many times": "a:\n{% for i in range(9999) %}\n- {{ spec.megabyte }}\n{% endfor %}",
    "a large value captured many times": "{% set x %}{% for i in range(9999) %}{{ spec.megabyte }}{% endfor %}{% endset %}a: {{ x | length }}",
    "a large mapping many times": "a:\n{% for i in range(9999) %}\n- {{ spec.big }}\n{% endfor %}",
    "a list of a large value": "a: {{ [spec.megabyte] * 99999 }}",
    "a list of a large value as JSON": "a: {{ ([spec.megabyte] * 9999) | to_json | length }}",
    "a large value dumped many times": "a: {{ [spec.megabyte, spec.megabyte, spec.megabyte, spec.megabyte] | to_yaml | length }}",
    "captured texts kept": "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set x %}{{ spec.megabyte }}{{ i }}{% endset %}{% if x %}{% endif %}{% set ns.l = ns.l + [x] %}{% endfor %}",
    "upper kept": "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = ns.l + [spec.megabyte | upper] %}{% endfor %}",
    "printf width": "a: {{ '%1000000000d' % 1 }}",
    "printf width by a star": "a: {{ '%*d' % (1000000000, 1) }}",
    "printf precision": "a: {{ '%.1000000000f' % 1 }}",
    "format width": "a: {{ '%01000000000d' | format(1) }}",
    "many formats": "a: {{ ('%(a)200d' * 500000) | format(a=1) | length }}",
    "many named formats": "a: {{ ('%(a)s' * 99999) | format(a=spec.megabyte) | length }}",
    "str.format": "a: {{ '{:>1000000000}'.format(1) }}",
    "ljust": "a: {{ 'a'.ljust(10 ** 9) }}",
    "zfill": "a: {{ 'a'.zfill(10 ** 9) }}",
    "the method center": "a: {{ 'a'.center(10 ** 9) }}",
    "center": "a: {{ 'a' | center(10 ** 9) }}",
    "expandtabs": "a: {{ '\t'.expandtabs(10 ** 9) }}",
    "indent": "a: {{ 'a\nb' | indent(10 ** 9) }}",
    "indent by text": "a: {{ 'a\nb' | indent('x' * 1000000) }}",
    "indent of many lines": "a: {{ ('\n' * 3000000) | indent(200, true, true) | length }}",
    "join with a long separator": "a: {{ (range(9999) | join('x' * 100000)) | length }}",
    "the method join with a long separator": "a: {{ ('x' * 100000).join(range(9999) | map('string') | list) | length }}",
    "wordwrap": "a: {{ ('a' * 3000000) | wordwrap(1) | length }}",
    "wordwrap with a long wrapstring": "a: {{ ('a ' * 10000) | wordwrap(1, wrapstring='x' * 100000) | length }}",
    "truncate": "a: {{ 'abc' | truncate(2, true, 'x' * 10000000) }}",
    "splitting into characters": "a: {{ ('a ' * 1500000).split() | length }}",
    "the filter split": "a: {{ ('a ' * 1500000) | split | length }}",
    "a list of characters": "a: {{ ('a' * 3000000) | list | length }}",
    "lipsum": "a: {{ lipsum(n=100000) }}",
    "urlencode": "a: {{ ('\u20ac' * 3000000) | urlencode | length }}",
    "base64 again and again": "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(999) %}{% set ns.s = ns.s | b64encode %}{% endfor %}",
    "title of long text": "{% for i in range(999) %}{% set x = spec.megabyte | title %}{% endfor %}",
    # lists
    "list times a number": "a: {{ [1] * 10 ** 9 }}",
    "doubling a list": "{% set ns = namespace(l=[1, 2]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
    "doubling by sum": "{% set ns = namespace(l=[1, 2]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] | sum(start=[]) %}{% endfor %}",
    "summing many lists": "{% set l = range(9999) | batch(1) | list %}{% for i in range(9999) %}{% set x = l | sum(start=[]) %}{% endfor %}",
    "batch": "a: {{ [1] | batch(10 ** 9, 0) | list }}",
    "slice": "a: {{ [1] | slice(10 ** 9) | list | length }}",
    "a list holding itself twice, printed": "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}\na: {{ ns.l }}",
    "a list holding itself twice, spread": "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}\na:\n  {{ ns.l }}",
    "a list holding itself twice, as JSON": "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}\na: {{ ns.l | to_json }}",
    "a list holding itself twice, as YAML": "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}\na: {{ ns.l | to_yaml }}",
    "a list holding itself twice, hashed": "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}\na: {{ ns.l | sha256 }}",
    "a list holding itself twice, compared": "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}\na: {{ ns.l == ns.m }}",
    "a list holding itself twice, ordered": "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}\na: {{ ns.l < ns.m }}",
    "a list holding itself twice, looked for": "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}\na: {{ ns.l in [ns.m] }}",
    "a list holding itself twice, sorted": "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}\na: {{ [ns.l, ns.m] | sort | length }}",
    "a list holding itself twice, unique": "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}\na: {{ [ns.l, ns.m] | unique | length }}",
    "a list holding itself twice, counted": "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}\na: {{ [ns.l, ns.m].count(ns.m) }}",
    "a list holding itself twice, tested": "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}\na: {{ ns.l is equalto(ns.m) }}",
    "a list holding itself twice, changed": "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{% for i in [ns.l, ns.m] %}{% if loop.changed(i) %}{% endif %}{% endfor %}",
    "a mapping holding itself twice": "{% set ns = namespace(l={}) %}{% for i in range(60) %}{% set ns.l = {'a': ns.l, 'b': ns.l} %}{% endfor %}\na: {{ ns.l }}",
    "a mapping holding itself twice, combined": "{% set ns = namespace(l={}) %}{% for i in range(60) %}{% set ns.l = {'a': ns.l, 'b': ns.l} | combine({'c': 1}) %}{% endfor %}\na: {{ ns.l }}",
    "a list holding itself twice, flattened": "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}\na: {{ ns.l | flatten | length }}",
    "a list of nothing holding itself twice, flattened": "{% set ns = namespace(l=[]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}\na: {{ ns.l | flatten | length }}",
    "a list holding itself twice, united": "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}\na: {{ ns.l | union(ns.l) | length }}",
    "united in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% set x = spec.items_ | union(spec.list) %}{% endfor %}{% endfor %}",
    "parted in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% set x = spec.list | difference(spec.items_) %}{% endfor %}{% endfor %}",
    "products in a loop": "{% set l = range(300) | list %}{% for i in range(9999) %}{% set x = l | product(l) %}{% endfor %}",
    "a product of many lists": "a: {{ [0, 1] | product(repeat=64) | length }}",
    "subelements in a loop": "{% set l = [{'l': range(999) | list}] * 90 %}{% for i in range(9999) %}{% set x = l | subelements('l') %}{% endfor %}",
    "some keys in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% set x = spec.big | remove_keys(spec.list) %}{% endfor %}{% endfor %}",
    "versions in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% set x = ('1.' * 120 ~ i) is version('1.' * 120 ~ j, '<') %}{% endfor %}{% endfor %}",
    "a version of many digits": "a: {{ ('9' * 3000000) is version('1', '>') }}",
    "addresses in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% set x = '10.0.0.1' is ip_in(['fd00::/8', '10.0.0.0/8']) %}{% endfor %}{% endfor %}",
    "an address of many characters": "a: {{ ('1.' * 1000000) | ip_network }}",
    "zipped in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% set x = spec.list | zip_longest(spec.list, spec.list) %}{% endfor %}{% endfor %}",
    "zipped to itself": "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l | zip(ns.l) %}{% endfor %}\na: {{ ns.l }}",
    "entries in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% set x = spec.big | dict2items | items2dict %}{% endfor %}{% endfor %}",
    "doubling by combine": "{% set ns = namespace(m={'l': [1, 2]}) %}{% for i in range(99) %}{% set ns.m = ns.m | combine(ns.m, list_merge='append') %}{% endfor %}",
    "combining lists in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% set x = {'l': spec.items_} | combine({'l': spec.items_}, list_merge='append_rp') %}{% endfor %}{% endfor %}",
    "combining many": "a: {{ ([spec.big] * 99999) | combine | length }}",
    "unpacking in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% for k, v in spec.big.items() %}{% endfor %}{% endfor %}{% endfor %}",
    "dictsort in a loop": "{% for i in range(9999) %}{% set x = spec.big | dictsort %}{% endfor %}",
    "dictsort by value in a loop": "{% for i in range(9999) %}{% set x = spec.numbers | dictsort(by='value') %}{% endfor %}",
    "unique in a loop": "{% for i in range(9999) %}{% set x = spec.list | unique %}{% endfor %}",
    "unique of mappings in a loop": "{% for i in range(9999) %}{% set x = spec.items_ | unique %}{% endfor %}",
    "grouping many": "{% for i in range(999) %}{% set x = range(9999) | map('string') | list | groupby(0) %}{% endfor %}",
    # numbers
    "a power": "a: {{ 10 ** (10 ** 7) > 1 }}",
    "a negative power": "a: {{ 10 ** -(10 ** 7) > 1 }}",
    "a power of a power": "a: {{ (((10 ** 50) ** 50) ** 50) > 1 }}",
    "squaring": "{% set ns = namespace(n=7) %}{% for i in range(60) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
    "squaring a quantity": "{% set ns = namespace(n='7.7' | quantity) %}{% for i in range(60) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
    "dividing a quantity": "{% set ns = namespace(n='7.7' | quantity) %}{% for i in range(999) %}{% set ns.n = ns.n / 3 %}{% endfor %}",
    "a long number from text": "a: {{ ('9' * 4000) | int }}",
    "a long hexadecimal number": "a: {{ (('f' * 3000000) | int(0, 16)) > 1 }}",
    "a long number literal": "a: {{ " + "9" * 4000 + " > 1 }}",
    "rounding to many places": "a: {{ 1.5 | round(10 ** 7, 'ceil') }}",
    "a sum of products": "a: {{ ([2 ** 500] * 9999) | sum }}",
    "a quantity of many digits": "a: {{ ('9' * 100000) | quantity }}",
    "a quantity of a large exponent": "a: {{ '1e999999999' | quantity }}",
    # regular expressions
    "a regex bomb": "a: {{ ('a' * 40) | regex_match('^(a+)+$b') }}{{ ('a' * 100000 ~ '!') | regex_match('^(a|aa)+$') }}{{ 1 / 0 }}",
    "a regex of many repetitions": "a: {{ 'a' | regex_match('((((a{100}){100}){100}){100}){100}') }}",
    "a long regex": "a: {{ 'a' | regex_match('a' * 100000) }}",
    "many matches": "a: {{ ('a' * 3000000) | regex_findall('') | length }}",
    "many replacements": "a: {{ ('a' * 3000000) | regex_replace('', 'xxxxxxxx') | length }}",
    "a regex that looks at all of the rest for each match": "a: {{ ('(' * 200000) | regex_findall('[(][^)]*[)]|[(]') | length }}",
    "a replacement that looks at all of the rest for each match": "a: {{ ('${' * 100000) | regex_replace('[$][{][^}]*[}]|[$]', 'x') | length }}",
    "a regex that counts far": "a: {{ ('a' * 300000) | regex_findall('[a-z]*a[a-z]{900}b|a') | length }}",
    # searches that Python does place by place
    "a search from the end": "a: {{ ('a' * 300000).rfind('ab' ~ 'a' * 150000) }}",
    "a split from the end": "a: {{ ('a' * 300000).rsplit('ab' ~ 'a' * 150000, 1) | length }}",
    "a partition from the end": "a: {{ ('a' * 300000).rpartition('ab' ~ 'a' * 150000) | length }}",
    "a strip of many characters": "a: {{ ('a' * 300000).strip('b' * 300000 ~ 'a') | length }}",
    "a trim of many characters": "a: {{ ('a' * 300000) | trim('b' * 300000 ~ 'a') | length }}",
    "wrapping a long word": "a: {{ ('a' * 400000) | wordwrap(1) | length }}",
    "directives that do not end": "a: {{ ('%(' * 300000) | format(1) | length }}",
    "regexes in a loop": "{% for i in range(9999) %}{% for j in range(99) %}{% set x = spec.megabyte | regex_match('b') %}{% endfor %}{% endfor %}",
    # depth
    "a macro that calls itself": "{% macro m() %}{{ m() }}{% endmacro %}a: {{ m() }}",
    "an include of itself": "{% include 'main.j2' %}",
    "a render of itself": "a: {{ render('main.j2') }}",
    "an import of itself": "{% import 'main.j2' as m %}a: {{ m.x }}",
    "a template that extends itself": "{% extends 'main.j2' %}",
    "a call block in a call block": "{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}a: {{ n() }}",
    "a recursive loop without end": "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "deep data": "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}\na: {{ ns.l }}",
    "deep data compared": "{% set ns = namespace(l=[], m=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% set ns.m = [ns.m] %}{% endfor %}\na: {{ ns.l == ns.m }}",
    "deep data as JSON": "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}\na: {{ ns.l | to_json }}",
    "deep brackets": "a: " + "[" * 5000 + "]" * 5000,
    "deep braces from a value": "a: {{ ('{a: ' * 9999) | from_yaml }}",
    "deep brackets from a value": "a: {{ ('[' * 999999) | from_json }}",
    "deep parentheses": "a: {{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "deep tags": "{% if true %}" * 500 + "{% endif %}" * 500 + "{{ 1 / 0 }}",
    "YAML's billion laughs from a value": "a: {{ spec.laughs | from_yaml }}",
    # output
    "too many documents": "{% for i in range(9999) %}\n---\na: 1\n{% endfor %}",
    "many fields": "{% for i in range(9999) %}{% for j in range(99) %}\nk{{ i }}x{{ j }}: 1\n{% endfor %}{% endfor %}",
    "many items": "a:\n{% for i in range(9999) %}{% for j in range(40) %}\n- 1\n{% endfor %}{% endfor %}",
    "text of three megabytes and more": "a: {{ spec.megabyte }}{{ spec.megabyte }}{{ spec.megabyte }}{{ spec.megabyte }}" * 9,
}  # fmt: skip

# Those that use up the whole budget bit by bit, which takes a second or more each.
PATIENT = {
    "a regex that looks at all of the rest for each match",
    "a replacement that looks at all of the rest for each match",
    "combining in a loop",
    "comparing by selectattr",
    "comparing the CR's mappings",
    "dict in a loop",
    "dictsort by value in a loop",
    "dictsort in a loop",
    "doubling by macros",
    "doubling by regex_replace",
    "doubling captured lines",
    "dumping in a loop",
    "empty spreads",
    "grouping many",
    "items in a loop",
    "many fields",
    "many items",
    "many replacements",
    "mappings on one line",
    "membership in a loop",
    "membership of the CR's mappings",
    "parsing JSON in a loop",
    "parsing in a loop",
    "printing in nested loops",
    "sorting in a loop",
    "unique in a loop",
}

# One process imports everything, and has a child for each attack: that is many times faster than starting a process for
# each attack.
PARENT = """
import json, os, resource, sys
from ruleop.errors import RenderError
from ruleop.planning.guard import TooSlow, GUARD, place_of
from ruleop.language.templates import (RuleErrors, view)
from ruleop.language.templates.compile import (Library)
big = {f"k{i}": dict(a=i, b=[i] * 5, c="x" * 20) for i in range(2000)}
spec = dict(
    s="s", numbers={f"n{i}": i for i in range(5000)}, megabyte="a" * 1000000, list=[f"item{i}" for i in range(20000)], deep=dict(x=[1, dict(y=2)]), big=big, copy=json.loads(json.dumps(big)),
    items_=[dict(v=json.loads(json.dumps(big))) for _ in range(5)],
    laughs="a: &a [x,x,x,x,x,x,x,x,x]\\n" + "".join(f"{c}: &{c} [" + ",".join("*" + p for _ in range(9)) + "]\\n" for p, c in zip("abcdefg", "bcdefgh")),
)
memory, seconds = map(int, sys.argv[1:])

def attack(template):
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    try:
        main = Library({"main.j2": template}).text_mapping("main.j2")
        GUARD.within(1.0, lambda: main.render(dict(spec=view("spec", spec))))
    except (RenderError, RuleErrors) as error:
        return str(error)
    except TooSlow as end:
        return "{}: {}".format(*place_of(end))
    return ""

for line in sys.stdin:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, json.dumps(attack(json.loads(line)))[:60000].encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    print(json.dumps([os.waitpid(child, 0)[1], said]), flush=True)
"""


@pytest.fixture(scope="module")
def attacked():
    command = [sys.executable, "-c", PARENT, str(MEMORY), str(SECONDS)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    ) as process:
        yield process


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack", [pytest.param(name, marks=pytest.mark.slow) if name in PATIENT else name for name in ATTACKS]
)
def test_an_attack_ends_soon_with_a_clear_error(attack, attacked):
    attacked.stdin.write(json.dumps(ATTACKS[attack]) + "\n")
    attacked.stdin.flush()
    status, said = json.loads(attacked.stdout.readline())
    assert status == 0, "it was killed, or crashed"
    assert json.loads(said), "it went through"
    assert "templates/main.j2" in said
    assert "memory" not in said
    assert len(said) < 600


@pytest.mark.slow
def test_each_slow_attack_exists():
    assert ATTACKS.keys() >= PATIENT


@pytest.mark.slow
def test_ordinary_amounts_are_within_the_limits():
    assert len(render("a: {{ v }}", v="a" * MAX_TEXT)["a"]) == MAX_TEXT
    assert len(render("{% for i in range(4000) %}\n- name: {{ i }}\n  value: x{{ i }}\n{% endfor %}")) == 4000
    assert (
        len(evaluate("v | map(attribute='n') | sort | unique | list", v=[{"n": f"n{i}"} for i in range(5000)])) == 5000
    )
    assert evaluate("'x' * 100000") == "x" * 100000
    assert evaluate("2 ** 60") == 2**60
    assert evaluate("range(10000) | length") == 10000
    lines = "".join(f"server-{i} 10.0.{i // 250}.{i % 250};\n" for i in range(5000))
    assert len(evaluate("v | regex_findall('[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+')", v=lines)) == 5000
    assert evaluate("v | regex_replace('(?m)^([^ ]*) (.*);$', '\\\\2 \\\\1')", v=lines).startswith(
        "10.0.0.0 server-0\n"
    )
    assert evaluate("v.rfind('server-')", v=lines) == lines.rfind("server-")
    assert evaluate("v | wordwrap(40)", v=lines) == lines.rstrip()
    assert evaluate("v | trim('; ')", v=" a;" * 20000) == (" a;" * 20000).strip("; ")


@pytest.mark.slow
def test_each_render_has_the_full_budget():
    source = "a: {% for i in range(9000) %}{% for j in range(30) %}{% endfor %}{% endfor %}x"
    for _ in range(8):
        assert render(source) == {"a": "x"}


@pytest.mark.slow
def test_the_memory_limit_of_the_attacks_is_below_that_of_the_machine():
    assert (
        resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
        or resource.getrlimit(resource.RLIMIT_AS)[0] > MEMORY
    )
    with pytest.raises(RenderError, match="too much work"):
        render("{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}")
