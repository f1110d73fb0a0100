"""Unpacks a value into several names: `{% for k, v in ... %}` and `{% set a, b = ... %}`.

Python's unpacking would fail with `not enough values to unpack` where `.items()` is missing, or split a key of two
letters without an error. Unpacking values here allows messages with what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from jinja2 import nodes

from ruleop.core.templating.values.data import ListView, noun
from ruleop.core.templating.values.faults import Fault
from ruleop.core.templating.values.lookup import Group, MappingEntry
from ruleop.core.templating.values.operators import given, passes

ROWS = " rows"  # names of filters, which templates cannot write because of the space
UNPACKED = " unpacked"
_ENTRY = {"key", "value"}
_PLAIN_ROWS = frozenset({MappingEntry, Group, tuple})

Names: TypeAlias = tuple[Any, ...]
"""The target names; a tuple for names in brackets."""


def add_unpacking(tree: nodes.Template) -> None:
    """Adds the filters `rows` and `unpacked` to values that are unpacked."""
    for loop in tree.find_all(nodes.For):
        if names := _names(loop.target):
            loop.iter = _with_filter(loop.iter, ROWS, names, _source_of(loop.iter) or "mapping")
    for assignment in tree.find_all(nodes.Assign):
        if names := _names(assignment.target):
            assignment.node = _with_filter(assignment.node, UNPACKED, names)
    for block in tree.find_all(nodes.With):
        for number, target in enumerate(block.targets):
            if names := _names(target):
                block.values[number] = _with_filter(block.values[number], UNPACKED, names)


def _with_filter(node: Any, name: str, *arguments: Any) -> nodes.Filter:
    return nodes.Filter(node, name, [nodes.Const(each) for each in arguments], [], None, None, lineno=node.lineno)


def _names(target: nodes.Node) -> Names:
    """The names of a target; () for a single name."""
    if not isinstance(target, nodes.Tuple):
        return ()
    return tuple(_names(each) or getattr(each, "name", "...") for each in target.items)


def _source_of(node: nodes.Node) -> str:
    """The source text of a chain of fields; "" for anything else."""
    if isinstance(node, nodes.Name):
        return node.name
    before = _source_of(node.node) if isinstance(node, (nodes.Getattr, nodes.Getitem)) else ""
    if before and isinstance(node, nodes.Getattr):
        return f"{before}.{node.attr}"
    if before and isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        return f"{before}[{node.arg.value!r}]"
    return ""


def rows(value: Any, names: Names, source: str) -> list[tuple[Any, ...]]:
    """The items of a loop with several names."""
    found = passes(value)
    if isinstance(found, Mapping):
        pair = names if len(names) == 2 and all(isinstance(name, str) for name in names) else ("key", "value")
        raise Fault(
            f"a loop over a mapping iterates over its keys: write `for {pair[0]}, {pair[1]} in {source}.items()`"
        )
    size = len(names) if all(isinstance(name, str) for name in names) else -1
    return [
        row if type(row) in _PLAIN_ROWS and len(row) == size else unpacked(row, names) for row in found
    ]  # the first case is by far the most common


def unpacked(value: Any, names: Names) -> tuple[Any, ...]:
    value = given(value)
    if isinstance(value, (list, tuple, range, ListView)):
        if len(value) == len(names):
            return tuple(
                unpacked(each, name) if isinstance(name, tuple) else each
                for each, name in zip(value, names, strict=True)
            )
        what = f"a list of {len(value)} item{'' if len(value) == 1 else 's'}"
    else:
        what = noun(value)
    raise Fault(
        f"{what} cannot be unpacked into `{', '.join(map(_format_name, names))}`: {_unpacking_hint(value, names)}"
    )


def _format_name(name: str | Names) -> str:
    return name if isinstance(name, str) else f"({', '.join(map(_format_name, name))})"


def _unpacking_hint(value: Any, names: Names) -> str:
    if not isinstance(value, Mapping):
        return f"a list of {len(names)} items is needed"
    return (
        "write `for item in ...` and read item.key, item.value"
        if set(value) == _ENTRY
        else "use one name and read its fields"
    )
