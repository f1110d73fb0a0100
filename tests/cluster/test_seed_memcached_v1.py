"""Memcached v1: labels said once, and a kind with two versions, end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.operator import Operator, Rights, eventually
from tests.cluster.seeds import ROOT, Child, Life, Promises, Seed, foreign_deployment, operating, pods, rolled_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.cluster import ControlPlane


LABELS = {"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": "cache"}


def deployment(size: int) -> Child:
    container = {
        "name": "memcached",
        "image": "memcached:1.6.6",
        "ports": [{"name": "memcached", "containerPort": 11211}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "livenessProbe": {"tcpSocket": {"port": 11211}, "initialDelaySeconds": 30, "periodSeconds": 10},
    }
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    wanted = {
        "metadata": {"labels": LABELS},
        "spec": {"replicas": size, "selector": {"matchLabels": LABELS}, "template": template},
        "status": {"readyReplicas": size},
    }
    return Child("deployments", "cache-deployment", wanted, by_hand={"spec": {"replicas": 0}})


MEMCACHED = Seed(
    project=ROOT / "examples/memcached-v1",
    crd=ROOT / "examples/memcached-v1/crds/memcacheds.cache.example.com.yaml",
    rights=Rights(watched=["memcacheds.cache.example.com"], children=["deployments.apps"], observed=["pods"]),
    api_version="cache.example.com/v1",
    resource="memcacheds",
    kind="Memcached",
    name="cache",
    spec={"size": 3},
    children=(deployment(3),),
    status={"nodes": pods("cache-deployment", 3)},
    edit={"size": 4},
    edited=(deployment(4),),
    edited_status={"nodes": pods("cache-deployment", 4)},
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

    def test_one_written_in_the_other_version_is_looked_after_too(self, life: Life) -> None:
        """Two versions of a kind are the same objects."""
        older = {**life.seed.manifest, "apiVersion": "cache.example.com/v1alpha1"}
        life.admin.post(life.path.replace("/v1/", "/v1alpha1/").removesuffix("/cache"), older)
        life.settled()
        owner = life.get(life.seed.children[0])["metadata"]["ownerReferences"][0]
        assert owner["apiVersion"] == "cache.example.com/v1"
        life.admin.merge(life.path.replace("/v1/", "/v1alpha1/"), {"spec": {"size": 1}}, "somebody")
        eventually("its pods", lambda: len(life.resource()["status"]["nodes"]) == 1)
