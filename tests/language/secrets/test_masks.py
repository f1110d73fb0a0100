"""Values that a template computes from a Secret are masked in a plan, in any field and after any operation.

A Secret holds a marked value. Generated templates copy it, cut it, join it, encode it and put it into variables,
macros, loops and files; the result goes into fields, names of fields, list items and longer texts of other kinds. Then
the plans to create the objects, to change them and to remove the fields again are searched for the value, for each part
of it of four characters, and for its encodings.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ruleop.authoring.report.spans import text_of
from ruleop.authoring.report.view_json import plan_document
from ruleop.authoring.report.view_text import plan_lines
from ruleop.authoring.report.views import ResourceView
from ruleop.language.rules import ProjectErrors
from ruleop.language.secrets.masks import NO_MASKS
from ruleop.planning import History, plan
from tests.exploration import examples
from tests.planning.harness import Harness, key

MARK, OLD = "Pl4nt3dV4lu3", "0ldS3cr3tTxt"
WATCH = """
observe:
  source: {version: v1, kind: Secret, name: source}
  all: {version: v1, kind: Secret, selector: {a: b}}
let:
  outer: "{{ source.data.v | b64decode }}"
children:
  own: {template: own.yaml}
  c: {template: c.yaml}
  copy: {template: copy.yaml}
