"""Namespaces that terminate, and objects that are deleted with their owners."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.contract.client import MERGE, Reply, Server
from tests.contract.kinds import CONFIG_MAPS, WIDGETS, Sample, config_map
from tests.contract.recording import Recording
from tests.waiting import eventually

NAMESPACES = "/api/v1/namespaces"


def make_namespace(server: Server) -> str:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    server.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


# -- namespaces --------------------------------------------------------------------------------------------------------


def test_a_new_namespace_gets_its_account_and_certificates(server: Server, recording: Recording) -> None:
    name = make_namespace(server)
    recording.check("a new namespace", server.get(f"{NAMESPACES}/{name}"), name)
    eventually("its account", lambda: server.exists(f"{NAMESPACES}/{name}/serviceaccounts/default"))
    eventually("its certificates", lambda: server.exists(f"{NAMESPACES}/{name}/configmaps/kube-root-ca.crt"))
    server.delete(f"{NAMESPACES}/{name}")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_first_namespaces_may_not_be_deleted(server: Server, name: str) -> None:
    for query in ({}, {"dryRun": "All"}):
        refused = server.send("DELETE", f"{NAMESPACES}/{name}", **query).refused(403, "Forbidden")
        assert refused["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
        assert refused["details"] == {"name": name, "kind": "namespaces"}


def creation_without_namespace(server: Server, namespace: str) -> Reply | None:
    """None while admission, which has a cache, takes the namespace for one that terminates."""
    reply = server.send("POST", CONFIG_MAPS.path(namespace), config_map())
    return None if reply.status == 403 else reply


def test_a_deleted_namespace_is_removed_with_its_objects(server: Server) -> None:
    name = make_namespace(server)
    server.create(CONFIG_MAPS.path(name), config_map())
    server.create(WIDGETS.path(name), WIDGETS.obj())
    deleted = server.delete(f"{NAMESPACES}/{name}")
    assert deleted["metadata"]["deletionTimestamp"]
    assert deleted["status"]["phase"] == "Terminating"
    eventually("it is gone", lambda: not server.exists(f"{NAMESPACES}/{name}"))
    assert not server.exists(WIDGETS.path(name, "a"))
    refused = eventually("a creation misses it", lambda: creation_without_namespace(server, name))
    refused.refused(404, "NotFound")


def test_a_finalizer_keeps_a_terminating_namespace(server: Server, recording: Recording) -> None:
    name = make_namespace(server)
    server.create(CONFIG_MAPS.path(name), config_map(finalizers=["example.com/stay"]))
    server.delete(f"{NAMESPACES}/{name}")
    for label, path, obj in (
        ("create while it ends", CONFIG_MAPS.path(name), config_map("b")),
        ("create a custom resource while it ends", WIDGETS.path(name), WIDGETS.obj()),
    ):
        reply = server.send("POST", path, obj)
        recording.check(label, {"code": reply.status, "body": reply.body}, name)

    def conditions() -> dict[str, Any]:
        found = server.get(f"{NAMESPACES}/{name}")["status"].get("conditions") or []
        return {each["type"]: each for each in found}

    eventually(
        "it says what remains", lambda: conditions().get("NamespaceFinalizersRemaining", {}).get("status") == "True"
    )
    recording.check("conditions while it ends", conditions(), name)
    again = server.send("DELETE", f"{NAMESPACES}/{name}")
    recording.check("deleted again", {"code": again.status, "reason": (again.body or {}).get("reason")}, name)
    server.merge(CONFIG_MAPS.path(name, "a"), {"metadata": {"finalizers": None}})
    eventually("it is gone", lambda: not server.exists(f"{NAMESPACES}/{name}"))


# -- owners ------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[CONFIG_MAPS, WIDGETS], ids=lambda sample: sample.plural)
def owner_kind(request: pytest.FixtureRequest) -> Sample:
    found: Sample = request.param
    return found


def make_family(server: Server, namespace: str, kind: Sample, *, blocks: bool = True) -> dict[str, Any]:
    """An owner `a` with a child `b`, a grandchild `c`, and a child `d` that has another owner as well."""
    obj = kind.obj()
    if not kind.spec:
        del obj["spec"]
    owner: dict[str, Any] = server.create(kind.path(namespace), obj)
    other = server.create(CONFIG_MAPS.path(namespace), config_map("other"))
    child = server.create(CONFIG_MAPS.path(namespace), config_map("b", ownerReferences=[reference(owner, blocks)]))
    server.create(CONFIG_MAPS.path(namespace), config_map("c", ownerReferences=[reference(child, blocks)]))
    owners = [reference(owner, blocks), reference(other, blocks)]
    server.create(CONFIG_MAPS.path(namespace), config_map("d", ownerReferences=owners))
    wait_until_collected_so_far(server, namespace)
    return owner


def wait_until_collected_so_far(server: Server, namespace: str) -> None:
    """Waits until the garbage collector knows of all ConfigMaps made before: it sees them in their order.

    A dependent that it does not know of yet is neither waited for nor orphaned when its owner is deleted.
    """
    name = f"last-{uuid.uuid4().hex[:8]}"
    missing = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": str(uuid.uuid4())}
    server.create(CONFIG_MAPS.path(namespace), config_map(name, ownerReferences=[missing]))
    eventually("the last one is collected", lambda: not server.exists(CONFIG_MAPS.path(namespace, name)))


def reference(owner: dict[str, Any], blocks: bool = False) -> dict[str, Any]:
    found = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {**found, "blockOwnerDeletion": True} if blocks else found


def drop_finalizer(server: Server, path: str) -> bool:
    """False if the garbage collector has removed one of its own meanwhile: nobody may add that one again."""
    found = server.get(path)["metadata"]
    kept = [each for each in found["finalizers"] if each != "example.com/stay"]
    patch = {"metadata": {"resourceVersion": found["resourceVersion"], "finalizers": kept}}
    return server.send("PATCH", path, patch, media=MERGE).status == 200


def owners_of(server: Server, namespace: str, name: str) -> list[str]:
    found = server.get(CONFIG_MAPS.path(namespace, name))["metadata"]
    return [each["name"] for each in found.get("ownerReferences") or []]


def test_background_deletion_removes_the_owner_first(server: Server, namespace: str, owner_kind: Sample) -> None:
    make_family(server, namespace, owner_kind)
    answer = server.delete(owner_kind.path(namespace, "a"), {"propagationPolicy": "Background"})
    assert answer["status"] == "Success"
    assert not server.exists(owner_kind.path(namespace, "a"))
    for name in "bc":
        eventually("the child is gone", lambda name=name: not server.exists(CONFIG_MAPS.path(namespace, name)))
    eventually("the other owner remains", lambda: owners_of(server, namespace, "d") == ["other"])


def test_deletion_without_a_policy_is_in_the_background(server: Server, namespace: str, owner_kind: Sample) -> None:
    make_family(server, namespace, owner_kind)
    server.delete(owner_kind.path(namespace, "a"))
    eventually("the child is gone", lambda: not server.exists(CONFIG_MAPS.path(namespace, "b")))


def test_foreground_deletion_waits_for_the_dependents(server: Server, namespace: str, owner_kind: Sample) -> None:
    make_family(server, namespace, owner_kind)
    server.merge(CONFIG_MAPS.path(namespace, "b"), {"metadata": {"finalizers": ["example.com/stay"]}})
    found = server.delete(owner_kind.path(namespace, "a"), {"propagationPolicy": "Foreground"})["metadata"]
    assert found["deletionTimestamp"]
    assert found["finalizers"] == ["foregroundDeletion"]
    eventually(
        "the child is being deleted",
        lambda: "deletionTimestamp" in server.get(CONFIG_MAPS.path(namespace, "b"))["metadata"],
    )
    assert server.exists(owner_kind.path(namespace, "a"))
    eventually("its finalizer is removed", lambda: drop_finalizer(server, CONFIG_MAPS.path(namespace, "b")))
    for name in "bc":
        eventually("the child is gone", lambda name=name: not server.exists(CONFIG_MAPS.path(namespace, name)))
    eventually("the owner is gone", lambda: not server.exists(owner_kind.path(namespace, "a")))
    eventually("the other owner is left", lambda: owners_of(server, namespace, "d") == ["other"])


def test_orphan_deletion_keeps_the_dependents(server: Server, namespace: str, owner_kind: Sample) -> None:
    make_family(server, namespace, owner_kind)
    found = server.delete(owner_kind.path(namespace, "a"), {"propagationPolicy": "Orphan"})["metadata"]
    assert found["finalizers"] == ["orphan"]
    eventually("the owner is gone", lambda: not server.exists(owner_kind.path(namespace, "a")))
    assert owners_of(server, namespace, "b") == []
    assert owners_of(server, namespace, "c") == ["b"]
    assert owners_of(server, namespace, "d") == ["other"]


def test_a_dependent_whose_owner_never_existed_is_deleted(server: Server, namespace: str) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": str(uuid.uuid4())}
    server.create(CONFIG_MAPS.path(namespace), config_map("b", ownerReferences=[owner]))
    eventually("the child is gone", lambda: not server.exists(CONFIG_MAPS.path(namespace, "b")))


def test_a_dependent_whose_owner_has_another_uid_is_deleted(server: Server, namespace: str) -> None:
    owner = server.create(CONFIG_MAPS.path(namespace), config_map("a"))
    stale = {**reference(owner), "uid": str(uuid.uuid4())}
    server.create(CONFIG_MAPS.path(namespace), config_map("b", ownerReferences=[stale]))
    eventually("the child is gone", lambda: not server.exists(CONFIG_MAPS.path(namespace, "b")))
    assert server.exists(CONFIG_MAPS.path(namespace, "a"))
