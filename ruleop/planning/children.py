"""The children of one CR in one pass: each rendered in its turn, compared with what is live, and given its state.

Children are planned in the order of the rule, so that what a child mentions is known before it is rendered. A child that waits or fails ends its own
planning only: what exists of it stays as it is, and those that do not need it go ahead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ruleop.errors import RenderError, Site
from ruleop.kinds import Object, ObjectKey
from ruleop.planning.actions import Action, ChildReport, Create, ObjectReport, Problem, ServerSideApply, State, Wait
from ruleop.planning.apply import Applied, apply, record_of
from ruleop.planning.errors import ChildFails, ChildWaits
from ruleop.planning.marks import Claim, Owner, claim_on
from ruleop.planning.observed import Failure, Observed, Served
from ruleop.planning.readiness import readiness
from ruleop.planning.scope import Scope, without_server_noise
from ruleop.planning.wanted import Wanted, holds, items_of, render, source_of, strategy_of
from ruleop.templating import Later, MapView, ObjectsView, Origin, Unwanted, Waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.rules import Child, Rule


@dataclass(frozen=True, slots=True)
class Existing:
    """An object that is ours."""

    key: ObjectKey
    live: Object
    claim: Claim
    child: str  # the id recorded on it; "" if there is none


def existing_of(owner: Owner, observed: Observed) -> list[Existing]:
    """All that carries the CR's label and is ours, by identity."""
    found = []
    for live in observed.objects.children(owner.part_of):
        key = ObjectKey.of(live)
        claim = claim_on(live, key, owner)
        if claim.ours:
            record = record_of(live)
            found.append(Existing(key, live, claim, record.id if record is not None else ""))
    return sorted(found, key=lambda each: each.key)


@dataclass(slots=True)
class Planned:
    """One child, planned."""

    child: Child
    state: State = State.READY
    message: str = ""
    site: Site | None = None
    wanted: list[tuple[Wanted, Applied | None, str]] = field(default_factory=list)  # with what stops it, if something does
    reports: list[ObjectReport] = field(default_factory=list)
    spares: bool = False  # some of its objects are not known in this pass, so none recorded for it may be pruned
    ready: bool = False


