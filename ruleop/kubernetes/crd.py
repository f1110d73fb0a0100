"""A CustomResourceDefinition (apiextensions.k8s.io/v1) as typed, frozen values, with only the parts that ruleop needs.

Parsing is lenient: it fails only if no kind can be identified. `check_crd` finds everything else for which the API
server would reject the CRD, all of it at once, so that a user with three mistakes does not need four runs. Conversion
is not parsed: ruleop reads only the version that the rule names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.table import ResourceInfo, object_meta
from ruleop.kubernetes.kinds import Kind, Object
from ruleop.kubernetes.schema import (
    OBJECT_META,
    FieldPath,
    Schema,
    SchemaError,
    SchemaFinding,
    ShapeBuilder,
    format_value,
    is_type,
)
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema import Shape


# -- schema form -----------------------------------------------------------------------------------------------------
#
# The form of a CRD's schema: whether each keyword has a value of its type.
#
# What has another form is left out, so that the other modules need not expect it: an empty property (`note:` without a
# schema) becomes one that allows every value.


_SCHEMAS: Final = frozenset({"not", "items", "additionalProperties", "additionalItems"})
_MAPS_OF_SCHEMAS: Final = frozenset({"properties", "patternProperties", "definitions"})
_LISTS_OF_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf"})
_MAPPING: Final = "a mapping of names to schemas"
_A_SCHEMA: Final = "a schema such as {type: string}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_rules(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("rule"), str) for each in value
    )


_TYPED: Final[tuple[tuple[Callable[[Any], bool], str, tuple[str, ...]], ...]] = (
    (partial(is_type, name="string"), "text", (
        "type", "format", "pattern", "title", "description", "x-kubernetes-list-type", "x-kubernetes-map-type",
    )),
    (partial(is_type, name="number"), "a number", ("minimum", "maximum", "multipleOf")),
    (_is_count, "an integer", ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")),
    (partial(is_type, name="boolean"), "true or false", (
        "nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
    )),
    (_is_names, "a list of names", ("required", "x-kubernetes-list-map-keys")),
    (partial(is_type, name="array"), "a list", ("enum",)),
)  # fmt: skip
_TESTS: Final = {keyword: (test, words) for test, words, keywords in _TYPED for keyword in keywords}
_IN_A_RULE: Final = {
    **dict.fromkeys(("message", "messageExpression", "reason", "fieldPath"), _TESTS["type"]),
    "optionalOldSelf": _TESTS["nullable"],
}


class SchemaForm:
    """A schema with only what has the right form, and what has not."""

    def __init__(self, schema: Schema, path: FieldPath = ()) -> None:
        self.findings: list[SchemaFinding] = []
        self.schema = self._schema(schema, path)

    def _schema(self, schema: Schema, path: FieldPath) -> dict[str, Any]:
        return {
            keyword: found
            for keyword, value in schema.items()
            if value is not None
            for found in self._keyword(keyword, value, (*path, keyword))
        }

    def _keyword(self, keyword: str, value: Any, path: FieldPath) -> Iterator[Any]:
        """The value of a keyword, or nothing."""
        if keyword in _MAPS_OF_SCHEMAS:
            if self._has_form(isinstance(value, Mapping), _MAPPING, value, path):
                yield {str(name): self._member(each, (*path, str(name))) for name, each in value.items()}
        elif keyword in _LISTS_OF_SCHEMAS:
            if self._has_form(isinstance(value, list), "a list of schemas", value, path):
                yield [self._member(each, (*path, index)) for index, each in enumerate(value)]
        elif keyword in _SCHEMAS:
            if isinstance(value, Mapping):
                yield self._schema(value, path)
            elif isinstance(value, bool) and keyword.startswith("additional"):
                yield value
            elif keyword == "items" and isinstance(value, list):
                self.findings.append(SchemaFinding(path, "must be one schema, not a list of them"))
            else:
                self._has_form(False, _A_SCHEMA, value, path)
        elif keyword == "x-kubernetes-validations":
            if self._has_form(_is_rules(value), "a list of rules such as {rule: self.a < self.b}", value, path):
                yield [self._rule(each, (*path, index)) for index, each in enumerate(value)]
        elif keyword in _TESTS:
            test, words = _TESTS[keyword]
            if self._has_form(test(value), words, value, path):
                yield value
        else:
            yield value

    def _rule(self, rule: Mapping[str, Any], path: FieldPath) -> dict[str, Any]:
        found = {name: value for name, value in rule.items() if value is not None}
        for name, (test, words) in _IN_A_RULE.items():
            if name in found and not self._has_form(test(found[name]), words, found[name], (*path, name)):
                del found[name]
        return found

    def _member(self, value: Any, path: FieldPath) -> dict[str, Any]:
        if self._has_form(isinstance(value, Mapping), _A_SCHEMA, value, path):
            return self._schema(value, path)
        return {}

    def _has_form(self, has_form: bool, words: str, value: Any, path: FieldPath) -> bool:
        if not has_form:
            self.findings.append(SchemaFinding(path, f"must be {words}, not {format_value(value)}"))
        return has_form


# -- definitions -----------------------------------------------------------------------------------------------------


API_VERSION = "apiextensions.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class CrdVersion:
    """One version of a kind. `schema` is openAPIV3Schema without its `malformed` parts, and empty where the version has
    none: the server then drops all fields."""

    name: str
    served: bool
    storage: bool
    schema: Schema
    status_subresource: bool
    scale_subresource: bool
    printer_columns: tuple[PrinterColumn, ...]
    deprecated: bool = False
    deprecation_warning: str = ""
    malformed: tuple[SchemaFinding, ...] = ()  # parts of the schema that have the wrong type


@dataclass(frozen=True, slots=True)
class CustomResourceDefinition:
    """The definition of a kind that is not built in."""

    group: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    namespaced: bool
    versions: tuple[CrdVersion, ...]

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"

    def version(self, name: str) -> CrdVersion | None:
        return next((version for version in self.versions if version.name == name), None)

    def resource(self, version: str) -> ResourceInfo | None:
        """The resource of this version; None if the API does not serve it."""
        found = self.version(version)
        if found is None or not found.served:
            return None
        return ResourceInfo(
            self.plural, self.namespaced, found.status_subresource, Kind(self.group, version, self.kind)
        )

    def shape(self, version: str) -> Shape | None:
        """The shape of a version's objects, built on each call; None if there is no such version."""
        found = self.version(version)
        return None if found is None else crd_shape(found.schema)


