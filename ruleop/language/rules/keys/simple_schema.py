"""A field of a custom resource in short form: `string | required=true default=small enum="small,medium"`; and the types
of the API, which fields can have.

The words are those of kro's SimpleSchema, so that its schemas can be pasted: a type, and after a `|` markers separated
by spaces. A type is a word, `[]T` or `map[string]T`. What other words than the basic ones mean is for the caller to
say. Everything that is not understood is an error with its offset in the text."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.kubernetes.builtin.builtin_types import type_schemas
from ruleop.kubernetes.schema import (
    OBJECT_META,
    OPTIONAL_FIELDS,
    compile_pattern,
    reference,
    validate,
)
from ruleop.nearest import did_you_mean
from ruleop.patterns import InvalidPatternError
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.schema import Schema

BASIC: Final[Mapping[str, Schema]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "float": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
"""The types that need no declaration. An `object` keeps all its fields."""

Resolve: TypeAlias = Callable[[str], "Schema"]
"""The schema of another type by its name. Raises UnknownTypeError."""

_COMMON: Final = ("required", "default", "description", "immutable", "validation")
OF_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("enum", "pattern", "minLength", "maxLength"),
    "integer": ("enum", "minimum", "maximum"),
    "number": ("enum", "minimum", "maximum"),
    "array": ("minItems", "maxItems", "uniqueItems"),
}
"""The markers of a type, beside those that all have."""
_MARKERS: Final = (*_COMMON, *dict.fromkeys(name for names in OF_TYPE.values() for name in names))
_FLAGS: Final = frozenset({"required", "immutable", "uniqueItems"})
_COUNTS: Final = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_IN_WORDS: Final = {"array": "a list", "object": "a mapping", "boolean": "a boolean", "": "a value of any type"}
_OTHER_NAMES: Final = {
    "int": "integer", "int32": "integer", "int64": "integer", "bool": "boolean", "str": "string", "text": "string",
    "double": "number", "float64": "number", "array": "[]string", "list": "[]string", "map": "map[string]string",
}  # fmt: skip
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)
_BARE: Final = re.compile(r"\S+")
_MARKER: Final = re.compile(r"([A-Za-z][A-Za-z0-9]*)\s*=\s*")
IMMUTABLE_RULE: Final = "self == oldSelf"


class SimpleSchemaError(ValueError):
    """A text that is not a field. `offset` is where in the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message, self.offset = message, offset


