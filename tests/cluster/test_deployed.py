"""The permissions and the mounted ConfigMap of docs/operations.md, with the operator as a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster import deployed
from tests.cluster.test_seed_app import APP
from tests.cluster.test_seed_memcached import V1ALPHA1 as MEMCACHED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.cluster import ControlPlane


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[deployed.Deployed]:
    control_plane.define(APP.crd, MEMCACHED.crd)
    with deployed.Deployed(control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running
    for seed in (APP, MEMCACHED):
        control_plane.kubectl("delete", f"--filename={seed.crd}", "--wait=true")


class TestDeployed(deployed.Promises):
    """As a process of this machine."""


def test_it_stops_in_order(operator: deployed.Deployed) -> None:
    deployed.stops_in_order(operator)
