"""What is done to a template's tokens before Jinja parses them.

Four things that Jinja itself has no setting for:

- a line that holds nothing but tags, comments and blanks vanishes whole, newline and all, while a tag in the middle of a line leaves all
  white space as written (`trim_blocks` and `lstrip_blocks` would join `{% if a %}x{% endif %}` with the next line);
- `${#` is shell, not a comment: `echo ${#args[@]}`;
- an import is `with context` unless it says `without context`: a macro that reads `spec` works in a file of its own too;
- the text of each `{{ ... }}` is kept, so that an error can quote it, together with whether it stands alone on its line.

Tags whose result is printed where they stand (`include`, and the whole of a `filter` or `call` block) count as printed, not as tags: the
blanks before them and the newline behind them stay, so that what they give can be laid out at their column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

RawToken: TypeAlias = tuple[int, str, str]

SHELL_LENGTH = "${#"
STAND_IN = "$\ufdd2"  # reserved: no template may hold it (see text.RESERVED)
_BLANK = re.compile(r"[ \t]*\Z")
_PRINTED_BLOCKS = frozenset({"filter", "call"})
_CLOSING = frozenset({"endfilter", "endcall", "endset", "endmacro"})
_IMPORT = re.compile(r"import\b.+\bas\b.+|from\b.+\bimport\b.*\w")
_SAYS_CONTEXT = re.compile(r"\bwith(out)? context\Z")
_WITH_CONTEXT = (("whitespace", " "), ("name", "with"), ("whitespace", " "), ("name", "context"))
_SET_BLOCK = re.compile(r"set\b[^=|]*(\||\Z)")


@dataclass(slots=True)
class Printed:
    """A `{{ ... }}`, or a tag whose result is printed, in the order of the source."""

    line: int
    expression: str
    alone: bool  # nothing but blanks and tags is before it on its line; what is behind it only the rendered text can tell
    tag: str = ""


@dataclass(slots=True)
class _Cut:
    """Blanks of a data token, with their newline if they end the line."""

    token: int
    start: int
    end: int


@dataclass(slots=True)
class _Stretch:
    """A line, or the part of one that is inside or outside of a captured block."""

    blanks: list[_Cut] = field(default_factory=list)
    tags: bool = False
    kept: bool = False  # holds text, or something printed


@dataclass(slots=True)
class Marked:
    """The tokens, with vanishing lines gone, and all that is printed."""

    tokens: list[RawToken]
    printed: list[Printed]


def mark_up(tokens: Iterator[RawToken]) -> Marked:
    return _Marker(list(tokens)).run()


class _Marker:
    def __init__(self, tokens: list[RawToken]) -> None:
        self.tokens = tokens
        self.printed: list[Printed] = []
        self.here = _Stretch()
        self.around: list[_Stretch | None] = []  # what a captured block interrupted; None once its line has ended
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
                    line += value.count("\n", 0, cut.end)  # noqa: PLW2901 - what is left of the literal begins further down
                value = value[: cut.start] + value[cut.end :]  # noqa: PLW2901 - the same token, with less in it
            if value or kind != "data":
                kept.append((line, kind, value.replace(STAND_IN, SHELL_LENGTH)))
        return Marked(kept, self.printed)

    def _token(self, number: int) -> int:
        line, kind, value = self.tokens[number]
        if kind == "data":
            self._data(number, value)
        elif kind == "variable_begin":
            end, source = self._until(number, "variable_end")
            self._print(Printed(line, source, not self.here.kept))
            return end + 1
        elif kind == "block_begin":
            end, source = self._until(number, "block_end")
            self._tag(line, source)
            if _IMPORT.fullmatch(source) and not _SAYS_CONTEXT.search(source):
                at = self.tokens[end - 1][0]
                self.tokens[end:end] = [(at, kind, value) for kind, value in _WITH_CONTEXT]
                end += len(_WITH_CONTEXT)
            return end + 1
        else:
            self.here.tags = True  # a comment, or one of raw's own tags
        return number + 1

    def _until(self, number: int, kind: str) -> tuple[int, str]:
        end = number + 1
        while end < len(self.tokens) and self.tokens[end][1] != kind:
            end += 1
        source = "".join(value for _, _, value in self.tokens[number + 1 : end])
        return end, " ".join(source.replace(STAND_IN, SHELL_LENGTH).split())

    def _print(self, printed: Printed) -> None:
        self.printed.append(printed)
        self.here.kept = True

    def _tag(self, line: int, source: str) -> None:
        word = source.split(" ", 1)[0].split("(", 1)[0]
        alone = not self.here.kept
        if word == "print":
            self._print(Printed(line, source.removeprefix("print").strip(), alone))
        elif word == "include":
            self._print(Printed(line, source, alone, word))
        elif word in _PRINTED_BLOCKS:
            self._print(Printed(line, source, alone, word))
            self._open()
        elif word == "macro" or _SET_BLOCK.match(source):
            self.here.tags = True
            self._open()
        elif word in _CLOSING:
            self._close(prints=word in {"endfilter", "endcall"})
        else:
            self.here.tags = True

    def _open(self) -> None:
        self.around.append(self.here)
        self.here = _Stretch(tags=True)

    def _close(self, *, prints: bool) -> None:
        self._finish(self.here)
        outside = self.around.pop() if self.around else None
        self.here = outside or _Stretch(tags=True, kept=prints)

    def _data(self, number: int, value: str) -> None:
        at = 0
        while True:
            newline = value.find("\n", at)
            stop = len(value) if newline < 0 else newline
            if _BLANK.match(value, at, stop):
                self.here.blanks.append(_Cut(number, at, stop if newline < 0 else newline + 1))
            else:
                self.here.kept = True
            if newline < 0:
                return
            self._end_line()
            at = newline + 1

    def _end_line(self) -> None:
        for number, stretch in enumerate(self.around):
            if stretch is not None:
                self._finish(stretch)
                self.around[number] = None
        self._finish(self.here)
        self.here = _Stretch()

    def _finish(self, stretch: _Stretch) -> None:
        if stretch.tags and not stretch.kept:
            for cut in stretch.blanks:
                self.cuts.setdefault(cut.token, []).append(cut)
