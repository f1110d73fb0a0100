"""The keys of `schema:` in a watch, the CustomResourceDefinition of its kind in short form, and its fields as JSON
Schema."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

from ruleop.kubernetes.crd_checks import SCHEMA_TYPES, schema_keywords
from ruleop.language.rules.keys.simple_schema import (
    BASIC,
    SchemaField,
    SimpleSchemaError,
    UnknownTypeError,
    is_type,
    parse_field,
)
from ruleop.language.rules.keys.tables import Table, TableOf, key
from ruleop.language.rules.keys.value_types import (
    FileReading,
    Flag,
    ListOf,
    MapOf,
    NamedEntry,
    TextValue,
    ValueType,
    Verbatim,
    Word,
    WordChoice,
    describe,
    wrong_type,
)
from ruleop.language.templates import YamlNode
from ruleop.nearest import did_you_mean
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema import FieldPath, Schema
    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.simple_schema import Resolve

Scope = Literal["Namespaced", "Cluster"]
ColumnType = Literal["boolean", "date", "integer", "number", "string"]

_NAME = TextValue(r"[a-z]([-a-z0-9]*[a-z0-9])?", "a name of lowercase letters, digits and dashes")
_TEXT = TextValue(r"[\s\S]+", "text")
_JSON_PATH = TextValue(r"\.\S.*", "a path that starts with a dot, like .spec.image")
_SCALE_PATH = TextValue(r"\.(spec|status)(\.[A-Za-z_][A-Za-z0-9_-]*)+", "the path of a field, like .spec.replicas")


class Fields(Verbatim):
    """Fields of custom resources by name: text in kro's words, nested fields, or JSON Schema. Read by FieldReader."""

    def schema(self) -> dict[str, JSON]:
        return {"type": "object", "additionalProperties": {"type": ["string", "object"]}}


class TypeOfFields(ValueType[YamlNode]):
    """The type that a name of `types` stands for. Read by FieldReader."""

    def read(self, node: YamlNode, what: str, reading: FileReading) -> YamlNode | None:
        if not isinstance(node.value, (str, dict)):
            wrong_type(node, what, 'a type such as "string", or a mapping of fields', reading)
            return None
        return node

    def schema(self) -> dict[str, JSON]:
        return {"type": ["string", "object"]}


@dataclass(frozen=True, slots=True)
class CelRuleTable(Table):
    TITLE: ClassVar[str] = "a rule of schema.validation"
    DEFINITION: ClassVar[str] = "celRule"

    rule: Word | None = key(
        "rule", _TEXT, "What must hold, in CEL; `self` is the spec, `oldSelf` the one before a change.", required=True
    )
    message: Word | None = key("message", _TEXT, "The message if it does not hold.")


@dataclass(frozen=True, slots=True)
class ColumnTable(Table):
    TITLE: ClassVar[str] = "a column"
    DEFINITION: ClassVar[str] = "column"

    name: Word | None = key("name", _TEXT, "The heading.", required=True)
    json_path: Word | None = key("jsonPath", _JSON_PATH, "The field that it shows.", required=True)
    type: ColumnType | None = key("type", WordChoice(get_args(ColumnType)), "Its type; that of the field by default.")
    description: Word | None = key("description", _TEXT, "What it shows.")
    wide: bool = key("wide", Flag(), "true: only with `kubectl get -o wide`.", default=False)


@dataclass(frozen=True, slots=True)
class ScaleTable(Table):
    TITLE: ClassVar[str] = "scale"
    DEFINITION: ClassVar[str] = "scale"

    replicas: Word | None = key("replicas", _SCALE_PATH, "The field that `kubectl scale` sets.", required=True)
    status: Word | None = key(
        "status", _SCALE_PATH, "The field of the status that has the current number.", required=True
    )
    selector: Word | None = key(
        "selector", _SCALE_PATH, "The field that has the pods' label selector as text, for a HorizontalPodAutoscaler."
    )


@dataclass(frozen=True, slots=True)
class OtherVersionTable(Table):
    """A version beside that of the watch."""

    TITLE: ClassVar[str] = "a version of schema"
    DEFINITION: ClassVar[str] = "schemaVersion"

    spec: YamlNode | None = key("spec", Fields(), "The fields of .spec in this version.", required=True)
    status: YamlNode | None = key("status", Fields(), "The fields of .status; those of the watch's version by default.")
    validation: tuple[CelRuleTable, ...] = key(
        "validation", ListOf(TableOf(CelRuleTable), "a rule"), "Rules in CEL for the spec.", default=[]
    )
    columns: tuple[ColumnTable, ...] = key(
        "columns", ListOf(TableOf(ColumnTable), "a column"), "Columns of `kubectl get`.", default=[]
    )
    served: bool = key("served", Flag(), "false: clients can no longer use it.", default=True)
    stored: bool = key("stored", Flag(), "true: this version is stored, not that of the watch.", default=False)
    deprecated: bool = key("deprecated", Flag(), "true: kubectl warns who uses it.", default=False)


