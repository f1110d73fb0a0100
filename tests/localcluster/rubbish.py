"""Random requests that are mostly wrong: of any method, for any path, with parts of a body replaced by other values."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from tests.contract.client import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Reply, Server
from tests.contract.kinds import CRDS
from tests.contract.walk.changes import operations
from tests.contract.walk.kinds import KINDS
from tests.contract.walk.making import Chance

VALUES = (
    None, "", 0, -1, 1.5, True, [], {}, "a", [None], [1], {"a": None}, [{}], "x" * 300, 2**62, 2**70, "\0", "é",
)  # fmt: skip
KEYS = ("", "a", "kind", "metadata", "spec", "name", "items", "status")
BODIES = ("", "{", "[]", "null", "a: b: c", '{"a":1,"a":2}', "1e999", '{"kind":"Pod"}', "\0")
METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET", "HEAD", "OPTIONS")
MEDIA = (JSON, MERGE, JSON_PATCH, STRATEGIC, APPLY, "application/yaml", "application/vnd.kubernetes.protobuf", "x", "")
ACCEPTED = (
    JSON,
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "x",
)
QUERIES: tuple[dict[str, str], ...] = (
    {},
    {"dryRun": "All"},
    {"fieldManager": "m", "force": "true"},
    {"fieldValidation": "Strict"},
    {"labelSelector": "a in (b"},
    {"fieldSelector": "spec.x!=a,"},
    {"limit": "1", "continue": "abc"},
    {"resourceVersion": "x"},
    {"resourceVersionMatch": "Exact", "resourceVersion": "1"},
    {"timeout": "1h"},
    {"gracePeriodSeconds": str(2**62)},
    {"propagationPolicy": "Foreground"},
)
_SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 2}}
_TOKEN = {"spec": {"audiences": ["a"], "expirationSeconds": 600, "boundObjectRef": {"kind": "Pod", "name": "a"}}}
_OF_SUBRESOURCES: dict[str, Any] = {"/scale": _SCALE, "/token": _TOKEN}
SUBRESOURCES = ("", "", "", "/status", *_OF_SUBRESOURCES, "/log", "/x")
_DELETION = {"gracePeriodSeconds": 0, "propagationPolicy": "Orphan", "preconditions": {"resourceVersion": "1"}}
_ACCESS = {"spec": {"user": "a", "resourceAttributes": {"verb": "get", "labelSelector": {"rawSelector": "a"}}}}
WITHOUT_NAMESPACE: dict[str, Any] = {
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": CRDS[0],
    "/apis/authorization.k8s.io/v1/subjectaccessreviews": _ACCESS,
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": {"spec": {"namespace": "default"}},
    "/apis/authentication.k8s.io/v1/tokenreviews": {"spec": {"token": "a"}},
    "/api/v1/namespaces": {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"finalizers": ["kubernetes"]}},
    "/api/v1/nodes": {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "1"}}},
}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: Any
    media: str
    accept: str
    query: dict[str, str]

    def send(self, server: Server) -> Reply:
        body = None if self.method in ("GET", "HEAD") else self.body
        return server.send(self.method, self.path, body, media=self.media, accept=self.accept, **self.query)


def any_request(chance: Chance) -> Request:
    pick = chance.random.choice
    path, obj = _place(chance)
    method = pick(METHODS)
    if method != "POST" or chance.happens(0.3):
        subresource = pick(SUBRESOURCES)
        path, obj = f"{path}/{pick(('a', 'a', 'a', 'b'))}{subresource}", _OF_SUBRESOURCES.get(subresource, obj)
    media = pick(MEDIA) if method == "PATCH" or chance.happens(0.1) else JSON
    if method == "DELETE":
        obj = _DELETION
    body = operations(chance, obj) if media == JSON_PATCH else obj
    body = pick(BODIES) if chance.happens(0.03) else changed(chance, body)
    accept = pick(ACCEPTED) if chance.happens(0.3) else JSON
    return Request(method, path, body, media, accept, pick(QUERIES) if chance.happens(0.4) else {})


def _place(chance: Chance) -> tuple[str, dict[str, Any]]:
    """The path of a collection, and an object of it."""
    if chance.happens(0.2):
        path = chance.random.choice(tuple(WITHOUT_NAMESPACE))
        return path, WITHOUT_NAMESPACE[path]
    plural = chance.random.choice(tuple(KINDS))
    version, kind, make = KINDS[plural]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **make(chance)}
    return f"{root}/namespaces/{'nowhere' if chance.happens(0.05) else 'default'}/{plural}", obj


def changed(chance: Chance, value: Any, share: float = 0.03) -> Any:
    """The value with some of its parts gone, renamed or replaced."""
    if chance.happens(share):
        return copy.deepcopy(chance.random.choice(VALUES))
    if isinstance(value, dict):
        found = {
            chance.random.choice(KEYS) if chance.happens(share / 2) else name: changed(chance, member, share)
            for name, member in value.items()
            if not chance.happens(share)
        }
        return {**found, chance.random.choice(KEYS): None} if chance.happens(share) else found
    if isinstance(value, list):
        return [changed(chance, item, share) for item in value if not chance.happens(share)]
    return value
