"""The one pure function that ruleop is built around:

    plan(rule, resource, observed, history) -> Plan

What to create, change, delete, wait for, and report, for one CR. It touches nothing and depends on nothing but its
arguments: the same arguments give the same plan, byte for byte. The operator, `ruleop render`, `ruleop plan` and the
tests all call it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ruleop.errors import RenderError, RuleopError
from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.planning.actions import (
    RESYNC,
    Action,
    AddFinalizer,
    Delete,
    Patch,
    Plan,
    Problem,
    RemoveFinalizer,
    Requeue,
    StatusWrite,
)
from ruleop.planning.children import Children
from ruleop.planning.conditions import Conditions, condition_of
from ruleop.planning.deletion import hidden, plan_deletion
from ruleop.planning.events import WELL, transition
from ruleop.planning.failures import public_message, reason_of
from ruleop.planning.history import History
from ruleop.planning.marks import Owner, is_paused
from ruleop.planning.period import reconcile_period
from ruleop.planning.permissions import refused
from ruleop.planning.pruning import held_back, prune
from ruleop.planning.scope import Scope
from ruleop.planning.selectors import compile_selector
from ruleop.planning.status import as_taken, custom, overall, projected, write
from ruleop.planning.work import Work
from ruleop.templating import Disabled, Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.planning.actions import Event
    from ruleop.planning.observed import Objects, Observed
    from ruleop.planning.targets import Target
    from ruleop.rules import Rule

# seconds until a name that an object of somebody else holds is checked again; no event reports that it is free
CHECK_CONFLICTING = 60.0
FIRST = ""  # among an action's needs: our finalizer
WRITTEN = WELL | {"FieldConflict"}  # reasons of Ready that say that all children have been written


def choose_rule(rules: Iterable[Rule], resource: Object) -> Rule | None:
    """The first rule of the CR's kind, whatever the version, whose selector and namespaces match it."""
    kind, metadata = ObjectKey.of(resource).group_kind, resource.get("metadata") or {}
    for rule in rules:
        if rule.kind.versionless != kind or (
            rule.namespaces and (metadata.get("namespace") or "") not in rule.namespaces
        ):
            continue
        if rule.selector is None or compile_selector(rule.selector, {})(metadata.get("labels") or {}):
            return rule
    return None


def plan(
    rule: Rule, resource: Object, observed: Observed, history: History = History.NONE, *, foresee: bool = True
) -> Plan:
    """`foresee`: the status is planned also while there is something to do, as it would be if nothing else changed."""
    try:
        return _Planner(rule, resource, observed, history, foresee=foresee).plan()
    except RecursionError:  # no bug: the cluster holds what is nested deeper than Python's stack
        raise RuleopError("the resource, or an object that it reads, is nested too deeply to be planned") from None


