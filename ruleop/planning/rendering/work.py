"""Results of a plan that the status plan after its writes reuses.

Objects whose templates read only the custom resource are not rendered again while the resource is unchanged, and
objects in sync are not merged again while they are unchanged. The plan is the same with or without this cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.kubernetes.kinds import ObjectKey, version_of
from ruleop.planning.model.marks import APPLIED, annotations_of
from ruleop.planning.model.observed import Served
from ruleop.planning.rendering.desired import Desired

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kubernetes.kinds import Kind, Object
    from ruleop.language.rules import Child, Rule
    from ruleop.planning.model.observed import Kinds

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class Rendered(NamedTuple):
    """One rendered object, without its scope, which would keep everything in memory that the pass has read."""

    key: ObjectKey
    kind: Kind
    object: Object
    orphan: bool
    recreate: bool


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    rule: str  # its digest
    resource: tuple[str, str]  # uid and resourceVersion
    rendered: Mapping[str, tuple[Rendered, ...]] = field(default_factory=lambda: _NOTHING)  # by child
    in_sync: Mapping[ObjectKey, str] = field(default_factory=lambda: _NOTHING)  # resourceVersions of objects in sync

    @classmethod
    def of(
        cls, rule: Rule, resource: Object, rendered: Mapping[str, Iterable[Desired]], in_sync: Iterable[Object]
    ) -> Work:
        """`rendered`: the desired objects of each child that reads only the resource. `in_sync`: live objects."""
        return cls(
            rule.digest,
            _identity(resource),
            {
                id_: tuple(Rendered(each.key, each.kind, each.rendered, each.orphan, each.recreate) for each in desired)
                for id_, desired in rendered.items()
            },
            {ObjectKey.of(live): version_of(live) for live in in_sync},
        )

    def is_for(self, rule: Rule, resource: Object) -> bool:
        return self.rule == rule.digest and self.resource == _identity(resource)

    def desired(self, child: Child, names: Mapping[str, Any], kinds: Kinds) -> list[Desired] | None:
        """The desired objects of a child, with the scope of the current plan; None if they have to be rendered."""
        if child.id not in self.rendered:
            return None
        found = [
            Desired(each.key, each.kind, each.object, kinds.info(each.kind), names, each.orphan, recreate=each.recreate)
            for each in self.rendered[child.id]
        ]
        return None if any(each.info.state is Served.UNSERVED for each in found) else found

    def is_still_in_sync(self, desired: Desired, child: Child, live: Object) -> bool:
        """Whether the live object was in sync and is unchanged."""
        return child.id in self.rendered and self.in_sync.get(desired.key) == version_of(live)

    def after(self, answers: Mapping[ObjectKey, tuple[Object, Object]]) -> Work:
        """The work with the answers to writes: an object whose answer has the record that was sent is in sync."""
        found = {
            key: version_of(answer)
            for key, (desired, answer) in answers.items()
            if annotations_of(desired).get(APPLIED) == annotations_of(answer).get(APPLIED)
        }
        return replace(self, in_sync={**self.in_sync, **found})


def _identity(resource: Object) -> tuple[str, str]:
    metadata = resource["metadata"]
    return metadata.get("uid") or "", metadata.get("resourceVersion") or ""
