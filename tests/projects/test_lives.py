"""The lives of CRs of the example projects: made, half there, ready, edited, shrunk, meddled with, obstructed, deleted.

Each step says what somebody does, then what the operator writes until it has nothing left to do, then how things stand. That nothing is left to do, and
that a plan over the result is quiet, is what `World.rest` means by rest.
"""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kinds import Kind, Object
from ruleop.planning import Failure
from tests.projects.cluster import Refused
from tests.projects.rendering import document
from tests.projects.snapshots import ROOT
from tests.projects.world import FINALIZER, World

READY, PROGRESSING, WAITING = ("True", "Ready"), ("False", "Progressing"), ("False", "Waiting")
EXISTS = ("False", "ErrResourceExists")
POD, CONTAINERS = "spec.template.metadata.annotations", "spec.template.spec.containers"


def sample(project: str, name: str) -> dict[str, Any]:
    return document(ROOT / project / "examples" / f"{name}.yaml")


def foreign(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """Somebody else's object."""
    api_version = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "CronJob": "batch/v1"}.get(kind, "v1")
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"}}
    spec: dict[str, Any] = {"ConfigMap": {}, "Secret": {}, "Service": {"spec": {"ports": [{"port": 1}]}}}.get(
        kind, {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod}}
    )
    if kind == "CronJob":
        spec = {
            "spec": {
                "schedule": "@daily",
                "jobTemplate": {"spec": {"template": {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}}},
            }
        }
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **spec, **more}


def started(project: str, cr: str | Object, *existing: Object, **world: Any) -> World:
    """A world with a CR that has become ready."""
    found = World(ROOT / project, **world)
    found.add(*existing, sample(project, cr) if isinstance(cr, str) else cr)
    for _ in range(4):
        found.rest()
        found.settle()
    assert found.rest() == []
    return found


# -- what every life has: the four small projects ------------------------------------------------------------------------------------------

SMALL = [
    pytest.param("", "app", "App/app-sample", "Deployment/app-deployment", id="App"),
    pytest.param("", "memcached", "Memcached/memcached-sample", "Deployment/memcached-sample", id="Memcached"),
    pytest.param(
        "examples/memcached-v1", "memcached", "Memcached/memcached-sample", "Deployment/memcached-sample-deployment", id="memcached-v1"
    ),
    pytest.param("examples/myapp", "myapp", "MyApp/myapp-sample", "Deployment/myapp-sample", id="myapp"),
    pytest.param("examples/crontab", "crontab", "CronTab/my-new-cron-object", "CronJob/my-new-cron-object", id="crontab"),
]


@pytest.mark.parametrize(("project", "cr", "resource", "workload"), SMALL)
class TestSmall:
    def test_it_is_made_and_becomes_ready(self, project: str, cr: str, resource: str, workload: str) -> None:
        world = World(ROOT / project)
        world.add(sample(project, cr))
        assert f"create {workload}" in world.rest()
        assert world.ready(resource) == (PROGRESSING if workload.startswith("Deployment") else READY)
        world.settle()
        assert world.rest() == []
        assert world.ready(resource) == READY
        assert world[resource]["status"]["observedGeneration"] == 1
        assert "finalizers" not in world[resource]["metadata"]
        owner = {"name": world[resource]["metadata"]["name"], "uid": world[resource]["metadata"]["uid"], "controller": True}
        assert owner.items() <= world[workload]["metadata"]["ownerReferences"][0].items()

    def test_what_others_add_stays_and_what_they_change_is_put_back(self, project: str, cr: str, resource: str, workload: str) -> None:
        world = started(project, cr)

        def meddle(obj: dict[str, Any]) -> None:
            obj["metadata"].setdefault("annotations", {})["example.com/note"] = "theirs"
            obj["metadata"].setdefault("labels", {})["team"] = "theirs"
            containers(obj).append({"name": "sidecar", "image": "proxy"})

        world.change(workload, meddle)
        assert world.rest() == []

        world.change(workload, lambda obj: containers(obj)[0].update(image="else"))
        place = "spec.template" if workload.startswith("Deployment") else "spec.jobTemplate.spec.template"
        [name] = [each["name"] for each in containers(world[workload]) if each["name"] != "sidecar"]
        assert world.rest() == [f"patch {workload}: {place}.spec.containers[{name}].image"]
        assert [each["name"] for each in containers(world[workload])] == [name, "sidecar"]
        assert world[workload]["metadata"]["labels"]["team"] == world[workload]["metadata"]["annotations"]["example.com/note"] == "theirs"

    def test_what_is_deleted_is_made_again(self, project: str, cr: str, resource: str, workload: str) -> None:
        world = started(project, cr)
        world.delete(workload)
        assert world.rest() == [f"create {workload}"]
        world.settle()
        world.rest()
        assert world.ready(resource) == READY

    def test_lost_marks_come_back(self, project: str, cr: str, resource: str, workload: str) -> None:
        world = started(project, cr)
        before = world[workload]
        world.edit(workload, {"metadata": {"labels": None, "annotations": None}})
        world.edit(workload, {"metadata": {"labels": {"app": "else"}}})
        [patch] = world.rest()
        assert patch.startswith(f"patch {workload}:")
        labels = before["metadata"]["labels"]
        assert labels.items() <= world[workload]["metadata"]["labels"].items()
        assert "ruleop.dev/applied" in world[workload]["metadata"]["annotations"]

    def test_a_foreign_object_in_the_way_is_left_alone_until_it_is_gone(self, project: str, cr: str, resource: str, workload: str) -> None:
        world = World(ROOT / project)
        kind, name = workload.split("/")
        world.add(foreign(kind, name))
        before = world[workload]
        world.add(sample(project, cr))
        world.rest()
        assert world[workload] == before
        assert world.ready(resource) == EXISTS
        own = resource.split("/", maxsplit=1)[0]
        assert world.conditions(resource)["Ready"][2] == f'Resource "{name}" already exists and is not managed by {own}'
        assert world.conditions(resource)["Stalled"][0] == "True"
        assert [(each.type, each.reason) for each in world.events] == [("Warning", "ErrResourceExists")]
        world.delete(workload)
        assert f"create {workload}" in world.rest()
        world.settle()
        world.rest()
        assert world.ready(resource) == READY

    def test_deleted_it_leaves_nothing(self, project: str, cr: str, resource: str, workload: str) -> None:
        world = started(project, cr)
        world.delete(resource)
        assert world.rest() == []
        assert world.names == []

    def test_deleted_as_an_orphan_maker_it_leaves_its_children(self, project: str, cr: str, resource: str, workload: str) -> None:
        world = started(project, cr)
        kept = [name for name in world.names if name != resource]
        world.delete(resource, propagation="orphan")
        world.rest()
        assert world.names == kept
        assert "ownerReferences" not in world[workload]["metadata"]

    def test_paused_nothing_is_written_but_the_status(self, project: str, cr: str, resource: str, workload: str) -> None:
        world = started(project, cr)
        world.edit(resource, {"metadata": {"annotations": {"ruleop.dev/paused": "true"}}})
        world.delete(workload)
        assert world.rest() == []
        assert world.ready(resource) == ("False", "Paused")
        world.edit(resource, {"metadata": {"annotations": None}})
        assert world.rest() == [f"create {workload}"]


