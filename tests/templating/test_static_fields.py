"""Fields of a status whose names are computed."""

from __future__ import annotations

from ruleop.language.templates.tree.kinds import COMPUTED
from tests.templating.rendering import library

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
{{ spec.x }}: 2
{% endset %}
{{ text }}
{% include 'more' %}
nodes:
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
"""


def test_fixed_and_macro_generated_fields_of_a_status_are_allowed():
    assert library(FIXED, {"more": "{{ spec.x }}: 1\n"}).computed_fields("main.j2") == []


def test_each_computed_field_of_a_status_is_refused_with_its_line():
    found = [str(each) for each in library(COMPUTING).computed_fields("main.j2")]
    places = ("2:1", "4:1", "5:1", "8", "10", "11")
    assert found == [f"templates/main.j2:{place}: {COMPUTED}" for place in places]
