"""Coverage as a table, as an HTML page, and as lcov for editors and services."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.plan_text import Line, Span, Tone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ruleop.authoring.ruletests.coverage import Branch, FileCoverage


def table(files: Sequence[FileCoverage]) -> Iterator[Line]:
    """Each file with its share of lines and branches, and what was not exercised."""
    rows = [(file.path, *_shares(file), _missing(file)) for file in files]
    lines = [sum(file.covered for file in files), sum(len(file.lines) for file in files)]
    outcomes = [sum(file.outcomes[at] for file in files) for at in (0, 1)]
    rows.append(("total", _share(*lines), _share(*outcomes), ""))
    wide = max(len(row[0]) for row in rows)
    yield (Span(f"{'coverage':<{wide}}    lines  branches  not exercised", Tone.TITLE),)
    for name, line_share, branch_share, missing in rows:
        tone = Tone.WAIT if missing else Tone.GOOD
        yield (
            Span(f"{name:<{wide}}  ", Tone.TITLE if name == "total" else Tone.PLAIN),
            Span(f"{line_share:>7}  {branch_share:>8}  ", Tone.PLAIN if name == "total" else tone),
            Span(missing),
        )


def _shares(file: FileCoverage) -> tuple[str, str]:
    return _share(file.covered, len(file.lines)), _share(*file.outcomes)


def _share(part: int, whole: int) -> str:
    if not whole:
        return "-"
    return f"{part * 100 // whole} %"  # rounded down: 100 % means all


def _missing(file: FileCoverage) -> str:
    parts = [_ranges([line for line, count in sorted(file.lines.items()) if not count])]
    parts += [f"{each.line}: {each.what} never {_words(each)}" for each in file.branches if each.missing]
    return "; ".join(filter(None, parts))


def _words(branch: Branch) -> str:
    return "evaluated" if len(branch.missing) == 2 else branch.missing[0]


def _ranges(lines: Sequence[int]) -> str:
    """Numbers as ranges: 3-5, 9."""
    found: list[list[int]] = []
    for line in lines:
        if found and found[-1][1] == line - 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ", ".join(str(start) if start == end else f"{start}-{end}" for start, end in found)


def lcov(files: Iterable[FileCoverage]) -> str:
    """The tracefile format of lcov."""
    return "".join(f"{line}\n" for file in files for line in _record(file))


def _record(file: FileCoverage) -> Iterator[str]:
    yield "TN:ruleop"
    yield f"SF:{file.path}"
    for number, branch in enumerate(file.branches):
        evaluated = branch.true + branch.false
        for index, count in enumerate((branch.true, branch.false)):
            yield f"BRDA:{branch.line},{number},{index},{count if evaluated else '-'}"
    covered, whole = file.outcomes
    yield f"BRF:{whole}"
    yield f"BRH:{covered}"
    for line, count in sorted(file.lines.items()):
        yield f"DA:{line},{count}"
    yield f"LF:{len(file.lines)}"
    yield f"LH:{file.covered}"
    yield "end_of_record"


_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222 }
table { border-collapse: collapse } td, th { padding: .2em 1em .2em 0; text-align: left; vertical-align: top }
pre { font: 13px/1.4 ui-monospace, monospace; border: 1px solid #ddd; padding: .5em 0; overflow-x: auto }
pre span { display: block; padding: 0 1em } .yes { background: #e6f6e6 } .no { background: #fbe3e3 }
.part { background: #fdf3d0 } i { color: #888; display: inline-block; width: 3.5em }
b { color: #a60; font-weight: normal }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd } pre { border-color: #444 }
.yes { background: #17321b } .no { background: #472020 } .part { background: #44390f } }
"""


def page(files: Sequence[FileCoverage], source: Callable[[str], str]) -> str:
    """An HTML page with the table, and each file with its lines in colour. `source` reads a file of the project."""
    rows = "".join(
        f'<tr><td><a href="#{html.escape(file.path)}">{html.escape(file.path)}</a>'
        f"<td>{_shares(file)[0]}<td>{_shares(file)[1]}<td>{html.escape(_missing(file))}</tr>\n"
        for file in files
    )
    bodies = "".join(_source(file, source(file.path)) for file in files)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Coverage of rules</title>\n'
        f"<style>{_STYLE}</style>\n<h1>Coverage of rules</h1>\n"
        f"<table>\n<tr><th>file<th>lines<th>branches<th>not exercised</tr>\n{rows}</table>\n{bodies}</html>\n"
    )


def _source(file: FileCoverage, text: str) -> str:
    notes: dict[int, list[str]] = {}
    for branch in file.branches:
        if branch.missing:
            notes.setdefault(branch.line, []).append(f"{branch.what} never {_words(branch)}")
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        count = file.lines.get(number)
        kind = "part" if number in notes else "" if count is None else "yes" if count else "no"
        note = f"  <b>{html.escape('; '.join(notes[number]))}</b>" if number in notes else ""
        lines.append(f'<span class="{kind}"><i>{number}</i>{html.escape(line) or " "}{note}</span>')
    return f'<h2 id="{html.escape(file.path)}">{html.escape(file.path)}</h2>\n<pre>{"".join(lines)}</pre>\n'
