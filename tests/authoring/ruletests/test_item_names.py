"""Objects of a `forEach` are named by their items: their own names may be hashes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.authoring.ruletests.running import FILES, WATCHES, shown
from tests.folders import write_files

ACCESS = """\
  let: {users: "{{ spec.jobs }}"}
  children:
    access:
      forEach: "[{'id': 'joe', 'size': 1}, {'id': 'ann', 'size': 2}] | selectattr('id', 'in', spec.jobs) | list"
      as: user
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "{{ user.id | sha256(8) }}"}
        data: {size: "{{ user.size | string }}{{ spec.page }}"}
"""
CASE = """\
- name: access is given and taken
  resource: site.yaml
  set: {spec: {jobs: [joe, ann], page: a}}
  expect:
    actions: ["create access[joe]", "create access[ann]"]
    children:
      access[joe]: {data: {size: 1a}}
      access[ann]: {data: {size: 2a}}
  then:
    - resource: {spec: {page: b}}
      expect: {actions: ["patch access[joe]", "patch access[ann]"]}
    - existing: [{delete: ["access[ann]"]}]
      expect: {actions: ["create access[ann]"]}
    - resource: {spec: {jobs: [ann]}}
      expect:
        actions: ["delete access[joe]"]
        absent: ["access[joe]"]
"""


def make(root: Path) -> None:
    write_files(root, FILES)
    (root / "watches.yaml").write_text(WATCHES[: WATCHES.index("  children:")] + ACCESS, "utf-8")
    for template in (root / "templates").iterdir():
        template.unlink()


def test_an_object_is_named_by_its_item_in_actions_children_and_changes(tmp_path: Path) -> None:
    make(tmp_path)
    assert shown(tmp_path, CASE) == ""


def test_a_failure_names_the_items(tmp_path: Path) -> None:
    make(tmp_path)
    wrong = CASE.replace('["delete access[joe]"]', '["delete access[ann]"]')
    assert "delete access[joe]" in shown(tmp_path, wrong)
    wrong = CASE.replace("access[joe]: {data", "access[jim]: {data")
    assert "children.access[jim]: does not exist; there are access[ann], access[joe]" in shown(tmp_path, wrong)
    wrong = CASE.replace('absent: ["access[joe]"]', 'absent: ["acess[joe]"]')
    assert "the rule has no child acess (did you mean access?)" in shown(tmp_path, wrong)


def test_a_secret_of_random_values_is_named_by_its_item(tmp_path: Path) -> None:
    make(tmp_path)
    children = """\
  children:
    access:
      forEach: spec.jobs
      apply: {strategy: create-only}
      object:
        apiVersion: v1
        kind: Secret
        metadata: {name: "{{ metadata.name }}-{{ item }}"}
        stringData: {password: "{{ random_password(24) }}"}
"""
    (tmp_path / "watches.yaml").write_text(WATCHES[: WATCHES.index("  children:")] + children, "utf-8")
    case = """\
- name: passwords are made and taken
  resource: site.yaml
  set: {spec: {jobs: [joe, ann]}}
  expect:
    actions: ["create access[joe]", "create access[ann]"]
    children: {"access[joe]": {kind: Secret}}
  then:
    - resource: {spec: {jobs: [ann]}}
      expect: {actions: ["delete access[joe]"]}
"""
    assert shown(tmp_path, case) == ""


@pytest.mark.slow
def test_an_operator_in_a_cluster_has_the_same_names(tmp_path: Path) -> None:
    make(tmp_path)
    case = """\
- name: access in a cluster
  mode: dev
  resource: site.yaml
  set: {spec: {jobs: [joe, ann], page: a}}
  expect: {children: {"access[joe]": {data: {size: 1a}}}}
  then:
    - existing: [{delete: ["access[joe]"]}]
      expect: {children: {"access[joe]": {data: {size: 1a}}}}
    - resource: {spec: {jobs: [ann]}}
      expect: {absent: ["access[joe]"], children: {"access[ann]": {data: {size: 2a}}}}
"""
    assert shown(tmp_path, case) == ""
