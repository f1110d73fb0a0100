"""The smallest JSON merge patch (RFC 7386) that turns one object into another.

In a merge patch `null` removes a field, so it cannot contain a null inside a new object. A merged object never has one
there, because nulls in the desired state are dropped and live nulls keep their positions. Lists are sent as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.merge.equality import same

if TYPE_CHECKING:
    from ruleop.kinds import JSON, Object


def merge_patch(live: Object, merged: Object, *, removes: bool = True) -> dict[str, JSON] | None:
    """The patch, or None if the objects are equal. Without `removes`, missing fields are unchanged."""
    if merged is live:
        return None
    patch: dict[str, JSON] = dict.fromkeys(name for name in live if name not in merged) if removes else {}
    for name, value in merged.items():
        before = live.get(name)
        if value is before:  # `three_way` returns unchanged parts of objects by identity
            continue
        if type(value) is dict and type(before) is dict:
            inner = merge_patch(before, value, removes=removes)
            if inner is not None:
                patch[name] = inner
        elif not same(before, value):
            patch[name] = value
    return patch or None
