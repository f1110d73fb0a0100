"""Plans the children of one CR: renders each, compares it with the live objects, and determines its state.

Children are planned in dependency order, so that the values that a child reads are known before it is rendered. If a
child waits or fails, its existing objects stay as they are, and children that do not depend on it are still planned.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ruleop.errors import RenderError
from ruleop.kubernetes.kinds import NAMESPACE_KIND, ObjectKey, version_of
from ruleop.language.templates import Disabled, Origin
from ruleop.language.templates.values.cost import Exhausted
from ruleop.planning.child.child_plan import ChildPlan, ObjectPlan, PassContext, ready_when
from ruleop.planning.child.existing import existing_view, select_shown
from ruleop.planning.child.kinds import plan_class
from ruleop.planning.child.kinds.item_end import begun, ends_item, waits
from ruleop.planning.child.kinds.run_records import NO_RECORDS, Records
from ruleop.planning.child.readiness import readiness
from ruleop.planning.model.actions import Action, Create, State
from ruleop.planning.model.observed import Served
from ruleop.planning.model.rule_permissions import missing_list_permission
from ruleop.planning.rendering.child_field_sites import MAX_LINES, line_sites
from ruleop.planning.rendering.desired import Desired, render
from ruleop.planning.rendering.items import MAX_OBJECTS, LoopItem
from ruleop.planning.rendering.synced import Settled, SettledObject, SettledObjects
from ruleop.planning.rendering.unplanned import ChildFails, ChildWaits, Unlisted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.language.rules import Child
    from ruleop.planning.child.existing import Existing

NO_KEYS: Final[Mapping[str, ObjectKey]] = MappingProxyType({})


class Children:
    def __init__(self, context: PassContext, desired_keys: Mapping[str, ObjectKey] = NO_KEYS) -> None:
        """`desired_keys`: the keys of children with one object, as far as another plan of this pass has shown them."""
        self.context = context
        self.scope, self.history, self.report = context.scope, context.history, context.report
        self.rule, self.observed, self.ending = context.scope.rule, context.scope.observed, context.ending
        self.existing, self.patched, self.owner = context.existing, context.patched, context.owner
        rule, owner, scope = self.rule, self.owner, self.scope
        if rule.item_ends:
            self.ending.update(begun(self.existing, rule, owner, scope))
        self.plans: dict[str, ChildPlan] = {}
        self.ended_by = waits(self.ending) if self.ending else {}
        self._shown: dict[str, list[Existing]] = {}  # the objects that templates can read as this child
        self._by_key: dict[ObjectKey, tuple[ChildPlan, ObjectPlan]] = {}
        for each in self.existing:
            context.by_id.setdefault(each.child, []).append(each)
        for child in rule.every_child:
            if known := context.by_id.get(child.id):
                self._shown[child.id] = select_shown(rule, owner, child, known, desired_keys.get(child.id))
            if child.many or child.id in self._shown:
                scope.live[child.id] = existing_view(child, self._shown.get(child.id, []), Origin.LIVE)
        for observe in rule.observe.values():
            if (owned_by := observe.owned_by) is not None:
                scope.existing[owned_by.child] = [each.live for each in self._shown.get(owned_by.child, ())]

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
            existing = self.context.by_id.get(child.id, ())
            if not child.many and len(existing) > 1:  # several claim to be this child: one has the rendered key
                with contextlib.suppress(ChildWaits, ChildFails):
                    for desired in render(child, self.scope, self.scope.names, 0):
                        self._shown[child.id] = select_shown(self.rule, self.owner, child, existing, desired.key)
            self.scope.names[child.id] = existing_view(child, self._shown.get(child.id, []), Origin.LATER)
            self.scope.ready[child.id] = self._is_ready(child)

    def _is_ready(self, child: Child) -> bool:
        existing = self._shown.get(child.id, [])
        if child.ready_when is None or child.has_items:  # the value of `item` is unknown
            return bool(existing) and all(readiness(each.live).ready for each in existing)
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
            for child_plan, object_plan, wait in self._waits_for_namespaces():
                object_plan.stop(State.WAITING, wait.for_what)
                child_plan.message = ""
                child_plan.add_wait(wait)

    def _plan_child(self, child: Child) -> None:
        child_plan = self.plans[child.id] = plan_class(type(child.form))(child, self.context)
        desired: list[Desired] | None = None
        try:
            if child.optional and not self._serves(child):
                child_plan.message = "the cluster does not serve its kind"
            elif (items := child_plan.items()) is not None:
                desired = self._desired_of_items(child_plan, items)
            else:
                desired = child_plan.desired(LoopItem(0, self.scope.names))
            if desired is None:
                child_plan.state = State.UNWANTED
            for each in desired or ():
                self._plan_object(child_plan, each)
        except ChildWaits as wait:
            child_plan.incomplete = True
            child_plan.add_wait(wait)
        except ChildFails as error:
            child_plan.incomplete = True
            child_plan.add_failure(error)
        except Exhausted as limit:
            child_plan.incomplete = True
            child_plan.add_failure(ChildFails(limit.reason, child.body.site, limit=True))
        child_plan.settle()
        is_undesired = child_plan.state is State.UNWANTED
        shown = self._shown.get(child.id, [])
        self.scope.names[child.id] = Disabled(child.id) if is_undesired else child_plan.view(shown)
        # As with dependsOn, an undesired child does not block others.
        self.scope.ready[child.id] = child_plan.ready or is_undesired

    def _serves(self, child: Child) -> bool:
        """Whether the cluster serves each kind that the child can have, in one of the versions that it can have."""
        served = [kind for kind in child.kinds if self.observed.kinds.info(kind).state is not Served.UNSERVED]
        return {kind.versionless for kind in served} == {kind.versionless for kind in child.kinds}

    def _desired_of_items(self, child_plan: ChildPlan, items: Iterable[LoopItem]) -> list[Desired]:
        """An item that waits or fails does not delay other items."""
        found: list[Desired] = []
        failed: list[tuple[LoopItem, ChildFails]] = []
        for item in items:
            try:
                found += child_plan.desired(item) or ()
            except ChildWaits as wait:
                child_plan.incomplete = True
                child_plan.unrendered.append(item.names)
                child_plan.add_wait(wait)
            except ChildFails as error:
                if error.limit:
                    raise
                child_plan.incomplete = True
                child_plan.unrendered.append(item.names)
                failed.append((item, error))
        for failure in child_plan.failures(failed) if failed else ():
            child_plan.add_failure(failure, only_this_child=True)
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
            applied = child_plan.decide(object_plan)
            if desired.key in self.history.drift:
                applied = child_plan.with_field_conflict(desired, applied)
            if applied.action is not None and (child.inputs.mentions or child.depends_on):
                self._check_dependencies(child_plan, applied.action)
            object_plan.applied = applied
        except ChildWaits as wait:
            object_plan.stop(State.WAITING, wait.for_what)
            child_plan.add_wait(wait)
        except Unlisted:
            child_plan.unreadable = missing_list_permission(self.rule, desired.info, desired.key.namespace)
            error = ChildFails(child_plan.unreadable, child.body.site, reason="Forbidden")
            object_plan.stop(State.FAILED, child_plan.add_failure(error))
        except ChildFails as error:
            if error.limit:
                raise
            if error.fields:
                error.site = child_plan.site_of(desired, error.fields)
            object_plan.stop(State.FAILED, child_plan.add_failure(error, only_this_child=child.has_items))

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
        redacted = f"a {key.kind} is rendered twice, {by}"
        message = child_plan.add_failure(
            ChildFails(f"{key} is rendered twice, {by}", child.body.site, redacted=redacted),
            only_this_child=child.has_items or holder.child.has_items,
        )
        object_plan.stop(State.FAILED, message)
        other.stop(State.FAILED, message)
        holder.blocks_pruning = True
        holder.message = holder.message or message
        holder.state = State.FAILED
        self.scope.ready[holder.child.id] = False

    def _check_dependencies(self, child_plan: ChildPlan, action: Action) -> None:
        child, needs_ready = child_plan.child, child_plan.needs_ready(action)
        for id_, other in self.plans.items():
            if id_ in child.inputs.mentions and id_ != child.id and other.state in {State.FAILED, State.REFUSED}:
                raise ChildWaits(f"{id_} to be written", why="child")
            if id_ in child.depends_on and needs_ready and not (other.ready or other.state is State.UNWANTED):
                raise ChildWaits(f"{id_} to be ready", why="child")

    def _waits_for_namespaces(self) -> Iterator[tuple[ChildPlan, ObjectPlan, ChildWaits]]:
        """The objects that are to be created in a Namespace that is itself a child, until that Namespace is ready.
        While the names of some of these Namespaces are unknown, because they wait or cannot be rendered, any other
        namespace than the CR's and those that exist may be one of them. One whose fields are patched is somebody
        else's."""
        group_kind = NAMESPACE_KIND.versionless
        makers = [each for each in self.plans.values() if each.owns]
        found: dict[str, tuple[ChildPlan, ObjectPlan]] = {}
        for child_plan in makers:
            for object_plan in child_plan.objects:
                if object_plan.desired.key.group_kind == group_kind:
                    found.setdefault(object_plan.desired.key.name, (child_plan, object_plan))
        unknown = [
            each.child.id
            for each in makers
            if each.incomplete and any(kind.versionless == group_kind for kind in each.child.kinds)
        ]
        if not found and not unknown:
            return
        known = {self.owner.namespace, *(each.key.name for each in self.existing if each.key.group_kind == group_kind)}
        for child_plan in self.plans.values():
            for object_plan in child_plan.objects:
                name = object_plan.desired.key.namespace
                if not name or not isinstance(object_plan.action, Create):
                    continue
                if name in found:
                    holder, namespace = found[name]
                    if namespace.state is not State.READY:
                        yield child_plan, object_plan, ChildWaits(f"{holder.child.id} to be ready", why="child")
                elif unknown and name not in known:
                    yield child_plan, object_plan, ChildWaits(f"{unknown[0]} to be written", why="child")

    # -- all of them ---------------------------------------------------------------------------------------------------

    def actions(self) -> list[Action]:
        """The actions in dependency order, each with the children whose writes it needs."""
        written = self.written()
        found: list[Action] = []
        for child_plan in self.plans.values() if written else ():
            needs = (child_plan.child.inputs.mentions & written) - {child_plan.child.id}
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
        plans = self.plans.values()
        desired = {each.desired.key for child_plan in plans if child_plan.owns for each in child_plan.objects}
        for child_plan in plans if self.rule.runs else ():
            desired |= child_plan.kept()
        return [
            each
            for each in self.existing
            if (each.key not in desired or each.key in self.ending) and not ends_item(self.rule, each)
        ]

    def records(self) -> Records:
        """The record of the runs of all children, planned or not."""
        if not self.rule.runs:
            return NO_RECORDS
        plans = [
            self.plans.get(child.id) or plan_class(type(child.form))(child, self.context) for child in self.rule.runs
        ]
        found = {each.child.id: record for each in plans if (record := each.record()) is not None}
        return Records(
            {id_: record.entries for id_, record in found.items()},
            [(id_, record.skipped) for id_, record in found.items() if record.skipped],
            any(record.prunes_next for record in found.values()),
        )

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

    def settled(self) -> Settled:
        """The objects of steady children, for the next plan. An object that is rendered twice has to be found again."""
        known, found = self.context.settled, dict[str, SettledObjects]()
        for id_, child_plan in self.plans.items():
            if child_plan.child.inputs.steady and child_plan.objects and not child_plan.incomplete:
                before = known.children.get(id_, {})
                objects = {
                    each.desired.key: _settled(each, before.get(each.desired.key)) for each in child_plan.objects
                }
                if len(objects) == len(child_plan.objects):
                    found[id_] = objects
        return known.with_children(found)

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


def _settled(object_plan: ObjectPlan, known: SettledObject | None) -> SettledObject:
    desired, applied = object_plan.desired, object_plan.applied
    live = applied.result if applied is not None and applied.in_sync and object_plan.references_owner else None
    if live is not None and known is not None and known.version == version_of(live):
        return known
    found = SettledObject(desired.info, desired.orphan, desired.recreate)
    return found if live is None else found.in_sync_as(live)
