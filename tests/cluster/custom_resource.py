"""A custom resource that an operator reconciles, for tests that edit and delete it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.cluster.operator import Operator, eventually


class CustomResource:
    """Of example.com/v1; its kind is the name of the class."""

    def __init__(self, operator: Operator, namespace: str, name: str, spec: Mapping[str, Any]) -> None:
        self.operator, self.admin, self.namespace = operator, operator.admin, namespace
        self.home = f"/api/v1/namespaces/{namespace}"
        kind = type(self).__name__
        collection = f"/apis/example.com/v1/namespaces/{namespace}/{kind.lower()}s"
        self.path = f"{collection}/{name}"
        self.mark = operator.mark()
        body = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
        self.admin.post(collection, body)
        self.settle()

    def settle(self) -> None:
        eventually(f"{self.path} to be ready", lambda: self.ready()["status"] == "True")

    def ready(self) -> dict[str, Any]:
        """The condition Ready of this generation; Unknown while there is none."""
        found = self.admin.get(self.path)
        conditions = found.get("status", {}).get("conditions") or []
        ready: dict[str, Any] | None = next((each for each in conditions if each["type"] == "Ready"), None)
        is_current = ready is not None and ready["observedGeneration"] == found["metadata"]["generation"]
        return ready if ready is not None and is_current else {"status": "Unknown", "reason": "", "message": ""}

    def edit(self, **spec: Any) -> None:
        self.admin.merge(self.path, {"spec": spec}, "somebody")

    def exists(self, path: str) -> bool:
        return self.admin.exists(path)

    def is_gone(self) -> bool:
        return not self.exists(self.path)

    def end(self) -> None:
        self.admin.delete(self.path)
        eventually(f"{self.path} to be gone", self.is_gone)
