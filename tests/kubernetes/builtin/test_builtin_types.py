"""The packaged types of the built-in kinds: what a check and an API server read from them."""

from __future__ import annotations

import importlib.resources
import subprocess
import sys

import orjson
import pytest

from ruleop.kubernetes.builtin.builtin_types import served_resources, type_schemas, typed_schema, typed_shape
from ruleop.kubernetes.builtin.table import ResourceInfo, builtin_kinds, builtin_resource, minimised_nodes
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import OPTIONAL_FIELDS, Shape, shape_at

DEPLOYMENT, POD, SERVICE = Kind("apps", "v1", "Deployment"), Kind("", "v1", "Pod"), Kind("", "v1", "Service")
CONTAINER = ("spec", "template", "spec", "containers")
RESOURCES = {resource.plural: resource for resource in served_resources()}


def at(kind: Kind, *path: str) -> Shape:
    root = typed_shape(kind)
    assert root is not None
    found = shape_at(root, path)
    assert found is not None, f"{kind} has no {'.'.join(path)}"
    return found


def item(kind: Kind, *path: str) -> Shape:
    found = at(kind, *path).items
    assert found is not None
    return found


def test_the_table_of_the_operator_is_a_subset_of_the_builtin_types():
    """Both files are generated from the same documents; a merge must not depend on which a command reads."""
    table = orjson.loads(importlib.resources.files("ruleop.kubernetes.builtin").joinpath("builtin.json").read_bytes())
    shapes = [shape for kind in builtin_kinds() if (shape := typed_shape(kind)) is not None]
    nodes, numbers = minimised_nodes(shapes)
    assert orjson.loads(orjson.dumps(nodes)) == table["shapes"]
    assert numbers == [row["shape"] for row in table["kinds"]]
    assert {
        each.kind: ResourceInfo(each.plural, each.namespaced, each.status_subresource, each.kind)
        for each in served_resources()
    } == {kind: builtin_resource(kind) for kind in builtin_kinds()}


@pytest.mark.slow
def test_the_operator_does_not_load_the_builtin_types():
    program = "import sys, ruleop.operator.manager.manager; sys.exit('ruleop.kubernetes.builtin.builtin_types' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("path", "required"),
    [
        ((), ()),
        (("spec",), ("selector", "template")),
        (("spec", "selector", "matchExpressions"), ("key", "operator")),
        (("spec", "template", "spec"), ("containers",)),
        (CONTAINER, ("name",)),
        ((*CONTAINER, "ports"), ("containerPort",)),
        ((*CONTAINER, "env"), ("name",)),
        ((*CONTAINER, "volumeMounts"), ("name", "mountPath")),
        ((*CONTAINER, "livenessProbe", "httpGet"), ("port",)),
        # Declared as required, and accepted without.
        ((*CONTAINER, "livenessProbe", "httpGet", "httpHeaders"), ("name",)),
        (("metadata", "ownerReferences"), ("apiVersion", "kind", "name", "uid")),
    ],
)
def test_objects_have_their_required_fields(path: tuple[str, ...], required: tuple[str, ...]):
    shape = at(DEPLOYMENT, *path)
    assert (shape.items or shape).required == required


def test_every_required_field_exists_and_every_exception_is_declared():
    schemas = type_schemas()
    for name, fields in OPTIONAL_FIELDS.items():
        assert fields <= set(schemas[name]["required"]), name
    for shape in all_shapes():
        assert set(shape.required) <= set(shape.fields), shape.name


@pytest.mark.parametrize(
    ("kind", "path", "values"),
    [
        (DEPLOYMENT, (*CONTAINER, "imagePullPolicy"), {"Always", "IfNotPresent", "Never"}),
        (DEPLOYMENT, (*CONTAINER, "ports", "protocol"), {"SCTP", "TCP", "UDP"}),
        (SERVICE, ("spec", "type"), {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}),
        (DEPLOYMENT, (*CONTAINER, "image"), set()),
    ],
)
def test_enumerations_have_their_values(kind: Kind, path: tuple[str, ...], values: set[str]):
    assert set(at(kind, *path).enum) == values


def test_only_strings_have_enumerations():
    assert {shape.scalar for shape in all_shapes() if shape.enum} == {"string"}


