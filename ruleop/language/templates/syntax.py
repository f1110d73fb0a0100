"""The statements and expressions of a template: what Jinja's parser found, as frozen nodes, each with its place.

`compile.conversion` makes them; nobody else knows Jinja's own nodes. They say what the language has, and nothing else:
the content of a template is a flat list of statements, an `elif` is a branch like the `if`, `a.b` and `a['b']` are the
same field, a name that is set is another node than one that is read, and names of files are literals.

Nodes are compared by identity. Two expressions that say the same have the same `repr`.
"""

from __future__ import annotations

from dataclasses import field, fields
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ruleop.errors import Site
    from ruleop.language.templates.values.text import SlotPlace


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    site: Site = field(kw_only=True, repr=False)
    """Of the first line of the file's text, or of a string of watches.yaml: the line, as Jinja knows it."""


class Expr(Node):
    __slots__ = ()


class Stmt(Node):
    __slots__ = ()


Body: TypeAlias = "tuple[Stmt, ...]"
Scalar: TypeAlias = str | int | float | bool | None


# -- expressions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Name(Expr):
    """A name that is read."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Const(Expr):
    value: Scalar


@dataclass(frozen=True, slots=True, eq=False)
class List(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tuple(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pair(Node):
    key: Expr
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Dict(Expr):
    items: tuple[Pair, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Field(Expr):
    """`of.name` or `of['name']`."""

    of: Expr
    name: str
    in_brackets: bool = field(default=False, repr=False)  # such a field is never the method of a call


@dataclass(frozen=True, slots=True, eq=False)
class Item(Expr):
    """`of[0]`, or `of[key]` with a computed key."""

    of: Expr
    key: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Slice(Expr):
    """`of[start:stop:step]`."""

    of: Expr
    start: Expr | None
    stop: Expr | None
    step: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Expr):
    left: Expr
    operator: str  # + - * / // % **
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Sign(Expr):
    operator: str  # + -
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Concat(Expr):
    """`a ~ b`."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class And(Expr):
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Or(Expr):
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Not(Expr):
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Operand(Node):
    """An operand of a comparison behind its operator."""

    operator: str  # eq ne lt lteq gt gteq in notin
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Expr):
    """`first < second <= third`."""

    first: Expr
    others: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Expr):
    """`then if test else otherwise`."""

    test: Expr
    then: Expr
    otherwise: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class WithArguments(Expr):
    """A call, a filter or a test."""

    args: tuple[Expr, ...] = ()
    kwargs: Mapping[str, Expr] = field(default_factory=dict)
    more_args: Expr | None = None  # *args
    more_kwargs: Expr | None = None  # **kwargs

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """All of them, without their names."""
        more = (each for each in (self.more_args, self.more_kwargs) if each is not None)
        return (*self.args, *self.kwargs.values(), *more)

    @property
    def is_dynamic(self) -> bool:
        """Whether it has arguments that are known only when it is evaluated."""
        return self.more_args is not None or self.more_kwargs is not None


