"""The control plane of the tests is a real one, and does what the other tests rely on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from controlplane.api import ApiError
from controlplane.build import BuildError, kubernetes_version
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl
from controlplane.keeper import Keeper
from controlplane.process import ControlPlaneError, Process

from tests.definitions import crd, version
from tests.waiting import eventually

pytestmark = pytest.mark.real_server("it is what is tested")

TESTS = Path(__file__).resolve().parent.parent


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    """An object that no controller does anything with."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def test_client_and_server_report_their_version(control_plane: ControlPlane) -> None:
    """The client and the server call themselves what they are, not v0.0.0-master."""
    pinned = kubernetes_version()
    assert pinned.startswith(f"v{os.environ.get('RULEOP_KUBERNETES') or '1.36'}.")
    versions = json.loads(control_plane.kubectl("version", "--output=json"))
    assert versions["clientVersion"]["gitVersion"] == pinned
    assert versions["serverVersion"]["gitVersion"] == pinned
    said = control_plane.kubectl("version")
    assert f"Client Version: {pinned}" in said
    assert f"Server Version: {pinned}" in said


def test_another_version_of_kubernetes_is_chosen_by_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULEOP_KUBERNETES", "1.33")
    assert kubernetes_version().startswith("v1.33.")
    monkeypatch.setenv("RULEOP_KUBERNETES", "1.2")
    with pytest.raises(
        BuildError, match=r"RULEOP_KUBERNETES is 1\.2, and tests/controlplane/kubernetes has only 1\.33"
    ):
        kubernetes_version()


def test_new_kinds_are_collected_after_a_restart_of_the_controllers(
    control_plane: ControlPlane, namespace: str
) -> None:
    """A test with a CRD of its own need not wait until the garbage collector looks for new kinds."""
    api, plural = control_plane.api(), f"widgets{namespace[-8:]}"
    crds, kind, group = (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        plural.capitalize(),
        "test.example.com",
    )
    api.post(crds, crd(kind, group, version("v1", {"type": "object"}), plural=plural))
    try:
        control_plane.until_served(f"crd/{plural}.{group}")
        control_plane.restart_controllers(watching=[f"{plural}.{group}"])
        path, maps = f"/apis/{group}/v1/namespaces/{namespace}/{plural}", f"/api/v1/namespaces/{namespace}/configmaps"
        owner = api.post(path, {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "owner"}})
        reference = {"apiVersion": f"{group}/v1", "kind": kind, "name": "owner", "uid": owner["metadata"]["uid"]}
        api.post(maps, config_map("owned", ownerReferences=[reference]))
        api.delete(f"{path}/owner")
        eventually(
            "what the control plane does",
            lambda: "owned" not in {each["metadata"]["name"] for each in api.get(maps)["items"]},
            timeout=10.0,
        )
    finally:
        api.delete(f"{crds}/{plural}.{group}")


def test_the_audit_log_has_user_and_request(control_plane: ControlPlane, kubectl: Kubectl, namespace: str) -> None:
    """Requests are found by user and time, refused ones too."""
    before, mark = time.time(), control_plane.audit_log.mark()
    with pytest.raises(ControlPlaneError, match="forbidden"):
        kubectl("create", "configmap", "mine", user="operator")
    kubectl("create", "rolebinding", "operator", "--clusterrole=edit", "--user=operator")
    # The API server learns of a binding by a watch of its own.
    eventually("what the control plane does", lambda: kubectl("auth", "can-i", "create", "configmaps").strip() == "yes")
    eventually("what the control plane does", lambda: _creates(kubectl, "mine"))
    after = time.time()
    kubectl("delete", "configmap", "mine", user="operator")

    found = eventually(
        "what the control plane does",
        lambda: control_plane.audit(
            mark=mark,
            user="operator",
            verb="create",
            resource="configmaps",
            namespace=namespace,
            since=before,
            until=after,
        ),
    )
    codes = [event["responseStatus"]["code"] for event in found]
    assert codes[0] == 403
    assert codes[-1] == 201
    last = found[-1]
    assert last["stage"] == "ResponseComplete"
    assert last["objectRef"]["name"] == "mine"
    assert last["requestURI"].startswith(f"/api/v1/namespaces/{namespace}/configmaps")
    assert last["userAgent"].startswith(f"kubectl/{kubernetes_version()}")
    assert control_plane.audit(mark=mark, user="operator", verb="create", resource="configmaps", since=after) == []


