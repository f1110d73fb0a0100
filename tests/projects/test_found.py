"""What projects need beside their plain lives: operators that restart, rules that change, children in other namespaces, and what came of looking closely."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from ruleop.rules import load_project
from tests.projects.lives import (
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
from tests.projects.snapshots import ROOT
from tests.projects.world import FINALIZER, World

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
    "kafka": ("tests/projects/kafka", "events", "default", ()),
    "tenant": ("tests/projects/tenant", "acme", "none", ()),
    "shop": ("tests/projects/shop", "shop", "web", (PLATFORM, CREDENTIALS, TLS)),
    "backup": ("tests/projects/backup", "pg", "db", ()),
}


def any_of(project: str) -> World:
    folder, cr, home, existing = ALL[project]
    return started(folder, cr, *existing, home=home, namespaces=["platform", "tools", "monitoring"])


# -- an operator that has forgotten everything ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("project", ALL)
def test_a_restart_changes_nothing(project: str) -> None:
    world = any_of(project)
    before = {name: world[name] for name in world.names}
    world._histories.clear()
    writes = world.rest()
    assert not [each for each in writes if ":" in each], (
        "a write may be sent, to learn from its answer, but changes nothing"
    )
    assert {name: world[name] for name in world.names} == before
    assert world.rest() == []


@pytest.mark.parametrize("project", ALL)
def test_what_others_say_in_the_status_stays(project: str) -> None:
    world = any_of(project)
    folder, cr, _, _ = ALL[project]
    obj = sample(folder, cr)
    resource = f"{obj['kind']}/{obj['metadata']['name']}"
    before = world[resource]["status"]
    theirs = {
        "type": "Theirs",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    world.status(resource, {**before, "conditions": [theirs, *before["conditions"]]})
    assert world.rest() == []
    assert theirs in world[resource]["status"]["conditions"]
    # And what is ours is put back.
    world.status(resource, {"conditions": [theirs]})
    world.rest()
    after = world[resource]["status"]
    assert theirs in after["conditions"]
    assert {key: value for key, value in after.items() if key != "conditions"} == {
        key: value for key, value in before.items() if key != "conditions"
    }


@pytest.mark.parametrize("project", ["App", "myapp", "kafka", "crontab"])
def test_deleted_and_made_again_before_the_collector_came(project: str) -> None:
    world = any_of(project)
    folder, cr, _, _ = ALL[project]
    obj = sample(folder, cr)
    resource = f"{obj['kind']}/{obj['metadata']['name']}"
    names = world.names
    del world.objects[world.key(resource)]
    world.add(obj)
    for _ in range(4):
        world.rest()
        world.settle()
    assert world.rest() == []
    assert world.names == names
    assert world.ready(resource) == READY
    assert all(
        each["uid"] == world[resource]["metadata"]["uid"]
        for name in names
        for each in world[name]["metadata"].get("ownerReferences", ())
    )


@pytest.mark.parametrize("project", ALL)
def test_deleted_when_it_has_hardly_begun(project: str) -> None:
    folder, cr, home, existing = ALL[project]
    world = World(ROOT / folder, home=home, namespaces=["platform", "tools", "monitoring"])
    world.add(*existing, sample(folder, cr))
    world.work(world._resources()[0])
    world.delete(world.name(world._resources()[0]))
    for _ in range(4):
        world.rest()
        world.settle()
    stay = {
        "ConfigMap/platform/platform-defaults",
        "Secret/shop-db",
        "Secret/shop-tls",
        "Secret/blog-db",
        "Secret/orders-postgres",
        "PersistentVolumeClaim/blog-uploads",
    }
    assert set(world.names) <= stay


def test_two_blogs_are_strangers_to_each_other() -> None:
    world = blog()
    second = sample("examples/wordpress", "blog")
    second["metadata"]["name"] = "second"
    world.add(second)
    for _ in range(3):
        world.rest()
        world.settle()
    assert world.rest() == []
    assert world.ready("WordPress/second") == world.ready(BLOG) == READY
    before = {name: world[name] for name in world.names if "second" in name}
    world.delete(BLOG)
    world.rest()
    assert {name: world[name] for name in world.names if "second" in name} == before
    assert [name for name in world.names if "second" not in name] == [
        "PersistentVolumeClaim/blog-uploads",
        "Secret/blog-db",
    ]


def test_a_finalizer_that_nobody_needs_any_more_goes() -> None:
    world = blog()
    world.add(foreign("Secret", "mine", data={"password": "cA==", "root-password": "cg=="}))
    world.edit(BLOG, {"spec": {"passwordSecret": "mine", "persistence": {"keep": False}}})
    writes = world.rest()
    world.settle()
    writes += world.rest()
    assert writes[-1] == "finalizer removed"
    assert "finalizers" not in world[BLOG]["metadata"]
    assert "ownerReferences" in world["PersistentVolumeClaim/blog-uploads"]["metadata"]
    world.edit(BLOG, {"spec": {"persistence": {"keep": True}}})
    assert world.rest()[0] == "finalizer added"


def test_a_refused_change_is_not_sent_again_and_again() -> None:
    world = blog()
    world.edit(BLOG, {"spec": {"db": {"storageClass": "fast"}}})
    [failed] = world.rest()
    assert failed.startswith("failed StatefulSet/blog-db")
    assert world.rest() == []
    status, reason, message = world.conditions(BLOG)["Ready"]
    assert (status, reason) == ("False", "ApplyFailed")
    assert "onImmutable: recreate" in message
    world.edit(BLOG, {"spec": {"db": {"storageClass": None}}})
    assert world.rest() == []
    assert world.ready(BLOG) == READY


def test_drains_of_changing_sizes() -> None:
    world = kafka(5)
    world.edit(EVENTS, {"spec": {"replicas": 3}})
    assert world.rest() == ["create Job/events-drain-5-to-3"]
    world.edit(EVENTS, {"spec": {"replicas": 2}})
    assert world.rest() == ["create Job/events-drain-5-to-2", "delete Job/events-drain-5-to-3: pruned"]
    world.settle("Job/events-drain-5-to-2")
    assert world.rest()[0] == "patch StatefulSet/events: spec.replicas"
    assert world["StatefulSet/events"]["spec"]["replicas"] == 2


def test_a_foreign_job_in_the_way_of_a_purge() -> None:
    world = backup()
    job = foreign("Job", "pg-purge", apiVersion="batch/v1")
    del job["spec"]["selector"]
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    world.add(job)
    world.delete(PG)
    assert world.rest() == []
    assert PG in world
    assert world.conditions(PG)["Ready"][1] in {"Finalizing", "ErrResourceExists"}
    assert 'Resource "pg-purge" already exists' in world.conditions(PG)["Ready"][2]
    assert world.last is not None
    assert world.last.requeue_after.seconds <= 60, "no event reports when the name is free"
    world.delete("Job/pg-purge")
    assert world.rest() == ["create Job/pg-purge"]
    world.settle()
    assert world.rest() == ["delete Job/pg-purge: finalized", "finalizer removed"]


def test_shortly_after_a_reload_nothing_is_pruned() -> None:
    world = blog()
    world.held_until = "2026-01-01T12:00:30Z"
    world.edit(BLOG, {"spec": {"ingress": None}})
    assert [each.split(":")[0] for each in world.rest()] == ["patch Service/blog"]
    assert "Ingress/blog" in world
    world.held_until = ""
    assert world.rest() == ["delete Ingress/blog: pruned"]


def test_paused_while_it_is_deleted_it_stays() -> None:
    world = backup()
    world.edit(PG, {"metadata": {"annotations": {"ruleop.dev/paused": "true"}}})
    world.delete(PG)
    assert world.rest() == []
    assert PG in world
    assert world.ready(PG) == ("True", "Ready")
    world.edit(PG, {"metadata": {"annotations": {"ruleop.dev/paused": None}}})
    assert world.rest() == ["create Job/pg-purge"]


# -- rules that change ---------------------------------------------------------------------------------------------------------------------


def reloaded(world: World, folder: Path, project: str, *changes: tuple[str, str]) -> None:
    """The rules change under the operator."""
    shutil.copytree(ROOT / project, folder, dirs_exist_ok=True)
    rules = folder / "watches.yaml"
    text = rules.read_text(encoding="utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    rules.write_text(text, encoding="utf-8")
    world.project = load_project(folder, environ={})


def test_a_renamed_id_changes_only_the_record(tmp_path: Path) -> None:
    world = any_of("kafka")
    before = world.bare("PodDisruptionBudget/events")
    reloaded(world, tmp_path, "tests/projects/kafka", ("    budget:\n", "    spare:\n"))
    assert world.rest() == ["patch PodDisruptionBudget/events"]
    assert world.bare("PodDisruptionBudget/events") == before


def test_a_child_that_left_the_rules_is_pruned(tmp_path: Path) -> None:
    world = any_of("kafka")
    cut = "    budget:\n      when: spec.replicas > 1\n      template: kafka/budget.yaml.j2\n"
    reloaded(world, tmp_path, "tests/projects/kafka", (cut, ""))
    assert world.rest() == ["delete PodDisruptionBudget/events: pruned"]


def test_an_orphan_that_left_the_rules_is_released(tmp_path: Path) -> None:
    world = blog()
    text = (ROOT / "examples/wordpress/watches.yaml").read_text(encoding="utf-8")
    child = text[text.index("    # Made once, and kept") : text.index("    config:\n")]
    reloaded(world, tmp_path, "examples/wordpress", (child, ""))
    assert [each.split(":")[0] for each in world.rest()] == ["release Secret/blog-db"]
    assert world.ready(BLOG) == READY


def test_while_a_template_is_broken_nothing_is_changed(tmp_path: Path) -> None:
    world = any_of("kafka")
    reloaded(world, tmp_path, "tests/projects/kafka", ("when: spec.replicas > 1", "when: spec.replicas > spec.most"))
    world.edit(EVENTS, {"spec": {"memory": "8Gi"}})
    assert world.rest() == []
    assert "PodDisruptionBudget/events" in world
    status, reason, message = world.conditions(EVENTS)["Ready"]
    assert (status, reason) == ("False", "RenderFailed")
    assert "watches.yaml" in message
    assert "spec.most" in message


@pytest.mark.parametrize("strategy", ["replace", "create-only"])
def test_another_strategy_changes_no_object(tmp_path: Path, strategy: str) -> None:
    world = any_of("myapp")
    before = world.bare("Deployment/myapp-sample")
    reloaded(
        world,
        tmp_path,
        "examples/myapp",
        (
            "template: myapp/deployment.yaml.j2",
            f"template: myapp/deployment.yaml.j2\n      apply: {{strategy: {strategy}}}",
        ),
    )
    world.rest()
    assert world.bare("Deployment/myapp-sample") == before
    world.edit("Deployment/myapp-sample", {"spec": {"replicas": 9}})
    writes = world.rest()
    assert bool(writes) == (strategy == "replace")
    assert world["Deployment/myapp-sample"]["spec"]["replicas"] == (2 if writes else 9)


# -- children in other namespaces ----------------------------------------------------------------------------------------------------------


def elsewhere(folder: Path, deletion: str = "delete") -> World:
    """A MyApp that also keeps a ConfigMap in each of some namespaces."""
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
    world = World(folder, namespaces=["one", "two"])
    world.add(sample("examples/myapp", "myapp"))
    return world


CR = "MyApp/myapp-sample"
NOTES = ["ConfigMap/myapp-sample-note", "ConfigMap/one/myapp-sample-note", "ConfigMap/two/myapp-sample-note"]


def test_children_elsewhere_are_made_after_the_finalizer_and_go_with_the_cr(tmp_path: Path) -> None:
    world = elsewhere(tmp_path)
    assert world.rest() == ["finalizer added", "create Deployment/myapp-sample", *(f"create {name}" for name in NOTES)]
    assert "ownerReferences" in world[NOTES[0]]["metadata"]
    assert "ownerReferences" not in world[NOTES[1]]["metadata"]
    world.settle()
    assert world.rest() == []
    assert world.ready(CR) == READY
    world.edit(CR, {"spec": {"image": "n:2"}})
    assert [each.split(":")[0] for each in world.rest()] == [
        "patch Deployment/myapp-sample",
        *(f"patch {name}" for name in NOTES),
    ]
    world.delete(NOTES[2])
    assert world.rest() == [f"create {NOTES[2]}"]
    world.delete(CR)
    assert sorted(world.rest()) == [*(f"delete {name}: elsewhere" for name in NOTES[1:]), "finalizer removed"]
    assert world.names == []


def test_orphans_elsewhere_stay(tmp_path: Path) -> None:
    world = elsewhere(tmp_path, "orphan")
    world.rest()
    world.delete(CR)
    world.rest()
    assert world.names == NOTES
    for name in NOTES:
        assert world[name]["metadata"].keys() <= {
            "name",
            "namespace",
            "uid",
            "generation",
            "creationTimestamp",
            "resourceVersion",
        }


def test_a_cr_of_that_name_elsewhere_is_another_one(tmp_path: Path) -> None:
    world = elsewhere(tmp_path)
    world.rest()
    other = sample("examples/myapp", "myapp")
    other["metadata"]["namespace"] = "one"
    world.add(other)
    world.rest()
    assert world.conditions("MyApp/one/myapp-sample")["Ready"][1] == "ErrResourceExists"
    before = {name: world[name] for name in NOTES}
    world.delete("MyApp/one/myapp-sample")
    world.rest()
    assert {name: world[name] for name in NOTES} == before
    assert "Deployment/one/myapp-sample" not in world


def test_deleted_with_the_orphan_finalizer_all_stay(tmp_path: Path) -> None:
    world = elsewhere(tmp_path)
    world.rest()
    world._delete(world.key(CR), "orphan")
    world.rest()
    assert world.names == sorted(["Deployment/myapp-sample", *NOTES])
    assert not any(world[name]["metadata"].get("ownerReferences") for name in world.names)


def test_a_namespace_elsewhere_may_vanish(tmp_path: Path) -> None:
    world = elsewhere(tmp_path)
    world.rest()
    world.settle()
    world.rest()
    world._namespaces.discard("two")
    world.delete(NOTES[2])
    assert {each.split(":")[0] for each in world.rest()} == {f"failed {NOTES[2]}"}
    assert world.ready(CR)[0] == "False"
    assert world[CR]["metadata"]["finalizers"] == [FINALIZER]
    world.delete(CR)
    world.rest()
    assert world.names == []


def test_a_refusal_that_no_longer_matters_holds_up_no_pruning() -> None:
    world = blog()
    world.edit(BLOG, {"spec": {"db": {"storageClass": "fast"}, "ingress": None}})
    assert [each.split(":")[0] for each in world.rest()] == ["failed StatefulSet/blog-db", "patch Service/blog"]
    world.edit(BLOG, {"spec": {"db": {"storageClass": None}}})
    assert world.rest() == ["delete Ingress/blog: pruned"]
    world.settle()
    world.rest()
    assert world.ready(BLOG) == READY


# -- more that people do -------------------------------------------------------------------------------------------------------------------


def test_somebody_scales_the_brokers_by_hand() -> None:
    """More brokers than wanted are drained, whoever asked for them."""
    world = kafka(3)
    world.edit("StatefulSet/events", {"spec": {"replicas": 5}})
    assert world.rest() == ["create Service/events-3", "create Service/events-4", "create Job/events-drain-5-to-3"]
    world.settle()
    for _ in range(3):
        world.rest()
        world.settle()
    assert world.rest() == []
    assert world.ready(EVENTS) == READY
    assert world["StatefulSet/events"]["spec"]["replicas"] == 3
    assert "Service/events-3" not in world
    assert "Job/events-drain-5-to-3" not in world


def test_a_foreign_object_takes_the_place_of_a_child() -> None:
    world = kafka(3)
    world.delete("ConfigMap/events-config")
    world.add(foreign("ConfigMap", "events-config", data={"server.properties": "theirs"}))
    before = world["StatefulSet/events"]
    assert world.rest() == []
    assert world.ready(EVENTS) == ("False", "ErrResourceExists")
    assert world["StatefulSet/events"] == before, "what mentions the refused child stays as it is"
    world.delete(EVENTS)
    world.rest()
    assert world.names == ["ConfigMap/events-config"]


def test_the_port_of_a_shop_moves_and_others_ports_stay() -> None:
    world = any_of("shop")
    container = "spec.template.spec.containers[app]"
    world.change(
        "Deployment/shop",
        lambda obj: obj["spec"]["template"]["spec"]["containers"][0]["ports"].append({"containerPort": 9999}),
    )
    assert world.rest() == []
    world.edit("App/shop", {"spec": {"port": 9090}})
    [patch] = world.rest()
    assert patch.startswith(f"patch Deployment/shop: {container}.env[PORT].value {container}.ports")
    [app] = world["Deployment/shop"]["spec"]["template"]["spec"]["containers"]
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
def test_an_edit_of_a_shop(spec: dict[str, Any], writes: list[str]) -> None:
    world = any_of("shop")
    world.edit("App/shop", {"spec": spec})
    found = world.rest()
    assert [each.split("[0]")[0] for each in found] == writes
    if not writes:
        assert world.waits == {"deployment": "credentials (Secret/web/late)"}
        world.add(foreign("Secret", "late", data={"username": "dQ==", "password": "cA=="}))
        [patch] = world.rest()
        assert "env[DB_USER].valueFrom.secretKeyRef.name" in patch


def test_environment_variables_of_others_stay_and_those_of_the_user_come_and_go() -> None:
    world = blog()

    def names() -> list[str]:
        return [each["name"] for each in world["Deployment/blog"]["spec"]["template"]["spec"]["containers"][0]["env"]]

    ours = names()
    world.change(
        "Deployment/blog",
        lambda obj: obj["spec"]["template"]["spec"]["containers"][0]["env"].insert(0, {"name": "THEIRS", "value": "1"}),
    )
    assert world.rest() == []
    world.edit(BLOG, {"spec": {"extraEnv": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}})
    assert len(world.rest()) == 1
    assert [each for each in names() if each != "THEIRS"] == [*ours, "B", "A"]
    world.edit(
        BLOG,
        {
            "spec": {
                "extraEnv": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
            }
        },
    )
    assert len(world.rest()) == 1
    assert [each for each in names() if each != "THEIRS"] == [*ours, "A", "B"]
    env = {each["name"]: each for each in world["Deployment/blog"]["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert "value" not in env["B"]
    world.edit(BLOG, {"spec": {"extraEnv": []}})
    assert len(world.rest()) == 1
    assert sorted(names()) == sorted([*ours, "THEIRS"])


def test_what_is_said_in_a_life() -> None:
    """That it is made; an edit that is simply carried out is nothing to tell."""
    world = World(ROOT)
    world.add(sample("", "app"))
    world.rest()
    world.settle()
    world.rest()
    world.edit("App/app-sample", {"spec": {"deployment": {"replicas": 3}}})
    world.rest()
    world.settle()
    world.rest()
    assert [(each.type, each.reason, each.message) for each in world.events] == [
        ("Normal", "Synced", "App synced successfully")
    ]


def test_a_refusal_is_remembered_while_other_things_are_written() -> None:
    world = blog()
    world.edit(BLOG, {"spec": {"db": {"storageClass": "fast"}}})
    world.rest()
    world.edit(BLOG, {"spec": {"replicas": 5}})
    assert world.rest() == ["patch Deployment/blog: spec.replicas"]
    assert world.ready(BLOG) == ("False", "ApplyFailed")
    assert [each.reason for each in world.events] == ["Synced", "ApplyFailed"], "it is said once"