@dataclass(frozen=True, slots=True, eq=False)
class Filter(WithArguments):
    value: Expr | None = field(kw_only=True)  # None: what a block has captured
    name: str = field(kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class Test(WithArguments):
    value: Expr = field(kw_only=True)
    name: str = field(kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class Call(WithArguments):
    function: Expr = field(kw_only=True)

    @property
    def name(self) -> str:
        """The name of the function; "" if it is none."""
        return self.function.name if isinstance(self.function, Name) else ""

    @property
    def method(self) -> Field | None:
        """The field that is called, if it is a method: `of.name(...)`."""
        return self.function if isinstance(self.function, Field) and not self.function.in_brackets else None


# -- what is set -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Node):
    """A name that is set."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Attribute(Node):
    """A field of a namespace that is set: `set ns.x = 1`."""

    name: str  # of the namespace
    attribute: str


@dataclass(frozen=True, slots=True, eq=False)
class Variables(Node):
    """`for a, b in ...`."""

    items: tuple[Target, ...]


Target: TypeAlias = Variable | Attribute | Variables


# -- statements --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Data(Stmt):
    """Text outside of tags."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Print(Stmt):
    """`{{ value }}`."""

    value: Expr
    place: SlotPlace = field(repr=False)

    @property
    def printed(self) -> Printed:
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class Branch(Node):
    """An `if` or `elif` with what it holds."""

    test: Expr
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class If(Stmt):
    branches: tuple[Branch, ...]
    otherwise: Body


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    target: Target
    iterable: Expr
    test: Expr | None
    body: Body
    otherwise: Body
    recursive: bool


@dataclass(frozen=True, slots=True, eq=False)
class With(Stmt):
    targets: tuple[Target, ...]
    values: tuple[Expr, ...]
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Set(Stmt):
    target: Target
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class SetBlock(Stmt):
    """`{% set x %}...{% endset %}`."""

    target: Target
    filter: Filter | None
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Macro(Stmt):
    name: str
    params: tuple[str, ...]
    defaults: tuple[Expr, ...]  # of the last parameters
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class CallBlock(Stmt):
    """`{% call f() %}...{% endcall %}`."""

    call: Call
    params: tuple[str, ...]
    defaults: tuple[Expr, ...]
    body: Body
    place: SlotPlace = field(repr=False)

    @property
    def printed(self) -> Printed:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class FilterBlock(Stmt):
    filter: Filter
    body: Body
    place: SlotPlace = field(repr=False)

    @property
    def printed(self) -> Printed:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Include(Stmt):
    files: tuple[str, ...]  # the first that exists is included
    ignore_missing: bool
    with_context: bool
    place: SlotPlace = field(repr=False)

    @property
    def printed(self) -> Printed:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Import(Stmt):
    """`{% import file as target %}`."""

    file: str
    target: str
    with_context: bool


@dataclass(frozen=True, slots=True, eq=False)
class FromImport(Stmt):
    """`{% from file import a, b as c %}`."""

    file: str
    names: tuple[tuple[str, str], ...]  # in the file, and here
    with_context: bool


@dataclass(frozen=True, slots=True, eq=False)
class Extends(Stmt):
    file: str


@dataclass(frozen=True, slots=True, eq=False)
class Block(Stmt):
    """A part of a file that others extend. Where a file extends another, the block in force stands at the place of the
    one that it overrides."""

    name: str
    body: Body
    path: str = field(repr=False)  # the file of the body
    overridden: tuple[Block, ...] = field(default=(), repr=False)  # what `super` gives, the nearest first


@dataclass(frozen=True, slots=True, eq=False)
class Template(Node):
    """A file, or a string of watches.yaml."""

    body: Body
    _index: dict[type[Node], list[Node]] = field(default_factory=dict, init=False, repr=False)

    @property
    def only_value(self) -> Expr | None:
        """The expression of a string that is a single `{{ }}`."""
        only = self.body[0] if len(self.body) == 1 else None
        return only.value if isinstance(only, Print) else None


Printing: TypeAlias = Print | Include | CallBlock | FilterBlock
Printed: TypeAlias = Expr | CallBlock | FilterBlock | Include
"""The expression that is printed, or the tag."""
PRINTING: Final[tuple[type[Printing], ...]] = (Print, Include, CallBlock, FilterBlock)
"""Statements whose result is printed in their place."""
EFFECTS: Final = (Set, SetBlock, Macro, Import, FromImport)
"""Statements that print nothing, and set names."""


# -- walking -----------------------------------------------------------------------------------------------------------

N = TypeVar("N", bound=Node)
_PLAIN: Final = frozenset(
    {"Site", "SlotPlace", "str", "bool", "Scalar", "tuple[str, ...]", "tuple[tuple[str, str], ...]"}
)
_NOT_BELOW: Final = frozenset({"overridden", "_index"})


@cache
def _parts_of(kind: type[Node]) -> tuple[str, ...]:
    """The fields that hold nodes, in the order of the source."""
    names = [each.name for each in fields(kind) if each.type not in _PLAIN and each.name not in _NOT_BELOW]
    if issubclass(kind, WithArguments):
        names.sort(key=lambda name: name not in {"function", "value"})
    return tuple(names)


def children(node: Node) -> list[Node]:
    """The nodes directly below a node."""
    found: list[Node] = []
    for name in _parts_of(type(node)):  # type: ignore[arg-type]  # mypy thinks that classes have no hash
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif value:
            found += value.values() if isinstance(value, dict) else value
    return found


def walk(*nodes: Node) -> Iterator[Node]:
    """The nodes and all that are below them, in the order of the source; a condition goes before what it decides."""
    pending = [*reversed(nodes)]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(children(node))


def find(node: Node, *kinds: type[N]) -> Iterator[N]:
    """The node and those below it that are of these classes. In a template, one class after the other."""
    if isinstance(node, Template):
        index = _index_of(node)
        for kind in kinds:
            yield from index.get(kind, ())  # type: ignore[misc]  # the lists are by class
        return
    for each in walk(node):
        if isinstance(each, kinds):
            yield each


def _index_of(template: Template) -> Mapping[type[Node], Sequence[Node]]:
    """The nodes of a template by their class, found in one walk: a dozen readers ask for them."""
    index = template._index  # noqa: SLF001 - of this module
    if not index:
        for node in walk(template):
            index.setdefault(type(node), []).append(node)
    return index


def names_in(node: Node) -> set[str]:
    """The names that are read in an expression or a statement."""
    return {each.name for each in find(node, Name)}


def names_set(target: Target) -> Iterator[str]:
    """The names that a target sets. Not that of a namespace, which is changed."""
    for each in find(target, Variable):
        yield each.name


def chain_of(node: Node | None) -> tuple[Scalar, ...]:
    """The path of a chain of fields from a name: ("spec", "ports", 0, "name"); () for anything else."""
    steps: list[Scalar] = []
    while isinstance(node, (Field, Item)):
        if isinstance(node, Field):
            steps.append(node.name)
        elif isinstance(node.key, Const):
            steps.append(node.key.value)
        else:
            return ()
        node = node.of
    return (node.name, *reversed(steps)) if isinstance(node, Name) else ()


def source_of(node: Node | None) -> str:
    """The source text of a chain of fields, such as `spec.ports[0].name`; "" for anything else."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Field) and (before := source_of(node.of)):
        return f"{before}[{node.name!r}]" if node.in_brackets else f"{before}.{node.name}"
    if isinstance(node, Item) and isinstance(node.key, Const) and (before := source_of(node.of)):
        return f"{before}[{node.key.value!r}]"
    return ""


def has_control(*nodes: Node) -> bool:
    """Whether a condition or a loop decides what statements print."""
    return any(isinstance(each, (If, For)) for each in walk(*nodes))


def bodies_of(node: Node) -> tuple[Body, ...]:
    """The branches of a statement in the order of the source; the last is taken if no other is."""
    match node:
        case If():
            return (*(each.body for each in node.branches), node.otherwise)
        case For():
            return node.body, node.otherwise
        case With() | Block():
            return (node.body,)
    return ()
