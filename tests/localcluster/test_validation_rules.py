"""CEL rules of CRDs are stored, not evaluated, and the answer to their writer has a warning."""

from __future__ import annotations

import json
from typing import Any

import orjson
import yaml

from ruleop.localcluster import LocalCluster
from ruleop.localcluster.http.message import Request, Response
from tests import definitions

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def definition(*rules: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    if rules:
        spec["x-kubernetes-validations"] = [{"rule": each} for each in rules]
    found: dict[str, Any] = yaml.safe_load(definitions.definition("Thing", spec=json.dumps(spec), status=""))
    return found


def warning(cluster: LocalCluster, method: str, path: str, body: Any, media: str = "application/json") -> str:
    answer = cluster.api.handle(Request(method, path, {}, {"content-type": media}, orjson.dumps(body)))
    assert isinstance(answer, Response)
    assert answer.status < 300
    return answer.headers.get("Warning", "")


def test_a_new_crd_with_rules_is_answered_with_a_warning() -> None:
    found = warning(LocalCluster(), "POST", PATH, definition("self.a > 1", "self.a < 9"))
    assert found == (
        '299 - "CEL rules are not evaluated by this local cluster '
        '(2, the first at spec.versions[0].schema.openAPIV3Schema.properties.spec)"'
    )


def test_a_crd_without_rules_is_answered_without_one() -> None:
    assert not warning(LocalCluster(), "POST", PATH, definition())


def test_only_a_change_of_the_rules_warns_again() -> None:
    cluster = LocalCluster()
    warning(cluster, "POST", PATH, definition("self.a > 1"))
    path = f"{PATH}/things.example.com"
    assert not warning(cluster, "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert not warning(cluster, "PATCH", path, definition("self.a > 1"), MERGE)
    assert "not evaluated" in warning(cluster, "PATCH", path, definition("self.a > 2"), MERGE)


def test_an_object_that_breaks_a_rule_is_stored() -> None:
    cluster = LocalCluster()
    warning(cluster, "POST", PATH, definition("self.a > 1"))
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"a": 0}}
    assert not warning(cluster, "POST", "/apis/example.com/v1/namespaces/default/things", thing)
