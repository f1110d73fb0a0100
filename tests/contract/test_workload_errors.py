"""Why workloads are invalid: templates of pods, replicas, schedules. Word for word."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.contract.client import JSON_PATCH, MERGE
from tests.contract.creation import answer_to_creation, create
from tests.contract.recording import refusal
from tests.contract.workloads import (
    LABELS,
    container,
    cron_job,
    daemon_set,
    daemon_set_of,
    deployment,
    expression,
    job,
    of_container,
    pod,
    rolling,
    selector,
    stateful_set,
    template,
    volume,
)

if TYPE_CHECKING:
    from tests.contract.client import Server
    from tests.contract.recording import Recording

CLAIM = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
MISTAKES = {
    "no containers": deployment({"metadata": {"labels": LABELS}, "spec": {"containers": []}}),
    "no containers at all": deployment({"metadata": {"labels": LABELS}}),
    "no image": deployment(template(container(image=None))),
    "an empty image": deployment(template(container(image=""))),
    "an image with a space in front": deployment(template(container(image=" a"))),
    "a container without a name": deployment(template(container(name=None))),
    "a container with an invalid name": deployment(template(container(name="A_b"))),
    "two containers of one name": deployment(template(container(), container())),
    "an init container of the same name": deployment(template(container(), initContainers=[container()])),
    "an init container without an image": deployment(template(initContainers=[container(name="b", image=None)])),
    "a deployment of pods that end": deployment(template(restartPolicy="Never")),
    "an unknown restart policy": deployment(template(restartPolicy="Sometimes")),
    "an unknown pull policy": deployment(template(container(imagePullPolicy="Sometimes"))),
    "a port out of range": deployment(template(container(ports=[{"containerPort": 70000}]))),
    "a port without a number": deployment(template(container(ports=[{"name": "http"}]))),
    "an unknown protocol": deployment(template(container(ports=[{"containerPort": 80, "protocol": "HTTP"}]))),
    "a variable without a name": deployment(template(container(env=[{"value": "a"}]))),
    "a variable with two values": deployment(
        template(
            container(env=[{"name": "a", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
        )
    ),
    "a mount of no volume": deployment(template(container(volumeMounts=[{"name": "x", "mountPath": "/x"}]))),
    "a mount without a path": deployment(
        template(container(volumeMounts=[{"name": "x"}]), volumes=[{"name": "x", "emptyDir": {}}])
    ),
    "two mounts of one path": deployment(
        template(
            container(volumeMounts=[{"name": "x", "mountPath": "/x"}, {"name": "x", "mountPath": "/x"}]),
            volumes=[{"name": "x", "emptyDir": {}}],
        )
    ),
    "a volume without a name": deployment(template(volumes=[{"emptyDir": {}}])),
    "two volumes of one name": deployment(template(volumes=[{"name": "x", "emptyDir": {}}] * 2)),
    "a request above its limit": deployment(
        template(container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}))
    ),
    "negative replicas": deployment(template(), replicas=-1),
    "negative seconds": deployment(template(), minReadySeconds=-1),
    "a deadline below the ready seconds": deployment(template(), minReadySeconds=10, progressDeadlineSeconds=5),
    "an unknown strategy": deployment(template(), strategy={"type": "Sometimes"}),
    "parameters of another strategy": deployment(
        template(), strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}
    ),
    "no surge and nothing unavailable": deployment(
        template(), strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
    ),
    "a pod without containers": pod(),
    "a pod without an image": pod(container(image=None)),
    "a job that restarts always": job(template(restartPolicy="Always")),
    "a job without a restart policy": job(template()),
    "a job with negative numbers": job(
        template(restartPolicy="Never"), parallelism=-1, completions=-1, backoffLimit=-1, activeDeadlineSeconds=-1
    ),
    "no schedule": cron_job(""),
    "a schedule of four fields": cron_job("* * * *"),
    "a schedule with a minute too large": cron_job("70 * * * *"),
    "an unknown macro": cron_job("@sometimes"),
    "a schedule with a time zone inside": cron_job("TZ=UTC * * * * *"),
    "an unknown time zone": cron_job("* * * * *", timeZone="Nowhere/Town"),
    "negative numbers of a cron job": cron_job("* * * * *", startingDeadlineSeconds=-1, successfulJobsHistoryLimit=-1),
    "a cron job that restarts always": (
        "batch/v1 CronJob cronjobs",
        {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template()}}},
    ),
    "a negative time to live": job(template(restartPolicy="Never"), ttlSecondsAfterFinished=-1),
    "a job with a selector of its own": job(template(restartPolicy="Never"), manualSelector=True),
    "a selector of a job that is invalid": job(
        template(restartPolicy="Never"), manualSelector=True, selector={"matchExpressions": [{"operator": "Exists"}]}
    ),
    "a selector of a job with an unknown operator": job(
        template(restartPolicy="Never"), manualSelector=True, selector={"matchExpressions": [{"key": "app"}]}
    ),
    "a selector of a job of no labels of its pods": job(
        template(restartPolicy="Never"), manualSelector=True, selector={"matchLabels": {"x": "y"}}
    ),
    "a selector of a daemon set that is invalid": daemon_set_of(matchExpressions=[{"operator": "Exists"}]),
    "a selector of a stateful set that is invalid": stateful_set(
        selector={"matchExpressions": [{"operator": "Exists"}]}
    ),
    "an invalid label of a job's pods": job(
        {"metadata": {"labels": {"x": "-"}}, "spec": template(restartPolicy="Never")["spec"]}
    ),
    "an unknown mode of completion": job(template(restartPolicy="Never"), completionMode="Some"),
    "an unknown policy of replacement": job(template(restartPolicy="Never"), podReplacementPolicy="Some"),
    "a limit for each index without indexes": job(template(restartPolicy="Never"), backoffLimitPerIndex=1),
    "a selector of no labels of the pods": selector(matchLabels={"x": "y"}),
    "an empty selector": selector(),
    "a selector with an invalid value": selector(matchLabels={"app": "-"}),
    "an unknown operator": expression("Is"),
    "an operator without its values": expression("In"),
    "an operator with values": expression("Exists", values=["a"]),
    "an invalid label of the pods": deployment(
        {"metadata": {"labels": {**LABELS, "x": "-"}}, "spec": template()["spec"]}
    ),
    "a surge that is no percentage": rolling(maxSurge="x%"),
    "a negative surge": rolling(maxSurge=-1),
    "more than all unavailable": rolling(maxUnavailable="200%"),
    "a negative history": deployment(template(), revisionHistoryLimit=-1),
    "a negative deadline": deployment(template(), progressDeadlineSeconds=-1),
    "an unknown strategy of a daemon set": daemon_set(type="Sometimes"),
    "a daemon set that cannot roll": daemon_set(rollingUpdate={"maxSurge": 0, "maxUnavailable": 0}),
    "an unknown management of pods": stateful_set(podManagementPolicy="Sometimes"),
    "an unknown strategy of a stateful set": stateful_set(updateStrategy={"type": "Sometimes"}),
    "a negative partition": stateful_set(updateStrategy={"rollingUpdate": {"partition": -1}}),
    "a partition without rolling": stateful_set(updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
    "an invalid name of a service": stateful_set(serviceName="A_b"),
    "an unknown retention": stateful_set(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Keep"}),
    "an invalid template of a claim": stateful_set(volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": {}}]),
    "a probe of nothing": of_container(livenessProbe={}),
    "a probe of two things": of_container(livenessProbe={"httpGet": {"port": 80}, "tcpSocket": {"port": 80}}),
    "a probe of port 0": of_container(readinessProbe={"tcpSocket": {"port": 0}}),
    "a probe of an invalid port": of_container(readinessProbe={"httpGet": {"port": "A_b"}}),
    "a probe without a command": of_container(startupProbe={"exec": {}}),
    "a live container that has to succeed twice": of_container(
        livenessProbe={"tcpSocket": {"port": 80}, "successThreshold": 2}
    ),
    "a probe with a negative period": of_container(readinessProbe={"tcpSocket": {"port": 80}, "periodSeconds": -1}),
    "a hook of nothing": of_container(lifecycle={"preStop": {}}),
    "a probe of an init container": deployment(
        template(initContainers=[container(name="b", livenessProbe={"tcpSocket": {"port": 80}})])
    ),
    "an invalid name of a variable": of_container(env=[{"name": "a=b", "value": "c"}]),
    "a variable from nothing": of_container(env=[{"name": "a", "valueFrom": {}}]),
    "a variable from no key": of_container(
        env=[{"name": "a", "valueFrom": {"secretKeyRef": {"name": "a", "key": ""}}}]
    ),
    "a variable from two places": of_container(
        env=[
            {
                "name": "a",
                "valueFrom": {each: {"name": "a", "key": "b"} for each in ("secretKeyRef", "configMapKeyRef")},
            }
        ]
    ),
    "variables from nothing": of_container(envFrom=[{}]),
    "a name of a port with capitals": of_container(ports=[{"containerPort": 80, "name": "A"}]),
    "a name of a port that is too long": of_container(ports=[{"containerPort": 80, "name": "a-name-that-is-too-long"}]),
    "a negative limit": of_container(resources={"limits": {"cpu": "-1"}}),
    "an unknown policy of messages": of_container(terminationMessagePolicy="Sometimes"),
    "an absolute path below a volume": deployment(
        template(
            container(volumeMounts=[{"name": "a", "mountPath": "/a", "subPath": "/x"}]),
            volumes=[{"name": "a", "emptyDir": {}}],
        )
    ),
    "a volume of two kinds": volume(emptyDir={}, configMap={"name": "a"}),
    "a volume of no config map": volume(configMap={}),
    "a volume of no secret": volume(secret={}),
    "a volume of no claim": volume(persistentVolumeClaim={"claimName": ""}),
    "a volume of no path": volume(hostPath={"path": ""}),
    "a volume of an unknown type of path": volume(hostPath={"path": "/a", "type": "Folder"}),
    "a mode of files that is too large": volume(configMap={"name": "a", "defaultMode": 1000}),
    "an item without key and path": volume(configMap={"name": "a", "items": [{"key": "", "path": ""}]}),
    "an item outside of its volume": volume(secret={"secretName": "a", "items": [{"key": "a", "path": "../a"}]}),
    "an unknown policy of DNS": deployment(template(dnsPolicy="Sometimes")),
    "a policy of DNS without its configuration": deployment(template(dnsPolicy="None")),
    "an invalid service account": deployment(template(serviceAccountName="A_b")),
    "an invalid name of a host": deployment(template(hostname="A_b")),
    "an invalid selector of nodes": deployment(template(nodeSelector={"a b": "c"})),
    "a toleration with an unknown operator": deployment(template(tolerations=[{"operator": "Is"}])),
    "a toleration without a key": deployment(template(tolerations=[{"value": "a"}])),
    "a toleration with a value": deployment(template(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}])),
    "an unknown concurrency policy": cron_job("* * * * *", concurrencyPolicy="Sometimes"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_invalid_workload_is_answered_with_its_causes(
    server: Server, namespace: str, name: str, recording: Recording
) -> None:
    about, spec = MISTAKES[name]
    recording.check(name, answer_to_creation(server, namespace, about, {"spec": spec}), namespace)


NAMES = {
    "53 characters": "a" * 53,
    "64 characters": "a" * 64,
    "254 characters": "a" * 254,
    "dots": "a.b",
    "capitals": "A_B",
    "a digit first": "1a",
    "a slash": "a/b",
}
KINDS = {
    "CronJob": cron_job("@daily"),
    "Deployment": deployment(template()),
    "Job": job(template(restartPolicy="Never")),
    "Pod": pod(container()),
    "StatefulSet": stateful_set(),
    "DaemonSet": daemon_set(),
    "Service": ("v1 Service services", {"ports": [{"port": 80}]}),
}


@pytest.mark.parametrize("field", ["name", "generateName"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_of_a_workload_is_checked(
    server: Server, namespace: str, kind: str, name: str, field: str, recording: Recording
) -> None:
    about, spec = KINDS[kind]
    fields = {"metadata": {field: NAMES[name]}, "spec": spec}
    reply = create(server, namespace, about, fields)
    answer = refusal(reply) if reply.status >= 400 else {"code": reply.status}
    if field == "generateName" and reply.status == 422:
        made = reply.body["details"]["name"]
        answer = json.loads(json.dumps(answer).replace(made, f"{made[:-5]}-----"))
    recording.check(f"{kind}, {field} with {name}", answer, namespace)


@pytest.mark.parametrize("field", ["name", "generateName"])
def test_a_job_without_labels_has_those_of_its_pods(server: Server, namespace: str, field: str) -> None:
    """Where its name is given, these are the labels by which the Job finds its pods as well."""
    about, spec = job(template(restartPolicy="Never"))
    labels = create(server, namespace, about, {"metadata": {field: "a"}, "spec": spec}).ok()["metadata"]["labels"]
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
