"""The kind Database, whose rules are in the test that needs them, and an operator for it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from controlplane.cluster import ControlPlane

from tests.cluster.operator import Operator, Permissions, eventually
from tests.definitions import definition

PERMISSIONS = Permissions(
    ["databases.example.com"], ["services", "statefulsets.apps", "persistentvolumeclaims"], ["pods"]
)
HEAD = "- group: example.com\n  version: v1\n  kind: Database\n"


def project(folder: Path, rules: str, **templates: str) -> Path:
    """A project whose only watch has this body."""
    for name in ("templates", "crds"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "crds/databases.yaml").write_text(definition("Database"))
    (folder / "watches.yaml").write_text(HEAD + textwrap.indent(textwrap.dedent(rules).strip("\n"), "  ") + "\n")
    for name, text in templates.items():
        (folder / "templates" / f"{name}.yaml").write_text(textwrap.dedent(text).lstrip("\n"))
    return folder


class Database:
    """One Database in a namespace of its own, and what the operator made of it."""

    def __init__(self, operator: Operator, namespace: str, name: str, spec: dict[str, Any]) -> None:
        self.operator, self.admin, self.namespace, self.name = operator, operator.admin, namespace, name
        self.admin.post(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        path = f"/apis/example.com/v1/namespaces/{namespace}/databases"
        self.path = f"{path}/{name}"
        self.admin.post(
            path, {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": name}, "spec": spec}
        )

    def service(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/services/{name}"

    def ready(self) -> dict[str, Any]:
        resource = self.admin.get(self.path)
        conditions = (resource.get("status") or {}).get("conditions") or []
        current = (resource.get("status") or {}).get("observedGeneration") == resource["metadata"]["generation"]
        return next((each for each in conditions if each["type"] == "Ready" and current), {})

    def wait_until_ready(self) -> None:
        eventually("the Database to be ready", lambda: self.ready().get("status") == "True")


def operating(plane: ControlPlane, folder: Path, rules: str, **templates: str) -> Operator:
    plane.define(project(folder / "rules", rules, **templates) / "crds")
    return Operator(plane, folder / "rules", PERMISSIONS, folder / "operator" / "log")
