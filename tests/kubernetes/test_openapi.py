"""From a server's documents to shapes, and from shapes to the table, on documents small enough to read."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from ruleop.kubernetes.builtin.table import build_table, read_table
from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.kubernetes.schema.shape import OBJECT_META, UNKNOWN, OpenApi, Shape, ShapeBuilder

WIDGET = Kind("example.com", "v1", "Widget")


def document(**schemas: Any) -> dict[str, Any]:
    return {"info": {"version": "1.0"}, "components": {"schemas": schemas}}


def gvk(kind: Kind) -> list[dict[str, str]]:
    return [kind._asdict()]


def shape_of(schema: dict[str, Any], **types: Any) -> Shape:
    return ShapeBuilder(types).of(schema)


def ref(name: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def test_a_kind_is_found_by_its_group_version_and_kind():
    api = OpenApi(
        document(
            **{
                "com.example.Widget": {
                    "type": "object",
                    "properties": {"a": {}},
                    "x-kubernetes-group-version-kind": gvk(WIDGET),
                }
            }
        )
    )
    shape = api.shape(WIDGET)
    assert shape is not None
    assert set(shape.fields) == {"a"}
    assert api.shape(WIDGET) is shape
    assert api.shape(Kind("example.com", "v2", "Widget")) is None


@pytest.mark.parametrize("empty", [{}, {"components": {}}, {"components": {"schemas": None}}])
def test_a_document_without_types_has_no_kinds(empty: dict[str, Any]):
    assert OpenApi(empty).shape(WIDGET) is None


def test_a_recursive_type_is_one_shape():
    node = {
        "type": "object",
        "properties": {"next": ref("Node"), "all": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}},
    }
    shape = shape_of({"$ref": "#/components/schemas/Node"}, Node=node)
    assert shape.fields["next"] is shape
    assert shape.fields["all"].items is shape


def test_a_reference_to_a_missing_type_has_an_unknown_shape():
    assert shape_of(ref("Nowhere")) is UNKNOWN


def test_extensions_of_a_property_override_those_of_its_type():
    reference = {"type": "object", "properties": {"name": {"type": "string"}}, "x-kubernetes-map-type": "atomic"}
    shape = shape_of(
        {
            "type": "object",
            "properties": {"plain": ref("Ref"), "granular": {**ref("Ref"), "x-kubernetes-map-type": "granular"}},
        },
        Ref=reference,
    )
    assert shape.fields["plain"].atomic
    assert not shape.fields["granular"].atomic
    assert shape.fields["granular"].fields["name"].scalar == "string"


def test_retain_keys_of_a_property_does_not_change_its_type():
    strategy = {"type": "object", "properties": {"type": {"type": "string"}}}
    shape = shape_of(
        {
            "type": "object",
            "properties": {"kept": {**ref("S"), "x-kubernetes-patch-strategy": "retainKeys"}, "other": ref("S")},
        },
        S=strategy,
    )
    assert shape.fields["kept"].retain_keys
    assert not shape.fields["other"].retain_keys


def test_a_list_with_retain_keys_passes_it_on_to_its_items():
    shape = shape_of(
        {
            "type": "array",
            "items": ref("V"),
            "x-kubernetes-patch-strategy": "merge,retainKeys",
            "x-kubernetes-patch-merge-key": "name",
        },
        V={"type": "object", "properties": {"name": {"type": "string"}}},
    )
    assert (shape.list_type, shape.keys) == ("map", ("name",))
    assert not shape.retain_keys
    assert shape.items is not None
    assert shape.items.retain_keys


@pytest.mark.parametrize(
    ("extensions", "list_type", "keys"),
    [
        ({}, "atomic", ()),
        ({"x-kubernetes-list-type": "atomic"}, "atomic", ()),
        ({"x-kubernetes-list-type": "set"}, "set", ()),
        ({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}, "map", ("a", "b")),
        ({"x-kubernetes-list-type": "map"}, "atomic", ()),
        ({"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "a"}, "map", ("a",)),
        ({"x-kubernetes-patch-strategy": "merge"}, "set", ()),
        ({"x-kubernetes-patch-strategy": "replace"}, "atomic", ()),
        ({"x-kubernetes-patch-strategy": "retainKeys"}, "atomic", ()),
        (
            {
                "x-kubernetes-list-type": "atomic",
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "a",
            },
            "atomic",
            (),
        ),
        (
            {
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a", "b"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "a",
            },
            "map",
            ("a", "b"),
        ),
    ],
)
def test_list_type_takes_precedence_over_the_patch_strategy(
    extensions: dict[str, Any], list_type: str, keys: tuple[str, ...]
):
    shape = shape_of({"type": "array", "items": {"type": "object", "properties": {"a": {}, "b": {}}}, **extensions})
    assert (shape.type, shape.list_type, shape.keys) == ("list", list_type, keys)


ITEM = {
    "type": "object",
    "required": ["port", "level", "on"],
    "properties": {
        "port": {"default": 0},
        "level": {"default": "low"},
        "on": {"default": False},
        "protocol": {"default": "TCP"},
        "name": {"default": ""},
        "id": {},
    },
}
KEYS = ["port", "level", "protocol", "name", "id", "absent"]
LIST = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": KEYS}


def test_a_zero_value_of_a_required_field_is_not_a_default_in_built_in_types():
    """The generator of their documents writes Go's zero value there."""
    spec, item = "io.k8s.api.core.v1.Spec", "io.k8s.api.core.v1.Item"
    shape = shape_of(
        ref(spec), **{spec: {"type": "object", "properties": {"l": {**LIST, "items": ref(item)}}}, item: ITEM}
    ).fields["l"]
    assert shape.items is not None
    assert shape.items.defaults == {"level": "low", "protocol": "TCP", "name": ""}
    assert shape.key_defaults == {"level": "low", "protocol": "TCP", "name": ""}