def containers(obj: Any) -> list[dict[str, Any]]:
    spec = obj["spec"]["jobTemplate"]["spec"] if obj["kind"] == "CronJob" else obj["spec"]
    found: list[dict[str, Any]] = spec["template"]["spec"]["containers"]
    return found


EDITS = [
    ("", "app", {"deployment": {"replicas": 5}}, ["patch Deployment/app-deployment: spec.replicas"]),
    ("", "app", {"deployment": {"image": "n:2"}}, ["patch Deployment/app-deployment: spec.template.spec.containers[app-deployment].image"]),
    ("", "app", {"service": {"name": "other"}}, ["create Service/other", "delete Service/app-service: pruned"]),
    ("", "app", {"deployment": {"name": "other"}}, ["create Deployment/other", "delete Deployment/app-deployment: pruned"]),
    ("", "memcached", {"size": 1}, ["patch Deployment/memcached-sample: spec.replicas"]),
    ("examples/memcached-v1", "memcached", {"size": 1}, ["patch Deployment/memcached-sample-deployment: spec.replicas"]),
    ("examples/myapp", "myapp", {"replicas": 0}, ["patch Deployment/myapp-sample: spec.replicas"]),
    ("examples/myapp", "myapp", {"image": "n:2"}, ["patch Deployment/myapp-sample: spec.template.spec.containers[app].image"]),
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
        ["patch CronJob/my-new-cron-object: spec.jobTemplate.spec.template.spec.containers[task].image"],
    ),
]


@pytest.mark.parametrize(("project", "cr", "spec", "writes"), EDITS)
def test_an_edit_changes_what_it_means_and_nothing_else(project: str, cr: str, spec: dict[str, Any], writes: list[str]) -> None:
    world = started(project, cr)
    obj = sample(project, cr)
    resource = f"{obj['kind']}/{obj['metadata']['name']}"
    world.edit(resource, {"spec": spec})
    assert world.rest() == writes
    world.settle()
    assert world.rest() == []
    assert world.ready(resource) == READY
    assert world[resource]["status"]["observedGeneration"] == 2


def test_the_app_is_half_there_while_its_deployment_is_not_available() -> None:
    world = World(ROOT)
    world.add(sample("", "app"))
    world.rest()
    assert world.fields("App/app-sample") == {"availableReplicas": 0}
    world.status("Deployment/app-deployment", {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1})
    assert world.rest() == []
    assert world.fields("App/app-sample") == {"availableReplicas": 1}
    assert world.ready("App/app-sample") == PROGRESSING
    world.settle()
    world.rest()
    assert world.fields("App/app-sample") == {"availableReplicas": 2}
    assert world.conditions("App/app-sample")["Ready"] == ("True", "Ready", "")


def test_another_apps_deployment_is_refused_with_its_owners_name() -> None:
    world = started("", "app")
    second = sample("", "app")
    second["metadata"]["name"] = "second"
    second["spec"]["service"]["name"] = "second"
    world.add(second)
    assert world.rest() == ["create Service/second"]
    assert world.conditions("App/second")["Ready"] == (
        "False",
        "ErrResourceExists",
        'Resource "app-deployment" already exists and is not managed by App (it belongs to App/app-sample)',
    )
    world.delete("App/app-sample")
    assert world.rest() == ["create Deployment/app-deployment"]


