"""Fields that the server writes although they are empty, those that it fills in untracked, and who owns them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.client import MERGE, Server

SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "a"},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}}
SLICE = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "a"}, "addressType": "IPv4"}
LIMITS = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "a"}}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "a"},
    "spec": {
        "suspend": True,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}},
    },
}


def address(namespace: str, obj: dict[str, Any]) -> str:
    version = obj["apiVersion"]
    return f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}/{obj['kind'].lower()}s"


def owned(obj: dict[str, Any]) -> dict[str, Any]:
    """The fields of the only manager."""
    (entry,) = obj["metadata"].get("managedFields") or [{"fieldsV1": {}}]
    found: dict[str, Any] = entry["fieldsV1"]
    return found


@pytest.mark.parametrize(
    ("obj", "empty"),
    [
        (SCALER, {"lastTransitionTime": None}),
        (SERVICE, {"lastTransitionTime": None, "reason": "", "message": ""}),
    ],
    ids=["HorizontalPodAutoscaler", "Service"],
)
def test_a_condition_without_a_time_has_the_time_null(
    server: Server, namespace: str, obj: dict[str, Any], empty: dict[str, Any]
) -> None:
    path = address(namespace, obj)
    server.create(path, obj)
    status = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
    written = server.send("PATCH", f"{path}/a/status", status, media=MERGE, fieldManager="status").ok()
    (condition,) = written["status"]["conditions"]
    assert condition == {"type": "A", "status": "True", **empty}
    fields = next(each for each in written["metadata"]["managedFields"] if each["manager"] == "status")["fieldsV1"]
    if obj is SERVICE:  # the conditions of a HorizontalPodAutoscaler are keyed as well
        assert fields["f:status"]["f:conditions"]['k:{"type":"A"}'].keys() >= {f"f:{name}" for name in empty}


@pytest.mark.parametrize("name", ["endpoints", "rules"])
def test_an_empty_list_is_owned_and_stored_as_null(server: Server, namespace: str, name: str) -> None:
    obj = SLICE if name == "endpoints" else ROLE
    path = address(namespace, obj)
    made = server.create(path, {**obj, name: []})
    assert (made[name], f"f:{name}" in owned(made)) == (None, True)
    made = server.create(path, {**obj, "metadata": {"name": "b"}})
    assert (made[name], f"f:{name}" in owned(made)) == (None, False)


def test_the_limits_of_a_limit_range_are_null(server: Server, namespace: str) -> None:
    assert server.create(address(namespace, LIMITS), LIMITS)["spec"] == {"limits": None}


def test_the_addresses_of_a_service_belong_to_no_manager(server: Server, namespace: str) -> None:
    made = server.create(address(namespace, SERVICE), SERVICE)
    assert made["spec"]["ipFamilyPolicy"] == "SingleStack"
    assert not {"f:ipFamilyPolicy", "f:ipFamilies", "f:clusterIP"} & owned(made)["f:spec"].keys()


@pytest.mark.parametrize("propagation", [None, "Orphan", "Background"])
def test_the_pods_of_a_job_are_preserved_by_default(server: Server, namespace: str, propagation: str | None) -> None:
    path = address(namespace, JOB)
    server.create(path, {**JOB, "metadata": {"name": "a", "finalizers": ["example.com/a"]}})
    reply = server.send("DELETE", f"{path}/a", propagationPolicy=propagation)
    assert ("orphan" in reply.ok()["metadata"]["finalizers"]) == (propagation != "Background")
    assert bool(reply.warnings) == (propagation is None)
    server.send("PATCH", f"{path}/a", {"metadata": {"finalizers": None}}, media=MERGE)
