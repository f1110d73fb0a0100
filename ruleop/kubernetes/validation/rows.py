"""Tables of validation: the path of a field, and the rules of its value.

A table is a mapping of paths to rules, to other tables, or to several of both. In a path, `ports[]` means each item of
a list, `spec!` a part that is checked as an empty one when it is missing, and `a b` two fields with the same rules.
Rules are words of `rules`, and functions that yield the errors of a value.

Most values are valid, so the place of one is found out only when it has an error, but for rules that read the old
value. A table is compiled when it is first applied.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, Union

import orjson

from ruleop.kubernetes.validation.field_errors import FieldError
from ruleop.kubernetes.validation.rules import At, Check, Errors, FieldRule, placed, rule

Rows: TypeAlias = Union[str, Check, FieldRule, "Mapping[str, Rows]", "tuple[Rows, ...]"]


def is_new(_: Any, at: At) -> bool:
    return at.old_root is None


def is_changed(value: Any, at: At) -> bool:
    return at.old_root is None or value != at.old


def sub_table(
    rows: Rows,
    *,
    when: Callable[[Any, At], bool] = lambda *_: True,
    prepare: Callable[[Any, At], Any] | None = None,
    remembered: bool = False,
) -> FieldRule:
    """A table for a value that applies only `when` a test holds, or to the value that `prepare` makes of it. If it is
    `remembered`, it is not applied again to an equal value that had no errors: a Deployment's pods are those of its
    ReplicaSet, and often of other Deployments."""
    compiled = functools.cache(lambda: RuleTable(rows))

    @functools.lru_cache(maxsize=256)
    def is_valid(value: bytes) -> bool:
        return not compiled().errors(orjson.loads(value), _NOWHERE)

    def check(value: Any, at: At) -> Errors:
        if not when(value, at):
            return ()
        value = value if prepare is None else prepare(value, at)
        return () if remembered and is_valid(orjson.dumps(value)) else compiled().errors(value, at)

    return placed(check)


_NOWHERE: Final = At("", None, {}, None)
_Where: TypeAlias = "tuple[_Where, str | int] | None"
"""The steps to a value, the last one first."""
_Visit: TypeAlias = Callable[[Any, _Where, Any, At, list[FieldError]], None]
"""(value, its place, the old value, the place of the whole, errors): adds the errors of a value."""


class RuleTable:
    """A table that is ready to be applied."""

    def __init__(self, rows: Rows) -> None:
        node = _Node()
        _add(node, rows)
        self._visit = node.visitor()

    def errors(self, value: Any, at: At) -> list[FieldError]:
        found: list[FieldError] = []
        self._visit(value, None, at.old, at, found)
        return found


@dataclass(slots=True, eq=False)
class _Node:
    """The rules of one value, and those of its parts."""

    rules: list[FieldRule] = field(default_factory=list)
    fields: dict[str, _Node] = field(default_factory=dict)
    items: _Node | None = None
    is_filled: bool = False  # a missing value is checked as an empty one

    def visitor(self) -> _Visit:
        items = self.items.visitor() if self.items is not None else None
        fields = [(name, f".{name}", each.leaf(), each.visitor(), each.asks()) for name, each in self.fields.items()]
        is_filled, of_missing = self.is_filled, [each.check for each in self.rules if each.missing]
        local = [each.check for each in self.rules if each.is_local]
        others = [each.check for each in self.rules if not each.is_local]

        def visit(value: Any, where: _Where, old: Any, top: At, found: list[FieldError]) -> None:
            if value is None and not is_filled:
                for check in of_missing:
                    found += check(None, _place(where, old, top))
                return
            value = {} if value is None else value
            for check in local:
                if any(check(value, _NOWHERE)):
                    found += check(value, _place(where, old, top))
            for check in others:
                found += check(value, _place(where, old, top))
            if items is not None:
                for index, item in enumerate(value):
                    items(item, (where, index), old[index] if old and index < len(old) else None, top, found)
            for name, step, leaf, inner, asks in fields:
                member = value.get(name)
                if asks if member is None else leaf is None or any(leaf(member, _NOWHERE)):
                    inner(member, (where, step), old and old.get(name), top, found)

        return visit

    def asks(self) -> bool:
        """Whether a missing value may have errors."""
        return self.is_filled or any(each.missing for each in self.rules)

    def leaf(self) -> Check | None:
        """The rule of a value that has but this one: most values need no visit."""
        is_leaf = len(self.rules) == 1 and self.rules[0].is_local and not self.fields and self.items is None
        return self.rules[0].check if is_leaf else None


def _place(where: _Where, old: Any, top: At) -> At:
    if where is None:
        return top
    steps = []
    while where is not None:
        where, step = where
        steps.append(f"[{step}]" if isinstance(step, int) else step)
    path = "".join(reversed(steps))
    return At(top.field + path if top.field else path.removeprefix("."), old, top.root, top.old_root)


def _add(node: _Node, rows: Rows) -> None:
    if isinstance(rows, str):
        node.rules += map(rule, rows.split())
    elif isinstance(rows, tuple):
        for each in rows:
            _add(node, each)
    elif isinstance(rows, Mapping):
        for paths, inner in rows.items():
            for path in paths.split():
                _add(_below(node, path), inner)
    else:
        node.rules.append(rows if isinstance(rows, FieldRule) else FieldRule(rows))


def _below(node: _Node, path: str) -> _Node:
    """The part of a value at a path."""
    for step in path.split("."):
        if name := step.rstrip("![]"):
            node = node.fields.setdefault(name, _Node())
        node.is_filled |= step.endswith("!")
        if step.endswith("[]"):
            node.items = node.items or _Node()
            node = node.items
    return node
