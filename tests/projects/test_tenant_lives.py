"""The lives of a tenant."""

from __future__ import annotations

from tests.projects.lives import EXISTS, READY, foreign, sample, started
from tests.projects.snapshots import ROOT
from tests.projects.world import FINALIZER, World

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
    world.edit(
        ACME, {"spec": {"admins": ["alice@example.com"], "members": {"carol@example.com": None, "eve": "admin"}}}
    )
    writes = world.rest()
    eve = next(name for name in world.names if "member-eve" in name)
    assert writes[:2] == ["patch RoleBinding/acme/tenant-admins: -subjects[oidc:bob]", f"create {eve}"]
    assert sorted(writes[2:]) == [
        f"delete {name}: pruned"
        for name in (f"RoleBinding/acme/{CAROL}", f"RoleBinding/monitoring/{BOB}", f"RoleBinding/tools/{BOB}")
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
        ACME,
        {
            "spec": {
                "size": "large",
                "quota": {"pods": "60", "requests.cpu": "12000m"},
                "labels": {"cost-center": None, "a": "b"},
            }
        },
    )
    assert world.rest() == [
        "patch Namespace/acme: -metadata.labels[cost-center] +metadata.labels.a",
        "patch ResourceQuota/acme/tenant: spec.hard[requests.cpu] spec.hard[requests.memory] spec.hard.pods",
    ]
    assert world["ResourceQuota/acme/tenant"]["spec"]["hard"] == {
        "requests.cpu": "12",
        "requests.memory": "64Gi",
        "pods": "60",
    }
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
    world.add(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acme", "labels": {"theirs": "1"}}},
        sample(TENANT, "acme"),
    )
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
