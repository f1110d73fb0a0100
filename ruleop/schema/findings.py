"""A remark about a place inside a document: what is wrong there, and where "there" is.

This room sees parsed documents, never files. A finding therefore names its place by the path of keys and indexes that leads there;
whoever read the file turns the same path into a file, a line and a column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from ruleop.errors import RuleopError

Path: TypeAlias = tuple[str | int, ...]
"""The keys and list indexes that lead to a value; () is the document itself."""

_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*\Z")


def format_path(path: Path) -> str:
    """The path as users write it in rules: spec.ports[0].name, metadata.annotations['a/b']."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.match(part):
            text += f".{part}" if text else part
        else:
            text += f"['{part}']"
    return text


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a document."""

    path: Path
    message: str

    @property
    def location(self) -> str:
        return format_path(self.path)

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.path else self.message


class SchemaError(RuleopError):
    """A document that cannot be understood at all. Holds the finding, so that the reader of the file can add its line."""

    def __init__(self, path: Path, message: str) -> None:
        self.finding = Finding(path, message)
        super().__init__(str(self.finding))
