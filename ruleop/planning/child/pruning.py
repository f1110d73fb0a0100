"""Deletes or releases owned objects that are no longer desired.

A deletion cannot be reverted, so an object is deleted only if nothing that went wrong could make that wrong: its own
child is known and written, and no other child of its kind may desire it. Errors elsewhere do not count: a user who
is taken off a list loses the object that gave access, whatever else of the CR fails. What is held back is reported.

In the first seconds after a change of the rules, deletions are delayed, and the CR is reconciling until they are done.
Each deletion has uid and resourceVersion as preconditions and follows a live read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import NAMESPACE_KIND, Kind
from ruleop.language.templates import Tree
from ruleop.language.templates.values.cost import Exhausted
from ruleop.planning.child.existing import Existing, release
from ruleop.planning.child.field_patches import release_fields
from ruleop.planning.model.actions import Action, Create, Delete, HeldDeletion, State
from ruleop.planning.model.marks import SKIP_ORDER, annotations_of
from ruleop.planning.rendering.desired import deletion_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ruleop.kubernetes.kinds import GroupKind, ObjectKey
    from ruleop.language.rules import Child, Rule
    from ruleop.language.templates import TextTemplate
    from ruleop.planning.child.child_plan import ChildPlan
    from ruleop.planning.child.children import Children
    from ruleop.planning.child.field_patches import PatchedObject


# -- deletion order ----------------------------------------------------------------------------------------------------
#
# The order of deletions: an object is deleted when those are gone that `deletionOrder` and `deleteAfter` put before it.
# Fields of an object of somebody else are released in the same order.
#
# Only objects that are to be deleted or released count: a child that stays does not keep another one alive. A Namespace
# also waits for the objects in it. Objects that may have to wait have no ownerReference, because the garbage collector
# follows no order.


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


# -- pruning -----------------------------------------------------------------------------------------------------------


HARMLESS: Final = frozenset({"ChildFailed", "FieldConflict", "OnceFailed"})
"""Reasons of problems of a child with `patch` that hold nothing back: all objects whose fields it sets are known."""

HELD_BACK: Final = "held back"
MAX_CAUSES: Final = 4


class Risk(NamedTuple):
    """A reason that a deletion could be wrong."""

    why: str
    is_error: bool
    is_reported: bool = True  # False: the object may well be desired


def prune(children: Children, undesired: list[Existing]) -> list[Action]:
    """`undesired`: the existing objects that are no longer desired, as far as that is known. With them the fields of
    objects of others are released that no child sets any more."""
    known, patches = _Known(children), _Known(children, patches=True)
    given_up = list(_given_up(children))
    awaited = awaited_by(children, undesired, given_up)
    is_skipped = bool(awaited and order_is_skipped(children))
    found: list[Action] = []
    for each in _dependents_first(children.rule, undesired):
        is_released = is_orphan(children, each)
        risk = known.risk(each) if each.key not in children.ending else None
        needs = known.needs(each)
        if risk is not None:
            _hold(children, each, risk, "release" if is_released else "deletion")
        elif is_released:
            found.append(release(each.child, each.live, each.key, children.owner, needs=needs))
        elif (why_not := awaited.get((each.key, each.child))) is not None and not is_skipped:
            children.report.add_wait(each.child, f"{each.key} to be deleted: {why_not}", why="deletion")
        elif not each.terminating:
            why: Literal["pruned", "unordered"] = "unordered" if why_not is not None else "pruned"
            found.append(Delete(each.key, each.child, each.live, why, needs))
    for fields in given_up:
        if (risk := patches.risk(fields)) is not None:
            _hold(children, fields, risk, "release")
        elif (why_not := awaited.get((fields.key, fields.child))) is not None and not is_skipped:
            wait = f"the fields of {fields.key} to be released: {why_not}"
            children.report.add_wait(fields.child, wait, why="deletion")
        else:
            found.append(release_fields(fields, needs=patches.needs(fields)))
    return found


def _given_up(children: Children) -> Iterator[PatchedObject]:
    """The fields of objects of others that no child sets any more, as far as that is known."""
    for each in children.patched:
        child_plan = children.plans.get(each.child)
        desired = child_plan.objects if child_plan is not None and not child_plan.owns else ()
        is_desired = each.manager == children.context.manager(each.child, each.key) and any(
            each.key == object_plan.desired.key for object_plan in desired
        )
        if not is_desired:
            yield each


def _hold(children: Children, each: Existing | PatchedObject, risk: Risk, verb: Literal["deletion", "release"]) -> None:
    if risk.is_reported:
        children.report.held.append(HeldDeletion(each.key, each.child, verb, risk.why, risk.is_error))


class _Knowledge:
    """The knowledge about the desired objects of one child."""

    def __init__(self, children: Children, plan: ChildPlan) -> None:
        self.children, self.plan = children, plan

    def own_risk(self, each: Existing | PatchedObject) -> Risk | None:
        plan, found = self.plan, self.risk
        if found is None or not plan.incomplete:
            return found
        if self.possible is None:  # of a list, some are still known to be desired
            return found if plan.child.has_items and plan.owns else found._replace(is_reported=False)
        return found._replace(is_reported=(each.key.group_kind, each.key.name) not in self.possible)

    def rival_risk(self, each: Existing | PatchedObject) -> Risk | None:
        """Another child that may desire the object, as its objects are not all known."""
        if not self.plan.incomplete and not self.unread:
            return None
        if self.possible is not None and (each.key.group_kind, each.key.name) not in self.possible:
            return None
        return self.risk._replace(is_reported=self.possible is None) if self.risk is not None else None

    @cached_property
    def risk(self) -> Risk | None:
        """The reason that not all desired objects of the child are known and written."""
        children, plan, id_ = self.children, self.plan, self.plan.child.id
        problems = [each for each in children.report.problems if each.child == id_]
        by_error = Risk(f"by an error of {id_}", is_error=True)
        is_blocked = plan.blocks_pruning
        if not plan.owns:  # what others hold, or what does not exist yet, decides about its own object only
            is_blocked = not all(each.reason in HARMLESS for each in problems)
        if plan.incomplete or is_blocked or plan.state is State.REFUSED:
            return by_error if problems else Risk(f"while {id_} waits", is_error=False)
        writes = children.history.writes
        for each in plan.objects if plan.writes else ():
            if writes is not None and each.desired.key in writes.failed:
                return by_error
            is_undone = writes is not None and each.desired.key in writes.undone
            if is_undone or (children.context.render_failed and isinstance(each.action, Create)):
                return Risk(f"until {id_} is written", is_error=True)
        return Risk(f"by what {id_} reads: {self.unread}", is_error=True) if self.unread else None

    @cached_property
    def unread(self) -> str:
        """The permission that is missing to read all that decides about the child."""
        return self.children.unreadable(self.plan.child.inputs.ids)

    @cached_property
    def possible(self) -> frozenset[tuple[GroupKind, str]] | None:
        """The kinds and names of the objects that could not be rendered, as far as what is missing or wrong does not
        decide about them; otherwise None."""
        found: set[tuple[GroupKind, str]] = set()
        for names in self.plan.unknown_scopes():
            rendered = _identities(self.plan.child, names)
            if not rendered:
                return None
            found |= rendered
        return frozenset(found) or None


class _Known:
    """The knowledge about the desired objects of all children. `patches`: of those that set fields of objects of
    others, instead of those that have objects."""

    def __init__(self, children: Children, *, patches: bool = False) -> None:
        self.children = children
        plans = {id_: plan for id_, plan in children.plans.items() if plan.owns is not patches}
        self._by_child = {id_: _Knowledge(children, plan) for id_, plan in plans.items()}
        self._by_kind: dict[GroupKind, list[_Knowledge]] = {}
        for known in self._by_child.values():
            for kind in {each.versionless for each in known.plan.child.kinds}:
                self._by_kind.setdefault(kind, []).append(known)

    def risk(self, each: Existing | PatchedObject) -> Risk | None:
        """The first thing that could make the deletion of an object wrong: that of its own child, by the id in its
        record; or that of another one that may desire it. Without a child of this id, any of its kind may have been
        renamed, or make the object that replaces it."""
        own = self._by_child.get(each.child)
        if own is not None and (found := own.own_risk(each)) is not None:
            return found
        for other in self._of_kind(each):
            if other is own:
                continue
            if (found := other.own_risk(each) if own is None else other.rival_risk(each)) is not None:
                return found
        return None

    def needs(self, each: Existing | PatchedObject) -> frozenset[str]:
        """The children whose writes of this pass have to succeed first: one of them may replace the object."""
        if self.children.context.render_failed:
            return frozenset()
        own = self._by_child.get(each.child)
        makers = [own] if own is not None else self._of_kind(each)
        return frozenset(found.plan.child.id for found in makers if found.plan.writes)

    def _of_kind(self, each: Existing | PatchedObject) -> Sequence[_Knowledge]:
        """The children that may have an object of this kind."""
        return self._by_kind.get(each.key.group_kind, ())


def _identities(child: Child, names: Mapping[str, Any]) -> set[tuple[GroupKind, str]]:
    """The kinds and names in a body, whose other fields may be missing or wrong. None of them if that decides about
    these."""
    found: set[tuple[GroupKind, str]] = set()
    try:
        for document in _documents(child.body, names):
            found.add((Kind.of(document).versionless, document["metadata"]["name"]))
    except (RuleopError, Exhausted, KeyError, TypeError):
        return set()
    return found


def _documents(body: TextTemplate | Tree, names: Mapping[str, Any]) -> Iterable[Any]:
    identity = body.identity(names) if isinstance(body, Tree) else None
    return [identity] if identity is not None else body.render(names, lenient=True)


def held_in_words(held: Sequence[HeldDeletion]) -> str:
    """A condition message about deletions that are held back; empty if there are none. It may contain a deadline, which
    does not change until the next edit of the rules."""
    if not held:
        return ""
    counts = [(verb, sum(each.verb == verb for each in held)) for verb in ("deletion", "release")]
    parts = [f"the {verb} of {count} object{'s' if count > 1 else ''}" for verb, count in counts if count]
    causes = list(dict.fromkeys(each.why for each in held))
    more = " and more" if len(causes) > MAX_CAUSES else ""
    verb = "is" if len(parts) == 1 else "are"
    return f"{' and '.join(parts)} {verb} {HELD_BACK} {', '.join(causes[:MAX_CAUSES])}{more}"


def delayed(pruned: Iterable[Action], until: str) -> Iterator[HeldDeletion]:
    """The deletions that are delayed because the rules have just changed."""
    for action in pruned:
        verb: Literal["deletion", "release"] = "deletion" if isinstance(action, Delete) else "release"
        yield HeldDeletion(action.key, action.child, verb, f"until {until[11:19]} UTC")


def deadline(until: str) -> str:
    return f"held back until {until[11:19]} UTC"


def _dependents_first(rule: Rule, existing: list[Existing]) -> list[Existing]:
    """Objects of removed children first, then the others in reverse dependency order."""
    place = {id_: -number for number, id_ in enumerate(rule.order.children)}
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
