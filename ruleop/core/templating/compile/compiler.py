"""Jinja's code generator, changed where a template of objects differs from a template of text.

- `{{ ... }}` yields a `Slot` with its value, not text. If the expression fails, the slot holds the fault, which is
  raised only if the slot is used (a slot in a YAML comment is not).
- Literal text is a `Lit`, which has its line.
- The output of an `include` is captured, so that it can be indented to the column of its tag.
- Loops count their passes; an inline `if` without `else` results in `omit`; `~` joins values as slots do.
- `a.b()` is always a method, and `a.b` always a field.

`{% for k, v in ... %}` and `{% set a, b = ... %}` unpack values here: Python's unpacking would fail with `not enough
values to unpack` where `.items()` is missing, or split a key of two letters without an error. This allows messages with
what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, operators

from ruleop.core.errors import Site
from ruleop.core.templating.values.cost import CONTAINER_BYTES, SLOT_BYTES
from ruleop.core.templating.values.data import ListView, noun
from ruleop.core.templating.values.faults import Fault
from ruleop.core.templating.values.lookup import Group, MappingEntry
from ruleop.core.templating.values.operators import given, passes
from ruleop.core.templating.values.text import Lit, SlotPlace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.templating.compile.tokens import Printed

ROWS = " rows"  # names of filters, which templates cannot write because of the space
UNPACKED = " unpacked"
_ENTRY = {"key", "value"}
_PLAIN_ROWS = frozenset({MappingEntry, Group, tuple})

Names: TypeAlias = tuple[Any, ...]
"""The target names; a tuple for names in brackets."""


def add_unpacking(tree: nodes.Template) -> None:
    """Adds the filters `rows` and `unpacked` to values that are unpacked."""
    for loop in tree.find_all(nodes.For):
        if names := _names(loop.target):
            loop.iter = _with_filter(loop.iter, ROWS, names, _source_of(loop.iter) or "mapping")
    for assignment in tree.find_all(nodes.Assign):
        if names := _names(assignment.target):
            assignment.node = _with_filter(assignment.node, UNPACKED, names)
    for block in tree.find_all(nodes.With):
        for number, target in enumerate(block.targets):
            if names := _names(target):
                block.values[number] = _with_filter(block.values[number], UNPACKED, names)


def _with_filter(node: Any, name: str, *arguments: Any) -> nodes.Filter:
    return nodes.Filter(node, name, [nodes.Const(each) for each in arguments], [], None, None, lineno=node.lineno)


def _names(target: nodes.Node) -> Names:
    """The names of a target; () for a single name."""
    if not isinstance(target, nodes.Tuple):
        return ()
    return tuple(_names(each) or getattr(each, "name", "...") for each in target.items)


def _source_of(node: nodes.Node) -> str:
    """The source text of a chain of fields; "" for anything else."""
    if isinstance(node, nodes.Name):
        return node.name
    before = _source_of(node.node) if isinstance(node, (nodes.Getattr, nodes.Getitem)) else ""
    if before and isinstance(node, nodes.Getattr):
        return f"{before}.{node.attr}"
    if before and isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        return f"{before}[{node.arg.value!r}]"
    return ""


def rows(value: Any, names: Names, source: str) -> list[tuple[Any, ...]]:
    """The items of a loop with several names."""
    found = passes(value)
    if isinstance(found, Mapping):
        pair = names if len(names) == 2 and all(isinstance(name, str) for name in names) else ("key", "value")
        raise Fault(
            f"a loop over a mapping iterates over its keys: write `for {pair[0]}, {pair[1]} in {source}.items()`"
        )
    size = len(names) if all(isinstance(name, str) for name in names) else -1
    return [
        row if type(row) in _PLAIN_ROWS and len(row) == size else unpacked(row, names) for row in found
    ]  # the first case is by far the most common


def unpacked(value: Any, names: Names) -> tuple[Any, ...]:
    value = given(value)
    if isinstance(value, (list, tuple, range, ListView)):
        if len(value) == len(names):
            return tuple(
                unpacked(each, name) if isinstance(name, tuple) else each
                for each, name in zip(value, names, strict=True)
            )
        what = f"a list of {len(value)} item{'' if len(value) == 1 else 's'}"
    else:
        what = noun(value)
    raise Fault(
        f"{what} cannot be unpacked into `{', '.join(map(_format_name, names))}`: {_unpacking_hint(value, names)}"
    )


def _format_name(name: str | Names) -> str:
    return name if isinstance(name, str) else f"({', '.join(map(_format_name, name))})"


def _unpacking_hint(value: Any, names: Names) -> str:
    if not isinstance(value, Mapping):
        return f"a list of {len(names)} items is needed"
    return (
        "write `for item in ...` and read item.key, item.value"
        if set(value) == _ENTRY
        else "use one name and read its fields"
    )


# ruff: noqa: N802 - Jinja's visitor finds its methods by the names of the node classes


PASSES = " passes"  # the name of a filter, which templates cannot write because of the space


def attach_places(tree: nodes.Template, printed: list[Printed], where: str | Site) -> None:
    """Sets the place of each printing node: a line of a file, or the site of a string. `printed` is in the order of the
    source."""
    for node, found in zip(printing_nodes(tree), printed, strict=True):
        site = where if isinstance(where, Site) else Site(where, found.line)
        node.place = SlotPlace(site, found.expression, found.alone)  # type: ignore[attr-defined]


def printing_nodes(tree: nodes.Node) -> Iterator[nodes.Node]:
    if isinstance(tree, nodes.Output):
        for node in tree.nodes:
            if not isinstance(node, nodes.TemplateData):
                yield node
        return
    if isinstance(tree, (nodes.Include, nodes.FilterBlock, nodes.CallBlock)):
        yield tree
    for child in tree.iter_child_nodes():
        yield from printing_nodes(child)


def _weight(loop: nodes.For) -> tuple[int, int]:
    """The units and the bytes of one pass, by the nodes of the loop's body. Passes of inner loops are charged by
    themselves."""
    parts = [*loop.body, *([loop.test] if loop.test is not None else [])]
    below = [node for part in parts for node in _nodes_below(part)]
    outputs = sum(len(node.nodes) for node in below if isinstance(node, nodes.Output))
    made = sum(isinstance(node, (nodes.Dict, nodes.List, nodes.Tuple)) for node in below)
    return 1 + outputs + 2 * made + len(below) // 3, SLOT_BYTES * outputs + CONTAINER_BYTES * made


def _nodes_below(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    if not isinstance(node, (nodes.For, nodes.Macro)):
        for child in node.iter_child_nodes():
            yield from _nodes_below(child)


class Generator(CodeGenerator):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.constants: list[Any] = []

    # Literal text and places are Python objects in a list, to which the code refers by number.
    def constant(self, value: Any) -> str:
        self.constants.append(value)
        return f"constants[{len(self.constants) - 1}]"

    def _place_constant(self, node: nodes.Node) -> str:
        place = getattr(node, "place", None) or SlotPlace(Site(self.filename or "", node.lineno), "")
        return self.constant(place)

    def _slot_write(self, value: str, node: nodes.Node, frame: Frame) -> None:
        self.simple_write(f"Slot({value}, {self._place_constant(node)})", frame, node)

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:
        loops = [(loop, *_weight(loop)) for loop in node.find_all(nodes.For)]
        add_unpacking(node)
        for loop, units, size in loops:
            arguments: list[nodes.Expr] = [nodes.Const(units), nodes.Const(size)]
            loop.iter = nodes.Filter(loop.iter, PASSES, arguments, [], None, None, lineno=loop.lineno)
        super().visit_Template(node, frame)

    def visit_Output(self, node: nodes.Output, frame: Frame) -> None:
        if frame.require_output_check:
            if self.has_known_extends:
                return
            self.writeline("if parent_template is None:")
            self.indent()
        line = node.lineno
        for child in node.nodes:
            if isinstance(child, nodes.TemplateData):
                self.simple_write(
                    self.constant(Lit(child.data, Site(self.filename or "", child.lineno or line))), frame, child
                )
            else:
                self._write_slot(child, frame)
        if frame.require_output_check:
            self.outdent()

    def _write_slot(self, node: nodes.Node, frame: Frame) -> None:
        value, place = self.temporary_identifier(), self._place_constant(node)
        self.writeline("try:", node)
        self.indent()
        self.writeline(f"{value} = ", node)
        self.visit(node, frame)
        self.outdent()
        self.writeline("except Exception as error:")
        self.indent()
        self.writeline(f"{value} = environment.broken_value(error, {place})")
        self.outdent()
        self.simple_write(f"Slot({value}, {place})", frame, node)

    def visit_Include(self, node: nodes.Include, frame: Frame) -> None:
        captured = self.temporary_identifier()
        self.writeline(f"{captured} = environment.include(", node)
        self.visit(node.template, frame)
        scope = f"context, {self.dump_local_context(frame)}" if node.with_context else "None, None"
        self.write(f", {scope}, {bool(node.ignore_missing)})")
        self._slot_write(captured, node, frame)

    def visit_CallBlock(self, node: nodes.CallBlock, frame: Frame) -> None:
        call_frame, macro_ref = self.macro_body(node, frame)
        self.writeline("caller = ")
        self.macro_def(macro_ref, call_frame)
        value = self.temporary_identifier()
        self.writeline(f"{value} = ", node)
        self.visit_Call(node.call, frame, forward_caller=True)
        self._slot_write(value, node, frame)

    def visit_FilterBlock(self, node: nodes.FilterBlock, frame: Frame) -> None:
        filter_frame = frame.inner()
        filter_frame.symbols.analyze_node(node)
        self.enter_frame(filter_frame)
        self.buffer(filter_frame)
        self.blockvisit(node.body, filter_frame)
        value = self.temporary_identifier()
        self.writeline(f"{value} = ", node)
        self.visit_Filter(node.filter, filter_frame)
        self._slot_write(value, node, frame)
        self.leave_frame(filter_frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("joined((")
        for arg in node.nodes:
            self.visit(arg, frame)
            self.write(", ")
        self.write("))")

    def visit_CondExpr(self, node: nodes.CondExpr, frame: Frame) -> None:
        frame = frame.soft()
        self.write("(")
        self.visit(node.expr1, frame)
        self.write(" if ")
        self.visit(node.test, frame)
        self.write(" else ")
        if node.expr2 is not None:
            self.visit(node.expr2, frame)
        else:
            self.write("OMIT")
        self.write(")")

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        """Compares operands whose size is counted. `in` fails on undefined values, which must not count as not
        found."""
        if any(operand.op in {"in", "notin"} for operand in node.ops):
            if len(node.ops) > 1:
                self.fail("`in` cannot be chained with another comparison; join two with `and`", node.lineno)
            self.write("(not contains(" if node.ops[0].op == "notin" else "(contains(")
            self.visit(node.expr, frame)
            self.write(", ")
            self.visit(node.ops[0].expr, frame)
            self.write("))")
            return
        self.write("(")
        self._visit_operand(node.expr, frame)
        for operand in node.ops:
            self.write(f" {operators[operand.op]} ")
            self._visit_operand(operand.expr, frame)
        self.write(")")

    def _visit_operand(self, node: nodes.Expr, frame: Frame) -> None:
        if isinstance(node, nodes.Const):
            self.visit(node, frame)
            return
        self.write("comparable(")
        self.visit(node, frame)
        self.write(")")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        if not isinstance(node.arg, nodes.Slice):
            self.write("field_of(" if isinstance(node.arg, nodes.Const) else "field_by_value(")
            self.visit(node.node, frame)
            self.write(", ")
            self.visit(node.arg, frame)
            self.write(")")
            return
        self.write("slice_of(")
        self.visit(node.node, frame)
        for part in (node.arg.start, node.arg.stop, node.arg.step):
            self.write(", ")
            if part is None:
                self.write("None")
            else:
                self.visit(part, frame)
        self.write(")")

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        if not isinstance(node.node, nodes.Getattr):
            super().visit_Call(node, frame, forward_caller=forward_caller)
            return
        self.write("environment.call_method(context, ")
        self.visit(node.node.node, frame)
        self.write(f", {node.node.attr!r}")
        self.signature(node, frame, {"caller": "caller"} if forward_caller else None)
        self.write(")")

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 512:
            self.fail("number too large", node.lineno)
        super().visit_Const(node, frame)
