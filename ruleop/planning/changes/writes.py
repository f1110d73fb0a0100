"""Describes a write: its verb, its reason, and the fields that it changes.

The plan, the dry run, the log, the events and the metrics use the same words. No description has a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

from ruleop.kubernetes.kinds import Kind
from ruleop.language.secrets.secrecy import public_path
from ruleop.messages import shortened
from ruleop.planning.changes.differences import NOTHING, Difference, Value, differences
from ruleop.planning.model.actions import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    Expire,
    Patch,
    RemoveFinalizer,
    ServerSideApply,
)
from ruleop.planning.model.marks import MANAGED_BY, RESERVED

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from ruleop.language.secrets.masks import Masks
    from ruleop.language.templates.values.cost import Allowance
    from ruleop.planning.model.observed import Kinds

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
