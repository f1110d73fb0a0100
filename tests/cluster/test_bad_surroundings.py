"""What is not as it should be where the operator is started: each is a sentence in its log that says what to do, and it goes on by itself when
that was done."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from controlplane.cluster import free_ports

from tests.cluster.operator import OWN_NAMESPACE, RBAC, eventually
from tests.cluster.pod import LEASES, Pod
from tests.cluster.seeds import Life
from tests.cluster.server import RefusedError
from tests.cluster.test_seed_app import APP
from tests.cluster.test_seed_surroundings import kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controlplane.cluster import ControlPlane
    from controlplane.fixtures import Kubectl

__all__ = ["kind"]

pytestmark = pytest.mark.usefixtures("kind")


class Fresh(Pod):
    """Made with its rights, and not started."""

    def start(self) -> None:
        pass


@pytest.fixture
def fresh(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Fresh]:
    with Fresh(control_plane, APP.project, APP.rights, tmp_path / "log") as operator:
        yield operator


def use(operator: Pod, user: dict[str, Any], **cluster: Any) -> None:
    operator.kubeconfig.write_text(yaml.safe_dump(operator.config(user, **cluster)))


def ending(operator: Pod) -> str:
    """What it says before it ends at once, with the status for what only another start can mend."""
    operator.launch()
    assert operator.ended() == 2
    said = operator.log_file.read_text()
    assert "Traceback" not in said
    return said


def test_a_token_that_is_not_accepted(fresh: Fresh) -> None:
    use(fresh, {"token": "hunter2"})
    said = ending(fresh)
    assert said.startswith("ruleop: the API server does not accept the credentials; log in again, or name others: ")
    assert "401" in said
    assert "hunter2" not in said


def test_a_server_that_is_signed_by_somebody_else(fresh: Fresh, tmp_path: Path) -> None:
    own = (tmp_path / "kubeconfig").read_text()
    token = yaml.safe_load(own)["users"][0]["user"]["token"]
    use(fresh, {"token": token}, **{"tls-server-name": "somewhere.else"})
    said = ending(fresh)
    assert said.startswith("ruleop: this may not be the API server; name the CA that signed its certificate: ")
    assert fresh.requests() == [], "the token was not shown to it"


@contextlib.contextmanager
def forwarded(port: int, to: str) -> Iterator[None]:
    """What comes to the port goes to the API server."""
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


def test_a_server_that_comes_later(fresh: Fresh, namespace: str, kubectl: Kubectl) -> None:
    (port,) = free_ports(1)
    token = yaml.safe_load(fresh.kubeconfig.read_text())["users"][0]["user"]
    use(fresh, token, server=f"https://127.0.0.1:{port}")
    fresh.launch()
    fresh.says("the API server does not answer; trying again")
    assert fresh.probe("/healthz")[0] == 200
    status, text = fresh.probe("/readyz?verbose")
    assert (status, "cannot be reached" in text) == (503, True)
    with forwarded(port, fresh.plane.server):
        fresh.wait_until_ready()
        life = Life(APP, fresh, namespace, kubectl)
        life.apply()
        life.settled()
        fresh.check()
        assert fresh.terminate() == 0


def test_without_the_right_to_the_inventory_it_waits_for_it(fresh: Fresh, namespace: str, kubectl: Kubectl) -> None:
    fresh.revoke("configmaps", fresh.home)
    fresh.launch()
    said = fresh.says("not permitted; trying again")
    assert "configmaps" in said["error"]
    assert said["grant"] == f"get, create, update on configmaps in namespace {fresh.home}"
    assert fresh.probe("/readyz")[0] == 503
    role = f"{RBAC}/namespaces/{fresh.home}/roles/{fresh.name}"
    fresh.admin.merge(role, {"rules": [*OWN_NAMESPACE, LEASES]}, "somebody")
    fresh.wait_until_ready()
    life = Life(APP, fresh, namespace, kubectl)
    life.apply()
    life.settled()
    fresh.check()


def test_without_the_right_to_the_lease_it_stands_by_until_it_has_it(fresh: Fresh, namespace: str, kubectl: Kubectl) -> None:
    fresh.revoke("leases", fresh.home)
    fresh.arguments = ("--leader-elect",)
    fresh.launch()
    said = fresh.says("cannot acquire or renew the lease; will retry")
    assert "leases" in said["error"]
    assert said["grant"] == f"get, create, update on leases.coordination.k8s.io in namespace {fresh.home}"
    role = f"{RBAC}/namespaces/{fresh.home}/roles/{fresh.name}"
    fresh.admin.merge(role, {"rules": [*OWN_NAMESPACE, LEASES]}, "somebody")
    life = Life(APP, fresh, namespace, kubectl)
    life.apply()
    life.settled()
    assert [line["event"] for line in fresh.complaints()] == ["cannot acquire or renew the lease; will retry"]
    fresh.check()


def test_without_the_right_to_events_nothing_but_events_is_missing(fresh: Fresh, namespace: str, kubectl: Kubectl) -> None:
    role = f"{RBAC}/clusterroles/{fresh.name}"
    rules = [rule for rule in APP.rights.rules() if "events" not in rule["resources"]]
    fresh.admin.merge(role, {"rules": rules}, "somebody")
    fresh.may(namespace, "create", "events", "events.k8s.io", yes=False)
    fresh.launch()
    life = Life(APP, fresh, namespace, kubectl)
    life.apply()
    life.settled()
    said = fresh.says("event dropped")
    assert "cannot create resource" in said["error"]
    fresh.admin.delete(life.path)  # more to be said
    eventually("it to be gone", lambda: gone(life))
    assert [line["event"] for line in fresh.complaints()] == ["event dropped"], "once"
    fresh.check()


def gone(life: Life) -> bool:
    try:
        life.resource()
    except RefusedError as error:
        return error.code == 404
    return False


def test_without_the_right_to_read_its_own_kind_it_waits_for_it(
    control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    rights = replace(APP.rights, watched=["memcacheds.cache.example.com"])
    with Pod(control_plane, APP.project, rights, tmp_path / "log") as operator:
        said = operator.says("not permitted to watch; will retry")
        assert "apps.myapp.k8s.io" in said["error"]
        assert said["grant"] == "get, list, watch, patch on apps.myapp.k8s.io in all namespaces"
        life = Life(APP, operator, namespace, kubectl)
        life.apply()
        operator.admin.merge(f"{RBAC}/clusterroles/{operator.name}", {"rules": APP.rights.rules()}, "somebody")
        life.settled()
        operator.says("watch resumed")
        assert len(operator.complaints()) == 1
        operator.check()
