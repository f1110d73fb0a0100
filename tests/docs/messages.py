"""The messages that a user of ruleop can meet, read out of the source.

A message is text in the arguments of what raises or records a mistake. Arguments are followed through local names,
module constants and functions of the same room, so `findings.mistake("reach", message, site)` is found by what
`message` was made of. Of an f-string, the constant pieces are what is known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Names = dict[str, list[ast.expr]]  # what a function assigns to its names

ROOT = Path(__file__).parents[2]
ROOMS = (
    *(f"core/{room}" for room in ("rules", "templating", "planning", "schema", "merge")),
    "operator/kube",
    *(f"authoring/{room}" for room in ("scaffold", "generate", "live")),
    "cli",
)

RECORDERS = {
    "mistake", "_mistake", "warning", "fail", "wrong_type", "take",  # findings
    "RuleError", "RenderError", "RuleErrors", "UsageError", "SchemaError", "ApiError", "Finding",
    "Fault", "NotThereYet", "Exhausted", "NotJson", "Unreadable", "Waiting", "PathError", "MergeError", "RecordTooLargeError", "InvalidPatternError",
    "ChildFails", "ChildWaits", "Problem", "Wait", "Readiness", "Event", "condition", "triple",
    "_complain", "_print_error", "CredentialsError", "NotConnectedError", "_going", "BadParameter", "ClickException", "ScaffoldError", "ExistsError",
}  # fmt: skip
"""What takes a message. Exceptions that end as one are among them."""

OPAQUE = {
    "did_you_mean", "meant", "nearest", "isinstance", "len", "sorted", "Site", "Path", "Kind", "getattr", "get", "parse",
    "startswith", "endswith", "removeprefix", "join", "match", "search", "replace", "sub",
}  # fmt: skip
"""Calls whose arguments are data, not words of a message."""

VALUE_ERRORS = {"ruleop/core/rules/language/durations.py", "ruleop/core/rules/language/env_vars.py"}
"""Where a ValueError becomes a message."""

_COMPOUND = (
    ast.IfExp,
    ast.BoolOp,
    ast.BinOp,
    ast.Tuple,
    ast.Dict,
    ast.Starred,
    ast.GeneratorExp,
    ast.List,
    ast.Subscript,
)

SHORTEST = 8  # a shorter piece says nothing by itself


@dataclass(frozen=True)
class Message:
    place: str  # file:line
    pieces: tuple[str, ...]  # the constant text between what is filled in

    @property
    def telling(self) -> str:
        """The longest piece, by which the message is known."""
        return max(self.pieces, key=len).strip()

    def __str__(self) -> str:
        return f"{self.place}: {'…'.join(self.pieces)}"


@cache
def messages(rooms: tuple[str, ...] = ROOMS) -> tuple[Message, ...]:
    found: dict[str, Message] = {}
    for room in rooms:
        modules = [_Module(file) for file in sorted((ROOT / "ruleop" / room).rglob("*.py"))]
        functions: dict[str, list[tuple[_Module, ast.AST]]] = {}
        for module in modules:
            for name, bodies in module.functions.items():
                functions.setdefault(name, []).extend((module, body) for body in bodies)
        for module in modules:
            module.imported = functions
            for message in module.messages():
                if len(message.telling) >= SHORTEST and " " in message.telling:
                    found.setdefault(message.telling, message)
    return tuple(found.values())


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


class _Module:
    def __init__(self, file: Path) -> None:
        self.name = file.relative_to(ROOT).as_posix()
        self.tree = ast.parse(file.read_text(encoding="utf-8"))
        self.functions: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, []).append(node)
        self.constants = {name: value for node in self.tree.body for name, value in _assigned(node)}
        self.imported: dict[str, list[tuple[_Module, ast.AST]]] = {}  # the functions of the room
        self.seen: set[tuple[int, int]] = set()

    def messages(self) -> Iterator[Message]:
        yield from self._in(self.tree, {})

    def _in(self, node: ast.AST, local: Names) -> Iterator[Message]:
        """Every recorder below a node, with the names that the function around it assigns."""
        for child in ast.iter_child_nodes(node):
            inner = _locals(child) if isinstance(child, (ast.FunctionDef, ast.Lambda)) else local
            if isinstance(child, ast.Call) and _name(child.func) in RECORDERS and not _is_log(child.func):
                for argument in [*child.args, *(keyword.value for keyword in child.keywords)]:
                    yield from self._texts(argument, inner, 0)
            elif self.name in VALUE_ERRORS and isinstance(child, ast.Call) and _name(child.func) == "ValueError":
                for argument in child.args:
                    yield from self._texts(argument, inner, 0)
            yield from self._in(child, inner)

    def _texts(self, node: ast.AST, local: Names, depth: int) -> Iterator[Message]:
        """The messages that a value can be."""
        if depth > 6:
            return
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield Message(f"{self.name}:{node.lineno}", (node.value,))
        elif isinstance(node, ast.JoinedStr):
            if self._is_new(node):
                yield Message(f"{self.name}:{node.lineno}", tuple(_pieces(node)) or ("",))
                for part in node.values:
                    if isinstance(part, ast.FormattedValue):
                        yield from self._texts(part.value, local, depth + 1)
        elif isinstance(node, ast.Name):
            if self._is_new(node):
                for value in local.get(node.id, [self.constants[node.id]] if node.id in self.constants else []):
                    yield from self._texts(value, local, depth + 1)
        elif isinstance(node, ast.Call):
            yield from self._of_call(node, local, depth + 1)
        elif isinstance(node, _COMPOUND):
            for part in [node.body, node.orelse] if isinstance(node, ast.IfExp) else ast.iter_child_nodes(node):
                yield from self._texts(part, local, depth + 1)

    def _of_call(self, node: ast.Call, local: Names, depth: int) -> Iterator[Message]:
        """What a function of the room returns, and what it is given."""
        name = _name(node.func)
        own = [(self, function) for function in self.functions.get(name, [])]
        plain_call = isinstance(node.func, ast.Name)  # of a method it is not known whose it is
        for module, function in [] if name in RECORDERS else own or (self.imported.get(name, []) if plain_call else []):
            names = _locals(function)
            for inner in ast.walk(function):
                if isinstance(inner, ast.Return | ast.Yield) and inner.value is not None:
                    yield from module._texts(inner.value, names, depth)
        if name not in OPAQUE:
            for argument in node.args:
                yield from self._texts(argument, local, depth)

    def _is_new(self, node: ast.expr) -> bool:
        place = node.lineno, node.col_offset
        if place in self.seen:
            return False
        self.seen.add(place)
        return True


def _pieces(node: ast.JoinedStr) -> Iterator[str]:
    text = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
        elif text:
            yield text
            text = ""
    if text:
        yield text


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names and what is assigned to them; of a tuple, and of a loop, the whole."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    yield name.id, node.value
    elif isinstance(node, ast.For):
        for name in ast.walk(node.target):
            if isinstance(name, ast.Name):
                yield name.id, node.iter
    elif isinstance(node, ast.NamedExpr):
        yield node.target.id, node.value


def _locals(function: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        for name, value in _assigned(node):
            found.setdefault(name, []).append(value)
    return found


def _is_log(function: ast.expr) -> bool:
    """Logs are events with names, not messages: `log.warning`, `self.log.error`."""
    return isinstance(function, ast.Attribute) and _name(function.value) in {"log", "logger"}


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
