"""Markdown in which text of a project is text: nothing in it is read as HTML, a link or the end of a cell."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from ruleop.core.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MARKUP: Final = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ACTIVE: Final = re.compile(r"[\\`*_\[\]|~&<>:@]")  # also what begins or ends an address


def prose(text: str) -> str:
    """Plain text as one line."""
    line = escape(_MARKUP.sub(r"\\\g<0>", printable(" ".join(text.split()))), quote=False)
    return re.sub(r"^([-+#>]|\d+[.)])", r"\\\1", line)


def code(text: str) -> str:
    """A span of code as one line, also in a cell of a table, where a backtick span cannot have a `|`."""
    line = printable(" ".join(text.split()))
    if "|" in line:
        return f"<code>{_ACTIVE.sub(lambda found: f'&#{ord(found[0])};', line)}</code>"
    fence = _fence(line, 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def block(text: str, language: str) -> str:
    fence = _fence(text, 3)
    return f"{fence}{language}\n{text}{fence}\n"


def _fence(text: str, least: int) -> str:
    return "`" * max([least, *(len(found) + 1 for found in re.findall("`+", text))])


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Without the columns that are empty; "" without rows. Cells are Markdown already."""
    every = [*rows]
    kept = [number for number, _ in enumerate(header) if any(row[number] for row in every)]
    lines = [header, ["---"] * len(header), *every] if every else []
    return "".join(f"| {' | '.join(line[number] for number in kept)} |\n" for line in lines)
