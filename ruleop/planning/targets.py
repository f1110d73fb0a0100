"""What an `observe` refers to, for one custom resource. A pass reads it, and a change of it wakes the resource: both go
by this one answer, for a resource that reads what does not wake it would stay as it is until its next full re-check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.errors import RenderError
from ruleop.kinds import GroupKind, ObjectKey
from ruleop.planning.selectors import Requirement, meets, requirements_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.rules import Observe


@dataclass(frozen=True, slots=True)
class Target:
    """One object, by its name, or the objects of a kind with certain labels."""

    kind: GroupKind
    namespace: str | None  # '' of a cluster-scoped object; None: all
    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()

    @property
    def key(self) -> ObjectKey | None:
        """Of the one object that has the name."""
        return (
            None if self.name is None else ObjectKey(self.kind.group, self.kind.kind, self.namespace or "", self.name)
        )

    def matches(self, found: Mapping[str, str]) -> bool:
        """Whether an object with these labels is one of those that are selected."""
        return all(found.get(key) == value for key, value in self.labels) and meets(found, self.requirements)


def target_of(observe: Observe, names: Mapping[str, Any], *, namespaced: bool, home: str) -> Target:
    """Raises RenderError. `home`: the custom resource's namespace, which is meant where the rule names none, or an
    empty one."""
    namespace = ""
    if namespaced:
        namespace = (observe.namespace.string(names) if observe.namespace is not None else "") or home
        if not namespace:
            message = (
                f'the observed resource "{observe.id}" needs a namespace because its CR is cluster-scoped: '
                "set `namespace`"
            )
            raise RenderError(message, observe.site)
    kind = observe.kind.versionless
    if observe.name is not None:
        return Target(kind, namespace, observe.name.string(names))
    assert observe.selector is not None
    labels = tuple((key, value.string(names)) for key, value in observe.selector.match_labels.items())
    return Target(kind, namespace if namespaced else None, None, labels, requirements_of(observe.selector, names))
