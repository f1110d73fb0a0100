"""What is refused of Services, Ingresses, policies, claims and configuration: at the fields of the real server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.client import MERGE, Reply, Server
from tests.contract.creation import Cases
from tests.contract.recording import Recording, refusal

CASES = Cases("kind_errors.yaml")

ANSWERED_ANYWHERE = ("apiVersion", "kind", "metadata", "status")  # or written by controllers


def answered(reply: Reply) -> dict[str, Any]:
    if reply.status >= 400:
        return refusal(reply)
    found = {name: value for name, value in reply.body.items() if name not in ANSWERED_ANYWHERE}
    return {"code": reply.status, **found, "generation": reply.body["metadata"].get("generation")}


def merged(server: Server, namespace: str, kind: str, path: str, patch: Any) -> Reply:
    """The answer to a patch of a new valid object."""
    root = CASES.path(kind, namespace)
    server.create(root, CASES.obj(kind, {}))
    return server.send("PATCH", f"{root}/{path}", patch, media=MERGE)


@pytest.mark.parametrize(("kind", "name"), CASES.named("created"))
def test_a_new_object_is_answered_as_by_a_real_server(
    server: Server, namespace: str, kind: str, name: str, recording: Recording
) -> None:
    obj = CASES.obj(kind, CASES.fields(kind, "created", name))
    dry_run = None if CASES.is_namespaced(kind) else "All"
    reply = server.send("POST", CASES.path(kind, namespace), obj, dryRun=dry_run)
    recording.check(f"{kind} created: {name}", answered(reply), namespace)


@pytest.mark.parametrize(("kind", "name"), CASES.named("changed"))
def test_a_changed_object_is_answered_as_by_a_real_server(
    server: Server, namespace: str, kind: str, name: str, recording: Recording
) -> None:
    reply = merged(server, namespace, kind, "a", CASES.fields(kind, "changed", name))
    recording.check(f"{kind} changed: {name}", answered(reply), namespace)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Service", {"lastTransitionTime": None, "reason": "", "message": ""}),
        ("PersistentVolumeClaim", {"lastProbeTime": None, "lastTransitionTime": None}),
    ],
)
def test_a_condition_without_times_is_answered_with_empty_ones(
    server: Server, namespace: str, kind: str, more: dict[str, Any]
) -> None:
    root, condition = CASES.path(kind, namespace), {"type": "a", "status": "True"}
    server.create(root, CASES.obj(kind, {}))
    found = server.merge(f"{root}/a/status", {"status": {"conditions": [condition]}})
    assert found["status"]["conditions"] == [{**condition, **more}]


def test_an_update_that_creates_a_role_ignores_its_version(server: Server, namespace: str) -> None:
    role = CASES.obj("Role", {"metadata": {"resourceVersion": "1"}})
    reply = server.send("PUT", f"{CASES.path('Role', namespace)}/a", role)
    assert (reply.status, reply.body["rules"]) == (201, role["rules"])


def test_a_service_that_is_created_at_its_status_gets_no_node_ports(server: Server, namespace: str) -> None:
    spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    reply = server.send("PUT", f"{CASES.path('Service', namespace)}/a/status", CASES.obj("Service", {"spec": spec}))
    causes = reply.refused(422, "Invalid")["details"]["causes"]
    missing = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.healthCheckNodePort"}
    assert causes == [missing]


@pytest.mark.parametrize(
    ("path", "obj", "change", "generation"),
    [
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"},
            {
                "webhooks": [
                    {
                        "name": "a.example.com",
                        "clientConfig": {"url": "https://example.com"},
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                    }
                ]
            },
            2,
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1},
            {"description": "a"},
            1,
        ),
    ],
    ids=["webhooks", "a priority class"],
)
def test_a_generation_counts_the_changes_of_some_fields_of_its_kind(
    server: Server, namespace: str, path: str, obj: Any, change: Any, generation: int
) -> None:
    server.create(path, {**obj, "metadata": {"name": namespace}})
    try:
        assert server.merge(f"{path}/{namespace}", change)["metadata"]["generation"] == generation
    finally:
        server.delete(f"{path}/{namespace}")
