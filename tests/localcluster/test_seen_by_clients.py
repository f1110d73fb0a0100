"""Differences from the real server that other clients showed (tests/cluster/clients): the expected answers are the real
server's."""

from __future__ import annotations

import http.client
from typing import Any

import orjson
import pytest

from ruleop.localcluster import LocalCluster
from tests.waiting import PATIENCE, eventually

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def ask(
    cluster: LocalCluster,
    method: str,
    path: str,
    body: object = None,
    media: str = "application/json",
    accept: str = "",
) -> tuple[int, Any, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=PATIENCE)
    try:
        headers = {"Content-Type": media, **({"Accept": accept} if accept else {})}
        connection.request(method, f"/{cluster.token}{path}", None if body is None else orjson.dumps(body), headers)
        answer = connection.getresponse()
        data = answer.read()
        return answer.status, orjson.loads(data) if data else None, answer.headers
    finally:
        connection.close()


def get(cluster: LocalCluster, path: str) -> Any:
    return ask(cluster, "GET", path)[1]


def deployment(name: str = "web", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, "replicas": 4, **spec},
    }


@pytest.fixture
def rolled_out(kube_cluster: LocalCluster) -> LocalCluster:
    ask(kube_cluster, "POST", DEPLOYMENTS, deployment())
    eventually(
        "the controllers' work",
        lambda: get(kube_cluster, f"{DEPLOYMENTS}/web").get("status", {}).get("readyReplicas") == 4,
    )
    return kube_cluster


def test_a_replica_set_is_created_with_its_replicas_and_annotations(rolled_out: LocalCluster) -> None:
    (made,) = get(rolled_out, SETS)["items"]
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["annotations"] == {
        "deployment.kubernetes.io/desired-replicas": "4",
        "deployment.kubernetes.io/max-replicas": "5",
        "deployment.kubernetes.io/revision": "1",
    }
    assert made["status"]["terminatingReplicas"] == 0


def test_the_controller_writes_the_revision_with_the_status(rolled_out: LocalCluster) -> None:
    metadata = get(rolled_out, f"{DEPLOYMENTS}/web")["metadata"]
    assert metadata["generation"] == 1
    assert {each.get("subresource") for each in metadata["managedFields"]} == {None, "status"}
    assert len(metadata["managedFields"]) == 2


def test_an_annotation_of_a_deployment_is_copied_to_its_replica_set(rolled_out: LocalCluster) -> None:
    cause = {"kubernetes.io/change-cause": "a reason"}
    _, changed, _ = ask(rolled_out, "PATCH", f"{DEPLOYMENTS}/web", {"metadata": {"annotations": cause}}, MERGE)
    assert changed["metadata"]["generation"] == 2
    eventually(
        "the controllers' work",
        lambda: cause.items() <= get(rolled_out, SETS)["items"][0]["metadata"]["annotations"].items(),
    )


def test_a_paused_deployment_has_the_reason_deployment_paused(rolled_out: LocalCluster) -> None:
    ask(rolled_out, "PATCH", f"{DEPLOYMENTS}/web", {"spec": {"paused": True}}, MERGE)

    def says_so() -> bool:
        status = get(rolled_out, f"{DEPLOYMENTS}/web")["status"]
        reasons = {each["type"]: each["reason"] for each in status["conditions"]}
        return bool(status["observedGeneration"] == 2 and reasons["Progressing"] == "DeploymentPaused")

    eventually("the controllers' work", says_so)


def test_scheduling_a_pod_does_not_change_its_generation(rolled_out: LocalCluster) -> None:
    pods = get(rolled_out, PODS)["items"]
    assert all(each["spec"]["nodeName"] and each["metadata"]["generation"] == 1 for each in pods)


def test_events_are_listed_in_their_order(rolled_out: LocalCluster) -> None:
    ask(rolled_out, "PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 5}}, MERGE)

    def messages() -> list[str]:
        events = get(rolled_out, "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DDeployment")
        return [each["message"].rpartition(" from ")[2] for each in events["items"]]

    eventually("the controllers' work", lambda: messages() == ["0 to 4", "4 to 5"])


@pytest.mark.parametrize(("wanted", "allowed"), [({"minAvailable": 1}, 3), ({"maxUnavailable": "50%"}, 2)])
def test_a_disruption_budget_counts_its_pods(rolled_out: LocalCluster, wanted: dict[str, Any], allowed: int) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"selector": {"matchLabels": {"app": "web"}}, **wanted}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}
    assert ask(rolled_out, "POST", path, budget)[0] == 201
    eventually(
        "the controllers' work",
        lambda: get(rolled_out, f"{path}/web").get("status", {}).get("disruptionsAllowed") == allowed,
    )
    status = get(rolled_out, f"{path}/web")["status"]
    assert (status["currentHealthy"], status["expectedPods"], status["desiredHealthy"]) == (4, 4, 4 - allowed)
    assert status["conditions"][0]["reason"] == "SufficientPods"


def test_a_token_is_issued_for_a_service_account(kube_cluster: LocalCluster) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    status, found, _ = ask(kube_cluster, "POST", path, asked)
    assert status == 201
    assert found["status"].keys() == {"token", "expirationTimestamp"}


def test_requests_for_endpoints_have_a_deprecation_warning(kube_cluster: LocalCluster) -> None:
    _, _, headers = ask(kube_cluster, "GET", "/api/v1/namespaces/default/endpoints")
    assert headers["Warning"] == ('299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"')


def test_the_openapi_v2_document_is_empty_in_protobuf(kube_cluster: LocalCluster) -> None:
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    assert ask(kube_cluster, "GET", "/openapi/v2", accept=accept)[:2] == (200, None)


@pytest.mark.parametrize("config", [{"data": {}}, {"kind": "ConfigMap"}, {"apiVersion": "v1"}])
def test_an_apply_configuration_without_a_type_is_refused(kube_cluster: LocalCluster, config: dict[str, Any]) -> None:
    status, found, _ = ask(kube_cluster, "PATCH", f"{MAPS}/a?fieldManager=test", config, APPLY)
    assert status == 400
    assert found["message"].startswith("invalid object type: ")


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
def test_a_patch_whose_result_cannot_be_decoded_is_invalid(rolled_out: LocalCluster, media: str) -> None:
    status, found, _ = ask(rolled_out, "PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": "many"}}, media)
    assert (status, found["reason"]) == (422, "Invalid")
    assert found["message"].endswith(": spec.replicas: expected an integer of 32 bits, got a string")
