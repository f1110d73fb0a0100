"""Parses the lines and blocks of a template to its tree.

The lines are read as YAML once, with a mark for each expression and each block. A block has the column of its first
line, and stands among entries if that is one, among items if it begins with a dash; its bodies are read in the same
way, each by itself. So no branch is ever combined with another, and no value is ever read as YAML.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeGuard

from ruleop.errors import RuleError, Site
from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import PRINTING, bodies_of
from ruleop.language.templates.tree.nodes import (
    Block,
    BlockItem,
    Blocks,
    Choice,
    Constant,
    DocumentBlock,
    Documents,
    Entry,
    Item,
    Joined,
    Line,
    Lines,
    ListNode,
    Mapping,
    Node,
    Part,
    Spread,
    Statement,
    TextBlock,
    Value,
)
from ruleop.language.templates.values.faults import RuleErrors, mistake
from ruleop.language.templates.yaml_reader import read_yaml
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ruleop.language.templates.yaml_reader import YamlNode


# -- marks -------------------------------------------------------------------------------------------------------------
#
# Marks that stand for values and blocks in a text that is read as YAML.
#
# They consist of noncharacters (U+FDD0..U+FDD2, which Unicode reserves for internal use). A template that contains one
# is rejected when it is loaded, and values are never part of the text, so every mark stands for a place in a template.
# There are two forms: a value, at any position, and what is alone on its line, as a key with a value or as an item, so
# that it matches its neighbours.

OPEN, CLOSE, ALONE = "\ufdd0", "\ufdd1", "\ufdd2"
RESERVED: Final = re.compile("[\ufdd0-\ufdd2]")
VALUE: Final = re.compile(f"{OPEN}([0-9]+){CLOSE}")
SPREAD: Final = re.compile(f"{ALONE}([0-9]+){CLOSE}")


# -- parser ------------------------------------------------------------------------------------------------------------

IN_BRACKETS: Final = (
    "a tag cannot be between the items of [...] or {...}: write each item or entry on a line of its own, and the "
    "tags on lines between them"
)
DEEPER: Final = (
    "not YAML: this is indented deeper than the block on line {line}, which does not hold it: write a key and all that "
    "is below it in one block"
)
AMONG_TEXT: Final = "a block cannot continue a value: write it at the column of the entries or items around it"
_MARKS: Final = re.compile("(?:- |#)?[\ufdd0\ufdd2][0-9]+\ufdd1(?:: 0)?")
_SIGNS: Final = re.compile(r"[,:\[\]{}]")
Shape = Literal["key", "item", "text", "open", ""]
"""The role of a line: an entry, an item, the text of a scalar, an expression alone that may be any of them, or none."""

_KEY: Final = re.compile(
    r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#&*!|>'"%@`{}\[\],-][^#]*?|-[^\s#][^#]*?)[ ]*:(?:[ \t]|$)"""
)
_ALONE: Final = re.compile(rf"[ \t]*{OPEN}0{CLOSE}[ \t]*(?:[ \t]#.*)?\r?")
_COMMENT: Final = re.compile(r"(?:^|\s)#")
_SEPARATOR: Final = re.compile(r"---(?:[ \t]+#.*|[ \t]*)")
_TEXT_BLOCK: Final = re.compile(
    r"(?P<before>(?:.*[:-])?[ \t]+|)(?P<style>[|>])(?P<options>[-+0-9]{0,2})(?:[ \t]+#.*)?[ \t]*"
)


LinesOf: TypeAlias = "Callable[[str], Sequence[str]]"
"""The lines of a file, by its path. They give the columns of nodes and mistakes."""


def parse(body: syntax.Body, path: str, lines_of: LinesOf = lambda _: ()) -> Documents:
    """The documents of a file, or of the body of a macro. Raises RuleErrors with the mistakes of all branches."""
    reading = _Reading(lines_of)
    documents = _parsed(Lines(path).read(body), path, reading)
    if reading.mistakes:
        raise RuleErrors(reading.mistakes)
    return documents


@dataclass(frozen=True, slots=True)
class _Reading:
    lines_of: LinesOf
    mistakes: list[RuleError] = field(default_factory=list)


# -- documents ---------------------------------------------------------------------------------------------------------


def _parsed(items: Sequence[Item], path: str, reading: _Reading) -> Documents:
    try:
        members = tuple(_documents(items, path, reading))
    except RuleErrors as errors:
        reading.mistakes.extend(errors.mistakes)
        members = ()
    return Documents(members, separated=any(map(_separates, items)))


