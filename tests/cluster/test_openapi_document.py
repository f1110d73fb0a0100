"""The OpenAPI documents that are made from the packaged types are those of the real server, without prose."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.builtin.builtin_types import served_resources, type_schemas
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.openapi import crd_types, openapi_document
from tests.cluster.server import Client
from tests.cluster.test_schema_table import renamed

pytestmark = pytest.mark.real_server("it says what the documents should be")

VERSIONS = sorted({resource.kind[:2] for resource in served_resources()})
STREAMS = ("/attach", "/exec", "/log", "/portforward", "/proxy")


@pytest.mark.parametrize(("group", "version"), VERSIONS)
def test_the_document_of_each_group_version_equals_that_of_the_server(server: Client, group: str, version: str) -> None:
    path = f"apis/{group}/{version}" if group else f"api/{version}"
    real = without_prose(server.get(f"/openapi/v3/{path}"))
    resources = [resource for resource in served_resources() if resource.kind[:2] == (group, version)]
    made = openapi_document(group, version, resources, type_schemas(), release=real["info"]["version"])
    assert made["components"]["schemas"] == real["components"]["schemas"]
    paths = {
        path: item
        for path, item in real["paths"].items()
        if "/watch/" not in path and not any(stream in path for stream in STREAMS)
    }
    assert operations(made["paths"]) == operations(paths)
    assert (made["openapi"], made["info"]) == (real["openapi"], real["info"])


def test_the_types_of_a_crd_equal_those_of_the_server(server: Client) -> None:
    definition = renamed("documents.example.com")
    server.define(definition)
    crd = parse_crd(definition)
    real = without_prose(server.get(f"/openapi/v3/apis/{crd.group}/{crd.versions[0].name}"))
    made = without_prose(crd_types(crd, crd.versions[0]))
    assert made == {name: schema for name, schema in real["components"]["schemas"].items() if name in made}
    assert len(made) == 2


def without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_prose(each)
            for name, each in value.items()
            if not (name == "description" and isinstance(each, str))
        }
    return [without_prose(each) for each in value] if isinstance(value, list) else value


def operations(paths: dict[str, Any]) -> dict[str, Any]:
    """Parameters, bodies and answers in JSON, by path and method. Whether a parameter is declared for the path or for
    each method makes no difference."""
    found = {}
    for path, item in paths.items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            parameters = [*item.get("parameters", ()), *operation.get("parameters", ())]
            found[f"{method} {path}"] = {
                "parameters": sorted((each["name"], each["in"], each["schema"]["type"]) for each in parameters),
                "body": (operation.get("requestBody") or {}).get("content"),
                "answer": operation["responses"]["200"]["content"]["application/json"],
                "kind": operation.get("x-kubernetes-group-version-kind"),
                "action": operation.get("x-kubernetes-action"),
            }
    return found
