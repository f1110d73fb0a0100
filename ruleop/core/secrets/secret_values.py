"""Masks the values of Secrets in plans.

A plan has to show that a password changes without showing the password. So a value becomes `***`, and a changed value
`*** (before)` and `*** (after)`. Neither its length nor a hash is shown: a weak password can be guessed from either.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any, Final

from ruleop.core.kinds import Kind, Object

MASK: Final = "***"
BEFORE: Final = "*** (before)"
AFTER: Final = "*** (after)"
_SECRET: Final = Kind("", "v1", "Secret")
_FIELDS: Final = ("data", "stringData")
# kubectl stores the whole object in this annotation, including the values
_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"
_STEP = re.compile(r"\[(?:'((?:[^'\\]|\\.)*)'|([^\]]*))\]|([^.\[]+)", re.DOTALL)
_POSITION = re.compile(r"[0-9]{1,4}")
_BETWEEN_WORDS = re.compile(r"[\s.,:=|'\"\[\]{}()]")  # as in the words of a child
_OF_EVERY_OBJECT: Final = frozenset(
    {"metadata", "labels", "annotations", "ownerReferences", "finalizers", "spec", "data"}
)


def is_secret(obj: Object) -> bool:
    return Kind.of(obj) == _SECRET


def masked_pair(before: Object, after: Object) -> tuple[Object, Object]:
    """Two versions of one object, masked; fields that differ still differ."""
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
        old[field] = _masked_value(before, after, BEFORE)  # not a mapping: invalid, but it may hold a password
    if isinstance(after, Mapping):
        new[field] = {name: _masked_value(value, left.get(name), AFTER) for name, value in right.items()}
    elif after is not None:
        new[field] = _masked_value(after, before, AFTER)


def _masked_value(value: Any, other: Any, word: str) -> str:
    return MASK if value == other else word


def public_path(path: str, words: Container[str]) -> str:
    """A field path in which only these words are shown, the fields of every object, and positions in lists. Other names
    and the keys of items may be values of a Secret."""

    def shown(name: str) -> str:
        is_public = name in _OF_EVERY_OBJECT or all(word in words for word in _BETWEEN_WORDS.split(name) if word)
        return name if is_public else MASK

    def step(match: re.Match[str]) -> str:
        quoted, keys, name = match.groups()
        if quoted is not None:
            return f"['{shown(quoted)}']"
        if keys is None:
            return shown(name)
        if _POSITION.fullmatch(keys):
            return f"[{keys}]"
        pairs = (pair.partition("=") for pair in keys.split(","))
        return "[" + ",".join(f"{shown(name)}{sign}{shown(value)}" for name, sign, value in pairs) + "]"

    return _STEP.sub(step, path)
