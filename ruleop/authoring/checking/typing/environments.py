"""The environment of a place in a template: the types of names, and the facts that conditions around it have shown.

Text and numbers count as true or false by themselves, so a constant operand of `and` and `or` in a condition decides
nothing, or everything: `spec.size == 'small' or 'medium'` always holds. As values they are fine:
`{{ spec.image or 'nginx' }}` is a fallback.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ruleop.authoring.checking.typing.types import UNKNOWN, Type, join
from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Path: TypeAlias = tuple[object, ...]
"""A chain of fields from a name: ("spec", "tls", "secret")."""


@dataclass(frozen=True, slots=True)
class TypeEnvironment:
    names: Mapping[str, Type] = field(default_factory=dict)
    facts: Mapping[Path, Type] = field(default_factory=dict)
    """Types that are narrower than those of the schema: inside `{% if spec.tls is defined %}`."""
    truths: frozenset[tuple[str, bool]] = frozenset()
    """Conditions that are known to hold, or not to."""

    def with_names(self, names: Mapping[str, Type]) -> TypeEnvironment:
        """Names that are set here hide what was known of outer ones."""
        if not names:
            return self
        facts = self.facts
        if any(path[0] in names for path in facts):
            facts = {path: each for path, each in facts.items() if path[0] not in names}
        truths = self.truths
        if truths and any(name in text for text, _ in truths for name in names):
            truths = frozenset(each for each in truths if not any(name in each[0] for name in names))
        return TypeEnvironment({**self.names, **names}, facts, truths)

    def with_fact(self, path: Path, narrowed: Type) -> TypeEnvironment:
        kept = {known: each for known, each in self.facts.items() if known[: len(path)] != path or known == path}
        return replace(self, facts={**kept, path: narrowed})

    def with_truth(self, text: str, truth: bool) -> TypeEnvironment:
        return replace(self, truths=self.truths | {(text, truth)})


def joined(environments: Iterable[TypeEnvironment]) -> TypeEnvironment:
    """The environment after branches: only the facts that hold after all of them."""
    all_of = list(environments)
    if not all_of:
        return TypeEnvironment()
    first, *rest = all_of
    if not rest:
        return first
    names = dict(first.names)
    for other in rest:
        for name in names.keys() | other.names.keys():
            mine, theirs = names.get(name), other.names.get(name)
            if mine is not theirs:
                names[name] = join((mine, theirs)) if mine is not None and theirs is not None else UNKNOWN
    facts = {
        path: join(each.facts[path] for each in all_of)
        for path in first.facts
        if all(path in each.facts for each in rest)
    }
    truths = first.truths.intersection(*(each.truths for each in rest))
    return TypeEnvironment(names, facts, truths)


def canonical(node: syntax.Node) -> str:
    """A text that is equal for equal expressions."""
    return repr(node)


_MEMBERSHIP: Final[dict[tuple[type[syntax.Node], str], str]] = {(syntax.Or, "eq"): "in", (syntax.And, "ne"): "not in"}
"""The spelling of a comparison with several constants, by what joins them."""


class ConstantOperand(NamedTuple):
    node: syntax.Const
    message: str
    words: tuple[str, ...]  # as it may be written


def constant_operands(condition: syntax.Node) -> Iterator[ConstantOperand]:
    """The constants in a condition that is tested for truth."""
    if isinstance(condition, syntax.Not):
        yield from constant_operands(condition.value)
    elif isinstance(condition, (syntax.And, syntax.Or)):
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


def is_membership(node: syntax.Or) -> bool:
    """Whether a value is probably meant as a test of membership: it is a comparison or a constant."""
    return bool(_comparison_with_all(list(_operands(node, syntax.Or)), syntax.Or))


def _operands(node: syntax.Node, kind: type[syntax.Node]) -> Iterator[syntax.Node]:
    """The operands of a chain of the same operator."""
    if isinstance(node, (syntax.And, syntax.Or)) and type(node) is kind:
        yield from _operands(node.left, kind)
        yield from _operands(node.right, kind)
    else:
        yield node


def _comparison_with_all(operands: list[syntax.Node], kind: type[syntax.Node]) -> str:
    """The comparison that a chain probably stands for: `a in ['x', 'y']` for `a == 'x' or 'y'`; "" if there is none."""
    first, *others = operands
    if (
        not others
        or not all(map(_is_scalar, others))
        or not isinstance(first, syntax.Compare)
        or len(first.others) != 1
    ):
        return ""
    (operand,) = first.others
    word, compared = _MEMBERSHIP.get((kind, operand.operator)), source_of(first.first)
    if word is None or not compared or not _is_scalar(operand.value):
        return ""
    return f"{compared} {word} {[each.value for each in (operand.value, *others) if isinstance(each, syntax.Const)]}"


def _is_scalar(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Const) and isinstance(node.value, (str, int, float)) and type(node.value) is not bool


def _is_text(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Const) and isinstance(node.value, str)


def _finding(node: Any, what_to_do: str) -> ConstantOperand:
    noun = "text" if _is_text(node) else "a number"
    message = f"{node.value!r} is {noun}, which always counts as {str(bool(node.value)).lower()}: {what_to_do}"
    words = (f"'{node.value}'", f'"{node.value}"') if _is_text(node) else (str(node.value),)
    return ConstantOperand(node, message, words)