def test_the_nodes_of_a_memcached_are_its_pods() -> None:
    world = started("", "memcached")
    for name, labels in (("b", "memcached-sample"), ("a", "memcached-sample"), ("c", "other")):
        pod = {"labels": {"app": "memcached", "memcached_cr": labels}, "name": name}
        world.add({"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert world.rest() == []
    assert world.fields("Memcached/memcached-sample") == {"nodes": ["a", "b"]}
    world.delete("Pod/a")
    world.rest()
    assert world.fields("Memcached/memcached-sample") == {"nodes": ["b"]}


def test_the_status_of_a_crontab_follows_its_job() -> None:
    world = started("examples/crontab", "crontab")
    assert world.fields("CronTab/my-new-cron-object") == {"active": 0}
    time = "2026-01-01T00:00:00Z"
    world.status("CronJob/my-new-cron-object", {"active": [{"name": "j"}], "lastScheduleTime": time})
    world.rest()
    assert world.fields("CronTab/my-new-cron-object") == {"active": 1, "lastScheduleTime": time}
    world.status("CronJob/my-new-cron-object", {})
    world.rest()
    assert world.fields("CronTab/my-new-cron-object") == {"active": 0}


# -- WordPress -----------------------------------------------------------------------------------------------------------------------------

WORDPRESS, BLOG = "examples/wordpress", "WordPress/blog"


def blog(**spec: Any) -> World:
    cr = sample(WORDPRESS, "blog")
    cr["spec"] |= spec
    return started(WORDPRESS, cr)


def test_a_blog_begins_with_its_database() -> None:
    world = World(ROOT / WORDPRESS)
    world.add(sample(WORDPRESS, "blog"))
    assert world.rest() == [
        "finalizer added",
        "create Secret/blog-db",
        "create ConfigMap/blog-config",
        "create Service/blog-db",
        "create StatefulSet/blog-db",
        "create PersistentVolumeClaim/blog-uploads",
        "create Service/blog",
        "create Ingress/blog",
    ]
    assert world.ready(BLOG) == WAITING
    assert world.waits == {"app": "db to be ready"}
    assert world.conditions(BLOG)["DatabaseReady"] == ("False", "Starting", "")
    world.settle("PersistentVolumeClaim/blog-uploads")
    assert world.rest() == []
    world.settle("StatefulSet/blog-db")
    assert world.rest() == ["create Deployment/blog"]
    assert world.conditions(BLOG)["DatabaseReady"] == ("True", "Up", "")
    assert world.ready(BLOG) == PROGRESSING
    world.settle()
    assert world.rest() == []
    assert world.ready(BLOG) == READY
    assert world.fields(BLOG) == {"replicas": 3, "readyReplicas": 3, "url": "https://blog.example.com"}


def test_the_passwords_are_made_once_and_outlive_the_blog() -> None:
    world = blog()
    made = world["Secret/blog-db"]["data"]
    assert made.keys() == {"password", "root-password"}
    assert made["password"] != made["root-password"]
    assert "ownerReferences" not in world["Secret/blog-db"]["metadata"]
    world.delete(BLOG)
    assert world.names.count(BLOG) == 1
    assert [each.split(":")[0] for each in world.rest()] == [
        "release PersistentVolumeClaim/blog-uploads",
        "release Secret/blog-db",
        "finalizer removed",
    ]
    assert world.names == ["PersistentVolumeClaim/blog-uploads", "Secret/blog-db"]
    for name in world.names:
        marks = {**world[name]["metadata"].get("labels", {}), **world[name]["metadata"].get("annotations", {})}
        assert not [mark for mark in marks if "ruleop" in mark or "managed-by" in mark]
    # Made again, it takes over what it left.
    world.add(sample(WORDPRESS, "blog"))
    writes = [each.split(":")[0] for each in world.rest()]
    assert "adopt Secret/blog-db" in writes
    assert "adopt PersistentVolumeClaim/blog-uploads" in writes
    assert world["Secret/blog-db"]["data"] == made
    world.settle()
    world.rest()
    world.settle()
    assert world.rest() == []
    assert world.ready(BLOG) == READY


def test_a_lost_password_is_a_new_one_and_the_blog_starts_again_with_it() -> None:
    world = blog()
    before = world["Secret/blog-db"]["data"]
    world.delete("Secret/blog-db")
    assert world.rest() == [
        "create Secret/blog-db",
        "patch Deployment/blog: spec.template.metadata.annotations[checksum/credentials]",
    ]
    assert world["Secret/blog-db"]["data"] != before


def test_a_rotated_password_restarts_the_blog_and_stays() -> None:
    world = blog()
    world.edit("Secret/blog-db", {"data": {"password": "bmV3"}})
    assert world.rest() == ["patch Deployment/blog: spec.template.metadata.annotations[checksum/credentials]"]
    assert world["Secret/blog-db"]["data"]["password"] == "bmV3"  # noqa: S105 - it is meant to be read


def test_a_user_brings_the_passwords_later() -> None:
    world = blog()
    world.edit(BLOG, {"spec": {"passwordSecret": "mine"}})
    writes = world.rest()
    assert world.waits == {"app": "credentials (Secret/default/mine)"}
    assert [each.split(":")[0] for each in writes] == ["patch StatefulSet/blog-db", "release Secret/blog-db"]
    world.add(foreign("Secret", "mine", data={"password": "cA==", "root-password": "cg=="}))
    assert world.rest() == [f"patch Deployment/blog: {POD}[checksum/credentials] {ENV}[WORDPRESS_DB_PASSWORD].valueFrom.secretKeyRef.name"]
    world.settle()
    assert world.rest() == []
    assert world.ready(BLOG) == READY
    assert "ruleop.dev/part-of" not in world["Secret/mine"]["metadata"].get("labels", {})


def test_small_with_its_own_passwords_leaves_nothing_of_ours() -> None:
    world = World(ROOT / WORDPRESS)
    world.add(sample(WORDPRESS, "small"))
    assert world.rest() == [
        "create ConfigMap/small-config",
        "create Service/small-db",
        "create StatefulSet/small-db",
        "create Service/small",
    ]
    secret = foreign("Secret", "small-passwords", data={"password": "cA==", "root-password": "cg=="})
    assert world.waits == {"app": "credentials (Secret/default/small-passwords)"}
    world.add(secret)
    world.settle()
    assert world.rest() == ["create Deployment/small"]
    world.settle()
    assert world.rest() == []
    assert world.ready("WordPress/small") == READY
    assert "finalizers" not in world["WordPress/small"]["metadata"]
    assert world.fields("WordPress/small") == {"replicas": 1, "readyReplicas": 1}
    world.delete("WordPress/small")
    assert world.rest() == []
    assert world.names == ["Secret/small-passwords"]
    assert world["Secret/small-passwords"]["data"] == secret["data"]


CHECKSUM = f"{POD}[checksum/config]"
ENV = "spec.template.spec.containers[wordpress].env"


@pytest.mark.parametrize(
    ("spec", "writes"),
    [
        ({"replicas": 5}, ["patch Deployment/blog: spec.replicas"]),
        ({"image": "wordpress:7"}, ["patch Deployment/blog: spec.template.spec.containers[wordpress].image"]),
        ({"debug": True}, [f"patch Deployment/blog: +{ENV}[WORDPRESS_DEBUG]"]),
        ({"extraEnv": [{"name": "A", "value": "1"}]}, [f"patch Deployment/blog: +{ENV}[A]"]),
        (
            {"extraLabels": {"team": "ops"}},
            ["patch Deployment/blog: metadata.labels.team spec.template.metadata.labels.team"],
        ),
        (
            {"extraLabels": {"team": None}},
            ["patch Deployment/blog: -metadata.labels.team -spec.template.metadata.labels.team"],
        ),
        ({"php": {"uploadMax": "1G"}}, ["patch ConfigMap/blog-config: data[custom.ini]", f"patch Deployment/blog: {CHECKSUM}"]),
        ({"php": {"ini": {"memory_limit": None}}}, ["patch ConfigMap/blog-config: data[custom.ini]", f"patch Deployment/blog: {CHECKSUM}"]),
        ({"db": {"maxConnections": 200}}, ["patch StatefulSet/blog-db: spec.template.spec.containers[mysql].args"]),
        (
            {"db": {"resources": {"requests": {"cpu": "2000m"}}}},
            ["patch StatefulSet/blog-db: +spec.template.spec.containers[mysql].resources.requests"],
        ),
        ({"persistence": {"size": "9Gi"}}, ["patch PersistentVolumeClaim/blog-uploads: spec.resources.requests.storage"]),
        ({"persistence": {"keep": False}}, None),
        ({"ingress": {"host": "b.example.com"}}, ["patch Ingress/blog: spec.tls[0].hosts spec.rules[0].host"]),
        ({"ingress": {"tls": False}}, ["patch Ingress/blog: -spec.tls"]),
        ({"ingress": {"className": None}}, ["patch Ingress/blog: -spec.ingressClassName"]),
        ({"ingress": {"annotations": {"a": "b"}}}, ["patch Ingress/blog: +metadata.annotations.a"]),
        ({"ingress": None}, ["patch Service/blog: spec.type +spec.ports[http].nodePort", "delete Ingress/blog: pruned"]),
    ],
    ids=str,
)
def test_an_edit_of_a_blog(spec: dict[str, Any], writes: list[str] | None) -> None:
    world = blog()
    before = world[BLOG]["spec"]
    world.edit(BLOG, {"spec": spec})
    made = world.rest()
    if writes is not None:
        assert made == writes
    world.settle()
    assert world.rest() == []
    assert world.ready(BLOG) == READY
    # And back again.
    world.edit(BLOG, {"spec": _back(spec, before)})
    made = world.rest()
    assert made
    assert len(made) == len({each.split(":")[0] for each in made})
    world.settle()
    assert world.rest() == []
    fresh = blog()
    for name in ("Deployment/blog", "StatefulSet/blog-db", "ConfigMap/blog-config", "Ingress/blog", "Service/blog"):
        ours, theirs = world.bare(name), fresh.bare(name)
        for obj in (ours, theirs):
            obj.pop("status", None)
            if name.startswith("Deployment"):
                obj["spec"]["template"]["metadata"]["annotations"].pop("checksum/credentials")
            obj["spec"] = {key: value for key, value in obj.get("spec", {}).items() if not key.startswith("clusterIP")}
        assert ours == theirs


def _back(patch: Any, before: Any) -> Any:
    """The merge patch that undoes a merge patch."""
    if not isinstance(patch, dict) or not isinstance(before, dict):
        return before
    return {name: _back(each, before.get(name)) for name, each in patch.items()}


def test_uploads_that_are_not_kept_go_with_the_blog() -> None:
    world = blog(persistence={"accessMode": "ReadWriteMany", "keep": False})
    world.delete(BLOG)
    world.rest()
    assert world.names == ["Secret/blog-db"]


@pytest.mark.parametrize(("first", "then", "stays"), [(True, False, False), (False, True, True)])
def test_whether_uploads_are_kept_may_change(first: bool, then: bool, stays: bool) -> None:
    world = blog(persistence={"accessMode": "ReadWriteMany", "keep": first})
    world.edit(BLOG, {"spec": {"persistence": {"keep": then}}})
    assert [each.split(":")[0] for each in world.rest()] == ["patch PersistentVolumeClaim/blog-uploads"]
    world.delete(BLOG)
    world.rest()
    assert ("PersistentVolumeClaim/blog-uploads" in world) == stays


def test_without_persistence_kept_uploads_are_released() -> None:
    world = blog()
    world.edit(BLOG, {"spec": {"persistence": {"enabled": False}}})
    writes = world.rest()
    assert [each.split(":")[0] for each in writes] == ["patch Deployment/blog", "release PersistentVolumeClaim/blog-uploads"]
    volumes = {each["name"]: each for each in world["Deployment/blog"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["uploads"] == {"name": "uploads", "emptyDir": {}}
    world.settle()
    assert world.rest() == []
    world.edit(BLOG, {"spec": {"persistence": {"enabled": True}}})
    writes = world.rest()
    assert [each.split(":")[0] for each in writes] == ["adopt PersistentVolumeClaim/blog-uploads", "patch Deployment/blog"]
    volumes = {each["name"]: each for each in world["Deployment/blog"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["uploads"] == {"name": "uploads", "persistentVolumeClaim": {"claimName": "blog-uploads"}}


def test_an_invalid_blog_stays_as_it_is() -> None:
    world = blog()
    world.edit(BLOG, {"spec": {"persistence": {"accessMode": "ReadWriteOnce"}, "ingress": None, "php": {"uploadMax": "2G"}}})
    assert world.rest() == []
    assert world.ready(BLOG) == ("False", "Invalid")
    assert "Ingress/blog" in world
    assert world.fields(BLOG) == {"replicas": 3, "readyReplicas": 3}
    assert [each.reason for each in world.events][-1] == "InvalidSpec"
    world.edit(BLOG, {"spec": {"replicas": 1}})
    assert [each.split(":")[0] for each in world.rest()] == [
        "patch ConfigMap/blog-config",
        "failed PersistentVolumeClaim/blog-uploads",
        "patch Service/blog",
    ]
    # The Deployment mentions the claim, so it is not written beside the failure. The claim's access mode cannot change, losing a claim is for the user to say, and nothing is pruned beside a failure.
    assert world.ready(BLOG) == ("False", "ApplyFailed")
    assert "Ingress/blog" in world
    world.edit(BLOG, {"spec": {"persistence": {"accessMode": "ReadWriteMany"}}})
    assert [each.split(":")[0] for each in world.rest()] == ["patch Deployment/blog", "delete Ingress/blog"]


def test_a_foreign_config_stops_what_needs_it_and_nothing_else() -> None:
    world = World(ROOT / WORDPRESS)
    world.add(foreign("ConfigMap", "blog-config", data={"theirs": "1"}), sample(WORDPRESS, "blog"))
    world.rest()
    world.settle()
    world.rest()
    assert "Deployment/blog" not in world
    assert world.ready(BLOG) == EXISTS
    assert world["ConfigMap/blog-config"]["data"] == {"theirs": "1"}
    world.delete("ConfigMap/blog-config")
    assert world.rest() == ["create ConfigMap/blog-config", "create Deployment/blog"]


def test_somebody_scales_the_database_and_breaks_a_service() -> None:
    world = blog()
    world.edit("StatefulSet/blog-db", {"spec": {"replicas": 3}})
    world.edit("Service/blog", {"spec": {"selector": {"app.kubernetes.io/name": "else", "more": "x"}}})
    assert world.rest() == [
        "patch StatefulSet/blog-db: spec.replicas",
        "patch Service/blog: spec.selector[app.kubernetes.io/name] -spec.selector.more",  # the API takes a selector as a whole
    ]


# -- Kafka ---------------------------------------------------------------------------------------------------------------------------------

KAFKA, EVENTS = "tests/projects/kafka", "Kafka/events"


def kafka(replicas: int = 3) -> World:
    cr = sample(KAFKA, "events")
    cr["spec"]["replicas"] = replicas
    return started(KAFKA, cr)


def test_brokers_wait_for_all_addresses() -> None:
    world = World(ROOT / KAFKA)
    world.add(sample(KAFKA, "events"))
    assert world.rest() == [
        "create Service/events-headless",
        *(f"create Service/events-{number}" for number in range(3)),
        "create PodDisruptionBudget/events",
    ]
    world.settle("Service/events-0", "Service/events-2")
    assert world.rest() == []
    assert world.ready(EVENTS) == WAITING
    assert world.waits["config"] == "brokerService[1].status.loadBalancer.ingress[0].ip"
    assert [each["id"] for each in world.fields(EVENTS)["brokers"]] == [0, 1, 2]
    world.settle("Service/events-1")
    assert world.rest() == ["create ConfigMap/events-config", "create StatefulSet/events"]
    world.settle()
    assert world.rest() == []
    assert world.ready(EVENTS) == READY
    hosts = [world[f"Service/events-{number}"]["status"]["loadBalancer"]["ingress"][0]["ip"] for number in range(3)]
    assert world.fields(EVENTS) == {
        "replicas": 3,
        "readyReplicas": 3,
        "bootstrap": "events-headless:9092",
        "brokers": [{"id": number, "host": host, "port": 9094} for number, host in enumerate(hosts)],
    }


def test_from_five_brokers_to_three_to_six() -> None:
    world = kafka(5)
    world.edit(EVENTS, {"spec": {"replicas": 3}})
    assert world.rest() == ["create Job/events-drain-5-to-3"]
    assert world.ready(EVENTS) == WAITING
    assert world["StatefulSet/events"]["spec"]["replicas"] == 5
    world.settle("StatefulSet/events")
    assert world.rest() == []

    world.settle("Job/events-drain-5-to-3")
    writes = world.rest()
    assert writes[0] == "patch StatefulSet/events: spec.replicas"
    assert sorted(writes[1:]) == [
        "delete Job/events-drain-5-to-3: pruned",
        "delete Service/events-3: pruned",
        "delete Service/events-4: pruned",
        "patch ConfigMap/events-config: -data[broker-3] -data[broker-4]",
    ]
    world.settle()
    assert world.rest() == []
    assert world.ready(EVENTS) == READY
    assert world["ConfigMap/events-config"]["data"].keys() == {"server.properties", "broker-0", "broker-1", "broker-2"}
    assert world.names == [
        "ConfigMap/events-config",
        EVENTS,
        "PodDisruptionBudget/events",
        "Service/events-0",
        "Service/events-1",
        "Service/events-2",
        "Service/events-headless",
        "StatefulSet/events",
    ]

    world.edit(EVENTS, {"spec": {"replicas": 6}})
    assert world.rest() == ["create Service/events-3", "create Service/events-4", "create Service/events-5"]
    assert world["StatefulSet/events"]["spec"]["replicas"] == 3
    world.settle()
    assert world.rest() == [
        "patch ConfigMap/events-config: +data[broker-3] +data[broker-4] +data[broker-5]",
        "patch StatefulSet/events: spec.replicas",
    ]
    world.settle()
    assert world.rest() == []
    assert world.fields(EVENTS)["replicas"] == 6
    world.delete(EVENTS)
    assert world.rest() == []
    assert world.names == []


def test_a_drain_that_is_no_longer_wanted_goes() -> None:
    world = kafka(5)
    world.edit(EVENTS, {"spec": {"replicas": 3}})
    world.rest()
    world.edit(EVENTS, {"spec": {"replicas": 5}})
    assert world.rest() == ["delete Job/events-drain-5-to-3: pruned"]
    assert world.ready(EVENTS) == READY


def test_a_drain_that_fails_stops_everything() -> None:
    world = kafka(5)
    world.edit(EVENTS, {"spec": {"replicas": 3}})
    world.rest()
    world.status("Job/events-drain-5-to-3", {"failed": 4, "conditions": [{"type": "Failed", "status": "True"}]})
    assert world.rest() == []
    assert world["StatefulSet/events"]["spec"]["replicas"] == 5
    assert world.conditions(EVENTS)["Ready"][:2] == ("False", "ChildFailed")
    assert world.conditions(EVENTS)["Stalled"][0] == "True"
    world.delete("Job/events-drain-5-to-3")  # the user tries again
    assert world.rest() == ["create Job/events-drain-5-to-3"]


def test_one_broker_needs_no_budget() -> None:
    world = kafka(3)
    world.edit(EVENTS, {"spec": {"replicas": 1}})
    assert world.rest() == ["create Job/events-drain-3-to-1", "delete PodDisruptionBudget/events: pruned"]
    world.settle()
    assert world.rest()[0] == "patch StatefulSet/events: spec.replicas"
    world.settle()
    world.rest()
    assert world.ready(EVENTS) == READY


@pytest.mark.parametrize(
    ("spec", "writes"),
    [
        (
            {"config": {"num.partitions": 24}},
            [
                "patch ConfigMap/events-config: data[server.properties]",
                "patch StatefulSet/events: spec.template.metadata.annotations[checksum/config]",
            ],
        ),
        (
            {"memory": "8Gi"},
            [
                f"patch StatefulSet/events: {CONTAINERS}[kafka].env[KAFKA_HEAP_OPTS].value "
                + " ".join(f"{CONTAINERS}[kafka].resources.{each}.memory" for each in ("requests", "limits"))
            ],
        ),
    ],
    ids=str,
)
def test_an_edit_of_a_kafka(spec: dict[str, Any], writes: list[str]) -> None:
    world = kafka()
    world.edit(EVENTS, {"spec": spec})
    assert world.rest() == writes


def test_a_broker_whose_service_is_deleted_keeps_running() -> None:
    world = kafka()
    world.delete("Service/events-1")
    assert world.rest() == ["create Service/events-1"]
    assert world.ready(EVENTS) == WAITING
    assert "StatefulSet/events" in world
    assert world["ConfigMap/events-config"]["data"].keys() >= {"broker-1"}, "a child that waits stays as it is"
    world.settle()
    assert world.rest() == ["patch ConfigMap/events-config: data[broker-1]"]


# -- a tenant ------------------------------------------------------------------------------------------------------------------------------

TENANT, ACME = "tests/projects/tenant", "Tenant/acme"
SHARED = {"home": "none", "namespaces": ["tools", "monitoring"]}
CAROL, DAVE = "member-carol-example-com-htgf2kmw62uvv3", "member-dave-example-com-hrktnyi4kpe3lj"
ALICE, BOB = "tenant-acme-alice-example-com-h255wvnzhpbnc7", "tenant-acme-oidc-bob-hbl26kynr6e7fb"
IN_ACME = [
    "NetworkPolicy/acme/allow-same-tenant",
    "NetworkPolicy/acme/default-deny",
    "ResourceQuota/acme/tenant",
    f"RoleBinding/acme/{CAROL}",
    f"RoleBinding/acme/{DAVE}",
    "RoleBinding/acme/tenant-admins",
]
SHARED_BINDINGS = [f"RoleBinding/{place}/{user}" for place in ("monitoring", "tools") for user in (ALICE, BOB)]


def test_a_tenant_is_made_ready_and_goes() -> None:
    world = started(TENANT, "acme", **SHARED)
    assert world.names == sorted(["Namespace/acme", ACME, *IN_ACME, *SHARED_BINDINGS])
    assert world.ready(ACME) == READY
    assert world.fields(ACME) == {
        "namespace": "acme",
        "phase": "Active",
        "members": ["carol@example.com", "dave@example.com"],
        "bindings": [CAROL, DAVE],
    }
    assert "finalizers" not in world[ACME]["metadata"]
    world.delete(ACME)
    assert world.rest() == []
    assert world.names == []


def test_nothing_is_made_in_a_namespace_that_is_not_there_yet() -> None:
    world = World(ROOT / TENANT, **SHARED)
    world.add(sample(TENANT, "acme"))
    world.work(world.key(ACME))
    assert world.names == sorted(["Namespace/acme", ACME, *SHARED_BINDINGS])
    writes = world.rest()
    assert sorted(writes[5:]) == [f"create {name}" for name in IN_ACME]
    assert writes[0] == "create Namespace/acme"


def test_users_and_shared_namespaces_come_and_go() -> None:
    world = started(TENANT, "acme", **SHARED)
    world.edit(ACME, {"spec": {"admins": ["alice@example.com"], "members": {"carol@example.com": None, "eve": "admin"}}})
    writes = world.rest()
    eve = next(name for name in world.names if "member-eve" in name)
    assert writes[:2] == ["patch RoleBinding/acme/tenant-admins: -subjects[oidc:bob]", f"create {eve}"]
    assert sorted(writes[2:]) == [
        f"delete {name}: pruned" for name in (f"RoleBinding/acme/{CAROL}", f"RoleBinding/monitoring/{BOB}", f"RoleBinding/tools/{BOB}")
    ]
    assert world.fields(ACME)["members"] == ["dave@example.com", "eve"]
    world.edit(ACME, {"spec": {"sharedNamespaces": ["tools"]}})
    assert world.rest() == [f"delete RoleBinding/monitoring/{ALICE}: pruned"]
    world.edit(ACME, {"spec": {"sharedNamespaces": []}})
    assert world.rest() == [f"delete RoleBinding/tools/{ALICE}: pruned"]
    world.edit(ACME, {"spec": {"members": {"dave@example.com": None, "eve": None}, "admins": []}})
    writes = world.rest()
    assert sorted(each.split(":")[0] for each in writes) == sorted(
        [f"delete {eve}", f"delete RoleBinding/acme/{DAVE}", "patch RoleBinding/acme/tenant-admins"]
    )
    assert world.fields(ACME) == {"namespace": "acme", "phase": "Active", "members": [], "bindings": []}
    assert world.ready(ACME) == READY


def test_a_role_cannot_change_so_its_binding_is_made_again() -> None:
    world = started(TENANT, "acme", **SHARED)
    uid = world[f"RoleBinding/acme/{DAVE}"]["metadata"]["uid"]
    world.edit(ACME, {"spec": {"members": {"dave@example.com": "edit"}}})
    failed, *writes = world.rest()
    assert "field is immutable" in failed
    assert writes == [f"delete RoleBinding/acme/{DAVE}: recreate", f"create RoleBinding/acme/{DAVE}"]
    assert world[f"RoleBinding/acme/{DAVE}"]["roleRef"]["name"] == "edit"
    assert world[f"RoleBinding/acme/{DAVE}"]["metadata"]["uid"] != uid
    assert world.ready(ACME) == READY


def test_quota_and_labels_of_a_tenant() -> None:
    world = started(TENANT, "acme", **SHARED)
    world.edit(
        ACME, {"spec": {"size": "large", "quota": {"pods": "60", "requests.cpu": "12000m"}, "labels": {"cost-center": None, "a": "b"}}}
    )
    assert world.rest() == [
        "patch Namespace/acme: -metadata.labels[cost-center] +metadata.labels.a",
        "patch ResourceQuota/acme/tenant: spec.hard[requests.cpu] spec.hard[requests.memory] spec.hard.pods",
    ]
    assert world["ResourceQuota/acme/tenant"]["spec"]["hard"] == {"requests.cpu": "12", "requests.memory": "64Gi", "pods": "60"}
    assert world["Namespace/acme"]["metadata"]["labels"]["kubernetes.io/metadata.name"] == "acme"


def test_a_kept_namespace_is_released_and_what_is_in_it_stays() -> None:
    cr = sample(TENANT, "acme")
    cr["spec"]["keepNamespace"] = True
    world = started(TENANT, cr, **SHARED)
    assert world[ACME]["metadata"]["finalizers"] == [FINALIZER]
    world.add({**foreign("ConfigMap", "theirs"), "metadata": {"name": "theirs", "namespace": "acme"}})
    world.delete(ACME)
    assert [each.split(":")[0] for each in world.rest()] == ["release Namespace/acme", "finalizer removed"]
    assert world.names == ["ConfigMap/acme/theirs", "Namespace/acme"]


def test_a_namespace_that_is_deleted_is_made_again_with_all_in_it() -> None:
    world = started(TENANT, "acme", **SHARED)
    world._delete(world.key("Namespace/acme"))
    assert world.rest()[0] == "create Namespace/acme"
    assert world.names == sorted(["Namespace/acme", ACME, *IN_ACME, *SHARED_BINDINGS])
    assert world.ready(ACME) == READY


def test_a_foreign_namespace_is_left_alone_and_nothing_is_put_into_it() -> None:
    world = World(ROOT / TENANT, **SHARED)
    world.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acme", "labels": {"theirs": "1"}}}, sample(TENANT, "acme"))
    world.rest()
    assert world.ready(ACME) == EXISTS
    assert world["Namespace/acme"]["metadata"]["labels"] == {"theirs": "1", "kubernetes.io/metadata.name": "acme"}
    assert not [name for name in world.names if name in IN_ACME]
    world.delete("Namespace/acme")
    world.rest()
    assert world.ready(ACME) == READY


def test_a_shared_namespace_that_is_missing_holds_up_nothing_else() -> None:
    world = World(ROOT / TENANT, home="none", namespaces=["tools"])
    world.add(sample(TENANT, "acme"))
    world.rest()
    assert world.ready(ACME)[0] == "False"
    assert set(IN_ACME) <= set(world.names)
    assert f"RoleBinding/tools/{ALICE}" in world
    world._namespaces.add("monitoring")
    world.rest()
    assert world.ready(ACME) == READY


# -- the shop ------------------------------------------------------------------------------------------------------------------------------

SHOP = "tests/projects/shop"
CERTIFICATE = Kind("cert-manager.io", "v1", "Certificate")
PLATFORM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "platform-defaults", "namespace": "platform"},
    "data": {"domain": "example.com", "issuer": "letsencrypt", "region": "eu"},
}
CREDENTIALS = foreign("Secret", "shop-db", data={"username": "c2hvcA==", "password": "c2VjcmV0"})
TLS = foreign("Secret", "shop-tls", type="kubernetes.io/tls", data={"tls.crt": "Y2VydA==", "tls.key": "a2V5"})
WEB = {"home": "web", "namespaces": ["platform"]}


def test_a_shop_gathers_what_others_bring_piece_by_piece() -> None:
    world = World(ROOT / SHOP, **WEB)
    world.add(sample(SHOP, "shop"))
    assert world.rest() == []
    assert world.ready("App/shop") == WAITING
    world.add(PLATFORM)
    assert world.rest() == ["create ConfigMap/shop-settings", "create Certificate/shop"]
    world.add(CREDENTIALS)
    assert world.rest() == []
    assert world.waits["deployment"] == "tls (Secret/web/shop-tls)"
    assert world.conditions("App/shop")["CertificateReady"][0] == "False"
    world.settle()
    world.add(TLS)
    assert world.rest() == ["create Deployment/shop", "create HorizontalPodAutoscaler/shop"]
    world.settle()
    assert world.rest() == []
    assert world.ready("App/shop") == READY
    assert world.conditions("App/shop")["CertificateReady"] == ("True", "Issuance", "")
    assert world.fields("App/shop") == {"domain": "example.com", "replicas": 2, "certificateExpires": "2026-04-01T00:00:00Z"}
    world.delete("App/shop")
    assert world.rest() == []
    assert world.names == ["ConfigMap/platform/platform-defaults", "Secret/shop-db", "Secret/shop-tls"]


def shop(**world: Any) -> World:
    return started(SHOP, "shop", PLATFORM, CREDENTIALS, TLS, **WEB, **world)


def test_without_cert_manager_the_shop_runs_without_a_certificate() -> None:
    world = shop(unserved=[CERTIFICATE])
    assert "Certificate/shop" not in world
    assert world.ready("App/shop") == READY
    assert world.conditions("App/shop")["CertificateReady"] == ("True", "NotSecured", "")
    assert "volumes" not in world["Deployment/shop"]["spec"]["template"]["spec"]
    world.unserved.clear()  # cert-manager is installed
    made = world.rest()
    assert made[0] == "create Certificate/shop"
    assert made[1:] == [
        f"patch Deployment/shop: +{POD}[checksum/tls] +spec.template.spec.containers[app].volumeMounts +spec.template.spec.volumes"
    ]
    assert world.conditions("App/shop")["CertificateReady"][0] in {"False", "Unknown"}
    world.settle()
    assert world.rest() == []
    assert world.ready("App/shop") == READY


def test_when_cert_manager_goes_the_shop_goes_on() -> None:
    world = shop()
    world.unserved.add(CERTIFICATE)
    del world.objects[world.key("Certificate/shop")]
    [patch] = world.rest()
    assert patch.startswith("patch Deployment/shop: ")
    assert "volumes" not in world["Deployment/shop"]["spec"]["template"]["spec"]
    world.settle()
    world.rest()
    assert world.ready("App/shop") == READY


def test_an_autoscaler_has_the_replicas_while_there_is_one() -> None:
    world = shop()
    assert world["Deployment/shop"]["spec"]["replicas"] == 2
    world.edit("Deployment/shop", {"spec": {"replicas": 7}})  # the autoscaler
    assert world.rest() == []
    world.edit("App/shop", {"spec": {"autoscaling": {"min": 3}}})
    assert world.rest() == ["patch HorizontalPodAutoscaler/shop: spec.minReplicas"]
    assert world["Deployment/shop"]["spec"]["replicas"] == 7
    world.edit("App/shop", {"spec": {"autoscaling": None, "replicas": 4}})
    assert world.rest() == ["patch Deployment/shop: spec.replicas", "delete HorizontalPodAutoscaler/shop: pruned"]
    assert world["Deployment/shop"]["spec"]["replicas"] == 4
    world.edit("Deployment/shop", {"spec": {"replicas": 9}})
    assert world.rest() == ["patch Deployment/shop: spec.replicas"]
    world.edit("App/shop", {"spec": {"autoscaling": {"max": 5}}})
    writes = world.rest()
    assert [each.split(":")[0] for each in writes] == ["patch Deployment/shop", "create HorizontalPodAutoscaler/shop"]
    assert world["Deployment/shop"]["spec"]["replicas"] == 4, "a path that becomes ignored keeps its live value"
    world.edit("Deployment/shop", {"spec": {"replicas": 5}})
    assert world.rest() == []


def test_what_others_change_restarts_the_shop() -> None:
    world = shop()
    world.edit("Secret/shop-db", {"data": {"password": "bmV3"}})
    assert world.rest() == [f"patch Deployment/shop: {POD}[checksum/credentials]"]
    world.edit("Secret/shop-tls", {"data": {"tls.crt": "bmV3"}})
    assert world.rest() == [f"patch Deployment/shop: {POD}[checksum/tls]"]
    world.edit("ConfigMap/platform/platform-defaults", {"data": {"region": None, "zone": "a", "domain": "example.net"}})
    assert world.rest() == [
        "patch ConfigMap/shop-settings: data.domain -data.region +data.zone",
        "patch Certificate/shop: spec.dnsNames",
        f"patch Deployment/shop: {POD}[checksum/settings]",
    ]
    assert world.fields("App/shop")["domain"] == "example.net"


def test_a_shop_whose_secret_vanishes_stays_as_it_is() -> None:
    world = shop()
    before = world["Deployment/shop"]
    world.delete("Secret/shop-db")
    assert world.rest() == []
    assert world["Deployment/shop"] == before
    assert world.waits == {"deployment": "credentials (Secret/web/shop-db)"}
    assert world.fields("App/shop")["replicas"] == 2
    world.edit("App/shop", {"spec": {"autoscaling": None}})
    assert world.rest() == ["delete HorizontalPodAutoscaler/shop: pruned"]
    world.add(CREDENTIALS)
    world.rest()
    world.settle()
    world.rest()
    assert world.ready("App/shop") == READY


# -- backups -------------------------------------------------------------------------------------------------------------------------------

BACKUP, PG = "tests/projects/backup", "DatabaseBackup/pg"
RUN, RESTORE = "Job/pg-run-2025-11-21-hb3uhcptq3dbjg", "Job/pg-restore-r1"


def backup(**spec: Any) -> World:
    cr = sample(BACKUP, "pg")
    cr["spec"] |= spec
    return started(BACKUP, cr, home="db")


def test_a_backup_and_a_restore_run_once() -> None:
    world = backup()
    assert world.names == ["CronJob/pg", PG, RESTORE, RUN]
    assert world.ready(PG) == READY
    assert world.fields(PG)["lastRestore"] == "r1"
    assert world.fields(PG)["succeeded"] == 2
    uid = world[RUN]["metadata"]["uid"]
    world.edit(PG, {"spec": {"suspend": True}})
    assert world.rest() == ["patch CronJob/pg: spec.suspend"]
    assert world[RUN]["metadata"]["uid"] == uid


def test_the_next_request_replaces_the_last_one() -> None:
    world = backup()
    world.edit(PG, {"spec": {"restore": {"requestId": "r2", "from": "s3:backups/shop/2"}}})
    assert world.rest() == ["create Job/pg-restore-r2", f"delete {RESTORE}: pruned"]
    assert world.ready(PG) == PROGRESSING
    assert "lastRestore" not in world.fields(PG)
    world.settle()
    assert world.rest() == []
    assert world.fields(PG)["lastRestore"] == "r2"
    world.edit(PG, {"spec": {"restore": None}, "metadata": {"annotations": None}})
    assert sorted(world.rest()) == ["delete Job/pg-restore-r2: pruned", f"delete {RUN}: pruned"]
    assert world.names == ["CronJob/pg", PG]
    assert world.ready(PG) == READY


def test_a_job_is_never_changed_once_it_runs() -> None:
    world = backup()
    world.edit(PG, {"spec": {"database": "other"}})
    assert [each.split(":")[0] for each in world.rest()] == ["patch CronJob/pg"]
    assert world.ready(PG) == READY


def test_the_history_is_that_of_all_runs() -> None:
    world = backup()
    labels = {"name": "pg-1", "labels": {"backup": "pg"}}
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    world.add({"apiVersion": "batch/v1", "kind": "Job", "metadata": labels, "spec": {"template": pod}})
    assert world.rest() == []
    history = {each["job"]: each for each in world.fields(PG)["history"]}
    assert history["pg-1"] == {"job": "pg-1", "ok": False}
    assert history["pg-restore-r1"] == {"job": "pg-restore-r1", "started": "2026-01-01T00:00:00Z", "ok": True}


def test_backups_are_purged_before_the_cr_may_go() -> None:
    world = backup()
    assert world[PG]["metadata"]["finalizers"] == [FINALIZER]
    world.delete(PG)
    assert world.rest() == ["create Job/pg-purge"]
    assert world.ready(PG) == ("False", "Finalizing")
    assert "ownerReferences" not in world["Job/pg-purge"]["metadata"]
    assert {"CronJob/pg", PG, RESTORE, RUN} <= set(world.names)
    world.edit(PG, {"spec": {"restore": {"requestId": "r2", "from": "x"}, "suspend": True}})
    assert world.rest() == [], "deletion never renders children"
    world.settle("Job/pg-purge")
    assert world.rest() == ["delete Job/pg-purge: finalized", "finalizer removed"]
    assert world.names == []


def test_a_purge_that_fails_keeps_the_cr_until_somebody_gives_up_on_it() -> None:
    world = backup()
    world.delete(PG)
    world.rest()
    world.status("Job/pg-purge", {"failed": 3, "conditions": [{"type": "Failed", "status": "True"}]})
    assert world.rest() == []
    assert world.conditions(PG)["Stalled"][0] == "True"
    world.edit(PG, {"metadata": {"annotations": {"ruleop.dev/skip-finalize": "true"}}})
    assert world.rest() == ["delete Job/pg-purge: finalized", "finalizer removed"]
    assert world.names == []


def test_backups_that_are_kept_are_not_purged() -> None:
    world = backup(deletePolicy="Keep")
    world.delete(PG)
    assert world.rest() == ["finalizer removed"]
    assert world.names == []


def test_in_a_namespace_that_is_being_deleted_nothing_is_purged() -> None:
    world = World(ROOT / BACKUP, home="db")
    world.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "db"}}, sample(BACKUP, "pg"))
    for _ in range(3):
        world.rest()
        world.settle()
    world.delete("Namespace/db")
    assert world.rest() == ["finalizer removed"]
    assert "FinalizeSkipped" in [each.reason for each in world.events]
    assert world.names == []


def test_an_immutable_field_is_refused_and_said() -> None:
    """The world's own promise, which the lives above rely on."""
    world = kafka()
    with pytest.raises(Refused) as refused:
        world.edit("StatefulSet/events", {"spec": {"serviceName": "else"}})
    assert refused.value.failure is Failure.IMMUTABLE
