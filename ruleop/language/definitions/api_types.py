"""The types of the API as parts of a CRD's schema: `v1.ResourceRequirements` is what a container's `resources` are.

A name is the end of the type's full name in the published documents (`io.k8s.api.core.v1.ResourceRequirements`), with
at least its version. The schema is structural, as controller-gen writes it for the same Go type.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.builtin_types import type_schemas
from ruleop.kubernetes.schema import OBJECT_META, OPTIONAL_FIELDS, reference
from ruleop.language.definitions.simple_schema import UnknownTypeError
from ruleop.nearest import did_you_mean

if TYPE_CHECKING:
    from ruleop.kubernetes.schema import Schema

OPEN: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_ANY: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
INT_OR_STRING: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_CORE: Final = "io.k8s.api.core."
_KNOWN: Final[Mapping[str, Schema]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": (
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
            r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
        ),
        "x-kubernetes-int-or-string": True,
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    # Of the metadata of a template, such as a PodTemplateSpec.
    OBJECT_META: {
        "type": "object",
        "properties": {
            "annotations": _TEXTS,
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": _TEXTS,
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    },
}
_KEPT: Final = (
    "type", "format", "enum", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
)  # fmt: skip


def api_type(name: str) -> Schema:
    """The schema of a type. Raises UnknownTypeError."""
    return named_type(full_name(name))


def full_name(name: str) -> str:
    """The name of a type in the published documents. Raises UnknownTypeError."""
    names = _by_ending().get(name, ())
    core = [each for each in names if each.startswith(_CORE)]
    if len(names) == 1 or len(core) == 1:
        return core[0] if core else names[0]
    if names:
        groups = " or ".join(f'"{".".join(each.split(".")[-3:])}"' for each in names)
        raise UnknownTypeError(f": several groups have it: write {groups}")
    without_domain = name.replace(".k8s.io.", ".")  # some write a group as apiVersion has it
    if without_domain in _by_ending():
        raise UnknownTypeError(f" (did you mean {without_domain}?)")
    similar = [each for each in _by_ending() if each.count(".") == name.count(".")]
    raise UnknownTypeError(did_you_mean(name, similar))


@functools.cache
def _by_ending() -> Mapping[str, tuple[str, ...]]:
    """The full names by their endings of two and more parts."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(type_schemas()):
        parts = name.split(".")
        for start in range(len(parts) - 1):
            ending = ".".join(parts[start:])
            found[ending] = (*found.get(ending, ()), name)
    return found


def named_type(name: str) -> Schema:
    """The schema of a type by its full name."""
    return _named(name, frozenset())


def structural(schema: Schema) -> Schema:
    """A schema from inside of a published type as a part of a CRD's schema."""
    return _structural(schema, frozenset(), frozenset())


def _named(name: str, within: frozenset[str]) -> Schema:
    if name in _KNOWN:
        return _KNOWN[name]
    schema = type_schemas().get(name)
    if schema is None or name in within or "type" not in schema:
        return _ANY  # the type contains itself, or takes any JSON
    return _structural(schema, within | {name}, OPTIONAL_FIELDS.get(name, frozenset()))


def _structural(schema: Schema, within: frozenset[str], optional: frozenset[str]) -> dict[str, Any]:
    if name := reference(schema):
        return dict(_named(name, within))
    if schema.get("format") == "int-or-string":
        return dict(_KNOWN["io.k8s.apimachinery.pkg.util.intstr.IntOrString"])
    is_list = schema.get("type") == "array"  # bytes, which are text, have a list type in one place
    found: dict[str, Any] = {
        key: schema[key] for key in _KEPT if key in schema and (is_list or not key.startswith("x-kubernetes-list"))
    }
    if required := [each for each in schema.get("required") or () if each not in optional]:
        found["required"] = required
    if properties := schema.get("properties"):
        found["properties"] = {
            key: _property(each, _structural(each, within, frozenset()), is_required=key in required)
            for key, each in properties.items()
        }
    for keyword in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(keyword), Mapping):
            found[keyword] = _structural(inner, within, frozenset())
    if found.get("type") == "object" and not properties and "additionalProperties" not in found:
        return {**found, **OPEN}
    if is_list and found.get("x-kubernetes-list-type") == "map":
        return _mergeable(found)
    return found


def _property(published: Schema, found: Schema, *, is_required: bool) -> Schema:
    """A property with the default that the server fills in. That of a required field, and `{}`, are Go's zero values,
    which the generator of the documents adds everywhere."""
    beside = {key: published[key] for key in _KEPT if key in published} if reference(published) else {}
    default = published.get("default")
    filled = {} if default is None or default == {} or (is_required and not default) else {"default": default}
    return {**found, **beside, **filled}


def _mergeable(schema: dict[str, Any]) -> dict[str, Any]:
    """The list, atomic where an item may lack one of its keys: a CRD's lists need them all."""
    items = schema["items"]
    properties, required = items.get("properties") or {}, items.get("required") or ()
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if keys and all(key in required or "default" in properties.get(key, {}) for key in keys):
        return schema
    return {key: each for key, each in schema.items() if not key.startswith("x-kubernetes-list")} | {
        "x-kubernetes-list-type": "atomic"
    }
