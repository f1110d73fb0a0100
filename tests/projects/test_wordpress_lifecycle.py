"""The lifecycle of a WordPress."""

from __future__ import annotations

from typing import Any

import pytest

from tests.projects.samples import BLOG, EXISTS, POD, PROGRESSING, READY, WAITING, WORDPRESS, blog, foreign, sample
from tests.projects.simulation import Simulation
from tests.projects.snapshots import ROOT


def test_a_new_blog_creates_its_database_first() -> None:
    cluster = Simulation(ROOT / WORDPRESS)
    cluster.add(sample(WORDPRESS, "blog"))
    assert cluster.reconcile() == [
        "finalizer added",
        "create Secret/blog-db",
        "create ConfigMap/blog-config",
        "create Service/blog-db",
        "create StatefulSet/blog-db",
        "create PersistentVolumeClaim/blog-uploads",
        "create Service/blog",
        "create Ingress/blog",
    ]
    assert cluster.ready(BLOG) == WAITING
    assert cluster.waits == {"app": "db to be ready"}
    assert cluster.conditions(BLOG)["DatabaseReady"] == ("False", "Starting", "")
    cluster.settle("PersistentVolumeClaim/blog-uploads")
    assert cluster.reconcile() == []
    cluster.settle("StatefulSet/blog-db")
    assert cluster.reconcile() == ["create Deployment/blog"]
    assert cluster.conditions(BLOG)["DatabaseReady"] == ("True", "Up", "")
    assert cluster.ready(BLOG) == PROGRESSING
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready(BLOG) == READY
    assert cluster.fields(BLOG) == {"replicas": 3, "readyReplicas": 3, "url": "https://blog.example.com"}


def test_the_passwords_are_generated_once_and_outlive_the_blog() -> None:
    cluster = blog()
    made = cluster["Secret/blog-db"]["data"]
    assert made.keys() == {"password", "root-password"}
    assert made["password"] != made["root-password"]
    assert "ownerReferences" not in cluster["Secret/blog-db"]["metadata"]
    cluster.delete(BLOG)
    assert cluster.names.count(BLOG) == 1
    assert [each.split(":")[0] for each in cluster.reconcile()] == [
        "release PersistentVolumeClaim/blog-uploads",
        "release Secret/blog-db",
        "finalizer removed",
    ]
    assert cluster.names == ["PersistentVolumeClaim/blog-uploads", "Secret/blog-db"]
    for name in cluster.names:
        marks = {**cluster[name]["metadata"].get("labels", {}), **cluster[name]["metadata"].get("annotations", {})}
        assert not [mark for mark in marks if "ruleop" in mark or "managed-by" in mark]
    # A recreated CR adopts the objects that it left.
    cluster.add(sample(WORDPRESS, "blog"))
    writes = [each.split(":")[0] for each in cluster.reconcile()]
    assert "adopt Secret/blog-db" in writes
    assert "adopt PersistentVolumeClaim/blog-uploads" in writes
    assert cluster["Secret/blog-db"]["data"] == made
    cluster.settle()
    cluster.reconcile()
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready(BLOG) == READY


def test_a_deleted_password_is_generated_again_and_restarts_the_blog() -> None:
    cluster = blog()
    before = cluster["Secret/blog-db"]["data"]
    cluster.delete("Secret/blog-db")
    assert cluster.reconcile() == [
        "create Secret/blog-db",
        "patch Deployment/blog: spec.template.metadata.annotations[checksum/credentials]",
    ]
    assert cluster["Secret/blog-db"]["data"] != before


def test_a_rotated_password_restarts_the_blog_and_is_kept() -> None:
    cluster = blog()
    cluster.edit("Secret/blog-db", {"data": {"password": "bmV3"}})
    assert cluster.reconcile() == ["patch Deployment/blog: spec.template.metadata.annotations[checksum/credentials]"]
    assert cluster["Secret/blog-db"]["data"]["password"] == "bmV3"  # noqa: S105 - not a secret


def test_a_secret_of_the_user_replaces_the_generated_passwords() -> None:
    cluster = blog()
    cluster.edit(BLOG, {"spec": {"passwordSecret": "mine"}})
    writes = cluster.reconcile()
    assert cluster.waits == {"app": "credentials (Secret/default/mine)"}
    assert [each.split(":")[0] for each in writes] == ["patch StatefulSet/blog-db", "release Secret/blog-db"]
    cluster.add(foreign("Secret", "mine", data={"password": "cA==", "root-password": "cg=="}))
    assert cluster.reconcile() == [
        f"patch Deployment/blog: {POD}[checksum/credentials] {ENV}[WORDPRESS_DB_PASSWORD].valueFrom.secretKeyRef.name"
    ]
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready(BLOG) == READY
    assert "ruleop.dev/part-of" not in cluster["Secret/mine"]["metadata"].get("labels", {})


