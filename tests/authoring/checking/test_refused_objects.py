"""check, plan and test refuse what the API server refuses although every field has the right type."""

from __future__ import annotations

import pytest

from ruleop.authoring.checking.refused_objects import violations
from ruleop.language.rules import Project
from tests.authoring.checking.projects import said
from tests.language.rules.projects import load, watch

LABELS = {"app": "web"}
CONTAINER = {"name": "web", "image": "nginx"}
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
RBAC = "rbac.authorization.k8s.io"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def pods(container=None, labels=None, **spec):
    return {"metadata": {"labels": labels or LABELS}, "spec": {"containers": [container or CONTAINER], **spec}}


def workload(kind="Deployment", template=None, **spec):
    spec = {"selector": {"matchLabels": LABELS}, "template": template or pods(), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}


def obj(kind, api_version="v1", **fields):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, **fields}


def cron_job(schedule="0 2 * * *", policy="Never"):
    job = {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": policy}}}
    return obj("CronJob", "batch/v1", spec={"schedule": schedule, "jobTemplate": {"spec": job}})


REFUSED = {
    "a selector that does not match the labels": (
        workload(template=pods(labels={"app": "other"})),
        "spec.template.metadata.labels",
    ),
    "an unknown volume": (
        workload(template=pods({**CONTAINER, "volumeMounts": [{"name": "data", "mountPath": "/data"}]})),
        "spec.template.spec.containers[0].volumeMounts[0].name",
    ),
    "a port out of range": (
        workload(template=pods({**CONTAINER, "ports": [{"containerPort": 156720}]})),
        "spec.template.spec.containers[0].ports[0].containerPort",
    ),
    "a container without an image": (
        workload(template=pods({"name": "web"})),
        "spec.template.spec.containers[0].image",
    ),
    "a schedule in words": (cron_job("every night"), "spec.schedule"),
    "a Job that restarts its pods always": (
        cron_job(policy="Always"),
        "spec.jobTemplate.spec.template.spec.restartPolicy",
    ),
    "a Service without ports": (obj("Service", spec={"selector": LABELS}), "spec.ports"),
    "two ports of a Service without names": (
        obj("Service", spec={"ports": [{"port": 80}, {"port": 81}]}),
        "spec.ports[0].name",
    ),
    "a key that no file can have": (obj("ConfigMap", data={"a/b": "x"}), "data['a/b']"),
    "a quantity below zero": (
        workload(template=pods({**CONTAINER, "resources": {"requests": {"memory": "-1Gi"}}})),
        "spec.template.spec.containers[0].resources.requests.memory",
    ),
    "a CronJob whose Jobs have too long names": (
        {**cron_job(), "metadata": {"name": "w" * 53}},
        "metadata.name",
    ),
    "an address that is none": (
        obj("Service", spec={"clusterIP": "10.0.0.300", "ports": [{"port": 80}]}),
        "spec.clusterIPs[0]",
    ),
    "a claim without a size": (
        obj("PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"]}),
        "spec.resources.storage",
    ),
    "a path of an Ingress that is relative": (
        obj(
            "Ingress",
            "networking.k8s.io/v1",
            spec={"rules": [{"http": {"paths": [{"path": "shop", "pathType": "Prefix", "backend": BACKEND}]}}]},
        ),
        "spec.rules[0].http.paths[0].path",
    ),
    "a role of a binding that is of no kind of role": (
        obj("RoleBinding", f"{RBAC}/v1", roleRef={"apiGroup": RBAC, "kind": "Rule", "name": "a"}),
        "roleRef.kind",
    ),
    "an autoscaler of fewer than it needs": (
        obj(
            "HorizontalPodAutoscaler",
            "autoscaling/v2",
            spec={"minReplicas": 3, "maxReplicas": 2, "scaleTargetRef": TARGET},
        ),
        "spec.maxReplicas",
    ),
}


@pytest.fixture(scope="module")
def project() -> Project:
    return load("watches: []")


@pytest.mark.parametrize("case", REFUSED)
def test_an_object_that_the_api_server_refuses_is_a_violation_at_its_field(project, case):
    document, field = REFUSED[case]
    assert field in [finding.location for finding in violations(document, project)]


@pytest.mark.parametrize("document", [workload(), workload("StatefulSet", serviceName="web"), cron_job()], ids=str)
def test_an_object_that_the_api_server_accepts_has_no_violation(project, document):
    assert violations(document, project) == []


def test_a_service_without_an_address_of_its_own_is_accepted(project):
    assert (
        violations(obj("Service", spec={"clusterIP": "None", "selector": LABELS, "ports": [{"port": 80}]}), project)
        == []
    )


def test_types_are_reported_before_fields_are_compared(project):
    document = workload(template=pods(labels={"app": "other"}), replicas="two")
    assert [finding.location for finding in violations(document, project)] == ["spec.replicas"]


POD = "{spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}"


@pytest.mark.parametrize("name", ["true", "5", "[a]", "null"])
@pytest.mark.parametrize(
    "body",
    [
        f"kind: Job\nspec: {{template: {POD}}}\n",
        f"kind: CronJob\nspec: {{schedule: '@daily', jobTemplate: {{spec: {{template: {POD}}}}}}}\n",
    ],
    ids=["Job", "CronJob"],
)
def test_a_name_of_another_type_is_reported_as_such(body, name):
    template = f"apiVersion: batch/v1\nmetadata: {{name: {name}}}\n{body}"
    found = said(watch("children: {a: {template: a.yaml}}"), {"templates/a.yaml": template})
    errors = [each for each in found if "warning" not in each]
    assert [("metadata.name must be a string" in each) for each in errors] == ([True] if name != "null" else [])
