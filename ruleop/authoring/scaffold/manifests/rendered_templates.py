"""Templates that are being made of renderings: how their values are written, and what they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.authoring.scaffold.yaml_layout import Expr, Guarded, Joined, Repeated, Spread, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECKSUM: Final = "checksum/"
"""The beginning of annotations that roll pods when a configuration changes; the expression for one that differs."""
_KEYS: Final = ("name", "host", "containerPort", "port", "path", "key")
"""Fields by which an item of a list is the same in two renderings."""


def identity(item: Any) -> str:
    if isinstance(item, dict):
        for key in _KEYS:
            value = item.get(key)
            if isinstance(value, (str, int)):
                return f"{key} {value}"
            if isinstance(value, (Expr, Joined)):
                return f"{key} {code_of(value)}"
        return " ".join(map(str, sorted(map(str, item))))
    return code_of(item) if isinstance(item, (str, int, float, Expr, Joined)) else repr(item)


def in_order(lists: Sequence[list[Any]]) -> list[Any]:
    """All members of the lists, each after those that are before it."""
    found: list[Any] = []
    for each in lists:
        at = 0
        for member in each:
            if member in found:
                at = found.index(member) + 1
            else:
                found.insert(at, member)
                at += 1
    return found


def code_of(value: Any) -> str:
    """A value as an expression."""
    if isinstance(value, Expr):
        return value.code if value.code.replace(".", "").isidentifier() else f"({value.code})"
    if isinstance(value, Joined):
        return f"({' ~ '.join(map(code_of, value.parts))})"
    return literal(value) if isinstance(value, str) else orjson.dumps(value).decode()


def has_expressions(value: Any) -> bool:
    if isinstance(value, dict):
        return any(isinstance(key, Spread) or has_expressions(each) for key, each in value.items())
    return any(map(has_expressions, value)) if isinstance(value, list) else isinstance(value, (Expr, Joined))


def reads_name(value: Any, name: str) -> bool:
    """Whether a template reads a name."""
    match value:
        case Expr(code):
            return name in code.replace("[", ".").replace("(", " ").replace(".", " ").split()
        case Joined(parts):
            return any(reads_name(each, name) for each in parts)
        case Guarded(code, inner) | Repeated(_, code, inner):
            return reads_name(Expr(code), name) or reads_name(inner, name)
        case dict():
            return any(reads_name(each, name) for pair in value.items() for each in pair)
        case list():
            return any(reads_name(each, name) for each in value)
        case Spread(code):
            return reads_name(Expr(code), name)
    return False


def with_checksums(template: Any, reads: Sequence[str]) -> Any:
    """The template with a hash of the children in place of each checksum that differs."""
    if isinstance(template, Expr) and template.code == CHECKSUM:
        return Expr(f"[{', '.join(reads)}] | sha256") if reads else None
    if isinstance(template, dict):
        return {key: with_checksums(each, reads) for key, each in template.items()}
    if isinstance(template, list):
        return [with_checksums(each, reads) for each in template]
    if isinstance(template, Guarded):
        return Guarded(template.condition, with_checksums(template.value, reads))
    return template