def crd_shape(schema: Schema) -> Shape:
    """The shape of custom resources with this schema. The server defines apiVersion, kind and metadata, whatever the
    schema declares."""
    return ShapeBuilder({}, {OBJECT_META: object_meta()}).of(
        {**schema, "type": "object", "x-kubernetes-embedded-resource": True}
    )


def definition_of(kind: Kind, crds: Iterable[CustomResourceDefinition]) -> CustomResourceDefinition | None:
    """The definition of a kind, in whatever version; None if there is none."""
    return next((crd for crd in crds if crd.kind == kind.kind and crd.group == kind.group), None)


def parse_crd(document: Object) -> CustomResourceDefinition:
    """Parses a CRD. Raises SchemaError, with the path inside the document, if no kind can be identified."""
    if document.get("kind") != "CustomResourceDefinition":
        raise SchemaError(("kind",), f"must be CustomResourceDefinition, not {document.get('kind')!r}")
    if document.get("apiVersion") != API_VERSION:
        raise SchemaError(
            ("apiVersion",),
            f"must be {API_VERSION}, not {document.get('apiVersion')!r}; v1beta1 was removed in Kubernetes 1.22",
        )
    spec = _mapping(document, (), "spec")
    names = _mapping(spec, ("spec",), "names")
    kind = _string(names, ("spec", "names"), "kind")
    versions = spec.get("versions")
    if not isinstance(versions, list) or not versions:
        raise SchemaError(("spec", "versions"), "must be a list with at least one version")
    return CustomResourceDefinition(
        group=_string(spec, ("spec",), "group"),
        kind=kind,
        plural=_string(names, ("spec", "names"), "plural"),
        # The server fills in these two.
        singular=_optional_string(names, ("spec", "names"), "singular") or kind.lower(),
        list_kind=_optional_string(names, ("spec", "names"), "listKind") or f"{kind}List",
        short_names=_strings(names, ("spec", "names"), "shortNames"),
        categories=_strings(names, ("spec", "names"), "categories"),
        namespaced=_scope(spec) == "Namespaced",
        versions=tuple(_version(version, ("spec", "versions", index)) for index, version in enumerate(versions)),
    )