def test_a_zero_value_of_a_required_field_is_a_default_in_other_types():
    for items, types in ((ITEM, {}), (ref("com.example.Item"), {"com.example.Item": ITEM})):
        shape = shape_of({"type": "object", "properties": {"l": {**LIST, "items": items}}}, **types).fields["l"]
        assert shape.items is not None
        assert shape.items.defaults == {"port": 0, "level": "low", "on": False, "protocol": "TCP", "name": ""}
        assert shape.key_defaults == {"port": 0, "level": "low", "protocol": "TCP", "name": ""}


@pytest.mark.parametrize("items", [None, [{"type": "object"}]])
def test_a_list_without_a_schema_for_its_items_may_contain_anything(items: Any):
    shape = shape_of({"type": "array", "items": items})
    assert shape.items is not None
    assert shape.items.type == "any"


@pytest.mark.parametrize(
    "int_or_string", [{"x-kubernetes-int-or-string": True}, {"format": "int-or-string", "oneOf": [{}, {}]}]
)
def test_an_integer_or_string_is_one_scalar(int_or_string: dict[str, Any]):
    shape = shape_of(int_or_string)
    assert (shape.type, shape.format, shape.scalar) == ("scalar", "int-or-string", "")


def test_a_quantity_is_recognised_by_its_name_only():
    name = "io.k8s.apimachinery.pkg.api.resource.Quantity"
    shape = shape_of(ref(name), **{name: {"oneOf": [{"type": "string"}, {"type": "number"}]}})
    assert (shape.type, shape.format) == ("scalar", "quantity")


def test_a_raw_extension_is_any_object_and_atomic():
    shape = shape_of(ref("io.k8s.apimachinery.pkg.runtime.RawExtension"))
    assert (shape.type, shape.atomic, shape.preserve_unknown) == ("object", True, True)


def test_open_maps_have_the_shape_of_their_values():
    shape = shape_of({"type": "object", "additionalProperties": {"type": "string", "format": "byte"}})
    assert shape.values is not None
    assert shape.values.format == "byte"
    assert not shape.preserve_unknown
    assert shape_of({"type": "object", "additionalProperties": True}).values is UNKNOWN
    assert shape_of({"additionalProperties": {"type": "string"}}).type == "object"
    assert not shape_of({"type": "object", "additionalProperties": False}).preserve_unknown


def test_an_object_without_declared_fields_is_free_form():
    assert shape_of({"type": "object"}).preserve_unknown
    assert not shape_of({"type": "object", "properties": {"a": {}}}).preserve_unknown
    assert shape_of(
        {"type": "object", "properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": True}
    ).preserve_unknown


