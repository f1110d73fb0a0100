"""The findings of an inference: each with its file, line and column.

Jinja knows the lines of expressions but not their columns, so the text of the expression is searched on its line. A
template may be rendered for several rules and in several ways. A finding about a step (an unknown field) or a condition
(always true) counts only if it holds in all of them; a finding about a use (a field that may be missing) counts if it
holds in one.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.errors import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.language.rules import Findings
    from ruleop.language.rules.check_ids import Code
    from ruleop.language.rules.findings import Severity


@dataclass(frozen=True, slots=True)
class FindingSource:
    """The text that is being read: a file of templates/, or a string of watches.yaml."""

    start: Site  # of the text
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    severity: Severity
    code: Code
    message: str
    site: Site


@dataclass(slots=True)
class _Visits:
    """The evaluations of a step: their number and their findings."""

    count: int = 0
    entries: list[_Entry] = field(default_factory=list)
    node: object = None  # kept, so that its id stays unique


@dataclass(slots=True)
class Report:
    findings: Findings
    _visits: dict[tuple[int, Code], _Visits] = field(default_factory=dict)
    _silent: int = 0

    @property
    def is_silent(self) -> bool:
        return self._silent > 0

    @property
    def level(self) -> int:
        """The number of enclosing `silence` contexts."""
        return self._silent

    @contextmanager
    def silence(self) -> Iterator[None]:
        self._silent += 1
        try:
            yield
        finally:
            self._silent -= 1

    def add(self, code: Code, message: str, source: FindingSource, at: Site, *words: str, warn: bool = False) -> None:
        if not self._silent:
            self._write(_Entry("warning" if warn else "error", code, message, self.place(source, at, words)))

    def visit(self, node: object, code: Code) -> None:
        """Counts an evaluation of a step or a condition, which may have such a finding."""
        if not self._silent:
            visits = self._visits.setdefault((id(node), code), _Visits())
            visits.count += 1
            visits.node = node

    def add_if_always(
        self, node: object, code: Code, message: str, source: FindingSource, at: Site, *words: str, warn: bool = False
    ) -> None:
        """A finding of a visited node, which counts only if all visits have it."""
        if not self._silent:
            entry = _Entry("warning" if warn else "error", code, message, self.place(source, at, words))
            self._visits[id(node), code].entries.append(entry)

    def close(self) -> None:
        """Writes the findings that hold in all visits."""
        for visits in self._visits.values():
            if visits.entries and len(visits.entries) == visits.count:
                self._write(visits.entries[0])
        self._visits.clear()

    def at(self, code: Code, message: str, site: Site, *, warn: bool = False) -> None:
        """A finding whose place is known."""
        if not self._silent:
            self._write(_Entry("warning" if warn else "error", code, message, site))

    def _write(self, entry: _Entry) -> None:
        add = self.findings.warning if entry.severity == "warning" else self.findings.mistake
        add(entry.code, entry.message, entry.site)

    def place(self, source: FindingSource, at: Site, words: tuple[str, ...]) -> Site:
        """The site of the first of these words that is on the line. In a block scalar, lines are counted from the `|`,
        so the next line is searched as well."""
        site = Site(at.path, max(at.line, 1))
        lines = self.findings.files.get(site.path, "").split("\n")
        for number in (site.line,) if source.is_file else (site.line, site.line + 1):
            if number > len(lines):
                break
            is_first = not source.is_file and number == source.start.line
            start = max(source.start.column - 1, 0) if is_first else 0
            for word in filter(None, words):
                if match := re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(lines[number - 1], start):
                    return Site(site.path, number, match.start() + 1)
        if not source.is_file and site.line == source.start.line:
            return source.start
        return site
