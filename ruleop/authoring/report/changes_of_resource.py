"""The findings of `ruleop history`: what changed on a custom resource, its children and the rules, as values and as one
JSON document."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from ruleop.authoring.report.plan_documents import identity, whole_identity

if TYPE_CHECKING:
    from ruleop.authoring.report.explain_documents import FieldManager
    from ruleop.kubernetes.kinds import Object, ObjectKey


class What(Enum):
    """In the order in which changes of one second are listed."""

    RULES = "rules"
    RELEASED = "released"
    CREATED = "created"
    WRITTEN = "written"
    STATUS = "status"
    EVENT = "event"
    DELETION = "deletion"


@dataclass(frozen=True, slots=True)
class Change:
    """One change. A field that does not belong to its sort is empty."""

    time: str  # RFC 3339
    what: What
    key: ObjectKey | None = None  # None: the rules
    manager: FieldManager | None = None
    fields: tuple[str, ...] = ()  # that the manager owns
    groups: tuple[str, ...] = ()  # the fields of the second level that these are in
    generation: int | None = None  # after the last edit of the custom resource
    type: str = ""  # of an Event
    reason: str = ""
    message: str = ""
    count: int = 1
    revision: str = ""
    reads_environment: bool = False
    again: bool = False  # whether the revision was in force before
    held_back: bool = False  # whether a rollout has not brought the revision to the custom resource


@dataclass(frozen=True, slots=True)
class ResourceHistory:
    resource: Object
    now: str
    changes: tuple[Change, ...] = ()  # the oldest first
    notes: tuple[str, ...] = ()  # what is not shown, and why


def as_json(history: ResourceHistory) -> dict[str, Any]:
    return {
        "resource": whole_identity(history.resource),
        "changes": [_change(each) for each in history.changes],
        "notes": list(history.notes),
    }


def _change(change: Change) -> dict[str, Any]:
    found: dict[str, Any] = {"time": change.time, "what": change.what.value}
    if change.key is not None:
        found |= identity(change.key)
    if change.manager is not None:
        found |= {"manager": change.manager.name, "operation": change.manager.operation, "fields": list(change.fields)}
    if change.generation is not None:
        found["generation"] = change.generation
    if change.what is What.RULES:
        found |= {"revision": change.revision, "environment": change.reads_environment, "heldBack": change.held_back}
    if change.what is What.RELEASED:
        found["revision"] = change.revision
    if change.what is What.EVENT:
        found |= {"type": change.type, "reason": change.reason, "message": change.message, "count": change.count}
    return found
