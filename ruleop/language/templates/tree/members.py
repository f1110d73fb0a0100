"""Members with computed keys. They may not repeat others, so a value can add a field to a mapping but never replace
one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.language.templates.values.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping


def add_member(result: dict[str, Any], name: str, value: Any, *, computed: bool) -> None:
    """Adds one member. `computed`: the key contains a slot."""
    if name in result:
        if computed:
            raise Fault("this results in a duplicate key")
        advice = "the mapping that is spread above adds it too; merge the two with `combine`"
        raise Fault(f'duplicate key "{name}": {advice}', redacted=f"duplicate key: {advice}")
    result[name] = value


def spread_into(result: dict[str, Any], members: Mapping[str, Any]) -> None:
    """Adds the members of a mapping. Members that are null are omitted, as everywhere."""
    for name, value in members.items():
        if value is None:
            continue
        if name in result:
            advice = "merge the two with `combine`"
            raise Fault(
                f'spreading this adds the duplicate key "{name}"; {advice}',
                redacted=f"spreading this adds a duplicate key; {advice}",
            )
        result[name] = value
