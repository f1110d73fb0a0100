"""Compiled expressions, strings, template files and trees, and what each reads. Each is rendered with a scope, a
mapping of names to values, and raises `Waiting` or `RenderError`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from ruleop.language.templates.tree.nodes import Documents, Entry
from ruleop.language.templates.tree.nodes import Mapping as MappingNode
from ruleop.language.templates.tree.pieces import Form
from ruleop.language.templates.values.data import plain, scalar_text
from ruleop.language.templates.values.faults import NotThereYet, Waiting, located
from ruleop.language.templates.values.text import Part, Slot, Text, flatten_parts
from ruleop.language.templates.values.undefined import OMIT, Broken, Omit, UndefinedValue
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.errors import RuleError, Site
    from ruleop.kubernetes.kinds import JSON, Kind
    from ruleop.language.templates.tree.nodes import DocumentBlock, Node
    from ruleop.language.templates.tree.state import Sites
    from ruleop.language.templates.tree.templates import Computation, File, Templates
    from ruleop.language.templates.yaml_reader import YamlNode


# -- reads -------------------------------------------------------------------------------------------------------------
#
# Names, and chains of fields below them.

Path = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A chain of fields from a free name, such as ("credentials", "data", "password"). A computed step is None."""

    path: Path
    site: Site
    passes: bool = False  # a list that a loop iterates over; what is read of its items is recorded with the items

    @property
    def name(self) -> str:
        return self.path[0] or ""


@dataclass(frozen=True, slots=True)
class Reads:
    names: frozenset[str] = frozenset()
    references: tuple[Reference, ...] = ()
    calls: tuple[tuple[str, Site], ...] = ()
    assigned: tuple[tuple[str, Site], ...] = ()

    @classmethod
    def joined(cls, all_reads: Iterable[Reads]) -> Reads:
        reads = list(all_reads)
        return cls(
            frozenset().union(*(each.names for each in reads)),
            tuple(reference for each in reads for reference in each.references),
            tuple(call for each in reads for call in each.calls),
            tuple(name for each in reads for name in each.assigned),
        )


# -- compiled ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Compiled:
    templates: Templates = field(repr=False)
    site: Site
    reads: Reads = field(repr=False)

    @property
    def names(self) -> frozenset[str]:
        return self.reads.names

    @property
    def references(self) -> tuple[Reference, ...]:
        return self.reads.references

    @property
    def calls(self) -> tuple[tuple[str, Site], ...]:
        return self.reads.calls

    @property
    def assigned(self) -> tuple[tuple[str, Site], ...]:
        return self.reads.assigned


@dataclass(frozen=True, slots=True, eq=False)
class TextTemplate(_Compiled):
    """A template file that renders to objects."""

    name: str
    files: frozenset[str]
    kinds: frozenset[Kind] = frozenset()
    many: bool = False
    fields: frozenset[str] = frozenset()  # of a status: the names of its outermost fields, in all branches

    @property
    def file(self) -> File:
        return self.templates.file(self.name)

    def render(self, scope: Mapping[str, Any], *, lenient: bool = False) -> list[JSON]:
        """The documents. `lenient`: a value that is not available yet omits its own field or item."""
        return self.templates.render(self.file, scope, lenient=lenient)

    def traced(self, scope: Mapping[str, Any]) -> tuple[list[JSON], Sites]:
        """The documents, with the place of each of their fields."""
        return self.templates.traced(self.file, scope)


@dataclass(frozen=True, slots=True, eq=False)
class Expression(_Compiled):
    """An expression over a scope."""

    computation: Computation = field(repr=False)
    source: str

    def value(self, scope: Mapping[str, Any]) -> Any:
        """The value with its views, for use as a value of another scope."""
        with self.templates.state.keeping():
            return self._value(scope)

    def _value(self, scope: Mapping[str, Any]) -> Any:
        templates = self.templates
        with templates.state, located(self.site, self.source):
            value = self.computation.compute(templates.scope(scope))
            if isinstance(value, UndefinedValue) and value is not OMIT:
                raise value.fault()
            return value

    def evaluate(self, scope: Mapping[str, Any]) -> JSON:
        """The value as JSON; None for `omit`."""
        with self.templates.state:
            value = self._value(scope)
            with located(self.site, self.source):
                return None if isinstance(value, Omit) else plain(value)

    def truth(self, scope: Mapping[str, Any]) -> bool:
        with self.templates.state:
            value = self._value(scope)
            with located(self.site, self.source):
                return False if isinstance(value, Omit) else bool(value)


