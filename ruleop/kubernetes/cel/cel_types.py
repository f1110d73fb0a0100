"""The types of CEL expressions, and those of values by their schema (apiserver/pkg/cel/common/schemas.go).

A field whose schema declares no type (x-kubernetes-preserve-unknown-fields) is not exposed to rules, and neither are
lists and maps of such. It still counts in comparisons of the object that it is in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.cel.parser import RESERVED

if TYPE_CHECKING:
    from ruleop.kubernetes.schema import Schema

_SCALARS: Final = {"integer": "int", "number": "double", "boolean": "bool", "string": "string"}
_FORMATS: Final = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPABLE: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class CelType:
    """`kind` is what type() of a value would be, or: object, dyn (of an int-or-string field), hidden (not exposed).

    `fields` are the exposed properties of an object by their escaped names, `properties` all of them by their own.
    """

    kind: str
    items: CelType | None = None  # of a list, or the values of a map
    properties: Mapping[str, CelType] = field(default_factory=dict)
    fields: Mapping[str, tuple[str, CelType]] = field(default_factory=dict)
    nullable: bool = False
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    is_resource: bool = False

    def __str__(self) -> str:
        return f"{self.kind}({self.items})" if self.items is not None else self.kind


BOOL: Final = CelType("bool")
INT: Final = CelType("int")
DOUBLE: Final = CelType("double")
STRING: Final = CelType("string")
DURATION: Final = CelType("duration")
TIMESTAMP: Final = CelType("timestamp")
QUANTITY: Final = CelType("quantity")
IP: Final = CelType("ip")
CIDR: Final = CelType("cidr")
URL: Final = CelType("url")
SEMVER: Final = CelType("semver")
FORMAT: Final = CelType("format")
NULL: Final = CelType("null_type")
TYPE: Final = CelType("type")
DYN: Final = CelType("dyn")
HIDDEN: Final = CelType("hidden")

_META: Final = {"name": STRING, "generateName": STRING}


def list_of(items: CelType) -> CelType:
    return CelType("list", items)


def map_of(values: CelType) -> CelType:
    return CelType("map", values)


def optional_of(held: CelType) -> CelType:
    return CelType("optional", held)


def type_of_schema(schema: Schema, *, is_resource: bool = False) -> CelType:
    """The type of the values that a schema describes. `is_resource` is the root of a custom resource."""
    is_resource = is_resource or bool(schema.get("x-kubernetes-embedded-resource"))
    nullable = bool(schema.get("nullable"))
    kind = schema.get("type")
    others, items = schema.get("additionalProperties"), schema.get("items")
    if schema.get("x-kubernetes-int-or-string"):
        return CelType("dyn", nullable=nullable)
    if kind == "array" and isinstance(items, Mapping):
        item = type_of_schema(items)
        return CelType(
            "hidden" if item.kind == "hidden" else "list",
            item,
            nullable=nullable,
            list_type=schema.get("x-kubernetes-list-type") or "",
            map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        )
    if kind == "object" and isinstance(others, Mapping) and not is_resource:
        value = type_of_schema(others)
        return CelType("hidden" if value.kind == "hidden" else "map", value, nullable=nullable)
    if kind == "object":
        properties = {name: type_of_schema(each) for name, each in (schema.get("properties") or {}).items()}
        if is_resource:
            properties = _with_meta(properties)
        fields = {
            escaped: (name, each)
            for name, each in properties.items()
            if each.kind != "hidden" and (escaped := escape(name)) is not None
        }
        return CelType("object", properties=properties, fields=fields, nullable=nullable, is_resource=is_resource)
    if kind == "string":
        return CelType(_FORMATS.get(schema.get("format") or "", "string"), nullable=nullable)
    return CelType(_SCALARS.get(kind or "", "hidden"), nullable=nullable)


def _with_meta(properties: Mapping[str, CelType]) -> dict[str, CelType]:
    """The properties of a resource. What its schema declares of its metadata counts only with both names."""
    meta = properties.get("metadata", HIDDEN)
    declared = {name: properties.get(name, HIDDEN).kind for name in ("kind", "apiVersion")}
    names = {name: meta.properties.get(name, HIDDEN).kind for name in _META}
    if meta.kind == "object" and {*declared.values(), *names.values()} == {"string"}:
        return dict(properties)
    return {**properties, "kind": STRING, "apiVersion": STRING, "metadata": _METADATA}


_METADATA: Final = CelType("object", properties=_META, fields={name: (name, each) for name, each in _META.items()})


def escape(name: str) -> str | None:
    """The name of a property in rules (apiserver/pkg/cel/escaping.go), or None if rules cannot name it."""
    if name in RESERVED:
        return f"__{name}__"
    if not _ESCAPABLE.fullmatch(name):
        return None
    return re.sub(r"__|[-./]", lambda match: _ESCAPES[match[0]], name)


def has_resource(type_: CelType) -> bool:
    """Whether a value of the type may contain the metadata of a resource."""
    inner: tuple[CelType, ...] = (*type_.properties.values(), *((type_.items,) if type_.items is not None else ()))
    return type_.is_resource or any(has_resource(each) for each in inner)


def mismatch(first: CelType, second: CelType) -> bool | None:
    """Whether the server would say that two types differ; None if that is not known."""
    kinds = {first.kind, second.kind}
    if first is second or "dyn" in kinds:
        return False
    if kinds == {"null_type"} or ("null_type" in kinds and kinds & {"object", "duration", "timestamp", "quantity"}):
        return False
    if kinds == {"object"}:
        return None  # types of two places in a schema
    if len(kinds) == 1:
        if first.items is None or second.items is None:
            return False
        return mismatch(first.items, second.items)
    return None if "hidden" in kinds else True
