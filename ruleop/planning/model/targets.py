"""The objects that an `observe` refers to, for one custom resource. A pass reads them, and their events trigger a
reconcile. Both use this module: otherwise a resource could read an object whose changes do not reconcile it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.errors import RenderError
from ruleop.kubernetes.kinds import GroupKind, ObjectKey
from ruleop.kubernetes.labels import Requirement, meets
from ruleop.language.templates import loop_items
from ruleop.planning.model.selectors import terms_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.language.rules import Observe
    from ruleop.language.templates import Expression

MAX_OWNED = 1000  # objects of an `ownedBy`, and owners in between
MAX_OBSERVED = 500  # items of `forEach` in an `observe`


@dataclass(frozen=True, slots=True)
class Target:
    """One object by name, or the objects of a kind by labels or by the uid of an owner."""

    kind: GroupKind
    namespace: str | None  # '' of a cluster-scoped object; None: all
    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()
    owner: str = ""

    @property
    def key(self) -> ObjectKey | None:
        """The key of the object; None for a target by labels or owner."""
        return (
            None if self.name is None else ObjectKey(self.kind.group, self.kind.kind, self.namespace or "", self.name)
        )

    def matches(self, found: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(found.get(key) == value for key, value in self.labels) and meets(found, self.requirements)


def resolve_targets(observe: Observe, names: Mapping[str, Any], *, namespaced: bool, home: str) -> list[Target]:
    """The targets of an `observe`: one, or one for each item. Raises RenderError. `home`: the custom resource's
    namespace, which is used if the rule's namespace is missing or empty."""
    kind = observe.kind.versionless
    scopes = [names] if observe.for_each is None else _names_of_items(observe, observe.for_each, names)
    found = []
    for inner in scopes:
        namespace = ""
        if namespaced and not observe.all_namespaces:
            namespace = (observe.namespace.string(inner) if observe.namespace is not None else "") or home
            if not namespace:
                message = f"{observe.title} needs a namespace because its CR is cluster-scoped: set `namespace`"
                raise RenderError(message, observe.site)
        if observe.name is not None:
            found.append(Target(kind, namespace, observe.name.string(inner)))
            continue
        assert observe.selector is not None
        found.append(Target(kind, namespace or None, None, *terms_of(observe.selector, inner)))
    return found


def _names_of_items(observe: Observe, for_each: Expression, names: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    what, items = observe.title, loop_items(for_each.value(names))
    if items is None:
        raise RenderError(f"{what} needs a list or a mapping in forEach", for_each.site)
    for index, (_, item) in enumerate(items):
        if index == MAX_OBSERVED:
            raise RenderError(f"{what} has more than {MAX_OBSERVED} items in forEach", for_each.site)
        yield {**names, observe.item_name: item, "index": index}