def _version(version: Any, path: FieldPath) -> CrdVersion:
    if not isinstance(version, Mapping):
        raise SchemaError(path, "must be a mapping")
    schema = version.get("schema") or {}
    if not isinstance(schema, Mapping) or not isinstance(schema.get("openAPIV3Schema", {}), Mapping):
        raise SchemaError((*path, "schema", "openAPIV3Schema"), "must be a mapping")
    subresources = version.get("subresources") or {}
    if not isinstance(subresources, Mapping):
        raise SchemaError((*path, "subresources"), "must be a mapping")
    columns = version.get("additionalPrinterColumns") or []
    if not isinstance(columns, list) or not all(isinstance(column, Mapping) for column in columns):
        raise SchemaError((*path, "additionalPrinterColumns"), "must be a list of mappings")
    form = SchemaForm(schema.get("openAPIV3Schema") or {}, (*path, "schema", "openAPIV3Schema"))
    return CrdVersion(
        name=_string(version, path, "name"),
        served=version.get("served") is True,
        storage=version.get("storage") is True,
        schema=form.schema,
        # An empty mapping enables a subresource; null does not.
        status_subresource=subresources.get("status") is not None,
        scale_subresource=subresources.get("scale") is not None,
        printer_columns=tuple(
            PrinterColumn(
                name=str(column.get("name", "")),
                type=str(column.get("type", "")),
                json_path=str(column.get("jsonPath", "")),
                description=str(column.get("description", "")),
                format=str(column.get("format", "")),
                priority=column.get("priority") or 0,
            )
            for column in columns
        ),
        deprecated=version.get("deprecated") is True,
        deprecation_warning=str(version.get("deprecationWarning") or ""),
        malformed=tuple(form.findings),
    )


def _scope(spec: Object) -> str:
    scope = spec.get("scope")
    if scope not in ("Namespaced", "Cluster"):
        raise SchemaError(("spec", "scope"), f"must be Namespaced or Cluster, not {scope!r}")
    return str(scope)


def _mapping(parent: Object, path: FieldPath, key: str) -> Object:
    value = parent.get(key)
    if not isinstance(value, Mapping):
        raise SchemaError((*path, key), "is required, and must be a mapping")
    return value


def _string(parent: Object, path: FieldPath, key: str) -> str:
    value = parent.get(key)
    if not isinstance(value, str) or not value:
        raise SchemaError((*path, key), "is required, and must be a string")
    return value


def _optional_string(parent: Object, path: FieldPath, key: str) -> str:
    return _string(parent, path, key) if parent.get(key) else ""


def _strings(parent: Object, path: FieldPath, key: str) -> tuple[str, ...]:
    value = parent.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SchemaError((*path, key), "must be a list of strings")
    return tuple(value)


# -- custom resources by their structural schema ---------------------------------------------------------------------
#
# Pruning and defaulting of custom resources by their structural schema, as the API server does it on every request.
#
# Offline commands do the same, so that templates render with the same object as in a cluster.
#
# A port of apiextensions-apiserver (pkg/apiserver/schema: pruning, defaulting), in its order: prune unknown fields,
# drop nulls that are not allowed, fill in defaults. Surprising rules:
#
# - `type: object` without properties keeps nothing; `x-kubernetes-preserve-unknown-fields` or `additionalProperties`
#   keeps fields.
# - preserve-unknown-fields applies to everything below undeclared fields, but a declared property below it is pruned.
# - `additionalProperties: true` keeps scalars and the keys of maps, and empties the maps below them.
# - a default appears only where its parent exists: `spec.a.b: {default: 1}` does nothing without `spec.a` (or a default
#   of `{}` there).
#
# A schema here is the plain JSON of `openAPIV3Schema`. Arguments are never changed; results may share parts with them.


