"""Parsed files of watches, and each watch joined with the shared values of its files.

Shared values come from watches.yaml, then from the included file of the watch, then from the watch itself. Inner values
win: a var replaces the var of the same name; a let replaces the let of the same name in its position, where it sees
only earlier names. `apply` is joined key by key, and its lists `ignore` and `own` are concatenated.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import JSON, Kind
from ruleop.language.rules.keys.env_vars import REFERENCE
from ruleop.language.rules.keys.tables import TableOf
from ruleop.language.rules.keys.value_types import NamedEntry, Word, wrong_type
from ruleop.language.rules.keys.watches_yaml import (
    WATCHES,
    ApplyTable,
    ChildTable,
    FileTable,
    IgnoreTable,
    ObserveTable,
    WatchTable,
    kind_in_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.language.rules.keys.env_vars import Constants
    from ruleop.language.rules.keys.model import Strategy
    from ruleop.language.rules.keys.value_types import FileReading, PlacedPath, Templated
    from ruleop.language.templates import Expression, StringTemplate, TextTemplate, Tree, YamlNode

JOBS = ("batch", "Job")


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared values that apply to a watch."""

    vars: Mapping[str, JSON] = field(default_factory=dict)
    let: tuple[NamedEntry[Templated[Tree]], ...] = ()
    applies: tuple[ApplyTable, ...] = ()  # outermost first
    from_environment: frozenset[str] = frozenset()  # the vars that read environment variables
    public_vars: Mapping[str, JSON] = field(default_factory=dict)  # with names of variables instead of their values

    def within(self, table: FileTable | WatchTable, constants: Constants) -> Shared:
        """The shared values, extended by those of an inner table."""
        own_vars = constants.read(table.vars) if table.vars is not None else {}
        own_reads = {name for name, node in _members(table.vars) if REFERENCE.search(str(node.data()))}
        let = {entry.name: entry for entry in self.let} | {entry.name: entry for entry in table.let}
        return Shared(
            {**self.vars, **own_vars},
            tuple(let.values()),
            (*self.applies, table.apply) if table.apply else self.applies,
            (self.from_environment - own_vars.keys()) | own_reads,
            {
                **self.public_vars,
                **(constants.without_values().read(table.vars) if own_reads and table.vars else own_vars),
            },
        )


def _members(node: YamlNode | None) -> Iterable[tuple[str, YamlNode]]:
    return node.value.items() if node is not None and isinstance(node.value, dict) else ()


@dataclass(frozen=True, slots=True)
class ChildDraft:
    id: str
    site: Site
    table: ChildTable
    final: bool
    applies: tuple[ApplyTable, ...]  # outermost first; the last may be the child's own; none of one with `patch`

    @property
    def body(self) -> Templated[TextTemplate] | Templated[Tree] | None:
        given = self.table.objects
        return self.table.template or self.tree or (given.body if given is not None else None)

    @property
    def tree(self) -> Templated[Tree] | None:
        """The object, or the fields of one, that is in the file of watches."""
        return self.table.object or (self.table.patch.body if self.table.patch is not None else None)

    @property
    def has_items(self) -> bool:
        return bool({"forEach", "objects"} & self.table.key_sites.keys())

    @property
    def given_kinds(self) -> list[tuple[Kind, Site]]:
        """The kinds of `objects`."""
        return [(kind_in_version(word), word.site) for word in self.table.kinds]

    @property
    def kinds(self) -> frozenset[Kind]:
        if self.table.kinds:
            return frozenset(kind for kind, _ in self.given_kinds)
        return self.body.compiled.kinds if self.body else frozenset()

    @property
    def many(self) -> bool:
        return (
            self.has_items
            or self.table.for_each_of is not None
            or (self.table.template is not None and self.table.template.compiled.many)
            or (self.table.patch is not None and self.table.patch.selector is not None)
        )

    @property
    def loops(self) -> tuple[NamedEntry[Templated[Expression]], ...]:
        """The loops of `forEach` with the names of their items, outermost first; and that of `objects`."""
        if (given := self.table.objects) is not None:
            return (NamedEntry("item", self.site, given.each),)
        alone = self.table.item_name or Word("item", self.site)
        return tuple(
            each if each.name else replace(each, name=alone.text, site=alone.site) for each in self.table.for_each or ()
        )

    @property
    def run(self) -> Templated[StringTemplate] | None:
        """The request id or the schedule: an object is made once for each run."""
        return self.table.once or self.table.schedule

    @property
    def strategy(self) -> Strategy | None:
        if self.table.patch is not None:
            return "server-side"
        if self.run is not None:
            return "create-only"
        return next((apply.strategy for apply in reversed(self.applies) if apply.strategy), None)

    @property
    def create_only(self) -> bool:
        if self.strategy is not None:
            return self.strategy == "create-only"
        return bool(self.kinds) and all(kind.versionless == JOBS for kind in self.kinds)

    @property
    def on_immutable(self) -> Templated[StringTemplate] | None:
        return next((apply.on_immutable for apply in reversed(self.applies) if apply.on_immutable), None)

    @property
    def ignore(self) -> tuple[IgnoreTable, ...]:
        return tuple(ignored for apply in self.applies for ignored in apply.ignore or ())

    @property
    def own(self) -> tuple[PlacedPath, ...]:
        return tuple(owned for apply in self.applies for owned in apply.own or ())


