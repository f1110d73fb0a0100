"""Which items of others the API server refuses beside a desired one."""

from __future__ import annotations

from ruleop.kubernetes.merge.conflicts import conflicts
from tests.kubernetes.merge.shapes import DEPLOYMENT, SERVICE


def told(merged, desired, shape=SERVICE):
    return [
        (each.path, each.desired, each.other, each.field, each.missing) for each in conflicts(merged, desired, shape)
    ]


def ports(*items):
    return {"spec": {"ports": list(items)}}


A, B = {"name": "a", "port": 1}, {"name": "b", "port": 2}


def test_two_ports_of_the_same_name_conflict():
    other = {"name": "a", "port": 6}
    assert told(ports(other, A, B), ports(A, B)) == [
        ("spec.ports", "[port=1,protocol=TCP]", "[port=6,protocol=TCP]", "name", False)
    ]


def test_a_port_without_a_name_conflicts_with_a_named_one():
    assert told(ports(A, {"port": 6}), ports(A)) == [
        ("spec.ports", "[port=1,protocol=TCP]", "[port=6,protocol=TCP]", "name", True)
    ]


def test_conflicts_among_items_of_others_and_among_desired_items_are_not_reported():
    assert told(ports(B, {**B, "port": 6}), ports(A)) == []
    assert told(ports(A, {**A, "port": 6}), ports(A, {**A, "port": 6})) == []
    assert told(ports(A, B), ports(A)) == []


def test_container_ports_of_the_same_host_port_conflict():
    def app(*items):
        return {"spec": {"template": {"spec": {"containers": [{"name": "app", "ports": list(items)}]}}}}

    web, other = (
        {"name": "web", "containerPort": 80, "hostPort": 8080},
        {"name": "x", "containerPort": 81, "hostPort": 8080},
    )
    path = "spec.template.spec.containers[name=app].ports"
    ours, theirs = "[containerPort=80,protocol=TCP]", "[containerPort=81,protocol=TCP]"
    assert told(app(web, other), app(web), DEPLOYMENT) == [(path, ours, theirs, "hostPort", False)]
    assert told(app(web, {**other, "hostIP": "127.0.0.1"}), app(web), DEPLOYMENT) == []
    assert told(app(web, {**other, "protocol": "UDP"}), app(web), DEPLOYMENT) == []
