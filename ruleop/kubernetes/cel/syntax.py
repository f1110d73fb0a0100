"""The syntax tree of a CEL expression, and the three ways in which one has no value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ruleop.errors import RuleopError


class InvalidRuleError(RuleopError):
    """An expression that the API server would reject with its CRD: bad syntax, an unknown field, mismatched types."""


class NotEvaluatedError(RuleopError):
    """An expression, or a value in one, of which the server's result is not known for certain. The message is the
    reason."""


class EvaluationError(RuleopError):
    """An error of CEL itself, such as a missing key. The server rejects the object with it, unless `&&`, `||` or a
    macro absorbs it."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, number, boolean or null."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, `has(operand.field)`, or `operand.?field`, which is optional."""

    operand: Node
    field: str
    tests: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method with its `target`, or an operator by its symbol. `&&` and `||` have all their operands;
    `[?]` is an index whose value is optional."""

    name: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Macro:
    """`target.all(variable, arguments)` and the other comprehensions."""

    name: str
    target: Node
    variable: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapLiteral:
    entries: tuple[tuple[Node, Node], ...]


Node: TypeAlias = Literal | Name | Select | Call | Macro | ListLiteral | MapLiteral
