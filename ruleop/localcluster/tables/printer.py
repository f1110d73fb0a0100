"""The table of a kind: its columns, and a function that gives the cells of an object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ruleop.core.kinds import JSON, Object

Cells = Callable[[Object, float], list[JSON]]
"""The cells of an object at a time, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0  # columns with a priority are only in `kubectl get -o wide`
    description: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


NAME = ColumnDefinition("Name", format="name")


@dataclass(frozen=True, slots=True)
class Printer:
    columns: tuple[ColumnDefinition, ...]
    cells: Cells


def printer(columns: str, cells: Cells) -> Printer:
    """A printer with columns such as `Name|Ready:integer|IP+`: names, types other than string, and a plus for those
    that are only in `-o wide`."""
    return Printer(tuple(_column(each) for each in columns.split("|")), cells)


def _column(text: str) -> ColumnDefinition:
    name, _, of_type = text.rstrip("+").partition(":")
    return ColumnDefinition(
        name, of_type or "string", "name" if name == "Name" else "", priority=1 if text.endswith("+") else 0
    )


OF_TEMPLATE: Final = "Containers+|Images+|Selector+"
"""The columns of what makes pods."""
