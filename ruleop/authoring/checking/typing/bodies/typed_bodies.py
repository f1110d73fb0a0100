"""The bodies of children and statuses with the types of their slots, as a tree that can be compared with a schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ruleop.authoring.checking.typing.types import STRING, UNKNOWN, Type
from ruleop.language.templates.bodies.body import Printed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.errors import Site
    from ruleop.language.templates import YamlNode
    from ruleop.language.templates.bodies.body import Body as Untyped


@dataclass(frozen=True, slots=True)
class Slot:
    """A printed value, with its expression as written."""

    type: Type
    expression: str
    site: Site


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any
    site: Site


@dataclass(frozen=True, slots=True)
class Whole:
    """A slot that is a whole value, and keeps its type."""

    slot: Slot
    site: Site


@dataclass(frozen=True, slots=True)
class Text:
    """A string with slots: in quotes, or inside longer text."""

    slots: tuple[Slot, ...]
    site: Site
    is_single: bool  # nothing but one slot, in quotes


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    site: Site  # of the key
    body: Body


@dataclass(frozen=True, slots=True)
class Computed:
    """A member whose key has slots."""

    key: Text
    body: Body


@dataclass(frozen=True, slots=True)
class Members:
    members: tuple[Member, ...]
    spreads: tuple[Slot, ...]  # mappings whose members are added
    computed: tuple[Computed, ...]
    site: Site

    @property
    def is_open(self) -> bool:
        """Whether not all of its keys are known."""
        return bool(self.computed) or any(own_fields(each.type) is None for each in self.spreads)

    def member(self, name: str) -> Member | None:
        return next((each for each in self.members if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Body, ...]
    spreads: tuple[Slot, ...]
    site: Site


def own_fields(found: Type) -> Mapping[str, Type] | None:
    """The fields of a mapping that a template made; None if it may have others."""
    is_made = found.kinds == {"mapping"} and found.node is None and found.values is None
    return found.fields if is_made else None


Body: TypeAlias = Literal | Whole | Text | Members | Items


def typed(body: Untyped, types: Mapping[int, Type]) -> Body:
    """The body with the types of its slots. `types`: by the id of the printed node."""

    def slot(printed: Printed) -> Slot:
        found = types.get(id(printed.node), UNKNOWN) if printed.captured is None else STRING
        return Slot(found, printed.place.expression, printed.place.site)

    def scalar(value: Any, site: Site, *, is_plain: bool) -> Literal | Whole | Text:
        pieces = body.pieces(value) if isinstance(value, str) else ()
        slots = tuple(slot(each) for each in pieces if isinstance(each, Printed))
        if not slots:
            return Literal(value, site)
        is_single = len(pieces) == 1 and body.spread(value) is None
        return Whole(slots[0], site) if is_single and is_plain else Text(slots, site, is_single)

    def members(node: YamlNode, value: dict[str, YamlNode]) -> Members:
        known: list[Member] = []
        spreads: list[Slot] = []
        computed: list[Computed] = []
        for text, each in value.items():
            key = scalar(text, node.key_sites[text], is_plain=False)
            if (spread := body.spread(text)) is not None:
                spreads.append(slot(spread))
            elif isinstance(key, Text):
                computed.append(Computed(key, any_node(each)))
            else:
                known.append(Member(text, key.site, any_node(each)))
        return Members(tuple(known), tuple(spreads), tuple(computed), node.site)

    def any_node(node: YamlNode) -> Body:
        value = node.value
        if isinstance(value, dict):
            return members(node, value)
        if not isinstance(value, list):
            return scalar(value, node.site, is_plain=node.plain)
        spreads = [body.spread(each.value) if isinstance(each.value, str) and each.plain else None for each in value]
        items = (any_node(each) for each, spread in zip(value, spreads, strict=True) if spread is None)
        return Items(tuple(items), tuple(slot(each) for each in spreads if each is not None), node.site)

    return any_node(body.document)


def only_slot_of(body: Body) -> Slot | None:
    """The slot of a value that is nothing else."""
    if isinstance(body, Whole):
        return body.slot
    return body.slots[0] if isinstance(body, Text) and body.is_single else None
