"""Changes to a template's tokens before Jinja parses them, for which Jinja has no settings:

- a line that contains only tags, comments and white space is removed with its newline, while a tag in the middle of a
  line keeps all white space (`trim_blocks` and `lstrip_blocks` would join `{% if a %}x{% endif %}` with the next line);
- `${#` is shell, not a comment: `echo ${#args[@]}`;
- an import is `with context` unless it is marked `without context`, so that a macro that reads `spec` also works in a
  file of its own;
- the text of each `{{ ... }}` is kept for error messages, together with whether it is alone on its line.

Tags whose result is printed in their place (`include`, and `filter` and `call` blocks) count as printed, not as tags:
the white space around them is kept, so that their output can be indented to their column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

RawToken: TypeAlias = tuple[int, str, str]

SHELL_LENGTH = "${#"
STAND_IN = "$\ufdd2"  # reserved: no template may contain it (see layout.RESERVED)
_BLANK = re.compile(r"[ \t]*\Z")
_PRINTED_BLOCKS = frozenset({"filter", "call"})
_CLOSING = frozenset({"endfilter", "endcall", "endset", "endmacro"})
_IMPORT = re.compile(r"import\b.+\bas\b.+|from\b.+\bimport\b.*\w")
_HAS_CONTEXT = re.compile(r"\bwith(out)? context\Z")
_WITH_CONTEXT = (("whitespace", " "), ("name", "with"), ("whitespace", " "), ("name", "context"))
_SET_BLOCK = re.compile(r"set\b[^=|]*(\||\Z)")


@dataclass(slots=True)
class PrintedTag:
    """A `{{ ... }}`, or a tag whose result is printed, in the order of the source."""

    line: int
    expression: str
    alone: bool  # only white space and tags precede it on its line; what follows is known after rendering
    tag: str = ""


@dataclass(slots=True)
class _Cut:
    """White space of a data token, with its newline if it ends the line."""

    token: int
    start: int
    end: int


@dataclass(slots=True)
class _Stretch:
    """A line, or the part of one that is inside or outside of a captured block."""

    blanks: list[_Cut] = field(default_factory=list)
    tags: bool = False
    kept: bool = False  # contains text, or something printed


@dataclass(slots=True)
class Marked:
    """The tokens without removed lines, and everything that is printed."""

    tokens: list[RawToken]
    printed: list[PrintedTag]


def mark_up(tokens: Iterator[RawToken]) -> Marked:
    return _Marker(list(tokens)).run()


class _Marker:
    def __init__(self, tokens: list[RawToken]) -> None:
        self.tokens = tokens
        self.printed: list[PrintedTag] = []
        self.current = _Stretch()
        self.outer: list[_Stretch | None] = []  # the stretches around captured blocks; None once the line has ended
        self.cuts: dict[int, list[_Cut]] = {}

    def run(self) -> Marked:
        number = 0
        while number < len(self.tokens):
            number = self._token(number)
        self._end_line()
        kept = []
        for index, (line, kind, value) in enumerate(self.tokens):
            cuts = sorted(self.cuts.get(index, ()), key=lambda cut: cut.start, reverse=True)
            for cut in cuts:
                if cut.start == 0:
                    line += value.count("\n", 0, cut.end)  # noqa: PLW2901 - the rest of the literal starts on a later line
                value = value[: cut.start] + value[cut.end :]  # noqa: PLW2901 - the same token, shortened
            if value or kind != "data":
                kept.append((line, kind, value.replace(STAND_IN, SHELL_LENGTH)))
        return Marked(kept, self.printed)

    def _token(self, number: int) -> int:
        line, kind, value = self.tokens[number]
        if kind == "data":
            self._data(number, value)
        elif kind == "variable_begin":
            end, source = self._until(number, "variable_end")
            self._print(PrintedTag(line, source, not self.current.kept))
            return end + 1
        elif kind == "block_begin":
            end, source = self._until(number, "block_end")
            self._tag(line, source)
            if _IMPORT.fullmatch(source) and not _HAS_CONTEXT.search(source):
                at = self.tokens[end - 1][0]
                self.tokens[end:end] = [(at, kind, value) for kind, value in _WITH_CONTEXT]
                end += len(_WITH_CONTEXT)
            return end + 1
        else:
            self.current.tags = True  # a comment, or a tag of `raw`
        return number + 1

    def _until(self, number: int, kind: str) -> tuple[int, str]:
        end = number + 1
        while end < len(self.tokens) and self.tokens[end][1] != kind:
            end += 1
        source = "".join(value for _, _, value in self.tokens[number + 1 : end])
        return end, " ".join(source.replace(STAND_IN, SHELL_LENGTH).split())

    def _print(self, printed: PrintedTag) -> None:
        self.printed.append(printed)
        self.current.kept = True

    def _tag(self, line: int, source: str) -> None:
        word = source.split(" ", 1)[0].split("(", 1)[0]
        alone = not self.current.kept
        if word == "print":
            self._print(PrintedTag(line, source.removeprefix("print").strip(), alone))
        elif word == "include":
            self._print(PrintedTag(line, source, alone, word))
        elif word in _PRINTED_BLOCKS:
            self._print(PrintedTag(line, source, alone, word))
            self._open()
        elif word == "macro" or _SET_BLOCK.match(source):
            self.current.tags = True
            self._open()
        elif word in _CLOSING:
            self._close(prints=word in {"endfilter", "endcall"})
        else:
            self.current.tags = True

    def _open(self) -> None:
        self.outer.append(self.current)
        self.current = _Stretch(tags=True)

    def _close(self, *, prints: bool) -> None:
        self._finish(self.current)
        outside = self.outer.pop() if self.outer else None
        self.current = outside or _Stretch(tags=True, kept=prints)

    def _data(self, number: int, value: str) -> None:
        at = 0
        while True:
            newline = value.find("\n", at)
            stop = len(value) if newline < 0 else newline
            if _BLANK.match(value, at, stop):
                self.current.blanks.append(_Cut(number, at, stop if newline < 0 else newline + 1))
            else:
                self.current.kept = True
            if newline < 0:
                return
            self._end_line()
            at = newline + 1

    def _end_line(self) -> None:
        for number, stretch in enumerate(self.outer):
            if stretch is not None:
                self._finish(stretch)
                self.outer[number] = None
        self._finish(self.current)
        self.current = _Stretch()

    def _finish(self, stretch: _Stretch) -> None:
        if stretch.tags and not stretch.kept:
            for cut in stretch.blanks:
                self.cuts.setdefault(cut.token, []).append(cut)
