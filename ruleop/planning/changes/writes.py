"""Describes a write: its verb, its reason, and the fields that it changes.

The plan, the dry run, the log, the events and the metrics use the same words. No description has a value of a Secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from ruleop.errors import Cause
from ruleop.kubernetes.builtin.immutable_fields import immutable_changes
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import conflicts
from ruleop.language.secrets.masks import NO_MASKS
from ruleop.language.secrets.secrecy import public_path
from ruleop.messages import shortened
from ruleop.planning.changes.differences import NOTHING, Difference, Value, differences, flow
from ruleop.planning.model.actions import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    Expire,
    Failed,
    Failure,
    Patch,
    RemoveFinalizer,
    ServerSideApply,
)
from ruleop.planning.model.marks import APPLIED, MANAGED_BY, RESERVED, RULEOP

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.merge import MergeConflict, Step
    from ruleop.kubernetes.schema import Shape
    from ruleop.language.rules import Child
    from ruleop.language.secrets.masks import Masks
    from ruleop.language.secrets.secrecy import Secrecy
    from ruleop.language.templates.values.cost import Allowance
    from ruleop.planning.model.observed import Kinds


# -- rejected writes ---------------------------------------------------------------------------------------------------
#
# Reports of rejected writes on their CR: the reason, the changes that the API server rejects, and the live items of
# lists that conflict with desired ones.


_CONDITIONS = {
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
    return _CONDITIONS.get(failure)


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


# -- writes ------------------------------------------------------------------------------------------------------------


MAX_FIELDS: Final = 16
"""Maximum fields of one write on one line of the log."""

MAX_PATH: Final = 120
"""Maximum characters of a field's path on that line."""


class Verb(Enum):
    """`do` describes a planned write, `done` an executed one.

    REVERT and RECREATE depend on earlier passes: an action alone does not show whether another client changed or
    deleted the object.
    """

    CREATE = "create", "created"
    RECREATE = "recreate", "recreated: it was deleted"
    PATCH = "patch", "patched"
    REVERT = "revert drift in", "drift reverted"
    ADOPT = "adopt", "adopted"
    RELEASE = "release", "released"
    ROTATE = "rotate", "rotated"
    APPLY = "apply", "applied"
    DELETE = "delete", "deleted"
    ADD_FINALIZER = "add the finalizer", "finalizer added"
    REMOVE_FINALIZER = "remove the finalizer", "finalizer removed"

    def __init__(self, do: str, done: str) -> None:
        self.do = do
        self.done = done


_OF_TYPE: Final[Mapping[type, Verb]] = {
    Create: Verb.CREATE,
    Patch: Verb.PATCH,
    ServerSideApply: Verb.APPLY,
    Delete: Verb.DELETE,
    Expire: Verb.DELETE,
    AddFinalizer: Verb.ADD_FINALIZER,
    RemoveFinalizer: Verb.REMOVE_FINALIZER,
}
_OF_REASON: Final[Mapping[str, Verb]] = {
    "adopted": Verb.ADOPT,
    "released": Verb.RELEASE,
    "given up": Verb.RELEASE,
    "rotated": Verb.ROTATE,
}
_REASONS: Final[Mapping[str, str]] = {
    "pruned": "no longer part of the desired state",
    "recreate": "an immutable field changed; will be recreated",
    "finalized": "its work is done",
    "elsewhere": "not collected by the garbage collector",
    "ordered": "deleted before its custom resource, in the order of the rules",
    "unordered": "the order of deletion is skipped",
    "skipped": "its finalize children are skipped",
    "adopted": "had no owner",
    "released": "stays, without ruleop's own metadata",
    "rotated": "its random values are regenerated",
    "given up": "its fields are no longer part of the desired state",
}
_MARKS: Final = (
    f"metadata.labels['{MANAGED_BY}']",
    f"metadata.labels['{RESERVED}",
    f"metadata.annotations['{RESERVED}",
)
Change: TypeAlias = Patch | ServerSideApply


def verb_of(action: Action) -> Verb:
    if isinstance(action, ServerSideApply) and action.live is None:
        return Verb.CREATE
    return _OF_REASON.get(action.why) or _OF_TYPE[type(action)]


def reason_for(action: Action) -> str:
    """The reason for an action; empty if it just applies the rules."""
    if isinstance(action, Expire):
        return f"expired {action.after} after its creation"
    return _REASONS.get(action.why, "")


# -- fields ------------------------------------------------------------------------------------------------------------


def changes(
    action: Action, kinds: Kinds, masks: Masks | None, *, allowance: Allowance | None = None
) -> list[Difference]:
    """The fields that the action changes in an existing object, with values of Secrets masked. Without masks, only the
    paths may be shown.

    Fields that a server-side apply removes are not included: only the server knows them. Beyond the allowance, outer
    fields are.
    """
    if not isinstance(action, (Patch, ServerSideApply)) or action.live is None:
        return []
    live = action.live
    before, after = (live, action.object) if masks is None else masks.pair(live, action.object)
    shape, partial = kinds.info(Kind.of(after)).shape, isinstance(action, ServerSideApply)
    return differences(before, after, shape, partial=partial, allowance=allowance)


def is_mark(difference: Difference, uid: str) -> bool:
    """Whether the difference is in ruleop's own metadata. `uid`: of the owner."""
    path, before, after = difference.path, difference.before, difference.after
    if not path.startswith("metadata."):
        return False
    if path == "metadata.ownerReferences":
        return _without_owner(before, uid) == _without_owner(after, uid)
    if path in {"metadata.labels", "metadata.annotations"}:
        return _without_marks(before) == _without_marks(after)
    return path.startswith(_MARKS) or path == f"metadata.ownerReferences[uid={uid}]"


def _without_owner(references: Value, uid: str) -> Value:
    if not isinstance(references, list):
        return [] if references is NOTHING else references
    return [each for each in references if not isinstance(each, Mapping) or each.get("uid") != uid]


def _without_marks(names: Value) -> Value:
    """Labels or annotations without ruleop's own."""
    if not isinstance(names, Mapping):
        return {} if names is NOTHING else names
    return {name: value for name, value in names.items() if not name.startswith(RESERVED) and name != MANAGED_BY}


def field_paths(found: Iterable[Difference], uid: str, words: Container[str] | None = None) -> tuple[str, ...]:
    """The paths for one line of the log. ruleop's own metadata is included only if nothing else changes. `words`: the
    public names, if others may come from a Secret."""
    found = list(found)
    named = [each for each in found if not is_mark(each, uid)] or found
    paths: dict[str, None] = {}
    for number, each in enumerate(named):
        path = shortened(each.path if words is None else public_path(each.path, words), MAX_PATH)
        if len(paths) == MAX_FIELDS and path not in paths:
            return (*paths, f"and {len(named) - number} more")
        paths[path] = None
    return tuple(paths)
