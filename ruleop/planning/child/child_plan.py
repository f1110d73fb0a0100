"""The plan of one child: the objects that it desires, the decision about each, and what is reported of them.

Each form of child has a class of its own in `kinds/`. It says which objects are desired, how one is decided about, and
when one is ready; everything else is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ruleop.errors import RenderError
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import MergeError
from ruleop.language.templates import Announced, Later, MapView, ObjectsView, Origin, Waiting
from ruleop.language.templates.values.cost import descriptions
from ruleop.planning.changes import (
    WHOLE_OBJECT,
    Correction,
    Decision,
    changes,
    changes_in_words,
    condition_reason,
    conflict_in_words,
    conflict_message,
    corrected_fields,
    managers_of,
)
from ruleop.planning.child.existing import Existing, existing_view
from ruleop.planning.child.field_patches import held_by_others, holder_of
from ruleop.planning.child.readiness import READY, Readiness, readiness
from ruleop.planning.model.actions import (
    GRANT,
    Action,
    ChildReport,
    Create,
    Delete,
    Failed,
    Failure,
    FieldConflict,
    HeldDeletion,
    ObjectReport,
    Patch,
    Problem,
    Read,
    ServerSideApply,
    State,
    Wait,
)
from ruleop.planning.model.managers import FieldsManager, manager_of
from ruleop.planning.model.marks import OWNER, claim_on
from ruleop.planning.model.observed import Served
from ruleop.planning.model.rule_permissions import Granting, denied_write
from ruleop.planning.rendering.child_field_sites import field_site
from ruleop.planning.rendering.desired import Desired, is_enabled, source_of, wait_for
from ruleop.planning.rendering.items import items_of
from ruleop.planning.rendering.scope import without_server_noise
from ruleop.planning.rendering.unplanned import ChildFails, ChildWaits, Unlisted, Unread
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ruleop.errors import RuleopError, Site
    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.kubernetes.merge import UnwritableError
    from ruleop.language.rules import Child
    from ruleop.planning.changes import Difference
    from ruleop.planning.child.existing import Ending
    from ruleop.planning.child.field_patches import PatchedObject
    from ruleop.planning.child.kinds.run_records import RunRecord
    from ruleop.planning.history import History
    from ruleop.planning.model.marks import Claim, Owner
    from ruleop.planning.rendering.items import LoopItem
    from ruleop.planning.rendering.scope import ResourceScope
    from ruleop.planning.rendering.synced import Settled

MAX_LOCATED: Final = 4
"""Rejected objects of one child whose message has the line of the rejected field."""


class Immutable(ChildFails):
    """The server rejected a change of an immutable field. Its message and the changes may hold a value of a Secret, so
    the caller has to mask them before it reports them."""

    def __init__(self, failed: Failed, changes: tuple[Difference, ...], advice: str, site: Site) -> None:
        fields = (*(each.path for each in changes), *(cause.field for cause in failed.causes))
        super().__init__(failed.message, site, reason="ApplyFailed", fields=fields)
        self.failed = failed
        self.changes = changes
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Applied:
    """The decision about one desired object. `result` is the object as it will be after this pass; None if unknown."""

    result: Object | None
    action: Action | None = None
    name_conflict: str = ""
    terminating: bool = False
    in_sync: bool = False  # it exists and needs no change
    conflict_message: str = ""  # describes its field conflict, whether or not the action is withheld
    conflict: FieldConflict | None = None  # the action is withheld because of it


@dataclass(slots=True)
class ObjectPlan:
    """One desired object, and the decision about it."""

    desired: Desired
    applied: Applied | None = None  # None: nothing is written
    state: State = State.READY
    message: str = ""
    references_owner: bool = False  # it may have an ownerReference

    @property
    def action(self) -> Action | None:
        return self.applied.action if self.applied is not None else None

    def stop(self, state: State, message: str) -> None:
        self.applied, self.state, self.message = None, state, message


MAX_ALIKE: Final = 16
"""Problems of one child with the same reason, and waits of one child for the same, that are listed. The objects of a
`forEach` may all have one."""


@dataclass(slots=True)
class PassReport:
    """The problems, waits, reads and conflicts of a pass, without duplicates. Of many alike the first are listed, and
    the last of these says that there are more."""

    problems: list[Problem] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    held: list[HeldDeletion] = field(default_factory=list)
    conflicts: list[FieldConflict] = field(default_factory=list)
    has_held_fields: bool = False  # another manager holds fields of a child with `patch`
    _alike: dict[tuple[str, str], set[tuple[str, Site | None]]] = field(default_factory=dict)  # by child and reason

    @property
    def hinders(self) -> bool:
        """Whether something is wrong or missing, so that not all of the desired state is written."""
        return bool(self.problems or self.waits)

    def add_problem(self, child: str, reason: str, message: str, site: Site | None = None) -> None:
        if self._is_new(child, reason, message, site):
            self.problems.append(Problem(child, reason, self._listed(child, reason, message), site))

    def add_wait(self, child: str, for_what: str, site: Site | None = None, *, why: str) -> None:
        if self._is_new(child, f"wait/{why}", for_what, site):
            self.waits.append(Wait(child, self._listed(child, f"wait/{why}", for_what), site, why))

    def _is_new(self, child: str, reason: str, message: str, site: Site | None) -> bool:
        known = self._alike.setdefault((child, reason), set())
        if (message, site) in known or len(known) > MAX_ALIKE:
            return False
        known.add((message, site))
        return True

    def _listed(self, child: str, reason: str, message: str) -> str:
        return message if len(self._alike[child, reason]) <= MAX_ALIKE else "more of this kind"


@dataclass(slots=True, eq=False)
class PassContext:
    """All that the plans of the children of one CR share in a pass. It refers to none of them: a pass leaves nothing
    for the garbage collector."""

    scope: ResourceScope
    history: History
    owner: Owner
    existing: Sequence[Existing]
    patched: Sequence[PatchedObject]
    settled: Settled  # by the plan before this one
    paused: bool = False
    predict_status: bool = True  # a plan with actions is shown as well
    ending: dict[ObjectKey, Ending] = field(default_factory=dict)  # by the objects of the items
    awaited: list[ObjectKey] = field(default_factory=list)  # objects that do not exist, and whose fields would be set
    report: PassReport = field(default_factory=PassReport)
    by_id: dict[str, list[Existing]] = field(default_factory=dict)  # what exists, by child
    render_failed: bool = False  # a child could not be rendered: nothing is written
    exhausted: bool = False  # a limit of the pass was exceeded: nothing is deleted either

    def manager(self, child: str, key: ObjectKey) -> str:
        """The manager by which a child sets fields of an object. One of an earlier version keeps its name until the
        operator renames it."""
        known = next((each.manager for each in self.patched if (each.child, each.key) == (child, key)), "")
        return known or manager_of(self.owner, child, key)


def name_conflict_message(key: ObjectKey, kind: str, claim: Claim | None, *, of_release: bool = False) -> str:
    """`claim`: None if the object could not be read. `of_release`: it belongs to the Helm release of the CR's name."""
    whose, remedy = "", "rename the child, or delete the object"
    if claim is not None and claim.unproven:
        whose = f" (its annotation {OWNER} has no valid proof)"
        remedy = "if the operator's key was lost, run `ruleop recover`; else rename the child"
    elif claim is not None and claim.by:
        whose, remedy = f" (it belongs to {claim.by})", "rename the child"
    elif claim is not None and not claim.referenced and of_release:
        whose, remedy = " (it belongs to the Helm release of this name)", "use `adopt: helm`"
    elif claim is not None and not claim.referenced:
        whose, remedy = " (it has no owner)", "rename the child, delete the object, or use `adopt: orphans`"
    name = f"{key.name} in namespace {key.namespace}" if key.namespace else key.name
    return f"{key.kind} {name} already exists and is not managed by {kind}{whose}: {remedy}"


