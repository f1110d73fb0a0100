"""The results of a plan's actions. The executor fills it in, and `History.after` learns from it."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import Learned
from ruleop.planning.model.actions import Create, Patch, ServerSideApply
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.errors import Cause
    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.planning.model.actions import Action
    from ruleop.planning.model.observed import KindInfo


GRANT = "grant"
"""In place of a verb: the object is a role or a binding that grants more than the operator has."""


class Failure(Enum):
    """The reason that the API server rejected a write, as far as a plan has to know. The engine's errors have more
    detail."""

    FORBIDDEN = "forbidden"
    INVALID = "invalid"
    IMMUTABLE = "immutable"
    CONFLICT = "conflict"
    HELD = "held by others"  # an apply sets fields that other managers hold
    EXISTS = "exists"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed write: why, and for which desired object. A changed desired object is tried at once."""

    failure: Failure
    message: str
    desired_digest: str = ""
    redacted: str = ""  # the message for an object that holds data of a Secret
    causes: tuple[Cause, ...] = ()
    managed: tuple[Mapping[str, Any], ...] = ()  # managedFields of an object whose change was invalid
    verb: str = ""  # that no Role grants, or GRANT; empty if an admission policy rejected the write
    account: str = ""  # the ServiceAccount to which it is not granted; empty for the operator


@dataclass(slots=True)
class Outcome:
    done: list[Action] = field(default_factory=list)
    written: dict[ObjectKey, Object] = field(default_factory=dict)  # the answers to writes of desired objects
    learned: dict[ObjectKey, Learned] = field(default_factory=dict)  # where these differ from what was sent
    deleted: set[ObjectKey] = field(default_factory=set)
    gone: list[Action] = field(default_factory=list)  # actions in `done` whose object no longer existed
    failed: dict[ObjectKey, Failed] = field(default_factory=dict)  # the CR's own key: its finalizer
    versions: dict[ObjectKey, str] = field(default_factory=dict)  # resourceVersions of objects put into the cache
    conflicting: dict[ObjectKey, Object] = field(default_factory=dict)  # conflicting objects, read live
    replan: bool = False  # the cluster differs from the plan: plan again at once
    resource: Object | None = None  # the CR in the last answer
    retry_after: float | None = None

    def wrote(self, action: Create | Patch | ServerSideApply, answer: Object, info: Callable[[Kind], KindInfo]) -> None:
        """Notes the answer to a write, and what it shows of how the server normalises values. A release shows
        nothing."""
        sent = action.sent if isinstance(action, Patch) else action.object
        if sent is None:
            return
        self.written[action.key] = answer
        sent_as = Kind.of(sent if isinstance(action, (Create, ServerSideApply)) else answer)
        learned = Learned.NOTHING.learn(sent, answer, info(sent_as).shape)
        if learned.answers is not None:
            self.learned[action.key] = learned

    @property
    def clean(self) -> bool:
        return not self.failed and not self.replan

    @property
    def writes(self) -> int:
        """The number of actions in `done` that ruleop itself executed."""
        return len(self.done) - len(self.gone)

    def results(self, actions: Iterable[Action]) -> Iterator[tuple[Action, str]]:
        """Each action with its result as a metric label."""
        done = {id(action) for action in self.done}
        for action in actions:
            failed = self.failed.get(action.key)
            yield action, failed.failure.value if failed is not None else "done" if id(action) in done else "held back"
