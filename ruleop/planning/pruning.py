"""What is ours and no longer wanted.

Deleting is the one thing that cannot be taken back, so it happens only when everything is known: no error in this pass, nothing waiting that the object
might belong to, and not in the first seconds after the rules changed. Each deletion names uid and resourceVersion, and is done after a live read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.planning.actions import Action, Delete
from ruleop.planning.apply import release
from ruleop.planning.wanted import deletion_policy

if TYPE_CHECKING:
    from ruleop.planning.children import Children, Existing


def prune(children: Children) -> list[Action]:
    if children.problems or not children.observed.may_prune or children.observed.failed:
        return []
    wanted = {wanted.key for planned in children.planned.values() for wanted, _, _ in planned.wanted}
    spared = {id_ for id_, planned in children.planned.items() if planned.spares}
    finals = set(children.rule.finalize)
    everything = frozenset(children.planned)
    found: list[Action] = []
    for each in children.existing:
        if each.key in wanted or each.child in spared or each.child in finals or (spared and not each.child):
            continue
        if each.live["metadata"].get("deletionTimestamp"):
            continue
        if stays(children, each):
            found.append(release(each.child, each.live, each.key, children.owner))
        else:
            child = children.rule.children.get(each.child)
            found.append(Delete(each.key, each.child, each.live, "pruned", child.propagation if child else "background", everything))
    return found


def stays(children: Children, each: Existing) -> bool:
    """Whether the object is left when it is no longer wanted. The rule that says so may be gone; then the object's own mark counts."""
    child = children.rule.children.get(each.child)
    if child is not None and child.for_each is None:
        policy = deletion_policy(child, children.scope.names)
        if policy is not None:
            return policy == "orphan"
    return each.claim.orphan
