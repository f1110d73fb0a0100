"""Apps in a namespace of their own, and what the operator asked for because of them."""

from __future__ import annotations

import time
from typing import Any

from controlplane.audit import Mark

from tests.cluster.operator import Operator, described, eventually, is_bookkeeping


class Apps:
    """Apps in a namespace of their own, and what the operator did there."""

    def __init__(self, operator: Operator, namespace: str) -> None:
        self.operator, self.admin, self.namespace = operator, operator.admin, namespace
        self.admin.post(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        self.path = f"/apis/myapp.k8s.io/v1/namespaces/{namespace}/apps"

    def add(self, name: str) -> None:
        spec = {
            "deployment": {"name": f"{name}-d", "image": "nginx:1", "replicas": 1},
            "service": {"name": f"{name}-s"},
        }
        self.admin.post(
            self.path, {"apiVersion": "myapp.k8s.io/v1", "kind": "App", "metadata": {"name": name}, "spec": spec}
        )

    def create(self, name: str) -> None:
        self.add(name)
        self.wait_until_observed(name)

    def edit(self, name: str, patch: dict[str, Any]) -> list[str]:
        """Everything that the operator asked for because of it."""
        mark = self.operator.mark()
        self.admin.merge(f"{self.path}/{name}", patch, "somebody")
        self.wait_until_observed(name)
        return self.asked(mark)

    def wait_until_observed(self, name: str) -> None:
        def done() -> bool:
            app = self.admin.get(f"{self.path}/{name}")
            return (app.get("status") or {}).get("observedGeneration") == app["metadata"]["generation"]

        eventually(f"{name} to be reported", done)

    def asked(self, mark: Mark) -> list[str]:
        """In order, once the operator has gone on to something else: an App elsewhere, made now, has been seen to."""
        other = self.namespace + "-after"
        sentinel = Apps(self.operator, f"{other}-{time.monotonic_ns()}")
        sentinel.create("sentinel")
        eventually("the audit log", lambda: len(self.operator.requests(mark, sentinel.namespace)) >= 3)
        return [described(each) for each in self.operator.requests(mark, self.namespace) if not is_bookkeeping(each)]
