"""The one pure function that ruleop is built around:

    plan(rule, resource, observed, history) -> Plan

It decides what to create, change, delete, wait for and report for one CR. It has no side effects and depends only on
its arguments: the same arguments give the same plan, byte for byte. The operator, `ruleop render`, `ruleop plan` and
the tests all call it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.errors import RenderError, RuleopError
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey, version_of
from ruleop.language.rules import Patched, parse_duration
from ruleop.language.secrets.masks import NO_MASKS
from ruleop.language.templates import Disabled, Omit, Waiting
from ruleop.language.templates.values.cost import METER, Account, Exhausted
from ruleop.planning.changes import condition_reason, reason_for
from ruleop.planning.child import existing
from ruleop.planning.child.child_plan import PassContext
from ruleop.planning.child.children import NO_KEYS, Children
from ruleop.planning.child.existing import find_existing
from ruleop.planning.child.field_patches import find_patched
from ruleop.planning.child.item_ends import plan_ends
from ruleop.planning.child.kinds.run_records import NO_RECORDS, RECORD, with_record
from ruleop.planning.child.pruning import delayed, prune
from ruleop.planning.deletion import missing_read_permissions, plan_deletion, without_account
from ruleop.planning.events import (
    HEALTHY,
    held_back_events,
    held_deletion_events,
    skipped_events,
    transition_events,
)
from ruleop.planning.guard import Overtime, TooSlow, place_of
from ruleop.planning.history import History
from ruleop.planning.model.actions import (
    OWN_FINALIZER,
    RESYNC,
    Action,
    AddFinalizer,
    Delete,
    Expire,
    Patch,
    Problem,
    RemoveFinalizer,
    Requeue,
    ServerSideApply,
    StatusWrite,
)
from ruleop.planning.model.conditions import ROLLOUT, Conditions, as_written, find_condition
from ruleop.planning.model.marks import Owner, annotations_of, is_paused, period_and_notes
from ruleop.planning.model.observed import LAST, ReadObjects, parse_time
from ruleop.planning.model.rule_permissions import account_of, denied_write, missing_permission
from ruleop.planning.model.targets import Target, compile_selector
from ruleop.planning.plan import Late, Plan
from ruleop.planning.rendering.desired import source_of
from ruleop.planning.rendering.scope import ResourceScope
from ruleop.planning.rendering.synced import NOTHING_SETTLED, inputs_of
from ruleop.planning.status import (
    custom_conditions,
    overall_conditions,
    projected_fields,
    status_write,
    without_rejected,
)
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.kubernetes.permissions import ServiceAccount
    from ruleop.language.rules import Rule
    from ruleop.language.secrets.masks import Masks
    from ruleop.language.templates import StringTemplate
    from ruleop.planning.child.existing import Existing
    from ruleop.planning.child.field_patches import PatchedObject
    from ruleop.planning.child.kinds.run_records import Records
    from ruleop.planning.guard import GuardedPlace
    from ruleop.planning.model.actions import Event
    from ruleop.planning.model.conditions import Condition
    from ruleop.planning.model.observed import Objects, Observed
    from ruleop.planning.plan import Blocking

_LONGEST: Final = 64  # characters of a duration, which an Event quotes
# Seconds until a name conflict is checked again. No event reports that the conflicting object is gone.
CHECK_CONFLICTING = 60.0
PLAN_IS_LATE = "its plan took too long"
TOO_LONG = "the plan takes more than a second of CPU time"
LIMIT_VALUES = (
    "limit the values that drive it, for example with `maximum`, `maxLength` or `maxItems` in the CRD's schema"
)
ALL_WRITTEN = HEALTHY | {"FieldConflict"}  # reasons of Ready with which all children have been written


def choose_rule(rules: Iterable[Rule], resource: Object) -> Rule | None:
    """The first rule for the CR's kind, in any version, whose selector and namespaces match it."""
    kind, metadata = Kind.of(resource).versionless, resource.get("metadata") or {}
    for rule in rules:
        selector, namespaces = rule.selection.selector, rule.selection.namespaces
        if rule.kind.versionless != kind or (namespaces and (metadata.get("namespace") or "") not in namespaces):
            continue
        if selector is None or compile_selector(selector, {})(metadata.get("labels") or {}):
            return rule
    return None