class Children:
    def __init__(self, rule: Rule, resource: Object, observed: Observed, scope: Scope, owner: Owner) -> None:
        self.rule, self.resource, self.observed, self.scope, self.owner = rule, resource, observed, scope, owner
        self.existing = existing_of(owner, observed)
        self.by_id: dict[str, list[Existing]] = {}
        for each in self.existing:
            self.by_id.setdefault(each.child, []).append(each)
        self.planned: dict[str, Planned] = {}
        self.taken: dict[ObjectKey, str] = {}
        self.problems: list[Problem] = []
        self.waits: list[Wait] = []
        for child in (*rule.children.values(), *rule.finalize.values()):
            self._show_live(child)

    def _show_live(self, child: Child) -> None:
        """What exists now, for `live.x`, and for all until the child's turn has come."""
        found = [without_server_noise(each.live) for each in self.by_id.get(child.id, ())]
        if child.many:
            self.scope.live[child.id] = ObjectsView(found, child.id, Origin.LIVE)
        elif found:
            self.scope.live[child.id] = MapView(found[0], f"live.{child.id}", Origin.LIVE)
        self.scope.ready[child.id] = bool(found) and all(readiness(each).ready for each in found)

    # -- one child -----------------------------------------------------------------------------------------------------------------------

    def plan(self, child: Child) -> Planned:
        planned = Planned(child)
        try:
            wanted = self._wanted(child, planned)
            if wanted is None:
                planned.state = State.UNWANTED
                self._say(child, planned, Unwanted(child.id))
                return planned
            for each in wanted:
                self._apply(planned, each)
        except ChildWaits as wait:
            self._waits(planned, wait)
        except ChildFails as error:
            self._fails(planned, error)
        self._settle(planned)
        self._say(child, planned, self._value(child, planned))
        return planned

    def _wanted(self, child: Child, planned: Planned) -> list[Wanted] | None:
        """What the child wants; None if it is not wanted at all. An item that waits leaves the others going."""
        kinds = [self.observed.kinds.info(kind) for kind in sorted(child.kinds)]
        if child.optional and any(info.state is Served.UNSERVED for info in kinds):
            planned.message = "the cluster does not serve its kind"
            return None
        if child.for_each is None:
            if not self._when(child, self.scope.names):
                return None
            holds(child.wait_for, self.scope.names, "waitFor")
            wanted = render(child, self.scope, self.scope.names, 0)
            return wanted or None
        found: list[Wanted] = []
        for index, names in items_of(child, self.scope):
            try:
                if self._when(child, names):
                    holds(child.wait_for, names, "waitFor")
                    found.extend(render(child, self.scope, names, index))
            except ChildWaits as wait:
                self._waits(planned, wait)
        return found

    @staticmethod
    def _when(child: Child, names: Mapping[str, Any]) -> bool:
        if child.when is None:
            return True
        try:
            return child.when.truth(names)
        except Waiting as wait:
            raise ChildWaits(wait.path, wait.site) from None
        except RenderError as error:
            raise ChildFails(error.message, error.site) from None

    def _apply(self, planned: Planned, wanted: Wanted) -> None:
        child = planned.child
        other = self.taken.setdefault(wanted.key, child.id)
        if other != child.id or any(each.key == wanted.key for each, _, _ in planned.wanted):
            raise ChildFails(
                f"{wanted.key} is rendered twice" + (f": the child {other} renders it too" if other != child.id else " by this child"),
                child.body.site,
            )
        try:
            applied = apply(child, wanted, self.owner, self.observed, refer=self.refers(wanted, final=child.final))
            if (
                isinstance(applied.action, (Create, ServerSideApply))
                and applied.stands is not None
                and self.observed.objects.get(wanted.key) is None
            ):
                self._may_create(child)
        except ChildWaits as wait:
            self._waits(planned, wait)
            planned.wanted.append((wanted, None, wait.for_what))
        except ChildFails as error:
            self._fails(planned, error)
            planned.wanted.append((wanted, None, error.message))
        else:
            planned.wanted.append((wanted, applied, ""))

    def refers(self, wanted: Wanted, *, final: bool) -> bool:
        """Whether an ownerReference is legal: the garbage collector deletes what refers to an owner that it cannot see, and what belongs to a
        CR that is being deleted."""
        here = not self.owner.namespace or wanted.key.namespace == self.owner.namespace
        return here and not wanted.orphan and not final

    def _may_create(self, child: Child) -> None:
        for dependency in child.depends_on:
            planned = self.planned.get(dependency)
            if planned is not None and planned.state is not State.UNWANTED and not planned.ready:
                raise ChildWaits(f"{dependency} to be ready")

    # -- its state -----------------------------------------------------------------------------------------------------------------------

    def _waits(self, planned: Planned, wait: ChildWaits) -> None:
        planned.spares = True
        if planned.state is not State.FAILED:
            planned.state = State.WAITING
        planned.message = planned.message or f"waits for {wait.for_what}"
        entry = Wait(planned.child.id, wait.for_what, wait.site)
        if entry not in self.waits:
            self.waits.append(entry)

    def _fails(self, planned: Planned, error: ChildFails) -> None:
        planned.spares = True
        planned.state, planned.message, planned.site = State.FAILED, error.message, error.site
        problem = Problem(planned.child.id, error.reason, error.message, error.site)
        if problem not in self.problems:
            self.problems.append(problem)

    def _settle(self, planned: Planned) -> None:
        """The state of each object, and of the child as the worst of them."""
        states = [planned.state]
        for wanted, applied, stopped in planned.wanted:
            state, message = self._object_state(planned, wanted, applied, stopped)
            planned.reports.append(ObjectReport(wanted.key, state, message))
            states.append(state)
            if message and not planned.message:
                planned.message = f"{wanted.key.kind}/{wanted.key.name} {message}" if state is State.PROGRESSING else message
        planned.state = max(states, key=_WORST.index)
        planned.ready = planned.state is State.READY

    def _object_state(self, planned: Planned, wanted: Wanted, applied: Applied | None, stopped: str) -> tuple[State, str]:
        child = planned.child
        if applied is None:
            return (State.FAILED if planned.state is State.FAILED else State.WAITING), stopped
        if applied.refused:
            self.problems.append(Problem(child.id, "ErrResourceExists", applied.refused))
            return State.REFUSED, applied.refused
        if applied.terminating:
            planned.spares = True
            self.waits.append(Wait(child.id, f"{wanted.key} to be gone"))
            return State.TERMINATING, "is being deleted; it is made again when it is gone"
        failed = self.observed.failed.get(wanted.key)
        if self.observed.settled and applied.action is not None and failed is not None:
            return self._write_failed(child, wanted, failed.failure, failed.message)
        if applied.action is not None:
            return State.PROGRESSING, "is about to be created" if self.observed.objects.get(
                wanted.key
            ) is None else "is about to be changed"
        assert applied.stands is not None
        ready, message, has_failed = self._readiness(child, wanted, applied.stands)
        if ready:
            return State.READY, ""
        if has_failed:
            self.problems.append(Problem(child.id, "ChildFailed", f"{wanted.key.kind}/{wanted.key.name} {message}"))
        return State.PROGRESSING, message

    def _write_failed(self, child: Child, wanted: Wanted, failure: Failure, message: str) -> tuple[State, str]:
        if failure in {Failure.CONFLICT, Failure.OTHER}:
            self.waits.append(Wait(child.id, f"{wanted.key} to be written: {message}"))
            return State.PROGRESSING, message
        reason = {Failure.FORBIDDEN: "Forbidden", Failure.EXISTS: "ErrResourceExists"}.get(failure, "ApplyFailed")
        self.problems.append(Problem(child.id, reason, message, child.body.site))
        return State.FAILED, message

    def _readiness(self, child: Child, wanted: Wanted, live: Object) -> tuple[bool, str, bool]:
        if child.ready_when is None:
            return tuple(readiness(live, wanted.info.shape))  # type: ignore[return-value]
        names = {**wanted.names, "this": MapView(dict(without_server_noise(live)), "this", Origin.LATER)}
        try:
            return (True, "", False) if child.ready_when.truth(names) else (False, "is not ready: readyWhen does not hold", False)
        except Waiting as wait:
            return False, f"is not ready: {wait.path} is not there yet", False
        except RenderError as error:
            problem = Problem(child.id, "RenderFailed", error.message, error.site)
            if problem not in self.problems:
                self.problems.append(problem)
            return False, f"is not ready: {error.message}", False

    # -- its value for others ------------------------------------------------------------------------------------------------------------

    def _say(self, child: Child, planned: Planned, value: Any) -> None:
        self.planned[child.id] = planned
        self.scope.names[child.id] = value
        self.scope.ready[child.id] = planned.ready or planned.state is State.UNWANTED  # nothing to wait for, as in dependsOn

    def _value(self, child: Child, planned: Planned) -> Any:
        """The object as it will stand after this pass. A create-only child shows only what exists: what it would be made of is drawn anew each time."""
        if child.many:
            stands = [self._stands(child, wanted, applied) for wanted, applied, _ in planned.wanted]
            if planned.spares and not planned.wanted:
                found = [without_server_noise(each.live) for each in self.by_id.get(child.id, ())]
                return ObjectsView(found, child.id, Origin.LATER) if found else Later(child.id)
            return ObjectsView([each for each in stands if each is not None], child.id, Origin.LATER)
        for wanted, applied, _ in planned.wanted:
            stands_ = self._stands(child, wanted, applied)
            return MapView(stands_, child.id, Origin.LATER) if stands_ is not None else Later(child.id)
        found = self.by_id.get(child.id)  # type: ignore[assignment]
        return MapView(dict(without_server_noise(found[0].live)), child.id, Origin.LATER) if found else Later(child.id)  # type: ignore[attr-defined]

    def _stands(self, child: Child, wanted: Wanted, applied: Applied | None) -> dict[str, Any] | None:
        live = self.observed.objects.get(wanted.key)
        if strategy_of(child, wanted.kind) == "create-only":
            return without_server_noise(live) if live is not None and applied is not None and not applied.refused else None
        if applied is None:  # it waits to be created, or cannot be applied
            ours = live is not None and claim_on(live, wanted.key, self.owner).ours
            return without_server_noise(live) if ours and live is not None else dict(wanted.rendered)
        return without_server_noise(applied.stands) if applied.stands is not None else None

    # -- all of them ---------------------------------------------------------------------------------------------------------------------

    def plan_all(self, children: list[Child]) -> None:
        for child in children:
            self.plan(child)
        self._hold_back_for_namespaces()

    def _hold_back_for_namespaces(self) -> None:
        """An object in a Namespace that is a child too is created when that Namespace is there."""
        homes: dict[str, Planned] = {}
        for planned in self.planned.values():
            for wanted, _, _ in planned.wanted:
                if wanted.key.group_kind == ("", "Namespace"):
                    homes[wanted.key.name] = planned
        if not homes:
            return
        for planned in self.planned.values():
            for number, (wanted, applied, _) in enumerate(planned.wanted):
                home = homes.get(wanted.key.namespace)
                if home is None or applied is None or applied.action is None or self.observed.objects.get(wanted.key) is not None:
                    continue
                live = self.observed.objects.get(ObjectKey("", "Namespace", "", wanted.key.namespace))
                if live is None or not readiness(live).ready:
                    wait = ChildWaits(f"{home.child.id} to be ready")
                    planned.wanted[number] = (wanted, None, wait.for_what)
                    planned.reports[number] = ObjectReport(wanted.key, State.WAITING, wait.for_what)
                    planned.message = ""
                    self._waits(planned, wait)
                    planned.ready = False

    def actions(self) -> list[Action]:
        """In the order of the rule; each with the children whose writes it needs."""
        written = {id_ for id_, planned in self.planned.items() if any(applied and applied.action for _, applied, _ in planned.wanted)}
        refused = {id_ for id_, planned in self.planned.items() if planned.state in {State.REFUSED, State.FAILED}}
        found: list[Action] = []
        for planned in self.planned.values():
            needs = frozenset((planned.child.mentions | frozenset(planned.child.depends_on)) & (written | refused) - {planned.child.id})
            for _, applied, _ in planned.wanted:
                if applied is not None and applied.action is not None:
                    found.append(replace(applied.action, needs=needs))
        return found

    def reports(self) -> tuple[ChildReport, ...]:
        return tuple(
            ChildReport(planned.child.id, planned.state, source_of(planned.child), planned.message, tuple(planned.reports))
            for planned in self.planned.values()
        )

    def rendered(self) -> tuple[tuple[str, str, Object], ...]:
        return tuple(
            (planned.child.id, source_of(planned.child), wanted.rendered)
            for planned in self.planned.values()
            for wanted, _, _ in planned.wanted
        )


_WORST = [State.READY, State.UNWANTED, State.PROGRESSING, State.TERMINATING, State.WAITING, State.REFUSED, State.FAILED]

__all__ = ["Children", "Existing", "Planned", "existing_of"]