META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})

_EMPTY: Schema = {}


def prune(obj: Object, schema: Schema) -> dict[str, Any]:
    """The custom resource without the fields that its schema does not declare. apiVersion, kind and metadata stay as
    they are."""
    if _is_resource_kept(obj, schema):
        return dict(obj)
    pruned: dict[str, Any] = _prune(obj, _as_resource(schema))
    return pruned


def default(obj: Object, schema: Schema) -> dict[str, Any]:
    """The custom resource, pruned or not, without the nulls that its schema does not allow and with the schema's
    defaults."""
    if _is_resource_kept(obj, schema):
        return dict(obj)
    defaulted: dict[str, Any] = _default(_drop_nulls(obj, schema), schema)
    return defaulted


def drop_unknown(value: JSON, schema: Schema) -> JSON:
    """A value from inside a custom resource (such as its status, with the schema of status) without the fields that the
    server would not keep. Writing these would be repeated on every pass."""
    return _drop_nulls(_prune(value, schema), schema)


def is_kept(value: JSON, schema: Schema | None) -> bool:
    """Whether the server keeps the value unchanged: no field would be dropped or filled in. True is certain; False
    means that `prune` and `default` have to be compared. This is ten times faster than they are, and nearly always
    true."""
    kind = type(value)
    if kind is dict:
        if schema is None or "x-kubernetes-preserve-unknown-fields" in schema:
            return False
        properties, others = schema.get("properties") or _EMPTY, schema.get("additionalProperties")
        for name, member in value.items():
            inner, within = properties.get(name, others), type(member)
            if member is None or not isinstance(inner, dict):
                return False
            if (within is dict or within is list) and not is_kept(member, inner):
                return False
        return all(name in value or "default" not in inner for name, inner in properties.items())
    if kind is list:
        items = schema.get("items") if schema is not None else None
        return all(item is not None and is_kept(item, items) for item in value)
    return value is not None


def _is_resource_kept(obj: Object, schema: Schema) -> bool:
    """Whether neither pruning nor defaulting changes a custom resource. True is certain."""
    properties: Mapping[str, Any] = schema.get("properties") or _EMPTY
    return (
        isinstance(obj, dict)
        and "x-kubernetes-preserve-unknown-fields" not in schema
        and all(
            name in META_FIELDS or (name in properties and is_kept(each, properties[name]))
            for name, each in obj.items()
        )
        and all(name in obj or "default" not in inner for name, inner in properties.items())
    )


def unknown_fields(obj: Object, schema: Schema) -> tuple[FieldPath, ...]:
    """The paths of the fields that `prune` removes. Fields below a removed field are not listed."""
    return tuple(_removed_paths(obj, prune(obj, schema), ()))


def declares(schema: Schema, path: tuple[str, ...]) -> bool:
    """Whether the server keeps a value at this path of a custom resource. A list on the path stands for its items."""
    current: Schema | None = _as_resource(schema)
    free = False
    for name in path:
        current, free = _item_schema(current, free=free)
        if current is not None and current.get("x-kubernetes-embedded-resource") and name in META_FIELDS:
            return True
        free = free or _preserves(current)
        declared, current = _property(current, name)
        if not declared and not free:
            return False
        if declared:
            free = current is not None and _preserves(current)
    return True


def schema_at(schema: Schema, path: FieldPath) -> Schema | None:
    """The schema of the value at this path; None where nothing is declared. An index stands for an item of a list, and
    may be left out."""
    current: Schema | None = schema
    for part in path:
        if isinstance(part, int):
            current = current.get("items") if current is not None else None
            continue
        current, _ = _item_schema(current, free=False)
        current = _property(current, part)[1]
    return current


def _as_resource(schema: Schema) -> Schema:
    return {**schema, "x-kubernetes-embedded-resource": True}


