"""Values of Secrets, hidden from whoever reads a plan.

A plan has to say that a password changes without saying the password. So a value becomes `***`, and where two versions
of an object differ in one, `*** (before)` and `*** (after)`. No length and no hash is told: from either, a weak
password can be guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ruleop.kinds import Kind, Object

MASK: Final = "***"
BEFORE: Final = "*** (before)"
AFTER: Final = "*** (after)"
_SECRET: Final = Kind("", "v1", "Secret")
_FIELDS: Final = ("data", "stringData")
# kubectl keeps the whole object in this annotation, values and all
_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"


def is_secret(obj: Object) -> bool:
    return Kind.of(obj) == _SECRET


def masked(obj: Object) -> Object:
    """The object; a Secret without its values."""
    return masked_pair(obj, obj)[0]


def masked_pair(before: Object, after: Object) -> tuple[Object, Object]:
    """Two versions of one object, still different where they were."""
    if not is_secret(before) and not is_secret(after):
        return before, after
    old, new = dict(before), dict(after)
    for field in _FIELDS:
        _hide(old, new, field)
    notes = [dict((side.get("metadata") or {}).get("annotations") or {}) for side in (old, new)]
    if any(_COPY in each for each in notes):
        holders = [{"annotations": {_COPY: each[_COPY]}} if _COPY in each else {} for each in notes]
        _hide(holders[0], holders[1], "annotations")
        for side, each, holder in zip((old, new), notes, holders, strict=True):
            if holder:
                side["metadata"] = {**side["metadata"], "annotations": {**each, **holder["annotations"]}}
    return old, new


def _hide(old: dict[str, Any], new: dict[str, Any], field: str) -> None:
    before, after = old.get(field), new.get(field)
    left: Mapping[str, Any] = before if isinstance(before, Mapping) else {}
    right: Mapping[str, Any] = after if isinstance(after, Mapping) else {}
    if isinstance(before, Mapping):
        old[field] = {name: _masked_value(value, right.get(name), BEFORE) for name, value in left.items()}
    elif before is not None:
        old[field] = _masked_value(
            before, after, BEFORE
        )  # no mapping: the server refuses it, but it may hold a password all the same
    if isinstance(after, Mapping):
        new[field] = {name: _masked_value(value, left.get(name), AFTER) for name, value in right.items()}
    elif after is not None:
        new[field] = _masked_value(after, before, AFTER)


def _masked_value(value: Any, other: Any, word: str) -> str:
    return MASK if value == other else word
