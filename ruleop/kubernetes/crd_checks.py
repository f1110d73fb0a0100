"""Problems for which the API server would reject a CustomResourceDefinition.

Some rules concern the definition (names, versions, columns), the others make a schema *structural*: the type of every
value is declared once, outside of allOf, anyOf, oneOf and not, which may only narrow it. One finding is not the
server's own: the server accepts a `required` field that is not a property, although every object of the kind is then
invalid.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.cel import RuleVerdict, cel_rules
from ruleop.kubernetes.crd import META_FIELDS, CrdVersion, CustomResourceDefinition, drop_unknown, parse_crd
from ruleop.kubernetes.kinds import Kind, Object
from ruleop.kubernetes.names import is_letter_label, is_subdomain
from ruleop.kubernetes.schema import (
    UNKNOWN,
    FieldPath,
    SchemaFinding,
    Shape,
    compile_pattern,
    shape_at,
    subschemas,
    unknown_to_shape,
    validate,
)
from ruleop.nearest import did_you_mean
from ruleop.patterns import InvalidPatternError

if TYPE_CHECKING:
    from ruleop.kubernetes.schema import Schema

_KIND: Final = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_SCHEMA_PATH: Final = ("spec", "versions", 0, "schema", "openAPIV3Schema")

SCHEMA_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_UNSUPPORTED: Final = ("$ref", "$schema", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
_ONLY_OUTSIDE_JUNCTIONS: Final = (
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


def check_crd(document: Object) -> list[SchemaFinding]:
    """Every reason known here for which the API server would reject a CRD. Raises SchemaError as `parse_crd` does."""
    return list(_crd_findings(document, parse_crd(document)))


def misspelt_fields(document: Object) -> list[SchemaFinding]:
    """The unknown fields of a CRD, outside of its schemas, that are similar to a known one."""
    return [each for each in _unknown_fields(document) if _is_misspelt(each)]


def _unknown_fields(document: Object) -> Iterator[SchemaFinding]:
    """Those outside of the schemas, which are checked by themselves."""
    return (each for each in unknown_to_shape(document, _crd_shape()) if "openAPIV3Schema" not in each.path[:-1])


def without_consequences(found: Sequence[SchemaFinding]) -> list[SchemaFinding]:
    """The findings without those that follow from a misspelt field: about its mapping, and those around it."""
    parents = [each.path[:-1] for each in found if _is_misspelt(each)]
    return [
        each
        for each in found
        if _is_misspelt(each)
        or not any(
            parent[: len(each.path)] == each.path or (each.path[:-1] == parent and "is required" in each.message)
            for parent in parents
        )
    ]


def _is_misspelt(finding: SchemaFinding) -> bool:
    return "unknown field" in finding.message and "did you mean" in finding.message


def _crd_findings(document: Object, crd: CustomResourceDefinition) -> Iterator[SchemaFinding]:
    yield from _unknown_fields(document)
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if name != crd.name:
        yield SchemaFinding(("metadata", "name"), f"must be {crd.name}, the plural and the group, not {name!r}")
    if not ("." in crd.group and is_subdomain(crd.group)):
        yield SchemaFinding(("spec", "group"), f"must be a domain name with a dot, in lower case, not {crd.group!r}")
    if document["spec"].get("preserveUnknownFields"):
        yield SchemaFinding(
            ("spec", "preserveUnknownFields"),
            "must be false; x-kubernetes-preserve-unknown-fields in the schema opens parts of it",
        )
    yield from _name_findings(crd)
    yield from _version_findings(crd)


def _name_findings(crd: CustomResourceDefinition) -> Iterator[SchemaFinding]:
    names: list[tuple[FieldPath, str]] = [(("plural",), crd.plural), (("singular",), crd.singular)]
    names += [(("kind",), crd.kind.lower()), (("listKind",), crd.list_kind.lower())]
    names += [(("shortNames", index), name) for index, name in enumerate(crd.short_names)]
    names += [(("categories", index), name) for index, name in enumerate(crd.categories)]
    for path, name in names:
        if not is_letter_label(name):
            yield SchemaFinding(
                ("spec", "names", *path),
                "must consist of letters, digits and dashes and start with a letter (upper case only in kinds)",
            )
    if crd.kind == crd.list_kind:
        yield SchemaFinding(("spec", "names", "listKind"), "must differ from kind")


def _version_findings(crd: CustomResourceDefinition) -> Iterator[SchemaFinding]:
    stored = [version.name for version in crd.versions if version.storage]
    if len(stored) != 1:
        yield SchemaFinding(("spec", "versions"), f"exactly one version must have storage: true, not {len(stored)}")
    seen: set[str] = set()
    for index, version in enumerate(crd.versions):
        path: FieldPath = ("spec", "versions", index)
        if version.name in seen:
            yield SchemaFinding((*path, "name"), f"{version.name} is a duplicate")
        seen.add(version.name)
        if not is_letter_label(version.name):
            yield SchemaFinding((*path, "name"), f"must be a version such as v1 or v1alpha1, not {version.name!r}")
        yield from _column_findings(version, (*path, "additionalPrinterColumns"))
        schema_path = (*path, "schema", "openAPIV3Schema")
        yield from version.malformed
        if not version.schema and not version.malformed:
            yield SchemaFinding(schema_path, "is required: without a schema the API server drops all fields")
        else:
            wrong = {finding.path for finding in version.malformed}
            for finding in _root_findings(version.schema, schema_path):
                if not any(finding.path[: len(each)] == each for each in wrong):  # else it is reported already
                    yield finding
            for rule in cel_rules(version.schema).invalid:
                yield SchemaFinding((*schema_path, *rule.path, "rule"), f"{rule.rule}: {rule.problem}")


def _column_findings(version: CrdVersion, path: FieldPath) -> Iterator[SchemaFinding]:
    for index, column in enumerate(version.printer_columns):
        if not column.name:
            yield SchemaFinding((*path, index, "name"), "is required")
        if column.type not in COLUMN_TYPES:
            yield SchemaFinding(
                (*path, index, "type"),
                f"must be one of {', '.join(COLUMN_TYPES)}{did_you_mean(column.type, COLUMN_TYPES)}",
            )
        if not column.json_path.startswith("."):
            yield SchemaFinding((*path, index, "jsonPath"), "must be a path that starts with a dot, such as .spec.size")


def _root_findings(schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    if schema.get("type") != "object":
        yield SchemaFinding((*path, "type"), "must be object at the root")
    if schema.get("additionalProperties") is not None:
        yield SchemaFinding((*path, "additionalProperties"), "must not be used at the root")
    if schema.get("nullable"):
        yield SchemaFinding((*path, "nullable"), "must not be used at the root")
    metadata = (schema.get("properties") or {}).get("metadata") or {}
    restricted = set(metadata) - {"type", "description", "properties"} | set(metadata.get("properties") or ()) - {
        "name",
        "generateName",
    }
    if restricted:
        yield SchemaFinding(
            (*path, "properties", "metadata"),
            f"may restrict only name and generateName, not {', '.join(sorted(restricted))}",
        )
    yield from _schema_findings(schema, path, root=True)


def _schema_findings(schema: Schema, path: FieldPath, *, root: bool = False) -> Iterator[SchemaFinding]:
    """A schema that declares the type of a value, and all schemas below it."""
    yield from _keyword_findings(schema, path)
    declared, properties = schema.get("type"), schema.get("properties") or {}
    embedded = schema.get("x-kubernetes-embedded-resource")
    untyped = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not root and not declared and (embedded or not untyped):
        yield SchemaFinding((*path, "type"), "is required in a structural schema")
    if declared == "array" and not isinstance(schema.get("items"), Mapping):
        yield SchemaFinding((*path, "items"), "is required: the schema of the list's items")
    if properties and schema.get("additionalProperties") not in (None, True):
        yield SchemaFinding((*path, "additionalProperties"), "cannot be combined with properties")
    for name in META_FIELDS & properties.keys() if embedded else ():
        if properties[name].get("x-kubernetes-embedded-resource"):
            place = (*path, "properties", name, "x-kubernetes-embedded-resource")
            yield SchemaFinding(place, "is not allowed inside the metadata of a resource")
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        yield SchemaFinding(
            (*path, "properties"),
            "is required with x-kubernetes-embedded-resource, unless x-kubernetes-preserve-unknown-fields is true",
        )
    allows_other_fields = schema.get("additionalProperties") is not None or schema.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    for index, name in enumerate(schema.get("required") or ()):
        if name not in properties and not allows_other_fields and not (root and name in META_FIELDS):
            message = f"{name} is not a property, so no object can be valid{did_you_mean(str(name), properties)}"
            yield SchemaFinding((*path, "required", index), message)
    yield from _merge_keyword_findings(schema, path)
    yield from _default_findings(schema, path)
    for part, sub in subschemas(schema):
        if part[0] in ("properties", "items", "additionalProperties"):
            if not (root and part == ("properties", "metadata")):
                yield from _schema_findings(sub, (*path, *part))
        else:
            # The server compares only the junctions of the root with the declarations; deeper undeclared fields are
            # pruned anyway.
            yield from _junction_findings(
                sub, (*path, *part), outside=schema if root else None, typed=_int_or_string_paths(schema, path)
            )


def _junction_findings(
    schema: Schema, path: FieldPath, *, outside: Schema | None, typed: frozenset[FieldPath]
) -> Iterator[SchemaFinding]:
    """A schema inside allOf, anyOf, oneOf or not. It may only narrow what `outside` declares (None: not checked), and
    may have types only at the paths in `typed`."""
    yield from _keyword_findings(schema, path)
    for keyword in _ONLY_OUTSIDE_JUNCTIONS:
        if keyword in schema and not (keyword == "type" and path in typed):
            yield SchemaFinding((*path, keyword), f"is not allowed inside {_junction(path)} in a structural schema")
    for part, sub in subschemas(schema):
        inner: FieldPath = (*path, *part)
        inner_outside = outside
        if outside is not None and part[0] in ("properties", "items"):
            known = outside.get("properties") or {}
            inner_outside = known.get(part[1]) if part[0] == "properties" else outside.get("items")
            if inner_outside is None:
                hint = did_you_mean(str(part[-1]), known) if part[0] == "properties" else ""
                yield SchemaFinding(
                    inner, f"must also be declared outside of {_junction(path)} in a structural schema{hint}"
                )
        if part != ("additionalProperties",):
            yield from _junction_findings(sub, inner, outside=inner_outside, typed=typed)


def _int_or_string_paths(schema: Schema, path: FieldPath) -> frozenset[FieldPath]:
    """The paths inside a junction where types are allowed: the alternatives "integer" and "string", in the two places
    that the server accepts them."""
    places: list[FieldPath] = []
    if schema.get("anyOf") == _INT_OR_STRING:
        places.append((*path, "anyOf"))
    if (schema.get("allOf") or [{}])[0].get("anyOf") == _INT_OR_STRING:
        places.append((*path, "allOf", 0, "anyOf"))
    return frozenset((*place, index) for place in places for index in (0, 1))


def _keyword_findings(schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    """The checks of every schema, inside junctions and outside."""
    keywords = schema_keywords()
    for keyword in schema:
        if keyword in _UNSUPPORTED and schema[keyword]:
            yield SchemaFinding((*path, keyword), "is not supported in a CRD")
        elif keyword not in keywords:
            yield SchemaFinding(
                (*path, keyword), f"is not a keyword of a CRD's schema{did_you_mean(keyword, keywords)}"
            )
    declared = schema.get("type")
    if declared == "null":
        yield SchemaFinding((*path, "type"), "must not be null; nullable: true beside the type allows it")
    elif declared and declared not in SCHEMA_TYPES:
        yield SchemaFinding(
            (*path, "type"),
            f"must be one of {', '.join(SCHEMA_TYPES)}, not {declared!r}{did_you_mean(str(declared), SCHEMA_TYPES)}",
        )
    if schema.get("uniqueItems"):
        yield SchemaFinding((*path, "uniqueItems"), "must not be true; use x-kubernetes-list-type: set")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield SchemaFinding((*path, "x-kubernetes-preserve-unknown-fields"), "must be true or left out")
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        try:
            compile_pattern(pattern)
        except InvalidPatternError as error:
            yield SchemaFinding((*path, "pattern"), f"is not a valid regular expression (RE2): {error}")


def _merge_keyword_findings(schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    """Mistakes in the keywords by which lists and maps declare that they merge."""
    declared, list_type, map_type = (
        schema.get("type"),
        schema.get("x-kubernetes-list-type"),
        schema.get("x-kubernetes-map-type"),
    )
    keys = schema.get("x-kubernetes-list-map-keys") or []
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield SchemaFinding((*path, "x-kubernetes-map-type"), f"must be atomic or granular, not {map_type!r}")
    if map_type is not None and declared != "object":
        yield SchemaFinding((*path, "x-kubernetes-map-type"), "needs type: object")
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield SchemaFinding((*path, "x-kubernetes-list-type"), f"must be atomic, set or map, not {list_type!r}")
    if list_type is not None and declared != "array":
        yield SchemaFinding((*path, "x-kubernetes-list-type"), "needs type: array")
    if keys and list_type != "map":
        yield SchemaFinding((*path, "x-kubernetes-list-map-keys"), "needs x-kubernetes-list-type: map")
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return
    if list_type in ("set", "map") and items.get("nullable"):
        yield SchemaFinding((*path, "items", "nullable"), f"must not be used in a list of type {list_type}")
    if list_type == "set":
        is_granular_list = items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic"
        if is_granular_list or (items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic"):
            yield SchemaFinding((*path, "items"), "must be scalar or atomic in a list of type set")
    if list_type == "map":
        yield from _map_list_findings(items, keys, path)


def _map_list_findings(items: Schema, keys: list[Any], path: FieldPath) -> Iterator[SchemaFinding]:
    if not keys:
        yield SchemaFinding((*path, "x-kubernetes-list-map-keys"), "is required with x-kubernetes-list-type: map")
    if items.get("type") != "object":
        yield SchemaFinding((*path, "items", "type"), "must be object in a list of type map")
        return
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key in keys[:index]:
            yield SchemaFinding((*path, "x-kubernetes-list-map-keys", index), f"{key} is a duplicate")
        elif key not in properties:
            message = f"{key} is not a property of the items{did_you_mean(str(key), properties)}"
            yield SchemaFinding((*path, "x-kubernetes-list-map-keys", index), message)
        else:
            yield from _map_key_findings(items, key, (*path, "items", "properties", key))


def _map_key_findings(items: Schema, key: str, path: FieldPath) -> Iterator[SchemaFinding]:
    schema = items["properties"][key]
    if schema.get("type") in ("array", "object"):
        yield SchemaFinding((*path, "type"), "must be a scalar, because it is a key of the list")
    if key not in (items.get("required") or ()) and schema.get("default") is None:
        yield SchemaFinding(path, "must be required or have a default, because it is a key of the list")
    if schema.get("nullable"):
        yield SchemaFinding((*path, "nullable"), "must not be used for a key of the list")


def _default_findings(schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    value = schema.get("default")
    if value is None or schema.get("type") not in (None, *SCHEMA_TYPES):  # a wrong type is reported by itself
        return
    if drop_unknown(value, schema) != value:
        yield SchemaFinding((*path, "default"), "has fields that the schema does not declare")
    # The server validates a default as it is written, without filling in the defaults inside it first.
    invalid = validate(value, schema)
    for finding in invalid or _broken_rules(value, schema):
        yield SchemaFinding((*path, "default", *finding.path), f"does not match its own schema: {finding.message}")


def _broken_rules(value: Any, schema: Schema) -> Iterator[SchemaFinding]:
    around = cel_rules({"type": "object", "properties": {"default": schema}})
    for broken in around.broken({"default": value}):
        if broken.verdict in (RuleVerdict.BROKEN, RuleVerdict.FAILED):
            yield SchemaFinding(broken.path[1:], broken.finding.message)


def _junction(path: FieldPath) -> str:
    return next(str(part) for part in reversed(path) if part in ("allOf", "anyOf", "oneOf", "not"))


@functools.cache
def schema_keywords() -> frozenset[str]:
    """The keywords of a CRD's schema."""
    schema_shape = shape_at(_crd_shape(), _SCHEMA_PATH) or UNKNOWN
    return frozenset(schema_shape.fields)


def _crd_shape() -> Shape:
    return builtin_shape(_KIND) or UNKNOWN
