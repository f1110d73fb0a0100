"""The OpenAPI document of a group version: the parts that clients read, and shapes that are the same when read back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ruleop.kubernetes.builtin.builtin_types import ServedResource, served_resources, type_schemas, typed_shape
from ruleop.kubernetes.builtin.table import builtin_kinds
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.openapi import crd_types, openapi_document
from ruleop.kubernetes.schema.shape import OpenApi, Shape
from tests.definitions import crd, fields, version

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CRD = crd(
    "App",
    "example.com",
    version(
        "v1",
        fields(
            spec=fields(
                port={"x-kubernetes-int-or-string": True},
                size={"type": "integer", "description": "How large."},
                template={"type": "object", "x-kubernetes-embedded-resource": True},
            )
        ),
    ),
)


def document(group: str, version: str) -> dict[str, Any]:
    resources = [resource for resource in served_resources() if resource.kind[:2] == (group, version)]
    return openapi_document(group, version, resources, type_schemas(), release="1.36")


@pytest.mark.slow
def test_the_shape_of_every_builtin_kind_is_the_same_from_the_openapi_document():
    documents = {versions: OpenApi(document(*versions)) for versions in {kind[:2] for kind in builtin_kinds()}}
    for kind in builtin_kinds():
        assert equal(typed_shape(kind), documents[kind[:2]].shape(kind), set()), kind


def test_the_document_has_the_kinds_of_paths_and_the_parameters_of_patches():
    paths = document("apps", "v1")["paths"]
    deployments = paths["/apis/apps/v1/namespaces/{namespace}/deployments"]
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert deployments["get"]["x-kubernetes-group-version-kind"] == kind
    patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == kind
    assert [each["name"] for each in patch["parameters"]] == ["dryRun", "fieldManager", "fieldValidation", "force"]
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    scale = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["get"]
    assert scale["x-kubernetes-group-version-kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_only_types_that_the_paths_refer_to_are_in_the_document():
    types = document("coordination.k8s.io", "v1")["components"]["schemas"]
    assert {name for name in types if name.startswith("io.k8s.api.")} == {
        f"io.k8s.api.coordination.v1.{name}" for name in ("Lease", "LeaseList", "LeaseSpec")
    }


@pytest.mark.parametrize("name", ["DeleteOptions", "WatchEvent"])
def test_options_and_watch_events_belong_to_the_group_as_well(name: str):
    types = document("batch", "v1")["components"]["schemas"]
    assert types[f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"]["x-kubernetes-group-version-kind"] == [
        {"group": "", "kind": name, "version": "v1"},
        {"group": "batch", "kind": name, "version": "v1"},
    ]


def test_a_custom_kind_is_published_with_descriptions_and_common_fields():
    crd = parse_crd(CRD)
    version = crd.versions[0]
    info = crd.resource("v1")
    assert info is not None
    types = crd_types(crd, version)
    resource = ServedResource(info.plural, info.namespaced, info.status_subresource, info.kind, "app", VERBS)
    made = openapi_document("example.com", "v1", [resource], {**type_schemas(), **types}, release="1.36")
    app = made["components"]["schemas"]["com.example.v1.App"]
    spec = app["properties"]["spec"]["properties"]
    assert spec["size"]["description"] == "How large."
    assert spec["port"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert set(spec["template"]["properties"]) == {"apiVersion", "kind", "metadata"}
    assert spec["template"]["required"] == ["kind", "apiVersion"]
    patch = made["paths"]["/apis/example.com/v1/namespaces/{namespace}/apps/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    shape = OpenApi(made).shape(Kind("example.com", "v1", "App"))
    assert shape is not None
    assert shape.fields["metadata"].fields["finalizers"].list_type == "set"


def test_a_custom_kind_in_a_k8s_io_group_has_no_strategic_merge_patch():
    crd = parse_crd({**CRD, "spec": {**CRD["spec"], "group": "gateway.k8s.io"}})
    info = crd.resource("v1")
    assert info is not None
    resource = ServedResource(info.plural, info.namespaced, info.status_subresource, info.kind, "app", VERBS)
    types = {**type_schemas(), **crd_types(crd, crd.versions[0])}
    made = openapi_document("gateway.k8s.io", "v1", [resource], types, release="1.36")
    patch = made["paths"]["/apis/gateway.k8s.io/v1/namespaces/{namespace}/apps/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


def equal(left: Shape | None, right: Shape | None, compared: set[tuple[int, int]]) -> bool:
    """Whether two shapes are the same, also where they contain themselves."""
    if left is None or right is None:
        return left is right
    if (id(left), id(right)) in compared:
        return True
    compared.add((id(left), id(right)))
    plain = [
        attribute.name for attribute in dataclasses.fields(left) if attribute.name not in ("fields", "values", "items")
    ]
    return (
        [getattr(left, name) for name in plain] == [getattr(right, name) for name in plain]
        and left.fields.keys() == right.fields.keys()
        and all(equal(child, right.fields[name], compared) for name, child in left.fields.items())
        and equal(left.values, right.values, compared)
        and equal(left.items, right.items, compared)
    )
