"""Special cases of the projects: restarts, changed rules, children in other namespaces, and conflicts."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from ruleop.core.rules import load_project
from tests.projects.samples import (
    BLOG,
    CREDENTIALS,
    EVENTS,
    PG,
    PLATFORM,
    READY,
    TLS,
    backup,
    blog,
    foreign,
    kafka,
    sample,
    started,
)
from tests.projects.simulation import FINALIZER, Simulation
from tests.projects.snapshots import ROOT

if TYPE_CHECKING:
    from pathlib import Path

ALL = {
    "App": ("", "app", "default", ()),
    "Memcached": ("", "memcached", "default", ()),
    "memcached-v1": ("examples/memcached-v1", "memcached", "default", ()),
    "myapp": ("examples/myapp", "myapp", "default", ()),
    "crontab": ("examples/crontab", "crontab", "default", ()),
    "wordpress": ("examples/wordpress", "blog", "default", ()),
    "postgres": ("examples/postgres", "orders", "default", ()),
    "chart": ("examples/memcached-chart", "replicated", "default", ()),
    "kafka": ("tests/projects/kafka", "events", "default", ()),
    "tenant": ("tests/projects/tenant", "acme", "none", ()),
    "shop": ("tests/projects/shop", "shop", "web", (PLATFORM, CREDENTIALS, TLS)),
    "backup": ("tests/projects/backup", "pg", "db", ()),
}


def any_of(project: str) -> Simulation:
    folder, cr, home, existing = ALL[project]
    return started(folder, cr, *existing, home=home, namespaces=["platform", "tools", "monitoring"])


# -- restarts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("project", ALL)
def test_a_restart_changes_nothing(project: str) -> None:
    cluster = any_of(project)
    before = {name: cluster[name] for name in cluster.names}
    cluster._histories.clear()
    writes = cluster.reconcile()
    assert not [each for each in writes if ":" in each], (
        "a write may be sent, to learn from its answer, but changes nothing"
    )
    assert {name: cluster[name] for name in cluster.names} == before
    assert cluster.reconcile() == []


@pytest.mark.parametrize("project", ALL)
def test_status_fields_of_others_stay(project: str) -> None:
    cluster = any_of(project)
    folder, cr, _, _ = ALL[project]
    obj = sample(folder, cr)
    resource = f"{obj['kind']}/{obj['metadata']['name']}"
    before = cluster[resource]["status"]
    theirs = {
        "type": "Theirs",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    cluster.status(resource, {**before, "conditions": [theirs, *before["conditions"]]})
    assert cluster.reconcile() == []
    assert theirs in cluster[resource]["status"]["conditions"]
    # Drift of ruleop's own fields is reverted.
    cluster.status(resource, {"conditions": [theirs]})
    cluster.reconcile()
    after = cluster[resource]["status"]
    assert theirs in after["conditions"]
    assert {key: value for key, value in after.items() if key != "conditions"} == {
        key: value for key, value in before.items() if key != "conditions"
    }


@pytest.mark.parametrize("project", ["App", "myapp", "kafka", "crontab"])
def test_a_cr_recreated_before_the_garbage_collector_ran(project: str) -> None:
    cluster = any_of(project)
    folder, cr, _, _ = ALL[project]
    obj = sample(folder, cr)
    resource = f"{obj['kind']}/{obj['metadata']['name']}"
    names = cluster.names
    cluster.vanish(resource)
    cluster.add(obj)
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


@pytest.mark.parametrize("project", ALL)
def test_a_cr_can_be_deleted_after_its_first_pass(project: str) -> None:
    folder, cr, home, existing = ALL[project]
    cluster = Simulation(ROOT / folder, home=home, namespaces=["platform", "tools", "monitoring"])
    cluster.add(*existing, sample(folder, cr))
    cluster.work(cluster._resources()[0])
    cluster.delete(cluster.name(cluster._resources()[0]))
    for _ in range(4):
        cluster.reconcile()
        cluster.settle()
    stay = {
        "ConfigMap/platform/platform-defaults",
        "Secret/shop-db",
        "Secret/shop-tls",
        "Secret/blog-db",
        "Secret/orders-postgres",
        "PersistentVolumeClaim/blog-uploads",
    }
    assert set(cluster.names) <= stay


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


def test_an_unneeded_finalizer_is_removed() -> None:
    cluster = blog()
    cluster.add(foreign("Secret", "mine", data={"password": "cA==", "root-password": "cg=="}))
    cluster.edit(BLOG, {"spec": {"passwordSecret": "mine", "persistence": {"keep": False}}})
    writes = cluster.reconcile()
    cluster.settle()
    writes += cluster.reconcile()
    assert writes[-1] == "finalizer removed"
    assert "finalizers" not in cluster[BLOG]["metadata"]
    assert "ownerReferences" in cluster["PersistentVolumeClaim/blog-uploads"]["metadata"]
    cluster.edit(BLOG, {"spec": {"persistence": {"keep": True}}})
    assert cluster.reconcile()[0] == "finalizer added"


def test_a_rejected_change_is_not_sent_repeatedly() -> None:
    cluster = blog()
    cluster.edit(BLOG, {"spec": {"db": {"storageClass": "fast"}}})
    [failed] = cluster.reconcile()
    assert failed.startswith("failed StatefulSet/blog-db")
    assert cluster.reconcile() == []
    status, reason, message = cluster.conditions(BLOG)["Ready"]
    assert (status, reason) == ("False", "ApplyFailed")
    assert "onImmutable: recreate" in message
    cluster.edit(BLOG, {"spec": {"db": {"storageClass": None}}})
    assert cluster.reconcile() == []
    assert cluster.ready(BLOG) == READY


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


def test_shortly_after_a_reload_nothing_is_pruned() -> None:
    cluster = blog()
    cluster.held_until = "2026-01-01T12:00:30Z"
    cluster.edit(BLOG, {"spec": {"ingress": None}})
    assert [each.split(":")[0] for each in cluster.reconcile()] == ["patch Service/blog"]
    assert "Ingress/blog" in cluster
    cluster.held_until = ""
    assert cluster.reconcile() == ["delete Ingress/blog: pruned"]


def test_a_paused_cr_is_kept_when_it_is_deleted() -> None:
    cluster = backup()
    cluster.edit(PG, {"metadata": {"annotations": {"ruleop.dev/paused": "true"}}})
    cluster.delete(PG)
    assert cluster.reconcile() == []
    assert PG in cluster
    assert cluster.ready(PG) == ("True", "Ready")
    cluster.edit(PG, {"metadata": {"annotations": {"ruleop.dev/paused": None}}})
    assert cluster.reconcile() == ["create Job/pg-purge"]


# -- rules that change -------------------------------------------------------------------------------------------------


def reloaded(cluster: Simulation, folder: Path, project: str, *changes: tuple[str, str]) -> None:
    """Changes the rules of a running operator."""
    shutil.copytree(ROOT / project, folder, dirs_exist_ok=True)
    rules = folder / "watches.yaml"
    text = rules.read_text(encoding="utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    rules.write_text(text, encoding="utf-8")
    cluster.project = load_project(folder, environ={})


def test_a_renamed_id_changes_only_the_record(tmp_path: Path) -> None:
    cluster = any_of("kafka")
    before = cluster.bare("PodDisruptionBudget/events")
    reloaded(cluster, tmp_path, "tests/projects/kafka", ("    budget:\n", "    spare:\n"))
    assert cluster.reconcile() == ["patch PodDisruptionBudget/events"]
    assert cluster.bare("PodDisruptionBudget/events") == before


def test_a_child_removed_from_the_rules_is_pruned(tmp_path: Path) -> None:
    cluster = any_of("kafka")
    cut = "    budget:\n      when: spec.replicas > 1\n      template: kafka/budget.yaml.j2\n"
    reloaded(cluster, tmp_path, "tests/projects/kafka", (cut, ""))
    assert cluster.reconcile() == ["delete PodDisruptionBudget/events: pruned"]


def test_an_orphan_removed_from_the_rules_is_released(tmp_path: Path) -> None:
    cluster = blog()
    text = (ROOT / "examples/wordpress/watches.yaml").read_text(encoding="utf-8")
    child = text[text.index("    # Made once, and kept") : text.index("    config:\n")]
    reloaded(cluster, tmp_path, "examples/wordpress", (child, ""))
    assert [each.split(":")[0] for each in cluster.reconcile()] == ["release Secret/blog-db"]
    assert cluster.ready(BLOG) == READY


def test_a_broken_template_changes_no_object(tmp_path: Path) -> None:
    cluster = any_of("kafka")
    reloaded(cluster, tmp_path, "tests/projects/kafka", ("when: spec.replicas > 1", "when: spec.replicas > spec.most"))
    cluster.edit(EVENTS, {"spec": {"memory": "8Gi"}})
    assert cluster.reconcile() == []
    assert "PodDisruptionBudget/events" in cluster
    status, reason, message = cluster.conditions(EVENTS)["Ready"]
    assert (status, reason) == ("False", "RenderFailed")
    assert "watches.yaml" in message
    assert "spec.most" in message


@pytest.mark.parametrize("strategy", ["replace", "create-only"])
def test_another_strategy_changes_no_object(tmp_path: Path, strategy: str) -> None:
    cluster = any_of("myapp")
    before = cluster.bare("Deployment/myapp-sample")
    reloaded(
        cluster,
        tmp_path,
        "examples/myapp",
        (
            "template: myapp/deployment.yaml.j2",
            f"template: myapp/deployment.yaml.j2\n      apply: {{strategy: {strategy}}}",
        ),
    )
    cluster.reconcile()
    assert cluster.bare("Deployment/myapp-sample") == before
    cluster.edit("Deployment/myapp-sample", {"spec": {"replicas": 9}})
    writes = cluster.reconcile()
    assert bool(writes) == (strategy == "replace")
    assert cluster["Deployment/myapp-sample"]["spec"]["replicas"] == (2 if writes else 9)


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


def test_an_obsolete_rejection_does_not_delay_pruning() -> None:
    cluster = blog()
    cluster.edit(BLOG, {"spec": {"db": {"storageClass": "fast"}, "ingress": None}})
    assert [each.split(":")[0] for each in cluster.reconcile()] == ["failed StatefulSet/blog-db", "patch Service/blog"]
    cluster.edit(BLOG, {"spec": {"db": {"storageClass": None}}})
    assert cluster.reconcile() == ["delete Ingress/blog: pruned"]
    cluster.settle()
    cluster.reconcile()
    assert cluster.ready(BLOG) == READY


# -- edits by users ----------------------------------------------------------------------------------------------------


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


def test_a_changed_port_replaces_the_old_one_and_ports_of_others_stay() -> None:
    cluster = any_of("shop")
    container = "spec.template.spec.containers[app]"
    cluster.change(
        "Deployment/shop",
        lambda obj: obj["spec"]["template"]["spec"]["containers"][0]["ports"].append({"containerPort": 9999}),
    )
    assert cluster.reconcile() == []
    cluster.edit("App/shop", {"spec": {"port": 9090}})
    [patch] = cluster.reconcile()
    assert patch.startswith(f"patch Deployment/shop: {container}.env[PORT].value {container}.ports")
    [app] = cluster["Deployment/shop"]["spec"]["template"]["spec"]["containers"]
    assert sorted(each["containerPort"] for each in app["ports"]) == [9090, 9999]


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
    cluster = any_of("shop")
    cluster.edit("App/shop", {"spec": spec})
    found = cluster.reconcile()
    assert [each.split("[0]")[0] for each in found] == writes
    if not writes:
        assert cluster.waits == {"deployment": "credentials (Secret/web/late)"}
        cluster.add(foreign("Secret", "late", data={"username": "dQ==", "password": "cA=="}))
        [patch] = cluster.reconcile()
        assert "env[DB_USER].valueFrom.secretKeyRef.name" in patch


def test_environment_variables_of_others_are_kept_when_those_of_the_cr_change() -> None:
    cluster = blog()

    def names() -> list[str]:
        return [each["name"] for each in cluster["Deployment/blog"]["spec"]["template"]["spec"]["containers"][0]["env"]]

    ours = names()
    cluster.change(
        "Deployment/blog",
        lambda obj: obj["spec"]["template"]["spec"]["containers"][0]["env"].insert(0, {"name": "THEIRS", "value": "1"}),
    )
    assert cluster.reconcile() == []
    cluster.edit(BLOG, {"spec": {"extraEnv": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}})
    assert len(cluster.reconcile()) == 1
    assert [each for each in names() if each != "THEIRS"] == [*ours, "B", "A"]
    cluster.edit(
        BLOG,
        {
            "spec": {
                "extraEnv": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
                ]
            }
        },
    )
    assert len(cluster.reconcile()) == 1
    assert [each for each in names() if each != "THEIRS"] == [*ours, "A", "B"]
    env = {
        each["name"]: each for each in cluster["Deployment/blog"]["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    assert "value" not in env["B"]
    cluster.edit(BLOG, {"spec": {"extraEnv": []}})
    assert len(cluster.reconcile()) == 1
    assert sorted(names()) == sorted([*ours, "THEIRS"])


def test_an_event_is_sent_for_the_creation_and_none_for_an_edit() -> None:
    """An Event for the creation, and none for an applied edit."""
    cluster = Simulation(ROOT)
    cluster.add(sample("", "app"))
    cluster.reconcile()
    cluster.settle()
    cluster.reconcile()
    cluster.edit("App/app-sample", {"spec": {"deployment": {"replicas": 3}}})
    cluster.reconcile()
    cluster.settle()
    cluster.reconcile()
    assert [(each.type, each.reason, each.message) for each in cluster.events] == [
        ("Normal", "Synced", "App synced successfully")
    ]


def test_a_rejection_is_kept_while_other_children_are_written() -> None:
    cluster = blog()
    cluster.edit(BLOG, {"spec": {"db": {"storageClass": "fast"}}})
    cluster.reconcile()
    cluster.edit(BLOG, {"spec": {"replicas": 5}})
    assert cluster.reconcile() == ["patch Deployment/blog: spec.replicas"]
    assert cluster.ready(BLOG) == ("False", "ApplyFailed")
    assert [each.reason for each in cluster.events] == ["Synced", "ApplyFailed"], "it is said once"
