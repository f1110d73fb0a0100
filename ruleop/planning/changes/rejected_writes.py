"""Reports of rejected writes on their CR: the reason, the changes that the API server rejects, and the live items of
lists that conflict with desired ones."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.errors import Cause
from ruleop.kubernetes.builtin.immutable_fields import immutable_changes
from ruleop.kubernetes.merge import conflicts
from ruleop.language.secrets.masks import NO_MASKS
from ruleop.messages import shortened
from ruleop.planning.changes.differences import NOTHING, Difference, Value, differences, flow
from ruleop.planning.model.marks import APPLIED, RULEOP
from ruleop.planning.model.outcome import Failed, Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.merge import MergeConflict, Step
    from ruleop.kubernetes.schema import Shape
    from ruleop.language.rules import Child
    from ruleop.language.secrets.secrecy import Secrecy

_REASONS = {
    Failure.FORBIDDEN: "Forbidden",
    Failure.EXISTS: "ErrResourceExists",
    Failure.INVALID: "ApplyFailed",
    Failure.IMMUTABLE: "ApplyFailed",
    Failure.HELD: "FieldConflict",
}
_BY_VALIDATION = frozenset({"FieldValueInvalid", "FieldValueForbidden"})
_POSITION = re.compile(r"\[[^\]]*+(?:\]|\Z)")  # one that is not closed reaches to the end, so that this is linear
MAX_CHANGES, MAX_WIDTH = 4, 40  # in one message: changes of a rejected write, and characters of a value


def condition_reason(failure: Failure) -> str | None:
    """The reason of Ready for a failure; None if the write is just retried."""
    return _REASONS.get(failure)


def refused_changes(child: Child, live: Object, merged: Object, shape: Shape, failed: Failed) -> tuple[Difference, ...]:
    """The changes of immutable fields in a rejected write. If the server names fields, only changes below them, without
    fields that it lists as mutable. Values of Secrets are masked, and names that may come from one."""
    mark = f"metadata.annotations['{APPLIED}']"
    found = [each for each in differences(*NO_MASKS.pair(live, merged), shape) if each.path != mark]
    named = [cause for cause in failed.causes if cause.reason in _BY_VALIDATION]
    meant = [each for each in found if any(_concerns(cause, each.path) for cause in named)]
    changes = meant or [each for each in found if not each.path.startswith("metadata")] or found
    return tuple(replace(each, path=child.secrecy.path(each.path)) for each in changes)


def expected_refusal(merged: Object, live: Object, digest: str) -> Failed | None:
    """The failure of a change that the server is expected to reject, because it changes immutable fields."""
    if not (paths := immutable_changes(merged, live)):
        return None
    verb = "is" if len(paths) == 1 else "are"
    message = f"the API server would reject this change: {', '.join(paths)} {verb} immutable"
    causes = tuple(Cause(path, "FieldValueInvalid", "field is immutable") for path in paths)
    return Failed(Failure.IMMUTABLE, message, digest, message, causes)


def _concerns(cause: Cause, path: str) -> bool:
    names, outer = (_POSITION.sub("", text).split(".") for text in (path, cause.field))
    below = names[len(outer) :]
    return names[: len(outer)] == outer and not (below and below[0] in cause.mutable)


def changes_in_words(changes: Sequence[Difference], secrecy: Secrecy) -> str:
    """The changes as the end of a message; only their paths if the object may hold data of a Secret."""
    if not changes:
        return ""
    described = [
        each.path if secrecy.holds else f"{each.path}: {_value(each.before)} \N{RIGHTWARDS ARROW} {_value(each.after)}"
        for each in changes[:MAX_CHANGES]
    ]
    more = f" and {len(changes) - MAX_CHANGES} more" if len(changes) > MAX_CHANGES else ""
    return f"; rejected change: {', '.join(described)}{more}"


def _value(value: Value) -> str:
    return "(absent)" if value is NOTHING else shortened(flow(value), MAX_WIDTH)


# -- items of lists that conflict --------------------------------------------------------------------------------------


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


def _managers(conflict: MergeConflict, managed: Iterable[Mapping[str, Any]]) -> str:
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
