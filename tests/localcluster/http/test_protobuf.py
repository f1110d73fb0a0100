"""Bodies in Kubernetes' protobuf, written here by a small encoder from the wire format's documentation."""

from __future__ import annotations

import base64
import struct
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.builtin.builtin_types import served_resources
from ruleop.localcluster import LocalCluster
from ruleop.localcluster.api.bodies import MAGIC, MEDIA_TYPE, read_protobuf
from ruleop.localcluster.status_errors import Rejected
from tests.localcluster.http.requests import send

Field = tuple[int, Any]


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def message(*fields: Field) -> bytes:
    """The bytes of a message: integers and booleans as numbers, text and bytes by their length, floats in 64 bits."""
    found = b""
    for number, value in fields:
        if isinstance(value, float):
            found += varint(number << 3 | 1) + struct.pack("<d", value)
        elif isinstance(value, int):
            found += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            found += varint(number << 3 | 2) + varint(len(data)) + data
    return found


def body(api_version: str, kind: str, *fields: Field, content_type: str = "") -> bytes:
    type_meta = message((1, api_version), (2, kind))
    return MAGIC + message((1, type_meta), (2, message(*fields)), (3, ""), (4, content_type))


def entry(key: str, value: bytes | str) -> bytes:
    return message((1, key), (2, value))


TIME = message((1, 1767225600), (2, 250_000_000))
METADATA = message(
    (1, "web"),
    (3, "default"),
    (6, ""),
    (8, TIME),
    (11, entry("app", "web")),
    (11, entry("tier", "front")),
    (14, "example.com/wait"),
)
AS_JSON = {
    "name": "web",
    "namespace": "default",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"app": "web", "tier": "front"},
    "finalizers": ["example.com/wait"],
}


def test_a_config_map_in_protobuf_is_read() -> None:
    sent = body(
        "v1",
        "ConfigMap",
        (1, METADATA),
        (2, entry("colour", "blue")),
        (2, entry("empty", "")),
        (3, entry("raw", b"\x00\xff")),
        (4, True),
    )
    assert read_protobuf(sent) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": AS_JSON,
        "data": {"colour": "blue", "empty": ""},
        "binaryData": {"raw": base64.b64encode(b"\x00\xff").decode()},
        "immutable": True,
    }


def test_a_deployment_in_protobuf_is_read() -> None:
    resources = message((1, entry("cpu", message((1, "100m")))))
    port = message((1, "http"), (2, 0), (3, 8080), (4, "TCP"), (5, ""))
    probe = message((1, message((2, message((1, "/ready"), (2, message((1, 1), (2, 0), (3, "http"))), (3, ""))))))
    container = message((1, "web"), (2, "example.com/web"), (6, port), (8, resources), (11, probe))
    template = message((1, message((11, entry("app", "web")))), (2, message((2, container))))
    surge = message((1, message((1, 0), (2, 1), (3, ""))), (2, message((1, 1), (2, 0), (3, "25%"))))
    spec = message(
        (1, 0),
        (2, message((1, entry("app", "web")))),
        (3, template),
        (4, message((1, "RollingUpdate"), (2, surge))),
        (5, 0),
        (7, False),
    )
    found = read_protobuf(body("apps/v1", "Deployment", (1, message((1, "web"))), (2, spec)))
    assert found["spec"]["replicas"] == 0  # a pointer to nought is not left out
    assert "minReadySeconds" not in found["spec"]  # nought is
    assert found["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": "25%"},
    }
    (made,) = found["spec"]["template"]["spec"]["containers"]
    assert made["resources"] == {"requests": {"cpu": "100m"}} or made["resources"] == {"limits": {"cpu": "100m"}}
    assert made["ports"] == [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]
    assert made["readinessProbe"]["httpGet"]["port"] == "http"


