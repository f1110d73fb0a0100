"""The lifecycle of a tenant."""

from __future__ import annotations

import pytest

from tests.docs.messages import ROOT
from tests.projects.samples import EXISTS, READY, foreign, sample, started
from tests.projects.simulation import FINALIZER, Simulation

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


@pytest.mark.slow
def test_a_tenant_becomes_ready_and_is_deleted() -> None:
    cluster = started(TENANT, "acme", **SHARED)
    assert cluster.names == sorted(["Namespace/acme", ACME, *IN_ACME, *SHARED_BINDINGS])
    assert cluster.ready(ACME) == READY
    assert cluster.fields(ACME) == {
        "namespace": "acme",
        "phase": "Active",
        "members": ["carol@example.com", "dave@example.com"],
        "bindings": [CAROL, DAVE],
    }
    assert "finalizers" not in cluster[ACME]["metadata"]
    cluster.delete(ACME)
    assert cluster.reconcile() == []
    assert cluster.names == []


def test_no_object_is_created_in_a_namespace_before_it_exists() -> None:
    cluster = Simulation(ROOT / TENANT, **SHARED)
    cluster.add(sample(TENANT, "acme"))
    cluster.work(cluster.key(ACME))
    assert cluster.names == sorted(["Namespace/acme", ACME, *SHARED_BINDINGS])
    writes = cluster.reconcile()
    assert sorted(writes[5:]) == [f"create {name}" for name in IN_ACME]
    assert writes[0] == "create Namespace/acme"


@pytest.mark.slow
def test_added_and_removed_users_and_namespaces_change_the_bindings() -> None:
    cluster = started(TENANT, "acme", **SHARED)
    cluster.edit(
        ACME, {"spec": {"admins": ["alice@example.com"], "members": {"carol@example.com": None, "eve": "admin"}}}
    )
    writes = cluster.reconcile()
    eve = next(name for name in cluster.names if "member-eve" in name)
    assert writes[:2] == ["patch RoleBinding/acme/tenant-admins: -subjects[oidc:bob]", f"create {eve}"]
    assert sorted(writes[2:]) == [
        f"delete {name}: pruned"
        for name in (f"RoleBinding/acme/{CAROL}", f"RoleBinding/monitoring/{BOB}", f"RoleBinding/tools/{BOB}")
    ]
    assert cluster.fields(ACME)["members"] == ["dave@example.com", "eve"]
    cluster.edit(ACME, {"spec": {"sharedNamespaces": ["tools"]}})
    assert cluster.reconcile() == [f"delete RoleBinding/monitoring/{ALICE}: pruned"]
    cluster.edit(ACME, {"spec": {"sharedNamespaces": []}})
    assert cluster.reconcile() == [f"delete RoleBinding/tools/{ALICE}: pruned"]
    cluster.edit(ACME, {"spec": {"members": {"dave@example.com": None, "eve": None}, "admins": []}})
    writes = cluster.reconcile()
    assert sorted(each.split(":")[0] for each in writes) == sorted(
        [f"delete {eve}", f"delete RoleBinding/acme/{DAVE}", "patch RoleBinding/acme/tenant-admins"]
    )
    assert cluster.fields(ACME) == {"namespace": "acme", "phase": "Active", "members": [], "bindings": []}
    assert cluster.ready(ACME) == READY


@pytest.mark.slow
def test_a_binding_is_recreated_because_its_role_is_immutable() -> None:
    cluster = started(TENANT, "acme", **SHARED)
    uid = cluster[f"RoleBinding/acme/{DAVE}"]["metadata"]["uid"]
    cluster.edit(ACME, {"spec": {"members": {"dave@example.com": "edit"}}})
    failed, *writes = cluster.reconcile()
    assert "cannot change roleRef" in failed
    assert writes == [f"delete RoleBinding/acme/{DAVE}: recreate", f"create RoleBinding/acme/{DAVE}"]
    assert cluster[f"RoleBinding/acme/{DAVE}"]["roleRef"]["name"] == "edit"
    assert cluster[f"RoleBinding/acme/{DAVE}"]["metadata"]["uid"] != uid
    assert cluster.ready(ACME) == READY


def test_a_changed_quota_and_labels_are_patched() -> None:
    cluster = started(TENANT, "acme", **SHARED)
    cluster.edit(
        ACME,
        {
            "spec": {
                "size": "large",
                "quota": {"pods": "60", "requests.cpu": "12000m"},
                "labels": {"cost-center": None, "a": "b"},
            }
        },
    )
    assert cluster.reconcile() == [
        "patch Namespace/acme: -metadata.labels[cost-center] +metadata.labels.a",
        "patch ResourceQuota/acme/tenant: spec.hard[requests.cpu] spec.hard[requests.memory] spec.hard.pods",
    ]
    assert cluster["ResourceQuota/acme/tenant"]["spec"]["hard"] == {
        "requests.cpu": "12",
        "requests.memory": "64Gi",
        "pods": "60",
    }
    assert cluster["Namespace/acme"]["metadata"]["labels"]["kubernetes.io/metadata.name"] == "acme"


def test_a_kept_namespace_is_released_with_the_objects_of_others() -> None:
    cr = sample(TENANT, "acme")
    cr["spec"]["keepNamespace"] = True
    cluster = started(TENANT, cr, **SHARED)
    assert cluster[ACME]["metadata"]["finalizers"] == [FINALIZER]
    cluster.add({**foreign("ConfigMap", "theirs"), "metadata": {"name": "theirs", "namespace": "acme"}})
    cluster.delete(ACME)
    assert [each.split(":")[0] for each in cluster.reconcile()] == ["release Namespace/acme", "finalizer removed"]
    assert cluster.names == ["ConfigMap/acme/theirs", "Namespace/acme"]


def test_a_deleted_namespace_is_recreated_with_its_objects() -> None:
    cluster = started(TENANT, "acme", **SHARED)
    cluster._delete(cluster.key("Namespace/acme"))
    assert cluster.reconcile()[0] == "create Namespace/acme"
    assert cluster.names == sorted(["Namespace/acme", ACME, *IN_ACME, *SHARED_BINDINGS])
    assert cluster.ready(ACME) == READY


def test_a_foreign_namespace_is_not_changed_and_gets_no_objects() -> None:
    cluster = Simulation(ROOT / TENANT, **SHARED)
    cluster.add(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acme", "labels": {"theirs": "1"}}},
        sample(TENANT, "acme"),
    )
    cluster.reconcile()
    assert cluster.ready(ACME) == EXISTS
    assert cluster["Namespace/acme"]["metadata"]["labels"] == {"theirs": "1", "kubernetes.io/metadata.name": "acme"}
    assert not [name for name in cluster.names if name in IN_ACME]
    cluster.delete("Namespace/acme")
    cluster.reconcile()
    assert cluster.ready(ACME) == READY


def test_a_missing_shared_namespace_delays_no_other_child() -> None:
    cluster = Simulation(ROOT / TENANT, home="none", namespaces=["tools"])
    cluster.add(sample(TENANT, "acme"))
    cluster.reconcile()
    assert cluster.ready(ACME)[0] == "False"
    assert set(IN_ACME) <= set(cluster.names)
    assert f"RoleBinding/tools/{ALICE}" in cluster
    cluster.add_namespace("monitoring")
    cluster.reconcile()
    assert cluster.ready(ACME) == READY
