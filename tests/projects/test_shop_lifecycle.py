"""The lifecycle of a shop."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.kinds import Kind
from tests.docs.messages import ROOT
from tests.projects.samples import CREDENTIALS, PLATFORM, POD, READY, TLS, WAITING, sample, started
from tests.projects.simulation import Simulation

SHOP = "tests/projects/shop"
CERTIFICATE = Kind("cert-manager.io", "v1", "Certificate")
WEB = {"home": "web", "namespaces": ["platform"]}


@pytest.mark.slow
def test_a_shop_waits_for_each_object_of_others() -> None:
    cluster = Simulation(ROOT / SHOP, **WEB)
    cluster.add(sample(SHOP, "shop"))
    assert cluster.reconcile() == []
    assert cluster.ready("App/shop") == WAITING
    cluster.add(PLATFORM)
    assert cluster.reconcile() == ["create ConfigMap/shop-settings", "create Certificate/shop"]
    cluster.add(CREDENTIALS)
    assert cluster.reconcile() == []
    assert cluster.waits["deployment"] == "tls (Secret/web/shop-tls)"
    assert cluster.conditions("App/shop")["CertificateReady"][0] == "False"
    cluster.settle()
    cluster.add(TLS)
    assert cluster.reconcile() == ["create Deployment/shop", "create HorizontalPodAutoscaler/shop"]
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready("App/shop") == READY
    assert cluster.conditions("App/shop")["CertificateReady"] == ("True", "Issuance", "")
    assert cluster.fields("App/shop") == {
        "domain": "example.com",
        "replicas": 2,
        "certificateExpires": "2026-04-01T00:00:00Z",
    }
    cluster.delete("App/shop")
    assert cluster.reconcile() == []
    assert cluster.names == ["ConfigMap/platform/platform-defaults", "Secret/shop-db", "Secret/shop-tls"]


def shop(**cluster: Any) -> Simulation:
    return started(SHOP, "shop", PLATFORM, CREDENTIALS, TLS, **WEB, **cluster)


def test_without_cert_manager_the_shop_runs_without_a_certificate() -> None:
    cluster = shop(unserved=[CERTIFICATE])
    assert "Certificate/shop" not in cluster
    assert cluster.ready("App/shop") == READY
    assert cluster.conditions("App/shop")["CertificateReady"] == ("True", "NotSecured", "")
    assert "volumes" not in cluster["Deployment/shop"]["spec"]["template"]["spec"]
    cluster.unserved.clear()  # cert-manager is installed
    made = cluster.reconcile()
    assert made[0] == "create Certificate/shop"
    assert made[1:] == [
        f"patch Deployment/shop: +{POD}[checksum/tls] +spec.template.spec.containers[app].volumeMounts +spec.template.spec.volumes"
    ]
    assert cluster.conditions("App/shop")["CertificateReady"][0] in {"False", "Unknown"}
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.ready("App/shop") == READY


def test_the_shop_keeps_running_without_cert_manager() -> None:
    cluster = shop()
    cluster.unserved.add(CERTIFICATE)
    del cluster.objects[cluster.key("Certificate/shop")]
    [patch] = cluster.reconcile()
    assert patch.startswith("patch Deployment/shop: ")
    assert "volumes" not in cluster["Deployment/shop"]["spec"]["template"]["spec"]
    cluster.settle()
    cluster.reconcile()
    assert cluster.ready("App/shop") == READY


@pytest.mark.slow
def test_the_replicas_are_ignored_while_the_shop_has_an_autoscaler() -> None:
    cluster = shop()
    assert cluster["Deployment/shop"]["spec"]["replicas"] == 2
    cluster.edit("Deployment/shop", {"spec": {"replicas": 7}})  # the autoscaler
    assert cluster.reconcile() == []
    cluster.edit("App/shop", {"spec": {"autoscaling": {"min": 3}}})
    assert cluster.reconcile() == ["patch HorizontalPodAutoscaler/shop: spec.minReplicas"]
    assert cluster["Deployment/shop"]["spec"]["replicas"] == 7
    cluster.edit("App/shop", {"spec": {"autoscaling": None, "replicas": 4}})
    assert cluster.reconcile() == [
        "patch Deployment/shop: spec.replicas",
        "delete HorizontalPodAutoscaler/shop: pruned",
    ]
    assert cluster["Deployment/shop"]["spec"]["replicas"] == 4
    cluster.edit("Deployment/shop", {"spec": {"replicas": 9}})
    assert cluster.reconcile() == ["patch Deployment/shop: spec.replicas"]
    cluster.edit("App/shop", {"spec": {"autoscaling": {"max": 5}}})
    writes = cluster.reconcile()
    assert [each.split(":")[0] for each in writes] == ["patch Deployment/shop", "create HorizontalPodAutoscaler/shop"]
    assert cluster["Deployment/shop"]["spec"]["replicas"] == 4, "a path that becomes ignored keeps its live value"
    cluster.edit("Deployment/shop", {"spec": {"replicas": 5}})
    assert cluster.reconcile() == []


def test_a_change_of_observed_objects_restarts_the_shop() -> None:
    cluster = shop()
    cluster.edit("Secret/shop-db", {"data": {"password": "bmV3"}})
    assert cluster.reconcile() == [f"patch Deployment/shop: {POD}[checksum/credentials]"]
    cluster.edit("Secret/shop-tls", {"data": {"tls.crt": "bmV3"}})
    assert cluster.reconcile() == [f"patch Deployment/shop: {POD}[checksum/tls]"]
    cluster.edit(
        "ConfigMap/platform/platform-defaults", {"data": {"region": None, "zone": "a", "domain": "example.net"}}
    )
    assert cluster.reconcile() == [
        "patch ConfigMap/shop-settings: data.domain -data.region +data.zone",
        "patch Certificate/shop: spec.dnsNames",
        f"patch Deployment/shop: {POD}[checksum/settings]",
    ]
    assert cluster.fields("App/shop")["domain"] == "example.net"


@pytest.mark.slow
def test_a_shop_whose_secret_is_deleted_is_not_changed() -> None:
    cluster = shop()
    before = cluster["Deployment/shop"]
    cluster.delete("Secret/shop-db")
    assert cluster.reconcile() == []
    assert cluster["Deployment/shop"] == before
    assert cluster.waits == {"deployment": "credentials (Secret/web/shop-db)"}
    assert cluster.fields("App/shop")["replicas"] == 2
    cluster.edit("App/shop", {"spec": {"autoscaling": None}})
    assert cluster.reconcile() == ["delete HorizontalPodAutoscaler/shop: pruned"]
    cluster.add(CREDENTIALS)
    cluster.reconcile()
    cluster.settle()
    cluster.reconcile()
    assert cluster.ready("App/shop") == READY
