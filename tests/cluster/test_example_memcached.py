"""Memcached, as two generations of the tutorial write it: a Deployment, and the names of its pods as the status, end to
end. v1 says its labels once, and its kind has two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.example_projects import (
    ROOT,
    Child,
    Example,
    ExampleTests,
    LiveExample,
    foreign_deployment,
    operating,
    pods,
    rolled_out,
)
from tests.cluster.operator import Operator, Permissions, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.cluster import ControlPlane


def deployment(
    name: str,
    size: int,
    labels: dict[str, str],
    *,
    own: dict[str, str],
    container: dict[str, Any],
    by_hand: dict[str, Any],
) -> Child:
    """`own`: the labels of the Deployment itself. `container`: what it has beside its name and port."""
    memcached = {"name": "memcached", "ports": [{"name": "memcached", "containerPort": 11211}], **container}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [memcached]}}
    wanted = {
        **({"metadata": {"labels": own}} if own else {}),
        "spec": {"replicas": size, "selector": {"matchLabels": labels}, "template": template},
        "status": {"readyReplicas": size},
    }
    return Child("deployments", name, wanted, by_hand=by_hand)


def v1(size: int) -> Child:
    labels = {"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": "cache"}
    container = {
        "image": "memcached:1.6.6",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "livenessProbe": {"tcpSocket": {"port": 11211}, "initialDelaySeconds": 30, "periodSeconds": 10},
    }
    return deployment(
        "cache-deployment", size, labels, own=labels, container=container, by_hand={"spec": {"replicas": 0}}
    )


def v1alpha1(size: int) -> Child:
    container = {"image": "memcached:1.4.36-alpine", "command": ["memcached", "-m=64", "-o", "modern", "-v"]}
    by_hand = {"metadata": {"labels": {"app": "another"}}, "spec": {"replicas": 6}}
    return deployment(
        "cache", size, {"app": "memcached", "memcached_cr": "cache"}, own={}, container=container, by_hand=by_hand
    )


def example(version: str, **more: Any) -> Example:
    return Example(
        api_version=f"cache.example.com/{version}",
        resource="memcacheds",
        kind="Memcached",
        name="cache",
        spec={"size": 3},
        leftovers=("deployments", "replicasets", "pods"),
        **more,
    )


V1 = example(
    "v1",
    project=ROOT / "examples/memcached-v1",
    crd=ROOT / "examples/memcached-v1/crds/memcacheds.cache.example.com.yaml",
    permissions=Permissions(watched=["memcacheds.cache.example.com"], children=["deployments.apps"], observed=["pods"]),
    children=(v1(3),),
    status={"nodes": pods("cache-deployment", 3)},
    edit={"size": 4},
    edited=(v1(4),),
    edited_status={"nodes": pods("cache-deployment", 4)},
)
V1ALPHA1 = example(
    "v1alpha1",
    project=ROOT,
    crd=ROOT / "crds/memcacheds.cache.example.com.yaml",
    permissions=Permissions(
        watched=["apps.myapp.k8s.io", "memcacheds.cache.example.com"],
        children=["deployments.apps", "services"],
        observed=["pods"],
    ),
    children=(v1alpha1(3),),
    status={"nodes": pods("cache", 3)},
    edit={"size": 2},
    edited=(v1alpha1(2),),
    edited_status={"nodes": pods("cache", 2)},
)


@pytest.fixture(scope="class")
def operator(
    request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """One for each generation: their definitions have the same name."""
    with operating(request.cls.example, control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running


class Memcached(ExampleTests):
    def foreign(self, child: Child) -> dict[str, Any]:
        return foreign_deployment(child.name)

    def at_rest(self, live_example: LiveExample, child: Child) -> Any:
        return rolled_out(live_example, child)


class TestV1(Memcached):
    example = V1

    def test_a_cr_written_in_another_version_is_reconciled(self, live_example: LiveExample) -> None:
        """Two versions of a kind are the same objects."""
        older = {**live_example.example.manifest, "apiVersion": "cache.example.com/v1alpha1"}
        live_example.admin.post(live_example.path.replace("/v1/", "/v1alpha1/").removesuffix("/cache"), older)
        live_example.wait_until_settled()
        owner = live_example.get(live_example.example.children[0])["metadata"]["ownerReferences"][0]
        assert owner["apiVersion"] == "cache.example.com/v1"
        live_example.admin.merge(live_example.path.replace("/v1/", "/v1alpha1/"), {"spec": {"size": 1}}, "somebody")
        eventually("its pods", lambda: len(live_example.resource()["status"]["nodes"]) == 1)


class TestV1alpha1(Memcached):
    example = V1ALPHA1

    def test_nodes_in_the_status_are_the_names_of_the_pods(self, live_example: LiveExample) -> None:
        """Pods are only observed: a deleted one is replaced by its own controller, and the status changes."""
        live_example.apply()
        live_example.wait_until_settled()
        mark = live_example.operator.mark()
        gone = min(each["metadata"]["name"] for each in live_example.list("pods"))
        live_example.admin.delete(live_example.path_of("pods", gone))

        def follows() -> bool:
            names = sorted(each["metadata"]["name"] for each in live_example.list("pods"))
            return gone not in names and live_example.resource()["status"]["nodes"] == names and len(names) == 3

        eventually("the status to name the pods", follows)
        assert {write.partition(" ")[2] for write in live_example.operator.writes(mark, live_example.namespace)} == {
            "memcacheds/status cache"
        }
