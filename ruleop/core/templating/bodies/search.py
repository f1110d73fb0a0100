"""Finds bodies that together show every branch of a template, and the branches that are in none.

Conditions may exclude each other in ways that nothing here knows, so a body that is not YAML proves nothing: its
branches may never be taken together. A branch is broken only if no outcome of the other conditions makes a text with it
that is YAML. The search for one starts at a text that is not, and changes one decision at a time, those that make the
mistake another one first. It ends when no change of a decision changes the mistake; if it takes too long before, the
branch is not reported.

What a slot prints that is alone on its line is not known: entries, items, a value, nothing, or captured text, so what a
writer wrote is read with a form for each. The first form is that of its neighbours; a text is not YAML only if it is
none with any of the forms.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.core.errors import RuleError, Site
from ruleop.core.templating.bodies.body import MARK, Body
from ruleop.core.templating.bodies.body_writer import Branch, Option, Printed, StandIn, TooLarge, Trees, Writer, as_text
from ruleop.core.templating.bodies.branch_conditions import Assignment, Atom, Conditions, Outcomes, changed, ways
from ruleop.core.templating.tree.layout import ALONE, CLOSE, OPEN, VALUE, Layout, lay_out
from ruleop.core.templating.tree.yaml_reader import read_yaml
from ruleop.core.templating.values.cost import Exhausted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.core.templating.compile.library import Library
    from ruleop.core.templating.tree.yaml_node import YamlNode
    from ruleop.core.templating.values.text import Slot

_ALONE: Final = re.compile(rf"^( *)(?:{OPEN}|- {ALONE}|{ALONE})([0-9]+){CLOSE}(?:: 0)?(?= *$)", re.MULTILINE)
_NOTHING, _VALUE, _OPEN_KEY = rf"\1#{ALONE}\2{CLOSE}", rf"\1{OPEN}\2{CLOSE}", rf"\1{ALONE}\2{CLOSE}:"
_RESOURCE: Final = frozenset({"cr", "metadata", "spec", "status", "vars"})
_KEEPS_TEXT: Final = frozenset({"indent", "trim", "default", "d"})


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of a body as it was read: documents or, if it is not YAML, mistakes, of which the last is on a line of
    the text."""

    documents: tuple[YamlNode, ...]
    mistakes: tuple[RuleError, ...] = ()
    line: int = 0
    text: str = ""

    @property
    def prefix(self) -> str:
        """The text up to the last mistake: what follows does not matter."""
        return "\n".join(self.text.split("\n")[: self.line])

    @property
    def progress(self) -> tuple[bool, int]:
        """The point to which a text was read: only an error of syntax ends the reading."""
        return not self.mistakes[-1].message.startswith("not YAML"), self.line


Readings = dict[str, Reading]
"""By their texts: bodies that differ only in their types are read once."""


def read_parts(parts: list[Any], writer: Writer, known: Readings) -> tuple[Reading, list[Slot]]:
    """The documents, and the slots by the numbers of their marks."""
    layout = lay_out(parts)
    if _set_forms(layout):
        layout = lay_out(parts)
    found = _read(layout, layout.text, writer, known)
    if not found.mistakes or _ALONE.search(layout.text) is None:
        return found, layout.slots

    def open_key(match: re.Match[str]) -> str:
        """The form of captured text that ends with a key; data cannot."""
        slot = layout.slots[int(match[2])]
        return match.expand(_OPEN_KEY if may_be_text(writer.of_slot[id(slot)].node) else _VALUE)

    for form in (_NOTHING, _VALUE, open_key):
        other = _read(layout, _ALONE.sub(form, layout.text), writer, known)
        if not other.mistakes:
            return other, layout.slots
        if other.progress > found.progress:
            found = other
    return found, layout.slots


def may_be_text(node: nodes.Node | None) -> bool:
    """Whether an expression may result in captured text, or in text of a `let`, and not only in data."""
    while isinstance(node, nodes.Filter) and node.name in _KEEPS_TEXT:
        node = node.node
    is_data = isinstance(node, (nodes.Filter, nodes.Const, nodes.Dict, nodes.List))
    while isinstance(node, (nodes.Getattr, nodes.Getitem)):
        node = node.node
    return not (is_data or (isinstance(node, nodes.Name) and node.name in _RESOURCE))


def _read(layout: Layout, text: str, writer: Writer, known: Readings) -> Reading:
    found = known.get(text)
    if found is None:
        documents, mistakes = read_yaml(text, writer.path, locate=_Origins(layout, writer.path, writer.library).site)
        line = read_yaml(text, writer.path)[1][-1].site.line if mistakes else 0
        found = known[text] = Reading(tuple(documents), tuple(map(_without_marks, mistakes)), line, text)
    return found