def test_a_blog_with_passwords_of_the_user_leaves_no_objects() -> None:
    cluster = Simulation(ROOT / WORDPRESS)
    cluster.add(sample(WORDPRESS, "small"))
    assert cluster.reconcile() == [
        "create ConfigMap/small-config",
        "create Service/small-db",
        "create StatefulSet/small-db",
        "create Service/small",
    ]
    secret = foreign("Secret", "small-passwords", data={"password": "cA==", "root-password": "cg=="})
    assert cluster.waits == {"app": "credentials (Secret/default/small-passwords)"}
    cluster.add(secret)
    cluster.settle()
    assert cluster.reconcile() == ["create Deployment/small"]
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready("WordPress/small") == READY
    assert "finalizers" not in cluster["WordPress/small"]["metadata"]
    assert cluster.fields("WordPress/small") == {"replicas": 1, "readyReplicas": 1}
    cluster.delete("WordPress/small")
    assert cluster.reconcile() == []
    assert cluster.names == ["Secret/small-passwords"]
    assert cluster["Secret/small-passwords"]["data"] == secret["data"]


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
        ({"persistence": {"keep": False}}, None),
        ({"ingress": {"host": "b.example.com"}}, ["patch Ingress/blog: spec.tls[0].hosts spec.rules[0].host"]),
        ({"ingress": {"tls": False}}, ["patch Ingress/blog: -spec.tls"]),
        ({"ingress": {"className": None}}, ["patch Ingress/blog: -spec.ingressClassName"]),
        ({"ingress": {"annotations": {"a": "b"}}}, ["patch Ingress/blog: +metadata.annotations.a"]),
        (
            {"ingress": None},
            [
                (
                    "patch Service/blog: spec.type +spec.ports[http].nodePort +spec.externalTrafficPolicy "
                    "+spec.allocateLoadBalancerNodePorts"
                ),
                "delete Ingress/blog: pruned",
            ],
        ),
    ],
    ids=str,
)
def test_each_edit_of_a_blog_writes_only_the_affected_children(spec: dict[str, Any], writes: list[str] | None) -> None:
    cluster = blog()
    before = cluster[BLOG]["spec"]
    cluster.edit(BLOG, {"spec": spec})
    made = cluster.reconcile()
    if writes is not None:
        assert made == writes
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready(BLOG) == READY
    # And back again.
    cluster.edit(BLOG, {"spec": _back(spec, before)})
    made = cluster.reconcile()
    assert made
    assert len(made) == len({each.split(":")[0] for each in made})
    cluster.settle()
    assert cluster.reconcile() == []
    fresh = blog()
    for name in ("Deployment/blog", "StatefulSet/blog-db", "ConfigMap/blog-config", "Ingress/blog", "Service/blog"):
        ours, theirs = cluster.bare(name), fresh.bare(name)
        for obj in (ours, theirs):
            obj.pop("status", None)
            if name.startswith("Deployment"):
                obj["spec"]["template"]["metadata"]["annotations"].pop("checksum/credentials")
            obj["spec"] = {key: value for key, value in obj.get("spec", {}).items() if not key.startswith("clusterIP")}
        assert ours == theirs


def test_the_uploads_grow_and_cannot_shrink() -> None:
    cluster = blog()
    size = cluster[BLOG]["spec"].get("persistence", {}).get("size")
    cluster.edit(BLOG, {"spec": {"persistence": {"size": "9Gi"}}})
    assert cluster.reconcile() == ["patch PersistentVolumeClaim/blog-uploads: spec.resources.requests.storage"]
    assert cluster.ready(BLOG) == READY
    cluster.edit(BLOG, {"spec": {"persistence": {"size": size}}})
    (failed, *_) = cluster.reconcile()
    assert failed.endswith("spec.resources.requests.storage: Forbidden: field can not be less than status.capacity")
    assert cluster.ready(BLOG)[0] == "False"


def _back(patch: Any, before: Any) -> Any:
    """The merge patch that reverts a merge patch."""
    if not isinstance(patch, dict) or not isinstance(before, dict):
        return before
    return {name: _back(each, before.get(name)) for name, each in patch.items()}


