"""What a value in watches.yaml may be: one class for each sort, which reads it and says the same in JSON Schema.

Reading never stops: a value that is wrong becomes None and a mistake with its place, and the rest of the project is read on. So whatever
comes after the reading of a file has to live with None, until the loader has seen that there are no mistakes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ruleop.errors import Site
from ruleop.merge import Path, PathError, parse_path
from ruleop.rules.findings import Findings, listed, meant
from ruleop.rules.language.durations import PATTERN, parse_duration
from ruleop.templating import Expression, Library, RuleErrors, StringTemplate, TextTemplate, Tree, YamlNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import JSON

T = TypeVar("T")
C = TypeVar("C", Expression, StringTemplate, TextTemplate, Tree)

NAME = r"[a-z][A-Za-z0-9_]*"


@dataclass(slots=True)
class Reading:
    """What reading needs beside the value: the templates, to compile with, and where mistakes go."""

    library: Library
    templates: Mapping[str, str]
    findings: Findings


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    site: Site


@dataclass(frozen=True, slots=True)
class PlacedPath:
    """A path into an object, and where it is written."""

    path: Path
    site: Site


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A member of a mapping whose keys the user chooses. Without a value if that was wrong: the name is taken all the same."""

    name: str
    site: Site
    value: T | None


@dataclass(frozen=True, slots=True)
class Templated(Generic[C]):
    """What was compiled, and the value that it was compiled from."""

    compiled: C
    node: YamlNode


class Type(ABC, Generic[T]):
    """A sort of value."""

    @abstractmethod
    def read(self, node: YamlNode, what: str, reading: Reading) -> T | None:
        """The value, or None and a mistake. `what` names it in the message."""

    @abstractmethod
    def schema(self) -> dict[str, JSON]:
        """The same in JSON Schema, as far as that can say it."""

    def of(self, default: JSON) -> T:
        """The value that a default in a table stands for."""
        return cast("T", default)


def sort_of(node: YamlNode) -> str:
    """What a value is, for a message that says what it should have been. Numbers and booleans are shown: they surprise people."""
    value = node.value
    if value is None:
        return "empty"
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f'the text "{value}"' if len(value) < 60 and "\n" not in value else "text"
    return f"the {'boolean' if isinstance(value, bool) else 'number'} {str(value).lower()}"


def wrong_type(node: YamlNode, what: str, wanted: str, reading: Reading) -> None:
    hint = ": put it in quotes" if wanted == "text" and isinstance(node.value, (bool, int, float)) else ""
    reading.findings.mistake("wrong-type", f"{what} must be {wanted}, and is {sort_of(node)}{hint}", node.site)


@dataclass(frozen=True, slots=True)
class Text(Type[Word]):
    """Plain text of a given form."""

    pattern: str
    form: str  # the pattern, for people

    def read(self, node: YamlNode, what: str, reading: Reading) -> Word | None:
        if not isinstance(node.value, str):
            wrong_type(node, what, "text", reading)
            return None
        if not re.fullmatch(self.pattern, node.value, re.ASCII):
            reading.findings.mistake("wrong-value", f'{what} must be {self.form}, and is "{node.value}"', node.site)
            return None
        return Word(node.value, node.site)

    def schema(self) -> dict[str, JSON]:
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}

    def of(self, default: JSON) -> Word:
        return Word(default, Site(""))


@dataclass(frozen=True, slots=True)
class Choice(Type[T]):
    """One of a few words."""

    options: tuple[T, ...]

    def read(self, node: YamlNode, what: str, reading: Reading) -> T | None:
        for option in self.options:
            if node.value == option:
                return option
        names = [str(option) for option in self.options]
        guess = meant(node.value, names) if isinstance(node.value, str) else ""
        reading.findings.mistake("wrong-value", f"{what} must be {listed(names, last='or')}, and is {sort_of(node)}{guess}", node.site)
        return None

    def schema(self) -> dict[str, JSON]:
        return {"enum": [*self.options]}


