"""Plans the children of one CR: renders each, compares it with the live objects, and determines its state.

Children are planned in dependency order, so that the values that a child reads are known before it is rendered. If a
child waits or fails, its existing objects stay as they are, and children that do not depend on it are still planned.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.errors import RenderError
from ruleop.core.planning.changes.rejected_writes import changes_in_words
from ruleop.core.planning.child.apply import Applied, Immutable, apply
from ruleop.core.planning.child.child_plan import (
    ChildPlan,
    Existing,
    ObjectPlan,
    PassReport,
    existing_is_ready,
    existing_view,
    planned_view,
    ready_when,
    select_shown,
)
from ruleop.core.planning.child.endings import begun, ended_items, ends_item, waits
from ruleop.core.planning.child.failed_writes import expected_rejection, site_of, state_of_failed_write
from ruleop.core.planning.child.field_conflicts import HeldBack, with_field_conflict
from ruleop.core.planning.child.field_patches import held_by_others, patch, select, state_of
from ruleop.core.planning.child.new_namespaces import waits_for_namespaces
from ruleop.core.planning.child.readiness import READY, Readiness, readiness
from ruleop.core.planning.child.runs.child_runs import ChildRuns
from ruleop.core.planning.model.actions import Action, Create, Delete, State
from ruleop.core.planning.model.managers import manager_of
from ruleop.core.planning.model.observed import Served
from ruleop.core.planning.model.outcome import Failure
from ruleop.core.planning.model.rule_permissions import missing_list_permission
from ruleop.core.planning.rendering.child_field_sites import MAX_LINES, line_sites
from ruleop.core.planning.rendering.desired import Desired, is_enabled, render, source_of, wait_for
from ruleop.core.planning.rendering.items import MAX_OBJECTS, Item, items_of, recorded
from ruleop.core.planning.rendering.unplanned import ChildFails, ChildWaits, Unlisted, Unread
from ruleop.core.planning.rendering.work import Work
from ruleop.core.templating import Disabled, Origin, Waiting
from ruleop.core.templating.values.cost import Exhausted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ruleop.core.errors import Site
    from ruleop.core.kinds import Object, ObjectKey
    from ruleop.core.planning.child.field_patches import PatchedObject
    from ruleop.core.planning.history import History
    from ruleop.core.planning.model.marks import Owner
    from ruleop.core.planning.rendering.scope import Scope
    from ruleop.core.rules import Child

NO_KEYS: Final[Mapping[str, ObjectKey]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Found:
    """The objects of a CR in the cluster: those that it owns, and those whose fields it has set."""

    existing: Sequence[Existing] = ()
    patched: Sequence[PatchedObject] = ()


class Children:
    def __init__(
        self,
        scope: Scope,
        history: History,
        owner: Owner,
        found: Found,
        work: Work | None,
        *,
        paused: bool = False,
        predict_status: bool = True,
        desired_keys: Mapping[str, ObjectKey] = NO_KEYS,
    ) -> None:
        """`predict_status`: a plan with actions is shown as well. `desired_keys`: the keys of children with one object,
        as far as another plan of this pass has shown them."""
        self.scope, self.history, self.owner = scope, history, owner
        rule = self.rule = scope.rule
        self.observed = scope.observed
        self.work = work  # of an earlier plan of the same custom resource
        self.paused = paused
        self.predict_status = predict_status
        self.existing, self.patched = found.existing, found.patched
        self.awaited: list[ObjectKey] = []  # objects that do not exist, and whose fields would be set
        self.plans: dict[str, ChildPlan] = {}
        self.render_failed = False  # a child could not be rendered: nothing is written
        self.exhausted = False  # a limit of the pass was exceeded: nothing is deleted either
        self.report = PassReport()
        self.ending = begun(self.existing, rule, owner, scope) if rule.ends_items else {}  # by the objects of the items
        self.ended_by = waits(self.ending) if self.ending else {}
        self._by_id: dict[str, list[Existing]] = {}
        self._shown: dict[str, list[Existing]] = {}  # those that templates can read as this child
        self._by_key: dict[ObjectKey, tuple[ChildPlan, ObjectPlan]] = {}
        for each in self.existing:
            self._by_id.setdefault(each.child, []).append(each)
        for child in rule.every_child:
            if known := self._by_id.get(child.id):
                self._shown[child.id] = select_shown(rule, owner, child, known, desired_keys.get(child.id))
            if child.many or child.id in self._shown:
                scope.live[child.id] = existing_view(child, self._shown.get(child.id, []), Origin.LIVE)
        for observe in rule.observe.values():
            if (owned_by := observe.owned_by) is not None:
                scope.existing[owned_by.child] = [each.live for each in self._shown.get(owned_by.child, ())]

    def manager(self, child: str, key: ObjectKey) -> str:
        """The manager by which a child sets fields of an object. One of an earlier version keeps its name until the
        operator renames it."""
        known = next((each.manager for each in self.patched if (each.child, each.key) == (child, key)), "")
        return known or manager_of(self.owner, child, key)

    @cached_property
    def runs(self) -> ChildRuns:
        """Of the children with `once` or `schedule`."""
        return ChildRuns(self.scope, self._by_id)

    def misread(self) -> dict[str, ObjectKey]:
        """The keys of children with one object whose `live.` showed another object: its name or namespace was changed,
        or somebody made an object that claims to be this child."""
        found: dict[str, ObjectKey] = {}
        for id_, child_plan in self.plans.items():
            key = child_plan.objects[0].desired.key if child_plan.objects and not child_plan.child.many else None
            if key is not None and any(each.key != key for each in self._shown.get(id_, ())):
                found[id_] = key
        return found

    def use_existing(self, children: Iterable[Child]) -> None:
        """Gives templates the existing objects of children that are not planned in this pass."""
        for child in children:
            self._find_desired(child)
            self.scope.names[child.id] = existing_view(child, self._shown.get(child.id, []), Origin.LATER)
            self.scope.ready[child.id] = self._is_ready(child)

    def _find_desired(self, child: Child) -> None:
        """Several objects claim to be this child, which is not planned: the one with the rendered key is meant."""
        existing = self._by_id.get(child.id, ())
        if child.many or len(existing) < 2:
            return
        with contextlib.suppress(ChildWaits, ChildFails):
            for desired in render(child, self.scope, self.scope.names, 0):
                self._shown[child.id] = select_shown(self.rule, self.owner, child, existing, desired.key)

    def _is_ready(self, child: Child) -> bool:
        existing = self._shown.get(child.id, [])
        if child.ready_when is None or child.has_items:  # the value of `item` is unknown
            return existing_is_ready(existing)
        try:
            found = [ready_when(child, self.scope.names, each.live).ready for each in existing]
        except RenderError:
            return False
        return bool(found) and all(found)

    # -- one child -----------------------------------------------------------------------------------------------------

    def plan_all(self, children: Iterable[Child]) -> None:
        for child in children:
            self._plan_child(child)
        if self.rule.makes_namespaces:
            for child_plan, object_plan, wait in waits_for_namespaces(self.plans, self.existing, self.owner.namespace):
                object_plan.stop(State.WAITING, wait.for_what)
                child_plan.message = ""
                self._add_wait(child_plan, wait)

    def _plan_child(self, child: Child) -> None:
        child_plan = self.plans[child.id] = ChildPlan(child)
        try:
            if child.optional and not self._serves(child):
                desired, child_plan.message = None, "the cluster does not serve its kind"
            elif child.for_each or child.for_each_of:
                desired = self._desired_of_items(child_plan)
            else:
                desired = self._desired_objects(child_plan)
            if desired is None:
                child_plan.state = State.UNWANTED
            for each in desired or ():
                self._plan_object(child_plan, each)
        except ChildWaits as wait:
            child_plan.incomplete = True
            self._add_wait(child_plan, wait)
        except ChildFails as error:
            child_plan.incomplete = True
            self._add_failure(child_plan, error)
        except Exhausted as limit:
            child_plan.incomplete = True
            self._add_failure(child_plan, ChildFails(limit.reason, child.body.site, limit=True))
        for object_plan in child_plan.objects:
            if object_plan.applied is not None:
                object_plan.state, object_plan.message = self._state_of(child_plan, object_plan, object_plan.applied)
        child_plan.settle()
        is_undesired = child_plan.state is State.UNWANTED
        self.scope.names[child.id] = (
            Disabled(child.id)
            if is_undesired
            else planned_view(child_plan, self._shown.get(child.id, []), self.observed, self.owner)
        )
        # As with dependsOn, an undesired child does not block others.
        self.scope.ready[child.id] = child_plan.ready or is_undesired

    def _desired_objects(self, child_plan: ChildPlan) -> list[Desired] | None:
        """The desired objects of a child without items; None if its `when` is false."""
        child, names = child_plan.child, self.scope.names
        if child.when is not None and not is_enabled(child.when, names):
            if child.runs:
                self.runs.skip(child)
            return None
        if child.runs:
            return self.runs.desired(child)
        if child.wait_for is not None:
            wait_for(child.wait_for, names)
        known = self.work.desired(child, names, self.observed.kinds) if self.work is not None else None
        if child.patch is not None:
            desired = self._desired_fields(child_plan, names, 0)
        else:
            desired = render(child, self.scope, names, 0) if known is None else known
        return desired if desired or child.many else None

    def _desired_of_items(self, child_plan: ChildPlan) -> list[Desired]:
        """An item that waits or fails does not delay other items."""
        child = child_plan.child
        found: list[Desired] = []
        first: tuple[Item, ChildFails] | None = None
        failed = 0
        items = items_of(child, self.scope) if child.for_each else ended_items(self.ending, child, self.scope.names)
        for item in items:
            try:
                found += self._desired_of_item(child_plan, item)
                if item.ended is not None and item.ended.ends is not None:
                    self.ending[item.ended.ends].decided.add(child.id)
            except ChildWaits as wait:
                child_plan.incomplete = True
                child_plan.unrendered.append(item.names)
                self._add_wait(child_plan, wait)
            except ChildFails as error:
                if error.limit:
                    raise
                child_plan.unrendered.append(item.names)
                if child.given:  # unlike items of a template, each has a mistake of its own
                    self._add_failure(child_plan, _items_error(item.title(child), error, 1), only_this_child=True)
                else:
                    first, failed = first or (item, error), failed + 1
                child_plan.incomplete = True
        if child.runs:
            self.runs.complete_items(child)
        if first is not None:
            failure = _items_error(first[0].title(child), first[1], failed)
            self._add_failure(child_plan, failure, only_this_child=True)
        return found

    def _desired_of_item(self, child_plan: ChildPlan, item: Item) -> list[Desired]:
        child = child_plan.child
        if child.runs:
            return self.runs.desired_of_item(child, item)
        if child.when is not None and not is_enabled(child.when, item.names):
            return []
        if child.wait_for is not None:
            wait_for(child.wait_for, item.names)
        if child.patch is not None:
            return self._desired_fields(child_plan, item.names, item.index)
        desired = render(child, self.scope, item.names, item.index)
        record = item.ended or (recorded(child, item) if child.ended_by else None)
        return desired if record is None else [replace(each, item=record) for each in desired]

    def _serves(self, child: Child) -> bool:
        """Whether the cluster serves each kind that the child can have, in one of the versions that it can have."""
        served = [kind for kind in child.kinds if self.observed.kinds.info(kind).state is not Served.UNSERVED]
        return {kind.versionless for kind in served} == {kind.versionless for kind in child.kinds}

    def _desired_fields(self, child_plan: ChildPlan, names: Mapping[str, Any], index: int) -> list[Desired]:
        """The fields of an object, or of all that a selector matches; with `optional`, of those that exist."""
        child = child_plan.child
        assert child.patch is not None
        target = child.patch.target
        if target.selector is not None:
            try:
                selected = select(child, self.scope, names, {each.key for each in self.existing})
            except Unlisted:
                child_plan.unreadable = self.scope.missing_permission(target)
                raise ChildFails(child_plan.unreadable, child.site, reason="Forbidden") from None
            return render(child, self.scope, names, index, selected=selected)
        desired, found = render(child, self.scope, names, index), []
        if not child.optional:
            return desired
        for each in desired:
            known = state_of(target, each.key.namespace, self.observed) is Served.SYNCED
            if known and self.observed.objects.get(each.key, version=each.kind.version) is None:
                self.awaited.append(each.key)
                child_plan.message = f"{each.key} does not exist"
            else:
                found.append(each)
        return found

    def _plan_object(self, child_plan: ChildPlan, desired: Desired) -> None:
        """Plans one desired object. If it waits or fails, other objects of the child are still planned."""
        child = child_plan.child
        if len(self._by_key) >= MAX_OBJECTS:
            raise ChildFails(f"the CR has more than {MAX_OBJECTS:,} objects", child.body.site)
        object_plan = ObjectPlan(desired)
        child_plan.objects.append(object_plan)
        if (holder := self._by_key.get(desired.key)) is not None:
            self._fail_duplicate(child_plan, object_plan, *holder)
            return
        self._by_key[desired.key] = child_plan, object_plan
        if self.ended_by and not child.final and (end := self._end_before(desired)):
            wait = f"{end} to be gone: it ends the item that was there before"
            object_plan.stop(State.WAITING, wait)
            self.report.add_wait(child.id, wait, why="deletion")
            return
        try:
            if child.patch is not None:
                manager = self.manager(child.id, desired.key)
                applied = patch(child, desired, self.owner, self.observed, self.history, manager=manager)
            else:
                # The garbage collector deletes objects whose owner is in another namespace, and objects whose owner is
                # being deleted, with foreground deletion at once and in any order.
                here = not self.owner.namespace or desired.key.namespace == self.owner.namespace
                references = here and not desired.orphan and not child.final and not child.in_order
                object_plan.references_owner = references
                applied = apply(
                    child, desired, self.owner, self.observed, self.history, self.work, reference_owner=references
                )
            if desired.key in self.history.drift:
                applied = with_field_conflict(child, desired, applied, self.owner, self.observed, self.history)
            if applied.action is not None and (child.mentions or child.depends_on):
                self._check_dependencies(child, applied.action)
            object_plan.applied = applied
        except ChildWaits as wait:
            object_plan.stop(State.WAITING, wait.for_what)
            self._add_wait(child_plan, wait)
        except Unlisted:
            child_plan.unreadable = missing_list_permission(self.rule, desired.info, desired.key.namespace)
            error = ChildFails(child_plan.unreadable, child.body.site, reason="Forbidden")
            object_plan.stop(State.FAILED, self._add_failure(child_plan, error))
        except ChildFails as error:
            if error.limit:
                raise
            if error.fields:
                error.site = site_of(child_plan, object_plan, error.fields)
            object_plan.stop(
                State.FAILED,
                self._add_failure(child_plan, error, only_this_child=child.has_items),
            )

    def _end_before(self, desired: Desired) -> ObjectKey | None:
        """The object that still ends what was there before, or the same item under another name."""
        same = self.ended_by.get(desired.item) if desired.item is not None else None
        return self.ended_by.get(desired.key) or same

    def _fail_duplicate(
        self, child_plan: ChildPlan, object_plan: ObjectPlan, holder: ChildPlan, other: ObjectPlan
    ) -> None:
        """Fails two desired objects with the same identity: writing either would make the result depend on their order.
        If items of `forEach` are involved, the data may be wrong instead of the rule, so other children are not
        affected."""
        key, child = object_plan.desired.key, child_plan.child
        by = "by this child" if holder is child_plan else f"by the children {holder.child.id} and {child.id}"
        by_items = child.has_items or holder.child.has_items
        message = self._add_failure(
            child_plan,
            ChildFails(
                f"{key} is rendered twice, {by}", child.body.site, redacted=f"a {key.kind} is rendered twice, {by}"
            ),
            only_this_child=by_items,
        )
        object_plan.stop(State.FAILED, message)
        other.stop(State.FAILED, message)
        holder.blocks_pruning = True
        holder.message = holder.message or message
        holder.state = State.FAILED
        self.scope.ready[holder.child.id] = False

    def _check_dependencies(self, child: Child, action: Action) -> None:
        for id_, other in self.plans.items():
            if id_ in child.mentions and id_ != child.id and other.state in {State.FAILED, State.REFUSED}:
                raise ChildWaits(f"{id_} to be written", why="child")
            if (
                id_ in child.depends_on
                and (isinstance(action, Create) or child.patch is not None)
                and not (other.ready or other.state is State.UNWANTED)
            ):
                raise ChildWaits(f"{id_} to be ready", why="child")

    # -- its state -----------------------------------------------------------------------------------------------------

    def _add_wait(self, child_plan: ChildPlan, wait: ChildWaits) -> None:
        child_plan.blocks_pruning = True
        if child_plan.state is not State.FAILED:
            child_plan.state = State.WAITING
        child_plan.message = child_plan.message or f"waits for {wait.for_what}"
        self.report.add_wait(child_plan.child.id, wait.for_what, wait.site, why=wait.why)
        if isinstance(wait, Unread):
            self.report.reads.append(wait.read)

    def _add_failure(self, child_plan: ChildPlan, error: ChildFails, *, only_this_child: bool = False) -> str:
        """Records a failure and returns its message. `only_this_child`: other children are still written."""
        message = child_plan.child.secrecy.error(error)
        if isinstance(error, HeldBack):
            self.report.conflicts.append(error.conflict)
        if isinstance(error, Immutable):
            failed, secrecy = error.failed, child_plan.child.secrecy
            rejection = secrecy.rejection(failed.message, failed.redacted, failed.causes)
            message = rejection + changes_in_words(error.changes, secrecy) + error.advice
        child_plan.blocks_pruning = True
        self.exhausted = self.exhausted or error.limit
        if error.reason == "FieldConflict" and child_plan.child.patch is not None:
            self.report.has_held_fields |= not isinstance(error, HeldBack)
        self.render_failed = self.render_failed or (error.reason == "RenderFailed" and not only_this_child)
        child_plan.state, child_plan.message = State.FAILED, message
        self.report.add_problem(child_plan.child.id, error.reason, message, error.site)
        return message

    def _state_of(self, child_plan: ChildPlan, object_plan: ObjectPlan, applied: Applied) -> tuple[State, str]:
        child, key = child_plan.child, object_plan.desired.key
        if applied.name_conflict:
            self.report.add_problem(child.id, "ErrResourceExists", applied.name_conflict)
            return State.REFUSED, applied.name_conflict
        if applied.terminating:
            child_plan.blocks_pruning = True
            self.report.add_wait(child.id, f"{key} to be gone", why="deletion")
            return State.TERMINATING, "being deleted, then recreated"
        if applied.conflict_message:
            self.report.add_problem(child.id, "FieldConflict", applied.conflict_message)
        if applied.conflict is not None:
            self.report.conflicts.append(applied.conflict)
        if applied.action is not None:
            return self._state_of_write(child_plan, object_plan, applied.action)
        assert applied.result is not None
        found = self._readiness(object_plan, child, applied.result)
        message = f"{found.message}: {found.detail}" if found.detail and not child.secrecy.holds else found.message
        if found.failed:
            reason = "OnceFailed" if child.runs else "ChildFailed"
            self.report.add_problem(child.id, reason, f"{key.kind}/{key.name}: {message}")
        return (State.READY, "") if found.ready else (State.PROGRESSING, message)

    def _state_of_write(self, child_plan: ChildPlan, object_plan: ObjectPlan, action: Action) -> tuple[State, str]:
        child, key = child_plan.child, object_plan.desired.key
        if self.paused:
            return (
                State.PROGRESSING,
                f"not {'created' if isinstance(action, Create) else 'changed'} while the CR is paused",
            )
        failed = self.history.failure(key) if self.history.writes is not None else None
        if failed is not None and not (isinstance(action, Delete) and failed.failure is Failure.IMMUTABLE):
            held = ""
            if failed.failure is Failure.HELD:
                held = held_by_others(failed, key, child.secrecy, self.owner, self.observed)
            return state_of_failed_write(self.rule, self.report, child_plan, object_plan, failed, held=held)
        if self.history.writes is not None:  # made possible or necessary by this pass's writes; left to the next pass
            self.report.add_wait(child.id, f"{key} to be written", why="write")
        if isinstance(action, Delete):
            return State.PROGRESSING, "will be recreated"
        if isinstance(action, Create):
            return State.PROGRESSING, "about to be created"
        shown = self.predict_status or self.history.writes is not None
        conflict = expected_rejection(child, object_plan) if shown else ""
        expected = f", and the API server is expected to reject that: {conflict}" if conflict else ""
        return State.PROGRESSING, f"about to be changed{expected}"

    def _readiness(self, object_plan: ObjectPlan, child: Child, live: Object) -> Readiness:
        if child.ready_when is None:
            if child.patch is not None:
                return READY
            return readiness(live, object_plan.desired.info.shape)
        try:
            return ready_when(child, object_plan.desired.names, live)
        except RenderError as error:
            forbidden = isinstance(error, Waiting) and error.forbidden
            message = child.secrecy.error(error)
            self.report.add_problem(child.id, "Forbidden" if forbidden else "RenderFailed", message, error.site)
            return Readiness(False, f"readyWhen: {message}")

    # -- all of them ---------------------------------------------------------------------------------------------------

    def actions(self) -> list[Action]:
        """The actions in dependency order, each with the children whose writes it needs."""
        written = self.written()
        found: list[Action] = []
        for child_plan in self.plans.values() if written else ():
            needs = (child_plan.child.mentions & written) - {child_plan.child.id}
            actions = (each.action for each in child_plan.objects if each.action is not None)
            found.extend(replace(action, needs=needs) if needs else action for action in actions)
        return found

    @property
    def complete(self) -> bool:
        """Whether the desired objects of every child are known."""
        return not any(child_plan.incomplete for child_plan in self.plans.values())

    def written(self) -> frozenset[str]:
        return frozenset(id_ for id_, child_plan in self.plans.items() if child_plan.writes)

    def undesired(self) -> list[Existing]:
        """The existing objects that no child desires any more."""
        plans = (child_plan for child_plan in self.plans.values() if child_plan.child.patch is None)
        desired = {object_plan.desired.key for child_plan in plans for object_plan in child_plan.objects}
        if self.rule.has_runs:
            desired |= self.runs.kept()
        return [
            each
            for each in self.existing
            if (each.key not in desired or each.key in self.ending) and not ends_item(self.rule, each)
        ]

    def unreadable(self, ids: Iterable[str]) -> str:
        """The permission that is missing to read these children and observed resources; empty if none is."""
        rule, kinds = self.rule, self.observed.kinds
        for id_ in ids:
            if (observe := rule.observe.get(id_)) is not None:
                for each in (observe, *observe.owners):
                    if kinds.state_of(each) is Served.FORBIDDEN:
                        return self.scope.missing_permission(each)
                continue
            child_plan = self.plans.get(id_)
            if child_plan is not None and child_plan.unreadable:
                return child_plan.unreadable
            if child_plan is not None and child_plan.state is State.UNWANTED:
                continue
            child = rule.children.get(id_) or rule.finalize[id_]
            if forbidden := [kind for kind in child.kinds if kinds.info(kind).state is Served.FORBIDDEN]:
                return missing_list_permission(rule, kinds.info(min(forbidden)), self.owner.namespace)
        return ""

    def in_sync(self) -> list[Desired]:
        """The objects that are in sync, without those whose change failed or is delayed."""
        return [
            each.desired
            for child_plan in self.plans.values()
            for each in child_plan.objects
            if each.applied is not None and each.applied.in_sync
        ]

    def reusable(self) -> Work:
        """The work that the status plan after the writes may reuse."""
        known = [
            child_plan
            for child_plan in self.plans.values()
            if child_plan.child.reads_cr_only and child_plan.objects and not child_plan.incomplete
        ]
        in_sync = [
            each.applied.result
            for child_plan in known
            for each in child_plan.objects
            if each.applied is not None and each.applied.in_sync and each.applied.result is not None
        ]
        rendered = {child_plan.child.id: [each.desired for each in child_plan.objects] for child_plan in known}
        return Work.of(self.rule, self.scope.resource, rendered, in_sync)

    def traced(self, child: str) -> dict[ObjectKey, tuple[Site | None, ...]]:
        """The template's line of each line of the first objects of a child."""
        if (child_plan := self.plans.get(child)) is None:
            return {}
        found: dict[ObjectKey, tuple[Site | None, ...]] = {}
        for each in child_plan.objects:
            if sum(map(len, found.values())) >= MAX_LINES:
                break
            found[each.desired.key] = line_sites(child_plan.child, each.desired)
        return found

    def rendered(self) -> tuple[tuple[str, str, Object], ...]:
        return tuple(
            (child_plan.child.id, source_of(child_plan.child), object_plan.desired.rendered)
            for child_plan in self.plans.values()
            for object_plan in child_plan.objects
        )


def _items_error(title: str, first: ChildFails, failed: int) -> ChildFails:
    """One failure for all failed items of a `forEach`: there may be thousands with the same cause. A missing permission
    is reported without an item. `title`: of the first one."""
    if first.reason not in {"RenderFailed", "OnceFailed"}:
        return first
    which = f"{title} (and {failed - 1} more)" if failed > 1 else title
    return ChildFails(
        f"{which}: {first.message}", first.site, reason=first.reason, redacted=f"{which}: {first.redacted}"
    )
