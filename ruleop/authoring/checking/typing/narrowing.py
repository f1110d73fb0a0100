"""Facts that a condition shows about the values that it reads: inside `{% if spec.tls is defined %}`, spec.tls is
set."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.authoring.checking.typing.inference import TypeEnvironment, canonical, joined
from ruleop.authoring.checking.typing.types import CONTAINERS, Type, of_constant, truth_of
from ruleop.language.templates import Trait, filters_with, syntax
from ruleop.language.templates.declarations import declared_kinds
from ruleop.language.templates.filters.registry import TESTS
from ruleop.language.templates.syntax import chain_of

if TYPE_CHECKING:
    from ruleop.authoring.checking.typing.inference import Inference

_MAX_DEPTH: Final = 12  # of conditions joined by `and` and `or`
_SAME_TRUTH: Final = filters_with(Trait.SAME_TRUTH)
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "gteq": operator.ge, "lt": operator.lt,
    "lteq": operator.le,
}  # fmt: skip
_LEAST: Final[Mapping[str, int]] = {"gt": 1, "gteq": 0, "eq": 0, "ne": 0}
"""The items that a list has at least if its length compares so with a number, beyond that number."""
Change: TypeAlias = Callable[[Type], Type]


def truthy(value: Type) -> Type:
    """The values that count as true."""
    found = value.defined().without({"null"})
    if found.constants is not None:
        found = replace(found, constants=frozenset(each for each in found.constants if each[1]))
    if found.kinds and found.kinds <= CONTAINERS:
        found = replace(found, least=max(found.least, 1))
    return found


def falsy(value: Type) -> Type:
    """The values that count as false."""
    found = value.defined()
    if found.constants is not None:
        left = frozenset(each for each in found.constants if not each[1])
        found = replace(found, constants=left, kinds=frozenset(kind for kind, _ in left)) if left else found
    elif found.kinds == {"boolean"}:
        found = of_constant(False)
    return found


def assume(inference: Inference, node: syntax.Expr, env: TypeEnvironment, *, truth: bool) -> TypeEnvironment:
    """The environment where a condition holds, or does not."""
    if isinstance(node, syntax.Not):
        return assume(inference, node.value, env, truth=not truth)
    if isinstance(node, (syntax.And, syntax.Or)):
        both = isinstance(node, syntax.And) is truth
        if not both and _depth(node) > _MAX_DEPTH:
            return env
        first = assume(inference, node.left, env, truth=truth)
        if both:
            return assume(inference, node.right, first, truth=truth)
        second = assume(inference, node.left, env, truth=not truth)
        return joined([first, assume(inference, node.right, second, truth=truth)])
    env = env.with_truth(canonical(node), truth)
    if isinstance(node, syntax.Test):
        return _tested(inference, node, env, truth=truth)
    if isinstance(node, syntax.Compare):
        return _compared(inference, node, env, truth=truth)
    if isinstance(node, syntax.Filter):
        return _filtered(inference, node, env, truth=truth)
    return _with(inference, node, env, truthy if truth else falsy)


def _depth(node: syntax.Expr) -> int:
    """The nesting depth of `and` and `or`. Each operand is evaluated for both outcomes, so time doubles with each
    level."""
    depth = 0
    while isinstance(node, (syntax.And, syntax.Or)):
        depth += 1
        node = node.left
    return depth


def _with(inference: Inference, node: syntax.Expr, env: TypeEnvironment, change: Change) -> TypeEnvironment:
    """The environment in which the value of a chain is known better, and the mappings around it exist."""
    path = chain_of(node)
    if not path:
        return env
    env = _implied(inference, str(path[0]), env, change)
    value = inference.quiet(node, env)
    narrowed = change(value)
    env = _parents(inference, node, env)
    return env if narrowed is value else env.with_fact(path, narrowed)


def _implied(inference: Inference, name: str, env: TypeEnvironment, change: Change) -> TypeEnvironment:
    """The facts that the value of a name shows about others: a child has a value only if its `when` holds, and a let
    that is true has a true expression."""
    code = getattr(env.names.get(name), "code", None)
    implied, value = getattr(code, "implied", None), getattr(code, "value", None)
    if implied is not None and (canonical(implied), True) not in env.truths:
        env = assume(inference, implied, env, truth=True)
    if value is not None and change in (truthy, falsy) and (canonical(value), change is truthy) not in env.truths:
        env = assume(inference, value, env, truth=change is truthy)
    return env


def _parents(inference: Inference, node: syntax.Expr, env: TypeEnvironment) -> TypeEnvironment:
    """The mappings and lists around a value that exists."""
    if not isinstance(node, (syntax.Field, syntax.Item, syntax.Slice)):
        return env
    env = _parents(inference, node.of, env)
    path = chain_of(node.of)
    if not path:
        return env
    outer = inference.quiet(node.of, env)
    narrowed = outer.defined().without({"null"})
    return env if narrowed is outer or not outer.kinds else env.with_fact(path, narrowed)


def _defined(inference: Inference, node: syntax.Expr, env: TypeEnvironment) -> TypeEnvironment:
    return _with(inference, node, env, lambda value: value.defined() if value.kinds else value)


def _undefined(inference: Inference, node: syntax.Expr, env: TypeEnvironment) -> TypeEnvironment:
    path = chain_of(node)
    if len(path) < 2:
        return env
    value = inference.quiet(node, env)
    if value.undefined is None:
        return env
    gone = replace(value, kinds=frozenset(), undefined=replace(value.undefined, hint=""))
    return env.with_fact(path, gone)


def _tested(inference: Inference, node: syntax.Test, env: TypeEnvironment, *, truth: bool) -> TypeEnvironment:
    if node.name in {"defined", "undefined"}:
        is_set = (node.name == "defined") is truth
        return _defined(inference, node.value, env) if is_set else _undefined(inference, node.value, env)
    test = TESTS.get(node.name)
    if test is not None and test.compares == "eq" and node.args:
        return _equal(inference, node.value, node.args[0], env, truth=truth)
    env = _defined(inference, node.value, env)
    if test is None or not test.true_for:
        return env
    kinds = declared_kinds(test.true_for)
    return _with(inference, node.value, env, lambda value: value.only(kinds) if truth else value.without(kinds))


def _compared(inference: Inference, node: syntax.Compare, env: TypeEnvironment, *, truth: bool) -> TypeEnvironment:
    for each in (node.first, *(operand.value for operand in node.others)):
        env = _used(inference, each, env)
    if len(node.others) != 1:
        return env
    (operand,) = node.others
    env = _not_fallback(inference, node.first, operand, env, truth=truth)
    if truth and isinstance(operand.value, syntax.Const):
        env = _counted(inference, node.first, operand, env)
    if operand.operator in {"eq", "ne"}:
        holds = truth is (operand.operator == "eq")
        env = _equal(inference, node.first, operand.value, env, truth=holds)
        return _equal(inference, operand.value, node.first, env, truth=holds)
    if operand.operator in {"in", "notin"} and truth is (operand.operator == "in"):
        if isinstance(node.first, syntax.Const) and isinstance(node.first.value, str):
            member = syntax.Field(operand.value, node.first.value, site=node.site)
            return _defined(inference, member, env)
        options = inference.quiet(operand.value, env)
        constants = options.item.constants if options.item is not None else None
        if constants is not None:
            return _with(inference, node.first, env, lambda value: _limited(value, constants))
    return env


def _not_fallback(
    inference: Inference, node: syntax.Expr, operand: syntax.Operand, env: TypeEnvironment, *, truth: bool
) -> TypeEnvironment:
    """`x | default(0) > 0` can only be true if x is set: the fallback makes it false."""
    compare = _OPERATORS.get(operand.operator)
    is_default = isinstance(node, syntax.Filter) and node.name in {"default", "d"}
    if not is_default or compare is None or not isinstance(operand.value, syntax.Const):
        return env
    assert isinstance(node, syntax.Filter)
    fallback = node.args[0] if node.args else syntax.Const("", site=node.site)
    if node.value is None or not isinstance(fallback, syntax.Const):
        return env
    try:
        result = bool(compare(fallback.value, operand.value.value))
    except TypeError:
        return env
    return _defined(inference, node.value, env) if result is not truth else env


def _counted(inference: Inference, node: syntax.Expr, operand: syntax.Operand, env: TypeEnvironment) -> TypeEnvironment:
    """`x | length > 0` shows that x has items."""
    assert isinstance(operand.value, syntax.Const)
    number = operand.value.value
    is_length = isinstance(node, syntax.Filter) and node.name in {"length", "count"}
    if not is_length or not isinstance(number, int) or operand.operator not in _LEAST:
        return env
    assert isinstance(node, syntax.Filter)
    assert node.value is not None
    least = number + _LEAST[operand.operator] if operand.operator != "ne" else 1 - min(number, 1)
    return _with(inference, node.value, env, lambda value: replace(value, least=max(value.least, least)))


def _used(inference: Inference, node: syntax.Expr, env: TypeEnvironment) -> TypeEnvironment:
    """A value that was compared exists, or the comparison would have failed."""
    while isinstance(node, syntax.Filter) and node.value is not None and node.name not in {"default", "d"}:
        node = node.value
    return _defined(inference, node, env)


def _limited(value: Type, constants: frozenset[tuple[str, object]]) -> Type:
    kinds = frozenset(kind for kind, _ in constants)
    known = value.constants & constants if value.constants is not None else constants
    return replace(value.defined(), kinds=value.kinds & kinds or kinds, constants=known or constants)


def _equal(
    inference: Inference, node: syntax.Expr, other: syntax.Expr, env: TypeEnvironment, *, truth: bool
) -> TypeEnvironment:
    constants = inference.quiet(other, env).constants
    if constants is None or len(constants) != 1:
        return env
    if truth:
        return _with(inference, node, env, lambda value: _limited(value, constants))
    if any(kind == "null" for kind, _ in constants):
        return _with(inference, node, env, lambda value: value.without({"null"}))
    return _with(inference, node, env, lambda value: _excluded(value, constants))


def _excluded(value: Type, constants: frozenset[tuple[str, object]]) -> Type:
    if value.constants is None or not value.constants - constants:
        return value
    return replace(value, constants=value.constants - constants)


def _filtered(inference: Inference, node: syntax.Filter, env: TypeEnvironment, *, truth: bool) -> TypeEnvironment:
    """`x | default(false)` is true only if x is set and true."""
    if node.value is None:
        return env
    if node.name in {"default", "d"}:
        fallback = inference.quiet(node.args[0], env) if node.args else of_constant("")
        is_false = truth_of(fallback) is False or (fallback.kinds <= {"list", "mapping"} and _is_empty(fallback))
        if truth and is_false:
            return assume(inference, node.value, env, truth=True)
        return env
    if node.name in _SAME_TRUTH and truth:
        return assume(inference, node.value, env, truth=True)
    return _used(inference, node.value, env)


def _is_empty(value: Type) -> bool:
    return value.elements == () or (value.fields is not None and not value.fields and value.values is None)


def is_certain(inference: Inference, node: syntax.Expr, env: TypeEnvironment) -> bool:
    """Whether a condition holds for sure, by what is known here."""
    if isinstance(node, syntax.And):
        return is_certain(inference, node.left, env) and is_certain(inference, node.right, env)
    if isinstance(node, syntax.Or):
        return is_certain(inference, node.left, env) or is_certain(inference, node.right, env)
    if isinstance(node, syntax.Not) and (canonical(node.value), False) in env.truths:
        return True
    return (canonical(node), True) in env.truths or truth_of(inference.quiet(node, env)) is True
