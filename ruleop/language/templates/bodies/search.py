"""Finds bodies that together show every branch of a template, and the branches that are in none.

Each branch is YAML by itself, because the tree of a template is parsed so. Two branches may still have the same key, or
be an entry and an item of one value, and nothing here knows which conditions exclude each other. A branch is broken
only if no outcome of the conditions makes a body with it: where two parts clash, one of the conditions under which both
are there gets another outcome.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from ruleop.language.templates.bodies.body import Body, Printed
from ruleop.language.templates.bodies.body_writer import Branch, StandIn, TooLarge, Writer, as_text
from ruleop.language.templates.bodies.branch_conditions import (
    Assignment,
    Atom,
    Conditions,
    Needs,
    Outcomes,
    atoms,
    ways,
)
from ruleop.language.templates.bodies.sources import Sources
from ruleop.language.templates.values.cost import Exhausted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.errors import RuleError, Site
    from ruleop.language.templates.bodies.sums import Clash
    from ruleop.language.templates.compile.library import Library
    from ruleop.language.templates.tree.nodes import Node
    from ruleop.language.templates.yaml.yaml_node import YamlNode

MAX_BODIES: Final = 16
MAX_TRIES: Final = 200  # of one template, to find a body with a branch
MAX_STARTS: Final = 4


@dataclass(frozen=True, slots=True)
class _Try:
    """A body, or one in which parts clash."""

    documents: list[YamlNode]
    printed: tuple[Printed, ...]
    chosen: frozenset[Site]
    assignment: Assignment
    taken: set[Branch]
    clashes: list[Clash]


@dataclass(slots=True)
class Search:
    """The bodies of one file of templates/, or of a value of watches.yaml."""

    of: str | Node
    library: Library
    stand_in: StandIn = as_text
    mistakes: dict[tuple[str, str], RuleError] = field(default_factory=dict)
    _conditions: Conditions = field(default_factory=Conditions)
    _covered: set[Branch] = field(default_factory=set)
    _broken: set[Branch] = field(default_factory=set)
    _reached: dict[Branch, dict[Needs, None]] = field(default_factory=dict)
    _tries: int = 0
    _some: bool = False  # whether there is a body

    def bodies(self, *, every_outcome: bool) -> Iterator[Body]:
        """Bodies with every branch that is in some, and with `every_outcome` also without it. `mistakes` is complete
        when they end."""
        try:
            yield from self._covering(every_outcome=every_outcome)
            yield from self._missing()
        except (TooLarge, Exhausted, RecursionError):
            return

    def _covering(self, *, every_outcome: bool) -> Iterator[Body]:
        """The bodies of the first tries: each gives each condition the outcome that it had least."""
        counts: dict[Atom, list[int]] = {}
        tried: list[Assignment] = []
        for _ in range(MAX_BODIES):
            found = self._try({}, lambda atom: _least(counts.setdefault(atom, [0, 0])))
            if found.assignment in tried:
                return
            tried.append(found.assignment)
            yield from self._bodies(found)
            for atom, outcome in found.assignment.items():
                counts.setdefault(atom, [0, 0])[outcome] += 1
            if all(map(all, counts.values())) if every_outcome else self._covered.issuperset(self._reached):
                return

    def _missing(self) -> Iterator[Body]:
        """The bodies with what is in none of the first ones."""
        known: set[Branch] = set()
        while new := [branch for branch in self._reached if branch not in known]:
            known.update(new)
            for branch in new:
                if branch not in self._covered:
                    starts = self._reached[branch]
                    yield from self._with(branch, (way for needs in starts for way in ways(needs)))
        if not self._some and not self._broken:
            yield from self._with(None, iter([{}]))

    def _with(self, branch: Branch | None, starts: Iterator[Assignment]) -> Iterator[Body]:
        """The bodies with a branch, or any at all. Reports its mistake if there is certainly none."""
        pending = deque(islice(starts, MAX_TRIES))
        tried: set[frozenset[tuple[Atom, bool]]] = set()
        failed: list[_Try] = []
        while pending:
            given = pending.popleft()
            if frozenset(given.items()) in tried:
                continue
            tried.add(frozenset(given.items()))
            self._tries += 1
            if self._tries > MAX_TRIES:
                return
            found = self._try(given, _true)
            if branch is not None and branch not in found.taken:
                continue
            if not found.clashes:
                yield from self._bodies(found)
                return
            if not found.taken & self._broken:  # else its mistake may be that of another branch
                failed.append(found)
            deciding = dict.fromkeys(atom for formula, _ in found.clashes[0].needs for atom in atoms(formula))
            pending.extend(
                {**given, atom: not found.assignment[atom]}
                for atom in reversed(deciding)
                if atom not in given and atom in found.assignment
            )
        self._report(failed, branch)

    def _report(self, failed: list[_Try], branch: Branch | None) -> None:
        """Reports the mistakes of all these tries or, if they have none in common, the most frequent one."""
        if branch is not None:
            self._broken.add(branch)
        by_key = {_key(each.mistake): each.mistake for found in failed for each in found.clashes}
        counts = Counter(key for found in failed for key in dict.fromkeys(_key(each.mistake) for each in found.clashes))
        keys = [key for key, count in counts.items() if count == len(failed)] or [
            key for key, _ in counts.most_common(1)
        ]
        self.mistakes.update((key, by_key[key]) for key in keys)

    def _try(self, given: Assignment, prefer: Callable[[Atom], bool]) -> _Try:
        outcomes = Outcomes(given, prefer)
        sources = Sources(self.library)
        path = self.library.prefix + self.of if isinstance(self.of, str) else self.of.site.path
        writer = Writer(sources, path, outcomes, self._conditions, self.stand_in)
        with self.library.templates.state:
            documents = writer.file(sources.file(self.of)) if isinstance(self.of, str) else writer.value(self.of)
        for branch, needs in writer.reached:
            if branch is not None and len(starts := self._reached.setdefault(branch, {})) < MAX_STARTS:
                starts[needs] = None
        chosen = frozenset(writer.chosen)
        return _Try(documents, tuple(writer.printed), chosen, outcomes.taken, writer.taken, writer.clashes)

    def _bodies(self, found: _Try) -> Iterator[Body]:
        if found.clashes:
            return
        self._some = True
        self._covered |= found.taken
        yield from (Body(document, found.printed, found.chosen) for document in found.documents)


def _least(counts: list[int]) -> bool:
    return counts[True] <= counts[False]


def _true(_: Atom) -> bool:
    return True


def _key(mistake: RuleError) -> tuple[str, str]:
    return str(mistake.site), mistake.message


def bodies_of(of: str | Node, library: Library, stand_in: StandIn = as_text) -> Iterator[Body]:
    """The bodies of a file of templates/, or of a value of watches.yaml, each once."""
    seen: set[str] = set()
    search = Search(of, library, stand_in)
    for body in search.bodies(every_outcome=True):
        text = repr(body.document.data())
        if text not in seen:
            seen.add(text)
            yield body


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Bodies with every branch of a file, and the mistakes of branches that are never YAML."""

    bodies: tuple[Body, ...]
    mistakes: tuple[RuleError, ...]


def read_file(name: str, library: Library) -> ReadFile:
    """Reads a file of a library once."""
    return _read(name, name, library)


def read_tags(node: YamlNode, library: Library) -> ReadFile:
    """The same of a value of watches.yaml with tags among its keys; nothing of any other."""
    value = library.written_value(node)
    return _read(id(node), value.node, library) if value.tags else _NOTHING_READ


_NOTHING_READ: Final = ReadFile((), ())


def _read(key: str | int, of: str | Node, library: Library) -> ReadFile:
    found: ReadFile | None = library.read_files.get(key)
    if found is None:
        search = Search(of, library)
        bodies = tuple(search.bodies(every_outcome=False))
        found = library.read_files[key] = ReadFile(bodies, tuple(search.mistakes.values()))
    return found