@dataclass(frozen=True, slots=True)
class Flag(Type[bool]):
    def read(self, node: YamlNode, what: str, reading: Reading) -> bool | None:
        if isinstance(node.value, bool):
            return node.value
        wrong_type(node, what, "true or false", reading)
        return None

    def schema(self) -> dict[str, JSON]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Count(Type[int]):
    minimum: int

    def read(self, node: YamlNode, what: str, reading: Reading) -> int | None:
        if isinstance(node.value, bool) or not isinstance(node.value, int):
            wrong_type(node, what, "a whole number", reading)
        elif node.value < self.minimum:
            reading.findings.mistake("wrong-value", f"{what} must be at least {self.minimum}, and is {node.value}", node.site)
        else:
            return node.value
        return None

    def schema(self) -> dict[str, JSON]:
        return {"type": "integer", "minimum": self.minimum}


@dataclass(frozen=True, slots=True)
class Duration(Type[float]):
    def read(self, node: YamlNode, what: str, reading: Reading) -> float | None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            wrong_type(node, what, 'a duration like "10h"', reading)
            return None
        try:
            return parse_duration(str(value))
        except ValueError as error:
            reading.findings.mistake("wrong-value", f"{what}: {error}", node.site)
            return None

    def schema(self) -> dict[str, JSON]:
        return {"type": "string", "pattern": PATTERN}

    def of(self, default: JSON) -> float:
        return parse_duration(default)


@dataclass(frozen=True, slots=True)
class Bare(Type[Templated[Expression]]):
    """An expression. A lone `true` or `false` is one too."""

    def read(self, node: YamlNode, what: str, reading: Reading) -> Templated[Expression] | None:
        if not isinstance(node.value, (str, bool)):
            wrong_type(node, what, "an expression", reading)
            return None
        source = node.value if isinstance(node.value, str) else str(node.value).lower()
        if not source.strip():
            reading.findings.mistake("wrong-value", f"{what} must be an expression, and is empty", node.site)
            return None
        try:
            return Templated(reading.library.expression(source, node.site), node)
        except RuleErrors as error:
            reading.findings.take(error.mistakes, "template")
            return None

    def schema(self) -> dict[str, JSON]:
        return {"type": ["string", "boolean"], "minLength": 1}


@dataclass(frozen=True, slots=True)
class Template(Type[Templated[StringTemplate]]):
    """Text with templates in it. What it says may have to have a form, which can be looked at here only if it holds no template."""

    form: Type[Any] | None = None

    def read(self, node: YamlNode, what: str, reading: Reading) -> Templated[StringTemplate] | None:
        if not isinstance(node.value, str):
            wrong_type(node, what, "text", reading)
            return None
        try:
            template = reading.library.string(node.value, node.site)
        except RuleErrors as error:
            reading.findings.take(error.mistakes, "template")
            return None
        if self.form is not None and template.constant is not None and self.form.read(node, what, reading) is None:
            return None
        return Templated(template, node)

    def schema(self) -> dict[str, JSON]:
        if self.form is None:
            return {"type": "string"}
        return {"anyOf": [self.form.schema(), {"type": "string", "pattern": r"\{[{%]"}]}


@dataclass(frozen=True, slots=True)
class Grown(Type[Templated[Tree]]):
    """A value of any sort, or only a mapping, with templates in its strings."""

    mapping: bool = False

    def read(self, node: YamlNode, what: str, reading: Reading) -> Templated[Tree] | None:
        if self.mapping and not isinstance(node.value, dict):
            wrong_type(node, what, "a mapping", reading)
            return None
        try:
            return Templated(reading.library.tree(node), node)
        except RuleErrors as error:
            reading.findings.take(error.mistakes, "template")
            return None

    def schema(self) -> dict[str, JSON]:
        return {"type": "object"} if self.mapping else {}


@dataclass(frozen=True, slots=True)
class TemplateFile(Type[Templated[TextTemplate]]):
    """The name of a file below templates/, which gives objects or, for a status, one mapping."""

    mapping: bool = False

    def read(self, node: YamlNode, what: str, reading: Reading) -> Templated[TextTemplate] | None:
        name = node.value
        if not isinstance(name, str):
            wrong_type(node, what, "the name of a file below templates/", reading)
            return None
        if message := self._refusal(name, reading.templates):
            reading.findings.mistake("missing-file", message, node.site)
            return None
        try:
            return Templated(reading.library.text_mapping(name) if self.mapping else reading.library.text(name), node)
        except RuleErrors as error:
            reading.findings.take(error.mistakes, "template")
            return None

    @staticmethod
    def _refusal(name: str, templates: Mapping[str, str]) -> str:
        if name in templates:
            return ""
        if name.removeprefix("templates/") in templates:
            return f'names are below templates/ already: write "{name.removeprefix("templates/")}"'
        if name.startswith("/") or ".." in name.split("/"):
            return f'"{name}" is outside templates/: only files below it can be templates'
        return f"there is no templates/{name}{meant(name, templates)}"

    def schema(self) -> dict[str, JSON]:
        return {"type": "string", "pattern": r"^(?!/)(?!(.*/)?\.\.(/|$))[A-Za-z0-9._/-]+$"}


