"""The schemas of the fields that a status sets, from the types of their values.

A schema has only types: a bound or an enumeration of the field that a value comes from says nothing about the status,
and the API server would refuse the whole status for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.typing.bodies.typed_bodies import Items, Literal, Members, Text, Whole
from ruleop.authoring.checking.typing.types import (
    NULL,
    STRING,
    UNKNOWN,
    Type,
    item_of,
    join,
    list_of,
    mapping_of,
    of_data,
)
from ruleop.core.schema.builtin.api_types import named_type, structural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.authoring.checking.typing.bodies.schema_nodes import SchemaNode
    from ruleop.authoring.checking.typing.bodies.typed_bodies import Body
    from ruleop.core.errors import Site
    from ruleop.core.schema.openapi import Schema

_SCALARS: Final[Mapping[frozenset[str], Schema]] = {
    frozenset({"string"}): {"type": "string"},
    frozenset({"integer"}): {"type": "integer"},
    frozenset({"number"}): {"type": "number"},
    frozenset({"integer", "number"}): {"type": "number"},
    frozenset({"boolean"}): {"type": "boolean"},
    frozenset({"integer", "string"}): {"x-kubernetes-int-or-string": True},
    frozenset({"integer", "number", "string"}): {"x-kubernetes-int-or-string": True},  # a quantity
}
_KEPT: Final = (
    "type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StatusField:
    """A field of the status. `schema` is None if its type is not known."""

    site: Site
    schema: Schema | None


def status_fields(bodies: Iterable[Body]) -> dict[str, StatusField] | None:
    """The fields of a status that these bodies set; None if their names are not known."""
    sites: dict[str, Site] = {}
    types: dict[str, list[Type]] = {}
    for body in bodies:
        if not isinstance(body, Members) or body.is_open:
            return None
        for member in body.members:
            sites.setdefault(member.name, member.site)
            types.setdefault(member.name, []).append(_type_of(member.body))
    return {name: StatusField(sites[name], schema_of(_union(found))) for name, found in types.items()}


def _type_of(body: Body) -> Type:
    match body:
        case Literal():
            return of_data(body.value) if body.value is not None else NULL
        case Whole():
            return body.slot.type.defined()
        case Text():
            return STRING
        case Members():
            values = UNKNOWN if body.spreads else _union([_type_of(each.body) for each in body.computed])
            fields = {each.name: _type_of(each.body) for each in body.members}
            return mapping_of(fields, values=values if body.is_open else None)
        case Items():
            found = [_type_of(each) for each in body.items]
            return list_of(_union([*found, UNKNOWN] if body.spreads else found))


def _union(types: list[Type]) -> Type:
    """The type of a value that is of one of these types: field by field for mappings, item by item for lists. A value
    that is missing, null or an empty list says nothing."""
    known = [each for each in types if each.kinds - {"null"} and not _is_empty(each)]
    made = [each for each in known if each.node is None and each.values is None]
    if len(made) < len(known) or len(known) < 2:
        return join(known or types)
    if all(each.kinds == {"list"} for each in known):
        return list_of(_union([item_of(each) for each in known]))
    if all(each.fields is not None for each in known):
        fields = [each.fields or {} for each in known]
        names = dict.fromkeys(name for each in fields for name in each)
        return mapping_of({name: _union([each[name] for each in fields if name in each]) for name in names})
    return join(known)


def _is_empty(each: Type) -> bool:
    return each.kinds == {"list"} and each.node is None and each.least == 0 and each.item in (None, UNKNOWN)


def schema_of(found: Type) -> Schema | None:
    """The schema of a type; None if too little is known of it."""
    kinds = found.kinds - {"null"}
    if kinds in _SCALARS:
        is_time = found.node is not None and found.node.schema.get("format") == "date-time"
        return {**_SCALARS[kinds], "format": "date-time"} if is_time else _SCALARS[kinds]
    if kinds == {"list"}:
        items = schema_of(item_of(found))
        return None if items is None else {"type": "array", "items": items}
    if kinds != {"mapping"}:
        return None
    if found.node is not None:
        return _of_node(found.node)
    if found.values is not None:
        return _map_of([found.values, *(found.fields or {}).values()])
    if not found.fields:
        return None
    properties = {name: schema_of(each) for name, each in found.fields.items()}
    return None if None in properties.values() else {"type": "object", "properties": properties}


def _map_of(values: list[Type]) -> Schema | None:
    inner = schema_of(_union(values))
    return None if inner is None else {"type": "object", "additionalProperties": inner}


def _of_node(node: SchemaNode) -> Schema | None:
    if not node.builtin:
        return _types_only(node.schema)
    return _types_only(named_type(node.name) if node.name else structural(node.schema))


def _types_only(schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {keyword: schema[keyword] for keyword in _KEPT if keyword in schema}
    if schema.get("format") == "date-time":
        found["format"] = "date-time"
    if isinstance(properties := schema.get("properties"), Mapping):
        found["properties"] = {name: _types_only(each) for name, each in properties.items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(keyword), Mapping):
            found[keyword] = _types_only(inner)
        elif inner is not None:
            found[keyword] = inner
    return found