def _without_marks(mistake: RuleError) -> RuleError:
    return RuleError(MARK.sub("{{ ... }}", mistake.message), mistake.site)


def _set_forms(layout: Layout) -> bool:
    """Gives slots that are alone on their lines the form of their neighbours: entries or items. Returns whether there
    are any."""
    lines = layout.text.split("\n")
    changed = False
    for number, line in enumerate(lines):
        match = VALUE.fullmatch(line.strip())
        if match is None:
            continue
        form = _form(lines, number)
        if form is not None:
            layout.slots[int(match[1])].value = form
            changed = True
    return changed


def _form(lines: list[str], number: int) -> dict[str, int] | list[int] | None:
    column = _column(lines[number])
    deeper = False
    for line in reversed(lines[:number]):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        depth = _column(line)
        if depth > column:
            deeper = True
        elif depth < column:
            if line.lstrip().startswith("- ") and depth + 2 == column:
                return {"": 0}
            break
        elif not VALUE.fullmatch(line.strip()):
            return [0] if line.lstrip().startswith("-") or (line.rstrip().endswith(":") and not deeper) else {"": 0}
    for line in lines[number + 1 :]:
        if line.strip() and not line.lstrip().startswith("#") and _column(line) <= column:
            if _column(line) < column or VALUE.fullmatch(line.strip()):
                return None
            return [0] if line.lstrip().startswith("-") else {"": 0}
    return None


