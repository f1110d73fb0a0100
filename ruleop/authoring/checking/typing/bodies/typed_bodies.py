"""The bodies of children and statuses with the types of their slots, as a tree that can be compared with a schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.authoring.checking.typing.types import STRING, UNKNOWN, Type
from ruleop.core.templating.tree import layout as marks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.core.errors import Site
    from ruleop.core.templating import YamlNode
    from ruleop.core.templating.bodies.body import Body as Untyped

_ANY_MARK: Final = re.compile(f"{marks.VALUE.pattern}|{marks.SPREAD.pattern}")


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
        return bool(self.spreads or self.computed)

    def member(self, name: str) -> Member | None:
        return next((each for each in self.members if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Body, ...]
    spreads: tuple[Slot, ...]
    site: Site


Body: TypeAlias = Literal | Whole | Text | Members | Items


def typed(body: Untyped, types: Mapping[int, Type]) -> Body:
    """The body with the types of its slots. `types`: by the id of the printed node."""

    def slot(number: int) -> Slot:
        printed = body.printed[number]
        found = types.get(id(printed.node), UNKNOWN) if printed.captured is None else STRING
        return Slot(found, printed.place.expression, printed.place.site)

    return _typed(body.document, slot)


def only_slot_of(body: Body) -> Slot | None:
    """The slot of a value that is nothing else."""
    if isinstance(body, Whole):
        return body.slot
    return body.slots[0] if isinstance(body, Text) and body.is_single else None


def _typed(node: YamlNode, slot: Callable[[int], Slot]) -> Body:
    value = node.value
    if isinstance(value, dict):
        return _members(node, value, slot)
    if isinstance(value, list):
        items: list[Body] = []
        spreads: list[Slot] = []
        for each in value:
            spread = marks.SPREAD.fullmatch(each.value) if isinstance(each.value, str) and each.plain else None
            if spread is not None:
                spreads.append(slot(int(spread[1])))
            else:
                items.append(_typed(each, slot))
        return Items(tuple(items), tuple(spreads), node.site)
    if not isinstance(value, str) or not _ANY_MARK.search(value):
        return Literal(value, node.site)
    whole = marks.VALUE.fullmatch(value)
    if whole is not None and node.plain:
        return Whole(slot(int(whole[1])), node.site)
    slots = tuple(slot(int(match[1] or match[2])) for match in _ANY_MARK.finditer(value))
    return Text(slots, node.site, is_single=whole is not None)


def _members(node: YamlNode, value: dict[str, YamlNode], slot: Callable[[int], Slot]) -> Members:
    members: list[Member] = []
    spreads: list[Slot] = []
    computed: list[Computed] = []
    for key, each in value.items():
        if not _ANY_MARK.search(key):
            members.append(Member(key, node.key_sites[key], _typed(each, slot)))
        elif (spread := marks.SPREAD.fullmatch(key)) is not None:
            spreads.append(slot(int(spread[1])))
        else:
            slots = tuple(slot(int(match[1] or match[2])) for match in _ANY_MARK.finditer(key))
            computed.append(Computed(Text(slots, node.key_sites[key], is_single=False), _typed(each, slot)))
    return Members(tuple(members), tuple(spreads), tuple(computed), node.site)
