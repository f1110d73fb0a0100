"""An API server without controllers, so that only the operator and the test write, and a quick way to start
operators."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.conftest import NewCluster
from tests.cluster.example_projects import ROOT
from tests.cluster.faults.lab import PROJECT, Lab, Make
from tests.cluster.faults.proxy import Threads
from tests.cluster.faults.scenarios import SCENARIOS, Recording, run_without_faults
from tests.processes.fork_server import ForkServer


@pytest.fixture(scope="session")
def plane(new_cluster: NewCluster) -> Iterator[ControlPlane]:
    with new_cluster(controllers=False, audit=False) as plane:
        plane.define(PROJECT / "crds", ROOT / "crds/apps.myapp.k8s.io.yaml")
        yield plane
        plane.check()


@pytest.fixture(scope="session")
def make(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    folder: Path = tmp_path_factory.mktemp("faults")
    threads = Threads()
    with ForkServer() as fork_server:
        yield lambda name="lab", **settings: Lab(
            plane, threads, fork_server, folder, f"{name}-{uuid.uuid4().hex[:8]}", **settings
        )
    threads.close()


@pytest.fixture(scope="session")
def recordings(make: Make) -> dict[Any, Recording]:
    """The recording of each scenario without a fault."""
    return {scenario: run_without_faults(make, scenario) for scenario in SCENARIOS}


@pytest.fixture
def lab(make: Make) -> Iterator[Lab]:
    """An operator that is ready."""
    with make() as lab:
        lab.start_and_wait()
        yield lab
        lab.check()
