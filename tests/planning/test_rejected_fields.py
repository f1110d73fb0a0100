"""A rejected write is reported at the line of the template that the rejected field comes from."""

from __future__ import annotations

import pytest

from ruleop.errors import NAMED, Cause
from ruleop.planning.model.actions import Failed, Failure
from tests.planning.harness import Harness, key

DEPLOYMENT = """\
{%- set image = spec.image -%}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: {{ spec.replicas }}
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      {%- for each in spec.names %}
      - name: {{ each }}
        image: {{ image }}
        {%- if each == "log" %}
        ports:
        - containerPort: {{ spec.port }}
        {%- endif %}
      {%- endfor %}
      {% include "tail.yaml" %}
"""
TAIL = """
restartPolicy: Never
nodeSelector:
  disk.type: {{ spec.disk }}
"""
SPEC = {"image": "i", "replicas": 1, "names": ["app", "log"], "port": 80, "disk": "ssd"}
WEB = key("web", "Deployment", group="apps")
LINES = {
    "spec.replicas": "web.yaml:7",
    "spec.selector.matchLabels[a]": "web.yaml:8",
    "spec.template.spec.containers[0].image": "web.yaml:15",
    "spec.template.spec.containers[1].ports[0].containerPort": "web.yaml:18",
    '.spec.template.spec.containers[name="log"].ports[containerPort=80,protocol="TCP"].containerPort': "web.yaml:18",
    "spec.template.spec.containers[1].ports[0].hostPort": "web.yaml:18",
    "spec.template.spec.restartPolicy": "tail.yaml:1",
    "spec.template.spec.nodeSelector[disk.type]": "tail.yaml:3",
    "spec.template.spec.containers[1].ports": "web.yaml:17",
    "spec.template.spec.containers.ports": "web.yaml:12",
    "spec.template.spec.volumes[0].name": "web.yaml:11",
    "metadata.uid": "web.yaml:4",
    "status.replicas": "web.yaml:1",
    "": "web.yaml:1",
}


def rejected(harness: Harness, *fields: str, reason: str = "FieldValueInvalid") -> str:
    """The place in the message of Ready."""
    causes = tuple(Cause(field, reason) for field in fields)
    for each in harness.plan().actions:
        harness.refuse[each.key] = Failed(Failure.INVALID, "is invalid", causes=causes)
    harness.step()
    assert harness.ready()[1] == "ApplyFailed"
    return harness.ready()[2].split(": ")[1].removeprefix("templates/")


@pytest.mark.parametrize("field", LINES)
def test_a_rejected_field_has_its_line_in_a_template(field: str):
    body = "children: {web: {template: web.yaml}}"
    harness = Harness.of(body, SPEC, web=DEPLOYMENT, tail=TAIL)
    assert rejected(harness, field) == LINES[field]


def test_an_item_of_a_merged_list_is_found_by_its_keys():
    harness = Harness.of("children: {web: {template: web.yaml}}", SPEC, web=DEPLOYMENT, tail=TAIL)
    harness.step()
    live = harness.objects[WEB]["spec"]["template"]["spec"]["containers"]
    harness.change(WEB, {"spec": {"template": {"spec": {"containers": [{"name": "istio", "image": "x"}, *live]}}}})
    harness.edit({**SPEC, "port": 81})
    harness.edit({**SPEC, "port": 81, "image": "j"})
    assert rejected(harness, "spec.template.spec.containers[2].ports[0].containerPort") == "web.yaml:18"


def test_a_rejected_field_of_an_object_in_watches_yaml_has_its_line():
    body = """
children:
  web:
    object:
      apiVersion: v1
      kind: Service
      metadata: {name: web}
      spec:
        ports:
        - port: 80
        - port: "{{ spec.port }}"
"""
    harness = Harness.of(body, {"port": 99})
    line = harness.rule.children["web"].body.site.line + 6
    assert rejected(harness, "spec.ports[1].port") == f"watches.yaml:{line}:13"


def test_each_item_of_for_each_has_the_line_of_its_field_up_to_a_limit():
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'a{{ item }}'}\ndata:\n  v: '{{ item }}'\n"
    harness = Harness.of("children: {a: {template: a.yaml, forEach: range(9)}}", a=config)
    causes = (Cause("data[v]", "FieldValueInvalid"),)
    failed = {
        each.key: Failed(Failure.INVALID, f"{each.key} is invalid", causes=causes) for each in harness.plan().actions
    }
    found = [problem.site.line for problem in harness.plan_status(failed).problems]
    assert found == [5] * 4 + [1] * 5


def test_a_field_that_only_the_message_names_has_its_line():
    harness = Harness.of("children: {web: {template: web.yaml}}", SPEC, web=DEPLOYMENT, tail=TAIL)
    assert rejected(harness, "spec.replicas", reason=NAMED) == "web.yaml:7"


def test_a_duplicate_item_has_the_line_of_the_second():
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports:\n  - {port: 80}\n  - {port: 80}\n"
    harness = Harness.of("children: {a: {template: a.yaml}}", a=service)
    harness.step()
    assert harness.ready()[2].startswith("a: templates/a.yaml:7: the Service 'a': spec.ports")


LOOPED = """
children:
  web:
    object:
      apiVersion: v1
      kind: Service
      metadata:
        name: web
        labels:
          app: web
          "{% for key, value in spec.labels.items() %}":
            "{{ key }}": "{{ value }}"
      spec:
        ports:
        - port: 80
        - "{% for each in spec.ports %}":
            port: "{{ each.port }}"
            "{% if each.name is defined %}":
              name: "{{ each.name }}"
"""


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("metadata.labels[b]", "8:15"),
        ("spec.ports[0].port", "11:13"),
        ("spec.ports[1].port", "13:15"),
        ("spec.ports[2].name", "15:17"),
        ("spec.ports[1].name", "13:15"),
    ],
)
def test_a_rejected_field_that_a_loop_made_has_its_line_in_watches_yaml(field: str, place: str):
    spec = {"labels": {"a": "1", "b": "2"}, "ports": [{"port": 81}, {"port": 82, "name": "n"}]}
    harness = Harness.of(LOOPED, spec)
    line, column = place.split(":")
    first = harness.rule.children["web"].body.site.line
    assert rejected(harness, field) == f"watches.yaml:{first + int(line) - 1}:{column}"
