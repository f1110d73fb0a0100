"""An API server without controllers, so that nobody but the operator and the test writes, and a quick way to start operators."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.faults.lab import PROJECT, Lab
from tests.cluster.faults.lives import LIVES, undisturbed
from tests.cluster.faults.nursery import Nursery
from tests.cluster.faults.proxy import Threads
from tests.cluster.seeds import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.faults.lives import Course

    Make = Callable[..., Lab]


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(controllers=False, audit=False) as plane:
        plane.define(PROJECT / "crds", ROOT / "crds/apps.myapp.k8s.io.yaml")
        yield plane
        plane.check()


@pytest.fixture(scope="session")
def make(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    folder: Path = tmp_path_factory.mktemp("faults")
    threads = Threads()
    with Nursery(folder) as nursery:
        yield lambda name="lab", **settings: Lab(plane, threads, nursery, folder, f"{name}-{uuid.uuid4().hex[:8]}", **settings)
    threads.close()


@pytest.fixture(scope="session")
def courses(make: Make) -> dict[Any, Course]:
    """What each life is when nothing happens."""
    return {life: undisturbed(make, life) for life in LIVES}


@pytest.fixture
def lab(make: Make) -> Iterator[Lab]:
    """An operator that is ready."""
    with make() as lab:
        lab.start_and_wait()
        yield lab
        lab.check()