def _column(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


class _Origins:
    """The places of the text's values in the files that it comes from."""

    def __init__(self, layout: Layout, path: str, library: Library) -> None:
        self.path = path
        self.lines = layout.text.split("\n")
        self.sites = layout.sites()
        self.library = library
        self.written: dict[str, list[str]] = {}  # the lines of the files

    def site(self, line: int, column: int) -> Site:
        if line > len(self.sites) or (site := self.sites[line - 1]) is None:  # after the text, or not of a template
            return next((each for each in reversed(self.sites[: line - 1]) if each), Site(self.path, 1))
        source = self.written.get(site.path)
        if source is None:
            name = site.path.removeprefix(self.library.prefix)
            source = self.written[site.path] = self.library.texts.get(name, "").split("\n")
        text = self.lines[line - 1]
        if not 0 < site.line <= len(source):
            return site
        written, rest = source[site.line - 1], MARK.split(text[column - 1 :])[0].rstrip()
        if written[: column - 1] == text[: column - 1]:
            return Site(site.path, site.line, column)
        found = written.find(rest) if rest else -1
        return Site(site.path, site.line, found + 1)


MAX_BODIES: Final = 16
MAX_TRIES: Final = 200  # of one template, to find a text that is YAML
MAX_WORK: Final = 60_000  # statements and lines of those texts
MAX_STARTS: Final = 4
MAX_SAME: Final = 2  # texts with the same mistake whose decisions are changed


@dataclass(slots=True)
class _Try:
    """A body, or a text that is not YAML."""

    reading: Reading
    printed: tuple[Printed, ...]
    assignment: Assignment
    choices: list[tuple[Option, ...]]
    taken: set[Branch]


@dataclass(slots=True)
class Search:
    """The bodies of one file."""

    name: str
    library: Library
    trees: Trees
    stand_in: StandIn = as_text
    conditions: Conditions = field(default_factory=Conditions)
    mistakes: dict[tuple[str, str], RuleError] = field(default_factory=dict)
    _covered: set[Branch] = field(default_factory=set)
    _broken: set[Branch] = field(default_factory=set)
    _failed: list[_Try] = field(default_factory=list)
    _readable: list[_Try] = field(default_factory=list)
    _reached: dict[Branch, list[tuple[_Try, Option]]] = field(default_factory=dict)  # by the first tries
    _tries: int = 0
    _work: int = 0

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
            yield from self._find_bodies(found)
            for atom, outcome in found.assignment.items():
                counts.setdefault(atom, [0, 0])[outcome] += 1
            if all(map(all, counts.values())) if every_outcome else self._covered.issuperset(self._reached):
                return

    def _missing(self) -> Iterator[Body]:
        """The bodies with what is in none of the first ones."""
        if not self._readable:
            yield from self._with(None)
        if not self._readable:
            return
        known: set[Branch] = set()
        while new := [branch for branch in self._reached if branch not in known]:
            known.update(new)
            for branch in new:
                if branch not in self._covered:
                    yield from self._with(branch)

    def _with(self, branch: Branch | None) -> Iterator[Body]:
        """The bodies with a branch, or any at all. Reports its mistake if there is certainly none."""
        pending = deque(self._starts(branch))
        tried: set[frozenset[tuple[Atom, bool]]] = set()
        seen: set[str] = set()
        same: Counter[tuple[str, str]] = Counter()
        failed: list[_Try] = []
        while pending:
            given = pending.popleft()
            if frozenset(given.items()) in tried:
                continue
            tried.add(frozenset(given.items()))
            if self._tries >= MAX_TRIES or self._work >= MAX_WORK:
                if len(same) != 1:
                    return  # different mistakes may depend on conditions
                break
            self._tries += 1
            found = self._try(given, _true)
            if branch is not None and branch not in found.taken:
                continue
            if not found.reading.mistakes:
                yield from self._find_bodies(found)
                return
            if found.reading.prefix in seen:
                continue
            seen.add(found.reading.prefix)
            if not found.taken & self._broken:  # else its mistake may be that of another branch
                failed.append(found)
            mistake = _key(found.reading.mistakes[0])
            same[mistake] += 1
            if same[mistake] <= MAX_SAME:
                pending.extend(_changes(found))
        self._report(failed, branch)

    def _starts(self, branch: Branch | None) -> Iterator[Assignment]:
        """Assignments with which a branch is taken."""
        failed = (found.assignment for found in self._failed if branch is None or branch in found.taken)
        yield from islice(failed, MAX_BODIES)
        for found, option in self._reached[branch] if branch is not None else ():
            yield from (changed(found.assignment, way) for way in ways(option.requirements))

    def _report(self, failed: list[_Try], branch: Branch | None) -> None:
        """Reports the mistakes of all these texts or, if they have none in common, the most frequent one."""
        if branch is not None:
            self._broken.add(branch)
        counts = Counter(key for found in failed for key in dict.fromkeys(map(_key, found.reading.mistakes)))
        keys = [key for key, count in counts.items() if count == len(failed)] or [
            key for key, _ in counts.most_common(1)
        ]
        by_key = {_key(mistake): mistake for found in failed for mistake in found.reading.mistakes}
        self.mistakes.update((key, by_key[key]) for key in keys)

    def _try(self, given: Assignment, prefer: Callable[[Atom], bool]) -> _Try:
        outcomes = Outcomes(given, prefer)
        path = self.library.prefix + self.name
        with self.library.templates.state:
            writer = Writer(self.library, path, self.trees, outcomes, self.conditions, self.stand_in)
            known = self.library.readings.setdefault(self.name, {})
            reading, slots = read_parts(writer.file(self.name), writer, known)
        printed = tuple(writer.of_slot[id(slot)] for slot in slots)
        found = _Try(reading, printed, outcomes.taken, writer.choices, writer.taken)
        self._work += writer.statements + reading.text.count("\n")
        for option in (option for options in writer.choices for option in options):
            if option.branch is not None and len(starts := self._reached.setdefault(option.branch, [])) < MAX_STARTS:
                starts.append((found, option))
        if reading.mistakes:
            self._failed.append(found)
        return found

    def _find_bodies(self, found: _Try) -> Iterator[Body]:
        if found.reading.mistakes:
            return
        self._covered |= found.taken
        self._readable.append(found)
        yield from (Body(document, found.printed) for document in found.reading.documents)


def _least(counts: list[int]) -> bool:
    return counts[True] <= counts[False]


def _true(_: Atom) -> bool:
    return True


def _key(mistake: RuleError) -> tuple[str, str]:
    return str(mistake.site), mistake.message


def _changes(found: _Try) -> Iterator[Assignment]:
    """The assignments in which one decision differs, the latest decisions first."""
    for options in reversed(found.choices):
        for way in (way for option in options for way in ways(option.requirements)):
            if not way.items() <= found.assignment.items():
                yield changed(found.assignment, way)


def bodies_of_file(name: str, library: Library, stand_in: StandIn = as_text) -> Iterator[Body]:
    """The bodies of a file of templates/, each once."""
    seen: set[str] = set()
    search = Search(name, library, library.written_tree, stand_in)
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
    found: ReadFile | None = library.read_files.get(name)
    if found is None:
        search = Search(name, library, lambda each: library.source(each).tree)
        bodies = tuple(search.bodies(every_outcome=False))
        found = library.read_files[name] = ReadFile(bodies, tuple(search.mistakes.values()))
    return found