def test_a_schema_without_a_type_allows_anything():
    assert shape_of({}).type == "any"
    assert not shape_of({}).preserve_unknown
    assert shape_of({"x-kubernetes-preserve-unknown-fields": True}).preserve_unknown


def test_an_embedded_resource_has_the_fields_of_every_resource():
    meta = Shape(type="object")
    builder = ShapeBuilder({}, {OBJECT_META: meta})
    shape = builder.of(
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    )
    assert set(shape.fields) == {"apiVersion", "kind", "metadata"}
    assert shape.fields["metadata"] is meta
    assert shape.preserve_unknown


def discovered(*resources: dict[str, Any], group: str = "example.com", version: str = "v1") -> dict[str, Any]:
    return {
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [{"version": version, "resources": list(resources)}],
            }
        ]
    }


def resource(kind: str, plural: str, **more: Any) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Namespaced",
        **more,
    }


def tree(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


TREES = {
    "apis/example.com/v1": document(
        Widget={**tree(root=ref("Node"), other=ref("Twin")), "x-kubernetes-group-version-kind": gvk(WIDGET)},
        # Equal, although one contains itself and the other one contains the first.
        Node=tree(next=ref("Node"), name={"type": "string"}),
        Twin=tree(next=ref("Node"), name={"type": "string"}),
        Different=tree(next=ref("Node"), name={"type": "integer"}),
        Gadget={
            **tree(
                node=ref("Different"),
                list={"type": "array", "items": ref("Node")},
                map={"additionalProperties": ref("Node")},
            ),
            "x-kubernetes-group-version-kind": gvk(Kind("example.com", "v1", "Gadget")),
        },
    )
}
DISCOVERY = [
    discovered(
        resource("Widget", "widgets", subresources=[{"subresource": "scale"}, {"subresource": "status"}]),
        resource("Gadget", "gadgets", scope="Cluster", subresources=[{"subresource": "scale"}]),
        resource("Unpublished", "unpublished"),
    ),
    discovered(resource("Old", "olds"), group="", version="v1"),
]


def test_a_built_table_is_read_back_unchanged():
    table = read_table(build_table(TREES, DISCOVERY))
    assert table.release == "1.0"
    assert [str(kind) for kind in table.resources] == [
        "v1 Old",
        "example.com/v1 Gadget",
        "example.com/v1 Unpublished",
        "example.com/v1 Widget",
    ]
    widget = table.resources[WIDGET]
    assert (widget.plural, widget.namespaced, widget.status_subresource) == ("widgets", True, True)
    gadget = table.preferred[GroupKind("example.com", "Gadget")]
    assert (gadget.namespaced, gadget.status_subresource) == (False, False)


def test_equal_shapes_are_shared_also_in_a_cycle_and_different_ones_are_not():
    table = read_table(build_table(TREES, DISCOVERY))
    widget, gadget = table.shapes[WIDGET], table.shapes[Kind("example.com", "v1", "Gadget")]
    node = widget.fields["root"]
    assert widget.fields["other"] is node
    assert node.fields["next"] is node
    assert gadget.fields["list"].items is node
    assert gadget.fields["map"].values is node
    assert gadget.fields["node"] is not node
    assert gadget.fields["node"].fields["next"] is node
    assert gadget.fields["node"].fields["name"].scalar == "integer"


def test_a_kind_without_a_document_has_an_unknown_shape():
    table = read_table(build_table(TREES, DISCOVERY))
    assert table.shapes[Kind("example.com", "v1", "Unpublished")].type == "any"
    assert table.shapes[Kind("", "v1", "Old")].type == "any"


def test_the_built_table_does_not_depend_on_the_order_of_the_documents():
    def reversed_document(given: dict[str, Any]) -> dict[str, Any]:
        return {**given, "components": {"schemas": dict(reversed(given["components"]["schemas"].items()))}}

    shuffled = {path: reversed_document(given) for path, given in TREES.items()}
    assert build_table(TREES, DISCOVERY) == build_table(TREES, DISCOVERY)
    assert build_table(shuffled, list(reversed(DISCOVERY))) == build_table(TREES, DISCOVERY)
    assert orjson.loads(build_table(TREES, DISCOVERY))["kubernetes"] == "1.0"
