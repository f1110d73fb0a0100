"""The types of what is printed in bodies of children and statuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ruleop.authoring.checking.typing.types import STRING, UNKNOWN, Type
from ruleop.language.templates.bodies.body import BodyEntry, BodyMembers, BodySpread, Node, Printed, Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.errors import Site


@dataclass(frozen=True, slots=True)
class TypedSlot:
    """A printed value, with its expression as written."""

    type: Type
    expression: str
    site: Site


class Typed(NamedTuple):
    """A body with the types of all that is printed."""

    document: Node
    types: Types


@dataclass(frozen=True, slots=True)
class Types:
    printed: Mapping[int, Type]  # by the ids of the nodes

    def slot(self, printed: Printed) -> TypedSlot:
        found = self.printed.get(id(printed.node), UNKNOWN) if printed.captured is None else STRING
        return TypedSlot(found, printed.place.expression, printed.place.site)

    def slots(self, text: Scalar) -> tuple[TypedSlot, ...]:
        return tuple(self.slot(each) for each in text.pieces if isinstance(each, Printed))

    def spreads(self, members: tuple[BodyEntry | Node | BodySpread, ...]) -> list[TypedSlot]:
        """The values whose entries or items are added."""
        return [self.slot(each.printed) for each in members if isinstance(each, BodySpread)]

    def may_have_others(self, body: BodyMembers) -> bool:
        """Whether not all keys of a mapping are known."""
        is_computed = any(isinstance(each, BodyEntry) and each.name is None for each in body.members)
        return is_computed or any(own_fields(each.type) is None for each in self.spreads(body.members))


def own_fields(found: Type) -> Mapping[str, Type] | None:
    """The fields of a mapping that a template made; None if it may have others."""
    is_made = found.kinds == {"mapping"} and found.node is None and found.values is None
    return found.fields if is_made else None
