"""Deletes or releases owned objects that are no longer desired.

A deletion cannot be reverted, so an object is pruned only if this pass has no error and no child waits that the object
might belong to. In the first seconds after a change of the rules, deletions are delayed, and the CR is reconciling
until they are done. Each deletion has uid and resourceVersion as preconditions and follows a live read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ruleop.core.planning.child.apply import release
from ruleop.core.planning.child.deletion_order import awaited_by, order_is_skipped
from ruleop.core.planning.child.field_patches import release_fields
from ruleop.core.planning.model.actions import Action, Delete
from ruleop.core.planning.rendering.desired import deletion_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.core.planning.child.child_plan import Existing
    from ruleop.core.planning.child.children import Children
    from ruleop.core.planning.child.field_patches import PatchedObject
    from ruleop.core.planning.model.actions import Problem
    from ruleop.core.rules import Child, Rule

HARMLESS = frozenset({"ChildFailed", "FieldConflict", "OnceFailed"})
"""Reasons of problems that do not stop pruning: all desired objects are known and written."""


def _has_no_errors(problems: Iterable[Problem]) -> bool:
    return all(problem.reason in HARMLESS for problem in problems)


def prune(children: Children, undesired: list[Existing]) -> list[Action]:
    """`undesired`: the existing objects that are no longer desired. Fields of objects of others that no child sets any
    more are released with them."""
    if not _has_no_errors(children.report.problems):
        return []
    incomplete = [child_plan.child for child_plan in children.plans.values() if child_plan.blocks_pruning]
    needs = children.written()
    given_up = list(_given_up(children))
    awaited = awaited_by(children, undesired, given_up)
    is_skipped = bool(awaited and order_is_skipped(children))
    found: list[Action] = []
    for each in _dependents_first(children.rule, undesired):
        if each.key not in children.ending and _may_belong_to(each, incomplete, children.rule):
            continue
        if is_orphan(children, each):
            found.append(release(each.child, each.live, each.key, children.owner, needs=needs))
        elif (why_not := awaited.get((each.key, each.child))) is not None and not is_skipped:
            children.report.add_wait(each.child, f"{each.key} to be deleted: {why_not}", why="deletion")
        elif not each.terminating:
            child = children.rule.children.get(each.child)
            why: Literal["pruned", "unordered"] = "unordered" if why_not is not None else "pruned"
            found.append(
                Delete(each.key, each.child, each.live, why, child.propagation if child else "background", needs)
            )
    for fields in given_up:
        if (why_not := awaited.get((fields.key, fields.child))) is not None and not is_skipped:
            wait = f"the fields of {fields.key} to be released: {why_not}"
            children.report.add_wait(fields.child, wait, why="deletion")
        else:
            found.append(release_fields(fields, needs=needs))
    return found


def _given_up(children: Children) -> Iterator[PatchedObject]:
    """The fields of objects of others that no child sets any more. As with objects, not while some desired fields are
    unknown."""
    incomplete = [child_plan.child for child_plan in children.plans.values() if child_plan.incomplete]
    for each in children.patched:
        child_plan = children.plans.get(each.child)
        desired = child_plan.objects if child_plan is not None and child_plan.child.patch is not None else ()
        is_desired = each.manager == children.manager(each.child, each.key) and any(
            each.key == object_plan.desired.key for object_plan in desired
        )
        if not is_desired and not _may_belong_to(each, incomplete, children.rule):
            yield each


def held_back(pruned: Sequence[Action], until: str) -> str:
    """A condition message about delayed deletions. It may contain the deadline, which does not change until the next
    edit of the rules."""
    deleted = sum(isinstance(action, Delete) for action in pruned)
    counts = [(deleted, "deleted"), (len(pruned) - deleted, "released")]
    parts = [f"{count} object{'s' if count > 1 else ''} will be {word}" for count, word in counts if count]
    return "; ".join([*parts, deadline(until)])


def deadline(until: str) -> str:
    return f"held back until {until[11:19]} UTC"


def _may_belong_to(each: Existing | PatchedObject, incomplete: list[Child], rule: Rule) -> bool:
    """Whether the object may belong to one of the `incomplete` children, whose objects are not all known in this pass.

    An object without a record may belong to any child. An object with an unknown id may belong to a renamed child: the
    new id is recorded when that child is rendered.
    """
    if not each.child or not incomplete:
        return bool(incomplete)
    if each.child in rule.children or each.child in rule.finalize:
        return any(child.id == each.child for child in incomplete)
    return any(kind.versionless == each.key.group_kind for child in incomplete for kind in child.kinds)


def _dependents_first(rule: Rule, existing: list[Existing]) -> list[Existing]:
    """Objects of removed children first, then the others in reverse dependency order."""
    place = {id_: -number for number, id_ in enumerate(rule.order)}
    return sorted(existing, key=lambda each: (place.get(each.child, -len(place)), each.key))


def is_orphan(children: Children, each: Existing) -> bool:
    """Whether the object is released instead of deleted. If its child is no longer in the rules, the annotation on the
    object decides."""
    child = children.rule.children.get(each.child) or children.rule.finalize.get(each.child)
    if child is not None and not child.for_each and not each.claim.kept:
        policy = deletion_policy(child, children.scope.names)
        if policy is not None:
            return policy == "orphan"
    return each.claim.orphan
