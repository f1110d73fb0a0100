"""What the server makes of the metadata of a request: types, what is empty, and what is invalid. Word for word."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.contract.client import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Reply, Server
from tests.contract.kinds import CONFIG_MAPS, INGRESSES, WIDGETS, Sample
from tests.contract.recording import Recording

VERBS = ("create", "replace", "replace what is missing", "merge", "JSON patch", "strategic", "apply")
BUDGETS = Sample("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", {"minAvailable": 1}, {}, {})
LEASES = Sample("coordination.k8s.io/v1", "Lease", "leases", {"holderIdentity": "a", "leaseDurationSeconds": 3}, {}, {})
POLICIES = Sample("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", {"podSelector": {}}, {}, {})
LIMITS = Sample("v1", "LimitRange", "limitranges", {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}, {}, {})
KINDS = {each.kind: each for each in (CONFIG_MAPS, INGRESSES, WIDGETS, BUDGETS, LEASES, POLICIES, LIMITS)}

WRONG_TYPES: dict[str, Any] = {
    "text for metadata": "text",
    "a list for metadata": [],
    "text for labels": {"labels": "text"},
    "a number in labels": {"labels": {"a": 1}},
    "null in labels": {"labels": {"a": None}},
    "text for finalizers": {"finalizers": "text"},
    "a map for owners": {"ownerReferences": {"a": 1}},
    "an owner of nothing": {"ownerReferences": [None]},
    "a number for a name": {"name": 5},
    "a number for a uid": {"uid": 5},
    "text for a time": {"deletionTimestamp": "text"},
    "a number for a time": {"creationTimestamp": 5},
    "text for a generation": {"generation": "text"},
    "a version that is not a number": {"resourceVersion": "text"},
    "an unknown field": {"unknown": 1},
}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}
INVALID: dict[str, Any] = {
    "a finalizer without a domain": {"finalizers": ["a"]},
    "finalizers that are no names": {"finalizers": ["A B", "x.y/c d"]},
    "finalizers of opposite deletions": {"finalizers": ["orphan", "foregroundDeletion"]},
    "a finalizer of a domain without a path": {"finalizers": ["a.example.com"]},
    "an empty owner": {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]},
    "an owner without a version": {"ownerReferences": [{**OWNER, "apiVersion": "apps/"}]},
    "two controllers": {"ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "uid": "c", "controller": True}]},
    "invalid labels": {"labels": {"a b": "c d"}},
    "invalid annotations": {"annotations": {"a b": "c d"}},
}


@pytest.fixture(scope="module")
def place(server: Server) -> Iterator[str]:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    server.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for sample in KINDS.values():
        server.create(sample.path(name), with_metadata(sample, {"name": "a"}))
    yield name
    server.send("DELETE", f"/api/v1/namespaces/{name}")


def with_metadata(sample: Sample, metadata: Any) -> dict[str, Any]:
    obj = {**sample.obj(), "metadata": metadata}
    if not sample.spec:
        del obj["spec"]
    return obj


def answer(server: Server, sample: Sample, place: str, verb: str, metadata: Any) -> Reply:
    """To a request with metadata, or with these beside a name. Nothing is stored."""
    path = sample.path(place)
    named = {"name": "missing" if "missing" in verb else "b" if verb == "create" else "a"}
    obj = with_metadata(sample, {**named, **metadata} if isinstance(metadata, dict) else metadata)
    match verb:
        case "create":
            return server.send("POST", path, obj, dryRun="All")
        case "replace" | "replace what is missing":
            return server.send("PUT", f"{path}/{named['name']}", obj, dryRun="All")
        case "apply":
            return server.send("PATCH", f"{path}/a", obj, media=APPLY, fieldManager="m", dryRun="All")
        case "JSON patch":
            fields = metadata.items() if isinstance(metadata, dict) else ()
            operations = [{"op": "add", "path": f"/metadata/{name}", "value": value} for name, value in fields]
            operations = operations or [{"op": "replace", "path": "/metadata", "value": metadata}]
            return server.send("PATCH", f"{path}/a", operations, media=JSON_PATCH, dryRun="All")
    media = MERGE if verb == "merge" else STRATEGIC
    return server.send("PATCH", f"{path}/a", {"metadata": metadata}, media=media, dryRun="All")


def summary(reply: Reply) -> dict[str, Any]:
    """The answer, with the number of causes for each field. What a patch would make is not shown in the same order, and
    the server in memory does not warn about names of finalizers."""
    causes = ((reply.body or {}).get("details") or {}).get("causes") or []
    message = reply.body.get("message", "") if reply.status >= 400 else ""
    before, quoted, after = message.partition('Invalid value: "{')
    if quoted:
        message = before + after.rpartition('}": ')[2]
    found: dict[str, Any] = {"code": reply.status, "message": message}
    if causes:
        found["causes"] = dict(sorted(Counter(each["field"] for each in causes).items()))
    warnings = sorted(each for each in reply.warnings if not each.startswith("metadata.finalizers"))
    return {**found, "warnings": warnings} if warnings else found


CASES = [(kind, name) for kind in ("ConfigMap", "Widget") for name in WRONG_TYPES]
TIMES = ("text for a time", "a number for a time")  # the server ignores them where a custom resource is applied


@pytest.mark.parametrize(("kind", "name"), [case for case in CASES if case[0] == "ConfigMap" or case[1] not in TIMES])
def test_metadata_are_decoded_before_anything_else_is_checked(
    server: Server, place: str, kind: str, name: str, recording: Recording
) -> None:
    found = {verb: summary(answer(server, KINDS[kind], place, verb, WRONG_TYPES[name])) for verb in VERBS}
    recording.check(f"{kind}: {name}", found, place)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", INVALID)
def test_invalid_metadata_are_refused_with_all_causes(
    server: Server, place: str, kind: str, name: str, recording: Recording
) -> None:
    found = {verb: summary(answer(server, KINDS[kind], place, verb, INVALID[name])) for verb in ("create", "merge")}
    recording.check(f"{kind}: {name}", found, place)


EMPTY = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": [], "generateName": ""}


@pytest.mark.parametrize("kind", ["ConfigMap", "Widget"])
@pytest.mark.parametrize("verb", VERBS)
def test_empty_metadata_are_not_stored(server: Server, place: str, kind: str, verb: str) -> None:
    version = server.get(f"{KINDS[kind].path(place)}/a")["metadata"]["resourceVersion"]
    given: Mapping[str, Any] = EMPTY if verb in ("create", "apply") else {**EMPTY, "resourceVersion": version}
    reply = answer(server, KINDS[kind], place, verb, given)
    if "missing" in verb:
        reply.refused(404, "NotFound")
    elif verb == "strategic" and kind == "Widget":
        reply.refused(415, "UnsupportedMediaType")
    else:
        assert not EMPTY.keys() & reply.ok()["metadata"].keys()


def test_fields_of_the_server_are_not_changed_by_applying_others(server: Server, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace)
    before = server.create(path, with_metadata(CONFIG_MAPS, {"name": "a"}))["metadata"]
    given = {"name": "a", "namespace": None, "uid": None, "creationTimestamp": None, "generation": 5}
    obj = with_metadata(CONFIG_MAPS, {**given, "labels": {"a": "b"}})
    after = server.send("PATCH", f"{path}/a", obj, media=APPLY, fieldManager="m").ok()["metadata"]
    for name in ("namespace", "uid", "creationTimestamp", "generation"):
        assert after.get(name) == before.get(name)


def test_an_applied_configuration_of_another_name_conflicts_first(server: Server, namespace: str) -> None:
    path = f"{CONFIG_MAPS.path(namespace)}/a"
    obj = {**with_metadata(CONFIG_MAPS, {"name": "a"}), "data": {"a": "b"}}
    server.send("PATCH", path, obj, media=APPLY, fieldManager="one").ok()
    other = {**with_metadata(CONFIG_MAPS, {"name": "b"}), "data": {"a": "c"}}
    server.send("PATCH", path, other, media=APPLY, fieldManager="two").refused(409, "Conflict")
    server.send("PATCH", path, other, media=APPLY, fieldManager="two", force="true").refused(400, "BadRequest")
    nameless = {"apiVersion": "v1", "kind": "ConfigMap"}
    server.send("PATCH", path + "b", nameless, media=APPLY, fieldManager="two").refused(400, "BadRequest")


def test_a_list_item_without_its_key_loses_the_managers_of_fields(server: Server, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    server.create(path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "labels": {"a": "b"}}})
    reply = server.send("PATCH", f"{path}/a", {"secrets": [{}]}, media=MERGE)
    assert reply.ok()["secrets"] == [{}]
    assert "managedFields" not in reply.body["metadata"]


@pytest.mark.parametrize("path", ["a", "a/status"])
def test_unknown_fields_are_reported_wherever_they_are(server: Server, namespace: str, path: str) -> None:
    """In the status of an object as well, and in its spec when only the status is written."""
    root = WIDGETS.path(namespace)
    made = server.create(root, WIDGETS.obj("a"))
    wrong = {**made, "spec": {**made["spec"], "other": 1}, "status": {"replicas": 2, "conditions": []}}
    reply = server.send("PUT", f"{root}/{path}", wrong, media=JSON, dryRun="All")
    expected = ['unknown field \\"spec.other\\"', 'unknown field \\"status.conditions\\"']
    assert (reply.status, sorted(reply.warnings)) == (200, expected)
    strict = server.send("PUT", f"{root}/{path}", wrong, fieldValidation="Strict")
    assert "strict decoding error" in strict.refused(400, "BadRequest")["message"]


@pytest.mark.parametrize("kind", ["ConfigMap", "Widget"])
@pytest.mark.parametrize(("verb", "code"), [("create", 400), ("merge", 422), ("JSON patch", 422)])
def test_a_wrong_type_is_reported_with_its_field(server: Server, place: str, kind: str, verb: str, code: int) -> None:
    reply = answer(server, KINDS[kind], place, verb, {"finalizers": "text"})
    assert reply.status == code
    assert "finalizers" in reply.body["message"]


def test_an_applied_owner_without_uid_is_refused_for_it(server: Server, namespace: str, sample: Sample) -> None:
    obj = sample.obj(ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}])
    reply = server.send("PATCH", sample.path(namespace, "a"), obj, media=APPLY, fieldManager="m")
    (cause,) = reply.refused(422, "Invalid")["details"]["causes"]
    assert cause["field"] == "metadata.ownerReferences.uid"


def test_a_version_of_0_is_none(server: Server, namespace: str, sample: Sample) -> None:
    """A custom resource is not updated without its version."""
    path = sample.path(namespace, "a")
    server.create(sample.path(namespace), sample.obj(resourceVersion="0"))
    for method, media, label in (("PUT", JSON, "b"), ("PATCH", MERGE, "c"), ("PATCH", APPLY, "d")):
        obj, force = sample.obj(resourceVersion="0", labels={"a": label}), "true" if media == APPLY else None
        reply = server.send(method, path, obj, media=media, fieldManager="one", force=force)
        if sample is WIDGETS:
            (cause,) = reply.refused(422, "Invalid")["details"]["causes"]
            assert (cause["field"], cause["message"]) == (
                "metadata.resourceVersion",
                "Invalid value: 0: must be specified for an update",
            )
        else:
            assert reply.ok()["metadata"]["labels"] == {"a": label}


def test_the_version_of_a_new_object_matters_only_where_it_is_stored(
    server: Server, namespace: str, sample: Sample
) -> None:
    path, obj = sample.path(namespace), sample.obj(resourceVersion="5")
    assert server.create(path, obj, dryRun="All")["metadata"]["resourceVersion"] == "5"
    server.send("POST", path, sample.obj("A", resourceVersion="5")).refused(422, "Invalid")
    refused = server.send("POST", path, obj)
    assert (refused.status, refused.body["message"]) == (
        500,
        "resourceVersion should not be set on objects to be created",
    )
