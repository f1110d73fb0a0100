"""The fields of a schema as rows of a table: path, type, default, constraints, description."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.authoring.generate.reference.markdown import code, prose
from ruleop.core.schema.crd.simple_schema import IMMUTABLE_RULE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.schema.openapi import Schema

HEADER: Final = ("field", "type", "default", "constraints", "description")
_MAX_FIELDS: Final = 60  # below one field: a type of the API, such as a whole Pod, would hide the others
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_BOUNDS: Final = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "length at least",
    "maxLength": "length at most",
    "minItems": "items at least",
    "maxItems": "items at most",
    "minProperties": "entries at least",
    "maxProperties": "entries at most",
}


class Row(NamedTuple):
    field: str
    type: str
    default: str
    constraints: str
    description: str


def rows(schema: Schema, path: str, *, required: bool = False) -> list[Row]:
    """The field and all below. Of items and of a whole section, only what adds to it."""
    inner = [row for name, below, needed in _below(schema, path) for row in rows(below, name, required=needed)]
    constraints = [*(["required"] if required else ()), *_constraints(schema)]
    if len(inner) > _MAX_FIELDS and "." in path:
        constraints.append(f"{len(inner)} fields")
        inner = []
    default = code(json.dumps(schema["default"], ensure_ascii=False)) if "default" in schema else ""
    described = prose(str(schema.get("description") or ""))
    is_bare = not (default or constraints or described) and ("." not in path or path.endswith(("[]", ".*")))
    own = [] if is_bare else [Row(code(path), code(type_of(schema)), default, "; ".join(constraints), described)]
    return [*own, *inner]


def type_of(schema: Schema) -> str:
    """In the words of SimpleSchema."""
    values, items = schema.get("additionalProperties"), schema.get("items")
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if schema.get("type") == "array":
        return f"[]{type_of(items if isinstance(items, dict) else {})}"
    if isinstance(values, dict):
        return f"map[string]{type_of(values)}"
    of_type = str(schema.get("type") or ("object" if "properties" in schema else "any"))
    return f"{of_type} ({schema['format']})" if schema.get("format") and of_type == "string" else of_type


def cel_messages(schema: Schema) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations") or ():
        if " ".join(rule["rule"].split()) == IMMUTABLE_RULE:
            yield "immutable"
        else:
            yield prose(rule["message"]) if rule.get("message") else code(rule["rule"])


def _below(schema: Schema, path: str) -> Iterator[tuple[str, Schema, bool]]:
    needed = schema.get("required") or ()
    for name, below in (schema.get("properties") or {}).items():
        yield f"{path}.{name}", below, name in needed
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(item := schema.get(key), dict):
            yield f"{path}{suffix}", item, False


def _constraints(schema: Schema) -> Iterator[str]:
    if values := schema.get("enum"):
        yield f"one of {', '.join(code(_plain(value)) for value in values)}"
    if pattern := schema.get("pattern"):
        yield f"matches {code(pattern)}"
    for key, words in _BOUNDS.items():
        if (bound := schema.get(key)) is not None and not isinstance(bound, bool):
            exclusive = schema.get(f"exclusive{key.capitalize()}") is True
            yield f"{_BOUNDS[f'exclusive{key.capitalize()}'] if exclusive else words} {_plain(bound)}"
    if schema.get("uniqueItems") or schema.get("x-kubernetes-list-type") == "set":
        yield "no item twice"
    if keys := schema.get("x-kubernetes-list-map-keys"):
        yield f"each item has another {', '.join(map(code, keys))}"
    if schema.get("nullable"):
        yield "may be null"
    if schema.get(_OPEN):
        yield "any fields"
    yield from cel_messages(schema)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
