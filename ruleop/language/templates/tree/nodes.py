"""The nodes of a template's tree. They hold no value of a custom resource.

A place for a value takes a `Constant`, `Value`, `Joined`, `TextBlock`, `Mapping`, `Sequence` or `Blocks`. Among the
entries of a mapping, the items of a list and the documents of a file there may also be blocks: a `Spread`, a statement
of Jinja with nodes in it, or one that has only an effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates import syntax
    from ruleop.language.templates.tree.lines import Item, Part


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    value: JSON  # a scalar; or an empty mapping or list
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One expression, which keeps its type."""

    slot: syntax.Printing
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """A string that is joined from parts."""

    parts: tuple[Part, ...]
    plain: bool  # not in quotes, nor a text block: literals alone may be a number, a boolean or null
    site: Site
    own: bool = False  # of watches.yaml: a single value keeps its type, and the names that it sets end with it


@dataclass(frozen=True, slots=True, eq=False)
class TextBlock:
    """A block scalar with statements in it."""

    items: Sequence[Item]
    folded: bool
    chomping: str  # "", "-" or "+"
    indentation: int  # of its content, counted from the start of a line; 0 if its first line decides
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A statement within a line that is a whole value: an `if` whose branches are values."""

    node: syntax.If
    branches: tuple[Node | None, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    key: str | Joined
    value: Node
    site: Site  # of the key


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
    members: tuple[Entry | Block, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class ListNode:
    members: tuple[Node | Block, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """A value that is nothing but blocks: they decide whether it is a mapping, a list or a scalar."""

    members: tuple[Block, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """An expression alone on its line among entries or items."""

    slot: syntax.Printing
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class SpreadKey:
    """A key of watches.yaml without a value: the mapping that it prints."""

    key: Joined
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement of Jinja alone on its lines, with the content of each of its bodies; None if one is empty."""

    node: syntax.Stmt
    bodies: tuple[Node | None, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class DocumentBlock:
    """A statement of Jinja around whole documents."""

    node: syntax.Stmt
    bodies: tuple[Documents, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a file, a macro or a branch."""

    members: tuple[Node | DocumentBlock, ...] = field(default=())
    separated: bool = False  # it has a line `---`


Block: TypeAlias = Spread | SpreadKey | Statement
DATA: Final = (Mapping, ListNode, Blocks, Value)
"""The documents of which a piece that is a whole value is data, and not text."""
Node: TypeAlias = Constant | Value | Joined | TextBlock | Choice | Mapping | ListNode | Blocks
