"""The answers of the server to common errors, word for word."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.contract.client import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Server
from tests.contract.kinds import CONFIG_MAPS, GADGETS, INGRESSES, WIDGETS, config_map
from tests.contract.recording import Recording

MAPS, WIDGET, INGRESS = (each.path("NS") for each in (CONFIG_MAPS, WIDGETS, INGRESSES))
ANY: Any = object()


@dataclass(frozen=True)
class Mistake:
    """A request. `NS` in its path is the namespace of the test, in which are a ConfigMap, an Ingress and a Widget, all
    called `a`."""

    method: str
    path: str
    body: Any = None
    media: str = JSON
    accept: str = JSON


def widget(name: str = "b", **spec: Any) -> dict[str, Any]:
    return {**WIDGETS.obj(name), "spec": {"size": 3, **spec}}


def named(name: Any) -> dict[str, Any]:
    return {**config_map(), "metadata": {"name": name}}


MISTAKES = {
    # paths
    "no such path": Mistake("GET", "/nowhere"),
    "no such group": Mistake("GET", "/apis/example.org/v1/things"),
    "no such version": Mistake("GET", "/apis/apps/v9/deployments"),
    "no such resource": Mistake("GET", "/api/v1/namespaces/NS/things"),
    "no such custom resource": Mistake("GET", "/apis/contract.example.com/v1/namespaces/NS/things"),
    "no such custom version": Mistake("GET", "/apis/contract.example.com/v9/namespaces/NS/widgets"),
    "no such subresource": Mistake("GET", f"{MAPS}/a/status"),
    "no such custom subresource": Mistake("GET", f"{WIDGET}/a/log"),
    "no status subresource": Mistake("PUT", f"{GADGETS.path('NS')}/a/status", GADGETS.obj()),
    "a cluster's kind in a namespace": Mistake("GET", "/api/v1/namespaces/NS/nodes"),
    "a namespaced object without namespace": Mistake("GET", "/api/v1/configmaps/a"),
    "a custom object without namespace": Mistake("GET", "/apis/contract.example.com/v1/widgets/a"),
    # methods
    "POST to an object": Mistake("POST", f"{MAPS}/a", config_map()),
    "PUT to a collection": Mistake("PUT", MAPS, config_map()),
    "PATCH of a collection": Mistake("PATCH", MAPS, {}, MERGE),
    "POST to all namespaces": Mistake("POST", "/api/v1/configmaps", config_map()),
    "POST to all namespaces, custom": Mistake("POST", "/apis/contract.example.com/v1/widgets", widget()),
    "POST to a custom object": Mistake("POST", f"{WIDGET}/a?dryRun=All", widget("c")),
    "DELETE of a status": Mistake("DELETE", f"{WIDGET}/a/status"),
    # what is not there, and what is
    "not found": Mistake("GET", f"{MAPS}/missing"),
    "not found, custom": Mistake("GET", f"{WIDGET}/missing"),
    "not found, with a group": Mistake("GET", f"{INGRESS}/missing"),
    "delete what is missing": Mistake("DELETE", f"{MAPS}/missing"),
    "patch what is missing": Mistake("PATCH", f"{MAPS}/missing", {}, MERGE),
    "replace what is missing": Mistake("PUT", f"{WIDGET}/missing", widget("missing")),
    "replace with a version what is missing": Mistake(
        "PUT", f"{INGRESS}/missing", INGRESSES.obj("missing", resourceVersion="1")
    ),
    "already exists": Mistake("POST", MAPS, config_map()),
    "already exists, custom": Mistake("POST", WIDGET, widget("a")),
    "no such namespace": Mistake("POST", "/api/v1/namespaces/missing/configmaps", config_map()),
    "no such namespace, custom": Mistake("POST", "/apis/contract.example.com/v1/namespaces/missing/widgets", widget()),
    # bodies
    "another kind": Mistake("POST", MAPS, {**config_map("b"), "kind": "Secret"}),
    "another kind, custom": Mistake("POST", WIDGET, {**widget(), "kind": "Gadget"}),
    "another version": Mistake("POST", MAPS, {**config_map("b"), "apiVersion": "v2"}),
    "another version, custom": Mistake("POST", WIDGET, {"apiVersion": "contract.example.com/v2", "kind": "Widget"}),
    "another group": Mistake("POST", INGRESS, {**INGRESSES.obj("b"), "apiVersion": "extensions/v1"}),
    "no kind, custom": Mistake("POST", WIDGET, {"metadata": {"name": "b"}, "spec": {"size": 1}}),
    "another namespace": Mistake("POST", MAPS, config_map("b", namespace="other")),
    "another namespace, custom": Mistake("POST", WIDGET, {**widget(), "metadata": {"name": "b", "namespace": "other"}}),
    "another name in a PUT": Mistake("PUT", f"{MAPS}/a", config_map("b")),
    "another name in a PUT, custom": Mistake("PUT", f"{WIDGET}/a", widget("b")),
    "no name in a PUT": Mistake("PUT", f"{MAPS}/a", {**config_map(), "metadata": {}}),
    "another namespace in a PUT": Mistake("PUT", f"{MAPS}/a", config_map(namespace="other")),
    "a namespace on a cluster's kind": Mistake(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"namespace": "x"}}
    ),
    "no JSON": Mistake("POST", MAPS, "{oh"),
    "no JSON, custom": Mistake("POST", WIDGET, "{oh"),
    "no body": Mistake("POST", MAPS, ""),
    "a list": Mistake("POST", MAPS, "[]"),
    "a number": Mistake("POST", WIDGET, "17"),
    "metadata is text": Mistake("POST", WIDGET, {**widget(), "metadata": "text"}),
    "a version at creation": Mistake("POST", MAPS, config_map("b", resourceVersion="1")),
    # media types
    "a body in XML": Mistake("POST", MAPS, "<a/>", "application/xml"),
    "a body in XML, custom": Mistake("POST", WIDGET, "<a/>", "application/xml"),
    "a body in XML to PUT": Mistake("PUT", f"{MAPS}/a", "<a/>", "text/plain"),
    "a patch in JSON": Mistake("PATCH", f"{MAPS}/a", {}, JSON),
    "a patch in JSON, custom": Mistake("PATCH", f"{WIDGET}/a", {}, JSON),
    "a strategic patch, custom": Mistake("PATCH", f"{WIDGET}/a", {}, STRATEGIC),
    "an answer in XML": Mistake("GET", f"{MAPS}/a", accept="application/xml"),
    "an answer in XML, custom": Mistake("GET", f"{WIDGET}/a", accept="application/xml"),
    "an answer in an unknown form": Mistake("GET", MAPS, accept="application/json;as=Thing;v=v1;g=meta.k8s.io"),
    # patches
    "a JSON patch that is none": Mistake("PATCH", f"{MAPS}/a", {"a": 1}, JSON_PATCH),
    "a JSON patch of what is missing": Mistake("PATCH", f"{MAPS}/a", [{"op": "remove", "path": "/data/x"}], JSON_PATCH),
    "a JSON patch whose test fails": Mistake(
        "PATCH", f"{MAPS}/a", [{"op": "test", "path": "/metadata/name", "value": "x"}], JSON_PATCH
    ),
    "a merge patch that is a list": Mistake("PATCH", f"{MAPS}/a", [], MERGE),
    "a merge patch that is no JSON": Mistake("PATCH", f"{WIDGET}/a", "{oh", MERGE),
    "a patch of the name": Mistake("PATCH", f"{MAPS}/a", {"metadata": {"name": "b"}}, MERGE),
    "a patch of the name, custom": Mistake("PATCH", f"{WIDGET}/a", {"metadata": {"name": "b"}}, MERGE),
    "a patch of the namespace": Mistake("PATCH", f"{MAPS}/a", {"metadata": {"namespace": "b"}}, MERGE),
    "a patch of the kind": Mistake("PATCH", f"{WIDGET}/a", {"kind": "Gadget"}, MERGE),
    "a patch of the uid": Mistake("PATCH", f"{WIDGET}/a", {"metadata": {"uid": "b"}}, MERGE),
    "a patch of the version": Mistake("PATCH", f"{MAPS}/a", {"metadata": {"resourceVersion": "1"}}, MERGE),
    "apply without a manager": Mistake("PATCH", f"{MAPS}/a", config_map(), APPLY),
    # queries
    "an unknown dry run": Mistake("POST", f"{MAPS}?dryRun=Some", config_map("b")),
    "an unknown dry run of a patch": Mistake("PATCH", f"{MAPS}/a?dryRun=Some", {}, MERGE),
    "an unknown dry run of a delete": Mistake("DELETE", f"{MAPS}/a?dryRun=Some"),
    "an unknown field validation": Mistake("POST", f"{MAPS}?fieldValidation=Some", config_map("b")),
    "a manager's name that is too long": Mistake("POST", f"{MAPS}?fieldManager={'m' * 129}", config_map("b")),
    "an unknown propagation": Mistake("DELETE", f"{MAPS}/a?propagationPolicy=Some"),
    "force without apply": Mistake("PATCH", f"{MAPS}/a?force=true", {}, MERGE),
    "a label selector that is none": Mistake("GET", f"{MAPS}?labelSelector=a+b"),
    "a field selector that is none": Mistake("GET", f"{MAPS}?fieldSelector=a"),
    "an unknown field in a selector, custom": Mistake("GET", f"{WIDGET}?fieldSelector=spec.size%3D3"),
    "a version that is none": Mistake("GET", f"{MAPS}?resourceVersion=x"),
    "a limit that is none": Mistake("GET", f"{MAPS}?limit=x"),
    "a continue token that is none": Mistake("GET", f"{MAPS}?limit=1&continue=x"),
    "initial events without match": Mistake("GET", f"{MAPS}?watch=true&sendInitialEvents=true"),
    "a watch from a version that is none": Mistake("GET", f"{MAPS}?watch=true&resourceVersion=x"),
    # names and metadata
    "no name": Mistake("POST", MAPS, {**config_map(), "metadata": {}}),
    "no name, custom": Mistake("POST", WIDGET, {**widget(), "metadata": {}}),
    "capitals in a name": Mistake("POST", MAPS, named("Web")),
    "capitals in a name, custom": Mistake("POST", WIDGET, widget("Web")),
    "a dot at the end of a name": Mistake("POST", MAPS, named("web.")),
    "a long name": Mistake("POST", MAPS, named("x" * 254)),
    "a long name, custom": Mistake("POST", WIDGET, widget("x" * 254)),
    "a name that is a number": Mistake("POST", WIDGET, {**widget(), "metadata": {"name": 3}}),
    "a slash in a name": Mistake("POST", MAPS, named("a/b")),
    "a namespace with a dot": Mistake(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}
    ),
    "a generateName with capitals": Mistake("POST", MAPS, {**config_map(), "metadata": {"generateName": "A-"}}),
    "a label's key": Mistake("POST", MAPS, config_map("b", labels={"a b": "c"})),
    "a label's value": Mistake("POST", MAPS, config_map("b", labels={"a": "-c"})),
    "a label's long value": Mistake("POST", WIDGET, WIDGETS.obj("b", labels={"a": "c" * 64})),
    "a label that is a number": Mistake("POST", WIDGET, WIDGETS.obj("b", labels={"a": 3})),
    "an annotation's key": Mistake("POST", MAPS, config_map("b", annotations={"a b": "c"})),
    "annotations that are too large": Mistake("POST", MAPS, config_map("b", annotations={"a": "c" * 262145})),
    "a finalizer without domain": Mistake("POST", MAPS, config_map("b", finalizers=["stay"])),
    "a finalizer that is empty": Mistake("POST", WIDGET, WIDGETS.obj("b", finalizers=[""])),
    "an owner without uid": Mistake(
        "POST", MAPS, config_map("b", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}])
    ),
    "two controllers": Mistake(
        "POST",
        MAPS,
        config_map(
            "b",
            ownerReferences=[
                {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "controller": True}
                for name in ("a", "b")
            ],
        ),
    ),
    # schemas of custom resources
    "a required field is missing": Mistake("POST", WIDGET, {**widget(), "spec": {}}),
    "no spec is no error": Mistake("POST", f"{WIDGET}?dryRun=All", {**widget("c"), "spec": None}),
    "text instead of a number": Mistake("POST", WIDGET, widget(size="3")),
    "a fraction instead of an integer": Mistake("POST", WIDGET, widget(size=3.5)),
    "a number instead of text": Mistake("POST", WIDGET, widget(colour=3)),
    "an object instead of a list": Mistake("POST", WIDGET, widget(parts={})),
    "too small": Mistake("POST", WIDGET, widget(size=0)),
    "too large": Mistake("POST", WIDGET, widget(size=11)),
    "not in the enumeration": Mistake("POST", WIDGET, widget(colour="green")),
    "does not match the pattern": Mistake("POST", WIDGET, widget(parts=[{"name": "A1"}])),
    "too many items": Mistake("POST", WIDGET, widget(parts=[{"name": each} for each in "abcd"])),
    "the same item twice": Mistake("POST", WIDGET, widget(tags=["x", "x"])),
    "the same key twice": Mistake("POST", WIDGET, widget(parts=[{"name": "x"}, {"name": "x"}])),
    "an item that is not an object": Mistake("POST", WIDGET, widget(parts=[{"name": "x"}, 1])),
    "a map for a key, applied": Mistake(
        "PATCH", f"{WIDGET}/a?fieldManager=m", widget("a", parts=[{"name": {"a": [1]}}]), APPLY
    ),
    "the same item three times": Mistake("POST", WIDGET, widget(tags=["x", "x", "x"])),
    "a key is missing": Mistake("POST", WIDGET, widget(parts=[{"count": 1}])),
    "an item that is too long": Mistake("POST", WIDGET, widget(tags=["too long"])),
    "null in the place of a number": Mistake("POST", WIDGET, widget(size=None)),
    "null in the place of a list is no error": Mistake("POST", f"{WIDGET}?dryRun=All", widget(tags=None)),
    "two mistakes": Mistake("POST", WIDGET, widget(size=0, colour="green")),
    "a mistake in a status": Mistake("PUT", f"{WIDGET}/a/status", {**widget("a"), "status": {"replicas": "x"}}),
    "a mistake in a patch": Mistake("PATCH", f"{WIDGET}/a", {"spec": {"size": 99}}, MERGE),
    "a boolean in a map of text": Mistake("POST", WIDGET, widget(labels={"a": True})),
    "a fraction for an int or string": Mistake("POST", WIDGET, widget(port=1.5)),
    "unknown fields, strict": Mistake("POST", f"{WIDGET}?fieldValidation=Strict", {**widget(other=1), "more": 2}),
    "unknown fields, with a warning": Mistake("POST", f"{WIDGET}?dryRun=All", {**widget(other=1), "more": 2}),
    "an unknown field of metadata, strict": Mistake(
        "POST", f"{WIDGET}?fieldValidation=Strict", WIDGETS.obj("b", color="red")
    ),
    # the scale subresource
    "replicas below zero": Mistake("PATCH", f"{WIDGET}/a/scale", {"spec": {"replicas": -1}}, MERGE),
    "a scale of another name": Mistake(
        "PUT",
        f"{WIDGET}/a/scale",
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "b"}, "spec": {"replicas": 1}},
    ),
}


@pytest.fixture(scope="module")
def place(server: Server) -> Iterator[str]:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    server.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for sample in (CONFIG_MAPS, INGRESSES, WIDGETS):
        obj = sample.obj()
        if not sample.spec:
            del obj["spec"]
        server.create(sample.path(name), obj)
    yield name
    server.send("DELETE", f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("name", MISTAKES)
def test_an_invalid_request_is_answered_with_a_status(
    server: Server, place: str, name: str, recording: Recording
) -> None:
    mistake = MISTAKES[name]
    path = re.sub(r"\bNS\b", place, mistake.path)
    reply = server.send(mistake.method, path, mistake.body, media=mistake.media, accept=mistake.accept)
    answer = {"code": reply.status, "body": reply.body if reply.body is not None else reply.text}
    if reply.warnings:
        answer["warnings"] = list(reply.warnings)
    if isinstance(reply.body, dict) and len(causes := (reply.body.get("details") or {}).get("causes") or []) > 1:
        # Fields are checked in the order of a map in Go, which is random.
        causes.sort(key=lambda cause: (cause["field"], cause["reason"]))
        reply.body["message"] = reply.body["message"].partition(" is invalid")[0]
    answer = json.loads(re.sub(r"A-\w{5}", "A-SUFFIX", json.dumps(answer)))
    recording.check(name, answer, place)