_WORST = [State.READY, State.UNWANTED, State.PROGRESSING, State.TERMINATING, State.WAITING, State.REFUSED, State.FAILED]


class HeldBack(ChildFails):
    """The object is repeatedly deleted; creating it again is delayed."""

    def __init__(self, conflict: FieldConflict) -> None:
        super().__init__(conflict.message, reason="FieldConflict")
        self.conflict = conflict


class ChildPlan(ABC):
    owns: ClassVar[bool] = True  # the objects are the CR's own
    failure: ClassVar[str] = "ChildFailed"  # the reason of the problem of an object that has failed
    form: Any  # of the child: each class has its own

    def __init__(self, child: Child, context: PassContext) -> None:
        self.child, self.form, self.context = child, child.form, context
        self.state, self.message = State.READY, ""
        self.objects: list[ObjectPlan] = []
        self.blocks_pruning = False  # not all of its objects are known in this pass, so none of them may be pruned
        self.incomplete = False  # some of its desired objects could not be rendered
        self.unrendered: list[Mapping[str, Any]] = []  # the names that each of these would have
        self.unreadable = ""  # the permission that is missing to read its objects
        self._located = 0  # rejected objects whose fields were looked up in the body

    # -- by the form of the child --------------------------------------------------------------------------------------

    def items(self) -> Iterable[LoopItem] | None:
        """The items for which it has objects. None: it has no items."""
        return items_of(self.child, self.context.scope) if self.child.for_each else None

    def desired(self, item: LoopItem) -> list[Desired] | None:
        """The objects for an item, or of a child without items; None if there shall be none. Raises ChildWaits and
        ChildFails."""
        child = self.child
        if child.when is not None and not is_enabled(child.when, item.names):
            return None
        if child.wait_for is not None:
            wait_for(child.wait_for, item.names)
        found = self.render(item)
        return found if found or child.many else None

    @abstractmethod
    def render(self, item: LoopItem) -> list[Desired]: ...

    def failures(self, failed: Sequence[tuple[LoopItem, ChildFails]]) -> list[ChildFails]:
        """One failure for all failed items: there may be thousands with the same cause."""
        item, first = failed[0]
        if first.reason not in {"RenderFailed", "OnceFailed"}:  # such as a missing permission
            return [first]
        which = item.title(self.child) + (f" (and {len(failed) - 1} more)" if len(failed) > 1 else "")
        message, redacted = f"{which}: {first.message}", f"{which}: {first.redacted}"
        return [ChildFails(message, first.site, reason=first.reason, redacted=redacted)]

    @abstractmethod
    def decide(self, object_plan: ObjectPlan) -> Applied:
        """Raises ChildFails, ChildWaits and Unlisted."""

    def needs_ready(self, action: Action) -> bool:
        """Whether the children in `dependsOn` have to be ready before."""
        return isinstance(action, Create)

    def readiness(self, desired: Desired, live: Object) -> Readiness:
        if self.child.ready_when is None:
            return readiness(live, desired.info.shape)
        try:
            return ready_when(self.child, desired.names, live)
        except RenderError as error:
            forbidden = isinstance(error, Waiting) and error.forbidden
            message = self.child.secrecy.error(error)
            reason = "Forbidden" if forbidden else "RenderFailed"
            self.context.report.add_problem(self.child.id, reason, message, error.site)
            return Readiness(False, f"readyWhen: {message}")

    def kept(self) -> frozenset[ObjectKey]:
        """The objects that stay, though they are not desired: those of runs."""
        return frozenset()

    def record(self) -> RunRecord | None:
        """The record of its runs for the status; None if it makes none."""
        return None

    def unknown_scopes(self) -> list[Mapping[str, Any]]:
        """The names of the objects that could not be rendered, as far as they tell which these are."""
        return self.unrendered if self.child.has_items else [self.context.scope.names]

    def with_field_conflict(self, desired: Desired, applied: Applied) -> Applied:
        """The decision about an object that was reverted recently. If its drift is reverted repeatedly, its write is
        withheld, and reported as a conflict. An edit of the CR changes the desired object, which ends the conflict.
        Raises ChildFails and Unread."""
        context, action = self.context, applied.action
        drift = context.history.drift[desired.key]
        if (action is None and not drift.message) or drift.desired_digest != desired.digest:
            return applied
        fields = corrected_fields(action) if action is not None else None
        if fields is None:
            return replace(applied, conflict_message=drift.message)
        assert isinstance(action, (Create, Patch, ServerSideApply))
        decision, message = drift.decide(fields, context.scope.observed.clock), drift.message
        if decision is Decision.REVERT:
            return replace(applied, conflict_message=message)
        if decision is Decision.REPORT:
            message = self._conflict_message(action, drift.managed, by_server=drift.altered)
        conflict = FieldConflict(desired.key, self.child.id, fields, message, new=decision is Decision.REPORT)
        if fields == WHOLE_OBJECT:
            raise HeldBack(conflict)
        live = action.live if not isinstance(action, Create) else None
        return Applied(live, conflict_message=message, conflict=conflict)

    def _conflict_message(
        self, action: Correction, managed: tuple[Mapping[str, Any], ...] | None, *, by_server: bool
    ) -> str:
        owner, observed = self.context.owner, self.context.scope.observed
        changed = changes(action, observed.kinds, None, allowance=descriptions())
        paths = list(dict.fromkeys(self.child.secrecy.path(each.path) for each in changed))
        if isinstance(action, Create) or action.live is None or by_server:
            return conflict_message(action, paths, (), by_server=by_server)
        if managed is None:
            raise Unread(Read(action.key, Kind.of(action.live), "managers"))
        own = action.manager if isinstance(action, ServerSideApply) else ""
        others = [each for each in managed if not own or each.get("manager") != own]
        names = [
            each if FieldsManager.named(each) is None else holder_of(each, action.key, owner, observed)
            for each in managers_of(others, action.live, action.object)
        ]
        return conflict_message(action, paths, names, by_server=False)

    # -- why an object cannot be written -------------------------------------------------------------------------------

    def require_known(self, desired: Desired, state: Served) -> None:
        """Raises unless the object may be written, and it is known whether it exists."""
        if desired.key in self.context.scope.observed.own:
            message = f"{desired.key} belongs to the operator itself, and no rule can write it"
            raise ChildFails(message, self.child.body.site)
        if state is not Served.SYNCED:
            self.require_readable(desired.kind, desired.key.namespace, state)

    def require_readable(self, kind: Kind, namespace: str, state: Served) -> None:
        if state is Served.PENDING:  # an object that is not in the cache may exist
            raise ChildWaits(f"the kind {kind} to be listed", self.child.body.site, why="kind")
        if state is Served.FORBIDDEN:
            raise Unlisted
        if state is Served.UNWATCHED:  # drift would not be reverted, nor the object deleted with its CR
            message = f"the namespace {namespace} to be watched: add it to --namespaces"
            raise ChildWaits(message, self.child.body.site, why="namespace")

    def unwritable(self, desired: Desired, error: UnwritableError) -> ChildFails:
        title = f"the {desired.kind.kind}"
        return ChildFails(f"{title} {desired.key.name!r} {error}", self.child.body.site, redacted=f"{title} {error}")

    def unmergeable(self, desired: Desired, error: RuleopError) -> ChildFails:
        title, words = f"the {desired.kind.kind}", str(error)
        if isinstance(error, MergeError):
            path = self.child.secrecy.path(error.path)
            words = f"{path}: {error.redacted}" if path else error.redacted
        return ChildFails(
            f"{title} {desired.key.name!r}: {error}",
            self.child.body.site,
            reason="ApplyFailed",
            redacted=f"{title}: {words}",
            fields=(error.path,) if isinstance(error, MergeError) else (),
        )

    # -- its value in templates ----------------------------------------------------------------------------------------

    def view(self, existing: list[Existing]) -> Any:
        """The objects as they will be after this pass. A create-only child has the existing object; before it exists
        only apiVersion, kind, name and namespace, because other fields may be random."""
        child, result = self.child, self.results()
        if not result and self.blocks_pruning:
            return existing_view(child, existing, Origin.LATER) if existing else Later(child.id)
        if not child.many:
            if result and result[0] is not None:
                return MapView(result[0], child.id, Origin.LATER)
            return self._identity_view() if result else Later(child.id)
        if self.incomplete:
            return Later(child.id)  # templates would take a partial list for the whole
        return ObjectsView([each for each in result if each is not None], child.id, Origin.LATER)

    def _identity_view(self) -> Later:
        """The apiVersion, kind, name and namespace of an object before it exists; nothing if its name is taken."""
        applied, desired = self.objects[0].applied, self.objects[0].desired
        if applied is not None and applied.name_conflict:
            return Later(self.child.id)
        rendered, key = desired.rendered, desired.key
        metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
        identity = {"apiVersion": rendered["apiVersion"], "kind": rendered["kind"], "metadata": metadata}
        return Announced(self.child.id, identity)

    def results(self) -> list[dict[str, Any] | None]:
        """The objects after this pass; None for one that is another owner's, or not known."""
        found: list[dict[str, Any] | None] = []
        for each in self.objects:
            applied, desired = each.applied, each.desired
            live: Object | None = None
            result: Object | None
            if applied is not None:
                live = result = applied.result
            else:
                result = desired.rendered
            if applied is None or (applied.action is not None and live is not None):
                live = self.context.scope.objects.get(desired.key, version=desired.kind.version)
            owned = live is not None and (applied is not None or claim_on(live, desired.key, self.context.owner).owned)
            if self.child.strategy_for(desired.kind) == "create-only" or (applied is None and owned):
                result = live if owned else None
            found.append(without_server_noise(result) if result is not None else None)
        return found

    # -- what is reported ----------------------------------------------------------------------------------------------

    def add_wait(self, wait: ChildWaits) -> None:
        self.blocks_pruning = True
        if self.state is not State.FAILED:
            self.state = State.WAITING
        self.message = self.message or f"waits for {wait.for_what}"
        report = self.context.report
        report.add_wait(self.child.id, wait.for_what, wait.site, why=wait.why)
        if isinstance(wait, Unread):
            report.reads.append(wait.read)

    def add_failure(self, error: ChildFails, *, only_this_child: bool = False) -> str:
        """Records a failure and returns its message. `only_this_child`: other children are still written."""
        secrecy, report = self.child.secrecy, self.context.report
        message = secrecy.error(error)
        if isinstance(error, HeldBack):
            report.conflicts.append(error.conflict)
        elif error.reason == "FieldConflict":
            report.has_held_fields = True
        if isinstance(error, Immutable):
            failed = error.failed
            rejection = secrecy.rejection(failed.message, failed.redacted, failed.causes)
            message = rejection + changes_in_words(error.changes, secrecy) + error.advice
        self.blocks_pruning = True
        self.context.exhausted |= error.limit
        self.context.render_failed |= error.reason == "RenderFailed" and not only_this_child
        self.state, self.message = State.FAILED, message
        report.add_problem(self.child.id, error.reason, message, error.site)
        return message

    def settle(self) -> None:
        """Sets the states of the objects, and the child's to the worst of them."""
        for each in self.objects:
            if each.applied is not None:
                each.state, each.message = self._state_of(each, each.applied)
            if each.message and not self.message:
                is_progressing = each.state is State.PROGRESSING
                key = each.desired.key
                self.message = f"{key.kind}/{key.name}: {each.message}" if is_progressing else each.message
            if _WORST.index(each.state) > _WORST.index(self.state):
                self.state = each.state

    @property
    def ready(self) -> bool:
        return self.state is State.READY

    @property
    def writes(self) -> bool:
        return any(each.action is not None for each in self.objects)

    def report(self) -> ChildReport:
        objects = tuple(ObjectReport(each.desired.key, each.state, each.message) for each in self.objects)
        return ChildReport(self.child.id, self.state, source_of(self.child), self.message, objects)

    def _state_of(self, object_plan: ObjectPlan, applied: Applied) -> tuple[State, str]:
        child, key, report = self.child, object_plan.desired.key, self.context.report
        if applied.name_conflict:
            report.add_problem(child.id, "ErrResourceExists", applied.name_conflict)
            return State.REFUSED, applied.name_conflict
        if applied.terminating:
            self.blocks_pruning = True
            report.add_wait(child.id, f"{key} to be gone", why="deletion")
            return State.TERMINATING, "being deleted, then recreated"
        if applied.conflict_message:
            report.add_problem(child.id, "FieldConflict", applied.conflict_message)
        if applied.conflict is not None:
            report.conflicts.append(applied.conflict)
        if applied.action is not None:
            return self._state_of_write(object_plan, applied.action)
        assert applied.result is not None
        found = self.readiness(object_plan.desired, applied.result)
        message = f"{found.message}: {found.detail}" if found.detail and not child.secrecy.holds else found.message
        if found.failed:
            report.add_problem(child.id, self.failure, f"{key.kind}/{key.name}: {message}")
        return (State.READY, "") if found.ready else (State.PROGRESSING, message)

    def _state_of_write(self, object_plan: ObjectPlan, action: Action) -> tuple[State, str]:
        key, writes = object_plan.desired.key, self.context.history.writes
        if self.context.paused:
            verb = "created" if isinstance(action, Create) else "changed"
            return State.PROGRESSING, f"not {verb} while the CR is paused"
        failed = self.context.history.failure(key) if writes is not None else None
        if failed is not None and not (isinstance(action, Delete) and failed.failure is Failure.IMMUTABLE):
            return self._state_of_failed_write(object_plan, failed)
        if writes is not None:  # made possible or necessary by this pass's writes; left to the next pass
            self.context.report.add_wait(self.child.id, f"{key} to be written", why="write")
        if isinstance(action, Delete):
            return State.PROGRESSING, "will be recreated"
        if isinstance(action, Create):
            return State.PROGRESSING, "about to be created"
        shown = self.context.predict_status or writes is not None
        conflict = self._expected_rejection(object_plan) if shown else ""
        expected = f", and the API server is expected to reject that: {conflict}" if conflict else ""
        return State.PROGRESSING, f"about to be changed{expected}"

    def _state_of_failed_write(self, object_plan: ObjectPlan, failed: Failed) -> tuple[State, str]:
        child, report = self.child, self.context.report
        key, rule = object_plan.desired.key, self.context.scope.rule
        is_grant = failed.verb == GRANT
        granting = Granting.of(object_plan.desired.rendered) if is_grant and not child.secrecy.holds else None
        if granting is not None:
            message = f"cannot write {key.kind}/{key.name}: {granting.remedy(failed.account)}"
        elif failed.verb and not is_grant:
            message = denied_write(rule, object_plan.desired.info, key.namespace, failed)
        else:
            message = child.secrecy.rejection(failed.message, failed.redacted, failed.causes)
        reason = condition_reason(failed.failure)
        if reason is None:
            why = f": {message}" if failed.failure is Failure.OTHER else ""
            report.add_wait(child.id, f"{key} to be written{why}", why="write")
            return State.PROGRESSING, message
        if failed.failure is Failure.HELD:
            report.has_held_fields = True
            held = held_by_others(failed, key, child.secrecy, self.context.owner, self.context.scope.observed)
            message = f"{key}: {held}"
        if failed.failure is Failure.EXISTS:
            message = name_conflict_message(key, rule.kind.kind, None)
            report.add_problem(child.id, reason, message)
            return State.REFUSED, message
        if failed.failure is Failure.INVALID and (conflict := self._expected_rejection(object_plan, failed.managed)):
            message += f"; {conflict}"
        named = [cause.field for cause in failed.causes]
        sent = object_plan.applied.result if object_plan.applied is not None else None
        report.add_problem(child.id, reason, message, self.site_of(object_plan.desired, named, sent))
        return State.FAILED, message

    def _expected_rejection(self, object_plan: ObjectPlan, managed: Iterable[Mapping[str, Any]] = ()) -> str:
        """Describes a live list item that conflicts with a desired one; empty if there is none. A replaced object has
        only desired items. Empty for a child that reads Secrets: the key of an item may come from one."""
        applied, desired = object_plan.applied, object_plan.desired
        if self.child.secrecy.holds or applied is None or applied.result is None:
            return ""
        if not isinstance(applied.action, (Patch, ServerSideApply)):
            return ""
        return conflict_in_words(applied.result, desired.rendered, desired.info.shape, managed)

    def site_of(self, desired: Desired, fields: Iterable[str], sent: Object | None = None) -> Site:
        """The place of the first of these fields in the child's body. To find it, the body is rendered again, so only
        the first failed objects of a child have it."""
        found = None
        if self._located < MAX_LOCATED:
            self._located += 1
            found = field_site(self.child, desired, fields, sent)
        return found or self.child.body.site


def ready_when(child: Child, names: Mapping[str, Any], live: Object) -> Readiness:
    """The readiness of one object by `readyWhen`."""
    assert child.ready_when is not None
    try:
        holds = child.ready_when.truth({**names, "this": MapView(without_server_noise(live), "this", Origin.LATER)})
    except Waiting as wait:
        if wait.forbidden:
            raise
        return Readiness(False, f"readyWhen: {wait.message}")
    return READY if holds else Readiness(False, "readyWhen is false")