def _creates(kubectl: Kubectl, name: str) -> bool:
    try:
        kubectl("create", "configmap", name, user="operator")
    except ControlPlaneError:
        return False
    return True


def test_the_audit_log_has_watches_from_their_start(control_plane: ControlPlane) -> None:
    """The controllers' watches, which have not ended, are there with the stage ResponseStarted."""
    started = control_plane.audit(user="system:kube-controller-manager", verb="watch", stage="ResponseStarted")
    assert {"deployments", "configmaps"} <= {event["objectRef"]["resource"] for event in started}


def test_a_paused_process_stops_with_all_its_threads(tmp_path: Path) -> None:
    """Even a program with many busy threads, each of which stops only when it next handles signals."""
    busy = "import threading, time\nfor _ in range(40):\n    threading.Thread(target=lambda: [time.sleep(0.0001) for _ in iter(int, 1)]).start()"
    keeper = Keeper()
    process = Process("busy", [sys.executable, "-c", busy], tmp_path, keeper)
    process.start()

    def states() -> list[str]:
        return [
            (task / "stat").read_text().rpartition(")")[2].split()[0]
            for task in Path(f"/proc/{process.pid}/task").iterdir()
        ]

    try:
        eventually("what the control plane does", lambda: len(states()) > 40)
        for _ in range(50):
            process.pause()
            assert set(states()) == {"T"}
            process.resume()
    finally:
        process.kill()
        keeper.close()
    with pytest.raises(ControlPlaneError, match="not running"):
        process.pause()


def test_the_api_server_can_be_paused_and_restarted(control_plane: ControlPlane, namespace: str) -> None:
    """Paused it does not answer; stopped it refuses; after a crash it has what it had, at the same address."""
    api, path = control_plane.api(), f"/api/v1/namespaces/{namespace}/configmaps"
    api.post(path, config_map("kept"))
    server = control_plane.server
    control_plane.pause_apiserver()
    try:
        with pytest.raises(TimeoutError):
            api.text("GET", path, timeout=0.5)
    finally:
        control_plane.resume_apiserver()
    api.get(f"{path}/kept")
    control_plane.stop_apiserver()
    try:
        with pytest.raises(OSError, match="refused"):
            api.get(path)
    finally:
        control_plane.start_apiserver()
    control_plane.restart_apiserver()
    assert control_plane.server == server
    api.get(f"{path}/kept")
    control_plane.check()


def test_users_can_be_added(control_plane: ControlPlane, namespace: str) -> None:
    """A user who came later is known after a restart, with the groups given."""
    control_plane.token_for("auditor", ["system:authenticated", "auditors"])
    control_plane.restart_apiserver()
    control_plane.kubectl(
        "create", "rolebinding", "auditors", "--clusterrole=view", "--group=auditors", f"--namespace={namespace}"
    )
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    eventually("what the control plane does", lambda: _allowed(control_plane, "auditor", path))
    assert not _allowed(control_plane, "tenant", path)
    assert control_plane.kubeconfig("auditor").exists()


def _allowed(control_plane: ControlPlane, user: str, path: str) -> bool:
    try:
        control_plane.api(user).get(path)
    except ApiError as error:
        if error.status == 403:
            return False
        raise
    return True


KILLED_RUN = """
import sys, time
sys.path.insert(0, sys.argv[1])
from controlplane.cluster import ControlPlane
plane = ControlPlane(controllers=False)
plane.start()
print(plane.server, plane.layout.etcd_url, plane.layout.work, plane.layout.etcd_data, sep="\\n", flush=True)
time.sleep(600)
"""


def test_a_killed_test_run_stops_its_cluster() -> None:
    """SIGKILL to the process that started a cluster ends the cluster and removes its files."""
    run = subprocess.Popen([sys.executable, "-c", KILLED_RUN, str(TESTS)], stdout=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None
        server, etcd, work, data = (run.stdout.readline().strip() for _ in range(4))
        assert _listens(server)
        assert _listens(etcd)
        assert Path(work).is_dir()
    finally:
        run.send_signal(signal.SIGKILL)
        run.communicate()
    eventually("what the control plane does", lambda: not _listens(server) and not _listens(etcd))
    eventually("what the control plane does", lambda: not Path(work).exists() and not Path(data).exists())


def _listens(url: str) -> bool:
    address = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((address.hostname, address.port)) == 0
