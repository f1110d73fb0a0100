"""The shape of a kind, by which its objects merge: which lists are sets, which are maps and by which keys, which maps
are atomic, and which defaults the server fills in.

Where nothing is declared, maps are granular and lists atomic, as the server treats a custom resource without
declarations. Merges do not read `name`, `required`, `enum` and `patch_*`, and the packaged table of the operator does
not have them: they are for checks, and for strategic merge patches (`ruleop.kubernetes.builtin.builtin_types`).

The fields of an object that its kind does not have are found by the shape for kinds whose schema is not packaged with
ruleop. For custom resources, `ruleop.kubernetes.crd` does the same by their schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

FieldPath: TypeAlias = tuple[str | int, ...]
"""The keys and list indexes that lead to a value; () is the document itself."""

EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Unique:
    """A field, beside the keys, in which no two items of a list may have the same value."""

    field: str
    within: tuple[str, ...] = ()  # only among items that have the same values here as well
    sharing: tuple[str, ...] = ()  # items that have the same values here may share it
    required: bool = False  # of two items, each needs a value: an item without one conflicts with every other


@dataclass(slots=True, eq=False)
class Shape:
    """One node of a kind's shape. Built once per kind and treated as frozen from then on. It may refer to itself
    (JSONSchemaProps does), so it cannot be a frozen dataclass, and compares by identity."""

    type: Literal["object", "list", "scalar", "any"] = "any"
    name: str = ""  # of the type, where it has one: io.k8s.api.core.v1.Container
    # of objects
    fields: Mapping[str, Shape] = field(default_factory=lambda: EMPTY)  # the declared properties
    values: Shape | None = None  # additionalProperties: an open map, such as labels
    preserve_unknown: bool = False
    atomic: bool = False  # x-kubernetes-map-type: atomic
    retain_keys: bool = False  # x-kubernetes-patch-strategy: retainKeys, members exclude each other (a volume's source)
    defaults: Mapping[str, Any] = field(
        default_factory=lambda: EMPTY
    )  # the value of a missing property: {"scope": "*"}
    required: tuple[str, ...] = ()  # the properties without which the server rejects the object
    derived: str = ""  # the key of the type in `openapi.DERIVED`, if it is there
    # of lists
    items: Shape | None = None
    list_type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=lambda: EMPTY)  # {"protocol": "TCP"}
    unique: tuple[Unique, ...] = ()  # other fields that identify an item, most telling first
    # A strategic merge patch merges the list, by the field `patch_key` of its items or as a set where that is empty;
    # else it replaces the list. Ports are keyed by two fields and patched by one.
    patch_merge: bool = False
    patch_key: str = ""
    # of lists and open maps
    drops_empty: bool = (
        False  # empty and missing are the same: the server stores the kind in Go types that cannot differ
    )
    # of scalars
    scalar: Literal["", "string", "integer", "number", "boolean"] = (
        ""  # "" where several are allowed: a quantity, an int-or-string
    )
    enum: tuple[str, ...] = ()  # the only values that the server accepts; an optional field may be empty as well
    format: str = ""  # "quantity", "int-or-string", "date-time", "byte", "int32", "int64", "double", ""


UNKNOWN = Shape()


def shape_at(shape: Shape, path: FieldPath) -> Shape | None:
    """The shape of the value at a path; None where the kind has no such field or the shape is unknown."""
    current: Shape | None = shape
    for part in path:
        if isinstance(part, str):
            while current is not None and current.type == "list":
                current = current.items
        if current is None:
            return None
        current = current.items if isinstance(part, int) else current.fields.get(part, current.values)
    return current