@dataclass(frozen=True, slots=True)
class Draft:
    """A parsed watch, before checks that involve several values."""

    table: WatchTable
    kind: Kind
    vars: Mapping[str, JSON]
    let: tuple[NamedEntry[Templated[Tree]], ...]
    children: Mapping[str, ChildDraft]
    final: Mapping[str, ChildDraft]
    observed: Mapping[str, NamedEntry[ObserveTable]]
    from_environment: frozenset[str] = frozenset()  # the vars that read environment variables
    public_vars: Mapping[str, JSON] = field(default_factory=dict)  # with names of variables instead of their values

    def looped(self, child: ChildDraft) -> ChildDraft:
        """The child whose loops give this one its items: itself, or the child that it names in `forEachOf`."""
        other = child.table.for_each_of
        return child if other is None else self.children.get(other.text, child)

    def peers(self, child: ChildDraft) -> Mapping[str, ChildDraft]:
        """The children that are rendered together with this one. One with `forEachOf` is rendered alone."""
        if not child.final:
            return self.children
        together = child.table.for_each_of is None
        return {id_: each for id_, each in self.final.items() if together and each.table.for_each_of is None}

    @property
    def is_builtin(self) -> bool:
        """Whether the API server has the watched kind without a CRD."""
        return builtin_resource(self.kind.versionless) is not None

    @property
    def everyone(self) -> Iterator[ChildDraft]:
        yield from self.children.values()
        yield from self.final.values()


def join(table: WatchTable, shared: Shared, constants: Constants) -> Draft | None:
    """A watch joined with the shared values of its files; None if its kind is invalid."""
    if table.version is None or table.kind is None:
        return None
    shared = shared.within(table, constants)
    return Draft(
        table=table,
        kind=Kind(table.group.text, table.version.text, table.kind.text),
        vars=shared.vars,
        let=shared.let,
        children=_children(table.children, shared, final=False),
        final=_children(table.finalize, shared, final=True),
        observed={entry.name: entry for entry in table.observe},
        from_environment=shared.from_environment,
        public_vars=shared.public_vars,
    )


def _children(entries: tuple[NamedEntry[ChildTable], ...], shared: Shared, *, final: bool) -> dict[str, ChildDraft]:
    found: dict[str, ChildDraft] = {}
    for entry in entries:
        if (table := entry.value) is not None:
            applies = (*shared.applies, table.apply) if table.apply is not None else shared.applies
            found[entry.name] = ChildDraft(
                entry.name, entry.site, table, final, () if table.patch is not None else applies
            )
    return found


def read_file(node: YamlNode, reading: FileReading) -> FileTable | None:
    """Parses a file of watches in either form."""
    if isinstance(node.value, list):
        return FileTable(site=node.site, key_sites={}, watches=WATCHES.read(node, "", reading) or ())
    if isinstance(node.value, dict) and "kind" in node.value and "watches" not in node.value:
        message = "a watch must be an item of a list: start it with `- `, and indent its keys"
        reading.findings.mistake("wrong-type", message, node.site)
        return None
    if isinstance(node.value, dict):
        return TableOf(FileTable).read(node, "", reading)
    wrong_type(node, "a file of watches", 'a list of watches, or a mapping with the key "watches"', reading)
    return None
