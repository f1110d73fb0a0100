"""Replicas that both a child and its autoscaler set are reported."""

from __future__ import annotations

import pytest

from tests.authoring.checking.projects import said
from tests.language.rules.projects import watch

NAME = "{{ metadata.name }}"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: '{{ metadata.name }}'}
spec:
  REPLICAS
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: 'b:1'}]}}
"""
SCALER = (
    "{apiVersion: VERSION, kind: SCALER, metadata: {name: a}, spec: {maxReplicas: 3, scaleTargetRef: "
    "{apiVersion: apps/v1, kind: KIND, name: 'TARGET'}}}"
)


def found(
    replicas: str = "replicas: {{ spec.replicas }}",
    *,
    target: str = NAME,
    kind: str = "Deployment",
    scaler: str = "autoscaling/v2 HorizontalPodAutoscaler",
    web: str = "",
    hpa: str = "",
) -> list[str]:
    version, name = scaler.split(" ")
    words = {"VERSION": version, "SCALER": name, "KIND": kind, "TARGET": target}
    body = SCALER
    for word, text in words.items():
        body = body.replace(word, text)
    watches = watch(
        f"children:\n  web: {{template: web.yaml{web}}}\n  scaler:\n    object: {body}\n{hpa and f'    {hpa}'}"
    )
    files = {"templates/web.yaml": WEB.replace("REPLICAS", replicas)}
    return [each for each in said(watches, files) if each.startswith("RO509")]


@pytest.mark.parametrize("replicas", ["replicas: 2", "replicas: {{ spec.replicas }}"])
@pytest.mark.parametrize("target", [NAME, "{{ web.metadata.name }}"])
def test_replicas_beside_an_autoscaler_are_reported(replicas: str, target: str) -> None:
    (only,) = found(replicas, target=target)
    assert only == (
        'RO509 templates/web.yaml:5:13: warning: the HorizontalPodAutoscaler of "scaler" sets `spec.replicas`, and each '
        'pass reverts it: add `apply: {ignore: [spec.replicas]}` to "web", or leave the field out'
    )


def test_an_autoscaler_of_keda_is_one_too() -> None:
    (only,) = found(scaler="keda.sh/v1alpha1 ScaledObject")
    assert 'the ScaledObject of "scaler" sets `spec.replicas`' in only


@pytest.mark.parametrize(
    "explained",
    [
        {"replicas": ""},
        {"web": ", apply: {ignore: [spec.replicas]}"},
        {"web": ", apply: {ignore: [{path: spec.replicas, when: spec.scaled}]}", "hpa": "when: spec.scaled"},
        {"web": ", apply: {strategy: create-only}"},
        {"web": ", when: not spec.scaled", "hpa": "when: spec.scaled"},
        {"replicas": "{% if spec.scaled is undefined %}\n  replicas: 2\n  {% endif %}"},
        {"replicas": "replicas: {{ omit if spec.scaled else spec.replicas }}"},
        {"replicas": "replicas: {{ live.web.spec.replicas | default(1) }}"},
    ],
)
def test_replicas_that_are_left_to_the_autoscaler_are_not_reported(explained: dict[str, str]) -> None:
    assert found(**explained) == []


@pytest.mark.parametrize("other", [{"target": "{{ spec.target }}"}, {"target": f"{NAME}-db"}, {"kind": "StatefulSet"}])
def test_the_autoscaler_of_another_object_is_not_reported(other: dict[str, str]) -> None:
    assert found(**other) == []
