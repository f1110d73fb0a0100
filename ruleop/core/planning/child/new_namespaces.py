"""Namespaces that are children themselves: what is created in them waits until they are ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.kinds import NAMESPACE_KIND
from ruleop.core.planning.model.actions import Create, State
from ruleop.core.planning.rendering.unplanned import ChildWaits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.core.planning.child.child_plan import ChildPlan, Existing, ObjectPlan


def waits_for_namespaces(
    plans: Mapping[str, ChildPlan], existing: Iterable[Existing], home: str
) -> Iterator[tuple[ChildPlan, ObjectPlan, ChildWaits]]:
    """The objects that are to be created in a Namespace that is itself a child, until that Namespace is ready. While
    the names of some of these Namespaces are unknown, because they wait or cannot be rendered, any other namespace than
    the CR's and those that exist may be one of them. One whose fields are patched is somebody else's. `home`: the CR's
    namespace."""
    group_kind = NAMESPACE_KIND.versionless
    makers = [each for each in plans.values() if each.child.patch is None]
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
    known = {home, *(each.key.name for each in existing if each.key.group_kind == group_kind)}
    for child_plan in plans.values():
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
