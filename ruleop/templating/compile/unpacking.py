"""Several names for one value: `{% for k, v in ... %}` and `{% set a, b = ... %}`.

Python would do it, and say `not enough values to unpack` where people forget `.items()`; or say nothing, and take a key of two letters
apart. So each value is unpacked here, where it can be said what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from jinja2 import nodes

from ruleop.templating.values.data import ListView, noun
from ruleop.templating.values.faults import Fault
from ruleop.templating.values.lookup import Entry, Group
from ruleop.templating.values.operators import given, passes

ROWS = " rows"  # names of filters that no template can write
UNPACKED = " unpacked"
_ENTRY = {"key", "value"}
_PLAIN_ROWS = frozenset({Entry, Group, tuple})

Names: TypeAlias = tuple[Any, ...]
"""The names to be filled: texts, and a tuple for names in brackets."""


def add_unpacking(tree: nodes.Template) -> None:
    """Sends what several names are made of through `rows` and `unpacked`."""
    for loop in tree.find_all(nodes.For):
        if names := _names(loop.target):
            loop.iter = _filtered(loop.iter, ROWS, names, _spelled(loop.iter) or "mapping")
    for assignment in tree.find_all(nodes.Assign):
        if names := _names(assignment.target):
            assignment.node = _filtered(assignment.node, UNPACKED, names)
    for block in tree.find_all(nodes.With):
        for number, target in enumerate(block.targets):
            if names := _names(target):
                block.values[number] = _filtered(block.values[number], UNPACKED, names)


def _filtered(node: Any, name: str, *arguments: Any) -> nodes.Filter:
    return nodes.Filter(node, name, [nodes.Const(each) for each in arguments], [], None, None, lineno=node.lineno)


def _names(target: nodes.Node) -> Names:
    """() for a single name."""
    if not isinstance(target, nodes.Tuple):
        return ()
    return tuple(_names(each) or getattr(each, "name", "...") for each in target.items)


def _spelled(node: nodes.Node) -> str:
    """A chain of fields as it was written; "" for anything else."""
    if isinstance(node, nodes.Name):
        return node.name
    before = _spelled(node.node) if isinstance(node, (nodes.Getattr, nodes.Getitem)) else ""
    if before and isinstance(node, nodes.Getattr):
        return f"{before}.{node.attr}"
    if before and isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        return f"{before}[{node.arg.value!r}]"
    return ""


def rows(value: Any, names: Names, source: str) -> list[tuple[Any, ...]]:
    """What a loop of several names goes over."""
    found = passes(value)
    if isinstance(found, Mapping):
        pair = names if len(names) == 2 and all(isinstance(name, str) for name in names) else ("key", "value")
        raise Fault(f"a loop over a mapping gives its keys: write `for {pair[0]}, {pair[1]} in {source}.items()`")
    size = len(names) if all(isinstance(name, str) for name in names) else -1
    return [row if type(row) in _PLAIN_ROWS and len(row) == size else unpacked(row, names) for row in found]  # nearly always the first


def unpacked(value: Any, names: Names) -> tuple[Any, ...]:
    value = given(value)
    if isinstance(value, (list, tuple, range, ListView)):
        if len(value) == len(names):
            return tuple(unpacked(each, name) if isinstance(name, tuple) else each for each, name in zip(value, names, strict=True))
        what = f"a list of {len(value)} item{'' if len(value) == 1 else 's'}"
    else:
        what = noun(value)
    raise Fault(f"{what} cannot be unpacked into `{', '.join(map(_shown, names))}`: {_instead(value, names)}")


def _shown(name: str | Names) -> str:
    return name if isinstance(name, str) else f"({', '.join(map(_shown, name))})"


def _instead(value: Any, names: Names) -> str:
    if not isinstance(value, Mapping):
        return f"it takes a list of {len(names)} items"
    return "write `for item in ...` and read item.key, item.value" if set(value) == _ENTRY else "use one name and read its fields"
