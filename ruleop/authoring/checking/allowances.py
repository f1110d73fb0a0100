"""Findings that the authors of a project accept, each with a reason.

`{# ruleop: allow RO703 REASON #}` in a template and `# ruleop: allow RO703 REASON` in YAML hold for their own line; on
a line of its own, a comment holds for the next line that is none; in the first line, also for the file as a whole,
and in that of a CRD for what rules do with the fields of its kind.
`allow` of watches.yaml holds for the whole project. Mistakes that keep a project from loading cannot be accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.errors import Site
from ruleop.language.rules import Findings
from ruleop.language.rules.check_ids import id_of, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.language.rules import Finding
    from ruleop.language.rules.loading import Loaded

_COMMENT = re.compile(r"(?:^|(?<=[\s{]))#[-+]?[ \t]*ruleop:[ \t]*allow\b(?P<rest>.*?)(?:[-+]?#\}|$)")
_ALONE = re.compile(r"\s*(?:#.*|\{#.*#\}\s*)")
_NAMES = re.compile(r"\s*((?:[A-Za-z][\w-]*\s*,\s*)*(?:RO\d+|[a-z]+-[a-z-]+)\b),?\s*(.*)", re.ASCII)
_FORM = "write `ruleop: allow ID REASON`, like `ruleop: allow RO703 the platform team sets the image`"


@dataclass(frozen=True, slots=True)
class AllowedCheck:
    """One id of a comment."""

    id: str
    site: Site  # of the comment
    lines: tuple[int, ...]  # the lines it holds for; 0 is the file as a whole


def silenced(found: Iterable[Finding], loaded: Loaded) -> tuple[Finding, ...]:
    """The findings that are not accepted, and those about the comments themselves."""
    about = Findings(loaded.files)
    allowances = [each for path, text in loaded.files.items() for each in _allowances(path, text, about)]
    by_place = {(each.site.path, each.id, line): each for each in allowances for line in each.lines}
    kept, used = [], set()
    for finding in found:
        id_ = id_of(finding.code)
        allowance = by_place.get((finding.site.path, id_, finding.site.line)) or by_place.get((finding.subject, id_, 0))
        used.add(allowance)
        if allowance is None and id_ not in loaded.allow:
            kept.append(finding)
    for allowance in allowances:
        if allowance not in used:
            message = f"{allowance.id} is allowed here, and line {max(allowance.lines)} has no such finding: remove it"
            about.warning("unused-allow", message, allowance.site)
    kept += (finding for finding in about.sorted() if id_of(finding.code) not in loaded.allow)
    return tuple(kept)


def _allowances(path: str, text: str, about: Findings) -> Iterator[AllowedCheck]:
    if "ruleop:" not in text:
        return
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        for match in _COMMENT.finditer(line):
            site = Site(path, number, match.start() + 1)
            for name in _names(match["rest"], site, about):
                yield AllowedCheck(name, site, _lines_for(lines, number))


def _names(rest: str, site: Site, about: Findings) -> Iterator[str]:
    match = _NAMES.fullmatch(rest.rstrip())
    if match is None:
        about.warning("wrong-allow", f"not an id of a check: {_FORM}", site)
        return
    for name in (each.strip() for each in match[1].split(",")):
        if (mistake := refusal(name)) is not None:
            about.warning("wrong-allow", mistake, site)
        elif not re.search(r"\w", match[2]):
            about.warning("wrong-allow", f"{name} is allowed without a reason: {_FORM}", site)
        else:
            yield name


def _lines_for(lines: list[str], number: int) -> tuple[int, ...]:
    whole = (0,) if number == 1 else ()
    if _ALONE.fullmatch(lines[number - 1]):
        for below, line in enumerate(lines[number:], number + 1):
            if line.strip() and not _ALONE.fullmatch(line):
                return (*whole, below)
    return (*whole, number)