"""
OWN = "apiVersion: v1\nkind: Secret\nmetadata: {name: own}\ndata: {v: '{{ source.data.v }}'}\n"
COPY = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: copy}\ndata: {again: 'x{{ c.data.a }}'}\n"


def secret(value: str, name: str = "source") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "shop", "labels": {"a": "b"}},
        "data": {
            "v": base64.b64encode(value.encode()).decode(),
            "conf": base64.b64encode(json.dumps({"user": "app", "password": value}).encode()).decode(),
        },
    }


def parts(value: str) -> set[str]:
    """What must not be shown: parts of the value, in the common encodings."""
    found = {value[at : at + 4] for at in range(len(value) - 3)}
    found |= {part.upper() for part in found} | {part.lower() for part in found} | {part[::-1] for part in found}
    for text in (value, base64.b64encode(value.encode()).decode()):
        found.add(base64.b64encode(text.encode()).decode()[:12])
    return found


def harness(body: str, value: str = MARK) -> Harness:
    found = Harness.of(WATCH, {"app": "shop-app", "tags": {"x": "one"}}, c=body, own=OWN, copy=COPY)
    found.add(secret(value))
    return found


def searched(found: Harness, value: str, *, whole: bool = False) -> str:
    planned = found.plan(History.NONE)
    assert found.resource is not None
    text = text_of(plan_lines(ResourceView(found.resource, planned, kinds=found)))
    text += orjson.dumps(plan_document(ResourceView(found.resource, planned))).decode()
    shown = [part for part in ({value} if whole else parts(value)) if part in text]
    assert not shown, text
    return text


SOURCES = st.sampled_from(
    [
        "source.data.v | b64decode",
        "live.own.data.v | default('') | b64decode",
        "own.data.v | b64decode",
        "(all | first).data.v | b64decode",
        "outer",
        "(source.data.conf | b64decode | from_json).password",
        "source['data']['v'] | b64decode",
        "(source.data | dict2items | first).value | b64decode",
        "[source][0].data.v | b64decode",
        "(spec.no | default(source)).data.v | b64decode",
    ]
)
STEPS = st.sampled_from(
    [
        "VALUE",
        "(VALUE)[2:9]",
        "(VALUE)[:6]",
        "(VALUE) | upper",
        "(VALUE) | reverse | join('')",
        "(VALUE) | b64encode",
        "(VALUE) | replace('4', 'x')",
        "(VALUE) | regex_replace('3', '')",
        "'https://user:' ~ (VALUE) ~ '@host/'",
        "[VALUE, 'x'] | join('-')",
        "{'k': VALUE} | to_json",
        "{'k': VALUE}.k",
        "('%s!' | format(VALUE))",
        "(VALUE) | truncate(8, true, '')",
        "(VALUE).split('t') | last",
        "(VALUE) if spec.app else 'no'",
        "spec.no | default(VALUE)",
        "(VALUE) | list | join('')",
        "(VALUE) | urlencode",
        "namespace(x=VALUE).x",
        "dict(x=VALUE).x",
        "[spec.app, VALUE] | last",
        "([VALUE] | map('lower') | list)[0]",
    ]
)


@st.composite
def values(draw: st.DrawFn) -> str:
    found = draw(SOURCES)
    for _ in range(draw(st.integers(0, 3))):
        found = draw(STEPS).replace("VALUE", found)
    return found


RENAMED = "{% macro a(x) %}{% endmacro %}{% macro m(y) %}{{ y }}{% endmacro %}{% set a = m %}\n"
BEFORE = {
    RENAMED: "{{ a(VALUE) }}",
    "": "{{ VALUE }}",
    "{% set v = VALUE %}\n": "{{ v }}",
    "{% set v %}a{{ VALUE }}{% endset %}\n": "{{ v | upper }}",
    "{% macro m(x, y='') %}{{ x }}{{ y }}{% endmacro %}\n": "{{ m('a', VALUE) }}",
    "{% macro m() %}{{ VALUE }}{% endmacro %}\n": "{{ m() }}",
    "{% macro m() %}{{ caller(VALUE) }}{% endmacro %}\n": "{% call(x) m() %}{{ x }}{% endcall %}",
    "{% set ns = namespace(v='') %}{% for i in [1] %}{% set ns.v = VALUE %}{% endfor %}\n": "{{ ns.v }}",
    "{# a loop #}\n": "{% for x in [VALUE] %}{{ x }}{% endfor %}",
    "{# letters #}\n": "{% for x in VALUE %}{{ x }}{% endfor %}",
    "{# with #}\n": "{% with x = VALUE %}{{ x }}{% endwith %}",
    "{# a filter #}\n": "{% filter upper %}{{ VALUE }}{% endfilter %}",
    "{# unpacked #}\n": "{% for x, y in [['a', VALUE]] %}{{ y }}{% endfor %}",
}
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: copy}\n"
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  annotations:\n    plain: '{{ spec.app }}'\n"
DEPLOYMENT = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: c}\ndata: {a: a}\nspec:\n  template:\n    spec:\n"
    "      containers:\n      - name: app\n        image: '{{ spec.app }}'\n        env:\n"
    "        - {name: PLAIN, value: '{{ spec.app }}'}\n        - {name: P, value: '{PRINTED}'}\n"
    "        args: ['--x', '{PRINTED}']\n"
)
BODIES = st.sampled_from(
    [
        HEAD + "data:\n  b: '{{ spec.app }}'\n  a: {PRINTED}\n",
        HEAD + "data:\n  b: '{{ spec.app }}'\n  a: 'x {PRINTED} y'\n",
        HEAD + "    note: 'x{PRINTED}'\ndata: {a: a}\n",
        HEAD + "data:\n  a: |\n    user = {{ spec.app }}\n    password = {PRINTED}\n",
        HEAD + "data:\n  a: a\n  'k-{PRINTED}': b\n",
        DEPLOYMENT,
    ]
)


def body(value: str, before: str, text: str) -> str:
    printed = BEFORE[before].replace("VALUE", f"({value})")
    return before.replace("VALUE", f"({value})") + text.replace("{PRINTED}", printed)


@settings(max_examples=examples(60))
@given(values(), st.sampled_from(sorted(BEFORE)), BODIES)
@example("own.data.v", "", HEAD + "data:\n  a: {PRINTED}\n")
@example("own.data.v | b64decode | upper", RENAMED, HEAD + "data:\n  a: {PRINTED}\n")
def test_no_value_computed_from_a_secret_is_shown(value: str, before: str, text: str) -> None:
    try:
        found = harness(body(value, before, text), OLD)
    except ProjectErrors:
        return  # an expression that is not possible there
    searched(found, OLD)
    found.step()
    found.step()
    searched(found, OLD)
    found.change(key("source", "Secret"), {"data": secret(MARK)["data"]})
    for _ in range(3):
        text = searched(found, OLD)
        searched(found, MARK)
        found.step()


PIECES = {
    "an included file": "data:\n  {% include 'piece.yaml' %}\n",
    "an included file as a value": "data:\n  {{ 'a' }}:\n    {% include 'piece.yaml' %}\n",
    "an included file in a text": "data:\n  a: |\n    x\n    {% include 'piece.yaml' %}\n",
    "a file that includes it": "data:\n  {% include 'outer.yaml' %}\n",
    "a macro that includes it": "data:\n  {% macro m() %}\n  {% include 'piece.yaml' %}\n  {% endmacro %}\n  {{ m() }}\n",
    "an imported macro": "{% from 'macros.yaml' import m %}\ndata:\n  {{ m() }}\n",
    "a renamed macro": "{% import 'macros.yaml' as other %}\ndata:\n  {{ other.m() }}\n",
    "a recursive loop": 'data:\n  a: "{% for x in [[[1]]] recursive %}{{ VALUE if x == 1 else loop(x) }}{% endfor %}"\n',
    "a branch": "data:\n  {% if spec.app %}\n  a: '{{ VALUE }}'\n  {% else %}\n  b: c\n  {% endif %}\n",
    "a choice": "data:\n  a: {% if spec.app %}'{{ VALUE }}'{% else %}b{% endif %}\n",
    "a loop": "data:\n  {% for each in [1, 2] %}\n  'k{{ each }}': '{{ VALUE }}'\n  {% endfor %}\n",
    "a spread mapping": "data:\n  plain: x\n  {{ {VALUE: VALUE} }}\n",
    "a spread list": "items:\n  - plain\n  {{ [VALUE] }}\n",
    "a spread list at the column of its key": "items:\n{{ [VALUE] }}\n",
    "a captured list": "{% set found %}\n- '{{ VALUE }}'\n{% endset %}\nitems:\n  {{ found }}\n",
    "items without names": "items:\n  - plain\n  - - '{{ VALUE }}'\n",
    "an item's name": "items:\n  - {name: plain, value: a}\n  - {name: '{{ VALUE }}', value: a}\n",
    "a whole mapping": "data: {{ {'a': VALUE} }}\n",
    "a mapping of several members": "spec:\n  {{ {'a': {'b': [VALUE]}} }}\n",
}
FILES = {
    "piece": "inner: '{{ VALUE }}'\n",
    "outer": "{% include 'piece.yaml' %}\n",
    "macros": "{% macro m() %}\n{% include 'piece.yaml' %}\n{% endmacro %}\n",
}


def filled(text: str) -> str:
    """With a part of the value that is not recognised inside longer text."""
    return text.replace("VALUE", "(source.data.v | b64decode)[1:8]")


@pytest.mark.parametrize("what", PIECES)
def test_no_value_is_shown_wherever_a_template_writes_it(what: str) -> None:
    files = {name: filled(text) for name, text in FILES.items()}
    found = Harness.of(WATCH, {"app": "shop-app"}, c=HEAD + filled(PIECES[what]), own=OWN, copy=CONFIG, **files)
    found.add(secret(OLD))
    searched(found, OLD)
    found.settle()
    assert OLD[1:8] in json.dumps(found.objects[key("c")])
    found.change(key("source", "Secret"), {"data": secret(MARK)["data"]})
    searched(found, OLD)
    assert "(hidden" in searched(found, MARK)


EXTENDING = {
    "c": "{% extends 'base.yaml' %}\n{% block inner %}\n  a: '{{ VALUE }}'\n{% endblock %}\n",
    "base": HEAD + "data:\n{% block inner %}\n  a: b\n{% endblock %}\n",
}


def test_fields_of_a_block_that_overrides_another_are_masked() -> None:
    found = Harness.of(WATCH, {"app": "shop-app"}, own=OWN, copy=CONFIG, **{k: filled(v) for k, v in EXTENDING.items()})
    found.add(secret(OLD))
    searched(found, OLD)
    found.settle()
    assert found.objects[key("c")]["data"] == {"a": OLD[1:8]}


def test_items_and_fields_with_literal_names_are_masked_each_by_itself() -> None:
    text = changed(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: c}\ndata: {a: a}\nspec:\n"
        "  {% if spec.app %}\n  plain: '{{ spec.app }}'\n  {% endif %}\n  {{ {'hidden': outer} }}\n"
        "  items:\n  {% for each in [1] %}\n  - {name: A, value: '{{ spec.app }}'}\n  {% endfor %}\n"
        "  - {name: B, value: '{{ outer }}'}\n"
    )
    assert "spec.plain: shop-app -> other" in text
    assert "[name=A].value: shop-app -> other" in text
    assert "(hidden, before) -> (hidden, after)" in text


# -- examples ----------------------------------------------------------------------------------------------------------


def changed(text: str) -> str:
    """The plan after a change of the Secret and of the CR."""
    found = harness(text, OLD)
    found.settle()
    found.change(key("source", "Secret"), {"data": secret(MARK)["data"]})
    assert found.resource is not None
    found.resource["spec"].update(app="other")
    planned = found.plan(History.NONE)
    assert found.resource is not None
    return text_of(plan_lines(ResourceView(found.resource, planned, kinds=found)))


def test_fields_from_the_cr_are_still_shown() -> None:
    text = changed(HEAD + "data:\n  plain: '{{ spec.app }}'\n  a: 'x{{ source.data.v | b64decode }}'\n  z: '1'\n")
    assert "data.plain: shop-app -> other" in text
    assert "data.a: (hidden, before) -> (hidden, after)" in text


LOOPED = """
observe:
  source: {version: v1, kind: Secret, name: source}
