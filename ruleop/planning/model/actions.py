"""The parts of a plan: actions with their preconditions, waits, problems, a status, events. All are frozen values."""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import Learned
from ruleop.messages import MAX_MESSAGE, shortened
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.errors import Cause, Site
    from ruleop.kubernetes.kinds import JSON, Object, ObjectKey
    from ruleop.kubernetes.merge import FieldSet
    from ruleop.planning.model.observed import KindInfo


# -- outcome -----------------------------------------------------------------------------------------------------------
#
# The results of a plan's actions. The executor fills it in, and `History.after` learns from it.


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


# -- actions -----------------------------------------------------------------------------------------------------------


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

    def is_at(self, site: Site) -> bool:
        """Whether the child waits because of its `waitFor` at this place: it is false, or a value in it is missing."""
        at = self.site
        return self.why == "condition" or (at is not None and (at.path, at.line) == (site.path, site.line))


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