def _documents(items: Sequence[Item], path: str, reading: _Reading) -> Iterator[Node | DocumentBlock]:
    for chunk in _chunks(items):
        inner = [each for each in chunk if isinstance(each, BlockItem) and _separates(each)]
        if not inner:
            node = _Level(path, reading).node(chunk)
            if node is not None:
                yield node
            continue
        yield from _with_blocks(chunk, inner, path, reading)


def _chunks(items: Sequence[Item]) -> Iterator[list[Item]]:
    chunk: list[Item] = []
    for each in items:
        if isinstance(each, Line) and _SEPARATOR.fullmatch(_text_of(each)):
            yield chunk
            chunk = []
        else:
            chunk.append(each)
    yield chunk


def _with_blocks(
    chunk: Sequence[Item], inner: Sequence[Item], path: str, reading: _Reading
) -> Iterator[Node | DocumentBlock]:
    """Documents and blocks of documents. What precedes a block is a document of its own if the block begins with the
    line `---`."""
    before: list[Item] = []
    for each in chunk:
        if each not in inner:
            before.append(each)
            continue
        assert isinstance(each, BlockItem)
        content = [one for one in before if _shape_of(one)]
        if content and not _begins_document(each):
            first = content[0]
            message = "a block with `---` in it must hold whole documents: put `---` before the block"
            raise mistake(message, Site(path, first.number))
        node = _Level(path, reading).node(before)
        if node is not None:
            yield node
        before = []
        bodies = tuple(_parsed(items, each.path, reading) for items in each.bodies)
        yield DocumentBlock(each.node, bodies, Site(path, each.number))
    node = _Level(path, reading).node(before)
    if node is not None:
        yield node


def _separates(item: Item) -> bool:
    if isinstance(item, Line):
        return _SEPARATOR.fullmatch(_text_of(item)) is not None
    return any(_separates(each) for items in item.bodies for each in items)


def _begins_document(block: BlockItem) -> bool:
    for items in block.bodies:
        first = next((each for each in items if _shape_of(each)), None)
        if isinstance(first, BlockItem) and not _begins_document(first):
            return False
        if isinstance(first, Line) and not _SEPARATOR.fullmatch(_text_of(first)):
            return False
    return True


# -- blocks ------------------------------------------------------------------------------------------------------------


def _text_of(line: Line) -> str:
    """The text of a line with a mark for each part that is not literal."""
    return "".join(part if isinstance(part, str) else f"{OPEN}0{CLOSE}" for part in line.parts)


def _is_lone(line: Line) -> syntax.Printing | None:
    """The expression that is alone on a line."""
    first = next((part for part in line.parts if not isinstance(part, str) or part.strip()), None)
    if isinstance(first, PRINTING) and _ALONE.fullmatch(_text_of(line)):
        return first
    return None


def _shape_of(item: Item) -> Shape:
    return _first(item)[1]


def _column(item: Item) -> int:
    return _first(item)[0]


def _first(item: Item) -> tuple[int, Shape]:
    """The column and shape of the first line that an item prints. Of shapes, one that is known goes first."""
    if isinstance(item, Line):
        text = _text_of(item)
        return len(text) - len(text.lstrip(" ")), _shape_of_line(item, text.strip(" \t\r"))
    found: tuple[int, Shape] = (0, "")
    for items in item.bodies:
        column, shape = next((first for first in map(_first, items) if first[1]), found)
        if not found[1] or (found[1] == "open" and shape != "open"):
            found = (column, shape)
    return found


def _shape_of_line(line: Line, text: str) -> Shape:
    if not text or text.startswith("#"):
        return ""
    if _SEPARATOR.fullmatch(text):
        return "text"
    if _is_lone(line) is not None:
        return "open"
    if text == "-" or text.startswith("- "):
        return "item"
    return "key" if _KEY.match(text) else "text"


@dataclass(slots=True)
class _Row:
    """A line of the YAML text: a line of the template, or a block."""

    item: Item
    column: int
    shape: Shape
    text: str = ""


