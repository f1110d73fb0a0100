"""The smallest JSON merge patch (RFC 7386) that turns one object into another.

A merge patch says `null` for "remove", so it cannot carry a null inside an object that is new; a merged object never holds one there,
because nulls in what we want mean absent and nulls in what is live stay where they are. Lists are sent whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.merge.equality import same

if TYPE_CHECKING:
    from ruleop.kinds import JSON, Object


def merge_patch(live: Object, merged: Object) -> dict[str, JSON] | None:
    """What to send, or None when there is nothing to say."""
    if merged is live:  # what `three_way` answers when nothing differs, for the whole as for every part
        return None
    patch: dict[str, JSON] = dict.fromkeys(name for name in live if name not in merged)
    for name, value in merged.items():
        before = live.get(name)
        if type(value) is dict and type(before) is dict:
            inner = merge_patch(before, value)
            if inner is not None:
                patch[name] = inner
        elif not same(before, value):
            patch[name] = value
    return patch or None
