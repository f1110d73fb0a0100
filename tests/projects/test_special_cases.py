"""Special cases of the projects: custom resources that come and go, children in other namespaces, and conflicts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.docs.messages import ROOT
from tests.projects.samples import (
    BLOG,
    EVENTS,
    EXAMPLES,
    PG,
    READY,
    backup,
    become_ready,
    begun,
    blog,
    foreign,
    kafka,
    sample,
)
from tests.projects.simulation import FINALIZER, Simulation

# -- resources that come and go ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("project", ["App", "myapp", "kafka", "crontab"])
def test_a_cr_recreated_before_the_garbage_collector_ran(project: str) -> None:
    cluster, resource = become_ready(project)
    names = cluster.names
    cluster.vanish(resource)
    cluster.add(sample(*EXAMPLES[project][:2]))
    for _ in range(4):
        cluster.reconcile()
        cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.names == names
    assert cluster.ready(resource) == READY
    assert all(
        each["uid"] == cluster[resource]["metadata"]["uid"]
        for name in names
        for each in cluster[name]["metadata"].get("ownerReferences", ())
    )


@pytest.mark.parametrize("project", EXAMPLES)
def test_a_cr_can_be_deleted_after_its_first_pass(project: str) -> None:
    cluster, resource = begun(project)
    others = {name for name in cluster.names if name != resource}
    cluster.work(cluster.key(resource))
    cluster.delete(resource)
    for _ in range(4):
        cluster.reconcile()
        cluster.settle()
    with_data = {
        "Secret/blog-db",
        "Secret/orders-postgres",
        "PersistentVolumeClaim/blog-uploads",
        "Secret/team-postgres",
        "Secret/team-secret-key",
    }
    assert others <= set(cluster.names) <= others | with_data


@pytest.mark.slow
def test_two_blogs_do_not_affect_each_other() -> None:
    cluster = blog()
    second = sample("examples/wordpress", "blog")
    second["metadata"]["name"] = "second"
    cluster.add(second)
    for _ in range(3):
        cluster.reconcile()
        cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready("WordPress/second") == cluster.ready(BLOG) == READY
    before = {name: cluster[name] for name in cluster.names if "second" in name}
    cluster.delete(BLOG)
    cluster.reconcile()
    assert {name: cluster[name] for name in cluster.names if "second" in name} == before
    assert [name for name in cluster.names if "second" not in name] == [
        "PersistentVolumeClaim/blog-uploads",
        "Secret/blog-db",
    ]


@pytest.mark.slow
def test_a_changed_scale_replaces_the_drain() -> None:
    cluster = kafka(5)
    cluster.edit(EVENTS, {"spec": {"replicas": 3}})
    assert cluster.reconcile() == ["create Job/events-drain-5-to-3"]
    cluster.edit(EVENTS, {"spec": {"replicas": 2}})
    assert cluster.reconcile() == ["create Job/events-drain-5-to-2", "delete Job/events-drain-5-to-3: pruned"]
    cluster.settle("Job/events-drain-5-to-2")
    assert cluster.reconcile()[0] == "patch StatefulSet/events: spec.replicas"
    assert cluster["StatefulSet/events"]["spec"]["replicas"] == 2


def test_a_name_conflict_of_a_finalize_job_is_reported_and_retried() -> None:
    cluster = backup()
    job = foreign("Job", "pg-purge", apiVersion="batch/v1")
    del job["spec"]["selector"]
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    cluster.add(job)
    cluster.delete(PG)
    assert cluster.reconcile() == []
    assert PG in cluster
    assert cluster.conditions(PG)["Ready"][1] in {"Finalizing", "ErrResourceExists"}
    assert "Job pg-purge in namespace db already exists" in cluster.conditions(PG)["Ready"][2]
    assert cluster.last is not None
    assert cluster.last.requeue_after.seconds <= 60, "no event reports when the name is free"
    cluster.delete("Job/pg-purge")
    assert cluster.reconcile() == ["create Job/pg-purge"]
    cluster.settle()
    assert cluster.reconcile() == ["delete Job/pg-purge: finalized", "finalizer removed"]


# -- children in other namespaces --------------------------------------------------------------------------------------


def elsewhere(folder: Path, deletion: str = "delete") -> Simulation:
    """A MyApp that also has a ConfigMap in each of some namespaces."""
    shutil.copytree(ROOT / "examples/myapp", folder, dirs_exist_ok=True)
    rules = folder / "watches.yaml"
    notes = f"""
    notes:
      forEach: vars.places
      as: place
      deletion: {deletion}
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {{name: "{{{{ metadata.name }}}}-note", namespace: "{{{{ place }}}}"}}
        data: {{image: "{{{{ spec.image }}}}"}}
  status:"""
    text = rules.read_text(encoding="utf-8").replace("\n  status:", notes)
    rules.write_text(
        text.replace("  kind: MyApp\n", "  kind: MyApp\n  reach: cluster\n  vars: {places: [default, one, two]}\n"),
        encoding="utf-8",
    )
    cluster = Simulation(folder, namespaces=["one", "two"])
    cluster.add(sample("examples/myapp", "myapp"))
    return cluster


CR = "MyApp/myapp-sample"
NOTES = ["ConfigMap/myapp-sample-note", "ConfigMap/one/myapp-sample-note", "ConfigMap/two/myapp-sample-note"]


def test_children_elsewhere_are_created_after_the_finalizer_and_deleted_with_the_cr(tmp_path: Path) -> None:
    cluster = elsewhere(tmp_path)
    assert cluster.reconcile() == [
        "finalizer added",
        "create Deployment/myapp-sample",
        *(f"create {name}" for name in NOTES),
    ]
    assert "ownerReferences" in cluster[NOTES[0]]["metadata"]
    assert "ownerReferences" not in cluster[NOTES[1]]["metadata"]
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready(CR) == READY
    cluster.edit(CR, {"spec": {"image": "n:2"}})
    assert [each.split(":")[0] for each in cluster.reconcile()] == [
        "patch Deployment/myapp-sample",
        *(f"patch {name}" for name in NOTES),
    ]
    cluster.delete(NOTES[2])
    assert cluster.reconcile() == [f"create {NOTES[2]}"]
    cluster.delete(CR)
    assert sorted(cluster.reconcile()) == [*(f"delete {name}: elsewhere" for name in NOTES[1:]), "finalizer removed"]
    assert cluster.names == []


def test_orphans_in_other_namespaces_are_kept(tmp_path: Path) -> None:
    cluster = elsewhere(tmp_path, "orphan")
    cluster.reconcile()
    cluster.delete(CR)
    cluster.reconcile()
    assert cluster.names == NOTES
    for name in NOTES:
        assert cluster[name]["metadata"].keys() <= {
            "name",
            "namespace",
            "uid",
            "generation",
            "creationTimestamp",
            "resourceVersion",
            "managedFields",
        }


def test_a_cr_of_the_same_name_in_another_namespace_does_not_own_the_children(tmp_path: Path) -> None:
    cluster = elsewhere(tmp_path)
    cluster.reconcile()
    other = sample("examples/myapp", "myapp")
    other["metadata"]["namespace"] = "one"
    cluster.add(other)
    cluster.reconcile()
    assert cluster.conditions("MyApp/one/myapp-sample")["Ready"][1] == "ErrResourceExists"
    before = {name: cluster[name] for name in NOTES}
    cluster.delete("MyApp/one/myapp-sample")
    cluster.reconcile()
    assert {name: cluster[name] for name in NOTES} == before
    assert "Deployment/one/myapp-sample" not in cluster


def test_all_children_of_a_cr_with_the_orphan_finalizer_are_kept(tmp_path: Path) -> None:
    cluster = elsewhere(tmp_path)
    cluster.reconcile()
    cluster._delete(cluster.key(CR), "orphan")
    cluster.reconcile()
    assert cluster.names == sorted(["Deployment/myapp-sample", *NOTES])
    assert not any(cluster[name]["metadata"].get("ownerReferences") for name in cluster.names)


def test_a_deleted_namespace_of_a_child_does_not_block_the_deletion_of_the_cr(tmp_path: Path) -> None:
    cluster = elsewhere(tmp_path)
    cluster.reconcile()
    cluster.settle()
    cluster.reconcile()
    cluster.vanish("Namespace/two")
    cluster.delete(NOTES[2])
    assert {each.split(":")[0] for each in cluster.reconcile()} == {f"failed {NOTES[2]}"}
    assert cluster.ready(CR)[0] == "False"
    assert cluster[CR]["metadata"]["finalizers"] == [FINALIZER]
    cluster.delete(CR)
    cluster.reconcile()
    assert cluster.names == []


# -- edits by users ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_brokers_added_by_hand_are_drained() -> None:
    """Surplus brokers are drained, even if another client added them."""
    cluster = kafka(3)
    cluster.edit("StatefulSet/events", {"spec": {"replicas": 5}})
    assert cluster.reconcile() == [
        "create Service/events-3",
        "create Service/events-4",
        "create Job/events-drain-5-to-3",
    ]
    cluster.settle()
    for _ in range(3):
        cluster.reconcile()
        cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready(EVENTS) == READY
    assert cluster["StatefulSet/events"]["spec"]["replicas"] == 3
    assert "Service/events-3" not in cluster
    assert "Job/events-drain-5-to-3" not in cluster


def test_a_name_conflict_of_a_child_leaves_its_readers_unchanged() -> None:
    cluster = kafka(3)
    cluster.delete("ConfigMap/events-config")
    cluster.add(foreign("ConfigMap", "events-config", data={"server.properties": "theirs"}))
    before = cluster["StatefulSet/events"]
    assert cluster.reconcile() == []
    assert cluster.ready(EVENTS) == ("False", "ErrResourceExists")
    assert cluster["StatefulSet/events"] == before, "what mentions the refused child stays as it is"
    cluster.delete(EVENTS)
    cluster.reconcile()
    assert cluster.names == ["ConfigMap/events-config"]


@pytest.mark.parametrize(
    ("spec", "writes"),
    [
        ({"image": "i:2"}, ["patch Deployment/shop: spec.template.spec.containers[app].image"]),
        ({"cpu": "1000m"}, ["patch Deployment/shop: spec.template.spec.containers[app].resources.requests.cpu"]),
        ({"dbHost": "h"}, ["patch Deployment/shop: spec.template.spec.containers[app].env[DSN].value"]),
        (
            {"settings": {"region": "us"}},
            [
                "patch ConfigMap/shop-settings: data.region",
                "patch Deployment/shop: spec.template.metadata.annotations[checksum/settings]",
            ],
        ),
        ({"autoscaling": {"max": 4, "cpu": 50}}, ["patch HorizontalPodAutoscaler/shop: spec.maxReplicas spec.metrics"]),
        ({"credentialsSecret": "late"}, []),
    ],
    ids=str,
)
def test_each_edit_of_a_shop_writes_only_the_affected_children(spec: dict[str, Any], writes: list[str]) -> None:
    cluster, _ = become_ready("shop")
    cluster.edit("App/shop", {"spec": spec})
    found = cluster.reconcile()
    assert [each.split("[0]")[0] for each in found] == writes
    if not writes:
        assert cluster.waits == {"deployment": "credentials (Secret/web/late)"}
        cluster.add(foreign("Secret", "late", data={"username": "dQ==", "password": "cA=="}))
        [patch] = cluster.reconcile()
        assert "env[DB_USER].valueFrom.secretKeyRef.name" in patch
