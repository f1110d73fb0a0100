"""The operator starts in a cluster or a project with a mistake: it logs one sentence that says what to do, and
continues by itself when the mistake is fixed."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane.cluster import ControlPlane, free_ports
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import LiveExample
from tests.cluster.operator import OWN_NAMESPACE, RBAC, eventually
from tests.cluster.pod import LEASES, Pod
from tests.cluster.server import RefusedError
from tests.cluster.test_example_surroundings import kind
from tests.cluster.test_examples import APP

__all__ = ["kind"]

pytestmark = [pytest.mark.usefixtures("kind"), pytest.mark.real_server("RBAC and TLS")]


class Fresh(Pod):
    """Made with its permissions, and not started."""

    def start(self) -> None:
        pass


@pytest.fixture
def fresh(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Fresh]:
    with Fresh(control_plane, APP.project, APP.permissions, tmp_path / "log") as operator:
        yield operator


def use(operator: Pod, user: dict[str, Any], **cluster: Any) -> None:
    operator.kubeconfig.write_text(yaml.safe_dump(operator.config(user, **cluster)))


def ending(operator: Pod) -> str:
    """The error of an operator that ends at once, with the exit status for errors that need another start."""
    operator.launch()
    assert operator.wait_for_exit() == 2
    said = operator.log_file.read_text()
    assert "Traceback" not in said
    return said


def test_a_rejected_token_is_reported(fresh: Fresh) -> None:
    use(fresh, {"token": "hunter2"})
    said = ending(fresh)
    assert said.startswith("ruleop: the API server does not accept the credentials; log in again, or name others: ")
    assert "401" in said
    assert "hunter2" not in said


def test_a_server_certificate_of_another_ca_is_rejected(fresh: Fresh, tmp_path: Path) -> None:
    own = (tmp_path / "kubeconfig").read_text()
    token = yaml.safe_load(own)["users"][0]["user"]["token"]
    use(fresh, {"token": token}, **{"tls-server-name": "somewhere.else"})
    said = ending(fresh)
    assert said.startswith("ruleop: this may not be the API server; name the CA that signed its certificate: ")
    assert fresh.requests() == [], "the token was not shown to it"


@contextlib.contextmanager
def forwarded(port: int, to: str) -> Iterator[None]:
    """Forwards the connections of a port to the API server."""
    host, _, number = to.removeprefix("https://").rpartition(":")
    listener = socket.create_server(("127.0.0.1", port))
    sockets = [listener]

    def pump(one: socket.socket, two: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                two.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = listener.accept()
                there = socket.create_connection((host, int(number)))
                sockets.extend((here, there))
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def test_an_operator_started_before_the_server_connects_later(fresh: Fresh, namespace: str, kubectl: Kubectl) -> None:
    (port,) = free_ports(1)
    token = yaml.safe_load(fresh.kubeconfig.read_text())["users"][0]["user"]
    use(fresh, token, server=f"https://127.0.0.1:{port}")
    fresh.launch()
    fresh.wait_for_log("API server not reachable; will retry")
    assert fresh.probe("/healthz")[0] == 200
    status, text = fresh.probe("/readyz?verbose")
    assert (status, "cannot be reached" in text) == (503, True)
    with forwarded(port, fresh.plane.server):
        fresh.wait_until_ready()
        live_example = LiveExample(APP, fresh, namespace, kubectl)
        live_example.apply()
        live_example.wait_until_settled()
        fresh.check()
        assert fresh.terminate() == 0


def test_without_permission_for_the_inventory_the_operator_waits(
    fresh: Fresh, namespace: str, kubectl: Kubectl
) -> None:
    fresh.revoke("configmaps", fresh.home)
    fresh.launch()
    said = fresh.wait_for_log("not permitted; will retry")
    assert "configmaps" in said["error"]
    assert said["grant"] == f"get, create, update on configmaps in namespace {fresh.home}"
    assert fresh.probe("/readyz")[0] == 503
    role = f"{RBAC}/namespaces/{fresh.home}/roles/{fresh.name}"
    fresh.admin.merge(role, {"rules": [*OWN_NAMESPACE, LEASES]}, "somebody")
    fresh.wait_until_ready()
    live_example = LiveExample(APP, fresh, namespace, kubectl)
    live_example.apply()
    live_example.wait_until_settled()
    fresh.check()


def test_without_permission_for_the_lease_the_operator_stands_by(
    fresh: Fresh, namespace: str, kubectl: Kubectl
) -> None:
    fresh.revoke("leases", fresh.home)
    fresh.arguments = ("--leader-elect",)
    fresh.launch()
    said = fresh.wait_for_log("cannot acquire or renew the lease; will retry")
    assert "leases" in said["error"]
    assert said["grant"] == f"get, create, update on leases.coordination.k8s.io in namespace {fresh.home}"
    role = f"{RBAC}/namespaces/{fresh.home}/roles/{fresh.name}"
    fresh.admin.merge(role, {"rules": [*OWN_NAMESPACE, LEASES]}, "somebody")
    live_example = LiveExample(APP, fresh, namespace, kubectl)
    live_example.apply()
    live_example.wait_until_settled()
    assert [line["event"] for line in fresh.warnings()] == ["cannot acquire or renew the lease; will retry"]
    fresh.check()


def test_without_permission_for_events_only_events_are_missing(fresh: Fresh, namespace: str, kubectl: Kubectl) -> None:
    role = f"{RBAC}/clusterroles/{fresh.name}"
    rules = [rule for rule in APP.permissions.rules() if "events" not in rule["resources"]]
    fresh.admin.merge(role, {"rules": rules}, "somebody")
    fresh.may(namespace, "create", "events", "events.k8s.io", yes=False)
    fresh.launch()
    live_example = LiveExample(APP, fresh, namespace, kubectl)
    live_example.apply()
    live_example.wait_until_settled()
    said = fresh.wait_for_log("event dropped")
    assert "cannot create resource" in said["error"]
    fresh.admin.delete(live_example.path)  # more to report
    eventually("it to be gone", lambda: gone(live_example))
    assert [line["event"] for line in fresh.warnings()] == ["event dropped"], "once"
    fresh.check()


def gone(live_example: LiveExample) -> bool:
    try:
        live_example.resource()
    except RefusedError as error:
        return error.code == 404
    return False


def test_without_permission_for_the_watched_kind_the_operator_waits(
    control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    permissions = replace(APP.permissions, watched=["memcacheds.cache.example.com"])
    with Pod(control_plane, APP.project, permissions, tmp_path / "log") as operator:
        said = operator.wait_for_log("not permitted to watch; will retry")
        assert "apps.myapp.k8s.io" in said["error"]
        assert said["grant"] == "get, list, watch on apps.myapp.k8s.io in all namespaces"
        live_example = LiveExample(APP, operator, namespace, kubectl)
        live_example.apply()
        operator.admin.merge(f"{RBAC}/clusterroles/{operator.name}", {"rules": APP.permissions.rules()}, "somebody")
        live_example.wait_until_settled()
        operator.wait_for_log("watch resumed")
        assert len(operator.warnings()) == 1
        operator.check()
