"""Fields of custom resources in the words of `schema` in watches.yaml: the inverse of reading them.

A field is text where the words can say all of it, and JSON Schema where they cannot: values of several types, or that
may be null. A mapping that has to be there, or that is the item of a list, gets a name under `types`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.naming import free, pascal, singular
from ruleop.core.rules.language.schema_fields import with_empty_default
from ruleop.core.schema.builtin.api_types import api_type
from ruleop.core.schema.crd.crd_checks import SCHEMA_TYPES
from ruleop.core.schema.crd.simple_schema import BASIC, OF_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.core.kinds import JSON
    from ruleop.core.schema.openapi import Schema

API_TYPES: Final = ("intstr.IntOrString", "v1.ResourceRequirements")
_ABOUT: Final = ("default", "description")
_BARE: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.:/@]*", re.ASCII)
_LARGEST: Final = 2**63 - 1


def schema_entry(spec: Schema, *, name: Schema) -> dict[str, Any]:
    """`schema` of a watch whose custom resources have this spec, and names like that."""
    writer = _Writer()
    fields = writer.fields(spec)
    types = {"types": writer.types} if writer.types else {}
    return {"spec": fields, **types, "metadata": {"name": writer.field("name", name, required=False)}}


@dataclass(slots=True)
class _Writer:
    types: dict[str, Any] = field(default_factory=dict)
    _schemas: dict[str, Schema] = field(default_factory=dict)  # of the types

    def fields(self, schema: Schema) -> dict[str, Any]:
        required = schema.get("required") or ()
        found = {
            name: self.field(name, each, required=name in required)
            for name, each in (schema.get("properties") or {}).items()
        }
        if found.get("type") in SCHEMA_TYPES:  # else the mapping would be JSON Schema
            found["type"] = f"{found['type']} | required=false"
        return found

    def field(self, name: str, schema: Schema, *, required: bool) -> Any:
        if not required and _has_plain_fields(schema, "default") and _with_default(schema) == schema:
            return self.fields(schema)
        bare = {key: each for key, each in schema.items() if key not in _ABOUT}
        markers = ["required=true"] if required else []
        markers += [_marker(key, schema[key]) for key in ("default", *_markers(schema), "description") if key in schema]
        if not _is_sayable(schema) or (word := self._type(name, bare)) is None:
            return self._json_schema(name, schema) | ({"required": True} if required else {})
        return f"{word} | {' '.join(markers)}" if markers else word

    def _type(self, name: str, schema: Schema) -> str | None:
        """The type of a field in a word; None if there is none."""
        plain = {key: each for key, each in schema.items() if key not in _markers(schema)}
        for known, each in (*BASIC.items(), *((each, api_type(each)) for each in API_TYPES)):
            if plain == each:
                return known
        if schema.get("type") == "object" and "properties" in schema:
            return self._named(name, schema)
        for key, prefix in (("items", "[]"), ("additionalProperties", "map[string]")):
            if plain.keys() == {"type", key} and not {*plain[key]} & {"default", *_markers(plain[key])}:
                word = self._type(singular(name), plain[key])
                return word and f"{prefix}{word}"
        return None

    def _json_schema(self, name: str, schema: Schema) -> dict[str, Any]:
        items = schema.get("items")
        if items is None or not _has_plain_fields(items):
            return dict(schema)
        return {**schema, "items": {"$ref": self._named(singular(name), items)}}

    def _named(self, name: str, schema: Schema) -> str:
        wished = pascal(name)
        same = next((each for each, known in self._schemas.items() if known == schema), None)
        if same is not None and same.rstrip("0123456789") == wished.rstrip("0123456789"):
            return same
        chosen = free(wished if wished.isascii() else "Type", self._schemas)
        self._schemas[chosen] = schema
        self.types[chosen] = self.fields(schema) if _has_plain_fields(schema) else dict(schema)
        return chosen


def _has_plain_fields(schema: Schema, *more: str) -> bool:
    """Whether a mapping has nothing to say but its fields, and none has a name that is taken for JSON Schema."""
    properties = schema.get("properties") or {}
    return (
        schema.get("type") == "object"
        and bool(properties)
        and {*schema} <= {"type", "required", "properties", *more}
        and not any(name == "$ref" or name.startswith("x-kubernetes-") for name in properties)
    )


def _with_default(schema: Schema) -> Mapping[str, Any]:
    """A mapping of these fields as it is read."""
    return with_empty_default({key: each for key, each in schema.items() if key != "default"})


def _is_sayable(schema: Schema) -> bool:
    """Whether markers can say the default and the members of an enum."""
    default, of_type = schema.get("default"), schema.get("type")
    if isinstance(default, int) and not isinstance(default, bool) and abs(default) > _LARGEST:
        return False
    if any("," in str(each) or str(each) != str(each).strip() for each in schema.get("enum") or ()):
        return False
    if isinstance(default, str) and of_type is None:
        try:
            json.loads(default)
        except ValueError:
            return True
        return False  # it would be read as a number
    return "default" in schema or of_type != "object" or "default" not in with_empty_default(schema)


def _markers(schema: Schema) -> tuple[str, ...]:
    return OF_TYPE.get(schema.get("type", ""), ())


def _marker(key: str, value: JSON) -> str:
    if key == "enum" and isinstance(value, list):
        value = ",".join(map(str, value))
    elif not isinstance(value, str):
        return f"{key}={json.dumps(value, ensure_ascii=False)}"
    if _BARE.fullmatch(value):
        return f"{key}={value}"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key}="{escaped}"'
