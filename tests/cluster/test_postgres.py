"""The live_example of the PostgreSQL example: nine children, and what users, controllers and mistakes do to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import ROOT, Example, LiveExample, missing, operating
from tests.cluster.operator import Operator, Permissions, eventually
from tests.definitions import ANYTHING, crd, version
from tests.projects.samples import sample

pytestmark = pytest.mark.real_server("kubectl is typed by the administrator")

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
ORDERS = Example(
    project=ROOT / PROJECT,
    crd=ROOT / PROJECT / "crds/postgreses.db.example.com.yaml",
    permissions=Permissions(
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
MONITORS = crd("ServiceMonitor", "monitoring.coreos.com", version("v1", ANYTHING))
MONITORS["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operating(ORDERS, control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running


@pytest.fixture
def live_example(operator: Operator, namespace: str, kubectl: Kubectl) -> Iterator[LiveExample]:
    """A Postgres that is ready, in a namespace of its own. It goes before the operator, which has to release its
    password."""
    found = LiveExample(ORDERS, operator, namespace, kubectl)
    found.apply()
    found.wait_until_settled()
    yield found
    kubectl("delete", "postgres", "--all", "--wait=true")


def names(live_example: LiveExample, resource: str) -> list[str]:
    """The objects of ruleop there."""
    found = [each["metadata"] for each in live_example.list(resource)]
    return sorted(each["name"] for each in found if "ruleop.dev/part-of" in each.get("labels", {}))


def child(live_example: LiveExample, resource: str, name: str = "orders") -> Any:
    return live_example.admin.get(live_example.path_of(resource, name))


def settings(live_example: LiveExample) -> str:
    return str(child(live_example, "configmaps", "orders-config")["data"]["postgresql.conf"])


def edit(live_example: LiveExample, spec: dict[str, Any]) -> None:
    live_example.admin.merge(live_example.path, {"spec": spec}, "somebody")


def at_rest(live_example: LiveExample) -> bool:
    """Ready at its current generation."""
    resource = live_example.resource()
    ready = live_example.condition("Ready")
    return ready["status"] == "True" and ready["observedGeneration"] == resource["metadata"]["generation"]


def test_nine_children_run_a_database_and_the_status_has_its_endpoint(live_example: LiveExample) -> None:
    assert {resource: names(live_example, resource) for resource in CHILDREN} == CHILDREN
    assert live_example.resource()["status"]["host"] == f"orders.{live_example.namespace}.svc"
    assert live_example.condition("Available")["status"] == "True"
    assert live_example.condition("BackedUp")["message"] == "0 of 2 backups have succeeded"
    last = {"status": {"lastSuccessfulTime": "2026-11-15T03:02:00Z", "lastScheduleTime": "2026-11-15T03:00:00Z"}}
    for name in CHILDREN["cronjobs"]:
        live_example.admin.merge(live_example.path_of("cronjobs", name) + "/status", last, "somebody")
    live_example.wait_for_condition("BackedUp", "True", "Scheduled")
    assert live_example.resource()["status"]["lastBackup"] == "2026-11-15T03:02:00Z"


def test_an_edit_changes_only_the_affected_children(live_example: LiveExample) -> None:
    def untouched() -> list[str]:
        versions = (child(live_example, "secrets", "orders-postgres"), child(live_example, "networkpolicies"))
        return [each["metadata"]["resourceVersion"] for each in versions]

    def checksum() -> str:
        return str(
            child(live_example, "statefulsets")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        )

    before, pods = untouched(), checksum()
    nightly = {**ORDERS.spec["backups"][0], "schedule": "0 2 * * *"}
    edit(live_example, {"parameters": {"max_connections": 300}, "protect": False, "backups": [nightly]})
    eventually("the setting", lambda: "max_connections = '300'" in settings(live_example))
    eventually("the pods to follow", lambda: checksum() != pods)
    eventually("no budget", lambda: names(live_example, "poddisruptionbudgets") == [])
    eventually("one backup", lambda: names(live_example, "cronjobs") == ["orders-backup-nightly"])
    assert child(live_example, "cronjobs", "orders-backup-nightly")["spec"]["schedule"] == "0 2 * * *"
    eventually("all to be ready", lambda: at_rest(live_example))
    assert untouched() == before


def test_changes_by_hand_are_reverted(live_example: LiveExample) -> None:
    port = [{"op": "replace", "path": "/spec/ports/0/port", "value": 6000}]
    live_example.kubectl("patch", "service", "orders", "--type=json", "--patch", json.dumps(port))
    live_example.kubectl("scale", "statefulset", "orders", "--replicas=3")
    live_example.kubectl("delete", "networkpolicy", "orders")
    live_example.kubectl("set", "image", "cronjob/orders-backup-weekly", "dump=somebody/else")

    def ports() -> list[tuple[str, int]]:
        return [(each["name"], each["port"]) for each in child(live_example, "services")["spec"]["ports"]]

    def image() -> str:
        pod = child(live_example, "cronjobs", "orders-backup-weekly")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        return str(pod["containers"][0]["image"])

    eventually("the port", lambda: ports() == [("postgres", 5432), ("metrics", 9187)])
    eventually("one instance", lambda: child(live_example, "statefulsets")["spec"]["replicas"] == 1)
    eventually("the policy", lambda: names(live_example, "networkpolicies") == ["orders"])
    eventually("the image", lambda: image() == "postgres:18.1")
    eventually("all to be ready", lambda: at_rest(live_example))


def test_an_invalid_spec_changes_nothing_until_it_is_fixed(live_example: LiveExample) -> None:
    before = settings(live_example)
    edit(live_example, {"parameters": {"port": 6000}})
    condition = live_example.wait_for_condition("Ready", "False", "Invalid")
    assert condition["message"] == "spec.parameters must not set port"
    assert settings(live_example) == before
    edit(live_example, {"parameters": {"port": None}})
    eventually("all to be ready", lambda: at_rest(live_example))


def test_a_pause_keeps_the_database_healthy_and_its_edits_for_later(live_example: LiveExample) -> None:
    live_example.kubectl("annotate", "postgres", "orders", "ruleop.dev/paused=true")
    eventually("the pause", lambda: live_example.condition("Paused")["status"] == "True")
    live_example.kubectl("wait", "postgres", "orders", "--for=condition=Ready", "--timeout=10s")
    edit(live_example, {"memory": "2Gi"})
    live_example.kubectl("annotate", "postgres", "orders", "example.com/note=another-pass")
    assert live_example.condition("Ready")["status"] == "True"
    assert "1024MB" in settings(live_example), "4Gi were asked for before the pause"
    live_example.kubectl("annotate", "postgres", "orders", "ruleop.dev/paused-")
    eventually("the edit", lambda: "512MB" in settings(live_example))
    eventually("all to be ready", lambda: at_rest(live_example))
    assert live_example.condition("Paused") == {}


def test_the_volume_of_the_database_grows_without_a_restart(live_example: LiveExample) -> None:
    """The recipe of docs/operations.md; the disk itself is the work of a storage driver, which is not here."""
    live_example.admin.merge(
        "/apis/storage.k8s.io/v1/storageclasses/kwok-volume", {"allowVolumeExpansion": True}, "somebody"
    )
    pod = child(live_example, "pods", "orders-0")["metadata"]["uid"]
    edit(live_example, {"storage": "30Gi"})
    refused = live_example.wait_for_condition("Ready", "False", "ApplyFailed")["message"]
    assert "spec.volumeClaimTemplates[data].spec.resources.requests.storage: 20Gi \N{RIGHTWARDS ARROW} 30Gi" in refused
    larger = json.dumps({"spec": {"resources": {"requests": {"storage": "30Gi"}}}})
    live_example.kubectl("patch", "pvc", "data-orders-0", f"--patch={larger}")
    live_example.kubectl("delete", "statefulset", "orders", "--cascade=orphan")
    eventually("all to be ready", lambda: at_rest(live_example))
    assert (
        child(live_example, "statefulsets")["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"][
            "storage"
        ]
        == "30Gi"
    )
    assert child(live_example, "pods", "orders-0")["metadata"]["uid"] == pod


def test_an_optional_child_is_created_when_its_kind_is_installed(live_example: LiveExample) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    live_example.admin.post(definitions, MONITORS)
    monitor = eventually("the monitor", lambda: child(live_example, "servicemonitors"))
    assert missing({"spec": {"endpoints": [{"port": "metrics"}]}}, monitor) == ""
    eventually("all to be ready", lambda: at_rest(live_example))
    live_example.admin.delete(f"{definitions}/servicemonitors.monitoring.coreos.com")
    edit(live_example, {"memory": "2Gi"})
    eventually("the memory", lambda: "512MB" in settings(live_example))
    eventually("all to be ready", lambda: at_rest(live_example))


def test_the_data_outlives_the_database_and_a_new_one_finds_it(live_example: LiveExample) -> None:
    password = child(live_example, "secrets", "orders-postgres")
    claim = child(live_example, "persistentvolumeclaims", "data-orders-0")
    live_example.kubectl("delete", "postgres", "orders", "--wait=true")
    for resource in CHILDREN:
        if resource != "secrets":
            eventually(
                f"no {resource} to be left",
                lambda resource=resource: (
                    [each for each in live_example.list(resource) if each["metadata"]["name"].startswith("orders")]
                    == []
                ),
            )
    assert child(live_example, "persistentvolumeclaims", "data-orders-0")["metadata"]["uid"] == claim["metadata"]["uid"]
    kept = child(live_example, "secrets", "orders-postgres")
    assert kept["metadata"]["uid"] == password["metadata"]["uid"]
    assert "ruleop" not in json.dumps({**kept["metadata"], "managedFields": None})
    live_example.apply()
    live_example.wait_until_settled()
    found = child(live_example, "secrets", "orders-postgres")
    assert (found["metadata"]["uid"], found["data"]) == (password["metadata"]["uid"], password["data"])
    assert names(live_example, "secrets") == ["orders-postgres"]


def test_data_without_orphan_policy_is_deleted(live_example: LiveExample) -> None:
    edit(live_example, {"keepData": False})
    eventually("all to be ready", lambda: at_rest(live_example))
    eventually("no finalizer", lambda: "finalizers" not in live_example.resource()["metadata"])
    live_example.kubectl("delete", "postgres", "orders", "--wait=true")
    eventually("no secret", lambda: names(live_example, "secrets") == [])
    eventually("no claim", lambda: live_example.list("persistentvolumeclaims") == [])