@dataclass(frozen=True, slots=True, eq=False)
class StringTemplate(_Compiled):
    """A string of watches.yaml. A single slot keeps the type of its value; anything else is text."""

    written: File | None = field(repr=False)  # None if it has no templates
    source: str
    quotation: str = field(init=False, repr=False)  # the text that messages quote: the expression, if it is one

    def __post_init__(self) -> None:
        text = self.source.strip()
        is_expression = text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1
        object.__setattr__(self, "quotation", text[2:-2].strip() if is_expression else text)

    @property
    def constant(self) -> str | None:
        return self.source if self.written is None else None

    def evaluate(self, scope: Mapping[str, Any]) -> JSON | Omit:
        """The value, or OMIT if the field is omitted."""
        with self.templates.state, located(self.site, self.quotation):
            value = self._view(scope)
            if value is None or value is OMIT:
                return OMIT
            return plain(value)

    def view(self, scope: Mapping[str, Any]) -> Any:
        """As `evaluate`, but a single slot keeps its value with its views, for use as a value of another scope."""
        with self.templates.state.keeping():
            return self._view(scope)

    def _view(self, scope: Mapping[str, Any]) -> Any:
        if self.written is None:
            return self.source
        with located(self.site):
            parts = self._parts(scope)
        if len(parts) == 1 and isinstance(parts[0], Slot):
            return self._placed(parts[0].value)
        return Text(parts)

    def _parts(self, scope: Mapping[str, Any]) -> tuple[Part, ...]:
        assert self.written is not None
        parts: list[Part] = []
        self.written.form.write(self.templates.scope(scope), parts)
        return flatten_parts(parts)

    def _placed(self, value: Any) -> Any:
        """An undefined value keeps this place: who reads it later reports the error here, once."""
        if not isinstance(value, UndefinedValue) or value is OMIT or isinstance(fault := value.fault(), NotThereYet):
            return value
        return Broken(value.path(), fault.at(self.site, self.quotation))

    def string(self, scope: Mapping[str, Any]) -> str:
        """The value as text, for reasons, messages and names; '' if it is omitted."""
        value = self.evaluate(scope)
        with located(self.site, self.quotation):
            return "" if isinstance(value, Omit) else scalar_text(value)


@dataclass(frozen=True, slots=True, eq=False)
class Tree(_Compiled):
    """A value of watches.yaml whose strings contain templates: an `object`, a `status`, a `let`."""

    many: ClassVar[bool] = False

    only: StringTemplate | None = field(repr=False)  # of a value that is a string
    file: File = field(repr=False)
    constant: bool
    kinds: frozenset[Kind]
    kind_mistake: RuleError | None
    node: YamlNode = field(repr=False)  # as it is written
    counts: Mapping[str, Callable[[], None]] = field(repr=False)  # for coverage, by members as in `ValueTree`
    fields: tuple[str, ...] = field(init=False)  # of a mapping: the names that are written out, outside of tags
    _forms: dict[str, Form] = field(default_factory=dict, repr=False)  # of members

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(each.key for each in self._entries if isinstance(each.key, str)))

    def evaluate(self, scope: Mapping[str, Any], *, lenient: bool = False) -> JSON | Omit:
        """The value with its strings evaluated. `lenient`: a value that is not available yet omits its own field or
        item."""
        if self.only is not None:
            try:
                return self.only.evaluate(scope)
            except Waiting:
                if lenient:
                    return OMIT
                raise
        if not isinstance(self.node.value, (dict, list)):
            return self.node.value
        for count in self.counts.values():
            count()
        found = self.templates.render(self.file, scope, lenient=lenient)
        return found[0] if found else OMIT

    def member(self, name: str, scope: Mapping[str, Any]) -> JSON | Omit:
        """One of these fields, leniently; a mistake in it is none of the others'."""
        form = self._forms.get(name)
        if form is None:
            entries = tuple(each for each in self._entries if each.key == name)
            form = self._forms[name] = self._form(MappingNode(entries, self.site))
        if (count := self.counts.get(name)) is not None:
            count()
        (found,) = self.templates.render(self.file, scope, lenient=True, form=form)
        return found.get(name, OMIT)

    def identity(self, scope: Mapping[str, Any]) -> JSON | None:
        """The apiVersion, kind and name of an object, leniently; None if a tag may decide about them."""
        form = self._forms.get(_IDENTITY)
        if form is None:
            node = _part_of(self._root, {"apiVersion": {}, "kind": {}, "metadata": {"name": {}}})
            if node is None:
                return None
            form = self._forms[_IDENTITY] = self._form(node)
        found = self.templates.render(self.file, scope, lenient=True, form=form)
        return found[0] if found else None

    def render(self, scope: Mapping[str, Any], *, lenient: bool = False) -> list[JSON]:
        value = self.evaluate(scope, lenient=lenient)
        return [] if isinstance(value, Omit) or value is None else [value]

    def traced(self, scope: Mapping[str, Any]) -> tuple[list[JSON], Sites]:
        """The value, with the place of each of its fields."""
        return self.templates.traced(self.file, scope)

    def view(self, scope: Mapping[str, Any]) -> Any:
        """As `evaluate`, but a tree that is a single string keeps the views of its slot (for `let`)."""
        if self.only is not None:
            return self.only.view(scope)
        with self.templates.state.keeping():
            return self.evaluate(scope)

    @property
    def _root(self) -> Node | DocumentBlock:
        return self.file.form.documents.members[0]

    @property
    def _entries(self) -> Iterator[Entry]:
        return (each for each in getattr(self._root, "members", ()) if isinstance(each, Entry))

    def _form(self, node: Node) -> Form:
        return Form(self.file, (), Documents((node,)))


_IDENTITY: Final = " identity"  # no field has a name with a space
_Parts: TypeAlias = "dict[str, _Parts]"


def _part_of(node: Node | DocumentBlock, parts: _Parts) -> Node | None:
    """A mapping with these entries and those below them alone; None if a tag or a computed key may add to them."""
    if not isinstance(node, MappingNode) or not all(isinstance(each, Entry) for each in node.members):
        return None
    found = []
    for each in node.members:
        assert isinstance(each, Entry)
        if not isinstance(each.key, str):
            return None
        if each.key in parts:
            below = parts[each.key]
            value = _part_of(each.value, below) if below else each.value
            if value is None:
                return None
            found.append(Entry(each.key, value, each.site))
    return MappingNode(tuple(found), node.site)