@pytest.mark.parametrize(
    ("kind", "path", "keys", "patch"),
    [
        (DEPLOYMENT, (*CONTAINER, "ports"), ("containerPort", "protocol"), (True, "containerPort")),
        (SERVICE, ("spec", "ports"), ("port", "protocol"), (True, "port")),
        (DEPLOYMENT, CONTAINER, ("name",), (True, "name")),
        (POD, ("status", "podIPs"), ("ip",), (True, "ip")),
        (DEPLOYMENT, ("metadata", "finalizers"), (), (True, "")),
        (DEPLOYMENT, (*CONTAINER, "command"), (), (False, "")),
        (Kind("batch", "v1", "Job"), ("status", "conditions"), (), (True, "type")),
        (DEPLOYMENT, ("spec", "template", "spec", "tolerations"), (), (False, "")),
    ],
)
def test_lists_have_separate_keys_for_strategic_merge_patches(
    kind: Kind, path: tuple[str, ...], keys: tuple[str, ...], patch: tuple[bool, str]
):
    shape = at(kind, *path)
    assert (shape.keys, (shape.patch_merge, shape.patch_key)) == (keys, patch)


def test_patch_keys_are_fields_of_the_items():
    for shape in all_shapes():
        assert not shape.patch_key or shape.type == "list"
        if shape.patch_key:
            assert shape.items is not None
            assert shape.patch_key in shape.items.fields


def test_named_types_keep_their_names():
    assert item(DEPLOYMENT, *CONTAINER).name == "io.k8s.api.core.v1.Container"
    assert at(DEPLOYMENT, "metadata").name.endswith(".ObjectMeta")
    assert at(DEPLOYMENT, "spec", "replicas").name == ""


@pytest.mark.parametrize(
    ("plural", "singular", "short_names", "categories", "subresources"),
    [
        ("pods", "pod", ("po",), ("all",), "attach binding ephemeralcontainers eviction exec log portforward proxy resize status"),
        ("deployments", "deployment", ("deploy",), ("all",), "scale status"),
        ("serviceaccounts", "serviceaccount", ("sa",), (), "token"),
        ("namespaces", "namespace", ("ns",), (), "finalize status"),
        ("configmaps", "configmap", ("cm",), (), ""),
        ("customresourcedefinitions", "customresourcedefinition", ("crd", "crds"), ("api-extensions",), "status"),
    ],
)  # fmt: skip
def test_resources_have_names_categories_and_subresources(
    plural: str, singular: str, short_names: tuple[str, ...], categories: tuple[str, ...], subresources: str
):
    resource = RESOURCES[plural]
    assert (resource.singular, resource.short_names, resource.categories) == (singular, short_names, categories)
    assert " ".join(each.name for each in resource.subresources) == subresources


def test_subresources_have_kinds_and_verbs():
    scale = RESOURCES["statefulsets"].subresource("scale")
    assert scale is not None
    assert (scale.kind, scale.verbs) == (Kind("autoscaling", "v1", "Scale"), ("get", "patch", "update"))
    status = RESOURCES["statefulsets"].subresource("status")
    assert status is not None
    assert status.kind == Kind("apps", "v1", "StatefulSet")
    eviction = RESOURCES["pods"].subresource("eviction")
    assert eviction is not None
    assert (eviction.kind, eviction.verbs) == (Kind("policy", "v1", "Eviction"), ("create",))
    assert RESOURCES["configmaps"].subresource("status") is None


def test_resources_are_in_the_order_of_discovery():
    kinds = [resource.kind for resource in served_resources()]
    versions = list(dict.fromkeys(kind.api_version for kind in kinds))
    assert versions[0] == "v1"
    assert versions.index("autoscaling/v2") < versions.index("autoscaling/v1")


def test_the_packaged_types_contain_no_descriptions():
    """A property may be called `description`; a text of that name is not packaged."""
    prose = [name for name, schema in type_schemas().items() if "description" in schema]
    assert prose == []
    assert (
        b'"description":"'
        not in importlib.resources.files("ruleop.kubernetes.builtin").joinpath("builtin_types.json").read_bytes()
    )


def test_a_schema_is_inlined_as_in_a_crd():
    schema = typed_schema(DEPLOYMENT)
    assert schema is not None
    container = schema["properties"]["spec"]["properties"]["template"]["properties"]["spec"]["properties"]["containers"]
    assert container["items"]["properties"]["imagePullPolicy"]["enum"] == ["Always", "IfNotPresent", "Never"]
    assert typed_schema(Kind("example.com", "v1", "App")) is None
    assert typed_shape(Kind("example.com", "v1", "App")) is None


def all_shapes() -> list[Shape]:
    found: dict[int, Shape] = {}
    stack = [shape for kind in builtin_kinds() if (shape := typed_shape(kind)) is not None]
    while stack:
        shape = stack.pop()
        if id(shape) not in found:
            found[id(shape)] = shape
            stack += [*shape.fields.values(), *(child for child in (shape.values, shape.items) if child is not None)]
    return list(found.values())
