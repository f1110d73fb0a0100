"""Memcached v1alpha1: a Deployment, and the names of its pods as the status, end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.operator import Operator, Rights, eventually
from tests.cluster.seeds import ROOT, Child, Life, Promises, Seed, foreign_deployment, operating, pods, rolled_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.cluster import ControlPlane


LABELS = {"app": "memcached", "memcached_cr": "cache"}


def deployment(size: int) -> Child:
    container = {
        "name": "memcached",
        "image": "memcached:1.4.36-alpine",
        "command": ["memcached", "-m=64", "-o", "modern", "-v"],
        "ports": [{"name": "memcached", "containerPort": 11211}],
    }
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    wanted = {
        "metadata": {"labels": LABELS},
        "spec": {"replicas": size, "selector": {"matchLabels": LABELS}, "template": template},
        "status": {"readyReplicas": size},
    }
    return Child("deployments", "cache", wanted, by_hand={"metadata": {"labels": {"app": "another"}}, "spec": {"replicas": 6}})


MEMCACHED = Seed(
    project=ROOT,
    crd=ROOT / "crds/memcacheds.cache.example.com.yaml",
    rights=Rights(
        watched=["apps.myapp.k8s.io", "memcacheds.cache.example.com"], children=["deployments.apps", "services"], observed=["pods"]
    ),
    api_version="cache.example.com/v1alpha1",
    resource="memcacheds",
    kind="Memcached",
    name="cache",
    spec={"size": 3},
    children=(deployment(3),),
    status={"nodes": pods("cache", 3)},
    edit={"size": 2},
    edited=(deployment(2),),
    edited_status={"nodes": pods("cache", 2)},
    leftovers=("deployments", "replicasets", "pods"),
)


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operating(MEMCACHED, control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running


class TestMemcached(Promises):
    seed = MEMCACHED

    def foreign(self, child: Child) -> dict[str, Any]:
        return foreign_deployment(child.name)

    def at_rest(self, life: Life, child: Child) -> Any:
        return rolled_out(life, child)

    def test_the_nodes_are_the_pods_by_name(self, life: Life) -> None:
        """Pods are only looked at: one that goes is replaced by its own controller, and the status follows."""
        life.apply()
        life.settled()
        mark = life.operator.mark()
        gone = min(each["metadata"]["name"] for each in life.list("pods"))
        life.admin.delete(life.path_of("pods", gone))

        def follows() -> bool:
            names = sorted(each["metadata"]["name"] for each in life.list("pods"))
            return gone not in names and life.resource()["status"]["nodes"] == names and len(names) == 3

        eventually("the status to name the pods", follows)
        assert {write.partition(" ")[2] for write in life.operator.writes(mark, life.namespace)} == {"memcacheds/status cache"}