class _Level:
    """One text that is read as YAML."""

    def __init__(self, path: str, reading: _Reading) -> None:
        self.path, self.reading = path, reading
        self.inserted: list[syntax.Stmt | Spread | Statement | TextBlock] = []
        self.numbers: list[int] = []  # of the lines of the text in the file
        self.texts: list[str] = []  # the lines of the text

    def node(self, items: Sequence[Item]) -> Node | None:
        """The value of these lines; None if there is none, or a mistake in it."""
        try:
            return self._node(items)
        except RuleErrors as errors:
            self.reading.mistakes.extend(errors.mistakes)
            return None

    def _node(self, items: Sequence[Item]) -> Node | None:
        known = len(self.reading.mistakes)
        rows = self._rows(items)
        text = self._text(rows)
        if len(self.reading.mistakes) > known:
            return None  # what is around a mistake may be read wrongly
        self._check_directive(rows)
        found, mistakes = read_yaml(text, self.path, locate=self._locate)
        if mistakes:
            texts = (RESERVED.sub("", _MARKS.sub("{{ ... }}", each.message)) for each in mistakes)
            raise RuleErrors([RuleError(text, each.site) for text, each in zip(texts, mistakes, strict=True)])
        if len(found) > 1:
            raise mistake("a block with `---` in it must hold whole documents", self._locate(1, 1))
        return self._value(found[0]) if found else None

    def _check_directive(self, rows: Sequence[_Row]) -> None:
        first = next((row for row in rows if row.shape), None)
        if first is not None and isinstance(first.item, Line) and _text_of(first.item).startswith("%"):
            message = "%YAML and %TAG directives are not allowed: remove the line"
            raise mistake(message, Site(self.path, first.item.number))

    def _locate(self, line: int, column: int) -> Site:
        """The place of a column of the text, in which expressions have other lengths than in the file."""
        number = self.numbers[min(line, len(self.numbers)) - 1] if self.numbers else 1
        written = self.reading.lines_of(self.path)
        if not 0 < number <= len(written) or line > len(self.texts):
            return Site(self.path, number)
        source, text = written[number - 1], self.texts[line - 1]
        rest = _MARKS.split(text[column - 1 :])[0].rstrip()
        if source[: column - 1] == text[: column - 1] and source.startswith(rest, column - 1):
            return Site(self.path, number, column)
        return Site(self.path, number, source.find(rest) + 1 if rest else 0)

    # -- lines ---------------------------------------------------------------------------------------------------------

    def _rows(self, items: Sequence[Item]) -> list[_Row]:
        rows: list[_Row] = []
        index = 0
        while index < len(items):
            item = items[index]
            match = _TEXT_BLOCK.fullmatch(_text_of(item)) if isinstance(item, Line) else None
            if match is not None and not _COMMENT.search(match["before"]):
                end = self._end_of_text(items, index)
                rows += self._text_block(items[index:end], match)
                index = end
                continue
            rows.append(_Row(item, _column(item), _shape_of(item)))
            index += 1
        return rows

    def _end_of_text(self, items: Sequence[Item], start: int) -> int:
        """The end of the text block that begins at a line: behind its last line that is indented more."""
        header = items[start]
        assert isinstance(header, Line)
        text = _text_of(header)
        parent = (
            len(text) - len(text.lstrip(" -"))
            if text.lstrip(" ").startswith("- ") and _KEY.match(text.lstrip(" -"))
            else len(text) - len(text.lstrip(" "))
        )
        end = start + 1
        for index in range(start + 1, len(items)):
            column = _deepest_first(items[index])
            if column is None:
                continue
            if column <= parent:
                break
            end = index + 1
        while end < len(items) and isinstance(blank := items[end], Line) and blank.is_blank:
            end += 1
        return end

    def _text_block(self, items: Sequence[Item], match: re.Match[str]) -> list[_Row]:
        header, *content = items
        assert isinstance(header, Line)
        dynamic = any(isinstance(each, BlockItem) or any(_is_inline(part) for part in each.parts) for each in content)
        column = _column(header)
        row = _Row(header, column, _shape_of(header))
        if not dynamic:
            rows = [_Row(each, 0, "") for each in content]  # no neighbours of lines that may be anything
            for each in rows:
                each.text = self._marked(each.item)  # type: ignore[arg-type]
            row.text = self._marked(header)
            return [row, *rows]
        options = match["options"]
        indicator = next((int(each) for each in options if each.isdigit()), 0)
        block = TextBlock(
            content,
            folded=match["style"] == ">",
            chomping=next((each for each in options if each in "+-"), ""),
            indentation=indicator and indicator + column,
            site=Site(self.path, header.number),
        )
        marked = self._marked(header)
        at = marked.rindex(match["style"])
        row.text = marked[:at] + self._mark(block)
        return [row]

    def _marked(self, line: Line) -> str:
        return "".join(part if isinstance(part, str) else self._mark(part) for part in line.parts)

    def _mark(self, inserted: syntax.Stmt | Spread | Statement | TextBlock) -> str:
        self.inserted.append(inserted)
        return f"{OPEN}{len(self.inserted) - 1}{CLOSE}"

    def _text(self, rows: Sequence[_Row]) -> str:
        for number, row in enumerate(rows):
            self.texts.append(row.text or self._row_text(rows, number))
            self.numbers.append(self._number(row.item))
        return "\n".join(self.texts) + "\n"

    def _number(self, item: Item) -> int:
        """The line of an item; of a block, that of the first line that it prints."""
        if isinstance(item, BlockItem) and item.path == self.path:
            first = next((each for items in item.bodies for each in items if _shape_of(each)), None)
            return item.number if first is None else self._number(first)
        return item.number

    def _row_text(self, rows: Sequence[_Row], number: int) -> str:
        row = rows[number]
        item = row.item
        if isinstance(item, Line):
            lone = _is_lone(item)
            if lone is None:
                return self._marked(item)
            form = self._form(rows, number, row.column)
            if form == "text":
                return self._marked(item)
            return self._spread(Spread(lone, Site(self.path, item.number, row.column + 1)), row.column, form)
        column, shape = row.column, row.shape
        if not shape:  # it has only an effect: at the place of the next line, or else of the one before
            column, shape = self._neighbour(rows, number)
        form = self._form(rows, number, column) if shape == "open" else shape
        if form == "text" and self._has_open_neighbour(rows, number, column):
            form = "key"
        bodies = tuple(_Level(item.path, self.reading).node(items) for items in item.bodies)
        statement = Statement(item.node, bodies, Site(self.path, item.number))
        if form == "text":
            return f"{' ' * column}{self._mark(statement)}"
        return self._spread(statement, column, form)

    def _spread(self, block: Spread | Statement, column: int, form: str) -> str:
        self.inserted.append(block)
        mark = f"{ALONE}{len(self.inserted) - 1}{CLOSE}"
        return f"{' ' * column}- {mark}" if form == "item" else f"{' ' * column}{mark}: 0"

    def _neighbour(self, rows: Sequence[_Row], number: int) -> tuple[int, Shape]:
        for row in rows[number + 1 :]:
            if row.shape:
                return row.column, row.shape
        for row in reversed(rows[:number]):
            if row.shape:
                return row.column, row.shape
        return 0, "key"

    def _form(self, rows: Sequence[_Row], number: int, column: int) -> str:
        """The role that the neighbours at its column give a line which may be anything."""
        for row in reversed(rows[:number]):
            if not row.shape or row.shape == "open" or row.column > column:
                continue
            if row.column == column:
                return "key" if row.shape == "item" and self._ends_items(rows, number, column) else row.shape
            text = _text_of(row.item) if isinstance(row.item, Line) else ""
            inner = text.lstrip(" ")
            if inner.startswith("- ") and len(text) - len(inner[1:].lstrip(" ")) == column:
                return "key"
            break
        for row in rows[number + 1 :]:
            if not row.shape or row.shape == "open":
                if row.shape and row.column < column:
                    break
                continue
            if row.column <= column:
                if row.column == column:
                    return row.shape
                break
        return "key" if self._has_open_neighbour(rows, number, column) else "text"

    def _ends_items(self, rows: Sequence[_Row], number: int, column: int) -> bool:
        """Whether the items before a line are at the column of their key, and none follows it: the line may be an entry
        of the mapping that has the key."""
        following = next((row for row in rows[number + 1 :] if row.shape), None)
        if following is not None and (following.column > column or following.shape in {"item", "open"}):
            return False
        for row in reversed(rows[:number]):
            if row.shape and row.column <= column and row.shape not in {"item", "open"}:
                return row.column == column and row.shape == "key"
        return False

    def _has_open_neighbour(self, rows: Sequence[_Row], number: int, column: int) -> bool:
        """Whether another line that may be anything, or a block, is next to it at its column."""
        for step in (-1, 1):
            at = number + step
            while 0 <= at < len(rows):
                row = rows[at]
                if row.shape or isinstance(row.item, BlockItem):
                    if (row.column == column or not row.shape) and (
                        row.shape == "open" or isinstance(row.item, BlockItem)
                    ):
                        return True
                    break
                at += step
        return False

    # -- values --------------------------------------------------------------------------------------------------------

    def _value(self, node: YamlNode) -> Node:
        value = node.value
        if isinstance(value, dict):
            if node.flow:
                self._check_flow((*value, *(each.value for each in value.values())))
            return self._mapping(node, value)
        if isinstance(value, list):
            if node.flow:
                self._check_flow(each.value for each in value)
            return self._list(value, node.site)
        if isinstance(value, str):
            return self._scalar(value, node)
        return Constant(value, node.site)

    def _mapping(self, node: YamlNode, value: dict[str, YamlNode]) -> Node:
        members: list[Entry | Block] = []
        for key, member in value.items():
            match = SPREAD.fullmatch(key)
            if match:
                block = self.inserted[int(match[1])]
                assert isinstance(block, (Spread, Statement))
                if member.value != 0:
                    raise self._deeper(block, node.key_sites[key])
                members.append(block)
            else:
                site = node.key_sites[key]
                name = Joined(self._parts(key), plain=False, site=site) if OPEN in key else key
                members.append(Entry(name, self._value(member), site))
        if not members:
            return Constant({}, node.site)
        blocks = tuple(each for each in members if not isinstance(each, Entry))
        return Blocks(blocks, node.site) if len(blocks) == len(members) else Mapping(tuple(members), node.site)

    def _deeper(self, block: Spread | Statement, place: Site) -> RuleErrors:
        """The mistake of lines that are below a block and not in it."""
        after = self.numbers.index(place.line) + 1
        following = next((number for number in range(after, len(self.texts)) if self.texts[number].strip()), after - 1)
        column = len(self.texts[following]) - len(self.texts[following].lstrip(" ")) + 1
        return mistake(DEEPER.format(line=block.site.line), self._locate(following + 1, column))

    def _check_flow(self, members: Iterable[Any]) -> None:
        for each in members:
            for match in VALUE.finditer(each) if isinstance(each, str) else ():
                inserted = self.inserted[int(match[1])]
                if not _is_inline(inserted):
                    continue
                if any(_SIGNS.search(data.text) for data in syntax.find(inserted, syntax.Data)):
                    raise mistake(IN_BRACKETS, inserted.site)

    def _list(self, value: list[YamlNode], site: Site) -> Node:
        members: list[Node | Block] = []
        for item in value:
            match = SPREAD.fullmatch(item.value) if isinstance(item.value, str) and item.plain else None
            if match:
                block = self.inserted[int(match[1])]
                assert isinstance(block, (Spread, Statement))
                members.append(block)
            else:
                members.append(self._value(item))
        if not members:
            return Constant([], site)
        blocks = tuple(each for each in members if isinstance(each, (Spread, Statement)))
        return Blocks(blocks, site) if len(blocks) == len(members) else ListNode(tuple(members), site)

    def _scalar(self, text: str, node: YamlNode) -> Node:
        if ALONE in text:
            match = SPREAD.search(text)
            block = self.inserted[int(match[1])] if match else None
            assert isinstance(block, (Spread, Statement))
            raise self._deeper(block, node.site)
        if OPEN not in text:
            return Constant(text, node.site)
        match = VALUE.fullmatch(text)
        if match and node.plain:
            return self._whole(self.inserted[int(match[1])], node.site)
        return Joined(self._parts(text), plain=node.plain, site=node.site)

    def _whole(self, inserted: syntax.Stmt | Spread | Statement | TextBlock, site: Site) -> Node:
        if isinstance(inserted, PRINTING):
            return Value(inserted, site)
        if isinstance(inserted, TextBlock):
            return inserted
        if isinstance(inserted, (Spread, Statement)):
            return Blocks((inserted,), site)
        if isinstance(inserted, syntax.If):
            branches = tuple(
                self._within_line(body, inserted.site.line) if body else None for body in bodies_of(inserted)
            )
            return Choice(inserted, branches, inserted.site)
        return Joined((inserted,), plain=True, site=site)

    def _within_line(self, body: syntax.Body, line: int) -> Node | None:
        """The value of a branch that stands within a line."""
        return _Level(self.path, self.reading).node(Lines(self.path, line).read(body))

    def _parts(self, text: str) -> tuple[Part, ...]:
        parts: list[Part] = []
        at = 0
        for match in VALUE.finditer(text):
            if match.start() > at:
                parts.append(text[at : match.start()])
            inserted = self.inserted[int(match[1])]
            if not isinstance(inserted, syntax.Stmt):
                raise mistake(AMONG_TEXT, inserted.site)
            parts.append(inserted)
            at = match.end()
        if at < len(text):
            parts.append(text[at:])
        return tuple(parts)


def _deepest_first(item: Item) -> int | None:
    """The column of the first line that is not blank; None if there is none. In a text block a `#` is text."""
    if isinstance(item, Line):
        text = _text_of(item)
        return len(text) - len(text.lstrip(" ")) if text.strip() else None
    for items in item.bodies:
        for each in items:
            if (column := _deepest_first(each)) is not None:
                return column
    return None


def _is_inline(part: object) -> TypeGuard[syntax.Stmt]:
    """Whether it is a statement within a line that is text with control flow in it."""
    return isinstance(part, syntax.Stmt) and not isinstance(part, PRINTING)
