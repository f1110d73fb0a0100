"""Files of watches as they were read, and each watch joined with what its file shares.

Shared values reach a watch from the outside in: watches.yaml, then the included file that the watch stands in, then the watch itself. What
is said further in wins: a var replaces the var of the same name; a let takes the place of the let of the same name, and there sees only
the names before it. `apply` is joined key by key, its `ignore` and `own` lists one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.kinds import JSON, Kind
from ruleop.rules.language.tables import TableOf
from ruleop.rules.language.value_types import wrong_type
from ruleop.rules.language.watches_yaml import (
    WATCHES,
    ApplyTable,
    ChildTable,
    FileTable,
    IgnoreTable,
    ObserveTable,
    OnImmutable,
    WatchTable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.rules.language.environment import Constants
    from ruleop.rules.language.model import Strategy
    from ruleop.rules.language.value_types import Entry, PlacedPath, Reading, Templated
    from ruleop.templating import TextTemplate, Tree, YamlNode

JOBS = ("batch", "Job")


@dataclass(frozen=True, slots=True)
class Shared:
    """What holds for a watch beside what it says itself."""

    vars: Mapping[str, JSON] = field(default_factory=dict)
    let: tuple[Entry[Templated[Tree]], ...] = ()
    applies: tuple[ApplyTable, ...] = ()  # outermost first

    def within(self, table: FileTable | WatchTable, constants: Constants) -> Shared:
        """The same, one step further in."""
        own_vars = constants.read(table.vars) if table.vars is not None else {}
        let = {entry.name: entry for entry in self.let} | {entry.name: entry for entry in table.let}
        return Shared({**self.vars, **own_vars}, tuple(let.values()), (*self.applies, table.apply) if table.apply else self.applies)


@dataclass(frozen=True, slots=True)
class ChildDraft:
    id: str
    site: Site
    table: ChildTable
    final: bool
    applies: tuple[ApplyTable, ...]  # outermost first; the last one may be the child's own

    @property
    def body(self) -> Templated[TextTemplate] | Templated[Tree] | None:
        return self.table.template or self.table.object

    @property
    def kinds(self) -> frozenset[Kind]:
        return self.body.compiled.kinds if self.body else frozenset()

    @property
    def many(self) -> bool:
        return "forEach" in self.table.said or (self.table.template is not None and self.table.template.compiled.many)

    @property
    def item_name(self) -> str:
        return self.table.item_name.text if self.table.item_name else "item"

    @property
    def strategy(self) -> Strategy | None:
        return next((apply.strategy for apply in reversed(self.applies) if apply.strategy), None)

    @property
    def create_only(self) -> bool:
        if self.strategy is not None:
            return self.strategy == "create-only"
        return bool(self.kinds) and all(kind.versionless == JOBS for kind in self.kinds)

    @property
    def on_immutable(self) -> OnImmutable:
        return next((apply.on_immutable for apply in reversed(self.applies) if apply.on_immutable), "fail")

    @property
    def ignore(self) -> tuple[IgnoreTable, ...]:
        return tuple(ignored for apply in self.applies for ignored in apply.ignore or ())

    @property
    def own(self) -> tuple[PlacedPath, ...]:
        return tuple(owned for apply in self.applies for owned in apply.own or ())


@dataclass(frozen=True, slots=True)
class Draft:
    """A watch, before anything was checked that takes more than one value to see."""

    table: WatchTable
    kind: Kind
    vars: Mapping[str, JSON]
    let: tuple[Entry[Templated[Tree]], ...]
    children: Mapping[str, ChildDraft]
    final: Mapping[str, ChildDraft]
    observed: Mapping[str, Entry[ObserveTable]]

    @property
    def everyone(self) -> Iterator[ChildDraft]:
        yield from self.children.values()
        yield from self.final.values()


def join(table: WatchTable, shared: Shared, constants: Constants) -> Draft | None:
    """A watch joined with what its file shares; None if not even its kind could be read."""
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
    )


def _children(entries: tuple[Entry[ChildTable], ...], shared: Shared, *, final: bool) -> dict[str, ChildDraft]:
    return {
        entry.name: ChildDraft(
            entry.name, entry.site, table, final, (*shared.applies, table.apply) if table.apply is not None else shared.applies
        )
        for entry in entries
        if (table := entry.value) is not None
    }


def read_file(node: YamlNode, reading: Reading) -> FileTable | None:
    """A file of watches in either form."""
    if isinstance(node.value, list):
        return FileTable(site=node.site, said={}, watches=WATCHES.read(node, "", reading) or ())
    if isinstance(node.value, dict) and "kind" in node.value and "watches" not in node.value:
        reading.findings.mistake("wrong-type", "a watch stands in a list: begin it with `- `, and indent what belongs to it", node.site)
        return None
    if isinstance(node.value, dict):
        return TableOf(FileTable).read(node, "", reading)
    wrong_type(node, "a file of watches", 'a list of watches, or a mapping with the key "watches"', reading)
    return None
