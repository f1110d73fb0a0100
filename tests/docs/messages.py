"""The log events and texts of ruleop, read out of the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def complaints() -> Iterator[str]:
    """The events of warnings and errors in the log."""
    return _logged({"warning", "error", "exception"})


def announcements() -> Iterator[str]:
    """The events in the log that are no trouble."""
    return _logged({"info"})


def _logged(levels: set[str]) -> Iterator[str]:
    for call in log_calls():
        event = call.args[0] if call.args else None
        if isinstance(event, ast.Constant) and any(_name(function) in levels for function in _functions(call)):
            yield str(event.value)


@cache
def log_calls() -> tuple[ast.Call, ...]:
    """The calls of methods of a log. Most files have none and need not be parsed."""
    return tuple(
        node
        for file in sorted((ROOT / "ruleop").rglob("*.py"))
        if re.search(r"\b(log|logger)\.\w", text := file.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and any(_is_log(function) for function in _functions(node))
    )


def _functions(call: ast.Call) -> list[ast.expr]:
    return [call.func.body, call.func.orelse] if isinstance(call.func, ast.IfExp) else [call.func]


@cache
def constants() -> tuple[str, ...]:
    """All text in the source."""
    return tuple(
        node.value
        for file in sorted((ROOT / "ruleop").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_log(function: ast.expr) -> bool:
    """Logs are events with names, not messages: `log.warning`, `self.log.error`."""
    return isinstance(function, ast.Attribute) and _name(function.value) in {"log", "logger"}


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
