"""The lifecycle of the small projects.

Each step is an action of a user, then the operator's writes until nothing is left to do (`Simulation.reconcile`), then
the expected state.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.projects.samples import EXISTS, PROGRESSING, READY, containers, foreign, sample, started
from tests.projects.simulation import Simulation
from tests.projects.snapshots import ROOT

SMALL = [
    pytest.param("", "app", "App/app-sample", "Deployment/app-deployment", id="App"),
    pytest.param("", "memcached", "Memcached/memcached-sample", "Deployment/memcached-sample", id="Memcached"),
    pytest.param(
        "examples/memcached-v1",
        "memcached",
        "Memcached/memcached-sample",
        "Deployment/memcached-sample-deployment",
        id="memcached-v1",
    ),
    pytest.param("examples/myapp", "myapp", "MyApp/myapp-sample", "Deployment/myapp-sample", id="myapp"),
    pytest.param(
        "examples/crontab", "crontab", "CronTab/my-new-cron-object", "CronJob/my-new-cron-object", id="crontab"
    ),
]


@pytest.mark.parametrize(("project", "cr", "resource", "workload"), SMALL)
class TestSmall:
    def test_a_new_cr_gets_its_children_and_becomes_ready(
        self, project: str, cr: str, resource: str, workload: str
    ) -> None:
        cluster = Simulation(ROOT / project)
        cluster.add(sample(project, cr))
        assert f"create {workload}" in cluster.reconcile()
        assert cluster.ready(resource) == (PROGRESSING if workload.startswith("Deployment") else READY)
        cluster.settle()
        assert cluster.reconcile() == []
        assert cluster.ready(resource) == READY
        assert cluster[resource]["status"]["observedGeneration"] == 1
        assert "finalizers" not in cluster[resource]["metadata"]
        owner = {
            "name": cluster[resource]["metadata"]["name"],
            "uid": cluster[resource]["metadata"]["uid"],
            "controller": True,
        }
        assert owner.items() <= cluster[workload]["metadata"]["ownerReferences"][0].items()

    def test_fields_of_others_stay_and_drift_is_reverted(
        self, project: str, cr: str, resource: str, workload: str
    ) -> None:
        cluster = started(project, cr)

        def meddle(obj: dict[str, Any]) -> None:
            obj["metadata"].setdefault("annotations", {})["example.com/note"] = "theirs"
            obj["metadata"].setdefault("labels", {})["team"] = "theirs"
            containers(obj).append({"name": "sidecar", "image": "proxy"})

        cluster.change(workload, meddle)
        assert cluster.reconcile() == []

        cluster.change(workload, lambda obj: containers(obj)[0].update(image="else"))
        place = "spec.template" if workload.startswith("Deployment") else "spec.jobTemplate.spec.template"
        [name] = [each["name"] for each in containers(cluster[workload]) if each["name"] != "sidecar"]
        assert cluster.reconcile() == [f"patch {workload}: {place}.spec.containers[{name}].image"]
        assert [each["name"] for each in containers(cluster[workload])] == [name, "sidecar"]
        assert (
            cluster[workload]["metadata"]["labels"]["team"]
            == cluster[workload]["metadata"]["annotations"]["example.com/note"]
            == "theirs"
        )

    def test_a_deleted_child_is_recreated(self, project: str, cr: str, resource: str, workload: str) -> None:
        cluster = started(project, cr)
        cluster.delete(workload)
        assert cluster.reconcile() == [f"create {workload}"]
        cluster.settle()
        cluster.reconcile()
        assert cluster.ready(resource) == READY

    def test_lost_metadata_is_restored(self, project: str, cr: str, resource: str, workload: str) -> None:
        cluster = started(project, cr)
        before = cluster[workload]
        cluster.edit(workload, {"metadata": {"labels": None, "annotations": None}})
        cluster.edit(workload, {"metadata": {"labels": {"app": "else"}}})
        [patch] = cluster.reconcile()
        assert patch.startswith(f"patch {workload}:")
        labels = before["metadata"]["labels"]
        assert labels.items() <= cluster[workload]["metadata"]["labels"].items()
        assert "ruleop.dev/applied" in cluster[workload]["metadata"]["annotations"]

    def test_a_conflicting_object_is_left_alone_until_it_is_gone(
        self, project: str, cr: str, resource: str, workload: str
    ) -> None:
        cluster = Simulation(ROOT / project)
        kind, name = workload.split("/")
        cluster.add(foreign(kind, name))
        before = cluster[workload]
        cluster.add(sample(project, cr))
        cluster.reconcile()
        assert cluster[workload] == before
        assert cluster.ready(resource) == EXISTS
        own = resource.split("/", maxsplit=1)[0]
        assert (
            cluster.conditions(resource)["Ready"][2]
            == f"{kind} {name} in namespace default already exists and is not managed by {own} (it has no owner): "
            "rename the child, delete the object, or use `adopt: orphans`"
        )
        assert cluster.conditions(resource)["Stalled"][0] == "True"
        assert [(each.type, each.reason) for each in cluster.events] == [("Warning", "ErrResourceExists")]
        cluster.delete(workload)
        assert f"create {workload}" in cluster.reconcile()
        cluster.settle()
        cluster.reconcile()
        assert cluster.ready(resource) == READY

    def test_a_deleted_cr_leaves_no_objects(self, project: str, cr: str, resource: str, workload: str) -> None:
        cluster = started(project, cr)
        cluster.delete(resource)
        assert cluster.reconcile() == []
        assert cluster.names == []

    def test_deletion_with_the_orphan_finalizer_keeps_the_children(
        self, project: str, cr: str, resource: str, workload: str
    ) -> None:
        cluster = started(project, cr)
        kept = [name for name in cluster.names if name != resource]
        cluster.delete(resource, propagation="orphan")
        cluster.reconcile()
        assert cluster.names == kept
        assert "ownerReferences" not in cluster[workload]["metadata"]

    def test_during_a_pause_only_the_status_is_written(
        self, project: str, cr: str, resource: str, workload: str
    ) -> None:
        cluster = started(project, cr)
        cluster.edit(resource, {"metadata": {"annotations": {"ruleop.dev/paused": "true"}}})
        cluster.delete(workload)
        assert cluster.reconcile() == []
        assert cluster.ready(resource) == ("True", "Ready")
        cluster.edit(resource, {"metadata": {"annotations": None}})
        assert cluster.reconcile() == [f"create {workload}"]


EDITS = [
    ("", "app", {"deployment": {"replicas": 5}}, ["patch Deployment/app-deployment: spec.replicas"]),
    (
        "",
        "app",
        {"deployment": {"image": "n:2"}},
        ["patch Deployment/app-deployment: spec.template.spec.containers[app-deployment].image"],
    ),
    ("", "app", {"service": {"name": "other"}}, ["create Service/other", "delete Service/app-service: pruned"]),
    (
        "",
        "app",
        {"deployment": {"name": "other"}},
        ["create Deployment/other", "delete Deployment/app-deployment: pruned"],
    ),
    ("", "memcached", {"size": 1}, ["patch Deployment/memcached-sample: spec.replicas"]),
    (
        "examples/memcached-v1",
        "memcached",
        {"size": 1},
        ["patch Deployment/memcached-sample-deployment: spec.replicas"],
    ),
    ("examples/myapp", "myapp", {"replicas": 0}, ["patch Deployment/myapp-sample: spec.replicas"]),
    (
        "examples/myapp",
        "myapp",
        {"image": "n:2"},
        ["patch Deployment/myapp-sample: spec.template.spec.containers[app].image"],
    ),
    ("examples/crontab", "crontab", {"cronSpec": "@daily"}, ["patch CronJob/my-new-cron-object: spec.schedule"]),
    (
        "examples/crontab",
        "crontab",
        {"replicas": 3},
        ["patch CronJob/my-new-cron-object: spec.jobTemplate.spec.parallelism spec.jobTemplate.spec.completions"],
    ),
    (
        "examples/crontab",
        "crontab",
        {"image": "n:2"},
        [
            (
                "patch CronJob/my-new-cron-object: spec.jobTemplate.spec.template.spec.containers[task].image "
                "spec.jobTemplate.spec.template.spec.containers[task].imagePullPolicy"
            )
        ],
    ),
]


@pytest.mark.parametrize(("project", "cr", "spec", "writes"), EDITS)
def test_an_edit_writes_only_the_affected_children(
    project: str, cr: str, spec: dict[str, Any], writes: list[str]
) -> None:
    cluster = started(project, cr)
    obj = sample(project, cr)
    resource = f"{obj['kind']}/{obj['metadata']['name']}"
    cluster.edit(resource, {"spec": spec})
    assert cluster.reconcile() == writes
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready(resource) == READY
    assert cluster[resource]["status"]["observedGeneration"] == 2


def test_an_app_is_progressing_while_its_deployment_is_partly_available() -> None:
    cluster = Simulation(ROOT)
    cluster.add(sample("", "app"))
    cluster.reconcile()
    assert cluster.fields("App/app-sample") == {"availableReplicas": 0}
    cluster.status(
        "Deployment/app-deployment",
        {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1},
    )
    assert cluster.reconcile() == []
    assert cluster.fields("App/app-sample") == {"availableReplicas": 1}
    assert cluster.ready("App/app-sample") == PROGRESSING
    cluster.settle()
    cluster.reconcile()
    assert cluster.fields("App/app-sample") == {"availableReplicas": 2}
    assert cluster.conditions("App/app-sample")["Ready"] == ("True", "Ready", "")


def test_another_apps_deployment_is_refused_with_its_owners_name() -> None:
    cluster = started("", "app")
    second = sample("", "app")
    second["metadata"]["name"] = "second"
    second["spec"]["service"]["name"] = "second"
    cluster.add(second)
    assert cluster.reconcile() == ["create Service/second"]
    assert cluster.conditions("App/second")["Ready"] == (
        "False",
        "ErrResourceExists",
        (
            "Deployment app-deployment in namespace default already exists and is not managed by App "
            "(it belongs to App/app-sample): rename the child"
        ),
    )
    cluster.delete("App/app-sample")
    assert cluster.reconcile() == ["create Deployment/app-deployment"]


def test_the_nodes_of_a_memcached_are_its_pods() -> None:
    cluster = started("", "memcached")
    for name, labels in (("b", "memcached-sample"), ("a", "memcached-sample"), ("c", "other")):
        pod = {"labels": {"app": "memcached", "memcached_cr": labels}, "name": name}
        cluster.add(
            {"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        )
    assert cluster.reconcile() == []
    assert cluster.fields("Memcached/memcached-sample") == {"nodes": ["a", "b"]}
    cluster.delete("Pod/a")
    cluster.reconcile()
    assert cluster.fields("Memcached/memcached-sample") == {"nodes": ["b"]}


def test_the_status_of_a_crontab_follows_its_job() -> None:
    cluster = started("examples/crontab", "crontab")
    assert cluster.fields("CronTab/my-new-cron-object") == {"active": 0}
    time = "2026-01-01T00:00:00Z"
    cluster.status("CronJob/my-new-cron-object", {"active": [{"name": "j"}], "lastScheduleTime": time})
    cluster.reconcile()
    assert cluster.fields("CronTab/my-new-cron-object") == {"active": 1, "lastScheduleTime": time}
    cluster.status("CronJob/my-new-cron-object", {})
    cluster.reconcile()
    assert cluster.fields("CronTab/my-new-cron-object") == {"active": 0}
