"""The small examples end to end: App, a Deployment and a Service from one CR; MyApp, the least that a useful rule
needs; CronTab, a CronJob and a status of what runs; and Memcached as two generations of the tutorial write it, with the
names of its pods as the status."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.example_projects import ROOT, Child, Example, ExampleTests, LiveExample, operating, pods
from tests.cluster.operator import Operator, Permissions, eventually


@pytest.fixture(scope="class")
def operator(
    request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    with operating(request.cls.example, control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running


LABELS = {"app": "myApp", "controller": "web"}


def deployment(name: str, container: str, image: str, replicas: int, labels: dict[str, str], *, by_hand: int) -> Child:
    """`by_hand`: the replicas that somebody sets."""
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": container, "image": image}]}}
    wanted = {
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        "status": {"readyReplicas": replicas, "updatedReplicas": replicas},
    }
    return Child("deployments", name, wanted, by_hand={"spec": {"replicas": by_hand}})


def app_deployment(image: str, replicas: int) -> Child:
    return deployment("web-app", "web-app", image, replicas, LABELS, by_hand=7)


SERVICE = Child(
    "services",
    "web-service",
    {"spec": {"selector": LABELS, "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}]}},
    by_hand={"spec": {"selector": {"app": "another"}}},
)

APP = Example(
    project=ROOT,
    crd=ROOT / "crds/apps.myapp.k8s.io.yaml",
    permissions=Permissions(
        watched=["apps.myapp.k8s.io", "memcacheds.cache.example.com"],
        children=["deployments.apps", "services"],
        observed=["pods"],
    ),
    api_version="myapp.k8s.io/v1",
    resource="apps",
    kind="App",
    name="web",
    spec={"deployment": {"name": "web-app", "image": "nginx:1.29", "replicas": 2}, "service": {"name": "web-service"}},
    children=(app_deployment("nginx:1.29", 2), SERVICE),
    status={"availableReplicas": 2},
    edit={"deployment": {"image": "nginx:1.30", "replicas": 3}},
    edited=(app_deployment("nginx:1.30", 3), SERVICE),
    edited_status={"availableReplicas": 3},
    leftovers=("deployments", "services", "replicasets", "pods"),
)


class TestApp(ExampleTests):
    example = APP


def myapp_deployment(image: str, replicas: int) -> Child:
    return deployment("mine", "app", image, replicas, {"app": "mine"}, by_hand=0)


MYAPP = Example(
    project=ROOT / "examples/myapp",
    crd=ROOT / "examples/myapp/crds/myapps.myscheme.example.com.yaml",
    permissions=Permissions(watched=["myapps.myscheme.example.com"], children=["deployments.apps"]),
    api_version="myscheme.example.com/v1",
    resource="myapps",
    kind="MyApp",
    name="mine",
    spec={"replicas": 2, "image": "nginx:1.29"},
    children=(myapp_deployment("nginx:1.29", 2),),
    status={"replicas": 2},
    edit={"replicas": 1, "image": "nginx:1.30"},
    edited=(myapp_deployment("nginx:1.30", 1),),
    edited_status={"replicas": 1},
    leftovers=("deployments", "replicasets", "pods"),
)


class TestMyApp(ExampleTests):
    example = MYAPP


def cron_job(schedule: str, replicas: int) -> Child:
    labels = {"crontab": "tidy"}
    container = {"name": "task", "image": "broom:1"}
    pod = {"metadata": {"labels": labels}, "spec": {"restartPolicy": "OnFailure", "containers": [container]}}
    job = {"metadata": {"labels": labels}, "spec": {"parallelism": replicas, "completions": replicas, "template": pod}}
    wanted = {
        "metadata": {"labels": labels},
        "spec": {"schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": job},
    }
    by_hand = {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"parallelism": 9}}}}
    return Child("cronjobs", "tidy", wanted, by_hand)


CRONTAB = Example(
    project=ROOT / "examples/crontab",
    crd=ROOT / "examples/crontab/crds/crontabs.stable.example.com.yaml",
    permissions=Permissions(watched=["crontabs.stable.example.com"], children=["cronjobs.batch"]),
    api_version="stable.example.com/v1",
    resource="crontabs",
    kind="CronTab",
    name="tidy",
    spec={"cronSpec": "0 3 * * 0", "image": "broom:1", "replicas": 2},
    children=(cron_job("0 3 * * 0", 2),),
    status={"active": 0},
    edit={"cronSpec": "30 4 * * 0", "replicas": 3},
    edited=(cron_job("30 4 * * 0", 3),),
    edited_status={"active": 0},
    leftovers=("cronjobs", "jobs", "pods"),
)


class TestCronTab(ExampleTests):
    example = CRONTAB

    def foreign(self, child: Child) -> dict[str, Any]:
        spec = child.wanted["spec"] | {"suspend": True, "schedule": "0 0 1 1 *"}
        return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": child.name}, "spec": spec}

    def at_rest(self, live_example: LiveExample, child: Child) -> Any:
        return live_example.get(child)

    def test_running_jobs_are_in_the_status(self, live_example: LiveExample) -> None:
        """A run that was due starts at once; its pods are created, and its time is in the status."""
        live_example.apply()
        live_example.wait_until_settled()
        assert "lastScheduleTime" not in live_example.resource()["status"]
        (child,) = live_example.example.children
        # The CronJob's controller believes that it last ran an hour ago, and makes up for what it has missed.
        last = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        live_example.admin.merge(live_example.path, {"spec": {"cronSpec": "* * * * *"}}, "somebody")
        eventually("the schedule", lambda: live_example.get(child)["spec"]["schedule"] == "* * * * *")
        live_example.admin.merge(
            live_example.path_of("cronjobs", "tidy") + "/status", {"status": {"lastScheduleTime": last}}, "somebody"
        )
        eventually("the job's pods", lambda: len(live_example.list("pods")) >= 2)

        def is_in_status() -> bool:
            live, status = live_example.get(child)["status"], live_example.resource()["status"]
            begun = live["lastScheduleTime"]
            return (
                begun > last and status["lastScheduleTime"] == begun and status["active"] == len(live.get("active", []))
            )

        eventually("the run in the status", is_in_status)


def memcached_deployment(
    name: str,
    size: int,
    labels: dict[str, str],
    *,
    own: dict[str, str],
    container: dict[str, Any],
    by_hand: dict[str, Any],
) -> Child:
    """`own`: the labels of the Deployment itself. `container`: what it has beside its name and port."""
    memcached = {"name": "memcached", "ports": [{"name": "memcached", "containerPort": 11211}], **container}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [memcached]}}
    wanted = {
        **({"metadata": {"labels": own}} if own else {}),
        "spec": {"replicas": size, "selector": {"matchLabels": labels}, "template": template},
        "status": {"readyReplicas": size},
    }
    return Child("deployments", name, wanted, by_hand=by_hand)


def v1(size: int) -> Child:
    labels = {"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": "cache"}
    container = {
        "image": "memcached:1.6.6",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "livenessProbe": {"tcpSocket": {"port": 11211}, "initialDelaySeconds": 30, "periodSeconds": 10},
    }
    return memcached_deployment(
        "cache-deployment", size, labels, own=labels, container=container, by_hand={"spec": {"replicas": 0}}
    )


def v1alpha1(size: int) -> Child:
    container = {"image": "memcached:1.4.36-alpine", "command": ["memcached", "-m=64", "-o", "modern", "-v"]}
    by_hand = {"metadata": {"labels": {"app": "another"}}, "spec": {"replicas": 6}}
    return memcached_deployment(
        "cache", size, {"app": "memcached", "memcached_cr": "cache"}, own={}, container=container, by_hand=by_hand
    )


def memcached(version: str, **more: Any) -> Example:
    return Example(
        api_version=f"cache.example.com/{version}",
        resource="memcacheds",
        kind="Memcached",
        name="cache",
        spec={"size": 3},
        leftovers=("deployments", "replicasets", "pods"),
        **more,
    )


V1 = memcached(
    "v1",
    project=ROOT / "examples/memcached-v1",
    crd=ROOT / "examples/memcached-v1/crds/memcacheds.cache.example.com.yaml",
    permissions=Permissions(watched=["memcacheds.cache.example.com"], children=["deployments.apps"], observed=["pods"]),
    children=(v1(3),),
    status={"nodes": pods("cache-deployment", 3)},
    edit={"size": 4},
    edited=(v1(4),),
    edited_status={"nodes": pods("cache-deployment", 4)},
)
V1ALPHA1 = memcached(
    "v1alpha1",
    project=ROOT,
    crd=ROOT / "crds/memcacheds.cache.example.com.yaml",
    permissions=Permissions(
        watched=["apps.myapp.k8s.io", "memcacheds.cache.example.com"],
        children=["deployments.apps", "services"],
        observed=["pods"],
    ),
    children=(v1alpha1(3),),
    status={"nodes": pods("cache", 3)},
    edit={"size": 2},
    edited=(v1alpha1(2),),
    edited_status={"nodes": pods("cache", 2)},
)


class TestMemcachedV1(ExampleTests):
    """Its labels are written once, and its kind has two versions."""

    example = V1

    def test_a_cr_written_in_another_version_is_reconciled(self, live_example: LiveExample) -> None:
        """Two versions of a kind are the same objects."""
        older = {**live_example.example.manifest, "apiVersion": "cache.example.com/v1alpha1"}
        live_example.admin.post(live_example.path.replace("/v1/", "/v1alpha1/").removesuffix("/cache"), older)
        live_example.wait_until_settled()
        owner = live_example.get(live_example.example.children[0])["metadata"]["ownerReferences"][0]
        assert owner["apiVersion"] == "cache.example.com/v1"
        live_example.admin.merge(live_example.path.replace("/v1/", "/v1alpha1/"), {"spec": {"size": 1}}, "somebody")
        eventually("its pods", lambda: len(live_example.resource()["status"]["nodes"]) == 1)


class TestMemcachedV1alpha1(ExampleTests):
    example = V1ALPHA1

    def test_nodes_in_the_status_are_the_names_of_the_pods(self, live_example: LiveExample) -> None:
        """Pods are only observed: a deleted one is replaced by its own controller, and the status changes."""
        live_example.apply()
        live_example.wait_until_settled()
        mark = live_example.operator.mark()
        gone = min(each["metadata"]["name"] for each in live_example.list("pods"))
        live_example.admin.delete(live_example.path_of("pods", gone))

        def follows() -> bool:
            names = sorted(each["metadata"]["name"] for each in live_example.list("pods"))
            return gone not in names and live_example.resource()["status"]["nodes"] == names and len(names) == 3

        eventually("the status to name the pods", follows)
        assert {write.partition(" ")[2] for write in live_example.operator.writes(mark, live_example.namespace)} == {
            "memcacheds/status cache"
        }
