"""The Events on a CR: one for each transition of Ready, and one for each kind of write that a user may not expect.

Expected writes have no Event, only a line in the log: a created child, an applied edit, reverted drift.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.planning.changes import Verb, reason_for, verb_of
from ruleop.planning.child.pruning import HELD_BACK, held_in_words
from ruleop.planning.model.actions import Action, Delete, Event, Expire, Patch, ServerSideApply
from ruleop.planning.model.conditions import FINALIZED, find_condition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.planning.model.actions import HeldDeletion, Problem
    from ruleop.planning.model.conditions import Condition

HEALTHY = frozenset({"Ready", "Progressing"})  # reasons of Ready: all children are written
_WITHOUT_EVENT = frozenset({"Waiting", "Deleting", FINALIZED})
_REPORTED_ELSEWHERE = frozenset({"FieldConflict"})  # of drift: the reconciler records it once, when it is detected
MAX_NAMES = 8

_REASONS = {
    "pruned": "Pruned",
    "unordered": "DeletionOrderSkipped",
    "skipped": "FinalizeSkipped",
    "recreate": "Recreated",
    "adopted": "Adopted",
    "released": "Released",
    "rotated": "Rotated",
    "expired": "Expired",
}


def transition_events(
    resource: Object, ready: Condition, problems: Sequence[Problem], last_reason: str, *, held: bool = False
) -> list[Event]:
    """The event for a change of Ready since the last pass, by the status, or by the history if there is no status.
    `held`: another manager holds fields of a child with `patch`."""
    before = find_condition(resource, "Ready")
    last = before.get("reason") or last_reason
    reason, message = ready.reason, ready.message
    if reason in HEALTHY:
        return [] if last in HEALTHY else [Event("Normal", "Synced", f"{resource['kind']} synced successfully")]
    if (
        (reason in _WITHOUT_EVENT and not (reason == FINALIZED and problems))
        or (reason in _REPORTED_ELSEWHERE and not held)
        or (last == reason and before.get("message", message) == message)
    ):
        return []
    if reason in {"Finalizing", FINALIZED}:
        return [Event("Warning", problems[0].reason, message)] if problems else []
    return [Event("Warning", {"Invalid": "InvalidSpec"}.get(reason, reason), message)]


def skipped_events(skipped: Iterable[tuple[str, str]]) -> Iterator[Event]:
    """Events for runs of schedules that have not begun in time."""
    for child, time in skipped:
        message = f"{child}: skipped the run of {time}: it did not start before its startingDeadline or the next run"
        yield Event("Warning", "RunSkipped", message)


def held_deletion_events(
    resource: Object, held: Sequence[HeldDeletion], known: Collection[ObjectKey]
) -> Iterator[Event]:
    """An event when an error begins to hold deletions back. `known`: those of the last pass; in the first pass after a
    start, Ready reports them."""
    found = [each for each in held if each.is_error]
    is_reported = not known and HELD_BACK in str(find_condition(resource, "Ready").get("message"))
    if not is_reported and any(each.key not in known for each in found):
        namespace = resource["metadata"].get("namespace") or ""
        names = [each.key.title(namespace) for each in found]
        more = ", and more" if len(names) > MAX_NAMES else ""
        message = f"{held_in_words(found)}: {', '.join(names[:MAX_NAMES])}{more}"
        yield Event("Warning", "DeletionHeldBack", message[0].upper() + message[1:])


def held_back_events(resource: Object, rollout: Condition) -> Iterator[Event]:
    """An event when a rollout that is paused or stopped begins to hold the resource back."""
    before = find_condition(resource, rollout.type)
    if rollout.reason == "HeldBack" and (before.get("reason"), before.get("message")) != ("HeldBack", rollout.message):
        yield Event("Warning", "HeldBack", rollout.message)


def write_events(actions: Iterable[Action], namespace: str) -> Iterator[Event]:
    """Events for deleted, adopted, recreated and released objects, and for a CR that expired: one for each action and
    reason, for all objects."""
    names: dict[tuple[str, Verb, str], list[str]] = {}
    for action in actions:
        if (
            isinstance(action, (Delete, Expire, Patch, ServerSideApply))
            and (reason := _REASONS.get(action.why)) is not None
        ):
            names.setdefault((reason, verb_of(action), reason_for(action)), []).append(action.key.title(namespace))
    for (reason, verb, why), found in names.items():
        more = ", and more" if len(found) > MAX_NAMES else ""
        yield Event("Normal", reason, f"{verb.done.capitalize()} {', '.join(found[:MAX_NAMES])}{more}: {why}")
