"""The one pure function that ruleop is built around:

    plan(rule, resource, observed) -> Plan

What to create, change, delete, wait for, and say, for one CR. It touches nothing and depends on nothing but its arguments: the same
arguments give the same plan, byte for byte. The operator, `ruleop render`, `ruleop plan` and the tests all call it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ruleop.errors import RenderError, RuleopError
from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.planning.actions import Action, AddFinalizer, Delete, Patch, Plan, Problem, RemoveFinalizer, StatusWrite
from ruleop.planning.children import Children
from ruleop.planning.deletion import hidden, plan_deletion
from ruleop.planning.events import transition
from ruleop.planning.failures import public_message, reason_of
from ruleop.planning.marks import Owner, is_paused
from ruleop.planning.period import reconcile_period
from ruleop.planning.permissions import refused
from ruleop.planning.pruning import held_back, prune
from ruleop.planning.scope import Scope
from ruleop.planning.selectors import compile_selector
from ruleop.planning.status import MAX_MESSAGE, as_taken, overall, paused, projected, triple, users, write
from ruleop.templating import Unwanted, Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.planning.actions import Event
    from ruleop.planning.observed import Observed
    from ruleop.rules import Rule

LOOK_AT_FOREIGN = 60.0  # seconds until a name that somebody else holds is looked at again; no event of ours tells when it is free
FIRST = ""  # among an action's needs: our finalizer


def choose_rule(rules: Iterable[Rule], resource: Object) -> Rule | None:
    """The first rule of the CR's kind, whatever the version, whose selector and namespaces match it."""
    kind, metadata = ObjectKey.of(resource).group_kind, resource.get("metadata") or {}
    for rule in rules:
        if rule.kind.versionless != kind or (rule.namespaces and (metadata.get("namespace") or "") not in rule.namespaces):
            continue
        if rule.selector is None or compile_selector(rule.selector, {})(metadata.get("labels") or {}):
            return rule
    return None


def plan(rule: Rule, resource: Object, observed: Observed) -> Plan:
    try:
        return _Planner(rule, resource, observed).plan()
    except RecursionError:  # no bug: the cluster holds what is nested deeper than Python's stack
        raise RuleopError("the resource, or an object that it reads, is nested too deeply to be planned with") from None