class _Planner:
    def __init__(self, rule: Rule, resource: Object, observed: Observed, history: History, *, foresee: bool) -> None:
        if history.conflicting:
            observed = replace(observed, objects=_WithConflicting(observed.objects, history))
        self.rule, self.resource, self.observed, self.foresee = rule, resource, observed, foresee
        self.period, self.period_note = reconcile_period(rule, resource)
        self.history = self._standing(history) if history.refusals else history
        self.info = observed.kinds.info(rule.kind)
        self.owner = Owner.of(resource)
        self.scope = Scope(rule, resource, observed)
        self.paused = is_paused(resource)
        work = history.work if history.work is not None and history.work.is_for(rule, resource) else None
        self.children = Children(rule, observed, self.history, self.scope, self.owner, work, paused=self.paused)
        self.held_back = ""  # what would be deleted, had the rules not just changed
        self.acts = False

    def _standing(self, history: History) -> History:
        """Without the refusals that are over: what they refused is tried again."""
        clock = self.observed.clock
        found = {
            key: each for key, each in history.refusals.items() if each.stands(self._version(key), clock, self.period)
        }
        return replace(history, refusals=found)

    def _version(self, key: ObjectKey) -> str:
        live = self.observed.objects.get(key)
        return (live["metadata"].get("resourceVersion") or "") if live is not None else ""

    def plan(self) -> Plan:
        if self.resource["metadata"].get("deletionTimestamp"):
            return self._deleting()
        for id_ in self.rule.finalize:
            self.scope.names[id_] = Disabled(id_)
        problem = self._invalid()
        if problem is not None:
            return self._invalidated(problem)
        self.children.plan_all([self.rule.children[id_] for id_ in self.rule.order])
        return self._standing_resource()

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
                return Problem("spec", "Waiting", f"{wait.path} is not there yet, and validation needs it", wait.site)
            except RenderError as error:
                return Problem("spec", "RenderFailed", error.message, error.site)
        return None

    def _invalidated(self, problem: Problem) -> Plan:
        """Nothing is rendered, and the children are left as they are; status and conditions see what exists."""
        self.children.show(self.rule.children.values())
        if problem.reason == "Waiting":
            return self._plan(Conditions.of("Waiting", problem.message, reconciling=True), [], check_after=None)
        self.children.said.problems.append(problem)
        return self._plan(overall(self.children, [problem]), [], check_after=None)

    # -- a CR that stands ----------------------------------------------------------------------------------------------

    def _standing_resource(self) -> Plan:
        actions = self._actions()  # before the status, whose mistakes stop no child
        return self._plan(None, actions, check_after=self._check_conflicting(), complete=self.children.complete)

    def _check_conflicting(self) -> float | None:
        return (
            CHECK_CONFLICTING
            if any(each.reason == "ErrResourceExists" for each in self.children.said.problems)
            else None
        )

    def _actions(self) -> list[Action]:
        if self.children.mistaken:
            # Somebody's mistake, in the rules or in the CR: half of what was meant may be worse than what is there.
            return []
        actions = self.children.actions()
        pruned = prune(self.children)
        if pruned and self.history.writes is not None:
            self._report_left(pruned)
        if pruned and not self._status_fails():
            if self.observed.held_until:
                self.held_back = held_back(pruned, self.observed.held_until)
            else:
                actions += pruned
        holds = self.observed.finalizer in (self.resource["metadata"].get("finalizers") or [])
        key = ObjectKey.of(self.resource)
        if self._needs_finalizer():
            if not holds:
                # It has to be there before the first object that the garbage collector cannot follow.
                return [
                    AddFinalizer(key, self.observed.finalizer),
                    *(replace(action, needs=action.needs | {FIRST}) for action in actions),
                ]
        elif holds and not actions and self._has_nothing_elsewhere():
            actions.append(RemoveFinalizer(key, self.observed.finalizer))
        return actions

    def _report_left(self, pruned: list[Action]) -> None:
        """What this pass was to delete, or to release, and the server did not let it."""
        for action in pruned:
            assert isinstance(action, (Delete, Patch)), "what prune gives"
            failed = self.history.failure(action.key)
            if failed is None:
                continue
            info = self.observed.kinds.info(Kind.of(action.live))
            words = public_message(self.rule.children.get(action.child), failed)
            why = refused(self.rule, info, action.key.namespace, failed.verb) if failed.verb else words
            child, message, reason = (
                action.child or "pruning",
                f"{action.key} could not be deleted: {why}",
                reason_of(failed.failure),
            )
            if reason is None:
                self.children.said.wait(child, f"{action.key} to be deleted: {words}", why="deletion")
            else:
                self.children.said.problem(child, reason, message)

    def _status_fails(self) -> bool:
        """Whether `status` or `conditions` hold a mistake: an error of the pass like any other. Asked only where
        something is to be pruned, for a pass that writes does without the status."""
        mistakes: list[Problem] = []
        projected(self.rule, self.scope, mistakes)
        custom(self.rule, self.children, mistakes)
        return bool(mistakes)

    def _has_nothing_elsewhere(self) -> bool:
        """Whether all is known, and the garbage collector follows all that there is."""
        said = self.children.said
        return (
            not self.observed.held_until
            and not said.problems
            and not said.waits
            and not any(hidden(self.rule, self.observed, self.owner.namespace))
        )

    def _needs_finalizer(self) -> bool:
        if self.rule.finalize or any(each.claim.annotated for each in self.children.existing):
            return True
        return any(
            piece.applied is not None
            and piece.applied.stands is not None
            and not self.children.refers(piece.wanted, final=False)
            for planned in self.children.planned.values()
            for piece in planned.pieces
        )

    # -- a CR that is being deleted ------------------------------------------------------------------------------------

    def _deleting(self) -> Plan:
        self.children.show(self.rule.every_child())
        ending = plan_deletion(self.rule, self.resource, self.observed, self.children)
        check_after = ending.check_after if ending.check_after is not None else self._check_conflicting()
        return self._plan(
            ending.conditions,
            ending.actions,
            events=ending.events,
            check_after=check_after,
            complete=self.children.complete,
        )

    # -- the plan ------------------------------------------------------------------------------------------------------

    def _plan(
        self,
        conditions: Conditions | None,
        actions: list[Action],
        *,
        check_after: float | None,
        events: list[Event] | None = None,
        complete: bool = False,
    ) -> Plan:
        """`conditions`: Ready, Reconciling and Stalled; None: what the children amount to."""
        said = self.children.said
        self.acts = bool(actions) and not self.paused and self.history.writes is None
        found: dict[str, Any] = {
            "events": tuple(events or ()),
            "watches": tuple(self._watches()) if self.rule.observe else (),
            "steady": self._is_steady(),
            "in_step": self.children.in_step(),
            "field_conflicts": tuple(said.conflicts),
            "reads": tuple(said.reads),
        }
        if self.acts and not self.foresee:
            found["work"] = Work.of(self.rule, self.resource, self.children.planned.values())
        else:
            self._add_status(found, conditions, actions)
            found |= {
                "children": self.children.reports(),
                "rendered": self.children.rendered(),
                "requeue_after": self._requeue_after(self._made_possible(actions, check_after)),
                "complete": complete and not self.observed.held_until,
            }
        return Plan(
            resource=ObjectKey.of(self.resource),
            uid=self.owner.uid,
            rule=self.rule.title,
            rule_digest=self.rule.digest,
            generation=self.resource["metadata"].get("generation"),
            actions=tuple(actions) if self.acts else (),
            waits=tuple(said.waits),
            problems=tuple(said.problems),
            **found,
        )

    def _add_status(self, found: dict[str, Any], conditions: Conditions | None, actions: list[Action]) -> None:
        """The status, the conditions and the events of the plan, which may bring problems with them."""
        problems = self.children.said.problems
        conditions = self._report_finalizer(conditions)
        refused_status = self.history.refused_status
        if refused_status is not None and self.observed.clock >= refused_status.until:
            refused_status = None
        fields, ours = as_taken(self.rule, refused_status, *projected(self.rule, self.scope, problems), problems)
        extra = custom(self.rule, self.children, problems)
        if conditions is None:
            conditions = overall(self.children, problems, held_back=self.held_back)
        if self.paused:
            conditions = Conditions.in_pause(self.resource, self.history.reason)
        elif self.period_note:
            conditions = conditions.with_note(self.period_note)
        if extra:
            conditions = replace(conditions, custom=extra)
        status: StatusWrite | None = None
        if self.rule.manage_status:
            status = write(self.resource, self.info, self.observed, fields, ours, conditions, pause=self.paused)
        quiet = not (actions and self.acts) and (status is None or status.patch is None)
        found |= {
            "status": status,
            "conditions": conditions,
            "events": (*found["events"], *self._transition(conditions, quiet=quiet)),
        }

    def _watches(self) -> Iterator[Target]:
        """What each `observe` refers to, as far as that is known."""
        for observe in self.rule.observe.values():
            try:
                yield self.scope.target(observe)
            except RuleopError:
                continue

    def _is_steady(self) -> bool:
        ready, generation = condition_of(self.resource, "Ready"), self.resource["metadata"].get("generation")
        return (ready.get("reason") or self.history.reason) in WRITTEN and ready.get(
            "observedGeneration", generation
        ) == generation

    def _made_possible(self, actions: list[Action], check_after: float | None) -> float | None:
        """At once after writes whose answers were what others waited for: no event reports what is known."""
        writes = self.history.writes
        if self.paused:
            return None
        return 0.0 if writes is not None and any(action.key not in writes.done for action in actions) else check_after

    def _requeue_after(self, check_after: float | None) -> Requeue | None:
        clock, history = self.observed.clock, self.history
        found = [
            Requeue(each.due - clock, "a conflicting object is read again") for each in history.conflicting.values()
        ]
        held = {each.key for each in self.children.said.conflicts}
        checks = (each.next_check(clock, held=key in held) for key, each in history.drift.items())
        found += [Requeue(check - clock, "a field conflict is checked") for check in checks if check is not None]
        for key, refusal in history.refusals.items():
            if (
                clock < refusal.until and self._version(key) != refusal.version
            ):  # later, an event reports that it has changed
                found.append(Requeue(refusal.until - clock, "a rejected write is retried"))
        if history.refused_status is not None and any(
            each.reason == "StatusRefused" for each in self.children.said.problems
        ):
            found.append(Requeue(history.refused_status.until - clock, "a rejected status is retried"))
        if check_after is not None:
            found.append(Requeue(check_after, "it is checked"))
        if self.period:
            found.append(Requeue(self.period, RESYNC))
        return min(found, key=lambda each: each.seconds, default=None)

    def _report_finalizer(self, conditions: Conditions | None) -> Conditions | None:
        """Our finalizer could not be added or removed: nothing else happens before it is, so it is the first thing to
        report."""
        failed = self.history.failure(ObjectKey.of(self.resource)) if self.history.writes is not None else None
        if failed is None:
            return conditions
        why = refused(self.rule, self.info, self.owner.namespace, failed.verb) if failed.verb else failed.message
        message = f"the finalizer {self.observed.finalizer} cannot be written: {why}"
        reason = reason_of(failed.failure)
        if reason is None:
            self.children.said.wait("finalizer", f"the finalizer to be written: {failed.message}", why="write")
        else:
            self.children.said.problems.insert(0, Problem("finalizer", reason, message))
        if conditions is None:
            return None
        # A CR that is being deleted: its reasons say how far it has come.
        return Conditions.of(conditions.ready.reason, message, reconciling=reason is None, stalled=reason is not None)

    def _transition(self, conditions: Conditions, *, quiet: bool) -> list[Event]:
        """None before the writes are done, and none in a pause, in which Ready does not change."""
        if self.acts or self.paused:
            return []
        events = transition(self.resource, conditions.ready, self.children.said.problems, self.history.reason)
        if quiet and not self.history.reason and not self.history.written and self.history.writes is None:
            # In the first pass after a start, where no status can hold a reason, this was reported before the start.
            events = [each for each in events if each.reason != "Synced"]
        return events


class _WithConflicting:
    """The cluster's objects, and those of others that have a child's name, which no cache holds."""

    def __init__(self, objects: Objects, history: History) -> None:
        self.objects, self.conflicting = objects, history.conflicting
        self.children, self.select = objects.children, objects.select

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        found = self.objects.get(key, version=version, partial=partial)
        return self.conflicting[key].obj if found is None and key in self.conflicting else found
