"""Requests as they are sent, byte for byte."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.operator.wire.http.access import proxy_for

DEPLOYMENTS = ResourceInfo("deployments", True, True, Kind("apps", "v1", "Deployment"))
NODES = ResourceInfo("nodes", False, True, Kind("", "v1", "Node"))
ROLES = ResourceInfo("clusterroles", False, False, Kind("rbac.authorization.k8s.io", "v1", "ClusterRole"))
WEB = ObjectKey("apps", "Deployment", "prod", "web")


def test_request_paths_follow_group_scope_and_subresource() -> None:
    assert requests.get(DEPLOYMENTS, WEB).path == "/apis/apps/v1/namespaces/prod/deployments/web"
    assert requests.get(NODES, ObjectKey("", "Node", "", "n1")).path == "/api/v1/nodes/n1"
    assert requests.get(ROLES, ObjectKey("", "ClusterRole", "", "system:x")).path.endswith("/clusterroles/system:x")
    assert requests.list_page(ObjectSource(DEPLOYMENTS), limit=500).path == "/apis/apps/v1/deployments"
    assert (
        requests.list_page(ObjectSource(DEPLOYMENTS, "prod"), limit=500).path
        == "/apis/apps/v1/namespaces/prod/deployments"
    )
    assert requests.merge_patch(DEPLOYMENTS, WEB, {}, subresource="status").path.endswith("/web/status")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_an_empty_or_dotted_name_never_becomes_a_request_for_a_collection(name: str) -> None:
    with pytest.raises(ApiError, match="not the name"):
        requests.delete(DEPLOYMENTS, WEB._replace(name=name), uid="u")
    with pytest.raises(ApiError, match="not the name"):
        requests.delete(DEPLOYMENTS, WEB._replace(namespace=""), uid="u")


@pytest.mark.parametrize("namespace", [".", "..", "a/b", "%2e%2e", "A", "x" * 64])
def test_a_namespace_is_a_single_segment_of_the_path(namespace: str) -> None:
    for make in (
        lambda: requests.get(DEPLOYMENTS, WEB._replace(namespace=namespace)),
        lambda: requests.list_page(ObjectSource(DEPLOYMENTS, namespace), limit=1),
        lambda: requests.create(DEPLOYMENTS, {"metadata": {"name": "a", "namespace": namespace}}),
    ):
        with pytest.raises(ApiError, match="is not the name of a namespace"):
            make()


def test_a_name_is_escaped_in_the_path() -> None:
    assert requests.get(DEPLOYMENTS, WEB._replace(name="../secrets?x#y")).path.endswith(
        "/deployments/..%2Fsecrets%3Fx%23y"
    )


def test_writes_have_strict_validation_and_a_field_manager() -> None:
    for request in (
        requests.create(DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "prod"}}),
        requests.replace(DEPLOYMENTS, WEB, {}),
        requests.merge_patch(DEPLOYMENTS, WEB, {}),
        requests.json_patch(DEPLOYMENTS, WEB, []),
        requests.apply(DEPLOYMENTS, WEB, {}),
    ):
        assert request.query == "fieldManager=ruleop&fieldValidation=Strict"
    assert (
        requests.apply(DEPLOYMENTS, WEB, {}, force=True, manager="a b").query
        == "fieldManager=a%20b&fieldValidation=Strict&force=true"
    )


def test_a_deletion_has_preconditions_of_uid_and_version() -> None:
    body = orjson.loads(requests.delete(DEPLOYMENTS, WEB, uid="u1", version="5").body or b"")
    assert body["preconditions"] == {"uid": "u1", "resourceVersion": "5"}
    assert body["propagationPolicy"] == "Background"


def test_selectors_are_sent_to_the_server() -> None:
    source = ObjectSource(DEPLOYMENTS, labels="a=b,c", fields="metadata.name=x", metadata_only=True)
    request = requests.watch(source, version="7", seconds=200)
    assert request.query == (
        "labelSelector=a%3Db%2Cc&fieldSelector=metadata.name%3Dx&watch=1&allowWatchBookmarks=true&timeoutSeconds=200&resourceVersion=7"
    )
    assert "as=PartialObjectMetadata;" in request.accept
    assert "as=PartialObjectMetadataList;" in requests.list_page(source, limit=1).accept
    assert requests.watch(replace(source, metadata_only=False), version="7", seconds=1).accept == "application/json"


@pytest.mark.parametrize(
    ("no_proxy", "server", "used"),
    [
        ("", "https://10.96.0.1:443", True),
        ("10.0.0.0/8", "https://10.96.0.1:443", False),
        ("192.168.0.0/16", "https://10.96.0.1:443", True),
        ("example.com", "https://api.example.com:6443", False),
        (".example.com", "https://api.example.com:6443", False),
        (".example.com", "https://example.com:6443", True),
        ("*.example.com", "https://api.example.com", False),
        ("api.example.com:443", "https://api.example.com:6443", True),
        ("api.example.com:6443", "https://api.example.com:6443", False),
        ("ample.com", "https://api.example.com", True),
        ("*", "https://api.example.com", False),
        ("fd00::/8", "https://[fd00::1]:6443", False),
        ("", "https://127.0.0.1:6443", False),
        ("", "https://localhost:6443", False),
        ("", "http://api.example.com", False),
    ],
)
def test_proxies_are_chosen_as_kubectl_chooses_them(no_proxy: str, server: str, used: bool) -> None:
    environ = {"HTTPS_PROXY": "proxy.corp:3128", "NO_PROXY": no_proxy}
    assert proxy_for(server, environ) == ("http://proxy.corp:3128" if used else "")


def test_deeply_nested_values_of_others_are_written_with_the_object() -> None:
    levels = 900
    value = orjson.loads("[" * levels + "]" * levels)
    body = requests.merge_patch(DEPLOYMENTS, WEB, {"status": value}).body
    assert body == b'{"status":' + b"[" * levels + b"]" * levels + b"}"


def test_a_body_that_is_not_valid_unicode_is_an_error_of_the_request_and_is_not_quoted() -> None:
    obj = {"metadata": {"name": "web", "namespace": "prod"}, "data": "secret\ud800"}
    made = [
        lambda: requests.create(DEPLOYMENTS, obj),
        lambda: requests.replace(DEPLOYMENTS, WEB, obj),
        lambda: requests.merge_patch(DEPLOYMENTS, WEB, obj),
        lambda: requests.apply(DEPLOYMENTS, WEB, obj),
    ]
    for request in made:
        with pytest.raises(ApiError, match=r"deployments.apps prod/web: cannot be written as JSON") as raised:
            request()
        assert not raised.value.retryable
        assert "secret" not in str(raised.value)
