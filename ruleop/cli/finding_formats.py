"""Formats mistakes and warnings as text, JSON, SARIF 2.1.0 or GitHub workflow commands.

As text, each is one line with a place that editors can open, and the line of the file below it. Code scanners read
SARIF; GitHub shows workflow commands beside the lines of a pull request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import ruleop
from ruleop.authoring.checking import explanation
from ruleop.authoring.offline import unevaluated
from ruleop.authoring.report import Span, Tone, excerpt, mistake
from ruleop.cli.options import is_unreadable
from ruleop.cli.program import NO, UNUSABLE
from ruleop.cli.terminal import print_diagnostics
from ruleop.language.rules.check_ids import BY_CODE, id_of
from ruleop.printable import json_document, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.report import Line
    from ruleop.cli.options import Folder
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import Finding, Project, ProjectErrors

_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def lines(findings: Iterable[Finding], folder: Folder) -> Iterator[Line]:
    for finding in findings:
        warning = finding.severity == "warning"
        yield from mistake(folder.place(finding.site), finding.message, id=id_of(finding.code), warning=warning)
        yield from excerpt(folder.text(finding.site), finding.site)


def refusal(errors: ProjectErrors, folder: Folder) -> int:
    """Prints the mistakes of a project that cannot be used. Returns the exit status."""
    print_diagnostics(lines(errors.findings, folder))
    return UNUSABLE if is_unreadable(errors) else NO


def failure(site: Site, message: str, folder: Folder) -> Iterator[Line]:
    """A mistake at a place in the project's files."""
    yield from mistake(folder.place(site), message)
    yield from excerpt(folder.text(site), site)


def notes(project: Project) -> Iterator[Line]:
    """Notes about checks that offline commands leave to the cluster."""
    for crd in project.crds:
        if note := unevaluated(crd):
            yield (Span("note: ", Tone.FAINT), Span(note))


def not_checked(kinds: Sequence[Kind]) -> Iterator[Line]:
    """Kinds of children that offline commands know nothing of."""
    if kinds:
        yield (Span("not checked: ", Tone.FAINT), Span(f"no schema for {', '.join(map(str, kinds))}"))


def count(findings: Iterable[Finding]) -> tuple[int, int]:
    """The number of errors and of warnings."""
    severities = [finding.severity for finding in findings]
    return severities.count("error"), severities.count("warning")


# -- for programs ----------------------------------------------------------------------------------------------------


def as_json(findings: tuple[Finding, ...], folder: Folder, unchecked: Sequence[Kind]) -> str:
    errors, warnings = count(findings)
    return json_document(
        {
            "errors": errors,
            "warnings": warnings,
            "findings": [
                {
                    "path": _path(finding, folder),
                    "line": finding.site.line,
                    "column": finding.site.column,
                    "severity": finding.severity,
                    "id": id_of(finding.code),
                    "code": finding.code,
                    "message": finding.message,
                }
                for finding in findings
            ],
            "unchecked": [str(kind) for kind in unchecked],
        }
    )


def as_sarif(findings: tuple[Finding, ...], folder: Folder) -> str:
    checks = sorted({BY_CODE[finding.code] for finding in findings}, key=lambda check: check.id)
    rules = [
        {
            "id": check.id,
            "name": check.code,
            "shortDescription": {"text": check.title},
            "help": {"text": explanation(check.id)},
        }
        for check in checks
    ]
    driver = {"name": "ruleop", "version": ruleop.__version__, "rules": rules}
    results = [
        {
            "ruleId": id_of(finding.code),
            "level": finding.severity,
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": _location(finding, folder)}],
        }
        for finding in findings
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json_document({"$schema": _SARIF, "version": "2.1.0", "runs": [run]})


def _location(finding: Finding, folder: Folder) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _path(finding, folder)}}
    if finding.site.line:
        region = {"startLine": finding.site.line}
        location["region"] = {**region, "startColumn": finding.site.column} if finding.site.column else region
    return location


def as_github(findings: tuple[Finding, ...], folder: Folder) -> str:
    return "".join(f"{_command(finding, folder)}\n" for finding in findings)


def _command(finding: Finding, folder: Folder) -> str:
    fields = {
        "file": _path(finding, folder),
        "line": finding.site.line,
        "col": finding.site.column,
        "title": f"ruleop {id_of(finding.code)} {finding.code}",
    }
    properties = ",".join(f"{name}={_escaped(str(value), more=':,')}" for name, value in fields.items() if value)
    return f"::{finding.severity} {properties}::{_escaped(finding.message)}"


def _escaped(text: str, more: str = "") -> str:
    return printable("".join(f"%{ord(sign):02X}" if sign in f"%\r\n{more}" else sign for sign in text))


def _path(finding: Finding, folder: Folder) -> str:
    """A file name may be any bytes; the output is UTF-8."""
    return folder.path(finding.site.path).encode("utf-8", "backslashreplace").decode()
