"""Versions of an object that share what they have in common.

A client sends a whole object of which it changed a field. Its other parts become those of the stored version: they need
not be checked, completed and compared again, and a version of the past costs no more memory than what changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Object


def with_parts_of(old: Object | None, new: dict[str, Any]) -> dict[str, Any]:
    """The new version, with the old one's parts, if there is one, wherever the two are the same."""
    if old is None:
        return new
    return {name: _shared(old.get(name), value) for name, value in new.items()}


def _shared(old: JSON, new: JSON) -> JSON:
    if old is new or type(old) is not type(new):
        return new
    if type(new) is dict:
        return old if _same_text(old, new) else {name: _shared(old.get(name), value) for name, value in new.items()}
    if type(new) is list:
        if len(old) != len(new):  # which items belong together is not worth finding out
            return new
        return old if _same_text(old, new) else [*map(_shared, old, new)]
    return old if old == new else new


def _same_text(old: JSON, new: JSON) -> bool:
    """Equal in values, types and the order of names: the texts are made many times faster than values are compared."""
    try:
        return orjson.dumps(old) == orjson.dumps(new)
    except TypeError:  # an integer of more than 64 bits, which is refused later
        return False
