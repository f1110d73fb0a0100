"""Both servers, real and in memory, for the same client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from controlplane.build import build_dir
from controlplane.cluster import ControlPlane
from controlplane.programs import program

from ruleop.localcluster import LocalCluster
from tests.cluster.clients.sides import Side, Sides


@pytest.fixture
def local_cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture
def sides(control_plane: ControlPlane, local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Sides:
    folder = tmp_path_factory.mktemp("clients")
    programs = (build_dir(), program("helm").parent)
    kubeconfig = folder / "local.kubeconfig"
    local_cluster.write_kubeconfig(kubeconfig)
    real, local = (Side(name, folder / name, programs) for name in ("real", "local"))
    real.prepare(control_plane.kubeconfig())
    local.prepare(kubeconfig)
    return Sides(real, local)
