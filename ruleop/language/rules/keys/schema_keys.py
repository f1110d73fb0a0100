"""The tables of `schema:` in a watch: the CustomResourceDefinition of its kind in short form."""

# ruff: noqa: RUF009 - `key` returns a field, as dataclasses.field does

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

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
    wrong_type,
)
from ruleop.language.templates import YamlNode

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON

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
