"""The order of deletions: an object is deleted when those are gone that `deletionOrder` and `deleteAfter` put before
it. Fields of an object of somebody else are released in the same order.

Only objects that are to be deleted or released count: a child that stays does not keep another one alive. A Namespace
also waits for the objects in it. Objects that may have to wait have no ownerReference, because the garbage collector
follows no order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.kinds import NAMESPACE_KIND
from ruleop.planning.child.existing import Existing
from ruleop.planning.model.marks import SKIP_ORDER, annotations_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.kubernetes.kinds import ObjectKey
    from ruleop.language.rules import Child, Rule
    from ruleop.planning.child.children import Children
    from ruleop.planning.child.field_patches import PatchedObject


def in_order(children: Children) -> Iterator[Existing]:
    """The existing objects that ruleop deletes before their CR is gone: those that wait, and those awaited."""
    rule = children.rule
    waiting = [child for child in rule.children.values() if child.deletion.in_order]
    awaited = frozenset[str]().union(*(child.deletion.after for child in waiting))
    for each in children.existing:
        child = rule.children.get(each.child)
        if child is not None and (rule.order.deletion == "reverse" or child.deletion.in_order or child.id in awaited):
            yield each


def order_is_skipped(children: Children) -> bool:
    """Whether a person has given up on the order, or the deletion of the namespace does not follow it anyway."""
    given_up = annotations_of(children.scope.resource).get(SKIP_ORDER) == "true"
    return given_up or children.observed.namespace_terminating


def releases_in_order(rule: Rule, each: PatchedObject) -> bool:
    """Whether something is deleted after these fields are released, or before. Others are released last."""
    child = rule.children.get(each.child)
    return child is not None and bool(
        child.deletion.after or any(child.id in other.deletion.after for other in rule.children.values())
    )


def awaited_by(
    children: Children, leaving: Sequence[Existing], released: Sequence[PatchedObject]
) -> dict[tuple[ObjectKey, str], str]:
    """The reason that an object which is to be deleted has to wait, or fields that are to be released, by the object
    and its child."""
    rule = children.rule
    by_child: dict[str, Existing | PatchedObject] = {}
    by_namespace: dict[str, list[Existing]] = {}
    for each in leaving:
        by_namespace.setdefault(each.key.namespace, []).append(each)
    everything: list[Existing | PatchedObject] = [*leaving, *released]
    for one in everything:
        by_child.setdefault(one.child, one)
    found: dict[tuple[ObjectKey, str], str] = {}
    for one in everything:
        child = rule.children.get(one.child)
        if child is None:
            continue
        before = [by_child[id_] for id_ in sorted(child.deletion.after) if id_ in by_child]
        if (
            child.deletion.in_order
            and rule.order.deletion == "reverse"
            and one.key.group_kind == NAMESPACE_KIND.versionless
        ):
            before.extend(_inside(children, child, by_namespace.get(one.key.name, ())))
        if before:
            found[one.key, one.child] = still_there(before[0])
        elif unread := children.unreadable(sorted(child.deletion.after)):
            found[one.key, one.child] = unread
    return found


def _inside(children: Children, namespace: Child, objects: Iterable[Existing]) -> Iterator[Existing]:
    """The objects in a Namespace that do not themselves wait for it."""
    for each in objects:
        child = children.rule.children.get(each.child)
        if child is None or namespace.id not in child.deletion.after:
            yield each


def still_there(each: Existing | PatchedObject) -> str:
    """A message about an object that is not gone yet, with the finalizers that hold it; or about its fields."""
    if not isinstance(each, Existing):
        return f"the fields of {each.key} are not released yet"
    finalizers = ", ".join(map(str, each.live["metadata"].get("finalizers") or ())) if each.terminating else ""
    return f"{each.key} is still there" + (f", held by its finalizer {finalizers}" if finalizers else "")
