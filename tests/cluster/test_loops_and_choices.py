"""Loops in loops, a chosen kind and a chosen version on an API server, by an operator with the generated roles only."""

from __future__ import annotations

from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.generated_roles import GeneratedRoles
from tests.cluster.operator import eventually
from tests.definitions import definition
from tests.folders import write_files

pytestmark = pytest.mark.real_server("RBAC refuses")

RULES = """\
- group: example.com
  version: v1
  kind: Region
  children:
    settings:
      forEach: {team: spec.teams, env: team.environments}
      template: settings.yaml
    budget:
      object:
        apiVersion: "{{ 'policy/v1' if has_kind('policy/v1', 'PodDisruptionBudget') else 'policy/v1beta1' }}"
        kind: PodDisruptionBudget
        metadata: {name: "{{ metadata.name }}"}
        spec: {minAvailable: 1, selector: {matchLabels: {app: "{{ metadata.name }}"}}}
"""
SETTINGS = """\
apiVersion: v1
kind: {{ 'Secret' if team.secret | default(false) else 'ConfigMap' }}
metadata: {name: {{ metadata.name }}-{{ team.name }}-{{ env }}}
"""


def test_loops_and_choices_are_created_changed_and_removed(
    control_plane: ControlPlane, tmp_path: Path, namespace: str
) -> None:
    crd = definition("Region")
    write_files(tmp_path, {"watches.yaml": RULES, "templates/settings.yaml": SETTINGS, "crds/regions.yaml": crd})
    control_plane.define(tmp_path / "crds")
    with GeneratedRoles(control_plane, tmp_path, tmp_path / "operator" / "log") as operator:
        admin, path = operator.admin, f"/apis/example.com/v1/namespaces/{namespace}/regions"

        def names(resource: str, group: str = "api/v1") -> set[str]:
            found = admin.get(f"/{group}/namespaces/{namespace}/{resource}?labelSelector=ruleop.dev/part-of")["items"]
            return {each["metadata"]["name"] for each in found}

        red, blue = (
            {"name": name, "environments": ["dev", "prod"][:count]} for name, count in (("red", 2), ("blue", 1))
        )
        region = {"apiVersion": "example.com/v1", "kind": "Region", "metadata": {"name": "eu"}}
        admin.post(path, {**region, "spec": {"teams": [red, blue]}})
        eventually("all combinations", lambda: names("configmaps") == {"eu-red-dev", "eu-red-prod", "eu-blue-dev"})
        eventually("the budget", lambda: names("poddisruptionbudgets", "apis/policy/v1") == {"eu"})
        admin.merge(f"{path}/eu", {"spec": {"teams": [{**red, "secret": True}]}}, "somebody")
        eventually("the other kind", lambda: names("secrets") == {"eu-red-dev", "eu-red-prod"})
        eventually("the old objects to go", lambda: names("configmaps") == set())
        assert operator.refused() == set()
        operator.check()
        admin.delete(f"{path}/eu")
    control_plane.kubectl("delete", "crd/regions.example.com")
