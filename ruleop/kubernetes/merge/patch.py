"""JSON merge patches (RFC 7386): the smallest one that turns one object into another, and an object with one applied.

In a merge patch `null` removes a field, so it cannot contain a null inside a new object. A merged object never has one
there, because nulls in the desired state are dropped and live nulls keep their positions. Lists are sent as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.merge.equality import same
from ruleop.kubernetes.merge.server_changes import without_nulls

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Object


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


def merge_patched(obj: Object, patch: Object) -> dict[str, JSON]:
    """The object after a JSON merge patch. Nulls are removed from what is new, in lists as well."""
    merged = dict(obj)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif not isinstance(before := merged.get(name), dict):
            merged[name] = without_nulls(value)
        else:
            merged[name] = merge_patched(before, value) if isinstance(value, dict) else value
    return merged
