"""The parts of a plan: actions with their preconditions, waits, problems, a status, events. All are frozen values."""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from ruleop.messages import MAX_MESSAGE, shortened
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON, Kind, Object, ObjectKey
    from ruleop.kubernetes.merge import FieldSet

OWN_FINALIZER: Final = ""
"""Among the needs of an action: ruleop's finalizer on the CR. No child has this id, except objects without a record,
which are treated as children with an empty id."""

AGAIN: Final = "its own writes changed what it reads"
"""The reason of a pass that no event announces."""

RESYNC: Final = "resync"
"""The reason of a periodic reconcile that nothing else requires."""


def _shorten(value: object, name: str) -> None:
    """Cuts a message, which may quote a custom resource."""
    text = getattr(value, name)
    if len(text) > MAX_MESSAGE:
        object.__setattr__(value, name, shortened(text, MAX_MESSAGE))


@dataclass(frozen=True, slots=True)
class Create:
    key: ObjectKey
    child: str
    object: Object
    desired_digest: str  # of the rendered object: a failure is recorded for this desired object only
    needs: frozenset[str] = frozenset()  # children whose writes of this pass must have succeeded
    why: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch, guarded by uid and resourceVersion (they are in `patch`)."""

    key: ObjectKey
    child: str
    patch: dict[str, Any]
    live: Object
    object: Object  # the result of the merge
    desired_digest: str
    why: Literal["changed", "adopted", "released", "rotated"] = "changed"
    sent: Object | None = (
        None  # all desired fields that are not ignored; compared with the answer to learn normalisations
    )
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ServerSideApply:
    """An apply with the uid of the live object. Creation is a `Create` with every strategy. Children are applied by
    ruleop's own field manager, and with force; fields of an object of somebody else by a manager of the child."""

    key: ObjectKey
    child: str
    object: Object
    live: Object | None
    desired_digest: str
    why: Literal["changed", "adopted", "given up"] = "changed"
    recorded: FieldSet | None = None  # fields that ruleop applied so far, by its record on the object
    manager: str = ""  # of a child with `patch`; empty: ruleop's own
    force: bool = True
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Delete:
    """Guarded by uid and resourceVersion, after a live read."""

    key: ObjectKey
    child: str
    live: Object
    why: Literal["pruned", "recreate", "finalized", "elsewhere", "ordered", "unordered", "skipped"]
    needs: frozenset[str] = frozenset()
    after_writes: bool = True  # after all writes of this pass, whether or not they succeed


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    key: ObjectKey  # of the CR
    finalizer: str
    needs: frozenset[str] = frozenset()
    child: ClassVar[str] = ""
    why: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    key: ObjectKey  # of the CR
    finalizer: str
    needs: frozenset[str] = frozenset()
    child: ClassVar[str] = ""
    why: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class Expire:
    """Deletes the CR itself, guarded by its uid and resourceVersion."""

    key: ObjectKey  # of the CR
    after: str  # the time from its creation, as the rule gives it
    needs: frozenset[str] = frozenset()
    child: ClassVar[str] = ""
    why: ClassVar[str] = "expired"


FinalizerAction: TypeAlias = AddFinalizer | RemoveFinalizer
ResourceAction: TypeAlias = FinalizerAction | Expire
"""The actions on the CR itself."""
Action: TypeAlias = Create | Patch | ServerSideApply | Delete | ResourceAction


class State(Enum):
    """The state of a child after this pass."""

    READY = "ready"
    PROGRESSING = "progressing"  # written, or about to be written; not ready
    WAITING = "waiting"  # a value, object or condition that it needs is missing
    FAILED = "failed"  # cannot be rendered or applied
    REFUSED = "refused"  # another owner's object has its name
    UNWANTED = "unwanted"
    TERMINATING = "terminating"


@dataclass(frozen=True, slots=True)
class Wait:
    child: str
    for_what: str  # "config.status.x", or "db to be ready"
    site: Site | None = None
    why: str = "value"  # what it waits for: value, child, condition, object, kind, namespace, write or deletion

    def __post_init__(self) -> None:
        _shorten(self, "for_what")


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
    template: str  # the file, or the place in watches.yaml, that it is rendered from
    message: str = ""
    objects: tuple[ObjectReport, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    type: Literal["Normal", "Warning"]
    reason: str
    message: str

    def __post_init__(self) -> None:
        _shorten(self, "message")


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """The desired `.status`. `patch` is a merge patch of the whole object; None if the status is semantically equal, or
    cannot be written because required fields are `missing`."""

    status: JSON
    patch: dict[str, Any] | None
    subresource: bool = True
    projected: Object = field(default_factory=dict)  # the fields that the rule sets, without conditions and generation
    details_only: bool = False  # it differs only in what Ready says of the objects that are not ready
    missing: tuple[str, ...] = ()  # fields that the schema requires, and that neither the rule nor others set


@dataclass(frozen=True, slots=True)
class Problem:
    """An error of this pass, with its place in the rules if it has one."""

    child: str
    reason: str  # RenderFailed, Invalid, ErrResourceExists, ApplyFailed, StatusRefused, Forbidden
    message: str
    site: Site | None = None

    def __post_init__(self) -> None:
        _shorten(self, "message")


def distinct(problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems, one for each cause: an error of a `let` that eight children read is reported once."""
    causes: dict[object, list[Problem]] = {}
    for number, problem in enumerate(problems):
        cause = (problem.site, problem.reason, problem.message) if problem.site is not None else number
        causes.setdefault(cause, []).append(problem)
    for found in causes.values():
        others = len({each.child for each in found}) - 1
        yield replace(found[0], child=f"{found[0].child} and {others} more") if others else found[0]


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """Fields of a child that another client repeatedly changes; reverting them is delayed."""

    key: ObjectKey
    child: str
    fields: frozenset[str]
    message: str
    new: bool  # detected by this plan

    def __post_init__(self) -> None:
        _shorten(self, "message")


@dataclass(frozen=True, slots=True)
class HeldDeletion:
    """A deletion or release of an object that is not known to be desired, which is not made in this pass."""

    key: ObjectKey
    child: str
    verb: Literal["deletion", "release"]
    why: str  # "db has an error", or the time until which the rules are too young
    is_error: bool = False  # nothing but the end of an error leads to it


@dataclass(frozen=True, slots=True)
class Read:
    """An object that has to be read from the API server before its child can be planned."""

    key: ObjectKey
    kind: Kind
    why: Literal["conflicting", "managers"]


@dataclass(frozen=True, slots=True)
class Requeue:
    """When to reconcile again without an event, and why."""

    seconds: float
    reason: str
