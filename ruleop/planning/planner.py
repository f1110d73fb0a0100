"""The one pure function that ruleop is built around:

    plan(rule, resource, observed) -> Plan

What to create, change, delete, wait for, and say, for one CR. It touches nothing and depends on nothing but its arguments: the same arguments
give the same plan, byte for byte. The operator, `ruleop render`, `ruleop plan` and the tests all call it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ruleop.errors import RenderError
from ruleop.kinds import Object, ObjectKey
from ruleop.planning.actions import Action, AddFinalizer, Create, Event, Plan, Problem, RemoveFinalizer, ServerSideApply, StatusWrite
from ruleop.planning.children import Children
from ruleop.planning.deletion import plan_deletion, show_children
from ruleop.planning.marks import PAUSED, Owner, annotations_of
from ruleop.planning.pruning import prune
from ruleop.planning.scope import Scope
from ruleop.planning.selectors import compile_selector
from ruleop.planning.status import overall, projected, ready_of, triple, users, write
from ruleop.templating import Unwanted, Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.planning.observed import Observed
    from ruleop.rules import Rule

LOOK_AT_FOREIGN = 60.0  # seconds until a name that somebody else holds is looked at again; no event of ours tells when it is free


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
    return _Planner(rule, resource, observed).plan()


class _Planner:
    def __init__(self, rule: Rule, resource: Object, observed: Observed) -> None:
        self.rule, self.resource, self.observed = rule, resource, observed
        self.info = observed.kinds.info(rule.kind)
        self.owner = Owner.of(resource)
        self.scope = Scope(rule, resource, observed)
        self.children = Children(rule, resource, observed, self.scope, self.owner)
        self.paused = annotations_of(resource).get(PAUSED) == "true"

    def plan(self) -> Plan:
        if self.resource["metadata"].get("deletionTimestamp"):
            return self._deleting()
        problem = self._invalid()
        self.children.plan_all([self.rule.children[id_] for id_ in self.rule.order]) if problem is None else self._leave_alone()
        self._show_finals()
        actions = [] if problem is not None else self._actions()
        return self._finish(actions, problem)

    # -- validation ----------------------------------------------------------------------------------------------------------------------

    def _invalid(self) -> Problem | None:
        """The first broken rule of `validate`. Its children are left as they are."""
        for validation in self.rule.validate:
            try:
                if validation.rule.truth(self.scope.names):
                    continue
                return Problem("spec", "Invalid", validation.message.string(self.scope.names), validation.site)
            except Waiting as wait:
                return Problem("spec", "Waiting", f"{wait.path} is not there yet, and validation needs it", wait.site)
            except RenderError as error:
                return Problem("spec", "RenderFailed", error.message, error.site)
        return None

    def _leave_alone(self) -> None:
        """Nothing is rendered; status and conditions see what exists."""
        show_children(self.rule, self.children)

    def _show_finals(self) -> None:
        for id_ in self.rule.finalize:
            self.scope.names.setdefault(id_, Unwanted(id_))

    # -- actions -------------------------------------------------------------------------------------------------------------------------

    def _actions(self) -> list[Action]:
        actions = [*self.children.actions(), *prune(self.children)]
        holds = self.observed.finalizer in (self.resource["metadata"].get("finalizers") or [])
        if self._needs_finalizer():
            if not holds:
                # It has to be there before the first object that the garbage collector cannot follow.
                return [AddFinalizer(self.observed.finalizer), *(_after_finalizer(action) for action in actions)]
        elif holds and not self._annotated() and not self.children.problems and not self.children.waits and not actions:
            actions.append(RemoveFinalizer(self.observed.finalizer))
        return actions

    def _needs_finalizer(self) -> bool:
        if self.rule.finalize:
            return True
        return any(
            applied is not None and applied.stands is not None and not self.children.refers(wanted, final=False)
            for planned in self.children.planned.values()
            for wanted, applied, _ in planned.wanted
        )

    def _annotated(self) -> bool:
        return any(each.claim.annotated for each in self.children.existing)

    # -- the rest ------------------------------------------------------------------------------------------------------------------------

    def _deleting(self) -> Plan:
        ending = plan_deletion(self.rule, self.resource, self.observed, self.children)
        if not self.rule.finalize or not self.children.planned:
            self._leave_alone()
        fields, ours = projected(self.rule, self.scope, [])
        return self._plan(ending.actions, ending.conditions, ending.events, fields, ours, look_again=ending.look_again)

    def _finish(self, actions: list[Action], problem: Problem | None) -> Plan:
        problems = self.children.problems
        fields, ours = projected(self.rule, self.scope, problems)
        extra = users(self.rule, self.scope, problems)
        if problem is not None and problem.reason == "Waiting":
            conditions = triple(False, "Waiting", problem.message, reconciling=True, stalled=False)
        elif problem is not None:
            problems.insert(0, problem)
            conditions = overall(self.children, problems)
        else:
            conditions = overall(self.children, problems)
        if self.paused:
            conditions = triple(False, "Paused", f"the annotation {PAUSED} stops all changes", reconciling=False, stalled=False)
        again = LOOK_AT_FOREIGN if any(each.reason == "ErrResourceExists" for each in problems) else None
        return self._plan(actions, [*conditions, *extra], self._events(conditions, actions), fields, ours, look_again=again)

    def _plan(
        self,
        actions: list[Action],
        conditions: list[dict[str, Any]],
        events: list[Event],
        fields: dict[str, Any],
        ours: frozenset[str],
        *,
        look_again: float | None,
    ) -> Plan:
        status: StatusWrite | None = None
        if self.rule.manage_status:
            status = write(self.resource, self.info, self.observed, fields, ours, conditions)
        return Plan(
            resource=ObjectKey.of(self.resource),
            uid=self.owner.uid,
            rule=self.rule.title,
            actions=() if self.paused or self.observed.settled else tuple(actions),
            waits=tuple(self.children.waits),
            children=self.children.reports(),
            rendered=self.children.rendered(),
            problems=tuple(self.children.problems),
            status=status,
            conditions=tuple(conditions),
            events=tuple(events),
            look_again=look_again,
        )

    def _events(self, conditions: list[dict[str, Any]], actions: list[Action]) -> list[Event]:
        """Only on a transition: what was said before is in the status, or in the engine's memory where there is none."""
        before = ready_of(self.resource)
        said = before.get("reason") or self.observed.last_reason
        told = before.get("message", "")
        ready = conditions[0]
        reason = ready["reason"]
        if reason in {"Ready", "Progressing"}:
            if actions and not self.observed.settled:
                return []
            generation = self.resource["metadata"].get("generation")
            if said in {"Ready", "Progressing"} and before.get("observedGeneration", generation) == generation:
                return []
            return [Event("Normal", "Synced", f"{self.rule.kind.kind} synced successfully")]
        if reason in {"Waiting", "Paused"} or (said == reason and told == ready["message"]):
            return []
        return [Event("Warning", {"Invalid": "InvalidSpec"}.get(reason, reason), ready["message"])]


def _after_finalizer(action: Action) -> Action:
    if isinstance(action, (Create, ServerSideApply)):
        return replace(action, needs=action.needs | {""})
    return action
