"""Tests of rules that read objects which their children own, and that set fields of objects of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.authoring.ruletests.running import shown
from tests.definitions import definition

RULES = """\
- group: example.com
  version: v1
  kind: Site
  children:
    web:
      object:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: "{{ metadata.name }}"}
        spec:
          replicas: 0
          selector: {matchLabels: {app: web}}
          template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}
    marks:
      patch: {version: v1, kind: ConfigMap, selector: {site: "{{ metadata.name }}"}, fields: {data: {by: "{{ metadata.name }}"}}}
  observe:
    pods: {version: v1, kind: Pod, ownedBy: web}
  status:
    pods: "{{ pods | map(attribute='metadata.name') | list }}"
    maps: "{{ marks | map(attribute='metadata.name') | list }}"
"""
CASES = """\
- name: a life
  mode: MODE
  resource: {apiVersion: example.com/v1, kind: Site, metadata: {name: blog}}
  existing:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {site: blog}}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {site: other}}}
  expect:
    status: {pods: [], maps: [a]}
    children: {ConfigMap/a: {data: {by: blog}}}
  then:
    - name: its Pods run
      existing:
        - apiVersion: apps/v1
          kind: ReplicaSet
          metadata:
            name: blog-1
            labels: {app: web}
            ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: blog}]
          spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}}
        - apiVersion: v1
          kind: Pod
          metadata: {name: blog-1-x, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: blog-1}]}
          spec: {containers: [{name: web, image: nginx}]}
        - apiVersion: v1
          kind: Pod
          metadata: {name: other, labels: {app: other}}
          spec: {containers: [{name: web, image: nginx}]}
      expect: {status: {pods: [blog-1-x]}}
    - name: another ConfigMap gets the label
      existing: [{patch: {ConfigMap/b: {metadata: {labels: {site: blog}}}, ConfigMap/a: {metadata: {labels: {site: none}}}}}]
      expect: {status: {maps: [b]}, children: {ConfigMap/b: {data: {by: blog}}}}
"""


@pytest.mark.parametrize("mode", ["plan", pytest.param("dev", marks=pytest.mark.slow)])
def test_owned_objects_and_objects_with_labels_can_be_given(tmp_path: Path, mode: str) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/sites.yaml").write_text(definition("Site"))
    (tmp_path / "watches.yaml").write_text(RULES)
    assert shown(tmp_path, CASES.replace("MODE", mode)) == ""
