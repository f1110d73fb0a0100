"""The CustomResourceDefinition of a new project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.schema.definition import AGE_COLUMN, READY_COLUMN, WRITTEN, Names, Version, definition_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import Kind
    from ruleop.schema.openapi import Schema


def definition(
    kind: Kind, fields: Mapping[str, Schema], *, required: list[str], status: Mapping[str, Schema], longest: int
) -> dict[str, Any]:
    """The definition of a kind with these fields beside metadata. Names of its objects have at most `longest`
    characters, so that names of children that are made of them stay valid."""
    name = {
        "description": "Names of other objects are made of it.",
        "type": "string",
        "maxLength": longest,
        "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$",
    }
    schema: dict[str, Any] = {"type": "object"}
    if required:
        schema["required"] = required
    schema["properties"] = {
        "metadata": {"type": "object", "properties": {"name": name}},
        **fields,
        "status": {"type": "object", "properties": {**status, **WRITTEN}},
    }
    columns = [
        {"name": f"{field[0].upper()}{field[1:]}", "type": str(each["type"]), "jsonPath": f".status.{field}"}
        for field, each in status.items()
    ]
    version = Version(kind.version, schema, (*columns, READY_COLUMN, AGE_COLUMN))
    return definition_document(kind.group, Names.of(kind.kind), [version], scope="Namespaced")
