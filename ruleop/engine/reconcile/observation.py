"""What one CR sees of the world, and which part of it its rule has it look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.errors import RuleopError
from ruleop.kinds import Kind, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.engine.reconcile.memory import Memory
    from ruleop.kinds import GroupKind, Object
    from ruleop.planning import Objects
    from ruleop.planning.scope import Scope
    from ruleop.planning.targets import Target
    from ruleop.rules import Observe


class Seen:
    """The world as one CR sees it in one pass: with the objects that are in the way of its children, which no store of ours holds. Each
    child is parsed once."""

    def __init__(self, world: Objects, memory: Memory) -> None:
        self.world, self.memory = world, memory
        self._parsed: dict[tuple[ObjectKey, str], Object] = {}

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        found = self._parsed.get((key, version)) or self.world.get(key, version=version, partial=partial)
        if found is None and (foreign := self.memory.foreign.get(key)) is not None:
            return foreign.obj
        return found

    def partial(self) -> frozenset[ObjectKey]:
        """Of what is in the way: that of which only the metadata is known."""
        known_by = {key: Kind.of(each.obj).version for key, each in self.memory.foreign.items() if each.partial}
        return frozenset(key for key, version in known_by.items() if self.world.get(key, version=version) is None)

    def children(self, part_of: str) -> Iterator[Object]:
        for child in self.world.children(part_of):
            kind = Kind.of(child)
            self._parsed[ObjectKey.of(child), kind.version] = child
            yield child

    def select(self, kind: GroupKind, namespace: str | None, *, version: str = "", partial: bool = False) -> Sequence[Object]:
        return self.world.select(kind, namespace, version=version, partial=partial)


def target_of(scope: Scope, observe: Observe) -> Target | None:
    """What an `observe` refers to, for this CR; None while that is unknown."""
    try:
        return scope.target(observe)
    except RuleopError:
        return None
