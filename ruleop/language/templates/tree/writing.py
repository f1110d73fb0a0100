"""Templates as text: what macros, captured blocks and `render` give, and what stands within a line or a text block.

The text is a list of literals and slots, as long as nobody joins it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.errors import Site
from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import EFFECTS, PRINTING, bodies_of
from ruleop.language.templates.tree.nodes import BlockItem
from ruleop.language.templates.tree.pieces import Form, MacroValue, Piece
from ruleop.language.templates.tree.state import charge_render
from ruleop.language.templates.values.cost import MAX_TEXT, SLOT_BYTES, Exhausted, check_text, exceeded
from ruleop.language.templates.values.faults import Fault, fault_in
from ruleop.language.templates.values.text import Dump, Lit, Slot, Text
from ruleop.language.templates.values.undefined import OMIT, Broken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ruleop.language.templates.tree.expressions import Compute
    from ruleop.language.templates.tree.nodes import Item, TextBlock
    from ruleop.language.templates.tree.nodes import Part as LinePart
    from ruleop.language.templates.tree.pieces import Source
    from ruleop.language.templates.tree.state import Scope, State
    from ruleop.language.templates.tree.statements import Statements
    from ruleop.language.templates.values.text import Part

Write: TypeAlias = "Callable[[Scope, list[Part]], None]"

_SLOT: Final = "\ufdd0"
_SLOT_NUMBER: Final = re.compile("\ufdd0([0-9]+)\ufdd1")


class Writer:
    """Makes functions that append text to a list."""

    def __init__(self, statements: Statements, file: Source, state: State) -> None:
        self.statements, self.file, self.state, self.path = statements, file, state, file.path
        self.expressions = statements.expressions

    def body(self, body: syntax.Body) -> Write:
        writes = [self._node(each) for each in body]
        if len(writes) == 1:
            return writes[0]

        def write(scope: Scope, parts: list[Part]) -> None:
            for each in writes:
                each(scope, parts)

        return write

    def items(self, items: Sequence[Item]) -> Write:
        """The lines and blocks of a text block."""
        writes: list[Write] = []
        for item in items:
            if isinstance(item, BlockItem):
                writes.append(self._node(item.node))
                continue
            writes.extend(map(self.part, item.parts))
            if item.end:
                writes.append(_literal(Lit(item.end, Site(self.path, item.number))))

        def write(scope: Scope, parts: list[Part]) -> None:
            for each in writes:
                each(scope, parts)

        return write

    def part(self, part: LinePart) -> Write:
        if isinstance(part, str):
            return _literal(Lit(part, Site(self.path)))
        return self._node(part)

    def _node(self, node: syntax.Stmt) -> Write:
        if isinstance(node, syntax.Data):
            return _literal(Lit(node.text, node.site))
        if isinstance(node, EFFECTS):
            effect = self.statements.effect(node)
            return lambda scope, _: effect(scope)
        if isinstance(node, PRINTING):
            return self._slot(node)
        return self.statements.control(node, [self.body(each) for each in bodies_of(node)])

    def _slot(self, node: syntax.Printing) -> Write:
        compute, place = self.value(node), node.place

        def write(scope: Scope, parts: list[Part]) -> None:
            try:
                charge_render(SLOT_BYTES)
                value = compute(scope)
            except Exhausted as error:
                raise error.at(place.site, place.expression) from None
            except (RecursionError, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - raised if the value is used
                value = Broken("", fault_in(error).at(place.site, place.expression))
            parts.append(Slot(value, place))

        return write

    def value(self, node: syntax.Printing) -> Compute:
        """The value of what is printed: an expression, an include, or a `call` or `filter` block."""
        if isinstance(node, syntax.Include):
            return self.included(node)
        if isinstance(node, syntax.CallBlock):
            return self._call_block(node)
        if isinstance(node, syntax.FilterBlock):
            form, name = Form(self.file, node.body), " captured"
            through = self.expressions.filtered(lambda scope: scope.get(name), node.filter)
            return lambda scope: through(scope.inner({name: Piece(form, scope.inner())}))
        return self.expressions.compute(node.value)

    def included(self, node: syntax.Include) -> Compute:
        form = self.file.first_of(node.files)
        if form is None:
            if node.ignore_missing:
                return lambda _: OMIT
            return _fail_to_include
        if node.with_context:
            return lambda scope: Piece(form, scope.inner())
        return lambda _: Piece(form, self.file.empty_scope())

    def _call_block(self, node: syntax.CallBlock) -> Compute:
        form = Form(self.file, node.body)
        params, defaults = node.params, self.expressions.computed(node.defaults)

        def caller(scope: Scope) -> Any:
            return MacroValue("caller", params, defaults, frozenset(), form, scope)

        return self.expressions.called(node.call, caller)


def _fail_to_include(_: Scope) -> Any:
    raise Fault("none of these templates exists")


def _literal(literal: Lit) -> Write:
    return lambda _, parts: parts.append(literal)


# -- text blocks -------------------------------------------------------------------------------------------------------


def block_text(block: TextBlock, parts: Sequence[Part]) -> str:
    """The text of a block scalar: without its indentation, folded and chomped as YAML does. Values are put in
    afterwards."""
    slots: list[Slot] = []
    return filled(_laid_out(block, parts, slots), slots)


def pieces_of(parts: Sequence[Part], block: TextBlock | None = None) -> list[str | Slot]:
    """The literals and the values of a text, of a block scalar as of any other, before the values are put in. Captured
    text is among them."""
    slots: list[Slot] = []
    text = _laid_out(block, parts, slots) if block is not None else _inserted(marked(parts, slots), slots)
    found: list[str | Slot] = []
    for number, piece in enumerate(_SLOT_NUMBER.split(text)):
        found += [slots[int(piece)]] if number % 2 else [piece] if piece else []
    return found


def _laid_out(block: TextBlock, parts: Sequence[Part], slots: list[Slot]) -> str:
    """The text of a block scalar with a mark for each slot."""
    lines = _inserted(marked(parts, slots), slots).split("\n")
    if lines and not lines[-1].strip(" "):
        lines.pop()
    lines = _dedented(lines, block.indentation)
    return _chomped(lines, block.chomping) if not block.folded else _folded(lines, block.chomping)


def _dedented(lines: Sequence[str], indentation: int) -> list[str]:
    if not indentation:
        first = next((line for line in lines if line.strip(" ")), "")
        indentation = len(first) - len(first.lstrip(" "))
    return [line[indentation:] for line in lines]


def _chomped(lines: Sequence[str], chomping: str) -> str:
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    if chomping == "+":
        return "\n".join(lines) + "\n" if lines else ""
    text = "\n".join(kept)
    return text if chomping == "-" or not text else text + "\n"


def _folded(lines: Sequence[str], chomping: str) -> str:
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    text, breaks = "", 0
    before_is_plain = False
    for number, line in enumerate(kept):
        if not line:
            breaks += 1
            continue
        is_plain = not line.startswith((" ", "\t"))
        if number and text:
            if before_is_plain and is_plain:
                text += "\n" * breaks if breaks else " "
            else:
                text += "\n" * (breaks + 1)
        elif breaks:
            text += "\n" * breaks
        text += line
        before_is_plain, breaks = is_plain, 0
    trailing = len(lines) - len(kept)
    if chomping == "+":
        return text + "\n" * (trailing + 1) if text else "\n" * trailing
    return text if chomping == "-" or not text else text + "\n"


def marked(parts: Sequence[Part], slots: list[Slot]) -> str:
    """The text of parts with a mark for each slot, which is added to the list."""
    pieces = []
    for part in parts:
        if isinstance(part, Slot):
            slots.append(part)
            pieces.append(f"{_SLOT}{len(slots) - 1}\ufdd1")
        else:
            pieces.append(part)
    return "".join(pieces)


def filled(text: str, slots: list[Slot]) -> str:
    """The text with the values in the places of their marks. Captured text that is alone on its line is written there,
    as if it were a part of the template; data takes the column of its line."""
    first, *rest = _SLOT_NUMBER.split(_inserted(text, slots))
    found, length, column = [first], len(first), _column_after("", first)
    for number, after in zip(rest[::2], rest[1::2], strict=True):
        slot = slots[int(number)]
        if isinstance(slot.value, Dump) and slot.place.alone and column is not None:
            value = _bare(slot).rstrip("\n").replace("\n", "\n" + column)
        else:
            value = slot.text
        found += (value, after)
        length += len(value) + len(after)
        if length > MAX_TEXT:
            raise slot.with_place(exceeded("text of {} characters", length, MAX_TEXT))
        column = _column_after(_column_after(column, value), after)
    return "".join(found)


def _column_after(column: str | None, text: str) -> str | None:
    """The white space from the start of the line behind a text; None if the line has more. `column`: before the
    text."""
    _, line_break, line = text.rpartition("\n")
    if line.strip(" ") or (not line_break and column is None):
        return None
    return line if line_break else f"{column}{line}"


def _bare(slot: Slot) -> str:
    try:
        return str(slot.value.bare())
    except Fault as fault:
        raise slot.with_place(fault) from None


def _inserted(text: str, slots: list[Slot]) -> str:
    """The text with the literals of captured text that is alone on its line. Without any, the line goes."""
    pieces = _SLOT_NUMBER.split(text)
    if not any(isinstance(slots[int(number)].value, Text) for number in pieces[1::2]):
        return text
    found, length, column = [pieces[0]], 0, _column_after("", pieces[0])
    for at, (number, after) in enumerate(zip(pieces[1::2], pieces[2::2], strict=True), 1):
        slot, rest = slots[int(number)], after
        is_last = 2 * at + 1 == len(pieces)
        if not isinstance(slot.value, Text) or not slot.place.alone or column is None or not _ends_line(after, is_last):
            found.append(f"{_SLOT}{number}\ufdd1")
            column = None
        elif lines := _trimmed(_inserted(marked(slot.value.parts, slots), slots).split("\n")):
            written = "\n".join(
                (column if row else "") + line if line.strip() else "" for row, line in enumerate(lines)
            )
            length += len(written)
            check_text(length)
            found.append(written)
            column = None
        else:
            _remove_end(found, len(column))
            column, rest = "", after.partition("\n")[2]
        found.append(rest)
        column = _column_after(column, rest)
    return "".join(found)


def _remove_end(pieces: list[str], count: int) -> None:
    """Removes characters from the end of a text in pieces."""
    while count:
        last = pieces.pop()
        if len(last) > count:
            pieces.append(last[:-count])
        count -= min(count, len(last))


def _ends_line(after: str, is_last: bool) -> bool:
    """Whether nothing follows on the line. `is_last`: no mark follows the text."""
    line, line_break, _ = after.partition("\n")
    return not line.strip(" \t") and (bool(line_break) or is_last)


def _trimmed(lines: list[str]) -> list[str]:
    """Without blank lines at both ends, and without the indentation that all have."""
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    cut = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    return [line[cut:] for line in lines]