@dataclass(frozen=True, slots=True)
class SchemaTable(Table):
    TITLE: ClassVar[str] = "schema"
    DEFINITION: ClassVar[str] = "schema"

    spec: YamlNode | None = key(
        "spec", Fields(), "The fields of .spec, in kro's words or as JSON Schema.", required=True
    )
    status: YamlNode | None = key(
        "status", Fields(), "Fields of .status; those that the watch sets are inferred, and need not be here."
    )
    metadata: YamlNode | None = key(
        "metadata", Fields(), "What names of the custom resources may be: `name: string | maxLength=40`."
    )
    types: tuple[NamedEntry[YamlNode], ...] = key(
        "types", MapOf(TypeOfFields(), "the type"), "Types that fields can have, by name.", default={}
    )
    validation: tuple[CelRuleTable, ...] = key(
        "validation", ListOf(TableOf(CelRuleTable), "a rule"), "Rules in CEL for the spec.", default=[]
    )
    columns: tuple[ColumnTable, ...] = key(
        "columns",
        ListOf(TableOf(ColumnTable), "a column"),
        "Columns of `kubectl get`, before Ready and Age, which come by themselves.",
        default=[],
    )
    scale: ScaleTable | None = key("scale", TableOf(ScaleTable), "The fields of `kubectl scale` and of autoscalers.")
    scope: Scope = key(
        "scope", WordChoice(get_args(Scope)), "Whether the custom resources are in namespaces.", default="Namespaced"
    )
    plural: Word | None = key("plural", _NAME, "The name in URLs and roles; made of the kind by default.")
    singular: Word | None = key("singular", _NAME, "The kind in lower case by default.")
    short_names: tuple[Word, ...] = key("shortNames", ListOf(_NAME, "a short name"), "Names for kubectl.", default=[])
    versions: tuple[NamedEntry[OtherVersionTable], ...] = key(
        "versions",
        MapOf(TableOf(OtherVersionTable), "the version"),
        "Other versions of the kind, by name; this schema is that of the watch's version.",
        default={},
    )


SCHEMA_TABLES: tuple[type[Table], ...] = (
    SchemaTable,
    OtherVersionTable,
    CelRuleTable,
    ColumnTable,
    ScaleTable,
)


# -- fields ------------------------------------------------------------------------------------------------------------
#
# A field is text in kro's words, a mapping of fields, or JSON Schema. A mapping is JSON Schema if its keys are keywords
# and `type` is one of JSON's; where it might be either, it is a mistake. A mapping of fields is `{}` by default if that
# is valid and its fields have defaults, as in kro: a default inside of it would otherwise have no effect.

_OPEN: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
_SUBSCHEMAS: Final = frozenset({"items", "additionalProperties", "not"})
_FORMS: Final = '"string", a mapping of fields, or JSON Schema'


