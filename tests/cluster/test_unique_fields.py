"""The fields that ruleop takes for unique within a list are those whose duplicates the API server rejects, and no
others."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.builtin.table import builtin_kinds, builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge.conflicts import conflicts
from ruleop.kubernetes.schema.shape import UNIQUE, shape_at
from tests.cluster import objects
from tests.cluster.objects import Subject
from tests.cluster.server import Client, RefusedError

JSON = Any


def service(*ports: JSON) -> JSON:
    return {"spec": {"type": "NodePort", "selector": {"app": "x"}, "ports": list(ports)}}


def deployment(**container: JSON) -> JSON:
    labels = {"app": "x"}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("disk", "other")]
    pod = {"containers": [{"name": "app", "image": "app", **container}], "volumes": volumes}
    return {"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}}


def ports(*ports: JSON) -> JSON:
    return deployment(ports=list(ports))


def devices(*devices: JSON) -> JSON:
    return deployment(volumeDevices=list(devices))


A, B = {"name": "a", "port": 1}, {"name": "b", "port": 2}
WEB, ADMIN = {"name": "web", "containerPort": 80}, {"name": "admin", "containerPort": 81}
UDP, HOST = {"protocol": "UDP"}, {"hostPort": 8080}
DISK = {"name": "disk", "devicePath": "/dev/a"}

# The kind, an object with two items, and the field for which the server refuses it; "" where it takes it.
CASES: dict[str, tuple[Subject, JSON, JSON, str]] = {
    "two ports": (objects.SERVICE, service(A), service(A, B), ""),
    "one name": (objects.SERVICE, service(A), service(A, {**B, "name": "a"}), "name"),
    "no name in the second": (objects.SERVICE, service(A), service(A, {"port": 2}), "name"),
    "no name in the first": (objects.SERVICE, service({"port": 1}), service({"port": 1}, B), "name"),
    "one node port": (
        objects.SERVICE,
        service({**A, "nodePort": 30000}),
        service({**A, "nodePort": 30000}, {**B, "nodePort": 30000}),
        "nodePort",
    ),
    "one node port of two numbers and protocols": (
        objects.SERVICE,
        service({**A, "nodePort": 30000}),
        service({**A, "nodePort": 30000}, {**B, **UDP, "nodePort": 30000}),
        "nodePort",
    ),
    # The first ports of the range, which the server gives to no other Service by itself.
    "one node port of two protocols of one number": (
        objects.SERVICE,
        service({**A, "nodePort": 30000}),
        service({**A, "nodePort": 30000}, {**A, **UDP, "name": "b", "nodePort": 30000}),
        "",
    ),
    "one target port": (
        objects.SERVICE,
        service({**A, "targetPort": 9}),
        service({**A, "targetPort": 9}, {**B, "targetPort": 9}),
        "",
    ),
    "two container ports": (objects.DEPLOYMENT, ports(WEB), ports(WEB, ADMIN), ""),
    "one name of two container ports": (objects.DEPLOYMENT, ports(WEB), ports(WEB, {**ADMIN, "name": "web"}), "name"),
    "no name in a container port": (objects.DEPLOYMENT, ports(WEB), ports(WEB, {"containerPort": 81}), ""),
    "one host port": (
        objects.DEPLOYMENT,
        ports({**WEB, **HOST}),
        ports({**WEB, **HOST}, {**ADMIN, **HOST}),
        "hostPort",
    ),
    "one host port of two protocols": (
        objects.DEPLOYMENT,
        ports({**WEB, **HOST}),
        ports({**WEB, **HOST}, {**ADMIN, **HOST, **UDP}),
        "",
    ),
    "one host port of two addresses": (
        objects.DEPLOYMENT,
        ports({**WEB, **HOST}),
        ports({**WEB, **HOST}, {**ADMIN, **HOST, "hostIP": "127.0.0.1"}),
        "",
    ),
    "one disk at two places": (
        objects.DEPLOYMENT,
        devices(DISK),
        devices(DISK, {**DISK, "devicePath": "/dev/b"}),
        "name",
    ),
    "two disks": (objects.DEPLOYMENT, devices(DISK), devices(DISK, {"name": "other", "devicePath": "/dev/b"}), ""),
    "one volume mounted at two places": (
        objects.DEPLOYMENT,
        deployment(volumeMounts=[{"name": "disk", "mountPath": "/a"}]),
        deployment(volumeMounts=[{"name": "disk", "mountPath": "/a"}, {"name": "disk", "mountPath": "/b"}]),
        "",
    ),
    "one secret in two variables": (
        objects.DEPLOYMENT,
        deployment(env=[{"name": "A", "value": "x"}]),
        deployment(env=[{"name": "A", "value": "x"}, {"name": "B", "value": "x"}]),
        "",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_predicted_duplicates_are_those_that_the_api_server_rejects(server: Client, name: str) -> None:
    subject, desired, live, field = CASES[name]
    shape = builtin_shape(Kind.parse(subject.api_version, subject.kind))
    assert shape is not None
    body = subject.named(live, "unique")
    try:
        server.send("POST", f"{subject.path}?dryRun=All", body)
        refused = ""
    except RefusedError as refusal:
        (cause,) = refusal.causes
        refused = cause.rpartition(".")[2]
    assert refused == field
    assert [each.field for each in conflicts(body, desired, shape)] == ([field] if field else [])


def test_the_names_of_ports_are_compared_within_one_container_only(server: Client) -> None:
    body = objects.DEPLOYMENT.named(ports(WEB), "unique")
    body["spec"]["template"]["spec"]["containers"].append(
        {"name": "side", "image": "side", "ports": [{**ADMIN, "name": "web"}]}
    )
    server.send("POST", f"{objects.DEPLOYMENT.path}?dryRun=All", body)


def test_each_type_of_the_table_is_one_of_the_server(server: Client) -> None:
    """A release that renames a type would silently take its entry out of use."""
    document = server.get("/openapi/v3/api/v1")["components"]["schemas"]
    for name, unique in UNIQUE.items():
        fields = document[name]["properties"]
        assert all({each.field, *each.within, *each.sharing} <= set(fields) for each in unique)
    assert {Kind("", "v1", "Service"), Kind("apps", "v1", "Deployment")} <= set(builtin_kinds())
    found = shape_at(builtin_shape(Kind("", "v1", "Service")), ("spec", "ports"))  # type: ignore[arg-type]
    assert found is not None
    assert found.unique == UNIQUE["io.k8s.api.core.v1.ServicePort"]
