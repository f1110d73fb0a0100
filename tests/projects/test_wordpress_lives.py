"""The lives of a WordPress."""

from __future__ import annotations

from typing import Any

import pytest

from tests.projects.lives import BLOG, EXISTS, POD, PROGRESSING, READY, WAITING, WORDPRESS, blog, foreign, sample
from tests.projects.snapshots import ROOT
from tests.projects.world import World


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
    assert world.rest() == [
        f"patch Deployment/blog: {POD}[checksum/credentials] {ENV}[WORDPRESS_DB_PASSWORD].valueFrom.secretKeyRef.name"
    ]
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
        (
            {"php": {"uploadMax": "1G"}},
            ["patch ConfigMap/blog-config: data[custom.ini]", f"patch Deployment/blog: {CHECKSUM}"],
        ),
        (
            {"php": {"ini": {"memory_limit": None}}},
            ["patch ConfigMap/blog-config: data[custom.ini]", f"patch Deployment/blog: {CHECKSUM}"],
        ),
        ({"db": {"maxConnections": 200}}, ["patch StatefulSet/blog-db: spec.template.spec.containers[mysql].args"]),
        (
            {"db": {"resources": {"requests": {"cpu": "2000m"}}}},
            ["patch StatefulSet/blog-db: +spec.template.spec.containers[mysql].resources.requests"],
        ),
        (
            {"persistence": {"size": "9Gi"}},
            ["patch PersistentVolumeClaim/blog-uploads: spec.resources.requests.storage"],
        ),
        ({"persistence": {"keep": False}}, None),
        ({"ingress": {"host": "b.example.com"}}, ["patch Ingress/blog: spec.tls[0].hosts spec.rules[0].host"]),
        ({"ingress": {"tls": False}}, ["patch Ingress/blog: -spec.tls"]),
        ({"ingress": {"className": None}}, ["patch Ingress/blog: -spec.ingressClassName"]),
        ({"ingress": {"annotations": {"a": "b"}}}, ["patch Ingress/blog: +metadata.annotations.a"]),
        (
            {"ingress": None},
            ["patch Service/blog: spec.type +spec.ports[http].nodePort", "delete Ingress/blog: pruned"],
        ),
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
    assert [each.split(":")[0] for each in writes] == [
        "patch Deployment/blog",
        "release PersistentVolumeClaim/blog-uploads",
    ]
    volumes = {each["name"]: each for each in world["Deployment/blog"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["uploads"] == {"name": "uploads", "emptyDir": {}}
    world.settle()
    assert world.rest() == []
    world.edit(BLOG, {"spec": {"persistence": {"enabled": True}}})
    writes = world.rest()
    assert [each.split(":")[0] for each in writes] == [
        "adopt PersistentVolumeClaim/blog-uploads",
        "patch Deployment/blog",
    ]
    volumes = {each["name"]: each for each in world["Deployment/blog"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["uploads"] == {"name": "uploads", "persistentVolumeClaim": {"claimName": "blog-uploads"}}


def test_an_invalid_blog_stays_as_it_is() -> None:
    world = blog()
    world.edit(
        BLOG, {"spec": {"persistence": {"accessMode": "ReadWriteOnce"}, "ingress": None, "php": {"uploadMax": "2G"}}}
    )
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
    assert (
        world.rest()
        == [
            "patch StatefulSet/blog-db: spec.replicas",
            "patch Service/blog: spec.selector[app.kubernetes.io/name] -spec.selector.more",  # the API takes a selector as a whole
        ]
    )
