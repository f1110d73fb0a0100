"""Finds the line of a template that a field of a rendered object comes from.

Nothing is recorded while cases pass. For a failure, the pass is planned again with the renderer's trace, and the text
of each template is parsed once more, with the template's line for each of its own lines. A field whose name or value
was printed has the line of that `{{ }}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.errors import RuleopError, Site
from ruleop.files import read_inside
from ruleop.kinds import Kind, ObjectKey
from ruleop.templating import TextTemplate, Tree, read_yaml
from ruleop.templating.tree.layout import SPREAD, VALUE, Layout
from ruleop.templating.values.text import Dump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.kinds import JSON
    from ruleop.rules import Project, Rule
    from ruleop.ruletests import matching
    from ruleop.ruletests.matching import Item
    from ruleop.templating import YamlNode
    from ruleop.templating.compile.renderer import Renderer
    from ruleop.templating.values.text import Slot


@dataclass(slots=True)
class Provenance:
    """Where the fields of one pass come from. `plan_again` renders everything once more."""

    project: Project
    rule: Rule
    plan_again: Callable[[], object]
    _traced: list[tuple[str, Layout, list[JSON]]] | None = field(default=None)

    def of_child(self, id_: str, key: ObjectKey, path: matching.Path) -> Site | None:
        """The place of a field of a child's object."""
        children = {child.id: child for child in self.rule.every_child()}
        child = children.get(id_)
        if child is None:
            return None
        if isinstance(child.body, Tree):
            node = self._node(child.body.site)
            return _Walk((), node).to(path, None) if node is not None else child.body.site
        for name, layout, documents in self._renders():
            if name == child.body.site.path:
                for node, document in _documents(name, layout, documents):
                    if _is(document, key):
                        return _Walk(layout.slots, node).to(path, document)
        return None

    def of_status(self, path: matching.Path) -> Site | None:
        """The place of a field of the status."""
        status = self.rule.status
        if isinstance(status, Tree):
            node = self._node(status.site)
            return _Walk((), node).to(path, None) if node is not None else status.site
        for name, layout, documents in self._renders():
            if isinstance(status, TextTemplate) and name == status.site.path:
                for node, document in _documents(name, layout, documents):
                    return _Walk(layout.slots, node).to(path, document)
        return None

    def _renders(self) -> list[tuple[str, Layout, list[JSON]]]:
        if self._traced is None:
            found = self._traced = []

            def trace(name: str, layout: Layout, documents: list[JSON]) -> None:
                found.append((name, layout, documents))

            renderer = self._renderer()
            if renderer is not None:
                renderer.trace = trace
                try:
                    self.plan_again()
                except RuleopError:
                    pass  # the failure itself says what is wrong
                finally:
                    renderer.trace = None
        return self._traced

    def _renderer(self) -> Renderer | None:
        return next((child.body.renderer for child in self.rule.every_child()), None)

    def _node(self, site: Site) -> YamlNode | None:
        """The value in a file of watches that starts at this place."""
        try:
            root = Path(self.project.root)
            text = read_inside(root / site.path, root).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return None
        documents, _ = read_yaml(text, site.path)
        return next((node for document in documents for node in _below(document) if node.site == site), None)


def _below(node: YamlNode) -> Iterator[YamlNode]:
    """All mappings below a node."""
    value = node.value
    if isinstance(value, dict):
        yield node
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _below(inner)


def _documents(name: str, layout: Layout, documents: list[JSON]) -> Iterator[tuple[YamlNode, JSON]]:
    sites = layout.sites()

    def locate(line: int, _column: int) -> Site:
        return (sites[line - 1] if line <= len(sites) else None) or Site(name)

    nodes, _ = read_yaml(layout.text, name, locate=locate)
    if len(nodes) == len(documents):
        yield from zip(nodes, documents, strict=True)


def _is(document: JSON, key: ObjectKey) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        return False
    return Kind.of(document).versionless == key.group_kind and document["metadata"].get("name") == key.name


@dataclass(slots=True)
class _Walk:
    """From the root of a document to a field."""

    slots: tuple[Slot, ...] | list[Slot]
    node: YamlNode

    def to(self, path: matching.Path, data: JSON) -> Site | None:
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
