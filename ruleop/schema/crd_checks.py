"""What the API server would refuse in a CustomResourceDefinition, found before it is asked.

Two kinds of rules: those about the definition (names, versions, columns), and those that make a schema *structural*: every value's
type is said once, outside of allOf, anyOf, oneOf and not, which may only narrow it. One finding is not of the server: a `required`
field that is no property is accepted, and makes every object of the kind invalid.

CEL rules are not compiled here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.kinds import Kind, Object
from ruleop.names import is_letter_label, is_subdomain
from ruleop.schema.crds import CrdVersion, CustomResourceDefinition, parse_crd
from ruleop.schema.fields import shape_at, unknown_to_shape
from ruleop.schema.findings import Finding, Path
from ruleop.schema.nearest import did_you_mean
from ruleop.schema.pattern import InvalidPatternError, compile_pattern
from ruleop.schema.shape import UNKNOWN, Shape
from ruleop.schema.structural import META_FIELDS, drop_unknown
from ruleop.schema.table import builtin_shape
from ruleop.schema.validation import subschemas, validate

if TYPE_CHECKING:
    from ruleop.schema.openapi import Schema

_KIND: Final = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_SCHEMA_PATH: Final = ("spec", "versions", 0, "schema", "openAPIV3Schema")

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_UNSUPPORTED: Final = ("$ref", "$schema", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
_ONLY_OUTSIDE: Final = (
    "additionalProperties",
    "default",
    "description",
    "nullable",
    "title",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
)
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]


def check_crd(document: Object) -> list[Finding]:
    """Everything in a CRD that the API server would refuse, as far as this room can tell. Raises SchemaError as `parse_crd` does."""
    return list(_definition(document, parse_crd(document)))


def _definition(document: Object, crd: CustomResourceDefinition) -> Iterator[Finding]:
    # Schemas have a walk of their own below.
    yield from (finding for finding in unknown_to_shape(document, _own_shape()) if "openAPIV3Schema" not in finding.path[:-1])
    name = (document.get("metadata") or {}).get("name")
    if name != crd.name:
        yield Finding(("metadata", "name"), f"must be {crd.name}, the plural and the group, not {name!r}")
    if not ("." in crd.group and is_subdomain(crd.group)):
        yield Finding(("spec", "group"), f"must be a domain name with a dot, in lower case, not {crd.group!r}")
    if document["spec"].get("preserveUnknownFields"):
        yield Finding(
            ("spec", "preserveUnknownFields"), "must be false; x-kubernetes-preserve-unknown-fields in the schema opens parts of it"
        )
    yield from _names(crd)
    yield from _versions(crd)


def _names(crd: CustomResourceDefinition) -> Iterator[Finding]:
    names: list[tuple[Path, str]] = [(("plural",), crd.plural), (("singular",), crd.singular)]
    names += [(("kind",), crd.kind.lower()), (("listKind",), crd.list_kind.lower())]
    names += [(("shortNames", index), name) for index, name in enumerate(crd.short_names)]
    names += [(("categories", index), name) for index, name in enumerate(crd.categories)]
    for path, name in names:
        if not is_letter_label(name):
            yield Finding(
                ("spec", "names", *path), "must be letters, digits and dashes, and begin with a letter (only kinds may have capitals)"
            )
    if crd.kind == crd.list_kind:
        yield Finding(("spec", "names", "listKind"), "must differ from kind")


def _versions(crd: CustomResourceDefinition) -> Iterator[Finding]:
    stored = [version.name for version in crd.versions if version.storage]
    if len(stored) != 1:
        yield Finding(("spec", "versions"), f"exactly one version must have storage: true, not {len(stored)}")
    seen: set[str] = set()
    for index, version in enumerate(crd.versions):
        path: Path = ("spec", "versions", index)
        if version.name in seen:
            yield Finding((*path, "name"), f"{version.name} is there twice")
        seen.add(version.name)
        if not is_letter_label(version.name):
            yield Finding((*path, "name"), f"must be a version such as v1 or v1alpha1, not {version.name!r}")
        yield from _columns(version, (*path, "additionalPrinterColumns"))
        schema_path = (*path, "schema", "openAPIV3Schema")
        if not version.schema:
            yield Finding(schema_path, "is required; without a schema the server keeps no field")
        else:
            yield from _root(version.schema, schema_path)


def _columns(version: CrdVersion, path: Path) -> Iterator[Finding]:
    for index, column in enumerate(version.printer_columns):
        if not column.name:
            yield Finding((*path, index, "name"), "is required")
        if column.type not in _COLUMN_TYPES:
            yield Finding((*path, index, "type"), f"must be one of {', '.join(_COLUMN_TYPES)}{did_you_mean(column.type, _COLUMN_TYPES)}")
        if not column.json_path.startswith("."):
            yield Finding((*path, index, "jsonPath"), "must be a path that begins with a dot, such as .spec.size")


def _root(schema: Schema, path: Path) -> Iterator[Finding]:
    if schema.get("type") != "object":
        yield Finding((*path, "type"), "must be object at the root")
    if schema.get("additionalProperties") is not None:
        yield Finding((*path, "additionalProperties"), "must not be used at the root")
    if schema.get("nullable"):
        yield Finding((*path, "nullable"), "must not be used at the root")
    metadata = (schema.get("properties") or {}).get("metadata") or {}
    restricted = set(metadata) - {"type", "description", "properties"} | set(metadata.get("properties") or ()) - {"name", "generateName"}
    if restricted:
        yield Finding((*path, "properties", "metadata"), f"may restrict only name and generateName, not {', '.join(sorted(restricted))}")
    yield from _schema(schema, path, root=True)


def _schema(schema: Schema, path: Path, *, root: bool = False) -> Iterator[Finding]:
    """A schema that says what a value is, with all that is below it."""
    yield from _any_schema(schema, path)
    declared, properties = schema.get("type"), schema.get("properties") or {}
    embedded = schema.get("x-kubernetes-embedded-resource")
    untyped = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not root and not declared and (embedded or not untyped):
        yield Finding((*path, "type"), "is required, to be structural")
    if declared == "array" and not isinstance(schema.get("items"), Mapping):
        yield Finding((*path, "items"), "is required: the schema of the list's items")
    if properties and schema.get("additionalProperties") is not None:
        yield Finding((*path, "additionalProperties"), "and properties exclude each other")
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        yield Finding((*path, "properties"), "is required with x-kubernetes-embedded-resource, or x-kubernetes-preserve-unknown-fields is")
    open_to_others = schema.get("additionalProperties") is not None or schema.get("x-kubernetes-preserve-unknown-fields")
    for index, name in enumerate(schema.get("required") or ()):
        if name not in properties and not open_to_others and not (root and name in META_FIELDS):
            message = f"{name} is not a property, so no object could ever be valid{did_you_mean(str(name), properties)}"
            yield Finding((*path, "required", index), message)
    yield from _topology(schema, path)
    yield from _default(schema, path)
    for part, sub in subschemas(schema):
        if part[0] in ("properties", "items", "additionalProperties"):
            if not (root and part == ("properties", "metadata")):
                yield from _schema(sub, (*path, *part))
        else:
            # The server compares only the junctions of the root with what is declared; further in, undeclared fields are pruned anyway.
            yield from _narrowing(sub, (*path, *part), outside=schema if root else None, typed=_int_or_string_paths(schema, path))


def _narrowing(schema: Schema, path: Path, *, outside: Schema | None, typed: frozenset[Path]) -> Iterator[Finding]:
    """A schema inside allOf, anyOf, oneOf or not. It may only narrow what `outside` has said already (None: nobody asks), and may name
    types only at the paths in `typed`."""
    yield from _any_schema(schema, path)
    for keyword in _ONLY_OUTSIDE:
        if keyword in schema and not (keyword == "type" and path in typed):
            yield Finding((*path, keyword), f"must stand outside of {_junction(path)}, to be structural")
    for part, sub in subschemas(schema):
        inner: Path = (*path, *part)
        inner_outside = outside
        if outside is not None and part[0] in ("properties", "items"):
            known = outside.get("properties") or {}
            inner_outside = known.get(part[1]) if part[0] == "properties" else outside.get("items")
            if inner_outside is None:
                hint = did_you_mean(str(part[-1]), known) if part[0] == "properties" else ""
                yield Finding(inner, f"must also be declared outside of {_junction(path)}, to be structural{hint}")
        if part != ("additionalProperties",):
            yield from _narrowing(sub, inner, outside=inner_outside, typed=typed)


def _int_or_string_paths(schema: Schema, path: Path) -> frozenset[Path]:
    """Where types may be named inside a junction: the two alternatives "integer" and "string", in the two places the server looks at."""
    places: list[Path] = []
    if schema.get("anyOf") == _INT_OR_STRING:
        places.append((*path, "anyOf"))
    if (schema.get("allOf") or [{}])[0].get("anyOf") == _INT_OR_STRING:
        places.append((*path, "allOf", 0, "anyOf"))
    return frozenset((*place, index) for place in places for index in (0, 1))


def _any_schema(schema: Schema, path: Path) -> Iterator[Finding]:
    """What is asked of each schema, wherever it stands."""
    keywords = _keywords()
    for keyword in schema:
        if keyword in _UNSUPPORTED and schema[keyword]:
            yield Finding((*path, keyword), "is not supported in a CRD")
        elif keyword not in keywords:
            yield Finding((*path, keyword), f"is not a keyword of a CRD's schema{did_you_mean(keyword, keywords)}")
    declared = schema.get("type")
    if declared == "null":
        yield Finding((*path, "type"), "must not be null; nullable: true beside the type allows it")
    elif declared and declared not in _TYPES:
        yield Finding((*path, "type"), f"must be one of {', '.join(_TYPES)}, not {declared!r}{did_you_mean(str(declared), _TYPES)}")
    if isinstance(schema.get("items"), list):
        yield Finding((*path, "items"), "must be one schema, not a list of them")
    if schema.get("uniqueItems"):
        yield Finding((*path, "uniqueItems"), "must not be true; x-kubernetes-list-type: set says the same")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield Finding((*path, "x-kubernetes-preserve-unknown-fields"), "must be true or left out")
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        try:
            compile_pattern(pattern)
        except InvalidPatternError as error:
            yield Finding((*path, "pattern"), f"is not a regular expression of the API server (RE2): {error}")


def _topology(schema: Schema, path: Path) -> Iterator[Finding]:
    """What lists and maps say of themselves for merging."""
    declared, list_type, map_type = schema.get("type"), schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-map-type")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield Finding((*path, "x-kubernetes-map-type"), f"must be atomic or granular, not {map_type!r}")
    if map_type is not None and declared != "object":
        yield Finding((*path, "x-kubernetes-map-type"), "needs type: object")
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield Finding((*path, "x-kubernetes-list-type"), f"must be atomic, set or map, not {list_type!r}")
    if list_type is not None and declared != "array":
        yield Finding((*path, "x-kubernetes-list-type"), "needs type: array")
    if keys and list_type != "map":
        yield Finding((*path, "x-kubernetes-list-map-keys"), "needs x-kubernetes-list-type: map")
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return
    if list_type in ("set", "map") and items.get("nullable"):
        yield Finding((*path, "items", "nullable"), f"must not be used in a list of type {list_type}")
    if list_type == "set":
        is_granular_list = items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic"
        if is_granular_list or (items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic"):
            yield Finding((*path, "items"), "of a list of type set must be scalars or atomic")
    if list_type == "map":
        yield from _map_list(items, keys, path)


def _map_list(items: Schema, keys: list[Any], path: Path) -> Iterator[Finding]:
    if not keys:
        yield Finding((*path, "x-kubernetes-list-map-keys"), "is required with x-kubernetes-list-type: map")
    if items.get("type") != "object":
        yield Finding((*path, "items", "type"), "must be object in a list of type map")
        return
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key in keys[:index]:
            yield Finding((*path, "x-kubernetes-list-map-keys", index), f"{key} is there twice")
        elif key not in properties:
            message = f"{key} is not a property of the items{did_you_mean(str(key), properties)}"
            yield Finding((*path, "x-kubernetes-list-map-keys", index), message)
        else:
            yield from _map_key(items, key, (*path, "items", "properties", key))


def _map_key(items: Schema, key: str, path: Path) -> Iterator[Finding]:
    schema = items["properties"][key]
    if schema.get("type") in ("array", "object"):
        yield Finding((*path, "type"), "must be a scalar, because it is a key of the list")
    if key not in (items.get("required") or ()) and schema.get("default") is None:
        yield Finding(path, "must be required or have a default, because it is a key of the list")
    if schema.get("nullable"):
        yield Finding((*path, "nullable"), "must not be used for a key of the list")


def _default(schema: Schema, path: Path) -> Iterator[Finding]:
    value = schema.get("default")
    if value is None:
        return
    if drop_unknown(value, schema) != value:
        yield Finding((*path, "default"), "holds fields that the schema does not know")
    # As it is written: the server does not fill a default with the defaults inside it before it looks.
    for finding in validate(value, schema):
        yield Finding((*path, "default", *finding.path), f"is not valid by its own schema: {finding.message}")


def _junction(path: Path) -> str:
    return next(str(part) for part in reversed(path) if part in ("allOf", "anyOf", "oneOf", "not"))


@functools.cache
def _keywords() -> frozenset[str]:
    schema_shape = shape_at(_own_shape(), _SCHEMA_PATH) or UNKNOWN
    return frozenset(schema_shape.fields)


def _own_shape() -> Shape:
    return builtin_shape(_KIND) or UNKNOWN
