"""Names of workloads, and what the API server refuses of a Job that changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.client import JSON_PATCH, MERGE, Server
from tests.contract.creation import CREATIONS
from tests.contract.recording import Recording, refusal
from tests.contract.workloads import template

NAMES = {
    "53 characters": "a" * 53,
    "64 characters": "a" * 64,
    "254 characters": "a" * 254,
    "dots": "a.b",
    "capitals": "A_B",
    "a digit first": "1a",
    "a slash": "a/b",
}
KINDS = ("CronJob", "Deployment", "Job", "Pod", "StatefulSet", "DaemonSet", "Service")


def named(field: str, name: str) -> Any:
    """Fields that give an object its name, or the beginning of one that the server makes."""
    return {"metadata": {"name": None, field: name}}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_of_a_workload_is_checked(
    server: Server, namespace: str, kind: str, name: str, recording: Recording
) -> None:
    reply = CREATIONS.create(server, namespace, kind, named("name", NAMES[name]))
    answer = refusal(reply) if reply.status >= 400 else {"code": reply.status}
    recording.check(f"{kind}, name with {name}", answer, namespace)


@pytest.mark.parametrize("field", ["name", "generateName"])
def test_a_job_without_labels_has_those_of_its_pods(server: Server, namespace: str, field: str) -> None:
    """Where its name is given, these are the labels by which the Job finds its pods as well."""
    labels = CREATIONS.create(server, namespace, "Job", named(field, "a")).ok()["metadata"]["labels"]
    assert labels["app"] == "a"
    assert ("job-name" in labels) == (field == "name")


@pytest.mark.parametrize("suspend", [True, False])
def test_the_template_of_a_job_is_immutable(server: Server, namespace: str, *, suspend: bool) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    spec = {"suspend": suspend, "template": template(restartPolicy="Never", nodeSelector={"a": "b"})}
    server.create(path, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec})
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "b"}]
    status = server.send("PATCH", f"{path}/a", image, media=JSON_PATCH).refused(422, "Invalid")
    (cause,) = status["details"]["causes"]
    assert cause["field"] == ("spec.template.spec" if suspend else "spec.template")
    node = [{"op": "replace", "path": "/spec/template/spec/nodeSelector", "value": {"a": "c"}}]
    assert server.send("PATCH", f"{path}/a", node, media=JSON_PATCH).status == (200 if suspend else 422)


def test_negative_numbers_of_a_job_are_refused_when_it_changes(server: Server, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    spec = {"suspend": True, "template": template(restartPolicy="Never")}
    server.create(path, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec})
    reply = server.send("PATCH", f"{path}/a", {"spec": {"backoffLimit": -1}}, media=MERGE)
    assert {each["field"] for each in reply.refused(422, "Invalid")["details"]["causes"]} == {"spec.backoffLimit"}
