"""Reviews and tokens, which are asked for and not stored; and the options of deletions. Word for word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.client import Reply, Server
from tests.contract.kinds import CONFIG_MAPS, WIDGETS, config_map
from tests.contract.recording import Recording, refusal
from tests.contract.workloads import LABELS, container, template

AUTHORIZATION, AUTHENTICATION = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"
TYPED, ANY = {"resourceAttributes": {"verb": "get", "resource": "pods"}}, {"path": "/a", "verb": "get"}
OWN_ACCESS = f"{AUTHORIZATION}/selfsubjectaccessreviews"
ACCESS = f"{AUTHORIZATION}/subjectaccessreviews"
LOCAL_ACCESS = f"{AUTHORIZATION}/namespaces/NAMESPACE/localsubjectaccessreviews"
RULES = f"{AUTHORIZATION}/selfsubjectrulesreviews"
TOKENS = f"{AUTHENTICATION}/tokenreviews"
SUBJECT = f"{AUTHENTICATION}/selfsubjectreviews"
TOKEN = "/api/v1/namespaces/NAMESPACE/serviceaccounts/a/token"  # noqa: S105 - a path
POD = {"apiVersion": "v1", "kind": "Pod"}


REQUESTS: dict[str, tuple[str, Any]] = {
    "access by a list": (OWN_ACCESS, []),
    "access by no JSON": (OWN_ACCESS, "{"),
    "access with a number for a spec": (OWN_ACCESS, {"spec": 5}),
    "access with a number for attributes": (OWN_ACCESS, {"spec": {"resourceAttributes": 5}}),
    "access by a Pod": (OWN_ACCESS, {**POD, "spec": TYPED}),
    "access by an unknown kind": (OWN_ACCESS, {"kind": "Foo", "spec": TYPED}),
    "access with a number for groups": (ACCESS, {"spec": {"groups": 5}}),
    "local access sent to another namespace": (LOCAL_ACCESS, {"metadata": {"namespace": "x"}, "spec": {"user": "a"}}),
    "rules of a number": (RULES, {"spec": {"namespace": 5}}),
    "a number for a token": (TOKENS, {"spec": {"token": 5}}),
    "a token in a list": (TOKENS, []),
    "an unknown token": (TOKENS, {"spec": {"token": "nothing"}}),
    "an unknown token for somebody": (TOKENS, {"spec": {"token": "nothing", "audiences": ["a"]}}),
    "who I am, by a list": (SUBJECT, []),
    "who I am, with wrong metadata": (SUBJECT, {"metadata": 5}),
    "a token for a number": (TOKEN, {"spec": {"audiences": 5}}),
    "a token with a number for a spec": (TOKEN, {"spec": 5}),
    "a token by a list": (TOKEN, []),
    "a token by a Pod": (TOKEN, POD),
    "a token by another version": (TOKEN, {"apiVersion": "v1"}),
    "a token of another namespace": (TOKEN, {"metadata": {"namespace": "x"}}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_stores_nothing_is_decoded_and_checked(
    server: Server, namespace: str, name: str, recording: Recording
) -> None:
    path, body = REQUESTS[name]
    if path == TOKEN:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
        server.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    reply = server.send("POST", path.replace("NAMESPACE", namespace), body)
    recording.check(name, answer(reply), namespace)


def make_pod(server: Server, namespace: str) -> str:
    """A pod on a node that does not exist: nobody writes to it."""
    spec = {"containers": [container()], "nodeName": "nowhere", "serviceAccountName": "a"}
    path = f"/api/v1/namespaces/{namespace}/pods"
    server.create(path, {**POD, "metadata": {"name": "a"}, "spec": spec})
    return f"{path}/a"


def answer(reply: Reply) -> dict[str, Any]:
    return refusal(reply) if reply.status >= 400 else {"code": reply.status, "status": reply.body.get("status")}


def test_a_token_is_reviewed(server: Server, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    server.create(path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}})
    token = server.create(f"{path}/a/token", {})["status"]["token"]
    status = server.create(TOKENS, {"spec": {"token": token}})["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:a"
    assert "system:serviceaccounts" in status["user"]["groups"]


def test_fields_that_a_review_does_not_have_are_dropped(server: Server) -> None:
    review = {"spec": {"resourceAttributes": {"verb": "get", "colour": "red"}}, "colour": "red"}
    reply = server.send("POST", OWN_ACCESS, review)
    assert sorted(reply.warnings) == [
        'unknown field \\"colour\\"',
        'unknown field \\"spec.resourceAttributes.colour\\"',
    ]
    assert reply.ok()["spec"] == {"resourceAttributes": {"verb": "get"}}


def test_a_deletion_with_a_body_has_no_options_in_its_query(server: Server, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace)
    server.create(path, config_map())
    server.delete(f"{path}/a?dryRun=All&propagationPolicy=Orphan", {"gracePeriodSeconds": 0})
    assert not server.exists(f"{path}/a")


@pytest.mark.parametrize("grace", [-(2**62), -1, 2**31, 2**40, 2**62])
def test_a_grace_period_may_be_of_any_length(server: Server, namespace: str, grace: int) -> None:
    """Go's durations are of 64 bits: what is longer than 292 years becomes something else."""
    server.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}},
    )
    path = make_pod(server, namespace)
    found = server.delete(f"{path}?dryRun=All&gracePeriodSeconds={grace}")["metadata"]
    started = found["creationTimestamp"]
    assert found["deletionGracePeriodSeconds"] == (1 if grace < 0 else grace)
    assert (found["deletionTimestamp"] >= started) == (grace != 2**40)


def test_a_grace_period_that_is_too_large_is_refused(server: Server, namespace: str) -> None:
    refused = server.send("DELETE", f"{CONFIG_MAPS.path(namespace)}/a?gracePeriodSeconds={2**63}")
    assert refused.refused(400, "BadRequest")["message"] == f'strconv.ParseInt: parsing "{2**63}": value out of range'


@pytest.mark.parametrize("path", ["", "/a", "/a/status", "/a/scale"])
def test_a_custom_resource_has_heads_and_no_options(server: Server, namespace: str, path: str) -> None:
    root = WIDGETS.path(namespace)
    server.create(root, WIDGETS.obj())
    reply = server.send("HEAD", f"{root}{path}")
    assert (reply.status, reply.text) == (200, "")
    server.send("OPTIONS", f"{root}{path}").refused(405, "MethodNotAllowed")


SCALES: dict[str, Any] = {
    "a Pod": POD,
    "an unknown kind": {"apiVersion": "autoscaling/v1", "kind": "Foo"},
    "another version": {"apiVersion": "v1", "kind": "Scale"},
    "text for replicas": {"spec": {"replicas": "many"}},
    "a number for a spec": {"spec": 5},
    "a list": [],
}


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("kind", ["deployments", "widgets"])
def test_a_scale_is_decoded(server: Server, namespace: str, kind: str, name: str, recording: Recording) -> None:
    path = WIDGETS.path(namespace)
    if kind == "widgets":
        server.create(path, WIDGETS.obj())
    else:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        spec = {"selector": {"matchLabels": LABELS}, "template": template()}
        server.create(path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})
    reply = server.send("PUT", f"{path}/a/scale", SCALES[name], dryRun="All")
    recording.check(f"the scale of {kind} by {name}", refusal(reply), namespace)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "POST", "DELETE"])
def test_the_scale_of_what_is_missing_has_no_other_methods(server: Server, namespace: str, method: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/missing/scale"
    assert server.send(method, path).status == 405
