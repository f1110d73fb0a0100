"""Cluster IPs and node ports of Services are unique, free again after a deletion, and found without a search."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.localcluster import LocalCluster
from ruleop.localcluster.kinds import services
from ruleop.localcluster.object_store import SERVICES, Name, Store
from tests.contract.client import Server


def service(name: str) -> dict[str, Any]:
    spec = {"type": "NodePort", "selector": {"app": "a"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_node_ports_are_unique_and_free_again_after_a_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "NODE_PORTS", [30000, 30001])
    cluster = LocalCluster()
    made = [cluster.apply(service(name)).obj["spec"] for name in ("a", "b")]
    assert {each["ports"][0]["nodePort"] for each in made} == {30000, 30001}
    assert len({each["clusterIP"] for each in made}) == 2
    cluster.store.delete(SERVICES, Name("default", "a"))
    assert cluster.apply(service("c")).obj["spec"]["ports"][0]["nodePort"] == made[0]["ports"][0]["nodePort"]


def test_a_service_is_refused_as_by_a_real_server_where_all_node_ports_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No contract: a real server would write each of its 2,768 ports, and have none for other tests."""
    monkeypatch.setattr(services, "NODE_PORTS", [30000])
    with LocalCluster() as cluster:
        server = Server.of(cluster.kubeconfig())
        path = "/api/v1/namespaces/default/services"
        server.create(path, service("a"))
        problem = "failed to allocate a nodePort: range is full"
        refused = server.send("POST", path, service("b")).refused(500, "InternalError")
        assert refused["message"] == f"Internal error occurred: {problem}"
        assert refused["details"] == {"causes": [{"message": problem}]}
        server.delete(f"{path}/a")
        server.create(path, service("b"))
        server.close()


def test_a_new_service_is_created_without_reading_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = LocalCluster()
    cluster.apply(service("a"))
    read = []
    all_of = Store.all

    def recorded(store: Store, resource: Any, *arguments: Any) -> Any:
        read.append(resource)
        return all_of(store, resource, *arguments)

    monkeypatch.setattr(Store, "all", recorded)
    cluster.apply(service("b"))
    assert SERVICES not in read
