"""A problem in a document: what is wrong, and the path of the field.

This package works on parsed documents, not on files. The loader of the file turns the path into a file, a line and a
column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ruleop.errors import RuleopError
from ruleop.messages import format_path

FieldPath: TypeAlias = tuple[str | int, ...]
"""The keys and list indexes that lead to a value; () is the document itself."""


@dataclass(frozen=True, slots=True)
class SchemaFinding:
    """One problem in a document."""

    path: FieldPath
    message: str

    @property
    def location(self) -> str:
        return format_path(self.path)

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.path else self.message


class SchemaError(RuleopError):
    """A document that cannot be parsed. Holds the finding, so that the loader of the file can add its line."""

    def __init__(self, path: FieldPath, message: str) -> None:
        self.finding = SchemaFinding(path, message)
        super().__init__(str(self.finding))
