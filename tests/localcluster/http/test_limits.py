"""What one request may cost the server: larger ones are refused as the real server refuses them."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest
import yaml

from ruleop.localcluster import LocalCluster
from ruleop.localcluster.http import MAX_HEAD
from tests.definitions import definition
from tests.localcluster.http.requests import send
from tests.waiting import PATIENCE

JSON, YAML, PATCH = "application/json", "application/yaml", "application/json-patch+json"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MAPS = "/api/v1/namespaces/default/configmaps"
HEAD = '"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}'


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


BODIES = {
    "json": ("POST", MAPS, JSON, '{{{head},"x":{deep}}}'),
    "a list": ("POST", MAPS, JSON, '{{{head},"x":[{deep}]}}'),
    "yaml": ("POST", MAPS, YAML, "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\nx: {deep}"),
    "merge": ("PATCH", f"{MAPS}/kube-root-ca.crt", MERGE, '{{"x":{deep}}}'),
    "strategic": ("PATCH", f"{MAPS}/kube-root-ca.crt", STRATEGIC, '{{"x":{deep}}}'),
    "a patch": ("PATCH", f"{MAPS}/kube-root-ca.crt", PATCH, '[{{"op":"add","path":"/x","value":{deep}}}]'),
    "apply": ("PATCH", f"{MAPS}/a?fieldManager=m", APPLY, '{{{head},"x":{deep}}}'),
    "apply in yaml": ("PATCH", f"{MAPS}/a?fieldManager=m", APPLY, "apiVersion: v1\nkind: ConfigMap\nx: {deep}"),
    "options": ("DELETE", f"{MAPS}/kube-root-ca.crt", JSON, '{{"kind":"DeleteOptions","apiVersion":"v1","x":{deep}}}'),
}


@pytest.mark.parametrize("levels", [5_000, 100_000])
@pytest.mark.parametrize(("method", "path", "media", "body"), BODIES.values(), ids=BODIES)
def test_a_body_that_is_nested_too_deeply_is_a_bad_request(
    kube_cluster: LocalCluster, method: str, path: str, media: str, body: str, levels: int
) -> None:
    text = body.format(head=HEAD, deep=nested(levels))
    status, answer = send(kube_cluster, method, path, text.encode(), media)
    assert (status, answer["reason"]) == (400, "BadRequest")


def test_yaml_nested_by_its_dashes_is_a_bad_request(kube_cluster: LocalCluster) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nx:\n" + b"- " * 100_000 + b"a"
    status, answer = send(kube_cluster, "POST", MAPS, body, YAML)
    assert (status, answer["reason"]) == (400, "BadRequest")


def test_brackets_in_texts_are_no_levels(kube_cluster: LocalCluster) -> None:
    body = f'{{{HEAD},"data":{{"a":"{"{[" * 500} \\" {"{[" * 500}"}}}}'
    assert send(kube_cluster, "POST", MAPS, body.encode(), JSON)[0] == 201


@pytest.mark.slow
def test_an_object_that_a_patch_makes_too_deep_is_refused(kube_cluster: LocalCluster) -> None:
    [crd] = yaml.safe_load_all(definition("Any"))
    kube_cluster.call(lambda: kube_cluster.apply(crd))
    path, obj = "/apis/example.com/v1/namespaces/default/anys", {"metadata": {"name": "a"}, "spec": {}}
    body = json.dumps({"apiVersion": "example.com/v1", "kind": "Any", **obj}).encode()
    assert send(kube_cluster, "POST", path, body, JSON)[0] == 201
    operations = [{"op": "add", "path": "/spec" + "/a" * number, "value": {}} for number in range(1, 400)]
    status, answer = send(kube_cluster, "PATCH", f"{path}/a", json.dumps(operations).encode(), PATCH)
    assert (status, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("copies", [24, 40])
def test_a_patch_of_copies_that_double_is_refused(kube_cluster: LocalCluster, copies: int) -> None:
    operations: list[Any] = [{"op": "add", "path": "/data", "value": {"k": "x" * 64}}]
    operations += [{"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(copies)]
    body = json.dumps(operations).encode()
    status, answer = send(kube_cluster, "PATCH", f"{MAPS}/kube-root-ca.crt", body, PATCH)
    assert (status, answer["reason"]) == (422, "Invalid")


HEADS = {
    "a header": b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: %s",
    "headers": b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n%s",
    "a url": b"GET /version?%s",
    "a trailer": b"POST /version HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: %s",
}


@pytest.mark.parametrize(("name", "head"), HEADS.items(), ids=HEADS)
def test_the_head_of_a_request_has_a_limit(kube_cluster: LocalCluster, name: str, head: bytes) -> None:
    text = b"X: a\r\n" * 200_000 if name == "headers" else b"a" * (MAX_HEAD + 600_000)
    assert len(text) > MAX_HEAD
    connection = http.client.HTTPConnection("127.0.0.1", kube_cluster.port, timeout=PATIENCE)
    connection.connect()
    connection.sock.sendall(head % text)
    answer = http.client.HTTPResponse(connection.sock)
    answer.begin()
    assert (answer.status, answer.read()) == (431, b"431 Request Header Fields Too Large")
    connection.close()


@pytest.mark.slow
def test_a_large_deployment_leaves_requests_their_turn(kube_cluster: LocalCluster) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 100_000, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}
    path = "/apis/apps/v1/namespaces/default/deployments"
    assert send(kube_cluster, "POST", path, json.dumps(body).encode(), JSON)[0] == 201
    for _ in range(20):  # each with the timeout of the client
        status, answer = send(kube_cluster, "GET", f"{path}/a", b"", JSON)
        assert status == 200
    assert answer["status"].get("replicas", 0) < 100_000
