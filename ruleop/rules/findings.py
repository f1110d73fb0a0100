"""What loading found: mistakes, which forbid the project, and warnings, which do not.

All of a project's mistakes are reported at once, so nothing here stops at the first. A finding has a place, a sentence for people, and a
short code for programs: an editor or a CI job filters by code, and the codes stay when the sentences get better.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ruleop.errors import RuleError, RuleopError, Site
from ruleop.schema.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Severity = Literal["error", "warning"]
Code = Literal[
    "unreadable",  # a file that cannot be read, or lies outside the project
    "yaml",  # YAML syntax, duplicate keys, anchors, tags
    "template",  # Jinja syntax, unknown functions and filters
    "unknown-key",
    "missing-key",
    "wrong-type",
    "wrong-value",  # outside an enumeration, a pattern or a range
    "conflict",  # keys that exclude or need each other, names given twice
    "environment",  # ${NAME} in vars
    "taken-name",
    "unknown-name",
    "unknown-id",
    "out-of-place",  # a name that exists, but not here
    "missing-file",
    "cycle",
    "hidden-watch",
    "reach",
    "secret-data",
    "random",  # what renders differently each time, outside create-only
    "crd",
    "unknown-kind",  # in a group of Kubernetes' own
    "status-room",
    "unused-template",
    "runs-again",  # a Job that is deleted when it is done
    "looks-like-expression",
    "elsewhere",  # ${NAME} or {{ }} where it is plain text
]


@dataclass(frozen=True, slots=True)
class Finding:
    site: Site
    message: str
    severity: Severity
    code: Code

    @property
    def order(self) -> tuple[str, int, int, str]:
        return (self.site.path, self.site.line, self.site.column, self.message)

    def __str__(self) -> str:
        return f"{self.site}: {'' if self.severity == 'error' else 'warning: '}{self.message}"


class ProjectErrors(RuleopError):  # noqa: N818 - it holds all of them
    """A project that cannot be used as it stands. Printed, it is one line a mistake."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(sorted(findings, key=lambda finding: finding.order))
        self.mistakes = tuple(RuleError(finding.message, finding.site) for finding in self.findings if finding.severity == "error")
        super().__init__("\n".join(map(str, self.mistakes)))


@dataclass(slots=True)
class Findings:
    """Collects. What is found twice, because two watches share a template, is one finding."""

    files: Mapping[str, str]  # the texts that sites are in
    _found: dict[Finding, None] = field(default_factory=dict)

    def mistake(self, code: Code, message: str, site: Site, *, word: str = "", start: Site | None = None) -> None:
        self._found[Finding(self.sharpened(site, word, start), message, "error", code)] = None

    def warning(self, code: Code, message: str, site: Site, *, word: str = "", start: Site | None = None) -> None:
        self._found[Finding(self.sharpened(site, word, start), message, "warning", code)] = None

    def sharpened(self, site: Site, word: str, start: Site | None = None) -> Site:
        """Jinja knows the line of what it reads, but no column: there the word itself is looked for. In a block scalar its count begins
        on the line of the `|`, so the line after is looked at as well. A word before a colon is a key of YAML. `start` is where the text
        that is read begins."""
        if site.column or not site.line or not word:
            return site
        lines = self.files.get(site.path, "").split("\n")
        for line in (site.line, site.line + 1):
            if line > len(lines):
                break
            before = start.column - 1 if start is not None and (start.path, start.line) == (site.path, line) else 0
            if match := re.compile(rf"(?<![\w.]){re.escape(word)}(?!\w)(?! *:)").search(lines[line - 1], before):
                return Site(site.path, line, match.start() + 1)
        return site

    def take(self, mistakes: Iterable[RuleError], code: Code) -> None:
        for mistake in mistakes:
            self.mistake(code, mistake.message, mistake.site)

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self._found)

    def sorted(self) -> tuple[Finding, ...]:
        """By their places. Where something could not be read, that is why other things are missing, and nothing is said of them."""
        unread = any(finding.code == "unreadable" for finding in self._found)
        found = (finding for finding in self._found if not (unread and finding.code == "missing-file"))
        return tuple(sorted(found, key=lambda finding: finding.order))


def meant(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name."""
    found = nearest(name, known)
    return f' (did you mean "{found}"?)' if found else ""


def listed(names: Iterable[str], *, last: str = "and") -> str:
    """Names as a sentence lists them, each in quotes."""
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
