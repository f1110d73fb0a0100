"""A CustomResourceDefinition (apiextensions.k8s.io/v1) as typed, frozen values, with only the parts that ruleop needs.

Parsing is lenient: it fails only if no kind can be identified. `check_crd` finds everything else for which the API
server would reject the CRD, all of it at once, so that a user with three mistakes does not need four runs. Conversion
is not parsed: ruleop reads only the version that the rule names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.schema import FieldPath, Schema, Shape


# -- schema form -------------------------------------------------------------------------------------------------------
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
    (_is_rules, "a list of rules such as {rule: self.a < self.b}", ("x-kubernetes-validations",)),
)  # fmt: skip
_TESTS: Final = {keyword: (test, words) for test, words, keywords in _TYPED for keyword in keywords}


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
        elif keyword in _TESTS:
            test, words = _TESTS[keyword]
            if self._has_form(test(value), words, value, path):
                yield value
        else:
            yield value

    def _member(self, value: Any, path: FieldPath) -> dict[str, Any]:
        if self._has_form(isinstance(value, Mapping), _A_SCHEMA, value, path):
            return self._schema(value, path)
        return {}

    def _has_form(self, has_form: bool, words: str, value: Any, path: FieldPath) -> bool:
        if not has_form:
            self.findings.append(SchemaFinding(path, f"must be {words}, not {format_value(value)}"))
        return has_form


# -- crds --------------------------------------------------------------------------------------------------------------


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
    return next((crd for crd in crds if (crd.group, crd.kind) == (kind.group, kind.kind)), None)


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