def plan(  # noqa: PLR0913 - half of them are for showing the plan
    rule: Rule,
    resource: Object,
    observed: Observed,
    history: History = History.NONE,
    *,
    predict_status: bool = True,
    masks: bool = True,
    items: bool = False,
    traced: str = "",
    account: Account | None = None,
) -> Plan:
    """The plan of one pass. `predict_status`: plan the status too while there are actions, as it would be if nothing
    else changed. `masks`: find what has to be masked when the plan is shown, what blocks its children, and the names of
    their items; the operator only carries it out. `items`: the names of items, without masks. `traced`: the child whose
    objects are traced to the lines of its template. `account`: is charged; by default a new one.

    A guard may end it, at any instruction: then it reports that (`Overtime`), or there is no plan (`TooSlow`).
    """
    planner = _Planner(rule, resource, observed, history, predict_status=predict_status, masks=masks)
    planner.names_items, planner.traced = masks or items, traced
    before = METER.switch(account or Account())
    try:
        return planner.plan()
    except Overtime as ended:
        rule.reset_renderers()
        return planner.late_plan(place_of(ended))
    except TooSlow:
        rule.reset_renderers()
        raise
    except RecursionError:  # expected: an object may be nested deeper than Python's stack
        raise RuleopError("the resource, or an object that it reads, is nested too deeply to be planned") from None
    finally:
        METER.switch(before)
        planner.scope.close()


@dataclass(frozen=True, slots=True)
class _Expiry:
    """When a CR is deleted."""

    at: float | None = None  # seconds since 1970; None: never
    after: str = ""  # the time from its creation
    time: str = ""  # in RFC 3339

    def is_due(self, now: float) -> bool:
        return self.at is not None and now >= self.at


_NEVER: Final = _Expiry()


class _Status(NamedTuple):
    """The status that a plan writes, and what it reports."""

    status: StatusWrite | None
    conditions: Conditions | None
    events: tuple[Event, ...] = ()


_NO_STATUS: Final = _Status(None, None)


