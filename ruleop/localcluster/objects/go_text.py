"""JSON values as Go prints them, for messages that quote values as the real server does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON


def type_name(value: JSON) -> str:
    """The word of encoding/json for the type of a value."""
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    return "null" if value is None else "number"


def go_text(value: JSON) -> str:
    """A value in the format `%v`: `map[a:1 b:[x y]]`."""
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{name}:{go_text(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
