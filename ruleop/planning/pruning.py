"""What is ours and no longer wanted.

Deleting is the one thing that cannot be taken back, so it happens only when everything is known: no error in this pass,
nothing waiting that the object might belong to, and not in the first seconds after the rules changed: it is held back
then, and the CR is reconciling until it is done. Each deletion names uid and resourceVersion, and is done after a live
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.planning.actions import Action, Delete
from ruleop.planning.apply import release
from ruleop.planning.desired import deletion_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ruleop.planning.actions import Problem
    from ruleop.planning.child_plan import Existing
    from ruleop.planning.children import Children
    from ruleop.rules import Child, Rule

HARMLESS = frozenset({"ChildFailed", "FieldConflict"})
"""Problems that are no error of rendering or applying: all that is wanted is known, and written."""


def _all_is_known(problems: Iterable[Problem]) -> bool:
    return all(problem.reason in HARMLESS for problem in problems)


def prune(children: Children) -> list[Action]:
    desired = {object_plan.desired.key for child_plan in children.plans.values() for object_plan in child_plan.objects}
    undesired = [each for each in children.existing if each.key not in desired]
    if not undesired or not _all_is_known(children.report.problems):
        return []
    incomplete = [child_plan.child for child_plan in children.plans.values() if child_plan.blocks_pruning]
    needs = children.written()
    found: list[Action] = []
    for each in _dependents_first(children.rule, undesired):
        if _may_belong_to(each, incomplete, children.rule):
            continue
        if is_orphan(children, each):
            found.append(release(each.child, each.live, each.key, children.owner, needs=needs))
        elif not each.terminating:
            child = children.rule.children.get(each.child)
            found.append(
                Delete(each.key, each.child, each.live, "pruned", child.propagation if child else "background", needs)
            )
    return found


def held_back(pruned: Sequence[Action], until: str) -> str:
    """What is not deleted yet, for a condition. The deadline is the one time that a message holds: it is fixed by the
    edit of the rules."""
    deleted = sum(isinstance(action, Delete) for action in pruned)
    counts = [(deleted, "deleted"), (len(pruned) - deleted, "released")]
    parts = [f"{count} object{'s' if count > 1 else ''} will be {word}" for count, word in counts if count]
    return "; ".join([*parts, deadline(until)])


def deadline(until: str) -> str:
    return f"held back until {until[11:19]} UTC"


def _may_belong_to(each: Existing, incomplete: list[Child], rule: Rule) -> bool:
    """Whether the object may belong to a child of which not all is known in this pass (those in `spare`). One without a
    record may be anybody's, and one whose id the rules do not know that of a renamed child: the new id is recorded when
    it is rendered."""
    if not each.child or not incomplete:
        return bool(incomplete)
    if each.child in rule.children or each.child in rule.finalize:
        return any(child.id == each.child for child in incomplete)
    return any(kind.versionless == each.key.group_kind for child in incomplete for kind in child.kinds)


def _dependents_first(rule: Rule, existing: list[Existing]) -> list[Existing]:
    """What the rules do not know any more, then children against the order in which they are made."""
    place = {id_: -number for number, id_ in enumerate(rule.order)}
    return sorted(existing, key=lambda each: (place.get(each.child, -len(place)), each.key))


def is_orphan(children: Children, each: Existing) -> bool:
    """Whether the object is left when it is no longer wanted. The rule that says so may be gone; then the object's own
    mark counts."""
    child = children.rule.children.get(each.child) or children.rule.finalize.get(each.child)
    if child is not None and child.for_each is None and not each.claim.kept:
        policy = deletion_policy(child, children.scope.names)
        if policy is not None:
            return policy == "orphan"
    return each.claim.orphan
