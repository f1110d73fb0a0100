"""The result of a case: for people as lines, for programs as JSON.

A failure is shown as YAML: only the fields that differ, below their parents; `-` is expected, `+` is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeGuard

from ruleop.authoring.report import Line, Place, Span, Tone, differing_lines
from ruleop.language.templates import yaml_text
from ruleop.language.templates.tree.state import ItemStep
from ruleop.planning.changes import NOTHING, Value, flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.ruletests.results import CaseDifference, CaseFailure, CaseResult
    from ruleop.language.rules import Finding
    from ruleop.language.templates.tree.state import FieldPath

MAX_LINES: Final = 40
"""The number of shown lines of one text or object."""

_COLUMN: Final = 48  # of the note beside a value


def diff_lines(differences: Iterable[CaseDifference], *, place: Place) -> Iterator[Line]:
    shown: tuple[str, ...] = ()
    for each in differences:
        mismatch = each.mismatch
        texts = _texts(mismatch.expected, mismatch.actual)
        if texts is not None:
            yield from _parents(mismatch.path, shown)
            shown = tuple(map(str, mismatch.path))
            yield from _changed(*texts, "  " * len(mismatch.path))
            if each.source is not None:
                yield (Span(f"    {place(each.source)}", Tone.FAINT),)
            continue
        *parents, last = mismatch.path or ("",)
        yield from _parents(tuple(parents), shown)
        shown = tuple(map(str, parents))
        indent = "  " * len(parents)
        source = place(each.source) if each.source is not None else ""
        beside = "; ".join(filter(None, [mismatch.note, source]))
        if mismatch.actual is NOTHING:
            yield from _value("-", indent, last, mismatch.expected, beside)
        else:
            if mismatch.expected is not NOTHING:
                yield from _value("-", indent, last, mismatch.expected, "")
            yield from _value("+", indent, last, mismatch.actual, beside)


def _parents(path: FieldPath, shown: tuple[str, ...]) -> Iterator[Line]:
    """The parents that were not shown for the difference before."""
    names = tuple(map(str, path))
    common = next(
        (at for at, (a, b) in enumerate(zip(names, shown, strict=False)) if a != b), min(len(names), len(shown))
    )
    for depth in range(common, len(path)):
        yield (Span(f"    {'  ' * depth}{_head(path[depth])}", Tone.FAINT),)


def _head(segment: str | ItemStep) -> str:
    if isinstance(segment, str):
        return f"{flow(segment)}:"
    if segment.keys:
        return f"- {', '.join(f'{name}: {flow(value)}' for name, value in segment.keys)}"
    return f"-  # item {segment.position + 1}"


def _value(sign: str, indent: str, name: str | ItemStep, value: Value, note: str) -> Iterator[Line]:
    lines = _lines(name, value)
    tone = Tone.REMOVE if sign == "-" else Tone.ADD
    for number, line in enumerate(lines[:MAX_LINES]):
        text = f"  {sign} {indent}{line}"
        gap = " " * max(2, _COLUMN - len(text))
        beside = [Span(f"{gap}# {note}", Tone.FAINT)] if note and not number else []
        yield (Span(text, tone), *beside)
    if len(lines) > MAX_LINES:
        yield (Span(f"  {sign} {indent}and {len(lines) - MAX_LINES} more lines", Tone.FAINT),)


def _lines(name: str | ItemStep, value: Value) -> list[str]:
    """The YAML of a member or of an item."""
    data = None if value is NOTHING else value
    if isinstance(name, ItemStep):
        return [f"{'- ' if not number else '  '}{line}" for number, line in enumerate(yaml_text(data).split("\n"))]
    if not name:
        return yaml_text(data).split("\n")
    return yaml_text({name: data}).split("\n")


def _texts(expected: Value, actual: Value) -> tuple[list[str], list[str]] | None:
    """Two values that are compared line by line: long texts, and lists of actions."""
    if isinstance(expected, str) and isinstance(actual, str) and "\n" in expected + actual:
        return expected.splitlines(), actual.splitlines()
    if _is_texts(expected) and _is_texts(actual):
        return [f"- {flow(each)}" for each in expected], [f"- {flow(each)}" for each in actual]
    return None


def _is_texts(value: Value) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _changed(expected: list[str], actual: list[str], indent: str) -> Iterator[Line]:
    lines = differing_lines(expected, actual, neighbours=2)
    if not lines:
        yield (Span(f"    {indent}only the line break at the end", Tone.FAINT),)
    for line in lines[:MAX_LINES]:
        tone = {"-": Tone.REMOVE, "+": Tone.ADD}.get(line[:1], Tone.FAINT)
        yield (Span(f"  {line[:1]} {indent}{line[1:]}", tone),)
    if len(lines) > MAX_LINES:
        yield (Span(f"    {indent}and {len(lines) - MAX_LINES} more lines", Tone.FAINT),)


def failure_lines(result: CaseResult, *, place: Place) -> Iterator[Line]:
    """Each expectation of a case that does not hold, with its diff. `place`: shows a place in the project's files."""
    for failure in result.failures:
        step = f"{failure.step}: " if failure.step else ""
        yield (
            Span(f"{failure.site}: ", Tone.FAINT),
            Span(f"{step}{failure.what}: ", Tone.TITLE),
            Span(failure.message),
            Span(" (- expected, + found)" if failure.differences else "", Tone.FAINT),
        )
        yield from diff_lines(failure.differences, place=place)
        if failure.source is not None:
            yield (Span(f"    at {place(failure.source)}", Tone.FAINT),)


# -- for programs ------------------------------------------------------------------------------------------------------


def case_json(result: CaseResult, *, place: Place) -> dict[str, Any]:
    return {
        "file": result.case.site.path,
        "line": result.case.site.line,
        "name": result.case.name,
        "passed": result.passed,
        "failures": [_failure_json(failure, place) for failure in result.failures],
    }


def mistake_json(finding: Finding) -> dict[str, Any]:
    site = finding.site
    return {"path": site.path, "line": site.line, "column": site.column, "message": finding.message}


def _failure_json(failure: CaseFailure, place: Place) -> dict[str, Any]:
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
