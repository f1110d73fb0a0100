"""Asked to end while it works, and while the API server answers nobody. Whatever was under way, the next start finishes
it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import LiveExample
from tests.cluster.operator import eventually
from tests.cluster.pod import Pod
from tests.cluster.test_example_surroundings import kind, many
from tests.cluster.test_examples import APP

__all__ = ["kind"]

COUNT = 60  # the last write is long after the first one


@pytest.fixture
def hanging(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """An API server that a test may pause."""
    yield control_plane
    control_plane.resume_apiserver()


def in_the_middle_of_work(operator: Pod, plane: ControlPlane, namespace: str, kubectl: Kubectl) -> LiveExample:
    """The API server answers no more, and the operator waits for it."""
    live_example = LiveExample(APP, operator, namespace, kubectl)
    assert operator.terminate() == 0
    for each in many(live_example, COUNT):
        each["spec"]["deployment"]["replicas"] = 0  # nobody need wait for pods
        live_example.admin.post(live_example.path.rpartition("/")[0], each)
    mark = operator.mark()
    operator.launch()
    eventually("the first of many writes", lambda: operator.has_written(mark, namespace))
    plane.pause_apiserver()
    return live_example


def all_ready(live_example: LiveExample) -> bool:
    items = live_example.admin.get(live_example.path.rpartition("/")[0])["items"]
    conditions = [each for item in items for each in (item.get("status") or {}).get("conditions", [])]
    return sum(each["type"] == "Ready" and each["status"] == "True" for each in conditions) == COUNT


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("asked", ["once", "twice"])
def test_an_operator_stops_while_the_server_hangs(
    hanging: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl, asked: str
) -> None:
    grace = "1s" if asked == "once" else "10m"
    with Pod(
        hanging,
        APP.project,
        APP.permissions,
        tmp_path / "log",
        "--leader-elect",
        f"--graceful-shutdown-timeout={grace}",
    ) as operator:
        live_example = in_the_middle_of_work(operator, hanging, namespace, kubectl)
        operator.signal(signal.SIGTERM)
        operator.wait_for_log("stopping")
        if asked == "twice":
            operator.signal(signal.SIGINT)
        assert operator.wait_for_exit() == 1
        operator.wait_for_log(
            "grace period exceeded; exiting with unfinished reconciles"
            if asked == "once"
            else "second signal: exiting immediately"
        )
        hanging.resume_apiserver()
        # Its lease is left to run out: a write that was cut off may still be on its way.
        eventually("the API server", lambda: operator.lease()["spec"]["holderIdentity"], 60)
        operator.admin.delete(operator.lease_path)
        operator.start()
        eventually("all to be ready", lambda: all_ready(live_example), 60)
        operator.check()
        assert operator.terminate() == 0


@pytest.mark.usefixtures("kind")
def test_an_interrupt_stops_the_operator_cleanly(control_plane: ControlPlane, tmp_path: Path) -> None:
    with Pod(control_plane, APP.project, APP.permissions, tmp_path / "log", "--leader-elect") as operator:
        operator.wait_for_log("became leader")
        operator.signal(signal.SIGINT)
        assert operator.wait_for_exit() == 0
        assert operator.lease()["spec"]["holderIdentity"] == "", "whoever comes next need not wait"
        operator.check()
