"""The types of values in watches.yaml. Each class parses a type and describes it in JSON Schema.

Parsing does not stop at mistakes: an invalid value becomes None, with a finding. So all code after parsing must handle
None, until the loader knows that there are no mistakes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from ruleop.errors import Site
from ruleop.kubernetes.merge import Path, PathError, parse_path
from ruleop.language.rules.findings import Findings, format_list
from ruleop.language.rules.keys.model import DAYS, PATTERN, Share, parse_duration
from ruleop.language.templates import Expression, RuleErrors, StringTemplate, TextTemplate, Tree, YamlNode
from ruleop.language.templates.compile import NO_KIND, has_templates
from ruleop.nearest import did_you_mean_quoted
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates.compile import Library

T = TypeVar("T")
C = TypeVar("C", Expression, StringTemplate, TextTemplate, Tree)

NAME = r"[a-z][A-Za-z0-9_]*"
TEMPLATE: Final[dict[str, JSON]] = {"type": "string", "pattern": r"\{[{%]"}
"""A string with a template, in JSON Schema."""
_PERCENT = re.compile(r"(0|[1-9][0-9]{0,2})%", re.ASCII)


@dataclass(slots=True)
class FileReading:
    """The context of parsing."""

    library: Library
    findings: Findings


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    site: Site


@dataclass(frozen=True, slots=True)
class PlacedPath:
    """A field path and its site in the rules."""

    path: Path
    site: Site


@dataclass(frozen=True, slots=True)
class NamedEntry(Generic[T]):
    """A member of a mapping with keys of the user. The value is None if it is invalid; the name is defined
    nevertheless."""

    name: str
    site: Site
    value: T | None


@dataclass(frozen=True, slots=True)
class Templated(Generic[C]):
    """A compiled template and its source."""

    compiled: C
    node: YamlNode


class ValueType(ABC, Generic[T]):
    """A type of values."""

    @abstractmethod
    def read(self, node: YamlNode, what: str, reading: FileReading) -> T | None:
        """The value, or None and a mistake. `what` names it in the message."""

    @abstractmethod
    def schema(self) -> dict[str, JSON]:
        """The type in JSON Schema, as far as it can be expressed."""

    def of(self, default: JSON) -> T:
        """The parsed value of a default."""
        return cast("T", default)


def describe(node: YamlNode) -> str:
    """The type of a value for a message. Numbers and booleans are shown, because they are often unexpected."""
    value = node.value
    if value is None:
        return "empty"
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f'the text "{value}"' if len(value) < 60 and "\n" not in value else "text"
    return f"the {'boolean' if isinstance(value, bool) else 'number'} {str(value).lower()}"


def is_template(node: YamlNode) -> bool:
    """Whether the value is a string with templates."""
    return isinstance(node.value, str) and has_templates(node.value)


def wrong_type(node: YamlNode, what: str, expected: str, reading: FileReading) -> None:
    hint = ": put it in quotes" if expected == "text" and isinstance(node.value, (bool, int, float)) else ""
    reading.findings.mistake("wrong-type", f"{what} must be {expected}, not {describe(node)}{hint}", node.site)


@dataclass(frozen=True, slots=True)
class TextValue(ValueType[Word]):
    """Plain text that matches a pattern."""

    pattern: str
    form: str  # a description of the pattern
    longest: int = 0  # characters; 0 for any number

    def read(self, node: YamlNode, what: str, reading: FileReading) -> Word | None:
        if not isinstance(node.value, str):
            wrong_type(node, what, "text", reading)
            return None
        if not self.fits(node.value):
            reading.findings.mistake("wrong-value", f'{what} must be {self.form}, not "{node.value}"', node.site)
            return None
        return Word(node.value, node.site)

    def fits(self, text: str) -> bool:
        return len(text) <= (self.longest or len(text)) and re.fullmatch(self.pattern, text, re.ASCII) is not None

    def schema(self) -> dict[str, JSON]:
        limit: dict[str, JSON] = {"maxLength": self.longest} if self.longest else {}
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"} | limit

    def of(self, default: JSON) -> Word:
        return Word(default, Site(""))


@dataclass(frozen=True, slots=True)
class WordChoice(ValueType[T]):
    """One of several words. `former`: words of former versions, with what to write instead."""

    options: tuple[T, ...]
    former: tuple[tuple[str, str], ...] = ()

    def read(self, node: YamlNode, what: str, reading: FileReading) -> T | None:
        for option in self.options:
            if node.value == option:
                return option
        names = [str(option) for option in self.options]
        guess = did_you_mean_quoted(node.value, names) if isinstance(node.value, str) else ""
        instead = next((f": {hint}" for word, hint in self.former if word == node.value), guess)
        message = f"{what} must be {format_list(names, last='or')}, not {describe(node)}{instead}"
        reading.findings.mistake("wrong-value", message, node.site)
        return None

    def schema(self) -> dict[str, JSON]:
        return {"enum": [*self.options]}


@dataclass(frozen=True, slots=True)
class Flag(ValueType[bool]):
    def read(self, node: YamlNode, what: str, reading: FileReading) -> bool | None:
        if isinstance(node.value, bool):
            return node.value
        wrong_type(node, what, "true or false", reading)
        return None

    def schema(self) -> dict[str, JSON]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Count(ValueType[int]):
    minimum: int

    def read(self, node: YamlNode, what: str, reading: FileReading) -> int | None:
        if isinstance(node.value, bool) or not isinstance(node.value, int):
            wrong_type(node, what, "a whole number", reading)
        elif node.value < self.minimum:
            message = f"{what} must be at least {self.minimum}, not {node.value}"
            reading.findings.mistake("wrong-value", message, node.site)
        else:
            return node.value
        return None

    def schema(self) -> dict[str, JSON]:
        return {"type": "integer", "minimum": self.minimum}


@dataclass(frozen=True, slots=True)
class NumberOrPercent(ValueType[Share]):
    """A number of CRs, or a percentage of all."""

    minimum: int

    def read(self, node: YamlNode, what: str, reading: FileReading) -> Share | None:
        value, form = node.value, f'a whole number from {self.minimum}, or a percentage like "10%"'
        if isinstance(value, str) and (match := _PERCENT.fullmatch(value)) and self.minimum <= int(match[1]) <= 100:
            return Share(int(match[1]), percent=True)
        if isinstance(value, bool) or not isinstance(value, int) or value < self.minimum:
            wrong_type(node, what, form, reading)
            return None
        return Share(value)

    def schema(self) -> dict[str, JSON]:
        percent = r"^(100|[1-9]?[0-9])%$" if self.minimum == 0 else r"^(100|[1-9][0-9]?)%$"
        return {"anyOf": [{"type": "integer", "minimum": self.minimum}, {"type": "string", "pattern": percent}]}

    def of(self, default: JSON) -> Share:
        return Share(default)


@dataclass(frozen=True, slots=True)
class Checked(ValueType[str]):
    """Text that a function checks. It returns what is wrong with the text, or an empty string."""

    problem: Callable[[str], str]

    def read(self, node: YamlNode, what: str, reading: FileReading) -> str | None:
        if not isinstance(node.value, str):
            wrong_type(node, what, "text", reading)
        elif problem := self.problem(node.value):
            reading.findings.mistake("wrong-value", f"{what}: {problem}", node.site)
        else:
            return node.value
        return None

    def schema(self) -> dict[str, JSON]:
        return {"type": "string"}


@dataclass(frozen=True, slots=True)
class DurationValue(ValueType[float]):
    minimum: str = ""
    days: bool = False  # also a number of days, such as 90d

    def read(self, node: YamlNode, what: str, reading: FileReading) -> float | None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            wrong_type(node, what, 'a duration like "10h"', reading)
            return None
        try:
            found = parse_duration(str(value), days=self.days)
        except ValueError as error:
            reading.findings.mistake("wrong-value", f"{what}: {error}", node.site)
            return None
        if self.minimum and found < parse_duration(self.minimum):
            reading.findings.mistake("wrong-value", f"{what} must be at least {self.minimum}, not {value}", node.site)
            return None
        return found

    def schema(self) -> dict[str, JSON]:
        return {"type": "string", "pattern": f"{PATTERN}|{DAYS}" if self.days else PATTERN}

    def of(self, default: JSON) -> float:
        return parse_duration(default)


def _compiled(compiler: Callable[[], C], node: YamlNode, reading: FileReading) -> Templated[C] | None:
    """The template that the function compiles, or None and its mistakes."""
    try:
        return Templated(compiler(), node)
    except RuleErrors as error:
        reading.findings.take(error.mistakes, "template")
        return None


@dataclass(frozen=True, slots=True)
class BareExpression(ValueType[Templated[Expression]]):
    """An expression, which may be a boolean."""

    def read(self, node: YamlNode, what: str, reading: FileReading) -> Templated[Expression] | None:
        if not isinstance(node.value, (str, bool)):
            wrong_type(node, what, "an expression", reading)
            return None
        source = node.value if isinstance(node.value, str) else str(node.value).lower()
        if not source.strip():
            reading.findings.mistake("wrong-value", f"{what} must be an expression, not empty", node.site)
            return None
        return _compiled(partial(reading.library.expression, source, node.site), node, reading)

    def schema(self) -> dict[str, JSON]:
        return {"type": ["string", "boolean"], "minLength": 1}


@dataclass(frozen=True, slots=True)
class TemplateValue(ValueType[Templated[StringTemplate]]):
    """Text with templates. `form` is the type of the rendered text, which is checked here only if there are no
    templates."""

    form: ValueType[Any] | None = None

    def read(self, node: YamlNode, what: str, reading: FileReading) -> Templated[StringTemplate] | None:
        if not isinstance(node.value, str):
            wrong_type(node, what, "text", reading)
            return None
        found = _compiled(partial(reading.library.string, node.value, node.site), node, reading)
        if found is None or self.form is None or found.compiled.constant is None:
            return found
        return found if self.form.read(node, what, reading) is not None else None

    def schema(self) -> dict[str, JSON]:
        if self.form is None:
            return {"type": "string"}
        return {"anyOf": [self.form.schema(), TEMPLATE]}


@dataclass(frozen=True, slots=True)
class TemplateTree(ValueType[Templated[Tree]]):
    """A value of any type, or only a mapping, with templates in its strings."""

    mapping: bool = False

    def read(self, node: YamlNode, what: str, reading: FileReading) -> Templated[Tree] | None:
        if self.mapping and not isinstance(node.value, dict):
            wrong_type(node, what, "a mapping", reading)
            return None
        found = _compiled(partial(reading.library.tree, node), node, reading)
        if found is not None:
            reading.findings.take(reading.library.possible(node).mistakes, "yaml")
        return found

    def schema(self) -> dict[str, JSON]:
        return {"type": "object"} if self.mapping else {}


@dataclass(frozen=True, slots=True)
class OrTemplate(ValueType[T]):
    """A value, or a template that renders to it. The template is read by the type around it: here it counts as the
    default."""

    otherwise: ValueType[T]

    def read(self, node: YamlNode, what: str, reading: FileReading) -> T | None:
        return None if is_template(node) else self.otherwise.read(node, what, reading)

    def schema(self) -> dict[str, JSON]:
        return {"anyOf": [self.otherwise.schema(), TEMPLATE]}

    def of(self, default: JSON) -> T:
        return self.otherwise.of(default)


@dataclass(frozen=True, slots=True)
class TemplateFile(ValueType[Templated[TextTemplate]]):
    """The name of a file below templates/ that renders to objects or, for a status, to one mapping."""

    mapping: bool = False

    def read(self, node: YamlNode, what: str, reading: FileReading) -> Templated[TextTemplate] | None:
        name = node.value
        if not isinstance(name, str):
            wrong_type(node, what, "the name of a file below templates/", reading)
            return None
        if message := self._missing_message(name, reading.library.texts):
            reading.findings.mistake("missing-file", message, node.site)
            return None
        library = reading.library
        try:
            unreadable = [*library.possible(name).mistakes]
        except RuleErrors:  # they are those of what follows
            unreadable = []
        reading.findings.take(unreadable, "yaml")
        try:
            compiled = library.text_mapping(name) if self.mapping else library.text(name)
        except RuleErrors as error:
            known = {NO_KIND, *(each.message for each in unreadable)} if unreadable else ()
            others = (each for each in error.mistakes if each.message not in known)
            reading.findings.take(others, "template")
            return None
        return Templated(compiled, node)

    @staticmethod
    def _missing_message(name: str, templates: Mapping[str, str]) -> str:
        if name in templates:
            return ""
        if name.removeprefix("templates/") in templates:
            return f'names are relative to templates/: write "{name.removeprefix("templates/")}"'
        if name.startswith("/") or ".." in name.split("/"):
            return f'"{name}" is outside of templates/'
        return f"templates/{name} does not exist{did_you_mean_quoted(name, templates)}"

    def schema(self) -> dict[str, JSON]:
        return {"type": "string", "pattern": r"^(?!/)(?!(.*/)?\.\.(/|$))[A-Za-z0-9._/-]+$"}


@dataclass(frozen=True, slots=True)
class FieldPath(ValueType[Path]):
    """A field path: spec.template.spec.containers[name=app].image."""

    def read(self, node: YamlNode, what: str, reading: FileReading) -> Path | None:
        if not isinstance(node.value, str):
            wrong_type(node, what, "the path of a field", reading)
            return None
        try:
            return parse_path(node.value)
        except PathError as error:
            message = f'{what} "{node.value}": {error.message}'
            reading.findings.mistake("wrong-value", message, node.place(error.offset))
            return None

    def schema(self) -> dict[str, JSON]:
        return {"type": "string", "minLength": 1}


class ListPath(ValueType[PlacedPath]):
    """The path of a list, which is checked against the schema of the child's kind later."""

    def read(self, node: YamlNode, what: str, reading: FileReading) -> PlacedPath | None:
        path = FieldPath().read(node, what, reading)
        return None if path is None else PlacedPath(path, node.site)

    def schema(self) -> dict[str, JSON]:
        return FieldPath().schema()


