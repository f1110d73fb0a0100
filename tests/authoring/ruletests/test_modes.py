"""The same steps have the same results without a cluster and with the operator and a cluster in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.authoring.ruletests.running import shown

LIFE = """\
    - name: a life
      mode: MODE
      resource: site.yaml
      kinds: [certificates.example.com/v1 Certificate]
      expect: {children: {config: {data: {page: hello}}, certificate: {spec: {page: hello}}}, absent: [service, jobs]}
      then:
        - name: it is ready
          existing: [{ready: true}]
          expect: {status: {replicas: 1}, conditions: {Ready: "True"}, waits: {}}
        - name: it grows
          resource: {spec: {public: true, replicas: 2, jobs: [a, b]}}
          expect: {children: {web: {spec: {replicas: 2}}, Job/blog-a: {kind: Job}}}
        - name: all of it is ready
          existing: [{ready: true}]
          expect:
            children: {service: {spec: {ports: [{port: 53, name: tcp}]}}}
            status: {replicas: 2}
            conditions: {Ready: "True"}
        - name: a job is dropped
          resource: {spec: {jobs: [b]}}
          expect: {absent: [Job/blog-a], children: {Job/blog-b: {kind: Job}}}
        - name: it becomes invalid, and nothing is changed
          resource: {spec: {page: forbidden}}
          expect:
            error: must not be forbidden
            children: {config: {data: {page: hello}}}
            conditions: {Ready: {status: "False", reason: Invalid}}
        - name: it is valid again
          resource: {spec: {page: better}}
          existing: [{patch: {web: {spec: {replicas: 9}}}}, {delete: [certificate]}]
          expect: {children: {config: {data: {page: better}}, web: {spec: {replicas: 2}}, certificate: {spec: {page: better}}}}
        - name: a write is rejected
          resource: {spec: {page: best}}
          rejects: [config]
          expect:
            error: 'config: '
            children: {config: {data: {page: better}}, certificate: {spec: {page: best}}}
            conditions: {Ready: {status: "False", reason: ApplyFailed}, Stalled: "True"}
        - name: it is accepted again
          resource: {spec: {page: best, replicas: 3}}
          expect: {children: {config: {data: {page: best}}, web: {spec: {replicas: 3}}}}
        - name: it is deleted
          deleted: true
          expect: {}
        - name: its backup is done
          existing: [{ready: true}]
          expect: {gone: true, children: {}, absent: [Deployment/blog, Job/blog-backup]}
"""


@pytest.mark.slow
def test_a_life_without_a_cluster(tmp_path: Path) -> None:
    assert shown(tmp_path, LIFE.replace("MODE", "plan")) == ""


@pytest.mark.slow
def test_a_life_in_a_cluster(tmp_path: Path) -> None:
    assert shown(tmp_path, LIFE.replace("MODE", "dev")) == ""


@pytest.mark.slow
def test_a_failure_in_a_cluster_is_reported_with_its_positions(tmp_path: Path) -> None:
    failed = shown(
        tmp_path,
        """\
    - name: a
      mode: dev
      resource: site.yaml
      expect: {children: {web: {spec: {replicas: 5}}}, actions: []}
    """,
    )
    assert "+   replicas: 1                               # templates/web.yaml.j2:6" in failed
    assert "actions: are known only in mode: plan" in failed


@pytest.mark.slow
def test_an_invalid_resource_is_rejected_by_the_server(tmp_path: Path) -> None:
    assert (
        shown(
            tmp_path,
            """\
    - name: a
      mode: dev
      resource: site.yaml
      set: {spec: {replicas: -1}}
      expect: {error: "spec.replicas"}
    """,
        )
        == ""
    )
