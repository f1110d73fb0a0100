"""The results of a run: for people as lines, for programs as JSON, and as JUnit XML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from ruleop.authoring.report.plan_text import Line, Place, Span, Tone, text_of
from ruleop.authoring.ruletests.diff import diff_lines
from ruleop.core.planning.changes.differences import NOTHING
from ruleop.core.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.ruletests.cases import TestFile
    from ruleop.authoring.ruletests.results import Failure, Result


@dataclass(slots=True)
class Run:
    """Everything that a run has found."""

    results: list[Result] = field(default_factory=list)
    broken: list[TestFile] = field(default_factory=list)  # files with mistakes, whose cases were not run
    stale: list[str] = field(default_factory=list)  # snapshots that no case names
    deselected: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> list[Result]:
        return [each for each in self.results if not each.passed]

    @property
    def passed(self) -> bool:
        return not self.failed and not self.broken


def failure_lines(result: Result, *, place: Place = str) -> Iterator[Line]:
    """A failed case: each expectation that does not hold, and a diff. `place`: shows a place in the project's files."""
    case = result.case
    yield (Span("FAILED ", Tone.BAD), Span(f"{case.site}: ", Tone.TITLE), Span(case.name, Tone.TITLE))
    for failure in result.failures:
        yield from _failure(failure, place)


def _failure(failure: Failure, place: Place) -> Iterator[Line]:
    step = f"{failure.step}: " if failure.step else ""
    yield (
        Span(f"  {failure.site}: ", Tone.FAINT),
        Span(f"{step}{failure.what}: ", Tone.TITLE),
        Span(failure.message),
    )
    for line in diff_lines(failure.differences, place=place):
        yield (Span("  "), *line)
    if failure.source is not None:
        yield (Span(f"      at {place(failure.source)}", Tone.FAINT),)


def failure_text(result: Result, *, place: Place = str) -> str:
    """As `failure_lines`, without colour."""
    return printable_block(text_of(failure_lines(result, place=place)))


def printable_block(text: str) -> str:
    """The text as a terminal and a file of XML can hold it."""
    return "\n".join(map(printable, text.split("\n")))


def summary(run: Run) -> Line:
    failed, passed = len(run.failed), len(run.results) - len(run.failed)
    broken = f"{len(run.broken)} file{'s' if len(run.broken) > 1 else ''} with mistakes" if run.broken else ""
    written = sum(len(each.written) for each in run.results)
    parts = [
        f"{failed} failed" if failed else "",
        f"{passed} passed" if passed or not (failed or broken) else "",
        broken,
        f"{run.deselected} not selected" if run.deselected else "",
        f"{written} snapshot{'s' if written > 1 else ''} written" if written else "",
    ]
    text = ", ".join(filter(None, parts))
    return (Span(text, Tone.GOOD if run.passed else Tone.BAD), Span(f" in {run.seconds:.2f} s", Tone.FAINT))


# -- for programs ------------------------------------------------------------------------------------------------------


def as_json(run: Run, *, place: Place = str) -> dict[str, Any]:
    return {
        "passed": len(run.results) - len(run.failed),
        "failed": len(run.failed),
        "deselected": run.deselected,
        "cases": [
            {
                "file": result.case.site.path,
                "line": result.case.site.line,
                "name": result.case.name,
                "passed": result.passed,
                "failures": [_failure_json(failure, place) for failure in result.failures],
            }
            for result in run.results
        ],
        "mistakes": [
            {"path": each.site.path, "line": each.site.line, "column": each.site.column, "message": each.message}
            for file in run.broken
            for each in file.findings
        ],
        "staleSnapshots": run.stale,
    }


def _failure_json(failure: Failure, place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {
        "what": failure.what,
        "message": failure.message,
        "place": str(failure.site),
        "step": failure.step,
        "differences": [
            {
                "path": _path(each.mismatch.path),
                **({} if each.mismatch.expected is NOTHING else {"expected": each.mismatch.expected}),
                **({} if each.mismatch.actual is NOTHING else {"actual": each.mismatch.actual}),
                "source": place(each.source) if each.source is not None else None,
            }
            for each in failure.differences
        ],
    }
    return found


def _path(path: Sequence[object]) -> str:
    text = ""
    for part in path:
        piece = str(part)
        text += piece if not text or piece.startswith("[") else f".{piece}"
    return text


def junit(run: Run, *, place: Place = str) -> str:
    """The results as JUnit XML: a test suite for each file."""
    top = ET.Element("testsuites", name="ruleop test")
    suites: dict[str, list[Result]] = {}
    for result in run.results:
        suites.setdefault(result.case.site.path, []).append(result)
    for file, results in suites.items():
        suite = ET.SubElement(
            top,
            "testsuite",
            name=file,
            tests=str(len(results)),
            failures=str(sum(not each.passed for each in results)),
            errors="0",
            time=f"{sum(each.seconds for each in results):.4f}",
        )
        for result in results:
            test = ET.SubElement(
                suite, "testcase", classname=file, name=printable(result.case.name), time=f"{result.seconds:.4f}"
            )
            test.set("file", file)
            test.set("line", str(result.case.site.line))
            if not result.passed:
                first = result.failures[0]
                found = ET.SubElement(test, "failure", message=printable(f"{first.what}: {first.message}"))
                found.text = failure_text(result, place=place)
    for broken in run.broken:
        suite = ET.SubElement(top, "testsuite", name=broken.name, tests="1", failures="0", errors="1", time="0")
        test = ET.SubElement(suite, "testcase", classname=broken.name, name="the file can be read", time="0")
        mistakes = [printable(f"{each.site}: {each.message}") for each in broken.findings]
        error = ET.SubElement(test, "error", message=mistakes[0])
        error.text = "\n".join(mistakes)
    ET.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(top, encoding="unicode") + "\n"
