"""Why workloads are invalid: templates of pods, replicas, schedules. Word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.recording import refusal

if TYPE_CHECKING:
    from tests.contract.client import Server
    from tests.contract.recording import Recording

LABELS = {"app": "a"}


def container(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in {"name": "a", "image": "a", **fields}.items() if value is not None}


def template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": list(containers or [container()]), **spec}}


def deployment(pods: Any, **spec: Any) -> tuple[str, dict[str, Any]]:
    return "apps/v1 Deployment deployments", {"selector": {"matchLabels": LABELS}, "template": pods, **spec}


def job(pods: Any, **spec: Any) -> tuple[str, dict[str, Any]]:
    return "batch/v1 Job jobs", {"template": pods, **spec}


def cron_job(schedule: str, **spec: Any) -> tuple[str, dict[str, Any]]:
    pods = template(restartPolicy="Never")
    return "batch/v1 CronJob cronjobs", {"schedule": schedule, "jobTemplate": {"spec": {"template": pods}}, **spec}


def pod(*containers: dict[str, Any], **spec: Any) -> tuple[str, dict[str, Any]]:
    return "v1 Pod pods", {"containers": list(containers), **spec}


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
    "an unknown concurrency policy": cron_job("* * * * *", concurrencyPolicy="Sometimes"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_invalid_workload_is_answered_with_its_causes(
    server: Server, namespace: str, name: str, recording: Recording
) -> None:
    about, spec = MISTAKES[name]
    version, kind, plural = about.split()
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    reply = server.send("POST", f"{root}/namespaces/{namespace}/{plural}?dryRun=All", obj)
    recording.check(name, refusal(reply), namespace)
