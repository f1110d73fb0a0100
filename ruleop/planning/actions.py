"""What a plan consists of: actions with their preconditions, waits, a status, events. Frozen, printable, comparable."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from ruleop.errors import Site
    from ruleop.kinds import JSON, Kind, Object, ObjectKey
    from ruleop.merge import FieldSet
    from ruleop.planning.conditions import Conditions
    from ruleop.planning.targets import Target
    from ruleop.planning.work import Work

RESYNC: Final = "resync"
"""Why a custom resource is reconciled although nothing has happened and nothing is awaited."""


@dataclass(frozen=True, slots=True)
class Create:
    key: ObjectKey
    child: str
    object: Object
    desired_digest: str  # digest of what was rendered, so that a failure is remembered for it alone
    needs: frozenset[str] = frozenset()  # children whose writes of this pass must have succeeded


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch, guarded by uid and resourceVersion (they are in `patch`)."""

    key: ObjectKey
    child: str
    patch: dict[str, Any]
    live: Object
    merged: Object
    desired_digest: str
    why: Literal["changed", "adopted", "released"] = "changed"
    sent: Object | None = (
        None  # all that we want of the object and is not ignored, to learn from the answer what the server makes of it
    )
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Replace:
    """A PUT of the whole object, with the live resourceVersion."""

    key: ObjectKey
    child: str
    object: Object
    live: Object
    desired_digest: str
    why: Literal["changed", "adopted"] = "changed"
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ServerSideApply:
    """A forced apply by our one field manager, with the uid of the object that it is for. Creating is a `Create`,
    whatever the strategy."""

    key: ObjectKey
    child: str
    object: Object
    live: Object | None
    desired_digest: str
    why: Literal["changed", "adopted"] = "changed"
    recorded: FieldSet | None = None  # what we have applied so far, in whatever way, as far as the record says
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Delete:
    """Guarded by uid and resourceVersion, after a live read."""

    key: ObjectKey
    child: str
    live: Object
    why: Literal["pruned", "recreate", "finalized", "elsewhere"]
    propagation: Literal["background", "foreground"] = "background"
    needs: frozenset[str] = frozenset()
    after_writes: bool = True  # only when no write of this pass failed


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    key: ObjectKey  # of the CR
    finalizer: str
    needs: frozenset[str] = frozenset()
    child: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    key: ObjectKey  # of the CR
    finalizer: str
    needs: frozenset[str] = frozenset()
    child: ClassVar[str] = ""


FinalizerAction: TypeAlias = AddFinalizer | RemoveFinalizer
Action: TypeAlias = Create | Patch | Replace | ServerSideApply | Delete | FinalizerAction


class State(Enum):
    """Where a child stands after this pass."""

    READY = "ready"
    PROGRESSING = "progressing"  # written or about to be; not ready
    WAITING = "waiting"  # needs something that is not there yet
    FAILED = "failed"  # cannot be rendered or applied
    REFUSED = "refused"  # its name is taken by somebody else's object
    UNWANTED = "unwanted"
    TERMINATING = "terminating"


@dataclass(frozen=True, slots=True)
class Wait:
    child: str
    for_what: str  # "config.status.x", or "db to be ready"
    site: Site | None = None
    why: str = (
        "value"  # one word: what is waited for is a value, child, condition, object, kind, right, write or deletion
    )


@dataclass(frozen=True, slots=True)
class ObjectReport:
    """One object of a child."""

    key: ObjectKey
    state: State
    message: str = ""


@dataclass(frozen=True, slots=True)
class ChildReport:
    """One child: an id of the rule."""

    id: str
    state: State
    template: str  # where it is rendered from
    message: str = ""
    objects: tuple[ObjectReport, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """The desired `.status`. `patch` is a merge patch of the whole object; None if nothing differs in meaning."""

    status: JSON
    patch: dict[str, Any] | None
    subresource: bool = True
    projected: Object = field(default_factory=dict)  # what of it the rule says, beside conditions and generation


@dataclass(frozen=True, slots=True)
class Problem:
    """An error of this pass, with its place where it has one."""

    child: str
    reason: str  # RenderFailed, Invalid, ErrResourceExists, ApplyFailed, StatusRefused, Forbidden
    message: str
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """Fields of a child that somebody repeatedly changes, and that are left as they are for now."""

    key: ObjectKey
    child: str
    fields: frozenset[str]
    message: str
    new: bool  # it is noticed by this plan


@dataclass(frozen=True, slots=True)
class Read:
    """An object that has to be read live before more can be planned."""

    key: ObjectKey
    kind: Kind
    why: Literal["conflicting", "managers"]


@dataclass(frozen=True, slots=True)
class Requeue:
    """When to reconcile again although no event comes."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a pass concludes."""

    resource: ObjectKey
    uid: str
    rule: str  # the rule's title
    rule_digest: str = field(default="", repr=False)
    generation: int | None = None  # of the resource
    actions: tuple[Action, ...] = ()
    waits: tuple[Wait, ...] = ()
    children: tuple[ChildReport, ...] = ()
    rendered: tuple[tuple[str, str, Object], ...] = field(
        default=(), repr=False
    )  # (id, template, object) in apply order
    problems: tuple[Problem, ...] = ()
    status: StatusWrite | None = None
    conditions: Conditions | None = None  # None: they are not asked for while there is something to do
    events: tuple[Event, ...] = ()
    watches: tuple[Target, ...] = ()  # observed objects whose changes reconcile the resource
    requeue_after: Requeue | None = None
    complete: bool = False  # all desired objects are known, and among `children`
    steady: bool = False  # by its status, all was written before: a difference is drift
    in_step: tuple[tuple[ObjectKey, Object], ...] = field(
        default=(), repr=False
    )  # objects as they should be, as rendered
    field_conflicts: tuple[FieldConflict, ...] = ()
    reads: tuple[Read, ...] = ()
    work: Work | None = field(
        default=None, repr=False, compare=False
    )  # for the plan of the status that follows the writes

    @property
    def quiet(self) -> bool:
        """Nothing to write."""
        return not self.actions and (self.status is None or self.status.patch is None)
