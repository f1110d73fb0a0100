"""The tables of a test file. This is the only declaration of its keys: the parser, the JSON Schema and the reference in
docs/testing.md come from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from ruleop.language.rules.keys.tables import Constraint, Table, TableOf, key, keys, table_schema
from ruleop.language.rules.keys.value_types import (
    DurationValue,
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
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON

Mode = Literal["plan", "dev"]
RENDER = "render"

ANY_TEXT = TextValue(r"(?s:.*\S.*)", "text that is not empty")
FILE = TextValue(r"[^\n]+\.(?:ya?ml|json)", "a file that ends in .yaml, .yml or .json")
SNAPSHOT = TextValue(r"[^\n]+\.yaml", "a file that ends in .yaml")
VARIABLE = TextValue(r"(?s:.*)", "text")
KIND = TextValue(r"(?:[a-z0-9.-]+/)?[a-z0-9]+ [A-Za-z][A-Za-z0-9]*", 'a kind like "cert-manager.io/v1 Certificate"')
CHILD = TextValue(r"[^\s/]+(?:/[^\s/]+){0,2}", "the id of a child, or an object like Deployment/web")
TIME = TextValue(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", "a time like 2026-01-31T12:00:00Z")
STATUS = TextValue(r"True|False|Unknown", '"True", "False" or "Unknown"')
ACTION = TextValue(r"(?:[a-z]+ )+\S+", 'an action like "create deployment" or "delete Service/web"')


class FileOrObject(ValueType[YamlNode]):
    """The name of a file, relative to the test file, or an object."""

    def read(self, node: YamlNode, what: str, reading: FileReading) -> YamlNode | None:
        if isinstance(node.value, str):
            return None if FILE.read(node, what, reading) is None else node
        if not isinstance(node.value, dict):
            wrong_type(node, what, "the name of a file, or an object", reading)
            return None
        if not {"apiVersion", "kind"} <= node.value.keys():
            reading.findings.mistake("missing-key", f"{what} needs apiVersion, kind and metadata", node.site)
            return None
        return node

    def schema(self) -> dict[str, JSON]:
        obj: dict[str, JSON] = {"type": "object", "required": ["apiVersion", "kind"]}
        return {"anyOf": [FILE.schema(), obj]}


@dataclass(frozen=True, slots=True)
class OneOrMore(ValueType[tuple[Word, ...]]):
    """One text, or a list of them."""

    item: TextValue

    def read(self, node: YamlNode, what: str, reading: FileReading) -> tuple[Word, ...] | None:
        if isinstance(node.value, list):
            return ListOf(self.item, f"an item of {what}", minimum=1).read(node, what, reading)
        word = self.item.read(node, what, reading)
        return None if word is None else (word,)

    def schema(self) -> dict[str, JSON]:
        return {"anyOf": [self.item.schema(), {"type": "array", "items": self.item.schema(), "minItems": 1}]}


@dataclass(frozen=True, slots=True)
class TrueOrList(ValueType[tuple[Word, ...] | bool]):
    """`true` for all, or a list."""

    item: TextValue

    def read(self, node: YamlNode, what: str, reading: FileReading) -> tuple[Word, ...] | bool | None:
        if node.value is True:
            return True
        if isinstance(node.value, list):
            return ListOf(self.item, f"an item of {what}", minimum=1).read(node, what, reading)
        wrong_type(node, what, "true, or a list of children", reading)
        return None

    def schema(self) -> dict[str, JSON]:
        return {"anyOf": [{"const": True}, {"type": "array", "items": self.item.schema(), "minItems": 1}]}


@dataclass(frozen=True, slots=True)
class ExpectedConditionTable(Table):
    TITLE: ClassVar[str] = "an expected condition"
    DEFINITION: ClassVar[str] = "condition"

    status: Word | None = key("status", STATUS, "Its status.")
    reason: Word | None = key("reason", ANY_TEXT, "Its reason.")
    message: Word | None = key("message", ANY_TEXT, "A part of its message.")


class ExpectedConditionType(ValueType[ExpectedConditionTable]):
    """The status of a condition, or a mapping of its fields."""

    table = TableOf(ExpectedConditionTable)

    def read(self, node: YamlNode, what: str, reading: FileReading) -> ExpectedConditionTable | None:
        if isinstance(node.value, dict):
            return self.table.read(node, what, reading)
        status = STATUS.read(node, what, reading)
        return (
            None
            if status is None
            else ExpectedConditionTable(site=node.site, key_sites={"status": node.site}, status=status)
        )

    def schema(self) -> dict[str, JSON]:
        return {"anyOf": [STATUS.schema(), self.table.schema()]}


@dataclass(frozen=True, slots=True)
class ExpectTable(Table):
    TITLE: ClassVar[str] = '"expect"'
    DEFINITION: ClassVar[str] = "expect"

    children: tuple[NamedEntry[YamlNode], ...] | None = key(
        "children",
        MapOf(Verbatim(), "the child"),
        "Children that exist, by their ids or as Kind/name, each with some of its fields; {}: none.",
    )
    absent: tuple[Word, ...] = key(
        "absent", ListOf(CHILD, "an absent child", minimum=1), "Children that do not exist.", default=[]
    )
    exact: bool = key(
        "exact",
        Flag(),
        "true: there are no other children, and no other fields of children and status.",
        default=False,
    )
    status: YamlNode | None = key(
        "status", Verbatim(), "Some fields of the CR's status, without its conditions; {}: it has none."
    )
    conditions: tuple[NamedEntry[ExpectedConditionTable], ...] | None = key(
        "conditions", MapOf(ExpectedConditionType(), "the condition"), 'Conditions by their types, like Ready: "True".'
    )
    actions: tuple[Word, ...] | None = key(
        "actions",
        ListOf(ACTION, "an action"),
        "Everything that is written, in order, like create deployment; []: nothing. Not in dev mode.",
    )
    waits: tuple[NamedEntry[Word], ...] | None = key(
        "waits", MapOf(ANY_TEXT, "the wait of"), "Children that wait, each with a part of the reason; {}: none."
    )
    error: tuple[Word, ...] | None = key(
        "error",
        OneOrMore(ANY_TEXT),
        "A part of the error, or a list with a part of each; without it no error is allowed.",
    )
    gone: bool | None = key("gone", Flag(), "true: the CR no longer exists; false: it is still being deleted.")


EXPECTATIONS = frozenset(known.name for _, known in keys(ExpectTable)) - {"exact"}


@dataclass(frozen=True, slots=True)
class ExistingTable(Table):
    TITLE: ClassVar[str] = "a change of what exists"
    DEFINITION: ClassVar[str] = "change"

    source: Word | None = key(
        "from",
        TextValue(RENDER, f'"{RENDER}"'),
        "render: the children exist, as the rule has made them.",
    )
    ready: tuple[Word, ...] | bool | None = key(
        "ready", TrueOrList(CHILD), "true, or a list of children: their controllers have made them ready."
    )
    patch: tuple[NamedEntry[YamlNode], ...] = key(
        "patch",
        MapOf(Verbatim(), "the patched child"),
        "Changes of children, by their ids or as Kind/name.",
        default={},
    )
    deleted: tuple[Word, ...] = key(
        "delete", ListOf(CHILD, "a deleted child", minimum=1), "Objects that somebody deletes.", default=[]
    )


class ExistingType(ValueType["YamlNode | ExistingTable"]):
    """A file of objects, an object, or a change of what exists."""

    table = TableOf(ExistingTable)
    file_or_object = FileOrObject()

    def read(self, node: YamlNode, what: str, reading: FileReading) -> YamlNode | ExistingTable | None:
        if isinstance(node.value, dict) and "apiVersion" not in node.value and "kind" not in node.value:
            return self.table.read(node, what, reading)
        return self.file_or_object.read(node, what, reading)

    def schema(self) -> dict[str, JSON]:
        return {"anyOf": [self.file_or_object.schema(), self.table.schema()]}


class RowsType(ValueType[YamlNode]):
    """A list of rows, each a mapping of names to values, or a mapping of names to lists, of which all combinations are
    meant."""

    def read(self, node: YamlNode, what: str, reading: FileReading) -> YamlNode | None:
        value = node.value
        items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else []
        kind: type = dict if isinstance(value, list) else list
        if not items or not all(isinstance(item.value, kind) and item.value for item in items):
            message = f"{what} must be a list of mappings, or a mapping of names to lists, not {describe(node)}"
            reading.findings.mistake("wrong-type", message, node.site)
            return None
        return node

    def schema(self) -> dict[str, JSON]:
        row: dict[str, JSON] = {"type": "object", "minProperties": 1}
        lists = {"type": "array", "minItems": 1}
        return {
            "anyOf": [
                {"type": "array", "items": row, "minItems": 1},
                {"type": "object", "additionalProperties": lists, "minProperties": 1},
            ]
        }


class Asserts(Constraint):
    """A case, or one of its steps, asserts something."""

    def violation(self, members: dict[str, YamlNode]) -> tuple[str, str] | None:
        steps = members["then"].value if "then" in members else None
        last = steps[-1].value if isinstance(steps, list) and steps else members
        if not isinstance(last, dict) or "snapshot" in last:
            return None
        expect = last["expect"].value if "expect" in last else {}
        if not isinstance(expect, dict) or not EXPECTATIONS.isdisjoint(expect):
            return None
        if expect.keys() - {"exact"}:  # unknown keys are reported already
            return None
        which = "asserts nothing in its last step" if last is not members else "asserts nothing"
        return f'{which}: add "expect" or "snapshot"', "name" if last is members else "then"

    def schema(self) -> dict[str, JSON]:
        return {"anyOf": [{"required": [name]} for name in ("expect", "snapshot", "then")]}


REJECTS = ListOf(CHILD, "a rejected child", minimum=1)
EXISTING = ListOf(ExistingType(), "an existing object")


@dataclass(frozen=True, slots=True)
class StepTable(Table):
    TITLE: ClassVar[str] = "a step"
    DEFINITION: ClassVar[str] = "step"

    name: Word | None = key("name", ANY_TEXT, "What happens.")
    resource: YamlNode | None = key(
        "resource", Verbatim(), "Changes of the CR, as a merge patch: a null removes a field."
    )
    existing: tuple[YamlNode | ExistingTable, ...] = key(
        "existing", EXISTING, "Changes of what exists: files, objects, and changes of children.", default=[]
    )
    after: float | None = key("after", DurationValue(), "How much time has passed since the step before, such as 2h.")
    deleted: bool = key("deleted", Flag(), "true: the CR is deleted.", default=False)
    rejects: tuple[Word, ...] = key("rejects", REJECTS, "Children whose writes the API server rejects.", default=[])
    expect: ExpectTable | None = key("expect", TableOf(ExpectTable), "The state after the step.")
    snapshot: Word | None = key(
        "snapshot", SNAPSHOT, "A file with all rendered children, which --update writes; relative to the test file."
    )


@dataclass(frozen=True, slots=True)
class CaseTable(Table):
    TITLE: ClassVar[str] = "a case"
    DEFINITION: ClassVar[str] = "case"
    CONSTRAINTS: ClassVar[tuple[Constraint, ...]] = (Asserts(),)

    name: Word | None = key("name", ANY_TEXT, "What the case shows. Each name is unique in its file.", required=True)
    mode: Mode = key(
        "mode",
        WordChoice(get_args(Mode)),
        "plan: without a cluster. dev: with the operator and a cluster in memory.",
        default="plan",
    )
    cases: YamlNode | None = key(
        "cases",
        RowsType(),
        "One case for each row of values, or for each combination of lists; ${name} stands for a value.",
    )
    resource: YamlNode | None = key(
        "resource", FileOrObject(), "The CR: a file, relative to the test file, or an object.", required=True
    )
    set: YamlNode | None = key("set", Verbatim(), "Changes of the CR, as a merge patch: a null removes a field.")
    existing: tuple[YamlNode | ExistingTable, ...] = key(
        "existing",
        EXISTING,
        "What exists before: files, objects, and from: render for the children of the rule.",
        default=[],
    )
    at: Word | None = key(
        "at", TIME, "The time, for `after` and `within`. Objects without creationTimestamp are created then."
    )
    deleted: bool = key("deleted", Flag(), "true: the CR is being deleted.", default=False)
    rejects: tuple[Word, ...] = key("rejects", REJECTS, "Children whose writes the API server rejects.", default=[])
    kinds: tuple[Word, ...] | None = key(
        "kinds",
        ListOf(KIND, "a kind"),
        "What the cluster serves beyond the built-in kinds and crds/; without this key: every kind.",
    )
    env: tuple[NamedEntry[Word], ...] = key(
        "env", MapOf(VARIABLE, "the variable"), "Environment variables that watches.yaml reads.", default={}
    )
    expect: ExpectTable | None = key("expect", TableOf(ExpectTable), "The state after the pass.")
    snapshot: Word | None = key(
        "snapshot", SNAPSHOT, "A file with all rendered children, which --update writes; relative to the test file."
    )
    then: tuple[StepTable, ...] = key(
        "then",
        ListOf(TableOf(StepTable), "a step", minimum=1),
        "Steps: each starts from what the one before left behind.",
        default=[],
    )


CASES = ListOf(TableOf(CaseTable), "a case", minimum=1)
TABLES: tuple[type[Table], ...] = (CaseTable, StepTable, ExpectTable, ExpectedConditionTable, ExistingTable)


def test_schema() -> dict[str, JSON]:
    """The JSON Schema of a test file, for editors. It cannot check ids, fields of objects, and values of `cases`."""
    definitions: dict[str, Any] = {
        table.DEFINITION: _with_uses_of_rows(table_schema(table), top=True) for table in TABLES
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ruleop tests (*.test.yaml)",
        **CASES.schema(),
        "$defs": definitions,
    }


_USE_OF_ROW: dict[str, JSON] = {"type": "string", "pattern": r"^\$\{[^{}]+\}$"}


def _with_uses_of_rows(schema: dict[str, JSON], *, top: bool = False) -> dict[str, JSON]:
    """The schema, with `${name}` allowed in place of each value: a row of `cases` has the value."""
    found = dict(schema)
    if "properties" in found:
        found["properties"] = {name: _with_uses_of_rows(inner) for name, inner in schema["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(found.get(keyword), dict):
            found[keyword] = _with_uses_of_rows(schema[keyword])
    if top or not found.keys() - {"description"}:
        return found
    notes: dict[str, JSON] = {name: found.pop(name) for name in ("description", "default") if name in found}
    return {"anyOf": [found, _USE_OF_ROW], **notes}
