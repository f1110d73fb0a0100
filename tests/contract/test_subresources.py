"""Paths below an object: its scale, its status, and those that only some kinds have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.client import APPLY, MERGE, STRATEGIC, Server
from tests.contract.kinds import CONFIG_MAPS, WIDGETS, Sample, config_map

LABELS = {"app": "web"}
POD = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENTS = Sample(
    "apps/v1", "Deployment", "deployments", {"selector": {"matchLabels": LABELS}, "template": POD}, {}, {}
)


def scale(replicas: Any = 0, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a"},
        "spec": {"replicas": replicas},
        **more,
    }


@pytest.fixture(params=[DEPLOYMENTS, WIDGETS], ids=lambda sample: sample.plural)
def scaled(request: pytest.FixtureRequest, server: Server, namespace: str) -> tuple[Sample, str]:
    """A kind, and the path of the scale of an object."""
    sample: Sample = request.param
    obj = sample.obj()
    server.create(sample.path(namespace), {**obj, "spec": {**obj["spec"], "replicas": 0}})
    return sample, sample.path(namespace, "a", "scale")


def test_a_scale_has_to_be_one(server: Server, scaled: tuple[Sample, str]) -> None:
    _, path = scaled
    for given in (scale(kind="Foo"), scale("x")):
        server.send("PUT", path, given).refused(400, "BadRequest")


def test_a_scale_can_be_applied_to_builtin_kinds(server: Server, namespace: str) -> None:
    server.create(DEPLOYMENTS.path(namespace), DEPLOYMENTS.obj())
    path = DEPLOYMENTS.path(namespace, "a")
    query = {"media": APPLY, "fieldManager": "one"}
    found = server.send("PATCH", f"{path}/scale", scale(3), **query, force="true").ok()
    assert (found["kind"], found["spec"]) == ("Scale", {"replicas": 3})
    obj = server.get(path)
    assert obj["spec"]["replicas"] == 3
    entries = [each for each in obj["metadata"]["managedFields"] if each["manager"] == "one"]
    assert [(each["operation"], each["apiVersion"], each["subresource"]) for each in entries] == [
        ("Apply", "apps/v1", "scale")
    ]
    assert entries[0]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    nameless = {each: value for each, value in scale(4).items() if each != "metadata"}
    assert server.send("PATCH", f"{path}/scale", nameless, **query).ok()["spec"] == {"replicas": 4}
    other = {**scale(3), "metadata": {"name": "b"}}
    server.send("PATCH", f"{path}/scale", other, **query).refused(400, "BadRequest")


def test_a_scale_cannot_be_applied_to_custom_kinds(server: Server, namespace: str) -> None:
    server.create(WIDGETS.path(namespace), WIDGETS.obj())
    given = scale(2, metadata={"name": "a", "namespace": namespace})
    reply = server.send(
        "PATCH", WIDGETS.path(namespace, "a", "scale"), given, media=APPLY, fieldManager="one", force="true"
    )
    assert reply.status == 500
    assert reply.body["message"].endswith("request to convert CR to an invalid group/version: autoscaling/v1")


def test_subresources_are_not_created_or_deleted(server: Server, scaled: tuple[Sample, str]) -> None:
    for method in ("POST", "DELETE"):
        server.send(method, scaled[1], scale()).refused(405, "MethodNotAllowed")


def test_a_strategic_patch_of_a_custom_scale_is_refused(server: Server, namespace: str) -> None:
    server.create(WIDGETS.path(namespace), WIDGETS.obj())
    path = WIDGETS.path(namespace, "a", "scale")
    status = server.send("PATCH", path, {"spec": {"replicas": 2}}, media=STRATEGIC).refused(415, "UnsupportedMediaType")
    assert status["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    assert server.send("PATCH", path, {"spec": {"replicas": 2}}, media=MERGE).ok()["spec"] == {"replicas": 2}


def test_a_method_that_a_subresource_does_not_have_is_not_allowed(server: Server, namespace: str) -> None:
    root = f"/api/v1/namespaces/{namespace}"
    for method, path in (
        ("GET", f"{root}/finalize"),
        ("GET", f"{root}/pods/x/binding"),
        ("GET", f"{root}/serviceaccounts/default/token"),
    ):
        server.send(method, path, {} if method == "POST" else None).refused(405, "MethodNotAllowed")
    server.send("GET", f"{root}/pods/x/log").refused(404, "NotFound")
    server.send("GET", f"{root}/pods/x/nothing").refused(404, "NotFound")


def test_a_watch_of_a_single_object_is_a_read(server: Server, namespace: str) -> None:
    made = server.create(CONFIG_MAPS.path(namespace), config_map())
    assert server.get(CONFIG_MAPS.path(namespace, "a"), watch="true", timeoutSeconds=1) == made


def test_a_configuration_that_is_not_an_object_is_refused(server: Server, namespace: str, sample: Sample) -> None:
    for body in ("[]", "", "a: 1\n---\nb: 2\n", "{{"):
        reply = server.send("PATCH", sample.path(namespace, "a"), body, media=APPLY, fieldManager="one")
        reply.refused(400, "BadRequest")
