"""Finds the line of a template that a field of a rendered object comes from.

Nothing is recorded while templates are rendered. For a message about a field, the template is rendered once more with
the renderer's trace, and its text is parsed again, with the template's line for each of its own lines. A field whose
name or value was printed has the line of that `{{ }}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ruleop.core.errors import Site
from ruleop.core.templating.tree.layout import SPREAD, VALUE, Layout
from ruleop.core.templating.tree.yaml_reader import read_yaml
from ruleop.core.templating.values.text import Dump

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.core.kinds import JSON
    from ruleop.core.templating.compile.compiled import TextTemplate
    from ruleop.core.templating.tree.yaml_node import YamlNode
    from ruleop.core.templating.values.text import Slot


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list, by the fields that identify it, or by its position."""

    position: int  # among the actual items; -1 for a missing one
    keys: tuple[tuple[str, JSON], ...] = ()

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in self.keys) if self.keys else str(self.position)
        return f"[{inside}]"


FieldPath: TypeAlias = tuple[str | Item, ...]


@dataclass(frozen=True, slots=True)
class Rendering:
    """The text of a template, and the objects in it."""

    name: str
    layout: Layout
    documents: list[JSON]

    def nodes(self) -> Iterator[tuple[YamlNode, JSON]]:
        """The objects, each with its nodes."""
        sites = self.layout.sites()

        def locate(line: int, _column: int) -> Site:
            return (sites[line - 1] if line <= len(sites) else None) or Site(self.name)

        nodes, _ = read_yaml(self.layout.text, self.name, locate=locate)
        if len(nodes) == len(self.documents):
            yield from zip(nodes, self.documents, strict=True)


def render_again(template: TextTemplate, names: Mapping[str, object]) -> list[Rendering]:
    """Raises as rendering does."""
    found: list[Rendering] = []
    renderer, outer = template.renderer, template.renderer.trace
    renderer.trace = lambda *rendered: found.append(Rendering(*rendered))
    try:
        template.render(names)
    finally:
        renderer.trace = outer
    return [each for each in found if each.name == template.site.path]


@dataclass(slots=True)
class Walk:
    """From the root of a document to a field."""

    slots: tuple[Slot, ...] | list[Slot]
    node: YamlNode

    def to(self, path: FieldPath, data: JSON) -> Site | None:
        """The place of the field, or of its nearest parent in the template; None for fields that it does not render."""
        site: Site | None = None
        node = self.node
        for part in path:
            step = self._member(node, part) if isinstance(part, str) else self._item(node, part, data)
            if step is None:
                return self._printed(node) or site
            inner, site = step
            if inner is None:
                return site
            node, data = inner, _inside(data, part)
        return self._printed(node) or site

    def _printed(self, node: YamlNode) -> Site | None:
        """The place of the slot that is the value."""
        match = VALUE.search(node.value) if isinstance(node.value, str) and self.slots else None
        return self.slots[int(match[1])].place.site if match else None

    def _member(self, node: YamlNode, name: str) -> tuple[YamlNode | None, Site] | None:
        if not isinstance(node.value, dict):
            return None
        if name in node.value:
            return node.value[name], node.key_sites[name]
        for key in node.value:
            match = (SPREAD.fullmatch(key) or VALUE.search(key)) if self.slots else None
            if match:
                slot = self.slots[int(match[1])]
                value = _value(slot)
                if not isinstance(value, dict) or name in value:
                    return None if not isinstance(value, dict) else (None, slot.place.site)
        return None

    def _item(self, node: YamlNode, item: Item, data: JSON) -> tuple[YamlNode | None, Site] | None:
        if not isinstance(node.value, list):
            return None
        place = _place(item, data) if data is not None else _place(item, node.data())
        for each in node.value:
            match = SPREAD.fullmatch(each.value) if isinstance(each.value, str) and self.slots else None
            slot = self.slots[int(match[1])] if match else None
            value = _value(slot) if slot is not None else None
            count = len(value) if isinstance(value, list) else 1
            if place < count:
                return (None, slot.place.site) if slot is not None else (each, each.site)
            place -= count
        return None


def _value(slot: Slot) -> object:
    value = slot.value
    return value.data if isinstance(value, Dump) else value


def _place(item: Item, data: JSON) -> int:
    """The position of an item in the rendered list; a large number if it is not there."""
    if not item.keys:
        return item.position if item.position >= 0 else 1 << 30
    for place, each in enumerate(data if isinstance(data, list) else ()):
        if isinstance(each, dict) and all(each.get(name) == value for name, value in item.keys):
            return place
    return 1 << 30


def _inside(data: JSON, part: str | Item) -> JSON:
    if isinstance(part, str):
        return data.get(part) if isinstance(data, dict) else None
    place = _place(part, data)
    return data[place] if isinstance(data, list) and place < len(data) else None