@dataclass(frozen=True, slots=True)
class FieldPath(Type[Path]):
    """A path into an object: spec.template.spec.containers[name=app].image."""

    def read(self, node: YamlNode, what: str, reading: Reading) -> Path | None:
        if not isinstance(node.value, str):
            wrong_type(node, what, "the path of a field", reading)
            return None
        try:
            return parse_path(node.value)
        except PathError as error:
            column = node.site.column + error.offset + (0 if node.plain else 1)
            reading.findings.mistake("wrong-value", f'{what} "{node.value}": {error.message}', Site(node.site.path, node.site.line, column))
            return None

    def schema(self) -> dict[str, JSON]:
        return {"type": "string", "minLength": 1}


class ListPath(Type[PlacedPath]):
    """The path of a list. What the kind's schema says of it is looked up when the child is known."""

    def read(self, node: YamlNode, what: str, reading: Reading) -> PlacedPath | None:
        path = FieldPath().read(node, what, reading)
        return None if path is None else PlacedPath(path, node.site)

    def schema(self) -> dict[str, JSON]:
        return FieldPath().schema()


@dataclass(frozen=True, slots=True)
class Verbatim(Type[YamlNode]):
    """A mapping that is passed on as it stands."""

    def read(self, node: YamlNode, what: str, reading: Reading) -> YamlNode | None:
        if not isinstance(node.value, dict):
            wrong_type(node, what, "a mapping", reading)
            return None
        return node

    def schema(self) -> dict[str, JSON]:
        return {"type": "object"}


@dataclass(frozen=True, slots=True)
class ListOf(Type[tuple[T, ...]]):
    item: Type[T]
    what: str  # one of them, for messages
    minimum: int = 0

    def read(self, node: YamlNode, what: str, reading: Reading) -> tuple[T, ...] | None:
        if not isinstance(node.value, list):
            wrong_type(node, what, "a list", reading)
            return None
        if len(node.value) < self.minimum:
            reading.findings.mistake(
                "wrong-value", f"{what} is an empty list, which matches nothing: name one, or leave the key out", node.site
            )
        values = [self.item.read(item, self.what, reading) for item in node.value]
        return tuple(value for value in values if value is not None)

    def schema(self) -> dict[str, JSON]:
        return {"type": "array", "items": self.item.schema()} | ({"minItems": self.minimum} if self.minimum else {})

    def of(self, default: JSON) -> tuple[T, ...]:
        return tuple(self.item.of(item) for item in default)


@dataclass(frozen=True, slots=True)
class MapOf(Type[tuple[Entry[T], ...]]):
    """A mapping whose keys the user chooses; with a pattern, of a given form."""

    member: Type[T]
    what: str  # one of them, for messages
    pattern: str = ""

    def read(self, node: YamlNode, what: str, reading: Reading) -> tuple[Entry[T], ...] | None:
        if not isinstance(node.value, dict):
            wrong_type(node, what, "a mapping", reading)
            return None
        entries = []
        for name, member in node.value.items():
            site = node.key_sites[name]
            if self.pattern and not re.fullmatch(self.pattern, name, re.ASCII):
                message = f'{self.what} cannot be named "{name}": a lowercase letter, then letters, digits and _'
                reading.findings.mistake("wrong-value", message, site)
            entries.append(Entry(name, site, self.member.read(member, f'{self.what} "{name}"', reading)))
        return tuple(entries)

    def schema(self) -> dict[str, JSON]:
        names: dict[str, Any] = {"propertyNames": {"pattern": f"^(?:{self.pattern})$"}} if self.pattern else {}
        return {"type": "object", "additionalProperties": self.member.schema()} | names

    def of(self, default: JSON) -> tuple[Entry[T], ...]:
        return tuple(Entry(name, Site(""), self.member.of(member)) for name, member in default.items())