class _Planner:
    children: Children  # known once what exists was read

    def __init__(
        self, rule: Rule, resource: Object, observed: Observed, history: History, *, predict_status: bool, masks: bool
    ) -> None:
        known = _WithConflicting(observed.objects, history) if history.conflicting else observed.objects
        self.rule, self.resource, self.predict_status = rule, resource, predict_status
        self.observed, self.objects = observed, ReadObjects(known, METER.enter)
        self.key = ObjectKey.of(resource)
        self.period, self.notes, self.paused = rule.pace.period, "", False
        if annotations := annotations_of(resource):
            self.period, self.notes = period_and_notes(annotations, rule)
            self.paused = is_paused(resource)
        self.history = self._without_expired_refusals(history, known) if history.refusals else history
        self.synced = history.synced
        self.info = observed.kinds.info(rule.kind)
        self.owner = Owner.of(resource, observed.proofs, sharded=observed.sharded)
        self.is_shown, self.traced = masks, ""
        self.names_items = masks
        self.scope = ResourceScope(rule, resource, observed, self.objects)
        self.acts = False
        self.late: Late | None = None  # it was interrupted, and reports that
        self.expiry = _NEVER
        self.account: ServiceAccount | None = None  # by whose permissions children are written; None: the operator's

    def _without_expired_refusals(self, history: History, objects: Objects) -> History:
        """The history without expired refusals: their writes are retried."""
        clock = self.observed.clock
        found = {
            key: each
            for key, each in history.refusals.items()
            if each.is_active(version_of(objects.get(key)), clock, self.period)
        }
        return replace(history, refusals=found)

    def plan(self) -> Plan:
        try:
            existing = find_existing(self.rule, self.owner, self.objects, self.observed.own)
            patches = self.rule.patches or self.observed.patched != frozenset()
            patched = find_patched(self.rule, self.owner, self.observed, self.objects) if patches else ()
        except Exhausted as limit:
            self.children = self._children()
            return self._invalid_plan(Problem("children", "RenderFailed", limit.reason))
        self.children = self._children(existing, patched)
        if self.resource["metadata"].get("deletionTimestamp"):
            return self._deleting()
        if self.rule.expire is not None and (expired := self._find_expiry()) is not None:
            return self._expiring(expired)
        if self.rule.reach.write_as is not None and (problem := self._find_account()) is not None:
            return self._invalid_plan(problem)
        problem = self._plan_children()
        if desired_keys := self.children.misread():
            self.scope.close()
            self.scope = ResourceScope(self.rule, self.resource, self.observed, self.objects)
            self.children = self._children(existing, patched, desired_keys)
            self._find_expiry()
            problem = self._plan_children()
        if problem is not None:
            return self._invalid_plan(problem)
        actions = self._actions()  # before the status: an error in the status must not stop a child
        in_sync = [
            each.desired
            for child_plan in self.children.plans.values()
            for each in child_plan.objects
            if each.applied is not None and each.applied.in_sync
        ]
        self.synced = self.synced.with_in_sync(in_sync, self.rule.digest, self.resource)
        return self._plan(None, actions, complete=self.children.complete)

    def late_plan(self, place: GuardedPlace) -> Plan:
        """A plan that leaves everything as it is, apart from the conditions. Nothing of the rule is evaluated again but
        the names of what it observes."""
        *_, child = ("children", *self.children.plans) if hasattr(self, "children") else ("children",)
        self.late = Late.after(self.history.late, self.rule, self.resource, self.observed.clock)
        self.scope.close()
        self.scope = ResourceScope(self.rule, self.resource, self.observed, self.objects)
        self.children = self._children()
        inside = f" (in {place.inside})" if place.inside else ""
        problem = Problem(child, "RenderFailed", f"{TOO_LONG}{inside}; {LIMIT_VALUES}", place.site)
        self.children.report.problems.append(problem)
        return self._plan(overall_conditions(self.children, [problem]), [])

    def _plan_children(self) -> Problem | None:
        """Plans the children, unless a rule of `validate` is broken: that is returned."""
        for id_ in self.rule.finalize:
            self.scope.names[id_] = Disabled(id_)
        if self.rule.item_ends:
            self.children.use_existing(self.rule.item_ends)
        problem = self._invalid() if self.rule.validate else None
        if problem is None:
            self.children.plan_all([self.rule.children[id_] for id_ in self.rule.order.children])
        return problem

    def _children(
        self,
        existing: Sequence[Existing] = (),
        patched: Sequence[PatchedObject] = (),
        desired_keys: Mapping[str, ObjectKey] = NO_KEYS,
    ) -> Children:
        history, rule = self.history, self.rule
        settled = (history.settled or NOTHING_SETTLED).at(
            inputs_of(rule, self.resource, sharded=self.observed.sharded), self.info
        )
        context = PassContext(self.scope, history, self.owner, existing, patched, settled)
        context.paused, context.predict_status = self.paused, self.predict_status
        return Children(context, desired_keys)

    # -- validation ----------------------------------------------------------------------------------------------------

    def _invalid(self) -> Problem | None:
        """The first broken rule of `validate`."""
        for validation in self.rule.validate:
            try:
                if validation.rule.truth(self.scope.names):
                    continue
                return Problem("spec", "Invalid", validation.message.string(self.scope.names), validation.site)
            except Waiting as wait:
                if wait.forbidden:
                    return Problem("spec", "Forbidden", wait.path, wait.site)
                return Problem("spec", "Waiting", f"waiting for {wait.path}, which `validate` reads", wait.site)
            except RenderError as error:
                return Problem("spec", "RenderFailed", self.rule.secrecy.error(error), error.site)
        return None

    def _invalid_plan(self, problem: Problem) -> Plan:
        """A plan that renders nothing and leaves the children as they are. Status and conditions read what exists, as
        far as it is known."""
        self.children.use_existing(self.rule.children.values())
        if problem.reason == "Waiting":
            return self._plan(Conditions.of("Waiting", problem.message, reconciling=True), [])
        self.children.report.problems.append(problem)
        return self._plan(overall_conditions(self.children, [problem]), [])

    # -- a CR that expires ---------------------------------------------------------------------------------------------

    def _find_expiry(self) -> Expire | None:
        """The deletion of the CR, if its time has come. Notes when it comes otherwise."""
        if self.rule.expire is None or self.paused:
            return None
        try:
            self.expiry = self._expiry_by(self.rule.expire)
        except RenderError as error:
            self.children.report.add_problem("expire", "RenderFailed", self.rule.secrecy.error(error), error.site)
            return None
        if not self.expiry.is_due(self.scope.time_functions().now):
            return None
        found = Expire(self.key, self.expiry.after)
        if self.observed.held_until:
            self.children.report.held += delayed([found], self.observed.held_until)
            return None
        return found

    def _expiry_by(self, expire: StringTemplate) -> _Expiry:
        """Empty text and 0s are never; so is a value that is not there yet. Raises RenderError."""
        try:
            value = expire.evaluate(self.scope.names)
        except Waiting:
            return _NEVER
        created = self.resource["metadata"].get("creationTimestamp")
        if isinstance(value, Omit) or value == "" or not created:
            return _NEVER
        try:
            seconds = parse_duration(str(value)[: _LONGEST + 1], days=True)
        except ValueError as error:
            raise RenderError(str(error), expire.site, expression=expire.quotation) from None
        if len(str(value)) > _LONGEST:
            raise RenderError(f"a duration has at most {_LONGEST} characters", expire.site, expression=expire.quotation)
        at = parse_time(created) + seconds
        if seconds <= 0 or at >= LAST:
            return _NEVER
        return _Expiry(at, str(value), dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))

    def _expiring(self, expired: Expire) -> Plan:
        """The children stay as they are until the CR is deleted."""
        self.children.use_existing(self.rule.children.values())
        is_rejected = self.history.failure(self.key) is not None
        conditions = None if is_rejected else Conditions.of("Deleting", reason_for(expired), reconciling=True)
        return self._plan(conditions, [expired])

    def _find_account(self) -> Problem | None:
        """Finds by whose permissions children are written. Returns why that is not known."""
        try:
            self.account = account_of(self.rule, self.resource)
        except RenderError as error:
            return Problem("writeAs", "RenderFailed", self.rule.secrecy.error(error), error.site)
        return None

    # -- a CR that is not being deleted --------------------------------------------------------------------------------

    def _actions(self) -> list[Action]:
        # After an error in the rules or in the CR nothing is written: applying half of the desired state may be worse
        # than applying none. What no child desires goes nevertheless.
        is_withheld = self.children.context.render_failed
        if self.children.context.exhausted:
            return self._ends([]) if self.rule.item_ends else []
        actions = [] if is_withheld else self.children.actions()
        undesired = self.children.undesired()
        pruned = prune(self.children, undesired) if undesired or self.children.patched else []
        if pruned and self.history.writes is not None:
            self._report_failed_pruning(pruned)
        if pruned and self.observed.held_until:
            self.children.report.held += delayed(pruned, self.observed.held_until)
            pruned = []
        if self.rule.item_ends:
            actions += self._ends(pruned)
        else:
            actions += pruned
        if is_withheld:
            return actions
        holds = self.observed.finalizer in (self.resource["metadata"].get("finalizers") or [])
        key = self.key
        if self._needs_finalizer():
            if not holds:
                # The finalizer has to exist before the first object that the garbage collector would not delete.
                return [
                    AddFinalizer(key, self.observed.finalizer),
                    *(replace(action, needs=action.needs | {OWN_FINALIZER}) for action in actions),
                ]
        elif holds and not actions and self._can_remove_finalizer():
            actions.append(RemoveFinalizer(key, self.observed.finalizer))
        if not actions and self.rule.adopts_helm_releases and not self.children.report.hinders:
            return self._finalizer_of_helm()
        return actions

    def _ends(self, pruned: list[Action]) -> list[Action]:
        """The deletions and releases, with what ends items before."""
        ends = plan_ends(self.children, pruned)
        for key, ending in self.children.ending.items():
            if why := ends.held.get(key):
                self.children.report.add_wait(ending.record.child, f"{key} to be deleted: {why}", why="deletion")
        reported = {action.key for action in pruned}
        removals = [action for action in ends.deletions if action.key not in reported]
        if removals and self.history.writes is not None:
            self._report_failed_pruning(removals)
        writes = ends.writes if not self.children.context.render_failed else []
        return writes if self.observed.held_until else [*writes, *ends.deletions]

    def _finalizer_of_helm(self) -> list[Action]:
        """The removal of the Helm operator's finalizer, once there is nothing else to do: its release is adopted."""
        metadata = self.resource["metadata"]
        finalizers = metadata.get("finalizers") or []
        if metadata.get("deletionTimestamp") and self.observed.finalizer in finalizers:
            return []  # objects are still being deleted
        is_due = existing.FINALIZER in finalizers
        return [RemoveFinalizer(self.key, existing.FINALIZER)] if is_due else []

    def _report_failed_pruning(self, pruned: list[Action]) -> None:
        """Reports deletions and releases of this pass that the server rejected."""
        for action in pruned:
            assert isinstance(action, (Delete, Patch, ServerSideApply)), "no other actions prune"
            failed = self.history.failure(action.key)
            if failed is None or action.live is None:
                continue
            info = self.observed.kinds.info(Kind.of(action.live))
            secrecy = self.rule.secrecy_of(action.child)
            words = secrecy.rejection(failed.message, failed.redacted, failed.causes)
            why = denied_write(self.rule, info, action.key.namespace, failed) if failed.verb else words
            child, reason = action.child or "pruning", condition_reason(failed.failure)
            what, done = str(action.key), "released" if isinstance(action, Patch) else "deleted"
            if isinstance(action, ServerSideApply):
                what, done = f"the fields of {action.key}", "released"
            if reason is None:
                self.children.report.add_wait(child, f"{what} to be {done}: {words}", why="deletion")
            else:
                self.children.report.add_problem(child, reason, f"{what} could not be {done}: {why}")

    def _can_remove_finalizer(self) -> bool:
        """Whether all owned objects are known, and the garbage collector will delete them with the CR."""
        return (
            not self.observed.held_until
            and not self.children.report.hinders
            and not any(missing_read_permissions(self.rule, self.observed, self.owner.namespace))
        )

    def _needs_finalizer(self) -> bool:
        if self.rule.finalize or self.rule.has_order or self.rule.patches or self.children.patched:
            return True
        if any(each.claim.annotated for each in self.children.existing):
            return True
        return any(
            object_plan.applied is not None
            and object_plan.applied.result is not None
            and not object_plan.references_owner
            for child_plan in self.children.plans.values()
            for object_plan in child_plan.objects
        )

    # -- a CR that is being deleted ------------------------------------------------------------------------------------

    def _deleting(self) -> Plan:
        self.children.use_existing(self.rule.every_child)
        problem = self._find_account()
        if problem is not None:
            deletion = without_account(self.resource, self.observed, problem)
        else:
            deletion = plan_deletion(self.rule, self.resource, self.observed, self.children)
        of_helm = self._finalizer_of_helm() if self.rule.adopts_helm_releases else []
        return self._plan(
            deletion.conditions,
            deletion.actions or of_helm,
            events=deletion.events,
            check_after=deletion.check_after,
            complete=self.children.complete,
        )

    # -- the plan ------------------------------------------------------------------------------------------------------

    def _plan(
        self,
        conditions: Conditions | None,
        actions: list[Action],
        *,
        check_after: float | None = None,
        events: list[Event] | None = None,
        complete: bool = False,
    ) -> Plan:
        """`conditions`: Ready, Reconciling and Stalled; None: derive them from the children. `check_after`: seconds
        until the next check, if the caller knows when it is due."""
        children, report = self.children, self.children.report
        self.acts = bool(actions) and not self.paused and self.history.writes is None
        is_watching = bool(self.rule.observe or self.rule.patches or children.patched)
        watches = tuple(self._watches()) if is_watching else ()
        written, records, time_check = _NO_STATUS, NO_RECORDS, None
        is_reported = self.predict_status or not self.acts
        if is_reported:
            METER.ensure_reserve()
            records = children.records()
            written = self._status(conditions, actions, records)
            if self.expiry.at is not None:
                self.scope.time_functions().changes_at(self.expiry.at, "it expires")
            time_check = self.scope.times.requeue() if self.scope.times is not None else None
        writes, plans = self.history.writes, children.plans.values() if is_reported else ()
        masks, items, blocking = self._for_readers(children)
        return Plan(
            resource=self.key,
            uid=self.owner.uid,
            rule=self.rule.title,
            account=self.account,
            expires=self.expiry.time,
            actions=tuple(actions) if self.acts else (),
            held=tuple(report.held),
            waits=tuple(report.waits),
            children=tuple(child_plan.report() for child_plan in plans),
            rendered=tuple(
                (child_plan.child.id, source_of(child_plan.child), each.desired.rendered)
                for child_plan in (plans if self.names_items else ())
                for each in child_plan.objects
            ),
            problems=tuple(report.problems),
            status=written.status,
            conditions=written.conditions,
            events=(*(events or ()), *written.events),
            watches=watches,
            requeue_after=self._requeue_after(check_after, records, time_check) if is_reported else None,
            time_check=time_check,
            again=is_reported and writes is not None and not self.paused and any(map(writes.leaves, actions)),
            complete=is_reported and complete and not self.observed.held_until,
            steady=self._is_steady(),
            synced=self.synced,
            field_conflicts=tuple(report.conflicts),
            reads=tuple(report.reads),
            late=self.late,
            public_words=self.rule.public_words,
            masks=masks,
            items=items,
            blocking=blocking,
            traced=children.traced(self.traced) if self.traced else {},
            settled=children.settled(),
        )

    def _for_readers(self, children: Children) -> tuple[Masks, Mapping[ObjectKey, str], tuple[Blocking, ...]]:
        """The masks, the names of items and what blocks children, of a plan that is shown or recorded."""
        if not self.names_items:
            return NO_MASKS, {}, ()
        from ruleop.planning.child.shown import find_blocking, find_masks, item_names  # noqa: PLC0415 - for tools alone

        items = item_names(children)
        if not self.is_shown:
            return NO_MASKS, items, ()
        masks = find_masks(children) if self.rule.secrecy.reads else NO_MASKS
        return masks, items, tuple(find_blocking(children))

    def _status(self, conditions: Conditions | None, actions: list[Action], records: Records) -> _Status:
        """The status, and the events that report it. May add problems."""
        problems = self.children.report.problems
        if self.history.writes is not None:
            conditions = self._report_finalizer(conditions)
        refused_status = self.history.refused_status
        if refused_status is not None and self.observed.clock >= refused_status.until:
            refused_status = None
        projected: tuple[dict[str, Any], frozenset[str]] = ({}, frozenset())  # the status keeps its fields
        extra: tuple[Condition, ...] = ()
        if self.late is None:
            projected = projected_fields(self.rule, self.scope, problems)
            extra = custom_conditions(self.rule, self.children, problems) if self.rule.status.conditions else ()
        fields, own_fields = projected
        if refused_status is not None:
            fields, own_fields = without_rejected(self.rule, refused_status, *projected, problems)
        if records.runs:
            fields, own_fields = with_record(fields, records.runs), own_fields | {RECORD}
        if conditions is None:
            conditions = overall_conditions(self.children, problems)
        if self.paused:
            conditions = Conditions.in_pause(self.resource, self.history.reason)
        elif self.notes:
            conditions = conditions.with_note(self.notes)
        rollout: Condition | None = None
        if self.observed.rollout is not None or self.rule.rollout is not None:
            # Only the operator knows the revision of the rules; offline, the condition that names it stays as it is. So
            # it does in a pause, in which the revision does not change.
            written = as_written(self.resource, ROLLOUT)
            rollout = written if self.paused else self.observed.rollout or written
        if extra or rollout is not None:
            conditions = replace(conditions, custom=(*extra, rollout) if rollout is not None else extra)
        status: StatusWrite | None = None
        if self.rule.status.managed:
            status = status_write(
                self.resource, self.info, self.observed, fields, own_fields, conditions, pause=self.paused
            )
        held = self.children.report.held if not self.acts and not self.paused else ()
        quiet = not (actions and self.acts) and (status is None or status.patch is None)
        events = (
            *self._transition(conditions, quiet=quiet),
            *(held_deletion_events(self.resource, held, self.history.held) if held else ()),
            *(held_back_events(self.resource, rollout) if rollout is not None and not self.acts else ()),
            *(skipped_events(records.skipped) if records.skipped and not self.acts else ()),
        )
        return _Status(status, conditions, events)

    def _watches(self) -> Iterator[Target]:
        """The targets of each `observe` whose names or selector can be evaluated, and the objects of others."""
        for observe in self.rule.observe.values():
            if observe.owned_by is not None:
                owned = self.scope.owned_targets(observe, observe.owned_by)
                yield from (*owned.between, *owned.observed)
                continue
            try:
                yield from self.scope.targets(observe)
            except RuleopError:
                continue
        yield from dict.fromkeys(self.scope.selections)
        patched, selected = [each.key for each in self.children.patched], set[ObjectKey]()
        for child_plan in self.children.plans.values() if self.rule.patches else ():
            if isinstance(form := child_plan.child.form, Patched):
                keys = [each.desired.key for each in child_plan.objects]
                selected.update(keys if form.target.many else ())
                patched += keys
        for key in dict.fromkeys([*patched, *self.children.context.awaited]):
            if key not in selected:
                yield Target(key.group_kind, key.namespace, key.name)

    def _is_steady(self) -> bool:
        ready, generation = find_condition(self.resource, "Ready"), self.resource["metadata"].get("generation")
        return (ready.get("reason") or self.history.reason) in ALL_WRITTEN and ready.get(
            "observedGeneration", generation
        ) == generation

    def _requeue_after(self, check_after: float | None, records: Records, time_check: Requeue | None) -> Requeue | None:
        report, clock = self.children.report, self.observed.clock
        if self.late is not None:  # nothing makes it sooner, such as a short period, which the CR's author sets
            return Requeue(self.late.wait, PLAN_IS_LATE)
        if check_after is None and any(each.reason == "ErrResourceExists" for each in report.problems):
            check_after = CHECK_CONFLICTING
        if self.paused:
            check_after = None
        elif records.prunes_next:
            check_after = 0.0
        # A conflict that this plan is the first to find is checked, too.
        history = self.history.with_field_conflicts(report.conflicts, clock) if report.conflicts else self.history
        found = [
            history.next_check(self.objects, clock),
            Requeue(check_after, "it is checked") if check_after is not None else None,
            Requeue(self.period, RESYNC) if self.period else None,
            time_check,
        ]
        return min((each for each in found if each is not None), key=attrgetter("seconds"), default=None)

    def _report_finalizer(self, conditions: Conditions | None) -> Conditions | None:
        """Reports first that ruleop's finalizer could not be added or removed, because all other actions depend on it;
        or that the CR could not be deleted."""
        failed = self.history.failure(self.key)
        if failed is None:
            return conditions
        why = (
            missing_permission(self.rule, self.info, self.owner.namespace, failed.verb)
            if failed.verb
            else failed.message
        )
        child, message = "finalizer", f"the finalizer {self.observed.finalizer} cannot be written: {why}"
        wait = f"the finalizer to be written: {failed.message}"
        if self.expiry.is_due(self.scope.time_functions().now):
            child, message = "expire", f"it has expired and cannot be deleted: {why}"
            wait = f"the custom resource, which has expired, to be deleted: {failed.message}"
        reason = condition_reason(failed.failure)
        if reason is None:
            self.children.report.add_wait(child, wait, why="write")
        else:
            self.children.report.problems.insert(0, Problem(child, reason, message))
        if conditions is None:
            return None
        # The CR is being deleted: its reason shows the progress of the deletion, so it is kept.
        return Conditions.of(conditions.ready.reason, message, reconciling=reason is None, stalled=reason is not None)

    def _transition(self, conditions: Conditions, *, quiet: bool) -> list[Event]:
        """The event for a change of Ready. None before the writes are done, and none in a pause: Ready does not
        change."""
        if self.acts or self.paused:
            return []
        events = transition_events(
            self.resource,
            conditions.ready,
            self.children.report.problems,
            self.history.reason,
            held=self.children.report.has_held_fields,
        )
        if quiet and not self.history.reason and not self.history.written and self.history.writes is None:
            # In the first pass after a start. The status cannot hold the reason, and the event was recorded before.
            events = [each for each in events if each.reason != "Synced"]
        return events


class _WithConflicting:
    """The cached objects, and the conflicting objects of other owners, which are not cached."""

    def __init__(self, objects: Objects, history: History) -> None:
        self.objects, self.conflicting = objects, history.conflicting
        self.children, self.patched, self.select = objects.children, objects.patched, objects.select

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        found = self.objects.get(key, version=version, partial=partial)
        return self.conflicting[key].obj if found is None and key in self.conflicting else found