class UnknownTypeError(LookupError):
    """No type has this name. The message ends with a suggestion."""


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A field: its schema, and whether the mapping around it must have it."""

    schema: Schema
    required: bool = False


@dataclass(frozen=True, slots=True)
class _Marker:
    name: str
    value: str  # without its quotes
    offset: int  # of the name
    value_offset: int


def parse_field(text: str, resolve: Resolve) -> SchemaField:
    """The field that a text describes. Raises SimpleSchemaError."""
    type_text, bar, _ = text.partition("|")
    schema = dict(_type(type_text.rstrip(), len(type_text) - len(type_text.lstrip()), resolve))
    markers: dict[str, _Marker] = {}
    for marker in _markers(text, len(type_text) + 1) if bar else ():
        if marker.name in markers:
            raise SimpleSchemaError(f'the marker "{marker.name}" is a duplicate', marker.offset)
        _require_known(marker, schema)
        markers[marker.name] = marker
    flags = {name: _flag(marker) for name, marker in markers.items() if name in _FLAGS}
    for name, marker in markers.items():
        if name not in (*_FLAGS, "default", "validation"):
            schema[name] = _value_of(marker, schema)
    _require_order(schema, markers)
    if flags.get("uniqueItems"):
        if (schema.get("items") or {}).get("type") not in ("string", "integer", "number", "boolean"):
            message = "uniqueItems needs a list of text, numbers or booleans"
            raise SimpleSchemaError(message, markers["uniqueItems"].offset)
        schema["x-kubernetes-list-type"] = "set"
    rules = [{"rule": markers["validation"].value}] if "validation" in markers else []
    if flags.get("immutable"):
        rules.append({"rule": IMMUTABLE_RULE, "message": "is immutable"})
    if rules:
        schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", ()), *rules]
    if (marker_of_default := markers.get("default")) is not None:
        schema["default"] = _default(marker_of_default, schema)
    return SchemaField(schema, flags.get("required", False))


def is_type(text: str) -> bool:
    """Whether a text is a basic type, or a list or map of one, without markers."""

    def refuse(name: str) -> Schema:
        raise UnknownTypeError(name)

    try:
        _type(text, 0, refuse)
    except SimpleSchemaError:
        return False
    return True


# -- types -------------------------------------------------------------------------------------------------------------


def _type(text: str, offset: int, resolve: Resolve) -> Schema:
    """The schema of the type that is in the text from this offset to its end."""
    name = text[offset:]
    if name.startswith("[]"):
        return {"type": "array", "items": _type(text, offset + 2, resolve)}
    if name.startswith("map["):
        if not name.startswith("map[string]"):
            raise SimpleSchemaError('the keys of a map are text: write "map[string]TYPE"', offset)
        return {"type": "object", "additionalProperties": _type(text, offset + len("map[string]"), resolve)}
    if not name:
        raise SimpleSchemaError('the type is missing: write one such as "string" or "[]string"', offset)
    found = _NAME.fullmatch(name)
    if found is None:
        missing_bar = re.match(r"([\w.-]+)\s+\w+\s*=", name)
        hint = f' (before markers there is a "|": "{missing_bar[1]} | ...")' if missing_bar else ""
        raise SimpleSchemaError(f'"{name}" is not a type{hint}', offset)
    if name in BASIC:
        return BASIC[name]
    try:
        return resolve(name)
    except UnknownTypeError as error:
        meant = f' (did you mean "{_OTHER_NAMES[name]}"?)' if name in _OTHER_NAMES else str(error)
        raise SimpleSchemaError(f'unknown type "{name}"{meant}', offset) from None


# -- markers -----------------------------------------------------------------------------------------------------------


def _markers(text: str, offset: int) -> Iterator[_Marker]:
    while offset < len(text):
        if text[offset].isspace():
            offset += 1
            continue
        found = _MARKER.match(text, offset)
        if found is None:
            rest = text[offset:].split(maxsplit=1)[0]
            hint = f": write {rest}=true" if rest in _FLAGS else did_you_mean(rest, _MARKERS)
            raise SimpleSchemaError(f'"{rest}" is not a marker of the form name=value{hint}', offset)
        start = found.end()
        value, end = _value(text, start)
        if end < len(text) and not text[end].isspace():
            raise SimpleSchemaError(f'a space is missing after the value of "{found[1]}"', end)
        yield _Marker(found[1], value, offset, start)
        offset = end


def _value(text: str, start: int) -> tuple[str, int]:
    """The value that begins here, and where it ends."""
    first = text[start : start + 1]
    if first in ('"', "'"):
        return _quoted(text, start)
    if first in ("[", "{"):
        try:
            _, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            message = 'this is not JSON: text in it needs double quotes, as in ["a", "b"]'
            raise SimpleSchemaError(message, start) from None
        return text[start:end], end
    found = _BARE.match(text, start)
    if found is None:
        raise SimpleSchemaError('the value is missing after "="', start)
    return found[0], found.end()


def _quoted(text: str, start: int) -> tuple[str, int]:
    """Text in quotes. A backslash escapes only the quote and itself, so that regular expressions need no doubling."""
    quote, offset = text[start], start + 1
    value: list[str] = []
    while offset < len(text):
        character = text[offset]
        if character == quote:
            return "".join(value), offset + 1
        if character == "\\" and text[offset + 1 : offset + 2] in (quote, "\\"):
            offset += 1
            character = text[offset]
        value.append(character)
        offset += 1
    message = (
        f"the closing {quote} is missing (in YAML, ` #` begins a comment, and a `,` in braces ends the field: put the "
        "whole field in quotes)"
    )
    raise SimpleSchemaError(message, start)


def _require_known(marker: _Marker, schema: Schema) -> None:
    if marker.name not in _MARKERS:
        raise SimpleSchemaError(f'unknown marker "{marker.name}"{did_you_mean(marker.name, _MARKERS)}', marker.offset)
    declared = schema.get("type", "")
    if marker.name not in (*_COMMON, *OF_TYPE.get(declared, ())):
        owners = [f'"{name}"' for name, names in OF_TYPE.items() if marker.name in names and name != "array"]
        of_what = " or ".join(owners) or "a list"
        what = _IN_WORDS.get(declared, f'"{declared}"')
        raise SimpleSchemaError(f'"{marker.name}" is a marker of {of_what}, and this is {what}', marker.offset)


def _value_of(marker: _Marker, schema: Schema) -> Any:
    if marker.name in _COUNTS:
        if not (marker.value.isascii() and marker.value.isdigit()):
            raise SimpleSchemaError(f'{marker.name} must be a whole number, not "{marker.value}"', marker.value_offset)
        return int(marker.value)
    if marker.name in ("minimum", "maximum"):
        return _number(marker.value, schema["type"], marker)
    if marker.name == "enum":
        members = [each.strip() for each in marker.value.split(",")]
        if "" in members and schema["type"] != "string":
            raise SimpleSchemaError('enum has an empty member: write enum="1,2"', marker.value_offset)
        found = [each if schema["type"] == "string" else _number(each, schema["type"], marker) for each in members]
        for index, each in enumerate(found):
            if each in found[:index]:
                raise SimpleSchemaError(f"enum has {each} twice", marker.value_offset)
        return found
    if marker.name == "pattern":
        try:
            compile_pattern(marker.value)
        except InvalidPatternError as error:
            message = f"pattern is not a valid regular expression (RE2): {error}"
            raise SimpleSchemaError(message, marker.value_offset) from None
    return marker.value


def _require_order(schema: Schema, markers: Mapping[str, _Marker]) -> None:
    for low, high in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
        if low in markers and high in markers and schema[low] > schema[high]:
            message = f"{low} is {schema[low]} and {high} is {schema[high]}, so no value is valid"
            raise SimpleSchemaError(message, markers[low].offset)


def _flag(marker: _Marker) -> bool:
    if marker.value not in ("true", "false"):
        raise SimpleSchemaError(f'{marker.name} must be true or false, not "{marker.value}"', marker.value_offset)
    return marker.value == "true"


def _number(text: str, of_type: str, marker: _Marker) -> int | float:
    pattern = r"[-+]?\d+" if of_type == "integer" else r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?"
    if re.fullmatch(pattern, text, re.ASCII) is None:
        what = "a whole number" if of_type == "integer" else "a number"
        raise SimpleSchemaError(f'{marker.name} must be {what}, not "{text}"', marker.value_offset)
    if re.fullmatch(r"[-+]?\d+", text, re.ASCII):
        number = int(text)
        if abs(number) > 2**63 - 1:
            raise SimpleSchemaError(f"{marker.name} is beyond 64 bits", marker.value_offset)
        return number
    return float(text)


def _default(marker: _Marker, schema: Schema) -> Any:
    value = _default_value(marker, schema)
    for finding in validate(value, schema):
        raise SimpleSchemaError(f"the default {finding}", marker.value_offset)
    return value


def _default_value(marker: _Marker, schema: Schema) -> Any:
    match schema.get("type"):
        case "string":
            return marker.value
        case "integer" | "number" as of_type:
            return _number(marker.value, of_type, marker)
        case "boolean":
            return _flag(marker)
    try:
        return json.loads(marker.value)
    except ValueError:
        if "type" not in schema:  # a number or text, or a type of the API that is not known while the rules are loaded
            return marker.value
        message = f'default must be JSON, such as [] or {{}}, not "{marker.value}"'
        raise SimpleSchemaError(message, marker.value_offset) from None


# -- api types ---------------------------------------------------------------------------------------------------------
#
# The types of the API as parts of a CRD's schema: `v1.ResourceRequirements` is what a container's `resources` are.
#
# A name is the end of the type's full name in the published documents (`io.k8s.api.core.v1.ResourceRequirements`), with
# at least its version. The schema is structural, as controller-gen writes it for the same Go type.

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
