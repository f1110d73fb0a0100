"""The tests in this folder run against a real Kubernetes control plane: see tests/controlplane."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from controlplane.cluster import ControlPlane
from controlplane.fixtures import control_plane, kubectl, namespace

from tests.cluster.server import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["control_plane", "kubectl", "namespace"]


@pytest.fixture(scope="session")
def server() -> Iterator[Client]:
    """An API server on which nobody but the test writes."""
    with ControlPlane(controllers=False, audit=False) as plane:
        client = Client(plane)
        yield client
        client.close()
        plane.check()
