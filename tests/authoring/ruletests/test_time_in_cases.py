"""The time of a case: `at`, and `after` in its steps."""

from __future__ import annotations

from pathlib import Path

from tests.authoring.ruletests.running import FILES, WATCHES, shown
from tests.folders import write_files

PREVIEW = """\
  children:
    preview:
      when: not after(metadata.creationTimestamp, '2h')
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: preview}}
    report:
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: report}
        data:
          preview: "{{ 'old' if after(live.preview.metadata.creationTimestamp | default(metadata.creationTimestamp), '61s') else 'new' }}"
          other: "{{ live.report.metadata.creationTimestamp | default('') }}"
"""
CASE = """\
- name: an hour a step
  at: 2026-01-01T00:00:00Z
  resource: site.yaml
  expect:
    children: {preview: {metadata: {creationTimestamp: "2026-01-01T00:00:00Z"}}, report: {data: {preview: new}}}
  then:
    - after: 1h
      expect: {children: {report: {data: {preview: old}}}, actions: [patch report]}
    - after: 59m59s
      expect: {actions: []}
    - after: 1s
      expect: {absent: [preview], actions: [delete preview]}
    - existing: [{delete: [report]}]
      expect: {children: {report: {metadata: {creationTimestamp: "2026-01-01T02:00:00Z"}}}}
- name: without a time it is 1970
  resource: site.yaml
  expect: {children: {report: {metadata: {creationTimestamp: "1970-01-01T00:00:00Z"}, data: {preview: new}}}}
- name: what exists is as old as it says
  at: 2026-01-01T00:00:00Z
  resource: site.yaml
  set: {metadata: {creationTimestamp: "2025-12-31T21:00:00Z"}}
  expect: {absent: [preview]}
"""

RUNS = """\
  children:
    backup:
      schedule: 0 3 * * *
      readyWhen: this.metadata.annotations['example.com/done'] == 'yes'
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: backup}}
    key:
      apply: {strategy: create-only}
      rotateEvery: 1d
      object:
        apiVersion: v1
        kind: Secret
        metadata: {name: key}
        stringData: {key: "{{ random_password(24) }}"}
    reader:
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: reader}
        data: {rotated: "{{ key.data['previous-key'] is defined | string }}"}
"""
RUNS_CASE = """\
- name: two nights
  at: 2026-01-01T02:00:00Z
  resource: site.yaml
  expect: {absent: [backup], conditions: {Ready: "True"}, children: {reader: {data: {rotated: "false"}}}}
  then:
    - after: 1h
      expect:
        actions: [create backup]
        status: {ruleop: {once: {backup: [{id: "2026-01-01T03:00:00Z", result: Running}, {result: Scheduled}]}}}
    - existing: [{patch: {backup: {metadata: {annotations: {example.com/done: "yes"}}}}}]
      expect: {conditions: {Ready: "True"}}
    - after: 25h
      expect:
        actions: [rotate key, patch reader]
        children: {reader: {data: {rotated: "true"}}}
        status: {ruleop: {once: {backup: [{result: Skipped}, {result: Succeeded}, {result: Scheduled}]}}}
"""


def make(root: Path, children: str = PREVIEW) -> None:
    write_files(root, FILES)
    head = WATCHES[: WATCHES.index("  children:")]
    (root / "watches.yaml").write_text(head + children, "utf-8")
    for template in (root / "templates").iterdir():
        template.unlink()


def test_time_passes_between_steps_and_nowhere_else(tmp_path: Path) -> None:
    make(tmp_path)
    assert shown(tmp_path, CASE) == ""


def test_a_run_of_a_schedule_and_a_rotation_come_in_time(tmp_path: Path) -> None:
    make(tmp_path, RUNS)
    assert shown(tmp_path, RUNS_CASE) == ""


def test_a_time_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    make(tmp_path)
    wrong = "- {name: a, at: 2026-02-30T00:00:00Z, resource: site.yaml, expect: {children: {}}}"
    assert "not run: at: there is no time 2026-02-30T00:00:00Z" in shown(tmp_path, wrong)


def test_the_time_cannot_be_set_where_the_operator_runs(tmp_path: Path) -> None:
    make(tmp_path)
    wrong = "- {name: a, mode: dev, at: 2026-02-03T00:00:00Z, resource: site.yaml, expect: {children: {}}}"
    assert "at: the time cannot be set in mode dev, in which the operator runs: use mode plan" in shown(tmp_path, wrong)


EXPIRE = """\
  expire: {after: "{{ metadata.annotations['example.com/ttl'] | default('') }}"}
  children:
    report:
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: report}}
"""
EXPIRE_CASE = """\
- name: a preview ends
  at: 2026-01-01T00:00:00Z
  resource: site.yaml
  set: {metadata: {annotations: {example.com/ttl: 2h}}}
  expect: {gone: false, children: {report: {metadata: {name: report}}}}
  then:
    - after: 1h59m59s
      expect: {gone: false, actions: []}
    - resource: {metadata: {annotations: {example.com/ttl: 3h}}}
      after: 1s
      expect: {gone: false, actions: []}
    - after: 1h
      expect: {gone: true, actions: [delete Site/blog], absent: [report]}
"""


def test_a_resource_expires_in_a_step(tmp_path: Path) -> None:
    make(tmp_path, EXPIRE)
    assert shown(tmp_path, EXPIRE_CASE) == ""
    assert "delete Site/blog" in shown(tmp_path, EXPIRE_CASE.replace("Site/blog", "Site/other"))
