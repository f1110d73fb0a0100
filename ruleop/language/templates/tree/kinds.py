"""The kinds that a template can render: they are watched, and roles are generated for them, before rendering.

`apiVersion` and `kind` are those of the outermost mapping of each document, in all branches. They are literals, or a
choice of literals: `kind: {{ 'Role' if spec.local else 'ClusterRole' }}`. Branches and choices by the same condition
belong together. Rendered objects are checked against this set.

In the template of a status, the names of the outermost fields are literals: a field that the rules stop setting is
removed, and its name must be known for that. What macros and includes give is not checked: it may be below a field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

from ruleop.errors import RuleError
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import EFFECTS
from ruleop.language.templates.tree.nodes import (
    Blocks,
    Choice,
    Constant,
    DocumentBlock,
    Entry,
    Joined,
    Mapping,
    Spread,
    Statement,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.errors import Site
    from ruleop.language.templates.tree.nodes import Block, Documents, Node

PLAIN_TEXT: Final = (
    "{} must be plain text, so that ruleop knows what to watch before it renders, or a choice of literals such as "
    "`{{{{ 'A' if spec.x else 'B' }}}}`"
)
COMPUTED: Final = (
    "a field of the status has a computed name, so ruleop could not remove it later: "
    "put it below a field with a fixed name"
)
_LITERAL: Final = re.compile(r"[A-Za-z][A-Za-z0-9./-]*")  # text that YAML reads as a string

Taken: TypeAlias = frozenset[tuple[str, int]]
"""The branches around a value, by their conditions: equal conditions have the same outcome."""
Options: TypeAlias = list[tuple[str, Taken]]
"""The texts that a value can have; none if they are not known."""
_ALWAYS: Final[Taken] = frozenset()


@dataclass(slots=True)
class KindCollector:
    """Collects the kinds of documents."""

    found: set[Kind] = field(default_factory=set)
    mistakes: list[RuleError] = field(default_factory=list)
    _unpaired: dict[str, Options] = field(default_factory=lambda: {"apiVersion": [], "kind": []})

    def add(self, documents: Documents, taken: Taken = _ALWAYS) -> None:
        for each in documents.members:
            if isinstance(each, DocumentBlock):
                for inner, body in zip(_branches(each.node, taken), each.bodies, strict=True):
                    self.add(body, inner)
            else:
                self._document(each, taken)

    def finish(self) -> frozenset[Kind]:
        """All kinds: a version and a kind that are in different pieces belong together."""
        versions, names = self._unpaired["apiVersion"], self._unpaired["kind"]
        self.found |= {Kind.parse(version, name) for version, _ in versions for name, _ in names}
        return frozenset(self.found)

    def _document(self, node: Node, taken: Taken) -> None:
        parts: dict[str, Options] = {"apiVersion": [], "kind": []}
        for entry, inner in entries_of(node, taken):
            key = _text_of_key(entry.key)
            if key not in parts:
                continue
            options = options_of(entry.value)
            if not options:
                self.mistakes.append(RuleError(PLAIN_TEXT.format(key), entry.site))
            elif any(text == "List" for text, _ in options) and key == "kind":
                message = "`kind: List` is not supported: write its items as documents, separated by ---"
                self.mistakes.append(RuleError(message, entry.site))
            parts[key] += [(text, inner | own) for text, own in options]
        versions, names = parts["apiVersion"], parts["kind"]
        self.found |= {
            Kind.parse(version, name) for version, one in versions for name, two in names if _may_be_together(one, two)
        }
        if not versions or not names:
            for key, options in parts.items():
                self._unpaired[key] += options


def pairs_of(api_version: Options, kind: Options) -> frozenset[Kind]:
    """The kinds of an object of watches.yaml."""
    return frozenset(
        Kind.parse(version, name) for version, one in api_version for name, two in kind if _may_be_together(one, two)
    )


def may_be_several(documents: Documents) -> bool:
    """Whether it can render more than one document."""
    found = [each for each in documents.members if not _renders_nothing(each)]
    return len(found) > 1 or any(isinstance(each, DocumentBlock) for each in found)


def _renders_nothing(member: Node | DocumentBlock) -> bool:
    """Whether it consists of statements that have only an effect."""
    return isinstance(member, Blocks) and all(
        isinstance(each, Statement) and isinstance(each.node, EFFECTS) for each in member.members
    )


def entries_of(node: Node | Block, taken: Taken = _ALWAYS) -> Iterator[tuple[Entry, Taken]]:
    """The entries of a document in all branches."""
    members: Sequence[Entry | Block] = node.members if isinstance(node, (Mapping, Blocks)) else ()
    for each in members:
        if isinstance(each, Entry):
            yield each, taken
        elif isinstance(each, Statement):
            for inner, body in zip(_branches(each.node, taken), each.bodies, strict=False):
                if body is not None:
                    yield from entries_of(body, inner)


def options_of(value: Node) -> Options:
    """The texts that a value can have."""
    if isinstance(value, Constant):
        return [(value.value, _ALWAYS)] if isinstance(value.value, str) and value.value else []
    if isinstance(value, Value):
        return _literals(value.slot.printed)
    if isinstance(value, Blocks) and isinstance(only := value.members[0], Statement) and len(value.members) == 1:
        value = Choice(only.node, only.bodies, only.site) if isinstance(only.node, syntax.If) else value
    if isinstance(value, Choice):
        branches = zip(_branches(value.node, _ALWAYS), value.branches, strict=True)
        found = [(taken, options_of(each) if each is not None else []) for taken, each in branches]
        if not all(options for _, options in found):
            return []
        return [(text, taken | own) for taken, options in found for text, own in options]
    if not isinstance(value, Joined):
        return []
    parts = [
        [(each, _ALWAYS)] if isinstance(each, str) else _literals(each.value) if isinstance(each, syntax.Print) else []
        for each in value.parts
    ]
    return [
        ("".join(text for text, _ in chosen), frozenset().union(*(taken for _, taken in chosen)))
        for chosen in product(*parts)
    ]


def _literals(node: syntax.Node | None) -> Options:
    if isinstance(node, syntax.Conditional):
        then, otherwise = _literals(node.then), _literals(node.otherwise)
        condition = repr([node.test])
        if not then or not otherwise:
            return []
        return [
            (text, taken | {(condition, number)})
            for number, options in enumerate((then, otherwise))
            for text, taken in options
        ]
    if isinstance(node, syntax.Const) and isinstance(node.value, str) and _LITERAL.fullmatch(node.value):
        return [(node.value, _ALWAYS)]
    return []


def _branches(node: syntax.Stmt, taken: Taken) -> list[Taken]:
    """The branches that are taken in each body of a statement."""
    if isinstance(node, syntax.If):
        condition = repr([each.test for each in node.branches])
        return [taken | {(condition, number)} for number in range(len(node.branches) + 1)]
    if isinstance(node, syntax.For):
        return [taken | {(repr(node.iterable), number)} for number in range(2)]
    return [taken]


def _may_be_together(one: Taken, two: Taken) -> bool:
    branches = dict(one)
    return all(branches.get(condition, branch) == branch for condition, branch in two)


def _text_of_key(key: str | Joined) -> str:
    return key if isinstance(key, str) else ""


# -- the fields of a status --------------------------------------------------------------------------------------------


def fields_of(documents: Documents) -> Iterator[str]:
    """The names of the outermost fields, in all branches, as far as they are written out."""
    for each in documents.members:
        if isinstance(each, DocumentBlock):
            for body in each.bodies:
                yield from fields_of(body)
        else:
            yield from (entry.key for entry, _ in entries_of(each) if isinstance(entry.key, str))


def computed_fields(documents: Documents, local: frozenset[str]) -> Iterator[RuleError]:
    """The mistakes in the template of a status. `local`: the names that it sets, which may be pieces."""
    for each in documents.members:
        bodies = each.bodies if isinstance(each, DocumentBlock) else ()
        for body in bodies:
            yield from computed_fields(body, local)
        if not isinstance(each, DocumentBlock):
            yield from (RuleError(COMPUTED, site) for site in _computed(each, local))


def _computed(node: Node | Block, local: frozenset[str]) -> Iterator[Site]:
    if isinstance(node, (Value, Spread)):
        if _is_data(node.slot.printed, local):
            yield node.slot.place.site
        return
    for each in _members(node):
        if not isinstance(each, Entry):
            yield from _computed(each, local)
        elif isinstance(each.key, Joined):
            yield each.site


def _members(node: Node | Block) -> Iterable[Entry | Node | Block]:
    if isinstance(node, Statement):
        return [each for each in node.bodies if each is not None]
    return node.members if isinstance(node, (Mapping, Blocks)) else ()


def _is_data(node: syntax.Node | None, local: frozenset[str]) -> bool:
    while isinstance(node, (syntax.Filter, syntax.Field, syntax.Item, syntax.Slice)):
        node = node.value if isinstance(node, syntax.Filter) else node.of
    return isinstance(node, syntax.Dict) or (isinstance(node, syntax.Name) and node.name not in local)
