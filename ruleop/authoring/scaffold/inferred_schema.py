"""A structural schema inferred from sample values, also in the words of `schema` in watches.yaml.

What samples cannot say is decided so that templates can read every field without `default(...)`:

- numbers and booleans of a mapping get the sample's value as their default; lists, open mappings, and mappings whose
  fields all have defaults are empty by default; text is required. A field that some samples lack is optional. A
  credential is required, whatever its type.
- fields of list items have no defaults: those that all items have are required.
- a mapping whose keys are not names of fields (`example.com/a`), or that is known as a map (`labels`), is a map: any
  keys, values of one type. An empty mapping, null, and values of several types accept everything.
- numbers beside text, and fields that the API takes as both (`targetPort`, `memory`), are int-or-string.
- a list of mappings with unique names is merged by `name`.

In watches.yaml a field is text where the words can say all of it, and JSON Schema where they cannot: values of several
types, or that may be null. A mapping that has to be there, or that is the item of a list, gets a name under `types`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.manifests.plain_credentials import is_secret_name
from ruleop.authoring.scaffold.naming import free, pascal, singular
from ruleop.kubernetes.crd_checks import SCHEMA_TYPES
from ruleop.kubernetes.schema import validate
from ruleop.language.rules.keys.schema_keys import with_empty_default
from ruleop.language.rules.keys.simple_schema import BASIC, INT_OR_STRING, OF_TYPE, api_type
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema import Schema

OPEN: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}

_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_MAPS: Final = frozenset(
    {
        *("labels", "annotations", "nodeSelector", "matchLabels", "selector", "extraLabels", "extraAnnotations"),
        *("podLabels", "podAnnotations", "data", "stringData", "binaryData", "env", "config", "settings"),
        *("parameters", "options", "properties"),
    }
)
_INT_OR_STRING_FIELDS: Final = frozenset(
    {"targetPort", "maxSurge", "maxUnavailable", "minAvailable", "cpu", "memory", "storage"}
)
_AMOUNTS: Final[Schema] = {"type": "object", "additionalProperties": INT_OR_STRING}
_LARGEST_INTEGER: Final = 2**63 - 1


def infer(samples: Sequence[JSON], name: str = "", *, defaults: bool = True) -> Schema:
    """The schema of a field of this name, of which these are all the values. It accepts each of them."""
    present = [sample for sample in samples if sample is not None]
    nullable = len(present) < len(samples)
    schema = _of_values(present, name, defaults=defaults and not nullable) if present else OPEN
    return {**schema, "nullable": True} if nullable else schema


def _of_values(samples: list[JSON], name: str, *, defaults: bool) -> Schema:
    types = {_type(sample) for sample in samples}
    if types == {"object"}:
        return _mapping(samples, name, defaults=defaults)
    if types == {"array"}:
        return _list([item for sample in samples for item in sample], samples)
    if types <= {"integer", "string"} and (len(types) == 2 or name in _INT_OR_STRING_FIELDS):
        return INT_OR_STRING
    if types == {"integer", "number"}:
        return {"type": "number"}
    return {"type": types.pop(), **_limits(samples, name)} if len(types) == 1 else OPEN


def _type(value: JSON) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if abs(value) <= _LARGEST_INTEGER else "number"
    if isinstance(value, float):
        return "number"
    if value is None or isinstance(value, str):
        return "null" if value is None else "string"
    return "object" if isinstance(value, Mapping) else "array"


def _limits(samples: list[Any], name: str) -> Schema:
    """The range of two well-known fields, if the samples are within it."""
    ranges = {"replicas": (0, None), "port": (1, 65535), "containerPort": (1, 65535)}
    low, high = ranges.get(name, (None, None))
    if low is None or not all(type(each) is int and low <= each <= (high or each) for each in samples):
        return {}
    return {"minimum": low} if high is None else {"minimum": low, "maximum": high}


def _mapping(samples: list[Mapping[str, JSON]], name: str, *, defaults: bool) -> Schema:
    keys = list(dict.fromkeys(key for sample in samples for key in sample))
    if not keys:
        return {"type": "object", **OPEN}
    if name == "resources" and {"limits", "requests"}.issuperset(keys):
        resources = api_type("v1.ResourceRequirements")
        if not any(validate(sample, resources) for sample in samples):
            return resources
    if name in {"limits", "requests"} and _is_amounts(samples):
        return _AMOUNTS
    values = [value for sample in samples for value in sample.values()]
    has_scalars = not any(isinstance(value, (Mapping, list)) for value in values)
    if (name in _MAPS and has_scalars) or not all(_FIELD.fullmatch(key) for key in keys):
        return {"type": "object", "additionalProperties": infer(values, defaults=False)}
    return fields(samples, defaults=defaults)


def _is_amounts(samples: list[Mapping[str, JSON]]) -> bool:
    return all(_type(value) in ("integer", "string") for sample in samples for value in sample.values())


def fields(samples: Sequence[Mapping[str, JSON]], *, defaults: bool = True) -> Schema:
    """The schema of a mapping with declared fields."""
    properties: dict[str, Schema] = {}
    required = []
    for key in dict.fromkeys(key for sample in samples for key in sample):
        values = [sample[key] for sample in samples if key in sample]
        everywhere = len(values) == len(samples)
        has_default = defaults and everywhere and not is_secret_name(key)
        schema = infer(values, key, defaults=has_default)
        default = _default(schema, values) if has_default else None
        properties[key] = schema if default is None else {**schema, "default": default}
        if everywhere and default is None and not schema.get("nullable"):
            required.append(key)
    declared: dict[str, Any] = {"type": "object"}
    if required:
        declared["required"] = required
    return {**declared, "properties": properties}


def _default(schema: Schema, values: list[Any]) -> JSON:
    """The default of a field that all samples have; None for a field that is required."""
    if schema.get("nullable"):
        return None
    match schema.get("type"):
        case "integer" | "number" | "boolean":
            return values[0]
        case "array":
            return []
        case "object" if not schema.get("required"):
            return {}
    return None


def _list(items: list[JSON], samples: list[list[JSON]]) -> Schema:
    if not items:
        return {"type": "array", "items": OPEN}
    schema = infer(items, defaults=False)
    declared: dict[str, Any] = {"type": "array"}
    if "name" in schema.get("required", ()) and _is_name(schema) and all(map(_has_unique_names, samples)):
        declared |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    return {**declared, "items": schema}


def _is_name(schema: Schema) -> bool:
    return not schema.get("nullable") and schema["properties"]["name"].get("type") == "string"


def _has_unique_names(items: list[Any]) -> bool:
    names = [item["name"] for item in items]
    return len(set(names)) == len(names)


API_TYPES: Final = ("intstr.IntOrString", "v1.ResourceRequirements")
_ABOUT: Final = ("default", "description")
_BARE: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.:/@]*", re.ASCII)


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
    if isinstance(default, int) and not isinstance(default, bool) and abs(default) > _LARGEST_INTEGER:
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
