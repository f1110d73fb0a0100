"""What a plan has worked out, kept for the plan of the status that follows its writes.

Objects that follow from the custom resource alone need not be rendered again while it is the same, and an object that
is as desired need not be merged again while it is the same. So a plan from this is the plan without it, and costs less.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.planning.desired import Desired
from ruleop.planning.marks import APPLIED, annotations_of
from ruleop.planning.observed import Served

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kinds import Kind, Object, ObjectKey
    from ruleop.planning.child_plan import ChildPlan
    from ruleop.planning.observed import Kinds
    from ruleop.rules import Child, Rule

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class Rendered(NamedTuple):
    """One object, without the scope that it was rendered in: that holds all that the pass has read."""

    key: ObjectKey
    kind: Kind
    object: Object
    orphan: bool

    @classmethod
    def of(cls, desired: Desired) -> Rendered:
        return cls(desired.key, desired.kind, desired.rendered, desired.orphan)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    rule: str  # its digest
    resource: tuple[str, str]  # uid and resourceVersion
    rendered: Mapping[str, tuple[Rendered, ...]] = field(default_factory=lambda: _NOTHING)  # by child
    in_step: Mapping[ObjectKey, str] = field(
        default_factory=lambda: _NOTHING
    )  # resourceVersions of objects that are as rendered

    @classmethod
    def of(cls, rule: Rule, resource: Object, children: Iterable[ChildPlan]) -> Work:
        known = [
            child_plan
            for child_plan in children
            if child_plan.child.reads_cr_only and child_plan.objects and not child_plan.incomplete
        ]
        in_step = {
            object_plan.desired.key: _version(object_plan.applied.result)
            for child_plan in known
            for object_plan in child_plan.objects
            if object_plan.applied is not None
            and object_plan.applied.in_step
            and object_plan.applied.result is not None
        }
        rendered = {
            child_plan.child.id: tuple(Rendered.of(object_plan.desired) for object_plan in child_plan.objects)
            for child_plan in known
        }
        return cls(rule.digest, _identity(resource), rendered, in_step)

    def is_for(self, rule: Rule, resource: Object) -> bool:
        return self.rule == rule.digest and self.resource == _identity(resource)

    def desired(self, child: Child, names: Mapping[str, Any], kinds: Kinds) -> list[Desired] | None:
        """The objects of a child, in the scope of the current plan; None: they have to be rendered."""
        if child.id not in self.rendered:
            return None
        found = [
            Desired(each.key, each.kind, each.object, kinds.info(each.kind), names, each.orphan)
            for each in self.rendered[child.id]
        ]
        return None if any(each.info.state is Served.UNSERVED for each in found) else found

    def has_in_step(self, desired: Desired, child: Child, live: Object) -> bool:
        """Whether nothing differs between the live object and what this was made from."""
        return child.id in self.rendered and self.in_step.get(desired.key) == _version(live)

    def after(self, answers: Mapping[ObjectKey, tuple[Object, Object]]) -> Work:
        """With answers to writes that hold all that was desired: what was written, and what was answered."""
        found = {
            key: _version(answer) for key, (desired, answer) in answers.items() if _record(desired) == _record(answer)
        }
        return replace(self, in_step={**self.in_step, **found})


def _identity(resource: Object) -> tuple[str, str]:
    metadata = resource["metadata"]
    return metadata.get("uid") or "", metadata.get("resourceVersion") or ""


def _version(obj: Object) -> str:
    return obj["metadata"].get("resourceVersion") or ""


def _record(obj: Object) -> Any:
    return annotations_of(obj).get(APPLIED)
