"""CustomResourceDefinitions: served at once, several versions, defaults, pruning, deletion."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.contract.client import MERGE, Reply, Server
from tests.contract.definitions import PATH, Definitions
from tests.contract.kinds import GADGETS, WIDGETS, crd
from tests.contract.recording import Recording, refusal
from tests.definitions import ANYTHING, version
from tests.waiting import eventually


def test_a_crd_is_stored_with_defaults(server: Server, definitions: Definitions, recording: Recording) -> None:
    name, plural = definitions.make([version("v1", ANYTHING)])
    found = server.get(f"{PATH}/{name}")
    found = json.loads(json.dumps(found).replace(plural.title(), "Kind"))
    recording.check("a minimal definition", found, plural)


def test_an_invalid_crd_is_refused(server: Server, recording: Recording) -> None:
    right = crd("things", "Thing", [version("v1", ANYTHING)])
    spec = right["spec"]
    wrong = {
        "another name": {**right, "metadata": {"name": "other.contract.example.com"}},
        "no versions": {**right, "spec": {**spec, "versions": []}},
        "no storage version": {**right, "spec": {**spec, "versions": [version("v1", ANYTHING, storage=False)]}},
        "no schema": {**right, "spec": {**spec, "versions": [{"name": "v1", "served": True, "storage": True}]}},
        "no scope": {**right, "spec": {name: value for name, value in spec.items() if name != "scope"}},
        "an unknown type": {
            **right,
            "spec": {**spec, "versions": [version("v1", {"type": "object", "properties": {"a": {"type": "text"}}})]},
        },
    }
    for name, document in wrong.items():
        reply = server.send("POST", PATH, document)
        recording.check(name, {"code": reply.status, "body": reply.body})


def with_version(**fields: Any) -> dict[str, Any]:
    found = crd("things", "Thing", [version("v1", ANYTHING)])
    (first,) = found["spec"]["versions"]
    given = {name: value for name, value in {**first, **fields}.items() if value is not None}
    return {**found, "spec": {**found["spec"], "versions": [given]}}


def with_names(**names: Any) -> dict[str, Any]:
    found = crd("things", "Thing", [version("v1", ANYTHING)])
    return {**found, "spec": {**found["spec"], "names": {**found["spec"]["names"], **names}}}


def with_versions(fields: list[dict[str, Any]]) -> dict[str, Any]:
    found = crd("things", "Thing", [])
    versions = [
        {**version(f"v{number}", ANYTHING, storage=number == 1), **each} for number, each in enumerate(fields, start=1)
    ]
    return {**found, "spec": {**found["spec"], "versions": versions}}


def with_rule(**fields: Any) -> dict[str, Any]:
    properties = {"a": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}}
    schema = {"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": "true", **fields}]}
    return with_version(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}})


CLIENT, REVIEWS = {"clientConfig": {"service": {"name": "a", "namespace": "b"}}}, {"conversionReviewVersions": ["v1"]}
CONVERSIONS: dict[str, dict[str, Any]] = {
    "without a strategy": {},
    "of an unknown strategy": {"strategy": "Both"},
    "with a client that is not called": {"strategy": "None", "webhook": {**CLIENT, **REVIEWS}},
    "without a client": {"strategy": "Webhook"},
    "without an address": {"strategy": "Webhook", "webhook": {"clientConfig": {}, **REVIEWS}},
    "with two addresses": {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": "https://a/b", **CLIENT["clientConfig"]}, **REVIEWS},
    },
    "in plain HTTP": {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "http://a"}, **REVIEWS}},
    "at port 0": {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": {"name": "", "namespace": "", "port": 0}}, **REVIEWS},
    },
    "without versions": {"strategy": "Webhook", "webhook": CLIENT},
    "of an unknown version": {"strategy": "Webhook", "webhook": {**CLIENT, "conversionReviewVersions": ["v2"]}},
    "of wrong versions": {"strategy": "Webhook", "webhook": {**CLIENT, "conversionReviewVersions": ["v1", "0v", "v1"]}},
}
TEXT = {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "text"}}}}
TWO = [version("v1", ANYTHING), version("v1", ANYTHING, storage=False)]
INVALID_DEFINITIONS = {
    "an empty definition": {},
    "a definition without a name": {**with_version(), "metadata": {}},
    "a definition without a spec": {"metadata": {"name": "things.contract.example.com"}},
    "a definition without names": with_names(plural=None, kind=None),
    "a version without a name": with_version(name=None),
    "a version with an invalid name": with_version(name="V 1"),
    "two versions of one name": {**with_version(), "spec": {**with_version()["spec"], "versions": TWO}},
    "an invalid plural": {**with_names(plural="a b"), "metadata": {"name": "a b.contract.example.com"}},
    "an invalid kind": with_names(kind="A b"),
    "an invalid singular": with_names(singular="A b"),
    "an invalid list kind": with_names(listKind="A b"),
    "a list kind that is the kind": with_names(listKind="Thing"),
    "invalid short names": with_names(shortNames=["A b"]),
    "invalid categories": with_names(categories=["A b"]),
    "an unknown scope": {**with_version(), "spec": {**with_version()["spec"], "scope": "Some"}},
    "an invalid group": {
        **with_version(),
        "metadata": {"name": "things.A B"},
        "spec": {**with_version()["spec"], "group": "A B"},
    },
    "a group without a dot": {
        **with_version(),
        "metadata": {"name": "things.example"},
        "spec": {**with_version()["spec"], "group": "example"},
    },
    "two versions with the same column": with_versions(
        [{"additionalPrinterColumns": [{"name": "a", "type": "text", "jsonPath": "a"}]}] * 2
    ),
    "two versions with a column of one": with_versions(
        [{}, {"additionalPrinterColumns": [{"name": "a", "type": "text", "jsonPath": ".a"}]}]
    ),
    "two versions with the same scale": with_versions([{"subresources": {"scale": {}}}] * 2),
    "two versions with a scale of one": with_versions([{"subresources": {"scale": {}}}, {}]),
    "two versions with the same wrong type": with_versions([{"schema": TEXT}] * 2),
    "two versions with a wrong type in one": with_versions([{"schema": TEXT}, {}]),
    "a column without a name": with_version(additionalPrinterColumns=[{"type": "string", "jsonPath": ".a"}]),
    "a column of an unknown type": with_version(
        additionalPrinterColumns=[{"name": "a", "type": "text", "jsonPath": ".a"}]
    ),
    "a column without a path": with_version(additionalPrinterColumns=[{"name": "a", "type": "string"}]),
    "a scale without paths": with_version(subresources={"scale": {}}),
    **{
        f"a conversion {title}": {**with_version(), "spec": {**with_version()["spec"], "conversion": conversion}}
        for title, conversion in CONVERSIONS.items()
    },
    "a rule with an unknown reason": with_rule(reason="InternalError"),
    "a rule for a field that there is not": with_rule(fieldPath=".a.b"),
    "a rule for an item": with_rule(fieldPath=".l[0]"),
    "a scale with a path elsewhere": with_version(
        subresources={"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b", "labelSelectorPath": ".c"}}
    ),
}


@pytest.mark.parametrize("name", INVALID_DEFINITIONS)
def test_an_invalid_definition_is_answered_with_its_causes(server: Server, name: str, recording: Recording) -> None:
    reply = server.send("POST", PATH, INVALID_DEFINITIONS[name], dryRun="All")
    recording.check(name, refusal(reply))


def test_fields_beside_declared_ones_may_have_any_values(server: Server) -> None:
    """`additionalProperties: true` beside `properties`; any other value is refused there."""
    for others, accepted in ((True, True), (False, False), ({"type": "string"}, False)):
        spec = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": others}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        assert (server.send("POST", PATH, with_version(schema=schema), dryRun="All").status == 201) == accepted


def test_a_resource_has_no_other_in_its_metadata(server: Server) -> None:
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    for name, accepted in (("spec", True), ("metadata", False)):
        outer = {**inner, "properties": {name: inner}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": outer}}}
        assert (server.send("POST", PATH, with_version(schema=schema), dryRun="All").status == 201) == accepted


def test_the_kind_and_the_metadata_of_an_embedded_resource_are_validated(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    resource = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    spec = {"type": "object", "properties": {"r": resource, "l": {"type": "array", "items": resource}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    _, plural = definitions.make([version("v1", schema)])

    def wrong(**fields: Any) -> set[str]:
        obj = {"apiVersion": "contract.example.com/v1", "kind": plural.title(), "metadata": {"name": "a"}}
        path = f"/apis/contract.example.com/v1/namespaces/{namespace}/{plural}"
        reply = server.send("POST", path, {**obj, "spec": fields}, dryRun="All")
        causes = reply.refused(422, "Invalid")["details"]["causes"] if reply.status >= 400 else []
        return {f"{each['field']}: {each['message'].partition(';')[0][:40]}" for each in causes}

    good = {"apiVersion": "v1", "kind": "Pod"}
    assert wrong(r=good, l=[{**good, "metadata": {"name": "A_b", "labels": {"a": "b"}}}]) == set()
    assert wrong(r={}, l=[{}]) == {
        f"spec.{place}.{name}: Required value" for place in ("r", "l[0]") for name in ("apiVersion", "kind")
    }
    assert wrong(r={"apiVersion": "", "kind": ""}) == {
        f'spec.r.{name}: Invalid value: "": must not be empty' for name in ("apiVersion", "kind")
    }
    assert wrong(r={"apiVersion": "a/b/c", "kind": "a b"}) == {
        'spec.r.apiVersion: Invalid value: "a/b/c": unexpected Group',
        'spec.r.kind: Invalid value: "a b": may have mixed cas',
    }
    assert wrong(r={**good, "metadata": {"labels": {"a b": "c"}, "annotations": {"d e": "f"}}}) == {
        'spec.r.metadata.labels: Invalid value: "a b": name part must con',
        'spec.r.metadata.annotations: Invalid value: "d e": name part must con',
    }


def test_objects_are_readable_in_each_served_version(server: Server, namespace: str) -> None:
    made = server.create(GADGETS.path(namespace), GADGETS.obj())
    second = GADGETS.path(namespace, "a").replace("/v1/", "/v2/")
    found = server.get(second)
    assert found["apiVersion"] == "contract.example.com/v2"
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    changed = server.merge(second, {"spec": {"size": 7}})
    assert (changed["apiVersion"], changed["spec"]) == ("contract.example.com/v2", {"size": 7})
    first = server.get(GADGETS.path(namespace, "a"))
    assert (first["apiVersion"], first["spec"]) == ("contract.example.com/v1", {"size": 7})
    server.replace(second, {**changed, "spec": {"size": 8}})
    listed = server.get(second.removesuffix("/a"))
    assert [each["apiVersion"] for each in listed["items"]] == ["contract.example.com/v2"]
    with server.watch(second.removesuffix("/a")) as watch:
        assert watch.next()[1]["apiVersion"] == "contract.example.com/v2"


def test_schema_defaults_are_filled_in(server: Server, namespace: str) -> None:
    given = {**WIDGETS.obj(), "spec": {"size": 1, "parts": [{"name": "x"}], "note": None, "tags": None}}
    found = server.create(WIDGETS.path(namespace), given)
    assert found["spec"] == {
        "size": 1,
        "colour": "red",
        "replicas": 1,
        "parts": [{"name": "x", "count": 1}],
        "note": None,
    }
    assert server.merge(WIDGETS.path(namespace, "a"), {"spec": {"replicas": None}})["spec"]["replicas"] == 1


def test_unknown_fields_are_pruned(server: Server, namespace: str) -> None:
    given = {**WIDGETS.obj(), "more": 1}
    given["spec"] = {"size": 1, "other": 2, "options": {"any": {"thing": 1}}, "parts": [{"name": "x", "y": 1}]}
    reply = server.send("POST", WIDGETS.path(namespace), given)
    found = reply.ok()
    assert "more" not in found
    assert "other" not in found["spec"]
    assert found["spec"]["parts"] == [{"name": "x", "count": 1}]
    assert found["spec"]["options"] == {"any": {"thing": 1}}
    assert reply.warnings == (
        'unknown field \\"more\\"',
        'unknown field \\"spec.other\\"',
        'unknown field \\"spec.parts[0].y\\"',
    )
    reply = server.send("POST", WIDGETS.path(namespace), {**given, "metadata": {"name": "b"}}, fieldValidation="Ignore")
    assert reply.status == 201
    assert not reply.warnings


def test_whole_floats_are_stored_as_integers(server: Server, namespace: str) -> None:
    body = (
        '{"apiVersion":"contract.example.com/v1","kind":"Widget","metadata":{"name":"a"},'
        '"spec":{"size":3.0,"options":{"a":1.0,"b":1.5,"c":1e3}}}'
    )
    text = server.send("POST", WIDGETS.path(namespace), body).text
    assert '"size":3,' in text or '"size":3}' in text
    assert '"b":1.5' in text


def test_a_cluster_scoped_custom_kind_has_no_namespace(server: Server, definitions: Definitions) -> None:
    _, plural = definitions.make([version("v1", ANYTHING)], scope="Cluster")
    path = f"/apis/contract.example.com/v1/{plural}"
    obj = {"apiVersion": "contract.example.com/v1", "kind": plural.title(), "metadata": {"name": "a"}}
    found = server.create(path, obj)
    assert "namespace" not in found["metadata"]
    assert server.get(f"{path}/a") == found
    assert server.send("GET", f"/apis/contract.example.com/v1/namespaces/default/{plural}").status == 404


def test_a_version_that_is_not_served_is_not_found_until_it_is_served(server: Server, definitions: Definitions) -> None:
    versions = [version("v1", ANYTHING), {**version("v2", ANYTHING, storage=False), "served": False}]
    name, plural = definitions.make(versions)
    assert server.send("GET", f"/apis/contract.example.com/v2/{plural}").status == 404
    definition = server.get(f"{PATH}/{name}")
    definition["spec"]["versions"][1]["served"] = True
    server.replace(f"{PATH}/{name}", definition)
    eventually("v2 is served", lambda: server.exists(f"/apis/contract.example.com/v2/{plural}"))


def test_a_changed_schema_takes_effect(server: Server, namespace: str, definitions: Definitions) -> None:
    closed = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    name, plural = definitions.make([version("v1", closed)])
    path = f"/apis/contract.example.com/v1/namespaces/{namespace}/{plural}"
    obj = {
        "apiVersion": "contract.example.com/v1",
        "kind": plural.title(),
        "metadata": {"name": "x"},
        "spec": {"a": 1, "b": 2},
    }
    assert server.create(path, obj)["spec"] == {"a": 1}
    definition = server.get(f"{PATH}/{name}")
    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["b"] = {"type": "integer", "default": 5}
    assert server.replace(f"{PATH}/{name}", definition)["metadata"]["generation"] == 2
    eventually("the default", lambda: server.get(f"{path}/x")["spec"] == {"a": 1, "b": 5})


def test_deleting_a_crd_deletes_its_objects(
    server: Server, namespace: str, definitions: Definitions, recording: Recording
) -> None:
    name, plural = definitions.make([version("v1", ANYTHING)])
    path = f"/apis/contract.example.com/v1/namespaces/{namespace}/{plural}"
    obj = {"apiVersion": "contract.example.com/v1", "kind": plural.title(), "metadata": {"name": "a"}}
    server.create(path, obj)
    server.create(path, {**obj, "metadata": {"name": "b", "finalizers": ["example.com/stay"]}})
    deleted = server.delete(f"{PATH}/{name}")
    assert deleted["metadata"]["deletionTimestamp"]
    assert deleted["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    eventually("a is gone", lambda: not server.exists(f"{path}/a"))
    eventually("b ends", lambda: server.get(f"{path}/b")["metadata"].get("deletionTimestamp"))

    def refused_creation() -> Reply | None:
        reply = server.send("POST", path, {**obj, "metadata": {"name": "c"}}, dryRun="All")
        return reply if reply.status >= 400 else None

    refused = eventually("creations are refused", refused_creation)
    recording.check("create while the definition ends", {"code": refused.status, "body": refused.body}, plural)
    server.send("PATCH", f"{path}/b", {"metadata": {"finalizers": None}}, media=MERGE).ok()
    eventually("the definition is gone", lambda: not server.exists(f"{PATH}/{name}"))
    eventually("it is not served", lambda: server.send("GET", path).status == 404)


def test_discovery_lists_the_names_of_a_crd(server: Server, definitions: Definitions) -> None:
    names = {"plural": "x", "kind": "X", "shortNames": ["wi"], "categories": ["all"]}
    plural = f"k{uuid.uuid4().hex[:8]}s"
    names |= {"plural": plural, "kind": plural.title()}
    made = crd(plural, plural.title(), [version("v1", ANYTHING, subresources={"status": {}})], names=names)
    definitions.made.append(made["metadata"]["name"])
    server.create(PATH, made)

    def discovered() -> list[Any]:
        document = server.get("/apis/contract.example.com/v1")
        return [each for each in document["resources"] if each["name"].partition("/")[0] == plural]

    eventually("it is discovered", discovered)
    first, second = discovered()
    first.pop("storageVersionHash", None)
    assert sorted(first.pop("verbs")) == [
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
    ]  # fmt: skip
    assert first == {
        "name": plural,
        "singularName": plural.lower(),
        "namespaced": True,
        "kind": plural.title(),
        "shortNames": ["wi"],
        "categories": ["all"],
    }
    assert second["name"] == f"{plural}/status"
    assert sorted(second["verbs"]) == ["get", "patch", "update"]


def test_the_watches_of_a_kind_end_when_its_crd_is_deleted(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    name, plural = definitions.make([version("v1", ANYTHING)])
    path = f"/apis/contract.example.com/v1/namespaces/{namespace}/{plural}"
    version_now = server.get(path)["metadata"]["resourceVersion"]
    with server.watch(path, resourceVersion=version_now) as watch:
        server.delete(f"{PATH}/{name}")
        assert watch.rest() == []


# -- names -------------------------------------------------------------------------------------------------------------


def named(group: str, plural: str, kind: str, **names: Any) -> dict[str, Any]:
    return crd(plural, kind, [version("v1", ANYTHING)], group=group, names={"plural": plural, "kind": kind, **names})


def conditions(server: Server, path: str) -> dict[str, tuple[str, str, str]]:
    found = (server.get(path).get("status") or {}).get("conditions") or []
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}


def test_the_identity_of_a_served_crd_cannot_change(server: Server, definitions: Definitions) -> None:
    name, _ = definitions.make([version("v1", ANYTHING)])
    change = {"spec": {"scope": "Cluster", "group": "other.example.com", "names": {"kind": "X", "plural": "x"}}}
    reply = server.send("PATCH", f"{PATH}/{name}", change, media=MERGE)
    assert [(each["field"], each["message"]) for each in reply.refused(422, "Invalid")["details"]["causes"]] == [
        ("spec.scope", 'Invalid value: "Cluster": field is immutable'),
        ("spec.names.kind", 'Invalid value: "X": field is immutable'),
        ("spec.group", 'Invalid value: "other.example.com": field is immutable'),
        ("spec.names.plural", 'Invalid value: "x": field is immutable'),
    ]