@dataclass(frozen=True, slots=True)
class Verbatim(ValueType[YamlNode]):
    """A mapping that is not parsed further."""

    def read(self, node: YamlNode, what: str, reading: FileReading) -> YamlNode | None:
        if not isinstance(node.value, dict):
            wrong_type(node, what, "a mapping", reading)
            return None
        return node

    def schema(self) -> dict[str, JSON]:
        return {"type": "object"}


@dataclass(frozen=True, slots=True)
class ListOf(ValueType[tuple[T, ...]]):
    item: ValueType[T]
    what: str  # the name of one item, for messages
    minimum: int = 0

    def read(self, node: YamlNode, what: str, reading: FileReading) -> tuple[T, ...] | None:
        if not isinstance(node.value, list):
            wrong_type(node, what, "a list", reading)
            return None
        if len(node.value) < self.minimum:
            message = f"{what} is an empty list, which matches nothing: add an item, or remove the key"
            reading.findings.mistake("wrong-value", message, node.site)
        values = [self.item.read(item, self.what, reading) for item in node.value]
        return tuple(value for value in values if value is not None)

    def schema(self) -> dict[str, JSON]:
        return {"type": "array", "items": self.item.schema()} | ({"minItems": self.minimum} if self.minimum else {})

    def of(self, default: JSON) -> tuple[T, ...]:
        return tuple(self.item.of(item) for item in default)