def _preserves(schema: Schema | None) -> bool:
    return schema is not None and schema.get("x-kubernetes-preserve-unknown-fields") is True


def _property(schema: Schema | None, name: str) -> tuple[bool, Schema | None]:
    """Whether the schema declares a field of this name, and the field's schema: that of the property, or else that of
    additionalProperties, which is None where it is `true`."""
    if schema is None:
        return False, None
    properties = schema.get("properties") or _EMPTY
    if name in properties:
        return True, properties[name]
    others = schema.get("additionalProperties")
    if others is None:
        return False, None
    return True, others if isinstance(others, Mapping) else None


def _items(schema: Schema | None) -> Schema | None:
    return schema.get("items") if schema is not None else None


def _item_schema(schema: Schema | None, *, free: bool) -> tuple[Schema | None, bool]:
    while schema is not None and "items" in schema:
        free = free or _preserves(schema)
        schema = schema["items"]
    return schema, free


def _prune(value: JSON, schema: Schema | None, *, free: bool = False) -> JSON:
    """`free`: below preserve-unknown-fields, where declared fields are pruned by their schemas, and all others kept."""
    free = free or _preserves(schema)
    if free and schema is None:
        return value
    if isinstance(value, Mapping):
        kept = {}
        resource = schema is not None and schema.get("x-kubernetes-embedded-resource")
        for name, member in value.items():
            declared, member_schema = _property(schema, name)
            if resource and name in META_FIELDS:
                kept[name] = member
            elif declared:
                kept[name] = _prune(member, member_schema)
            elif free:
                kept[name] = member
        return kept
    if isinstance(value, list):
        return [_prune(item, _items(schema), free=free) for item in value]
    return value


def _drop_nulls(value: JSON, schema: Schema | None) -> JSON:
    """The value without nulls in maps, where the field is not nullable and has no default. Nulls in lists are kept:
    removing one would move the other items."""
    if isinstance(value, Mapping):
        kept = {}
        for name, member in value.items():
            member_schema = _property(schema, name)[1]
            if member is None and _forbids_null(member_schema) and not _has_default(member_schema):
                continue
            kept[name] = _drop_nulls(member, member_schema)
        return kept
    if isinstance(value, list):
        return [_drop_nulls(item, _items(schema)) for item in value]
    return value


def _default(value: JSON, schema: Schema | None) -> JSON:
    if schema is None:
        return value
    if isinstance(value, Mapping):
        filled = dict(value)
        for name, property_schema in (schema.get("properties") or _EMPTY).items():
            missing = name not in filled or (filled[name] is None and _forbids_null(property_schema))
            if missing and _has_default(property_schema):
                filled[name] = _default_value(property_schema)
        for name, member in filled.items():
            _, member_schema = _property(schema, name)
            filled[name] = _default(_default_if_null(member, member_schema), member_schema)
        return filled
    if isinstance(value, list):
        items = _items(schema)
        return [_default(_default_if_null(item, items), items) for item in value]
    return value


def _default_if_null(value: JSON, schema: Schema | None) -> JSON:
    if value is None and schema is not None and _forbids_null(schema) and _has_default(schema):
        return _default_value(schema)
    return value


def _forbids_null(schema: Schema | None) -> bool:
    return schema is not None and schema.get("nullable") is not True


def _has_default(schema: Schema | None) -> bool:
    # A default of null counts as none, as in Go.
    return schema is not None and schema.get("default") is not None


def _default_value(schema: Schema) -> JSON:
    # The server prunes defaults when it reads the CRD.
    return _prune(schema["default"], schema)


def _removed_paths(before: JSON, after: JSON, path: FieldPath) -> Iterator[FieldPath]:
    if isinstance(before, Mapping):
        for name, member in before.items():
            if name in after:
                yield from _removed_paths(member, after[name], (*path, name))
            else:
                yield (*path, name)
    elif isinstance(before, list):
        for index, (item, kept) in enumerate(zip(before, after, strict=True)):
            yield from _removed_paths(item, kept, (*path, index))
