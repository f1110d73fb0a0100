"""Plans the end of items: children of `finalize` with `forEachOf` are made for an item that the child no longer has, or
whose CR is deleted. The item's object stays until they are ready, and they go when it is gone.

The beginning of an end is as final as a deletion, so both happen under the same conditions: `plan_ends` gets the
deletions that a pass would make, and gives back those that may be made now.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from ruleop.planning.child.existing import Ending
from ruleop.planning.child.kinds.item_end import ends_item, skip_reason
from ruleop.planning.model.actions import Action, Create, Delete, State
from ruleop.planning.model.marks import SKIP_FINALIZE, item_on
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import ObjectKey
    from ruleop.language.rules import Rule
    from ruleop.planning.child.child_plan import ObjectPlan
    from ruleop.planning.child.children import Children
    from ruleop.planning.child.existing import Existing
    from ruleop.planning.model.marks import ItemRecord


@dataclass(slots=True)
class Ends:
    writes: list[Action] = field(default_factory=list)
    deletions: list[Action] = field(default_factory=list)
    held: dict[ObjectKey, str] = field(default_factory=dict)  # why an object of an item cannot be deleted yet


def plan_ends(children: Children, deletions: Sequence[Action]) -> Ends:
    """The steps of all ends in this pass, given the deletions and releases that it would make otherwise."""
    rule, ends = children.rule, Ends()
    going = {action.key: action for action in deletions if isinstance(action, Delete) and _has_end(rule, action)}
    others = [action for action in deletions if action.key not in going]
    if skip_reason(children.scope.resource, children.observed):
        ends.deletions += [*others, *(replace(action, why="skipped") for action in going.values())]
        ends.deletions += (
            _removal(each) for each in children.existing if ends_item(rule, each) and not each.terminating
        )
        return ends
    plans = children.plans.values() if going else ()
    desired = {each.desired.item for found in plans for each in found.objects}
    for key, action in going.items():
        if key not in children.ending and (problem := _begin(children, action, desired)):
            children.report.add_problem(action.child, "ChildFailed", problem)
            ends.held[key] = problem
    written = children.written()
    children.plan_all(rule.item_ends)
    planned: dict[ObjectKey, list[ObjectPlan]] = {key: [] for key in children.ending}
    for id_ in (child.id for child in rule.item_ends):
        if children.plans[id_].state is State.UNWANTED:  # of all items: the cluster does not serve its kind
            for ending in children.ending.values():
                ending.decided.add(id_)
        for each in children.plans[id_].objects:
            assert each.desired.item is not None
            assert each.desired.item.ends is not None
            planned[each.desired.item.ends].append(each)
            if each.action is not None:
                begins = isinstance(each.action, Create)
                ends.writes.append(replace(each.action, needs=written) if begins else each.action)
    exists = {each.key for each in children.existing}
    for key, ending in children.ending.items():
        if key in exists and (awaited := _awaited(rule, ending, planned[key])):
            ends.held[key] = awaited
    ends.deletions += [*others, *(action for key, action in going.items() if key not in ends.held)]
    ends.deletions += _removals(children, planned, exists)
    for id_ in (child.id for child in rule.item_ends):
        if not children.plans[id_].objects and children.plans[id_].ready:
            del children.plans[id_]  # nothing to report of it
    return ends


def _has_end(rule: Rule, action: Delete) -> bool:
    child = rule.children.get(action.child)
    return child is not None and bool(child.ended_by)


def _begin(children: Children, action: Delete, desired: Container[ItemRecord | None]) -> str:
    """Begins the end of the object's item, unless an equal item is still desired. Returns why that is impossible."""
    record = item_on(action.live, action.key, children.owner)
    if record is None or record.ends is not None or record.child != action.child:
        return (
            f"the item of {action.key} is not recorded on it, so it cannot be ended: delete the object, or set the "
            f"annotation {SKIP_FINALIZE}"
        )
    if record not in desired:
        children.ending[action.key] = Ending(replace(record, ends=action.key))
    return ""


def _awaited(rule: Rule, ending: Ending, planned: Sequence[ObjectPlan]) -> str:
    """A message about what the end of an item waits for; empty if nothing is left to do."""
    for each in planned:
        if each.state is not State.READY:
            return f"{each.desired.key} is not ready"
    undecided = [id_ for id_ in rule.children[ending.record.child].ended_by if id_ not in ending.decided]
    return f"{undecided[0]} is not rendered" if undecided else ""


def _removals(
    children: Children, planned: Mapping[ObjectKey, Sequence[ObjectPlan]], exists: Container[ObjectKey]
) -> Iterator[Delete]:
    """Deletes the objects that have ended items whose objects are gone, and those that are not part of an end."""
    rule = children.rule
    for key, ending in children.ending.items():
        states = {each.desired.key: each.state for each in planned[key]}
        for each in ending.made:
            done = key not in exists and states.get(each.key) is State.READY
            if not each.terminating and each.child in ending.decided and (done or each.key not in states):
                yield _removal(each)
    known = {each.key for ending in children.ending.values() for each in ending.made}
    known |= {each.desired.key for found in planned.values() for each in found}
    for each in children.existing:
        if ends_item(rule, each) and not each.terminating and each.key not in known:
            yield _removal(each)


def _removal(each: Existing) -> Delete:
    """It depends on no write of this pass: the item's next object waits for it, and others may wait for that."""
    return Delete(each.key, each.child, each.live, "finalized", after_writes=False)
