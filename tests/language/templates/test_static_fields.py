"""Fields of a status whose names are computed."""

from __future__ import annotations

from ruleop.language.templates.bodies.documents import COMPUTED
from tests.language.templates.rendering import library

FIXED = """\
{% macro entry(name) %}
{{ name }}: up
{% endmacro %}
{% macro fields() %}
a: 1
{% endmacro %}
{# {{ x }}: 1 #}
# {{ x }}: 1
x: {{ spec.x }}
url: http://{{ spec.x }}:80
{{ fields() }}
{% set text %}
b: 2
{% endset %}
{{ text }}
{% include 'more' %}
nodes:
  {% include 'computed' %}
  {{ spec.x }}: up
  {{ spec.labels }}
  {{ entry('a') }}
text: |
  {{ spec.x }}: up
{% if spec.x %}
z: 1
{% endif %}
"""
COMPUTING = """\
{% for pod in pods %}
{{ pod.metadata.name }}: up
{% endfor %}
x-{{ spec.x }}: 1
"{{ spec.x }}":
  a: 1
{% if spec.x %}
{{ spec.labels }}
{% endif %}
{{ spec.labels | to_yaml }}
{{ {'a': 1} }}
a: 1
{% include 'computed' %}
{% set text %}
{{ spec.x }}: 2
{% endset %}
{{ text }}
"""
FILES = {"more": "c: {{ spec.x }}\n", "computed": "{{ spec.x }}: 1\n"}


def test_fixed_fields_of_a_status_are_allowed_also_those_of_macros_and_files():
    made = library(FIXED, FILES)
    assert made.computed_fields("main.j2") == []
    assert made.text_mapping("main.j2").fields == {"a", "b", "c", "x", "url", "nodes", "text", "z"}


def test_each_computed_field_of_a_status_is_refused_with_its_line():
    found = [str(each) for each in library(COMPUTING, FILES).computed_fields("main.j2")]
    in_main = ("2:1", "4:1", "5:1", "8:1", "10:1", "11:1")
    places = (*(f"main.j2:{place}" for place in in_main), "computed:1:1", "main.j2:15:1")
    assert found == [f"templates/{place}: {COMPUTED}" for place in places]
