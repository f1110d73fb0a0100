"""The sum of blocks: a mapping, a list or one scalar, with the conditions under which each part of it is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.errors import RuleError, Site
from ruleop.language.templates.yaml.marks import ALONE, CLOSE, OPEN
from ruleop.language.templates.yaml.yaml_node import YamlNode
from ruleop.language.templates.yaml.yaml_reader import repeated_key

if TYPE_CHECKING:
    from ruleop.language.templates.bodies.branch_conditions import Needs

_NOUNS: Final = {dict: "an entry of a mapping", list: "an item of a list", str: "a value of its own"}


class Added(NamedTuple):
    """An entry, an item, or a whole value; or what is spread, of which the neighbours decide what it is."""

    kind: type | None  # dict, list, str; None of what is spread
    node: YamlNode | int  # the number of the mark of what is spread
    site: Site
    needs: Needs
    key: str = ""


class Clash(NamedTuple):
    """Two parts that cannot be together."""

    mistake: RuleError
    needs: Needs


@dataclass(slots=True)
class Sum:
    clashes: list[Clash]
    documents: list[YamlNode] | None = None  # of a whole document: those before it
    kind: type | None = None
    site: Site | None = None
    parts: list[Added] = field(default_factory=list)
    _first: Added | None = None  # that is not spread
    _keys: dict[str, Added] = field(default_factory=dict)

    def add(self, part: Added) -> None:
        if part.kind is not None:
            first = self._first = self._first or part
            self.kind = first.kind
            if first.kind is not part.kind or (part.kind is str and first is not part):
                message = (
                    f"not YAML: {_NOUNS[part.kind]} beside {_NOUNS[first.kind]} {_at(first.site, part.site)}; "  # type: ignore[index]
                    "check the indentation and the dashes"
                )
                self._clash(message, first, part)
                return
            known = self._keys.setdefault(part.key, part) if part.kind is dict else part
            if known is not part:
                self._clash(repeated_key(part.key, known.site, part.site), known, part)
                return
        self.site = self.site or part.site
        self.parts.append(part)

    def clear(self) -> None:
        self.kind, self.site, self.parts, self._first, self._keys = None, None, [], None, {}

    def _clash(self, message: str, first: Added, second: Added) -> None:
        self.clashes.append(Clash(RuleError(message, second.site), (*first.needs, *second.needs)))

    def value(self, form: Any) -> YamlNode | None:
        """The value; None if there is none. `form`: a mapping or a list if values alone on their lines are that."""
        kind = self.kind or (type(form) if isinstance(form, (dict, list)) else dict if len(self.parts) > 1 else None)
        if not self.parts or self.site is None:
            return None
        if kind is dict:
            members, sites = {}, {}
            for part in self.parts:
                key = part.key if isinstance(part.node, YamlNode) else f"{ALONE}{part.node}{CLOSE}"
                members[key] = part.node if isinstance(part.node, YamlNode) else YamlNode(0, part.site, plain=True)
                sites[key] = part.site
            return YamlNode(members, self.site, sites)
        if kind is list:
            marks = (part.node if isinstance(part.node, YamlNode) else _mark(ALONE, part) for part in self.parts)
            return YamlNode(list(marks), self.site)
        whole = next((part.node for part in self.parts if isinstance(part.node, YamlNode)), None)
        return whole or _mark(OPEN, self.parts[0])


def _mark(sign: str, part: Added) -> YamlNode:
    return YamlNode(f"{sign}{part.node}{CLOSE}", part.site, plain=True)


def _at(site: Site, from_site: Site) -> str:
    return f"on line {site.line}" if site.path == from_site.path else f"at {site}"
