"""Text for messages: cut, because what a custom resource contains may be of any length, and no log line, condition or
event is longer than `MAX_MESSAGE` characters of it; and the paths of fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_MESSAGE: Final = 1024
"""Characters of a message. The API server accepts no longer note of an Event."""

MAX_QUOTED: Final = 72
"""Characters of a value or a name inside a message."""

_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*\Z")


def shortened(text: str, limit: int = MAX_QUOTED) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def format_path(path: Iterable[str | int]) -> str:
    """The path in the syntax of the rules: spec.ports[0].name, metadata.annotations['a/b']."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.match(part):
            text += f".{part}" if text else part
        else:
            text += f"['{part}']"
    return text
