"""Constants where a condition is tested for truth: `spec.size == 'small' or 'medium'` always holds.

Text and numbers count as true or false by themselves, so an operand of `and` and `or` that is one decides nothing, or
everything. As values they are fine: `{{ spec.image or 'nginx' }}` is a fallback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jinja2 import nodes

from ruleop.authoring.checking.typing.environments import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMBERSHIP: Final[dict[tuple[type[nodes.Node], str], str]] = {(nodes.Or, "eq"): "in", (nodes.And, "ne"): "not in"}
"""The spelling of a comparison with several constants, by what joins them."""


class ConstantOperand(NamedTuple):
    node: nodes.Const
    message: str
    words: tuple[str, ...]  # as it may be written


def constant_operands(condition: nodes.Node) -> Iterator[ConstantOperand]:
    """The constants in a condition that is tested for truth."""
    if isinstance(condition, nodes.Not):
        yield from constant_operands(condition.node)
    elif isinstance(condition, (nodes.And, nodes.Or)):
        operands = list(_operands(condition, type(condition)))
        constants = [each for each in operands if _is_scalar(each)]
        if meant := _comparison_with_all(operands, type(condition)):
            yield _finding(constants[0], f"write `{meant}`")
        else:
            yield from (_finding(each, "compare a field with it, or remove it") for each in constants)
        for each in operands:
            if not _is_scalar(each):
                yield from constant_operands(each)
    elif _is_scalar(condition):
        yield _finding(condition, "remove the quotes if it is an expression" if _is_text(condition) else "remove it")


def is_membership(node: nodes.Or) -> bool:
    """Whether a value is probably meant as a test of membership: it is a comparison or a constant."""
    return bool(_comparison_with_all(list(_operands(node, nodes.Or)), nodes.Or))


def _operands(node: nodes.Node, kind: type[nodes.Node]) -> Iterator[nodes.Node]:
    """The operands of a chain of the same operator."""
    if isinstance(node, (nodes.And, nodes.Or)) and type(node) is kind:
        yield from _operands(node.left, kind)
        yield from _operands(node.right, kind)
    else:
        yield node


def _comparison_with_all(operands: list[nodes.Node], kind: type[nodes.Node]) -> str:
    """The comparison that a chain probably stands for: `a in ['x', 'y']` for `a == 'x' or 'y'`; "" if there is none."""
    first, *others = operands
    if not others or not all(map(_is_scalar, others)) or not isinstance(first, nodes.Compare) or len(first.ops) != 1:
        return ""
    (operand,) = first.ops
    word, compared = _MEMBERSHIP.get((kind, operand.op)), text_of(first.expr)
    if word is None or not compared or not _is_scalar(operand.expr):
        return ""
    return f"{compared} {word} {[each.value for each in (operand.expr, *others) if isinstance(each, nodes.Const)]}"


def _is_scalar(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, (str, int, float)) and type(node.value) is not bool


def _is_text(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, str)


def _finding(node: Any, what_to_do: str) -> ConstantOperand:
    noun = "text" if _is_text(node) else "a number"
    message = f"{node.value!r} is {noun}, which always counts as {str(bool(node.value)).lower()}: {what_to_do}"
    words = (f"'{node.value}'", f'"{node.value}"') if _is_text(node) else (str(node.value),)
    return ConstantOperand(node, message, words)
