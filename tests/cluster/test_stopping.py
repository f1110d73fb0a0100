"""Asked to end while it works, and while the API server answers nobody. Whatever was under way, the next start finishes it."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.cluster.operator import eventually
from tests.cluster.pod import Pod
from tests.cluster.seeds import Life
from tests.cluster.test_seed_app import APP
from tests.cluster.test_seed_surroundings import kind, many

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controlplane.cluster import ControlPlane
    from controlplane.fixtures import Kubectl

__all__ = ["kind"]

COUNT = 24


@pytest.fixture
def hanging(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Where the API server may be paused."""
    yield control_plane
    control_plane.resume_apiserver()


def in_the_middle_of_work(operator: Pod, plane: ControlPlane, namespace: str, kubectl: Kubectl) -> Life:
    """The API server answers no more, and the operator waits for it."""
    life = Life(APP, operator, namespace, kubectl)
    assert operator.terminate() == 0
    for each in many(life, COUNT):
        each["spec"]["deployment"]["replicas"] = 0  # nobody need wait for pods
        life.admin.post(life.path.rpartition("/")[0], each)
    mark = operator.mark()
    operator.launch()
    eventually("the first of many writes", lambda: operator.has_written(mark, namespace))
    plane.pause_apiserver()
    return life


def all_ready(life: Life) -> bool:
    items = life.admin.get(life.path.rpartition("/")[0])["items"]
    conditions = [each for item in items for each in (item.get("status") or {}).get("conditions", [])]
    return sum(each["type"] == "Ready" and each["status"] == "True" for each in conditions) == COUNT


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("asked", ["once", "twice"])
def test_a_server_that_hangs_does_not_keep_it_from_ending(
    hanging: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl, asked: str
) -> None:
    grace = "1s" if asked == "once" else "10m"
    with Pod(hanging, APP.project, APP.rights, tmp_path / "log", "--leader-elect", f"--graceful-shutdown-timeout={grace}") as operator:
        life = in_the_middle_of_work(operator, hanging, namespace, kubectl)
        operator.signal(signal.SIGTERM)
        operator.says("stopping")
        if asked == "twice":
            operator.signal(signal.SIGINT)
        assert operator.ended() == 1
        operator.says(
            "the grace period is over; what still ran is cut off, and the next start finishes it"
            if asked == "once"
            else "asked to end a second time: it ends at once"
        )
        hanging.resume_apiserver()
        # Its lease is left to run out: a write that was cut off may still be on its way.
        eventually("the API server", lambda: operator.lease()["spec"]["holderIdentity"], 60)
        operator.admin.delete(operator.lease_path)
        operator.start()
        eventually("all to be ready", lambda: all_ready(life), 60)
        operator.check()
        assert operator.terminate() == 0


@pytest.mark.usefixtures("kind")
def test_an_interrupt_ends_it_in_order(control_plane: ControlPlane, tmp_path: Path) -> None:
    with Pod(control_plane, APP.project, APP.rights, tmp_path / "log", "--leader-elect") as operator:
        operator.says("became leader")
        operator.signal(signal.SIGINT)
        assert operator.ended() == 0
        assert operator.lease()["spec"]["holderIdentity"] == "", "whoever comes next need not wait"
        operator.check()
