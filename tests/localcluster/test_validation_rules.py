"""CEL rules of CRDs are evaluated, and the writer of a CRD is warned of those that are not. The answers to objects that
break rules are in tests/contract."""

from __future__ import annotations

import json
from typing import Any

import orjson
import yaml

from ruleop.localcluster import LocalCluster
from ruleop.localcluster.http import Request, Response
from tests import definitions

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def definition(*rules: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    if rules:
        spec["x-kubernetes-validations"] = [{"rule": each} for each in rules]
    found: dict[str, Any] = yaml.safe_load(definitions.definition("Thing", spec=json.dumps(spec), status=""))
    return found


OPEN = "cel.bind(x, self.a, x == 'y')"


def warning(cluster: LocalCluster, method: str, path: str, body: Any, media: str = "application/json") -> str:
    answer = cluster.api.handle(Request(method, path, {}, {"content-type": media}, orjson.dumps(body)))
    assert isinstance(answer, Response)
    assert answer.status < 300
    return answer.headers.get("Warning", "")


def test_a_new_crd_with_rules_that_are_not_evaluated_is_answered_with_a_warning() -> None:
    assert warning(LocalCluster(), "POST", PATH, definition("self.a != ''", OPEN, "1u == 1u")) == (
        '299 - "2 CEL rules are not evaluated by this local cluster (at spec.versions[0].schema.openAPIV3Schema.'
        'properties.spec.x-kubernetes-validations[1]: cel.bind() is not implemented)"'
    )


def test_a_crd_of_which_all_rules_are_evaluated_is_answered_without_one() -> None:
    assert not warning(LocalCluster(), "POST", PATH, definition())
    assert not warning(LocalCluster(), "POST", PATH, definition("self.a != ''", "self.a == oldSelf.a"))


def test_only_a_change_of_the_rules_warns_again() -> None:
    cluster = LocalCluster()
    warning(cluster, "POST", PATH, definition(OPEN))
    path = f"{PATH}/things.example.com"
    assert not warning(cluster, "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert not warning(cluster, "PATCH", path, definition(OPEN), MERGE)
    assert "not evaluated" in warning(cluster, "PATCH", path, definition(f"{OPEN} || self.a == ''"), MERGE)


def test_an_object_is_stored_if_its_only_broken_rule_is_not_evaluated() -> None:
    cluster = LocalCluster()
    warning(cluster, "POST", PATH, definition(OPEN))
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"a": "x"}}
    assert not warning(cluster, "POST", "/apis/example.com/v1/namespaces/default/things", thing)
