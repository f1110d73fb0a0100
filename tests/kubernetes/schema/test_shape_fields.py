"""The fields of a shape, for messages, and the format of paths."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import FieldPath, Shape, shape_at
from ruleop.kubernetes.schema.validation import SchemaError, SchemaFinding, unknown_to_shape
from ruleop.messages import format_path


def test_a_path_in_a_shape_may_omit_list_indices():
    leaf = Shape(type="scalar", scalar="string")
    item = Shape(type="object", fields={"a": leaf}, values=None)
    shape = Shape(type="object", fields={"list": Shape(type="list", items=Shape(type="list", items=item))}, values=leaf)
    assert shape_at(shape, ()) is shape
    assert shape_at(shape, ("list", 0, 1, "a")) is leaf
    assert shape_at(shape, ("list", "a")) is leaf
    assert shape_at(shape, ("any",)) is leaf
    assert shape_at(shape, ("list", "b")) is None
    assert shape_at(shape, ("list", "b", "c")) is None
    assert shape_at(shape, ("any", 0)) is None


def test_unknown_fields_are_reported_with_a_suggestion():
    deployment = builtin_shape(Kind("apps", "v1", "Deployment"))
    assert deployment is not None
    obj = {
        "apiVersion": "apps/v1",
        "metadata": {"labels": {"any/label": "x"}, "annotation": {}},
        "spec": {
            "replica": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [{"name": "a"}, {"imagee": "x", "resources": {"limits": {"gpu": 1}}}]}},
        },
    }
    assert [str(finding) for finding in unknown_to_shape(obj, deployment)] == [
        "metadata.annotation: is an unknown field (did you mean annotations?)",
        "spec.replica: is an unknown field (did you mean replicas?)",
        "spec.template.spec.containers[1].imagee: is an unknown field (did you mean image?)",
    ]


def test_an_open_object_has_no_unknown_fields():
    anything = Shape()
    open_object = Shape(
        type="object", fields={"a": Shape(type="object", fields={"b": anything})}, preserve_unknown=True
    )
    assert unknown_to_shape({"x": {"y": 1}, "a": {"b": {"z": 1}, "c": 2}}, open_object) == [
        SchemaFinding(("a", "c"), "is an unknown field")
    ]
    assert unknown_to_shape({"x": [{"y": 1}]}, Shape(type="object", values=anything)) == []
    assert unknown_to_shape({"x": [{"y": 1}]}, Shape(type="object", fields={"x": anything})) == []
    assert unknown_to_shape({"x": {"y": 1}}, Shape(type="object", fields={"x": Shape(type="scalar")})) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec", "ports", 0, "name"), "spec.ports[0].name"),
        (("metadata", "annotations", "a/b"), "metadata.annotations['a/b']"),
        (("a.b", 1, 2), "['a.b'][1][2]"),
        (("properties", "x-kubernetes-list-type"), "properties.x-kubernetes-list-type"),
        (("a\n",), "['a\n']"),
    ],
)
def test_a_path_is_formatted_as_in_rules(path: FieldPath, text: str):
    assert format_path(path) == text


def test_a_finding_has_its_path_and_message():
    assert str(SchemaFinding(("spec", "size"), "is required")) == "spec.size: is required"
    assert str(SchemaFinding((), "is empty")) == "is empty"
    error = SchemaError(("kind",), "is wrong")
    assert (str(error), error.finding) == ("kind: is wrong", SchemaFinding(("kind",), "is wrong"))
