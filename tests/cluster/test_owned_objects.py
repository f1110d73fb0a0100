"""`ownedBy`: the operator follows the Pods of a Deployment, which its ReplicaSets own, while controllers of Kubernetes
make and delete them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.operator import Operator, eventually, operator_of

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
          replicas: "{{ spec.replicas }}"
          selector: {matchLabels: {site: "{{ metadata.name }}"}}
          template:
            metadata: {labels: {site: "{{ metadata.name }}"}}
            spec: {terminationGracePeriodSeconds: 0, containers: [{name: web, image: nginx}]}
  observe:
    pods: {version: v1, kind: Pod, ownedBy: web}
  status:
    pods: "{{ pods | map(attribute='metadata.name') | list }}"
"""


@pytest.fixture
def operator(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Operator]:
    with operator_of(
        control_plane, tmp_path, "Site", RULES, children=["deployments.apps"], observed=["pods", "replicasets.apps"]
    ) as operator:
        yield operator


class Sites:
    def __init__(self, operator: Operator, namespace: str) -> None:
        self.operator, self.admin = operator, operator.admin
        self.sites = f"/apis/example.com/v1/namespaces/{namespace}/sites"
        self.deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        self.pods = f"/api/v1/namespaces/{namespace}/pods"

    def add(self, name: str, replicas: int) -> None:
        body = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": name}}
        self.admin.post(self.sites, {**body, "spec": {"replicas": replicas}})
        self.settle(name, replicas)

    def seen(self, name: str) -> list[str] | None:
        found: list[str] | None = self.admin.get(f"{self.sites}/{name}").get("status", {}).get("pods")
        return found

    def existing(self, name: str) -> list[str]:
        found: list[dict[str, Any]] = self.admin.get(f"{self.pods}?labelSelector=site%3D{name}")["items"]
        return sorted(each["metadata"]["name"] for each in found)

    def settle(self, name: str, replicas: int) -> list[str]:
        """Waits until the controllers have made these Pods, and the status has the same."""

        def settled() -> bool:
            before = self.existing(name)
            return len(before) == replicas and self.seen(name) == before == self.existing(name)

        eventually(f"{replicas} pods of {name}", settled)
        return self.existing(name)


def test_the_pods_of_a_deployment_are_followed_through_its_replica_sets(operator: Operator, namespace: str) -> None:
    sites = Sites(operator, namespace)
    sites.add("web", 2)
    sites.add("other", 1)
    stray = {"name": "web-stray", "labels": {"app": "web"}}
    spec = {"containers": [{"name": "web", "image": "nginx"}]}
    sites.admin.post(sites.pods, {"apiVersion": "v1", "kind": "Pod", "metadata": stray, "spec": spec})
    sites.admin.merge(f"{sites.sites}/web", {"spec": {"replicas": 3}}, "somebody")
    first, *_ = sites.settle("web", 3)
    sites.admin.delete(f"{sites.pods}/{first}")
    eventually("another Pod", lambda: first not in sites.existing("web"))
    sites.settle("web", 3)
    sites.admin.merge(f"{sites.sites}/web", {"spec": {"replicas": 0}}, "somebody")
    sites.settle("web", 0)
    sites.settle("other", 1)


def test_a_recreated_deployment_has_other_pods(operator: Operator, namespace: str) -> None:
    sites = Sites(operator, namespace)
    sites.add("web", 1)
    old = sites.settle("web", 1)
    operator.kill()
    sites.admin.delete(f"{sites.deployments}/web")
    eventually("the Pods to be collected", lambda: sites.existing("web") == [])
    operator.start()
    assert sites.settle("web", 1) != old