class _Planner:
    def __init__(self, rule: Rule, resource: Object, observed: Observed) -> None:
        self.rule, self.resource, self.observed = rule, resource, observed
        self.info = observed.kinds.info(rule.kind)
        self.owner = Owner.of(resource)
        self.scope = Scope(rule, resource, observed)
        self.paused = is_paused(resource)
        self.children = Children(rule, observed, self.scope, self.owner, paused=self.paused)
        self.held_back = ""  # what would be deleted, had the rules not just changed

    def plan(self) -> Plan:
        if self.resource["metadata"].get("deletionTimestamp"):
            return self._deleting()
        for id_ in self.rule.finalize:
            self.scope.names[id_] = Unwanted(id_)
        problem = self._invalid()
        if problem is not None:
            return self._invalidated(problem)
        self.children.plan_all([self.rule.children[id_] for id_ in self.rule.order])
        return self._standing()

    # -- validation ----------------------------------------------------------------------------------------------------------------------

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
        problems = self.children.said.problems
        if problem.reason == "Waiting":
            ready = triple(False, "Waiting", problem.message, reconciling=True, stalled=False)
        else:
            problems.append(problem)
            ready = overall(self.children, [problem])
        return self._plan(ready, [], look_again=None)

    # -- a CR that stands ----------------------------------------------------------------------------------------------------------------

    def _standing(self) -> Plan:
        actions = self._actions()  # before the status, whose mistakes stop no child
        return self._plan(None, actions, look_again=self._look_at_foreign(), complete=self.children.complete)

    def _look_at_foreign(self) -> float | None:
        return LOOK_AT_FOREIGN if any(each.reason == "ErrResourceExists" for each in self.children.said.problems) else None

    def _actions(self) -> list[Action]:
        if self.children.mistaken:
            # Somebody's mistake, in the rules or in the CR: half of what was meant may be worse than what is there.
            return []
        actions = self.children.actions()
        pruned = prune(self.children)
        if pruned and self.observed.settled:
            self._report_left(pruned)
        if pruned and not self._status_fails():
            if self.observed.held_until:
                self.held_back = held_back(pruned, self.observed.held_until)
            else:
                actions += pruned
        holds = self.observed.finalizer in (self.resource["metadata"].get("finalizers") or [])
        if self._needs_finalizer():
            if not holds:
                # It has to be there before the first object that the garbage collector cannot follow.
                return [AddFinalizer(self.observed.finalizer), *(replace(action, needs=action.needs | {FIRST}) for action in actions)]
        elif holds and not actions and self._has_nothing_elsewhere():
            actions.append(RemoveFinalizer(self.observed.finalizer))
        return actions

    def _report_left(self, pruned: list[Action]) -> None:
        """What this pass was to delete, or to release, and the server did not let it."""
        for action in pruned:
            assert isinstance(action, (Delete, Patch)), "what prune gives"
            failed = self.observed.failed.get(action.key)
            if failed is None:
                continue
            info = self.observed.kinds.info(Kind.of(action.live))
            words = public_message(self.rule.children.get(action.child), failed)
            why = refused(self.rule, info, action.key.namespace, failed.verb) if failed.verb else words
            child, message, reason = action.child or "pruning", f"{action.key} is still there: {why}", reason_of(failed.failure)
            if reason is None:
                self.children.said.wait(child, f"{action.key} to be deleted: {words}", why="deletion")
            else:
                self.children.said.problem(child, reason, message)

    def _status_fails(self) -> bool:
        """Whether `status` or `conditions` hold a mistake: an error of the pass like any other. Asked only where something is to be pruned,
        for a pass that writes does without the status."""
        mistakes: list[Problem] = []
        projected(self.rule, self.scope, mistakes)
        users(self.rule, self.children, mistakes)
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
            piece.applied is not None and piece.applied.stands is not None and not self.children.refers(piece.wanted, final=False)
            for planned in self.children.planned.values()
            for piece in planned.pieces
        )

    # -- a CR that is being deleted ------------------------------------------------------------------------------------------------------

    def _deleting(self) -> Plan:
        self.children.show(self.rule.every_child())
        ending = plan_deletion(self.rule, self.resource, self.observed, self.children)
        again = ending.look_again if ending.look_again is not None else self._look_at_foreign()
        return self._plan(ending.conditions, ending.actions, events=ending.events, look_again=again, complete=self.children.complete)

    # -- what is said --------------------------------------------------------------------------------------------------------------------

    def _plan(
        self,
        ready: list[dict[str, Any]] | None,
        actions: list[Action],
        *,
        look_again: float | None,
        events: list[Event] | None = None,
        complete: bool = False,
    ) -> Plan:
        """`ready` says what Ready, Reconciling and Stalled are; None: what the children amount to."""
        problems = self.children.said.problems
        acts = bool(actions) and not self.paused and not self.observed.settled
        if acts and not self.observed.foresee:
            return self._bare(actions, events or [], look_again)
        self._tell_of_finalizer(ready)
        fields, ours = as_taken(self.rule, self.observed.refused, *projected(self.rule, self.scope, problems), problems)
        extra = users(self.rule, self.children, problems)
        if ready is None:
            ready = overall(self.children, problems, held_back=self.held_back)
        period, trouble = reconcile_period(self.rule, self.resource)
        if self.paused:
            ready = paused(self.resource, self.observed.last_reason)
        elif trouble:
            ready[0] = {**ready[0], "message": "; ".join(filter(None, [ready[0]["message"], trouble]))[:MAX_MESSAGE]}
        conditions = [*ready, *extra]
        status: StatusWrite | None = None
        if self.rule.manage_status:
            status = write(self.resource, self.info, self.observed, fields, ours, conditions, pause=self.paused)
        return Plan(
            resource=ObjectKey.of(self.resource),
            uid=self.owner.uid,
            rule=self.rule.title,
            actions=tuple(actions) if acts else (),
            waits=tuple(self.children.said.waits),
            children=self.children.reports(),
            rendered=self.children.rendered(),
            problems=tuple(problems),
            status=status,
            conditions=tuple(conditions),
            events=(*(events or ()), *self._transition(ready[0], acts=acts)),
            look_again=None if self.paused else self._made_possible(actions, look_again),
            period=period,
            complete=complete,
            in_step=self.children.in_step(),
            unread=tuple(self.children.said.unread),
        )

    def _bare(self, actions: list[Action], events: list[Event], look_again: float | None) -> Plan:
        """What is to be done, for somebody who does it and then asks again."""
        said = self.children.said
        return Plan(
            resource=ObjectKey.of(self.resource),
            uid=self.owner.uid,
            rule=self.rule.title,
            actions=tuple(actions),
            waits=tuple(said.waits),
            problems=tuple(said.problems),
            events=tuple(events),
            look_again=look_again,
            in_step=self.children.in_step(),
            unread=tuple(said.unread),
        )

    def _made_possible(self, actions: list[Action], look_again: float | None) -> float | None:
        """When to look again after writes: at once where their answers were what others waited for. No event tells of what is known."""
        possible = self.observed.settled and any(getattr(action, "key", None) not in self.observed.acted for action in actions)
        return 0.0 if possible else look_again

    def _tell_of_finalizer(self, ready: list[dict[str, Any]] | None) -> None:
        """Our finalizer could not be added or removed: nothing goes on before it is, so it is the first thing to be told."""
        failed = self.observed.failed.get(ObjectKey.of(self.resource)) if self.observed.settled else None
        if failed is None:
            return
        why = refused(self.rule, self.info, self.owner.namespace, failed.verb) if failed.verb else failed.message
        message = f"the finalizer {self.observed.finalizer} cannot be written: {why}"
        reason = reason_of(failed.failure)
        if reason is None:
            self.children.said.wait("finalizer", f"the finalizer to be written: {failed.message}", why="write")
        else:
            self.children.said.problems.insert(0, Problem("finalizer", reason, message))
        if ready is not None:  # a CR that is being deleted: its reasons are what tells how far it has come
            ready[:] = triple(False, ready[0]["reason"], message, reconciling=reason is None, stalled=reason is not None)

    def _transition(self, ready: dict[str, Any], *, acts: bool) -> list[Event]:
        """None before the writes are done, and none in a pause, in which Ready does not change."""
        return [] if acts or self.paused else transition(self.resource, ready, self.children.said.problems, self.observed.last_reason)
