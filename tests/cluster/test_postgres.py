"""The life of the PostgreSQL example: nine children, and what users, controllers and mistakes do to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.operator import Operator, Rights, eventually
from tests.cluster.seeds import ROOT, Life, Seed, missing, operating
from tests.projects.lives import sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.cluster import ControlPlane
    from controlplane.fixtures import Kubectl

PROJECT = "examples/postgres"
CHILDREN = {
    "secrets": ["orders-postgres"],
    "configmaps": ["orders-config"],
    "services": ["orders", "orders-pods"],
    "statefulsets": ["orders"],
    "poddisruptionbudgets": ["orders"],
    "cronjobs": ["orders-backup-nightly", "orders-backup-weekly"],
    "networkpolicies": ["orders"],
}
ORDERS = Seed(
    project=ROOT / PROJECT,
    crd=ROOT / PROJECT / "crds/postgreses.db.example.com.yaml",
    rights=Rights(
        watched=["postgreses.db.example.com"],
        children=[
            "secrets",
            "configmaps",
            "services",
            "statefulsets.apps",
            "poddisruptionbudgets.policy",
            "cronjobs.batch",
            "networkpolicies.networking.k8s.io",
            "servicemonitors.monitoring.coreos.com",
        ],
        observed=["persistentvolumeclaims"],
    ),
    api_version="db.example.com/v1",
    resource="postgreses",
    kind="Postgres",
    name="orders",
    spec={**sample(PROJECT, "orders")["spec"], "storageClass": "kwok-volume"},
    children=(),
    status={"port": 5432, "readyReplicas": 1, "passwordSecret": "orders-postgres", "storage": "20Gi"},
    edit={},
    edited=(),
    edited_status={},
    leftovers=tuple(CHILDREN),
)
MONITORS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com", "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors", "singular": "servicemonitor", "listKind": "ServiceMonitorList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operating(ORDERS, control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running


@pytest.fixture
def life(operator: Operator, namespace: str, kubectl: Kubectl) -> Iterator[Life]:
    """A Postgres that is ready, in a namespace of its own. It goes before the operator, which has to release its password."""
    found = Life(ORDERS, operator, namespace, kubectl)
    found.apply()
    found.settled()
    yield found
    kubectl("delete", "postgres", "--all", "--wait=true")


def names(life: Life, resource: str) -> list[str]:
    """The objects of ruleop there."""
    found = [each["metadata"] for each in life.list(resource)]
    return sorted(each["name"] for each in found if "ruleop.dev/part-of" in each.get("labels", {}))


def child(life: Life, resource: str, name: str = "orders") -> Any:
    return life.admin.get(life.path_of(resource, name))


def settings(life: Life) -> str:
    return str(child(life, "configmaps", "orders-config")["data"]["postgresql.conf"])


def edit(life: Life, spec: dict[str, Any]) -> None:
    life.admin.merge(life.path, {"spec": spec}, "somebody")


def at_rest(life: Life) -> bool:
    """Ready at its current generation."""
    resource = life.resource()
    ready = life.condition("Ready")
    return ready["status"] == "True" and ready["observedGeneration"] == resource["metadata"]["generation"]


def test_nine_children_run_a_database_and_the_status_says_how_to_reach_it(life: Life) -> None:
    assert {resource: names(life, resource) for resource in CHILDREN} == CHILDREN
    assert life.resource()["status"]["host"] == f"orders.{life.namespace}.svc"
    assert life.condition("Available")["status"] == "True"
    assert life.condition("BackedUp")["message"] == "0 of 2 backups have succeeded"
    last = {"status": {"lastSuccessfulTime": "2026-11-15T03:02:00Z", "lastScheduleTime": "2026-11-15T03:00:00Z"}}
    for name in CHILDREN["cronjobs"]:
        life.admin.merge(life.path_of("cronjobs", name) + "/status", last, "somebody")
    life.wait_for_condition("BackedUp", "True", "Scheduled")
    assert life.resource()["status"]["lastBackup"] == "2026-11-15T03:02:00Z"


def test_an_edit_changes_the_children_it_concerns_and_no_other(life: Life) -> None:
    def untouched() -> list[str]:
        versions = (child(life, "secrets", "orders-postgres"), child(life, "networkpolicies"))
        return [each["metadata"]["resourceVersion"] for each in versions]

    def checksum() -> str:
        return str(child(life, "statefulsets")["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    before, pods = untouched(), checksum()
    nightly = {**ORDERS.spec["backups"][0], "schedule": "0 2 * * *"}
    edit(life, {"parameters": {"max_connections": 300}, "protect": False, "backups": [nightly]})
    eventually("the setting", lambda: "max_connections = '300'" in settings(life))
    eventually("the pods to follow", lambda: checksum() != pods)
    eventually("no budget", lambda: names(life, "poddisruptionbudgets") == [])
    eventually("one backup", lambda: names(life, "cronjobs") == ["orders-backup-nightly"])
    assert child(life, "cronjobs", "orders-backup-nightly")["spec"]["schedule"] == "0 2 * * *"
    eventually("all to be ready", lambda: at_rest(life))
    assert untouched() == before


def test_changes_by_hand_are_reverted(life: Life) -> None:
    port = [{"op": "replace", "path": "/spec/ports/0/port", "value": 6000}]
    life.kubectl("patch", "service", "orders", "--type=json", "--patch", json.dumps(port))
    life.kubectl("scale", "statefulset", "orders", "--replicas=3")
    life.kubectl("delete", "networkpolicy", "orders")
    life.kubectl("set", "image", "cronjob/orders-backup-weekly", "dump=somebody/else")

    def ports() -> list[tuple[str, int]]:
        return [(each["name"], each["port"]) for each in child(life, "services")["spec"]["ports"]]

    def image() -> str:
        pod = child(life, "cronjobs", "orders-backup-weekly")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        return str(pod["containers"][0]["image"])

    eventually("the port", lambda: ports() == [("postgres", 5432), ("metrics", 9187)])
    eventually("one instance", lambda: child(life, "statefulsets")["spec"]["replicas"] == 1)
    eventually("the policy", lambda: names(life, "networkpolicies") == ["orders"])
    eventually("the image", lambda: image() == "postgres:18.1")
    eventually("all to be ready", lambda: at_rest(life))


def test_a_spec_that_the_rules_refuse_changes_nothing_until_it_is_mended(life: Life) -> None:
    before = settings(life)
    edit(life, {"parameters": {"port": 6000}})
    condition = life.wait_for_condition("Ready", "False", "Invalid")
    assert condition["message"] == "spec.parameters must not set port"
    assert settings(life) == before
    edit(life, {"parameters": {"port": None}})
    eventually("all to be ready", lambda: at_rest(life))


def test_a_pause_keeps_the_database_healthy_and_its_edits_for_later(life: Life) -> None:
    life.kubectl("annotate", "postgres", "orders", "ruleop.dev/paused=true")
    eventually("the pause", lambda: life.condition("Paused")["status"] == "True")
    life.kubectl("wait", "postgres", "orders", "--for=condition=Ready", "--timeout=10s")
    edit(life, {"memory": "2Gi"})
    life.kubectl("annotate", "postgres", "orders", "example.com/note=another-pass")
    assert life.condition("Ready")["status"] == "True"
    assert "1024MB" in settings(life), "4Gi were asked for before the pause"
    life.kubectl("annotate", "postgres", "orders", "ruleop.dev/paused-")
    eventually("the edit", lambda: "512MB" in settings(life))
    eventually("all to be ready", lambda: at_rest(life))
    assert life.condition("Paused") == {}


def test_a_volume_grows_without_a_restart(life: Life) -> None:
    """The recipe of docs/operations.md; the disk itself is the work of a storage driver, which is not here."""
    life.admin.merge("/apis/storage.k8s.io/v1/storageclasses/kwok-volume", {"allowVolumeExpansion": True}, "somebody")
    pod = child(life, "pods", "orders-0")["metadata"]["uid"]
    edit(life, {"storage": "30Gi"})
    refused = life.wait_for_condition("Ready", "False", "ApplyFailed")["message"]
    assert "spec.volumeClaimTemplates[data].spec.resources.requests.storage: 20Gi \N{RIGHTWARDS ARROW} 30Gi" in refused
    larger = json.dumps({"spec": {"resources": {"requests": {"storage": "30Gi"}}}})
    life.kubectl("patch", "pvc", "data-orders-0", f"--patch={larger}")
    life.kubectl("delete", "statefulset", "orders", "--cascade=orphan")
    eventually("all to be ready", lambda: at_rest(life))
    assert child(life, "statefulsets")["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] == "30Gi"
    assert child(life, "pods", "orders-0")["metadata"]["uid"] == pod


def test_the_monitor_comes_when_its_kind_is_installed_and_the_rest_does_not_wait_for_it(life: Life) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    life.admin.post(definitions, MONITORS)
    monitor = eventually("the monitor", lambda: child(life, "servicemonitors"))
    assert missing({"spec": {"endpoints": [{"port": "metrics"}]}}, monitor) == ""
    eventually("all to be ready", lambda: at_rest(life))
    life.admin.delete(f"{definitions}/servicemonitors.monitoring.coreos.com")
    edit(life, {"memory": "2Gi"})
    eventually("the memory", lambda: "512MB" in settings(life))
    eventually("all to be ready", lambda: at_rest(life))


def test_the_data_outlives_the_database_and_a_new_one_finds_it(life: Life) -> None:
    password = child(life, "secrets", "orders-postgres")
    claim = child(life, "persistentvolumeclaims", "data-orders-0")
    life.kubectl("delete", "postgres", "orders", "--wait=true")
    for resource in CHILDREN:
        if resource != "secrets":
            eventually(
                f"no {resource} to be left",
                lambda resource=resource: [each for each in life.list(resource) if each["metadata"]["name"].startswith("orders")] == [],
            )
    assert child(life, "persistentvolumeclaims", "data-orders-0")["metadata"]["uid"] == claim["metadata"]["uid"]
    kept = child(life, "secrets", "orders-postgres")
    assert kept["metadata"]["uid"] == password["metadata"]["uid"]
    assert "ruleop" not in json.dumps({**kept["metadata"], "managedFields": None})
    life.apply()
    life.settled()
    found = child(life, "secrets", "orders-postgres")
    assert (found["metadata"]["uid"], found["data"]) == (password["metadata"]["uid"], password["data"])
    assert names(life, "secrets") == ["orders-postgres"]


def test_data_that_is_not_to_be_kept_goes_with_everything_else(life: Life) -> None:
    edit(life, {"keepData": False})
    eventually("all to be ready", lambda: at_rest(life))
    eventually("no finalizer", lambda: "finalizers" not in life.resource()["metadata"])
    life.kubectl("delete", "postgres", "orders", "--wait=true")
    eventually("no secret", lambda: names(life, "secrets") == [])
    eventually("no claim", lambda: life.list("persistentvolumeclaims") == [])
