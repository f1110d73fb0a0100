"""What the API says about the shape of a kind, as far as merging needs it: which lists are sets, which are maps and by which keys,
which maps are atomic, and what the server fills in where a field is missing.

A `Shape` says nothing about what is valid; the API server does that. Where nothing is known, maps are granular and lists atomic, as
the server treats a custom resource without declarations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Unique:
    """A field, beside the keys, in which no two items of a list may have the same value."""

    field: str
    within: tuple[str, ...] = ()  # only among items that have the same values here as well
    sharing: tuple[str, ...] = ()  # items that have the same values here may share it
    required: bool = False  # as soon as there are two items, each needs a value: an item without one conflicts with every other


@dataclass(slots=True, eq=False)
class Shape:
    """One node of a kind's shape. Built once per kind and treated as frozen from then on; it may refer to itself (JSONSchemaProps does),
    which is why it cannot be a frozen dataclass and compares by identity."""

    type: Literal["object", "list", "scalar", "any"] = "any"
    # objects
    fields: Mapping[str, Shape] = field(default_factory=lambda: EMPTY)  # the declared properties
    values: Shape | None = None  # additionalProperties: an open map, such as labels
    preserve_unknown: bool = False
    atomic: bool = False  # x-kubernetes-map-type: atomic
    retain_keys: bool = False  # x-kubernetes-patch-strategy has retainKeys: members exclude each other (a volume's source)
    defaults: Mapping[str, Any] = field(default_factory=lambda: EMPTY)  # what an absent property amounts to, e.g. {"scope": "*"}
    derived: str = ""  # the type's name, if the server derives fields of it from others: a key of `ruleop.schema.derived.DERIVED`
    # lists
    items: Shape | None = None
    list_type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=lambda: EMPTY)  # e.g. {"protocol": "TCP"}
    unique: tuple[Unique, ...] = ()  # other fields that identify an item, most telling first
    # lists and open maps
    drops_empty: bool = False  # empty is absent: the server keeps the kind in Go's own types, which do not tell the two apart
    # scalars
    scalar: Literal["", "string", "integer", "number", "boolean"] = ""  # "" where several are welcome: a quantity, an int-or-string
    format: str = ""  # "quantity", "int-or-string", "date-time", "byte", "int32", "int64", "double", ""


UNKNOWN = Shape()
