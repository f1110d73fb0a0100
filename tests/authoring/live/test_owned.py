"""`plan --live` and `explain` of a rule that reads objects which its child owns through others."""

from __future__ import annotations

from pathlib import Path

import pytest

from ruleop.localcluster import LocalCluster
from tests.authoring.live.harness import new_live
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
          replicas: 2
          selector: {matchLabels: {app: web}}
          template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}
  observe:
    pods: {version: v1, kind: Pod, ownedBy: web}
  status:
    pods: "{{ pods | length }}"
"""
SITE = "{apiVersion: example.com/v1, kind: Site, metadata: {name: blog, namespace: default}}"


@pytest.mark.slow
def test_owned_objects_are_read_step_by_step(tmp_path: Path) -> None:
    with LocalCluster() as cluster:
        live = new_live(tmp_path, cluster, {"watches.yaml": RULES, "crds/sites.yaml": definition("Site")})
        for name in ("blog", "shop"):
            live.apply(SITE.replace("blog", name))
        live.converge(lambda: live.reasons("Site") == ["Ready", "Ready"])
        status, out, err = live.run("plan", "--live", "Site/blog")
        assert (status, err) == (0, "")
        assert "Nothing to do." in out
        live.edit("watches.yaml", "{{ pods | length }}", "{{ pods | length + 5 }}")
        status, out, _ = live.run("plan", "--live", "Site/blog")
        assert status == 0
        assert "pods: 2 -> 7" in out.replace("→", "->")
        status, out, err = live.run("explain", "Site/blog")
        assert (status, err) == (0, "")
