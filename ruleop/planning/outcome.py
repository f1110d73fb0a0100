"""What became of a plan's actions. The executor fills it in, and `History.after` learns from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.errors import Cause
    from ruleop.kinds import Object, ObjectKey
    from ruleop.planning.actions import Action


class Failure(Enum):
    """Why the API server did not accept a write. The engine's errors carry more; a plan needs no more than this."""

    FORBIDDEN = "forbidden"
    INVALID = "invalid"
    IMMUTABLE = "immutable"
    CONFLICT = "conflict"
    EXISTS = "exists"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Failed:
    """A write that failed: why, and for which desired object (by digest), so that another desired object is tried at
    once."""

    failure: Failure
    message: str
    desired_digest: str = ""
    redacted: str = ""  # the message for an object that holds data of a Secret
    causes: tuple[Cause, ...] = ()
    managed: tuple[
        Mapping[str, Any], ...
    ] = ()  # managedFields of an object whose change was invalid: who set its items
    verb: str = ""  # that no Role grants: the server refused it, and no admission policy


@dataclass(slots=True)
class Outcome:
    done: list[Action] = field(default_factory=list)
    written: dict[ObjectKey, tuple[Object, Object]] = field(default_factory=dict)  # what was sent, and the answer
    deleted: set[ObjectKey] = field(default_factory=set)
    gone: list[Action] = field(default_factory=list)  # those of `done` whose object did not exist any more
    failed: dict[ObjectKey, Failed] = field(default_factory=dict)  # under the CR's own key: its finalizer
    versions: dict[ObjectKey, str] = field(default_factory=dict)  # of what was put into the cache
    conflicting: dict[ObjectKey, Object] = field(
        default_factory=dict
    )  # objects of others that have a child's name, read live
    replan: bool = False  # something is other than planned: plan again at once
    resource: Object | None = None  # the CR, as it was answered or read last
    retry_after: float | None = None

    @property
    def clean(self) -> bool:
        return not self.failed and not self.replan

    @property
    def writes(self) -> int:
        """How many of the actions that are done ruleop itself carried out."""
        return len(self.done) - len(self.gone)

    def was_gone(self, action: Action) -> bool:
        """Whether somebody else had done it."""
        return any(each is action for each in self.gone)

    def result_of(self, action: Action) -> str:
        """One word for the metrics."""
        if action.key in self.failed:
            return self.failed[action.key].failure.value
        return "done" if any(each is action for each in self.done) else "held back"
