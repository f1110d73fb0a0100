"""The lifecycle of a WordPress."""

from __future__ import annotations

from typing import Any

import pytest

from tests.projects.samples import BLOG, POD, READY, blog

CHECKSUM = f"{POD}[checksum/config]"
ENV = "spec.template.spec.containers[wordpress].env"


@pytest.mark.slow
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


def _back(patch: Any, before: Any) -> Any:
    """The merge patch that reverts a merge patch."""
    if not isinstance(patch, dict) or not isinstance(before, dict):
        return before
    return {name: _back(each, before.get(name)) for name, each in patch.items()}


@pytest.mark.slow
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
        "delete Ingress/blog",
    ]
    # The Deployment reads the claim, so it is not written after the failure. The claim's access mode is immutable, and
    # claims are not recreated by default. That no Ingress is desired does not depend on it.
    assert cluster.ready(BLOG) == ("False", "ApplyFailed")
    cluster.edit(BLOG, {"spec": {"persistence": {"accessMode": "ReadWriteMany"}}})
    assert [each.split(":")[0] for each in cluster.reconcile()] == ["patch Deployment/blog"]
