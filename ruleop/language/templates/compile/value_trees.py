"""Values of watches.yaml as trees of the same nodes as templates.

A string is a value as between quotes in a template, but a single `{{ }}` keeps its type. A key that is one opening tag,
such as `{% for each in spec.env %}`, holds what its value holds, as the lines below a tag do in a template: entries
among other keys, items if it is an item of a list, and any value if nothing else is there. No field can have such a
name.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.errors import RuleError
from ruleop.language.templates import syntax
from ruleop.language.templates.compile.hints import check_reserved, has_templates
from ruleop.language.templates.syntax import PRINTING, bodies_of
from ruleop.language.templates.tree.nodes import (
    Block,
    Blocks,
    Constant,
    Entry,
    Joined,
    ListNode,
    Mapping,
    Node,
    SpreadKey,
    Statement,
    Value,
)
from ruleop.language.templates.values.data import noun
from ruleop.language.templates.values.faults import RuleErrors
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ruleop.errors import Site
    from ruleop.language.templates.tree.nodes import Part
    from ruleop.language.templates.yaml_reader import YamlNode

_TAG: Final = re.compile(r"\s*\{%[-+]?\s*(for|if|elif|else|endfor|endif)\b(?:(?!%\}).)*%\}\s*", re.DOTALL)
_NO_END: Final = "{} is not needed: what a tag holds ends with the value of its key"
_NO_START: Final = "{} needs its {{% if %}} or {{% for %}} in the key before it"
_NOTHING: Final = "this tag holds nothing: write the entries or items below it"
_NO_ENTRIES: Final = "this tag is among keys, so it holds a mapping, and this is {}"
_RECURSIVE: Final = "a loop in a key cannot be `recursive`: its body is a value, and `loop(...)` inserts text"


def tag_of(key: str) -> str:
    """The word of the opening tag that a key is: for, if, elif or else, or an end that is not needed; "" of others."""
    found = _TAG.fullmatch(key) if "{%" in key else None
    return found[1] if found else ""


def holds_tags(value: object) -> bool:
    """Whether a value is a mapping with nothing but tags: what they hold decides what it is."""
    return isinstance(value, dict) and bool(value) and all(map(tag_of, value))


@dataclass(frozen=True, slots=True)
class ValueTree:
    """A value, and the statements in it."""

    node: Node
    texts: tuple[syntax.Template, ...]  # each string outside of tags, and each tag outside of others
    tags: dict[Site, syntax.Template]  # by the places of their keys
    members: dict[str, list[syntax.Template]]  # the statements of each member of a mapping

    @property
    def bodies(self) -> dict[str, syntax.Body]:
        """The statements of each member."""
        return {name: tuple(each for tree in trees for each in tree.body) for name, trees in self.members.items()}


def read_value(node: YamlNode, parse: Callable[[str, Site], syntax.Template]) -> ValueTree:
    """Raises RuleErrors."""
    reader = _Reader(parse)
    value = reader.value(node, None)
    if reader.mistakes:
        raise RuleErrors(reader.mistakes)
    return ValueTree(value, tuple(reader.texts), reader.tags, reader.members)


class _Tag(NamedTuple):
    key: str
    site: Site
    held: YamlNode


Statements = list[syntax.Stmt]
"""Those of the tag around a value."""


@dataclass(slots=True)
class _Reader:
    parse: Callable[[str, Site], syntax.Template]
    mistakes: list[RuleError] = field(default_factory=list)
    texts: list[syntax.Template] = field(default_factory=list)
    tags: dict[Site, syntax.Template] = field(default_factory=dict)
    members: dict[str, list[syntax.Template]] = field(default_factory=dict)
    _member: str = ""
    _depth: int = 0

    # -- values --------------------------------------------------------------------------------------------------------

    def value(self, node: YamlNode, around: Statements | None) -> Node:
        value = node.value
        if isinstance(value, str):
            return self._string(value, node.site, around)
        if isinstance(value, list) and value:
            return ListNode(tuple(self._items(value, around)), node.site)
        if isinstance(value, dict) and value:
            members = tuple(self._entries(node, around, self.value if holds_tags(value) else self._held_entries))
            return Blocks(members, node.site) if holds_tags(value) else Mapping(members, node.site)  # type: ignore[arg-type]
        if around is not None and value is not None:
            around.append(_literal(str(value), node.site))
        return Constant(value, node.site)

    def _items(self, items: Sequence[YamlNode], around: Statements | None) -> Iterator[Node | Block]:
        for item in items:
            if holds_tags(item.value):
                yield from self._entries(item, around, self._held_items)  # type: ignore[misc]
            else:
                yield self.value(item, around)

    def _held_items(self, node: YamlNode, around: Statements | None) -> Node | None:
        """Reads what a tag among items holds: the items of a list, or one item."""
        if holds_tags(node.value):
            return Blocks(tuple(self._entries(node, around, self._held_items)), node.site)  # type: ignore[arg-type]
        items = node.value if isinstance(node.value, list) else [node]
        return ListNode(tuple(self._items(items, around)), node.site) if items else None

    def _held_entries(self, node: YamlNode, around: Statements | None) -> Node | None:
        """Reads what a tag among keys holds."""
        value = node.value
        if isinstance(value, dict):
            members = tuple(self._entries(node, around, self._held_entries))
            return (Blocks if holds_tags(value) else Mapping)(members, node.site) if members else None  # type: ignore[arg-type]
        if isinstance(value, str) and has_templates(value):
            return self._string(value, node.site, around)
        what = noun(value if not isinstance(value, list) else [])
        self.mistakes.append(RuleError(_NO_ENTRIES.format(what), node.site))
        return None

    # -- entries and tags ----------------------------------------------------------------------------------------------

    def _entries(
        self, node: YamlNode, around: Statements | None, held: Callable[[YamlNode, Statements | None], Node | None]
    ) -> Iterator[Entry | Block]:
        """The members of a mapping. `held`: reads what a tag holds."""
        assert isinstance(node.value, dict)
        tags: list[_Tag] = []
        is_outermost = not self._depth
        self._depth += 1
        for key, member in node.value.items():
            site, word = node.key_sites[key], tag_of(key)
            if is_outermost:
                self._member = key
            if word in ("endfor", "endif"):
                self.mistakes.append(RuleError(_NO_END.format(key.strip()), site))
            elif word in ("elif", "else"):
                if tags:
                    tags.append(_Tag(key, site, member))
                else:
                    self.mistakes.append(RuleError(_NO_START.format(key.strip()), site))
            else:
                yield from self._statement(tags, around, held)
                tags = [_Tag(key, site, member)] if word else []
                if not word:
                    yield self._entry(key, site, member, around)
        yield from self._statement(tags, around, held)
        self._depth -= 1

    def _entry(self, key: str, site: Site, member: YamlNode, around: Statements | None) -> Entry | SpreadKey:
        if not has_templates(key):
            check_reserved(key, site)
            return Entry(key, self.value(member, around), site)
        name = self._string(key, site, around)
        if isinstance(name, Constant):
            return Entry(str(name.value), self.value(member, around), site)
        if isinstance(name, Value):
            name = Joined((name.slot,), plain=False, site=site, own=True)
        assert isinstance(name, Joined)
        return SpreadKey(name, site) if member.value is None else Entry(name, self.value(member, around), site)

    def _statement(
        self, tags: list[_Tag], around: Statements | None, held: Callable[[YamlNode, Statements | None], Node | None]
    ) -> Iterator[Statement]:
        """The statement of a tag, with the `elif` and `else` that follow it."""
        if not tags:
            return
        first = tags[0]
        text = ""
        for tag in tags:
            text += "\n" * (tag.site.line - first.site.line - text.count("\n")) + tag.key.strip() + "_"
        try:
            (statement,) = self.parse(f"{text}{{% end{tag_of(first.key)} %}}", first.site).body
        except RuleErrors as errors:
            self.mistakes.extend(errors.mistakes)
            return
        if isinstance(statement, syntax.For) and statement.recursive:
            self.mistakes.append(RuleError(_RECURSIVE, first.site))
        bodies: list[syntax.Body] = []
        read: list[Node | None] = []
        for tag in tags:
            inner: Statements = []
            if tag.held.value is None:
                self.mistakes.append(RuleError(_NOTHING, tag.site))
            else:
                read.append(held(tag.held, inner))
            bodies.append(tuple(inner) or (syntax.Data("", site=tag.site),))
        filled = _filled(statement, tags, bodies)
        read += [None] * (len(bodies_of(filled)) - len(read))
        if around is None:
            tree = self.tags[first.site] = syntax.Template((filled,), site=first.site)
            self._add(tree)
        else:
            around.append(filled)
        yield Statement(filled, tuple(read), first.site)

    # -- strings -------------------------------------------------------------------------------------------------------

    def _string(self, text: str, site: Site, around: Statements | None) -> Constant | Value | Joined:
        try:
            if has_templates(text):
                return self._parsed(text, site, around)
            check_reserved(text, site)
        except RuleErrors as errors:
            self.mistakes.extend(errors.mistakes)
        if around is not None:
            around.append(_literal(text, site))
        return Constant(text, site)

    def _parsed(self, text: str, site: Site, around: Statements | None) -> Constant | Value | Joined:
        tree = self.parse(text, site)
        if around is None:
            self._add(tree)
        else:
            sets_names = not all(isinstance(each, (syntax.Data, syntax.Print)) for each in tree.body)
            around += [syntax.With((), (), tree.body, site=site)] if sets_names else tree.body
            around.append(_literal("", site))
        parts = tuple(_part(each, site) for each in tree.body)
        if len(parts) == 1 and isinstance(parts[0], PRINTING):
            return Value(parts[0], site)
        if all(isinstance(part, str) for part in parts):
            return Constant("".join(map(str, parts)), site)
        return Joined(parts, plain=False, site=site, own=True)

    def _add(self, tree: syntax.Template) -> None:
        self.members.setdefault(self._member, []).append(tree)
        self.texts.append(tree)


def _part(node: syntax.Stmt, site: Site) -> Part:
    """`site`: of the string, which is more exact than that of a statement in it."""
    if isinstance(node, syntax.Data):
        return node.text
    if isinstance(node, PRINTING):
        return node
    if isinstance(node, syntax.If):
        node = replace(node, branches=tuple(replace(each, site=site) for each in node.branches))
    return replace(node, site=site)


def _filled(statement: syntax.Stmt, tags: Sequence[_Tag], bodies: Sequence[syntax.Body]) -> syntax.Stmt:
    """The statement with its bodies, at the places of its keys."""
    if isinstance(statement, syntax.For):
        otherwise = bodies[1] if len(bodies) > 1 else ()
        return replace(statement, body=bodies[0], otherwise=otherwise, site=tags[0].site)
    assert isinstance(statement, syntax.If)
    branches = tuple(
        replace(branch, body=body, site=tag.site)
        for branch, body, tag in zip(statement.branches, bodies, tags, strict=False)
    )
    otherwise = bodies[len(branches)] if len(bodies) > len(branches) else ()
    return replace(statement, branches=branches, otherwise=otherwise, site=tags[0].site)


def _literal(text: str, site: Site) -> syntax.Data:
    """A text as a line, so that none continues another."""
    return syntax.Data(f"{text}\n", site=site)
