"""A CRD changes while the operator runs: custom resources are read by the new schema, although nobody edits them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.databases import Database, operating
from tests.cluster.operator import Operator, eventually

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/databases.example.com"
SPEC = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
RULES = """
children:
  service:
    object:
      apiVersion: v1
      kind: Service
      metadata:
        name: "{{ metadata.name }}"
        annotations: {color: "{{ spec.color | default('none') }}", size: "{{ spec.size | default('none') }}"}
      spec: {ports: [{port: 80}]}
"""


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operating(control_plane, tmp_path_factory.mktemp("schema"), RULES) as operator:
        yield operator
        operator.check()


@pytest.fixture(scope="module")
def database(operator: Operator) -> Database:
    """Its CRD prunes what it does not declare."""
    admin = operator.admin
    declare(operator.plane, {"type": "object", "properties": {"engine": {"type": "string"}}})
    eventually("the CRD", lambda: "properties" in schema(admin.get(CRD))["spec"])
    found = Database(operator, "schemas", "db", {"engine": "postgres"})
    found.wait_until_ready()
    return found


def schema(crd: dict[str, Any]) -> dict[str, Any]:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def declare(plane: ControlPlane, spec: dict[str, Any]) -> None:
    patch = json.dumps([{"op": "replace", "path": SPEC, "value": spec}])
    plane.kubectl("patch", "crd", "databases.example.com", "--type=json", f"--patch={patch}")


def annotations(database: Database) -> dict[str, str]:
    found: dict[str, str] = database.admin.get(database.service("db"))["metadata"]["annotations"]
    return {name: found[name] for name in ("color", "size")}


def test_a_new_default_reaches_unchanged_resources(operator: Operator, database: Database) -> None:
    assert annotations(database) == {"color": "none", "size": "none"}
    color = {"type": "string", "default": "blue"}
    declare(operator.plane, {"type": "object", "properties": {"engine": {"type": "string"}, "color": color}})
    eventually("the default", lambda: annotations(database)["color"] == "blue")


def test_an_edit_right_after_the_change_of_a_crd_is_read_by_the_new_schema(
    operator: Operator, database: Database
) -> None:
    """For a second, the watch that is open shows it without the new field, and the next one does not show it again."""
    fields = {name: {"type": "string"} for name in ("engine", "color", "size")}
    declare(operator.plane, {"type": "object", "properties": fields})

    def edited() -> bool:
        found = database.admin.merge(database.path, {"spec": {"size": "large"}}, "kubectl")
        return "size" in found["spec"]

    eventually("the server to take the new field", edited)
    eventually("the new field", lambda: annotations(database)["size"] == "large")
