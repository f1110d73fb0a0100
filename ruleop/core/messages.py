"""Cuts text for messages: what a custom resource contains may be of any length, and no log line, condition or event is
longer than `MAX_MESSAGE` characters of it."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 1024
"""Characters of a message. The API server accepts no longer note of an Event."""

MAX_QUOTED: Final = 72
"""Characters of a value or a name inside a message."""


def shortened(text: str, limit: int = MAX_QUOTED) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
