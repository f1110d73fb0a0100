"""Logs as events with fields. Readable on a terminal, JSON in a cluster; never the body of an object, never a secret.

Values that come from a cluster may contain anything, line breaks and terminal codes included. They are escaped, so that
log lines cannot be forged. A mapping is never logged, because an object may be a Secret; neither is the message of an
unexpected exception, because it may quote one. Its type and its traceback are logged.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import orjson
import structlog

from ruleop.errors import traceback_lines
from ruleop.messages import MAX_MESSAGE, shortened
from ruleop.printable import printable

if TYPE_CHECKING:
    from collections.abc import MutableMapping

Format = Literal["text", "json"]
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_NAMES = {number: name for name, number in LEVELS.items()} | {logging.CRITICAL: "error"}


def set_up(level: str = "info", form: Format | None = None) -> None:
    """Called once, at start. Without a form: text on a terminal, JSON elsewhere."""
    as_text = form == "text" or (form is None and sys.stderr.isatty())
    renderer: Any = structlog.processors.JSONRenderer(serializer=_as_json)
    if as_text:
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_seconds,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _format_exception,
            _redact_bodies,
            shorten,
            _escape if as_text else _order_fields,  # JSON escapes by itself
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS.get(level.lower(), logging.INFO)),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        handlers=[_LibraryHandler()], level=max(logging.WARNING, LEVELS.get(level.lower(), logging.INFO)), force=True
    )


class _LibraryHandler(logging.Handler):
    """Logs what libraries log. Only warnings and errors, because below that some log bodies; and only the first line,
    because asyncio appends the message of the exception."""

    def emit(self, record: logging.LogRecord) -> None:
        log = getattr(structlog.get_logger(), _NAMES.get(record.levelno, "warning"))
        log(record.getMessage().partition("\n")[0], library=record.name, exc_info=record.exc_info)


def _add_seconds(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """In a line of a reconcile: the time since it started."""
    if "started" in event:
        event["seconds"] = round(time.monotonic() - event.pop("started"), 4)
    return event


def _format_exception(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """An exception as its type and its traceback, without its message."""
    info = event.pop("exc_info", None)
    error = (
        info
        if isinstance(info, BaseException)
        else info[1]
        if isinstance(info, tuple)
        else sys.exc_info()[1]
        if info
        else None
    )
    if error is not None:
        event["exception"] = "\n".join(traceback_lines(error))
    return event


def _redact_bodies(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        event[name] = _redacted(value)
    return event


def _redacted(value: Any) -> Any:
    if type(value) is str:
        return value
    if isinstance(value, Mapping):
        return f"(a mapping of {len(value)})"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"({len(value)} bytes)"
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_redacted(each) for each in value]
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


_SHORT = 64  # characters of a value that is never cut, such as a level or a reason


def shorten(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Cuts long values, so that a line has at most `MAX_MESSAGE` characters of them: a custom resource may contain
    texts of any length, and lists of them."""
    left = MAX_MESSAGE
    for name, value in event.items():
        if isinstance(value, str) and len(value) > _SHORT and name != "exception":
            event[name] = shortened(value, max(left, _SHORT))
            left -= len(event[name])
        elif isinstance(value, list):
            event[name], left = _shortened_list(value, left)
    return event


def _shortened_list(values: list[Any], left: int) -> tuple[list[Any], int]:
    """The first items that there is space for, and the space that is left."""
    found: list[Any] = []
    for each in values:
        text = shortened(each if isinstance(each, str) else str(each), max(left, _SHORT))
        left -= len(text)
        if left < 0 and found:
            return [*found, f"and {len(values) - len(found)} more"], 0
        found.append(text if isinstance(each, str) else each)
    return found, left


def _escape(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if name == "exception":
            event[name] = "\n".join(f"    {printable(line)}" for line in value.split("\n"))
        elif isinstance(value, str):
            event[name] = printable(value)
        elif isinstance(value, list):
            event[name] = ", ".join(printable(str(each)) for each in value)
    return event


_FIRST = ("timestamp", "level", "event")


def _order_fields(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Time, level and event come first: people read a line of JSON from its start, and often no further."""
    return {**{name: event[name] for name in _FIRST if name in event}, **event}


def _as_json(event: Any, **_: Any) -> str:
    """In ASCII, so that no terminal and no collector finds a line break or a control character in a value."""
    try:
        if (line := orjson.dumps(event, default=repr)).isascii() and b"\x7f" not in line:
            return line.decode()
    except TypeError:  # half of a surrogate pair, or a number of more than 64 bits
        pass
    return json.dumps(event, default=repr, separators=(",", ":"))
