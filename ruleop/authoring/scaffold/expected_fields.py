"""The expectations of a rule test for a child: the fields of its template that come from the custom resource."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ruleop.authoring.scaffold.trees import value_at
from ruleop.authoring.scaffold.yaml_layout import Expr, Joined

_FIELD: Final = re.compile(r"(spec|metadata)(\.[A-Za-z_][A-Za-z0-9_]*)+", re.ASCII)
_MERGED: Final = frozenset({"containers", "initContainers", "env", "ports"})
"""Lists that the API merges by keys, so that some items are enough."""
_LEFT_OUT: Final = frozenset({"labels", "matchLabels", "selector", "stringData"})


def expected(template: Any, sample: Mapping[str, Any]) -> Any:
    """The fields of the template that have values of the sample; None without any."""
    if isinstance(template, (Expr, Joined)):
        return _value(template, sample)
    if not isinstance(template, Mapping):
        return None
    found: dict[str, Any] = {}
    for name, member in template.items():
        if name in _LEFT_OUT:
            continue
        if isinstance(member, list):
            part: Any = [_item(item, sample) for item in member] if name in _MERGED else []
            part = [item for item in part if item is not None] or None
        else:
            part = expected(member, sample)
        if part is not None:
            found[name] = part
    return found or None


def _item(item: Any, sample: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of an item, with its plain fields: the keys are among them."""
    part = expected(item, sample)
    if part is None or not isinstance(item, Mapping):
        return None
    plain = {name: value for name, value in item.items() if isinstance(value, (str, int))}
    return {name: part.get(name, plain.get(name)) for name in item if name in part or name in plain}


def _value(template: Expr | Joined, sample: Mapping[str, Any]) -> Any:
    if isinstance(template, Expr):
        return value_at(sample, tuple(template.code.split("."))) if _FIELD.fullmatch(template.code) else None
    parts = [part if isinstance(part, str) else _value(part, sample) for part in template.parts]
    return "".join(map(str, parts)) if all(isinstance(part, (str, int)) for part in parts) else None
