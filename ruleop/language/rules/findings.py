"""The findings of loading: mistakes, which make a project invalid, and errors and warnings, which do not. An error is
something that certainly fails in a cluster; the rules can be used nevertheless, with what a cluster makes of them.

All mistakes of a project are reported at once. A finding has a place, a message for people, and the code of its check
(check_ids.py) for programs, which stays the same when messages are improved.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from ruleop.errors import RuleError, RuleopError, Site
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.language.rules.check_ids import Code

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    site: Site
    message: str
    severity: Severity
    code: Code
    is_fatal: bool = False  # the project cannot be used
    subject: str = ""  # another file that the finding is about, such as a CRD: a comment at its top may allow it

    @property
    def order(self) -> tuple[str, int, int, str]:
        return (self.site.path, self.site.line, self.site.column, self.message)

    def __str__(self) -> str:
        return f"{self.site}: {'' if self.severity == 'error' else 'warning: '}{self.message}"


class ProjectErrors(RuleopError):  # noqa: N818 - several errors
    """An invalid project. Its text has one line per mistake."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(sorted(findings, key=lambda finding: finding.order))
        self.mistakes = tuple(
            RuleError(finding.message, finding.site) for finding in self.findings if finding.severity == "error"
        )
        super().__init__("\n".join(map(str, self.mistakes)))

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings without warnings."""
        return tuple(each for each in self.findings if each.severity == "error")

    @classmethod
    def of(cls, code: Code, message: str, site: Site) -> ProjectErrors:
        """A single mistake."""
        return cls([Finding(site, message, "error", code, is_fatal=True)])


@dataclass(slots=True)
class Findings:
    """Collects findings. Equal ones, such as those of a template that two watches share, are one finding."""

    files: Mapping[str, str]  # the texts of the project's files
    _found: dict[Finding, None] = field(default_factory=dict)

    def mistake(self, code: Code, message: str, site: Site, *, word: str = "") -> None:
        self._found[Finding(self.with_column(site, word), message, "error", code, is_fatal=True)] = None

    def error(self, code: Code, message: str, site: Site) -> None:
        self._found[Finding(site, message, "error", code)] = None

    def warning(self, code: Code, message: str, site: Site, *, word: str = "", subject: str = "") -> None:
        self._found[Finding(self.with_column(site, word), message, "warning", code, subject=subject)] = None

    def with_column(self, site: Site, *words: str) -> Site:
        """The site with the column of the first of these words that is on its line, from this place on, which Jinja
        does not provide. In a block scalar of watches.yaml, lines are counted from the `|`, so the next line is
        searched as well. A word before a colon is a YAML key and not a match. `.name` is a field of any value."""
        lines = self.files.get(site.path, "").split("\n") if site.line else []
        for line, start in ((site.line, max(site.column - 1, 0)), (site.line + 1, 0)):
            if line > len(lines) or (line > site.line and site.path.startswith("templates/")):
                break
            for word in filter(None, words):
                before, name = (r"(?<=\.)", word[1:]) if word.startswith(".") else (r"(?<![\w.])", word)
                if match := re.compile(rf"{before}{re.escape(name)}(?!\w)(?! *:)").search(lines[line - 1], start):
                    return Site(site.path, line, match.start() + 1)
        return site

    @classmethod
    def of(cls, files: Mapping[str, str], found: Iterable[Finding]) -> Findings:
        """With these findings."""
        return cls(files, dict.fromkeys(found))

    def take(self, mistakes: Iterable[RuleError], code: Code) -> None:
        for mistake in mistakes:
            self.mistake(code, mistake.message, mistake.site)

    def add_all_of(self, others: Findings) -> None:
        self._found.update(others._found)

    @property
    def failed(self) -> bool:
        return any(finding.is_fatal for finding in self._found)

    def failed_in(self, folder: str) -> bool:
        return any(finding.is_fatal and finding.site.path.startswith(folder) for finding in self._found)

    def sorted(self) -> tuple[Finding, ...]:
        """The findings in the order of their places. If a file could not be read, missing files are not reported."""
        unread = any(finding.code == "unreadable" for finding in self._found)
        found = (finding for finding in self._found if not (unread and finding.code == "missing-file"))
        return tuple(sorted(found, key=lambda finding: finding.order))


def format_list(names: Iterable[str], *, last: str = "and") -> str:
    """Names in quotes, as a list in a sentence."""
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
