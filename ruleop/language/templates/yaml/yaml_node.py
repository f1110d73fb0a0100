"""A YAML value with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from ruleop.errors import Site

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import JSON

NO_KEYS: Final[Mapping[str, Site]] = MappingProxyType({})

Scalar: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A YAML value with its site."""

    value: Scalar | list[YamlNode] | dict[str, YamlNode]
    site: Site
    key_sites: Mapping[str, Site] = field(default_factory=lambda: NO_KEYS)
    plain: bool = False  # an unquoted scalar
    flow: bool = False  # a mapping or list in braces or brackets

    def member(self, *names: str) -> YamlNode | None:
        """The value of a field, or of one in nested mappings; None if there is none."""
        node: YamlNode | None = self
        for name in names:
            node = node.value.get(name) if node is not None and isinstance(node.value, dict) else None
        return node

    def place(self, offset: int) -> Site:
        """The place of a character of a string that is on one line."""
        return Site(self.site.path, self.site.line, self.site.column + offset + (0 if self.plain else 1))

    def data(self) -> JSON:
        """The value as plain data."""
        value = self.value
        if isinstance(value, dict):
            return {key: node.data() for key, node in value.items()}
        if isinstance(value, list):
            return [node.data() for node in value]
        return value

    def texts(self) -> Iterator[tuple[str, Site]]:
        """The strings that may contain a template, with their sites: all values, and keys with template syntax."""
        value = self.value
        if isinstance(value, str):
            yield value, self.site
        for key, site in self.key_sites.items():
            if "{{" in key or "{%" in key:
                yield key, site
        for node in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from node.texts()