def test_a_kind_of_every_group_is_known() -> None:
    """Definitions and API services are of modules of their own, whose clients send JSON."""
    for resource in served_resources():
        kind = resource.kind
        if kind.group not in ("apiextensions.k8s.io", "apiregistration.k8s.io"):
            found = read_protobuf(body(kind.api_version, kind.kind, (1, METADATA)))
            assert found.get("metadata", {"name": "web"})["name"] == "web", kind


def test_negative_numbers_and_times_in_protobuf_are_read() -> None:
    lease = message((1, "me"), (2, 15), (3, TIME), (5, -7))
    found = read_protobuf(body("coordination.k8s.io/v1", "Lease", (1, message((1, "l"))), (2, lease)))
    assert found["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.250000Z",
        "leaseTransitions": -7,
    }


def test_a_custom_resource_in_a_protobuf_envelope_is_json() -> None:
    app = {"spec": {"size": 3}}
    type_meta = message((1, "example.com/v1"), (2, "App"))
    sent = MAGIC + message((1, type_meta), (2, orjson.dumps(app)), (4, "application/json"))
    assert read_protobuf(sent) == {"apiVersion": "example.com/v1", "kind": "App", **app}


def test_fields_of_a_newer_kubernetes_are_ignored() -> None:
    assert read_protobuf(body("v1", "ConfigMap", (2, entry("a", "b")), (99, "new")))["data"] == {"a": "b"}


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"{}",
        MAGIC,
        MAGIC + b"\xff" * 20,
        body("v1", "Nothing"),
        body("v1", "ConfigMap", (2, entry("a", b"\xff"))),
        body("v1", "ConfigMap", (1, 7)),
        body("v1", "ConfigMap", (4, "text")),
        body("v1", "ConfigMap")[:-1] + b"\x0b",
        body("v1", "Event", (1, message()), (6, message((1, 1 << 62)))),
        MAGIC + message((1, 5)),
        MAGIC + message((1, message((1, "v1"), (2, "ConfigMap"))), (2, "[]"), (4, "application/json")),
    ],
    ids=range(12),
)
def test_a_damaged_body_is_refused(sent: bytes) -> None:
    with pytest.raises(Rejected):
        read_protobuf(sent)


SAMPLES = [
    body("v1", "ConfigMap", (1, METADATA), (2, entry("colour", "blue")), (4, True)),
    body("v1", "Service", (1, METADATA), (2, message((1, message((1, "http"), (3, 80), (4, message((2, 8080)))))))),
    body("coordination.k8s.io/v1", "Lease", (2, message((1, "me"), (2, 15), (3, TIME)))),
    body("v1", "DeleteOptions", (1, 30), (2, message((1, "uid"))), (4, "Background")),
]


@given(st.sampled_from(SAMPLES), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6), st.data())
def test_a_damaged_body_raises_only_refusals(
    sample: bytes, changes: list[tuple[int, int]], data: st.DataObject
) -> None:
    sent = bytearray(sample)
    for at, byte in changes:
        sent[at % len(sent)] = byte
    cut = data.draw(st.integers(0, len(sent)))
    try:
        found = read_protobuf(bytes(sent[:cut]))
    except Rejected:
        return
    assert orjson.dumps(found)


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_refusals(noise: bytes) -> None:
    for kind in ("ConfigMap", "Pod", "Service", "Event"):
        type_meta = message((1, "v1"), (2, kind))
        try:
            found = read_protobuf(MAGIC + message((1, type_meta), (2, noise)))
        except Rejected:
            continue
        assert orjson.dumps(found)


def test_the_server_reads_protobuf_bodies() -> None:
    with LocalCluster() as cluster:
        sent = body("v1", "ConfigMap", (1, message((1, "settings"))), (2, entry("colour", "blue")))
        path = "/api/v1/namespaces/default/configmaps"
        status, found = send(cluster, "POST", path, sent, MEDIA_TYPE)
        assert (status, found["data"]) == (201, {"colour": "blue"})
        status, found = send(cluster, "POST", path, MAGIC + b"\xff", MEDIA_TYPE)
        assert (status, found["reason"]) == (400, "BadRequest")