children:
  c:
    object:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: c}
      data:
        plain: "{{ spec.app }}"
        "{% for each in [source.data.v] %}":
          "{{ spec.app }}-copy": "{{ each | b64decode }}"
        "{% if source.data.v %}":
          copy: "x{{ source.data.v | b64decode }}"
"""


def test_fields_that_tags_in_watches_yaml_make_of_a_secret_are_masked() -> None:
    found = Harness.of(LOOPED, {"app": "shop-app"})
    found.add(secret(OLD))
    searched(found, OLD)
    found.settle()
    assert found.objects[key("c")]["data"]["shop-app-copy"] == OLD
    found.change(key("source", "Secret"), {"data": secret(MARK)["data"]})
    text = searched(found, OLD)
    searched(found, MARK)
    assert "data.copy: (hidden, before) -> (hidden, after)" in text
    assert "data.shop-app-copy: (hidden, before) -> (hidden, after)" in text


def test_items_of_a_list_are_matched_by_name() -> None:
    text = changed(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: c}\ndata: {a: a}\nspec:\n  template:\n    spec:\n"
        "      containers:\n      - name: app\n        env:\n        - {name: A, value: '{{ spec.app }}'}\n"
        "        - {name: B, value: '{{ outer }}'}\n"
    )
    assert "env[name=A].value: shop-app -> other" in text
    assert "env[name=B].value: (hidden, before) -> (hidden, after)" in text


def test_items_of_a_list_that_grows_are_still_shown() -> None:
    text = changed(
        HEAD
        + "data: {a: '{{ outer }}'}\n"
        + "args:\n  - --app\n  {% if spec.app == 'other' %}\n  - --added\n  {% endif %}\n  - --end\n"
    )
    assert "--added" in text
    assert "(hidden" not in text.split("args")[1].split("\n")[0]


def test_a_computed_name_without_secret_data_hides_no_other_field() -> None:
    text = changed(HEAD + "'{{ spec.app }}': x\nplain: '{{ spec.app }}'\ndata: {a: '{{ outer }}'}\n")
    assert "plain: shop-app -> other" in text
    assert "data.a: (hidden, before) -> (hidden, after)" in text


def test_a_checksum_is_shown() -> None:
    text = changed(HEAD + "    sum: '{{ source.data | sha256(8) }}'\ndata: {a: a}\n")
    assert "metadata.annotations.sum: " in text
    assert "(hidden" not in text.replace("(hidden, before) -> (hidden, after)", "", 1)


def test_a_copy_made_by_an_earlier_rule_is_masked() -> None:
    found = harness(HEAD + "data:\n  a: 'x{{ source.data.v | b64decode }}'\n")
    found.settle()
    other = harness(HEAD + "data:\n  a: 'y'\n")
    other.objects = found.objects
    text = searched(other, MARK)
    assert 'data.a: x(hidden) -> "y"' in text


def test_values_of_the_cr_are_not_masked() -> None:
    found = harness(HEAD + "data:\n  a: '{{ spec.app }}'\n", "shop-app")
    planned = found.plan(History.NONE)
    assert found.resource is not None
    assert "shop-app" in json.dumps(plan_document(ResourceView(found.resource, planned)))


def test_generated_values_are_masked_in_other_kinds_too() -> None:
    text = HEAD + "data: {p: '{{ random_password(24) }}', app: '{{ spec.app }}'}\n"
    found = Harness.of("children: {c: {template: c.yaml, apply: {strategy: create-only}}}", {"app": "x"}, c=text)
    planned = found.plan(History.NONE)
    assert found.resource is not None
    (action,) = plan_document(ResourceView(found.resource, planned))["actions"]
    assert action["object"]["data"] == {"p": "(hidden)", "app": "x"}


def test_plans_of_the_operator_compute_no_masks() -> None:
    found = harness(HEAD + "data:\n  a: '{{ outer }}'\n")
    assert found.resource is not None
    assert plan(found.rule, found.resource, found.observed(), History.NONE, masks=False).masks is NO_MASKS
