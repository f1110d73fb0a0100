"""The objects that an `observe` refers to, for one custom resource. A pass reads them, and their events trigger a
reconcile. Both use this module: otherwise a resource could read an object whose changes do not reconcile it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.core.errors import RenderError
from ruleop.core.kinds import GroupKind, ObjectKey
from ruleop.core.labels import Requirement, meets
from ruleop.core.planning.model.selectors import requirements_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.core.rules import Observe


@dataclass(frozen=True, slots=True)
class Target:
    """One object by name, or the objects of a kind by labels."""

    kind: GroupKind
    namespace: str | None  # '' of a cluster-scoped object; None: all
    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()

    @property
    def key(self) -> ObjectKey | None:
        """The key of the object; None for a target by labels."""
        return (
            None if self.name is None else ObjectKey(self.kind.group, self.kind.kind, self.namespace or "", self.name)
        )

    def matches(self, found: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(found.get(key) == value for key, value in self.labels) and meets(found, self.requirements)


def resolve_target(observe: Observe, names: Mapping[str, Any], *, namespaced: bool, home: str) -> Target:
    """The target of an `observe`. Raises RenderError. `home`: the custom resource's namespace, which is used if the
    rule's namespace is missing or empty."""
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
