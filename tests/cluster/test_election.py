"""Several processes of one operator: one leads, the others stand by with warm stores. Who writes what, and when, is in
the audit log."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from controlplane.audit import moment
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import LiveExample
from tests.cluster.operator import WRITES, described
from tests.cluster.pod import Pod
from tests.cluster.test_examples import APP

pytestmark = pytest.mark.usefixtures("app_kind")

PATIENT = ("300s", "200s", "1s")  # nobody waits for such a lease to expire
SHORT = ("6s", "4s", "500ms")


Start = Callable[[tuple[str, str, str]], tuple[Pod, Pod, LiveExample]]


@pytest.fixture
def at_work(control_plane: ControlPlane, namespace: str, kubectl: Kubectl, tmp_path: Path) -> Iterator[Start]:
    """A leader, a standby, and an App that is well."""
    with contextlib.ExitStack() as stack:

        def start(lease: tuple[str, str, str]) -> tuple[Pod, Pod, LiveExample]:
            names = ("lease-duration", "renew-deadline", "retry-period")
            flags = [
                "--leader-elect",
                *(f"--leader-elect-{name}={value}" for name, value in zip(names, lease, strict=True)),
            ]
            leader = stack.enter_context(
                Pod(control_plane, APP.project, APP.permissions, tmp_path / "one" / "log", *flags)
            )
            leader.wait_for_log("became leader")
            standby = stack.enter_context(
                Pod(control_plane, APP.project, APP.permissions, tmp_path / "two" / "log", *flags, home=leader.home)
            )
            live_example = LiveExample(APP, standby, namespace, kubectl)
            live_example.apply()
            live_example.wait_until_settled()
            return leader, standby, live_example

        yield start


def claims(pod: Pod) -> list[float]:
    """When it took the lease or renewed it."""
    writes = [each for each in pod.requests() if each["verb"] in WRITES and each["responseStatus"]["code"] < 300]
    return [moment(each["requestReceivedTimestamp"]) for each in writes if each["objectRef"]["resource"] == "leases"]


def edited(live_example: LiveExample) -> None:
    """An edit is carried out by the current leader."""
    live_example.admin.merge(live_example.path, {"spec": APP.edit}, "somebody")
    live_example.wait_until_settled(APP.edited, APP.edited_status)


def test_a_stopped_leader_hands_over_to_a_standby_with_synced_caches(at_work: Start) -> None:
    leader, standby, live_example = at_work(PATIENT)
    assert standby.is_standby()
    assert [described(each) for each in standby.requests() if each["verb"] in WRITES] == [], (
        "not even an event or the inventory"
    )
    mark = standby.mark()
    assert leader.terminate() == 0
    standby.wait_for_log("became leader")  # long before a lease of five minutes would be over
    edited(live_example)
    since = standby.requests(mark)
    lists = [described(each) for each in since if each["verb"] == "list" or "sendInitialEvents" in each["requestURI"]]
    assert lists == ["list leases"], "for other processes"
    assert [
        described(each)
        for each in since
        if each["verb"] == "create" and each["objectRef"]["resource"] in {"deployments", "services"}
    ] == []
    standby.check()
    leader.check()


def test_the_lease_of_a_killed_leader_expires(at_work: Start) -> None:
    leader, standby, live_example = at_work(SHORT)
    leader.kill()
    standby.wait_for_log("became leader")
    edited(live_example)
    assert claims(standby)[0] - claims(leader)[-1] > 6, "the dead leader might not have been dead"
    standby.check()


def test_a_leader_that_loses_its_lease_exits_and_clocks_may_differ(at_work: Start) -> None:
    """Somebody takes the lease and is never heard of again; by its clock it will lead for decades."""
    leader, standby, live_example = at_work(SHORT)
    theirs = {"holderIdentity": "somebody", "renewTime": "2099-01-01T00:00:00.000000Z", "leaseDurationSeconds": 6}
    leader.admin.merge(leader.lease_path, {"spec": theirs}, "somebody")
    assert leader.wait_for_exit() == 1
    assert leader.wait_for_log("lease lost; exiting")["holder"] == "somebody"
    standby.wait_for_log("became leader")
    edited(live_example)
    leader.check()
    standby.check()


@pytest.mark.real_server("RBAC refuses")
def test_a_leader_that_cannot_renew_its_lease_exits_before_another_leads(at_work: Start) -> None:
    leader, standby, live_example = at_work(SHORT)
    leader.revoke("leases", leader.home)
    assert leader.wait_for_exit() == 1
    complaint = leader.wait_for_log("cannot acquire or renew the lease; will retry")
    assert complaint["grant"] == f"get, create, update on leases.coordination.k8s.io in namespace {leader.home}"
    assert "leases" in complaint["error"]
    assert sum(line["event"] == complaint["event"] for line in leader.log()) <= 2, (
        "once for each verb, not at each attempt"
    )
    leader.wait_for_log("lease lost; exiting")
    standby.wait_for_log("became leader")
    edited(live_example)
    late = [
        described(each) for each in leader.requests() if moment(each["requestReceivedTimestamp"]) > claims(standby)[0]
    ]
    assert late == []
    leader.check()
    standby.check()
