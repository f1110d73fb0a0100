"""Tables: mappings whose keys the language knows. Each is a frozen dataclass whose fields are declared with `key`, and that declaration is
the only place where a key's name, type, default and meaning stand; reading and the JSON Schema both go by it.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from ruleop.rules.findings import listed, meant
from ruleop.rules.language.value_types import Reading, Type, wrong_type
from ruleop.schema.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.kinds import JSON
    from ruleop.templating import YamlNode

T = TypeVar("T")
R = TypeVar("R", bound="Table")


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    type: Type[Any]
    doc: str
    default: JSON = None  # as it would be written
    required: bool = False


@overload
def key(name: str, type: Type[T], doc: str, *, required: bool = ...) -> T | None: ...
@overload
def key(name: str, type: Type[T], doc: str, *, default: JSON) -> T: ...
def key(name: str, type: Type[Any], doc: str, *, default: JSON = None, required: bool = False) -> Any:  # noqa: A002 - it reads as what it is
    """A key of a table. With a default it always has a value; without, it is None where it is not said."""
    value = None if default is None else type.of(default)
    return dataclasses.field(default=value, metadata={"key": Key(name, type, doc, default, required)})


class Constraint(ABC):
    """What the keys of a table have to do with each other."""

    @abstractmethod
    def broken(self, said: dict[str, YamlNode]) -> tuple[str, str] | None:
        """A message, and the key that it is about ("" for the table)."""

    @abstractmethod
    def schema(self) -> dict[str, JSON]: ...


@dataclass(frozen=True, slots=True)
class ExactlyOne(Constraint):
    keys: tuple[str, str]

    def broken(self, said: dict[str, YamlNode]) -> tuple[str, str] | None:
        found = [name for name in self.keys if name in said]
        if len(found) == 1:
            return None
        if found:
            return f"has both {listed(self.keys)}: remove one of them", found[1]
        return f"needs {listed(self.keys, last='or')}", ""

    def schema(self) -> dict[str, JSON]:
        return {"oneOf": [{"required": [name]} for name in self.keys]}


@dataclass(frozen=True, slots=True)
class Needs(Constraint):
    key: str
    other: str

    def broken(self, said: dict[str, YamlNode]) -> tuple[str, str] | None:
        if self.key in said and self.other not in said:
            return f'has "{self.key}", which means nothing without "{self.other}"', self.key
        return None

    def schema(self) -> dict[str, JSON]:
        return {"dependentRequired": {self.key: [self.other]}}


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping of known keys, as it was read. `said` holds the keys that are there, right or wrong, and where they stand."""

    TITLE: ClassVar[str]  # how messages call it
    DEFINITION: ClassVar[str]  # in the JSON Schema
    CONSTRAINTS: ClassVar[tuple[Constraint, ...]] = ()
    FUTURE: ClassVar[Mapping[str, str]] = MappingProxyType({})  # keys of a later version, and what to do until then

    site: Site
    said: dict[str, Site]


def keys(table: type[Table]) -> Iterator[tuple[str, Key]]:
    """The fields of a table and their keys."""
    for field in dataclasses.fields(table):
        if "key" in field.metadata:
            yield field.name, field.metadata["key"]


@dataclass(frozen=True, slots=True)
class TableOf(Type[R], Generic[R]):
    table: type[R]

    def read(self, node: YamlNode, what: str, reading: Reading) -> R | None:
        table = self.table
        if not isinstance(node.value, dict):
            # An empty table goes on in its place: whoever refers to it by name is right to.
            wrong_type(node, what, "a mapping", reading)
            return table(node.site, {})
        known = dict(keys(table))
        names = {known_key.name for known_key in known.values()}
        said = dict(node.value)
        for name, member in node.value.items():
            if name in table.FUTURE:
                message = f'"{name}" cannot be used yet: {table.FUTURE[name]}'
                reading.findings.mistake("unknown-key", message, node.key_sites[name])
            elif name not in names:
                message = f'unknown key "{name}" in {table.TITLE}{meant(name, names)}'
                reading.findings.mistake("unknown-key", message, node.key_sites[name])
                # One slip is one mistake: the key that was meant is not missing as well.
                said.setdefault(nearest(name, names) or name, member)
        values: dict[str, Any] = {}
        for field, known_key in known.items():
            if (written := node.value.get(known_key.name)) is not None:
                value = known_key.type.read(written, f'"{known_key.name}"', reading)
                if value is not None:
                    values[field] = value
            elif known_key.required and known_key.name not in said:
                reading.findings.mistake("missing-key", f'{table.TITLE} needs the key "{known_key.name}"', node.site)
        for constraint in table.CONSTRAINTS:
            if broken := constraint.broken(said):
                message, about = broken
                reading.findings.mistake("conflict", f"{table.TITLE} {message}", node.key_sites.get(about, node.site))
        return table(node.site, dict(node.key_sites), **values)

    def schema(self) -> dict[str, JSON]:
        return {"$ref": f"#/$defs/{self.table.DEFINITION}"}


def table_schema(table: type[Table]) -> dict[str, JSON]:
    """The JSON Schema of one table."""
    properties = {
        known_key.name: known_key.type.schema()
        | {"description": known_key.doc}
        | ({} if known_key.default is None else {"default": known_key.default})
        for _, known_key in keys(table)
    }
    schema: dict[str, JSON] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required := [known_key.name for _, known_key in keys(table) if known_key.required]:
        schema["required"] = required
    if table.CONSTRAINTS:
        schema["allOf"] = [constraint.schema() for constraint in table.CONSTRAINTS]
    return schema
