"""What `--dry-run` says of a plan: each write that would be made, with the fields that it would change and never their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ruleop.kinds import Kind, Object
from ruleop.planning import Action, AddFinalizer, Create, Delete, Patch, Plan, RemoveFinalizer, Replace, ServerSideApply
from ruleop.planning.differences import differences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.planning import Kinds

Intent: TypeAlias = tuple[str, tuple[str, ...]]
"""What would be done, and with which fields."""


def intents(plan: Plan, resource: Object, kinds: Kinds) -> Iterator[Intent]:
    for action in plan.actions:
        yield _intent(action, kinds)
    if plan.status is not None and plan.status.patch is not None:
        before, after = resource.get("status") or {}, plan.status.status
        names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        yield f"write the status of {plan.resource}", tuple(f"status.{name}" for name in names)


def _intent(action: Action, kinds: Kinds) -> Intent:
    match action:
        case Create() | ServerSideApply(live=None):
            return f"create {action.key}", ()
        case Patch():
            word = "release" if action.why == "released" else "patch"
            return f"{word} {action.key}", _changed(action.live, action.merged, kinds)
        case Replace():
            return f"replace {action.key}", _changed(action.live, action.object, kinds)
        case ServerSideApply():
            return f"apply {action.key}", _changed(action.live or {}, action.object, kinds, partial=True)
        case Delete():
            return f"delete {action.key}", ()
        case AddFinalizer():
            return f"add the finalizer {action.finalizer}", ()
        case RemoveFinalizer():
            return f"remove the finalizer {action.finalizer}", ()


def _changed(before: Object, after: Object, kinds: Kinds, *, partial: bool = False) -> tuple[str, ...]:
    return tuple(each.path for each in differences(before, after, kinds.info(Kind.of(after)).shape, partial=partial))