@dataclass(slots=True)
class FieldReader:
    """Reads fields. `sites` has the place of each part that was read, by its path in the document."""

    types: Mapping[str, YamlNode]  # of the project, by name
    findings: Findings
    api_type: Resolve | None = None  # the types of the API; each is open without it
    sites: dict[FieldPath, Site] = field(default_factory=dict)
    _found: dict[str, Schema] = field(default_factory=dict)  # the types that have been read
    _within: list[str] = field(default_factory=list)  # the types that are being read

    def read_types(self) -> None:
        """Reads all types, so that the mistakes of those that no field has are found too."""
        for name, node in self.types.items():
            if name in BASIC or not name.isidentifier():
                why = "it is a basic type" if name in BASIC else "a name has letters, digits and _"
                self.findings.mistake("wrong-value", f'a type cannot be named "{name}": {why}', node.site)
            self._named(name)

    def mapping(self, node: YamlNode, path: FieldPath) -> dict[str, Any]:
        """The schema of a mapping with these fields."""
        fields: dict[str, SchemaField] = {}
        for name, member in node.value.items() if isinstance(node.value, dict) else ():
            below = (*path, "properties", name)
            self.sites[below] = node.key_sites[name]
            if (found := self.field(member, f'the field "{name}"', below)) is not None:
                fields[name] = found
        schema: dict[str, Any] = {"type": "object"}
        if required := [name for name, each in fields.items() if each.required]:
            schema["required"] = required
        schema["properties"] = {name: each.schema for name, each in fields.items()}
        return schema

    def field(self, node: YamlNode, what: str, path: FieldPath) -> SchemaField | None:
        if isinstance(node.value, str):
            return self._text(node, path)
        if not isinstance(node.value, dict) or not node.value:
            shown = "{}" if node.value == {} else describe(node)
            self.findings.mistake("wrong-type", f"{what} must be a type such as {_FORMS}, not {shown}", node.site)
            return None
        if self._is_json_schema(node, what):
            return self._json_schema_field(node, path)
        return SchemaField(with_empty_default(self.mapping(node, path)))

    def _text(self, node: YamlNode, path: FieldPath) -> SchemaField | None:
        text = str(node.value)
        self.sites[path] = self.sites.get(path, node.site)
        try:
            found = parse_field(text, self._resolve)
        except SimpleSchemaError as error:
            self._mistake_in(node, error)
            return SchemaField(_OPEN)  # expressions with it are not reported too
        own = self.types.get(text.partition("|")[0].strip())
        if own is not None and isinstance(own.value, dict) and not found.required:
            return SchemaField(with_empty_default(found.schema))
        return found

    def _mistake_in(self, node: YamlNode, error: SimpleSchemaError) -> None:
        self.findings.mistake("wrong-value", error.message, node.place(error.offset))

    # -- types by name -------------------------------------------------------------------------------------------------

    def _resolve(self, name: str) -> Schema:
        if name in self.types:
            return self._named(name)
        if "." in name:
            return self.api_type(name) if self.api_type is not None else _OPEN
        api = " (a type of the API has its version before it: v1.ResourceRequirements)" if name[0].isupper() else ""
        raise UnknownTypeError(did_you_mean(name, [*BASIC, *self.types]) or api)

    def _named(self, name: str) -> Schema:
        if name in self._found:
            return self._found[name]
        node = self.types[name]
        if name in self._within:
            message = f'the type "{name}" contains itself, which a CRD cannot declare: use "object" for the inner one'
            self.findings.mistake("wrong-value", message, node.site)
            return BASIC["object"]
        self._within.append(name)
        found = self.field(node, f'the type "{name}"', ("types", name))
        self._within.pop()
        # A type has no default of its own: each field that has the type may have one.
        self._found[name] = {key: each for key, each in found.schema.items() if key != "default"} if found else {}
        return self._found[name] or BASIC["object"]

    # -- JSON Schema ---------------------------------------------------------------------------------------------------

    def _is_json_schema(self, node: YamlNode, what: str) -> bool:
        assert isinstance(node.value, dict)
        keys, declared = node.value, node.value.get("type")
        if "$ref" in keys or any(key.startswith("x-kubernetes-") for key in keys):
            return True
        if declared is None or declared.value not in SCHEMA_TYPES:
            return False
        if any(isinstance(each.value, (dict, list)) for key, each in keys.items() if key in schema_keywords()):
            return True
        if not schema_keywords() >= keys.keys():
            return False
        if all(isinstance(each.value, str) and is_type(each.value) for each in keys.values()):
            message = (
                f'{what} may be JSON Schema, or a mapping with a field "type": '
                f'write "{declared.value}", or `type: {declared.value} | required=false` for such a field'
            )
            self.findings.mistake("conflict", message, node.site)
        return True

    def _json_schema_field(self, node: YamlNode, path: FieldPath) -> SchemaField:
        assert isinstance(node.value, dict)
        required = node.value.get("required")
        schema = self._json_schema(node, path)
        if required is not None and isinstance(required.value, bool):  # beside a type, as the marker of the short form
            return SchemaField({key: each for key, each in schema.items() if key != "required"}, required.value)
        return SchemaField(schema)

    def _json_schema(self, node: YamlNode, path: FieldPath) -> dict[str, Any]:
        """JSON Schema, in which `$ref` names a type of the project or of the API."""
        schema: dict[str, Any] = {}
        for keyword, member in node.value.items() if isinstance(node.value, dict) else ():
            below = (*path, keyword)
            self.sites[below] = node.key_sites[keyword]
            value = member.value
            if keyword == "$ref":
                schema = {**self._referred(member), **schema}
            elif keyword in _SUBSCHEMAS and isinstance(value, dict):
                schema[keyword] = self._json_schema(member, below)
            elif keyword == "properties" and isinstance(value, dict):
                self.sites |= {(*below, name): site for name, site in member.key_sites.items()}
                schema[keyword] = {name: self._part(each, (*below, name)) for name, each in value.items()}
            elif keyword in ("allOf", "anyOf", "oneOf") and isinstance(value, list):
                schema[keyword] = [self._part(each, (*below, index)) for index, each in enumerate(value)]
            else:
                schema[keyword] = member.data()
        return schema

    def _part(self, node: YamlNode, path: FieldPath) -> Any:
        """A schema, or what is in its place by mistake."""
        return self._json_schema(node, path) if isinstance(node.value, dict) else node.data()

    def _referred(self, node: YamlNode) -> Schema:
        name = node.value
        if not isinstance(name, str):
            message = f"$ref must be the name of a type, such as v1.ResourceRequirements, not {describe(node)}"
            self.findings.mistake("wrong-type", message, node.site)
            return {}
        try:
            return self._resolve(name)
        except UnknownTypeError as error:
            self._mistake_in(node, SimpleSchemaError(f'unknown type "{name}"{error}', 0))
            return BASIC["object"]


def with_empty_default(schema: Schema) -> dict[str, Any]:
    """The mapping with `{}` as its default, if a field of it has a default and none is required. Rules in CEL, which
    the server tests with a default as it is written, might refuse it."""
    has_defaults = any("default" in each for each in (schema.get("properties") or {}).values())
    if "default" in schema or not has_defaults or schema.get("required") or "x-kubernetes-validations" in schema:
        return dict(schema)
    return {**schema, "default": {}}
