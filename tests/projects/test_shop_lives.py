"""The lives of a shop."""

from __future__ import annotations

from typing import Any

from ruleop.kinds import Kind
from tests.projects.lives import CREDENTIALS, PLATFORM, POD, READY, TLS, WAITING, sample, started
from tests.projects.snapshots import ROOT
from tests.projects.world import World

SHOP = "tests/projects/shop"
CERTIFICATE = Kind("cert-manager.io", "v1", "Certificate")
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
    assert world.fields("App/shop") == {
        "domain": "example.com",
        "replicas": 2,
        "certificateExpires": "2026-04-01T00:00:00Z",
    }
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
