"""The sections of checks.md beside this module: `ruleop check --explain`."""

from __future__ import annotations

import importlib.resources
import re
from typing import Final

_COMMENT: Final = re.compile(r"<!-- .*? -->\n")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def explanation(id_: str) -> str:
    """The section of a check, as text for a terminal: code is indented."""
    page = importlib.resources.files(__package__).joinpath("checks.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {id_} ")[2].partition("\n## ")[0]
    lines, is_code = [f"{id_} {section.partition(chr(10))[0]}"], False
    for line in _COMMENT.sub("", section).split("\n")[1:]:
        if line.startswith("```"):
            is_code = not is_code
        else:
            lines.append(f"    {line}".rstrip() if is_code else _LINK.sub(r"\1", line).replace("**", ""))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
