"""The operator at work on an API server: a real control plane (tests/controlplane), or the one in memory.

    pytest --override-ini addopts=... tests/cluster                              the real one
    pytest --override-ini addopts=... tests/cluster --cluster-server=memory      the one in memory

What only the real one can show is marked `real_server`, with the reason, and left out in memory; what only the newest
Kubernetes has is marked `newest`, and left out of an older one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from collections.abc import Callable, Iterator

from controlplane.cluster import ControlPlane
from controlplane.fixtures import control_plane as real_control_plane
from controlplane.fixtures import kubectl, namespace

from ruleop.kubernetes.kinds import Kind
from tests.cluster.in_memory import InMemory, in_memory, served_by
from tests.cluster.server import Client
from tests.cluster.workers import ByControlPlane, group_of

if TYPE_CHECKING:  # of a plugin that not every run has
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

NewCluster: TypeAlias = Callable[..., ControlPlane | InMemory]

__all__ = ["kubectl", "namespace", "real_control_plane"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_server(reason): needs the real control plane")
    config.addinivalue_line(
        "markers", "newest(reason): needs what only the newest Kubernetes has (KUBERNETES= in make)"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Only for --dist=loadfile: a cluster in memory costs nothing, and `make test-all` distributes in another way."""
    return ByControlPlane(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if in_memory(config):
        _leave_out("real_server", config, items)
        return
    if os.environ.get("RULEOP_KUBERNETES"):
        _leave_out("newest", config, items)
    items.sort(key=lambda item: group_of(item.nodeid))


def _leave_out(marker: str, config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [each for each in items if each.get_closest_marker(marker)]
    items[:] = [each for each in items if each not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def serves(request: pytest.FixtureRequest) -> Callable[[Kind], bool]:
    """Whether the server has a built-in kind: the one in memory leaves out those that no rule uses."""
    return served_by(request.config)


@pytest.fixture(scope="session")
def new_cluster(request: pytest.FixtureRequest) -> NewCluster:
    """Makes a cluster of its own for a module, with the arguments of ControlPlane."""
    return InMemory if in_memory(request.config) else ControlPlane


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The cluster of this run."""
    if in_memory(request.config):
        with InMemory() as plane:
            yield plane
    else:
        yield request.getfixturevalue("real_control_plane")


@pytest.fixture(scope="module")
def app_kind(control_plane: Any) -> Iterator[None]:
    """The kind App is there while the tests of a module run."""
    crd = Path(__file__).resolve().parents[2] / "crds/apps.myapp.k8s.io.yaml"
    control_plane.define(crd)
    yield
    control_plane.kubectl("delete", f"--filename={crd}", "--wait=true")


@pytest.fixture(scope="session")
def server(new_cluster: NewCluster) -> Iterator[Client]:
    """An API server on which nobody but the test writes."""
    with new_cluster(controllers=False, audit=False) as plane:
        client = Client(plane)
        yield client
        client.close()
        plane.check()
