"""Logs as events with fields: who, what, why, how long. Readable on a terminal, JSON in a cluster; never a body, never a secret.

Values that come from a cluster may hold anything, line breaks and terminal codes included; they are escaped, so that nobody can write a log
line of his own.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, Literal

import structlog

if TYPE_CHECKING:
    from collections.abc import MutableMapping

Format = Literal["text", "json"]
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def set_up(level: str = "info", form: Format | None = None) -> None:
    """Once, at start. Without a form: text on a terminal, JSON elsewhere."""
    as_text = form == "text" or (form is None and sys.stderr.isatty())
    renderer: Any = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()) if as_text else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_control_characters,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS.get(level.lower(), logging.INFO)),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def _without_control_characters(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = (
                value.encode("unicode_escape").decode("ascii") if any(ord(char) < 32 or ord(char) == 127 for char in value) else value
            )
    return event
