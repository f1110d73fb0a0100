"""The members of a mapping whose keys are known only when it is rendered: a slot in a key, or a mapping that is spread in its place. No key
comes twice, whatever a CR holds: a value can add a field to a mapping, and never replace one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.templating.values.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping


def add_member(result: dict[str, Any], name: str, value: Any, *, computed: bool) -> None:
    """`computed`: the key has a slot in it."""
    if name in result:
        if computed:
            raise Fault("this makes a key that is there already")
        raise Fault(f'the key "{name}" stands here twice: what is spread above adds it too; join the two with `combine`')
    result[name] = value


def spread_into(result: dict[str, Any], members: Mapping[str, Any]) -> None:
    """Adds the members of a mapping; null leaves out its key, as everywhere."""
    for name, value in members.items():
        if value is None:
            continue
        if name in result:
            raise Fault(f'spreading this adds the key "{name}", which is there already; join the two with `combine`')
        result[name] = value
