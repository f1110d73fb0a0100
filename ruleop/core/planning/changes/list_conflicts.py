"""Describes live list items that conflict with desired ones, so that the API server rejects the write, and the
remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from ruleop.core.merge.conflicts import conflicts
from ruleop.core.planning.model.marks import RULEOP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ruleop.core.kinds import Object
    from ruleop.core.merge.conflicts import Conflict, Step
    from ruleop.core.schema.shape import Shape


def conflict_in_words(merged: Object, desired: Object, shape: Shape, managed: Iterable[Mapping[str, Any]] = ()) -> str:
    """A message about the first conflict, without a full stop; empty if there is none. `managed`: the object's
    managedFields, if known."""
    found = next(conflicts(merged, desired, shape), None)
    if found is None:
        return ""
    name, other = f"{found.path}{found.desired}", f"{found.path}{found.other}"
    by = _managers(found, managed)
    who = f" (set by {by})" if by else ""
    if found.missing:
        what = f"{other}{who} and {name} each need a {found.field}, because there are two"
    else:
        what = f"{other}{who} has the same {found.field} as {name}"
    own = f'"{found.path}"' if "[" in found.path else found.path
    return f"{what}: remove or change it by hand, or let the child own the whole list with `apply: {{own: [{own}]}}`"


def _managers(conflict: Conflict, managed: Iterable[Mapping[str, Any]]) -> str:
    names = {str(entry.get("manager")) for entry in managed if _holds(entry.get("fieldsV1"), conflict.place)}
    return ", ".join(sorted(names - {RULEOP}))


def _holds(fields: Any, place: Sequence[Step]) -> bool:
    """Whether a field set of the server has a field at this place."""
    if not place:
        return True
    if not isinstance(fields, dict):
        return False
    step, *rest = place
    if isinstance(step, str):
        return _holds(fields.get(f"f:{step}"), rest)
    items = (name for name in fields if name.startswith("k:"))
    return any(frozenset(orjson.loads(name[2:]).items()) == step and _holds(fields[name], rest) for name in items)