@dataclass(frozen=True, slots=True)
class MapOf(ValueType[tuple[NamedEntry[T], ...]]):
    """A mapping with keys of the user, which match the pattern if there is one."""

    member: ValueType[T]
    what: str  # the name of one item, for messages
    pattern: str = ""
    form: str = "a lowercase letter, then letters, digits and _"  # a description of the pattern

    def read(self, node: YamlNode, what: str, reading: FileReading) -> tuple[NamedEntry[T], ...] | None:
        if not isinstance(node.value, dict):
            wrong_type(node, what, "a mapping", reading)
            return None
        entries = []
        for name, member in node.value.items():
            site = node.key_sites[name]
            if self.pattern and not re.fullmatch(self.pattern, name, re.ASCII):
                message = f'{self.what} cannot be named "{name}": {self.form}'
                reading.findings.mistake("wrong-value", message, site)
            entries.append(NamedEntry(name, site, self.member.read(member, f'{self.what} "{name}"', reading)))
        return tuple(entries)

    def schema(self) -> dict[str, JSON]:
        names: dict[str, Any] = {"propertyNames": {"pattern": f"^(?:{self.pattern})$"}} if self.pattern else {}
        return {"type": "object", "additionalProperties": self.member.schema()} | names

    def of(self, default: JSON) -> tuple[NamedEntry[T], ...]:
        return tuple(NamedEntry(name, Site(""), self.member.of(member)) for name, member in default.items())


@dataclass(frozen=True, slots=True)
class Loops(ValueType[tuple[NamedEntry[Templated[Expression]], ...]]):
    """The loops of `forEach`, outermost first: one expression, whose item is named elsewhere, or names and
    expressions."""

    def read(
        self, node: YamlNode, what: str, reading: FileReading
    ) -> tuple[NamedEntry[Templated[Expression]], ...] | None:
        if not isinstance(node.value, dict):
            found = BareExpression().read(node, what, reading)
            return (NamedEntry("", node.site, found),) if found is not None else None
        if not node.value:
            message = f"{what} is an empty mapping: name a loop in it, such as `team: spec.teams`"
            reading.findings.mistake("wrong-value", message, node.site)
            return None
        return self._named().read(node, what, reading)

    @staticmethod
    def _named() -> MapOf[Templated[Expression]]:
        return MapOf(BareExpression(), "an item", NAME)

    def schema(self) -> dict[str, JSON]:
        return {"anyOf": [BareExpression().schema(), self._named().schema() | {"minProperties": 1}]}