def test_uploads_without_keep_are_deleted_with_the_blog() -> None:
    cluster = blog(persistence={"accessMode": "ReadWriteMany", "keep": False})
    cluster.delete(BLOG)
    cluster.reconcile()
    assert cluster.names == ["Secret/blog-db"]


@pytest.mark.parametrize(("first", "then", "stays"), [(True, False, False), (False, True, True)])
def test_a_changed_keep_setting_applies_to_existing_uploads(first: bool, then: bool, stays: bool) -> None:
    cluster = blog(persistence={"accessMode": "ReadWriteMany", "keep": first})
    cluster.edit(BLOG, {"spec": {"persistence": {"keep": then}}})
    assert [each.split(":")[0] for each in cluster.reconcile()] == ["patch PersistentVolumeClaim/blog-uploads"]
    cluster.delete(BLOG)
    cluster.reconcile()
    assert ("PersistentVolumeClaim/blog-uploads" in cluster) == stays


def test_kept_uploads_are_released_when_persistence_is_disabled() -> None:
    cluster = blog()
    cluster.edit(BLOG, {"spec": {"persistence": {"enabled": False}}})
    writes = cluster.reconcile()
    assert [each.split(":")[0] for each in writes] == [
        "patch Deployment/blog",
        "release PersistentVolumeClaim/blog-uploads",
    ]
    volumes = {each["name"]: each for each in cluster["Deployment/blog"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["uploads"] == {"name": "uploads", "emptyDir": {}}
    cluster.settle()
    assert cluster.reconcile() == []
    cluster.edit(BLOG, {"spec": {"persistence": {"enabled": True}}})
    writes = cluster.reconcile()
    assert [each.split(":")[0] for each in writes] == [
        "adopt PersistentVolumeClaim/blog-uploads",
        "patch Deployment/blog",
    ]
    volumes = {each["name"]: each for each in cluster["Deployment/blog"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["uploads"] == {"name": "uploads", "persistentVolumeClaim": {"claimName": "blog-uploads"}}


def test_an_invalid_blog_is_not_changed() -> None:
    cluster = blog()
    cluster.edit(
        BLOG, {"spec": {"persistence": {"accessMode": "ReadWriteOnce"}, "ingress": None, "php": {"uploadMax": "2G"}}}
    )
    assert cluster.reconcile() == []
    assert cluster.ready(BLOG) == ("False", "Invalid")
    assert "Ingress/blog" in cluster
    assert cluster.fields(BLOG) == {"replicas": 3, "readyReplicas": 3}
    assert [each.reason for each in cluster.events][-1] == "InvalidSpec"
    cluster.edit(BLOG, {"spec": {"replicas": 1}})
    assert [each.split(":")[0] for each in cluster.reconcile()] == [
        "patch ConfigMap/blog-config",
        "failed PersistentVolumeClaim/blog-uploads",
        "patch Service/blog",
    ]
    # The Deployment reads the claim, so it is not written after the failure. The claim's access mode is immutable,
    # claims are not recreated by default, and nothing is pruned beside a failure.
    assert cluster.ready(BLOG) == ("False", "ApplyFailed")
    assert "Ingress/blog" in cluster
    cluster.edit(BLOG, {"spec": {"persistence": {"accessMode": "ReadWriteMany"}}})
    assert [each.split(":")[0] for each in cluster.reconcile()] == ["patch Deployment/blog", "delete Ingress/blog"]


def test_a_foreign_config_map_stops_only_children_that_need_it() -> None:
    cluster = Simulation(ROOT / WORDPRESS)
    cluster.add(foreign("ConfigMap", "blog-config", data={"theirs": "1"}), sample(WORDPRESS, "blog"))
    cluster.reconcile()
    cluster.settle()
    cluster.reconcile()
    assert "Deployment/blog" not in cluster
    assert cluster.ready(BLOG) == EXISTS
    assert cluster["ConfigMap/blog-config"]["data"] == {"theirs": "1"}
    cluster.delete("ConfigMap/blog-config")
    assert cluster.reconcile() == ["create ConfigMap/blog-config", "create Deployment/blog"]


def test_manual_changes_of_database_and_service_are_reverted() -> None:
    cluster = blog()
    cluster.edit("StatefulSet/blog-db", {"spec": {"replicas": 3}})
    cluster.edit("Service/blog", {"spec": {"selector": {"app.kubernetes.io/name": "else", "more": "x"}}})
    assert (
        cluster.reconcile()
        == [
            "patch StatefulSet/blog-db: spec.replicas",
            "patch Service/blog: spec.selector[app.kubernetes.io/name] -spec.selector.more",  # the API treats a selector as one value
        ]
    )
