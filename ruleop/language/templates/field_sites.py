"""Finds the line of a template that a field of a rendered object comes from.

Nothing is noted while templates are rendered. For a message about a field, the template is rendered once more, and
notes the place of each entry and item. A field whose name or value was printed has the line of that `{{ }}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates.tree.state import Sites


@dataclass(frozen=True, slots=True)
class ItemStep:
    """An item of a list, by the fields that identify it, or by its position."""

    position: int  # among the actual items; -1 for a missing one
    keys: tuple[tuple[str, JSON], ...] = ()

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in self.keys) if self.keys else str(self.position)
        return f"[{inside}]"


FieldPath: TypeAlias = tuple[str | ItemStep, ...]


@dataclass(slots=True)
class Walk:
    """From the root of a document to a field."""

    document: JSON
    sites: Sites

    def to(self, path: FieldPath, data: JSON) -> Site | None:
        """The place of the field, or of its nearest parent in the template; None for fields that it does not render.
        `data`: the object that the path is of, if its lists may have other items."""
        site: Site | None = None
        at = self.document
        for part in path:
            key = part if isinstance(part, str) else _place(part, at if data is None else data)
            found = self.sites.of(at).get(key)
            if found is None:
                return site
            site = found
            at = _member(at, key)
            data = None if data is None else _inside(data, part)
        return site


def _member(data: JSON, key: str | int) -> JSON:
    if isinstance(data, dict):
        return data.get(str(key))
    return data[key] if isinstance(data, list) and isinstance(key, int) and key < len(data) else None


def _place(item: ItemStep, data: JSON) -> int:
    """The position of an item in the rendered list; a large number if it is not there."""
    if not item.keys:
        return item.position if item.position >= 0 else 1 << 30
    for place, each in enumerate(data if isinstance(data, list) else ()):
        if isinstance(each, dict) and all(each.get(name) == value for name, value in item.keys):
            return place
    return 1 << 30


def _inside(data: JSON, part: str | ItemStep) -> JSON:
    if isinstance(part, str):
        return data.get(part) if isinstance(data, dict) else None
    place = _place(part, data)
    return data[place] if isinstance(data, list) and place < len(data) else None
