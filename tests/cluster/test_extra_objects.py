"""Objects that a custom resource gives, on an API server, by an operator with exactly the generated roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
  kind: Bundle
  children:
    extras:
      objects: spec.extraObjects
      kinds: [v1/ConfigMap, v1/Secret]
  status: {extras: "{{ extras | length }}"}
"""


def given(name: str, kind: str = "ConfigMap", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}


def test_given_objects_are_made_changed_and_removed_each_for_itself(
    control_plane: ControlPlane, tmp_path: Path, namespace: str
) -> None:
    write_files(tmp_path, {"watches.yaml": RULES, "crds/bundles.yaml": definition("Bundle")})
    control_plane.define(tmp_path / "crds")
    with GeneratedRoles(control_plane, tmp_path, tmp_path / "operator" / "log") as operator:
        admin, path = operator.admin, f"/apis/example.com/v1/namespaces/{namespace}/bundles"

        def names(resource: str) -> set[str]:
            found = admin.get(f"/api/v1/namespaces/{namespace}/{resource}?labelSelector=ruleop.dev/part-of")["items"]
            return {each["metadata"]["name"] for each in found}

        def ready() -> dict[str, Any]:
            conditions = admin.get(f"{path}/all")["status"]["conditions"]
            return next(each for each in conditions if each["type"] == "Ready")

        extra = [given("a"), given("b", "Secret"), given("c", "Service"), given("d", namespace="kube-system")]
        bundle = {"apiVersion": "example.com/v1", "kind": "Bundle", "metadata": {"name": "all"}}
        admin.post(path, {**bundle, "spec": {"extraObjects": extra}})
        eventually("the good ones", lambda: (names("configmaps"), names("secrets")) == ({"a"}, {"b"}))
        eventually("two mistakes", lambda: "item 2 of objects" in (text := ready()["message"]) and "item 3" in text)
        admin.merge(f"{path}/all", {"spec": {"extraObjects": [given("b", "Secret"), given("e")]}}, "somebody")
        eventually("the new list", lambda: (names("configmaps"), names("secrets")) == ({"e"}, {"b"}))
        eventually(
            "the status", lambda: ready()["status"] == "True" and admin.get(f"{path}/all")["status"]["extras"] == 2
        )
        assert operator.refused() == set()
        operator.check()
        admin.delete(f"{path}/all")
    control_plane.kubectl("delete", "crd/bundles.example.com")
