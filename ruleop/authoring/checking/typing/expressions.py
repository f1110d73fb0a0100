"""Infers the types of expressions, by the class of their node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jinja2 import nodes

from ruleop.authoring.checking.typing import narrowing, operator_types
from ruleop.authoring.checking.typing.calls import infer_call, infer_filter, infer_test
from ruleop.authoring.checking.typing.constant_operands import is_membership
from ruleop.authoring.checking.typing.environments import Environment, text_of
from ruleop.authoring.checking.typing.filters import members_of
from ruleop.authoring.checking.typing.inference import Let
from ruleop.authoring.checking.typing.lookups import Problem, field
from ruleop.authoring.checking.typing.types import (
    BOOLEAN,
    CONTAINERS,
    MODULE,
    STRING,
    UNKNOWN,
    Type,
    Undefined,
    describe,
    item_of,
    join,
    list_of,
    mapping_of,
    missing,
    of_constant,
    truth_of,
)
from ruleop.core.rules.checks.read_names import FUNCTION_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.authoring.checking.typing.inference import Inference, Visit


def infer_name(inference: Inference, node: nodes.Name, env: Environment) -> Type:
    if (node.name,) in env.facts:
        return env.facts[(node.name,)]
    found = env.names.get(node.name)
    if found is None and node.name in FUNCTION_NAMES:
        instead = "write metadata.namespace" if node.name == "namespace" else f"call it: `{node.name}(...)`"
        inference.problem("type-mismatch", f"`{node.name}` is a function here, not data: {instead}", node, node.name)
    if found is None:
        return missing(Undefined("omit")) if node.name == "omit" else UNKNOWN
    if isinstance(found.code, Let) and found.code.infer is not None and (env.facts or env.truths):
        return _let(inference, found, env)
    return found


def _let(inference: Inference, found: Type, env: Environment) -> Type:
    """The type of a let where it is used: with what is known there of the fields that it reads."""
    key = (id(found), id(env.facts), id(env.truths))
    if key not in inference.lets:
        inference.lets[key] = (found, env, found.code.infer(env))
    return inference.lets[key][2]


def infer_constant(_inference: Inference, node: nodes.Const, _env: Environment) -> Type:
    return of_constant(node.value)


def infer_field(inference: Inference, node: nodes.Getattr, env: Environment) -> Type:
    return _step(inference, node, inference.infer(node.node, env), node.attr)


def _step(inference: Inference, node: nodes.Getattr | nodes.Getitem, base: Type, key: object) -> Type:
    if base.code == MODULE and base.fields is not None:
        return base.fields.get(str(key), UNKNOWN)
    found = field(base, key)
    inference.report_step(node, found, text_of(node))
    return found.type


def infer_item(inference: Inference, node: nodes.Getitem, env: Environment) -> Type:
    base = inference.infer(node.node, env)
    if isinstance(node.arg, nodes.Slice):
        for bound in node.arg.iter_child_nodes():
            inference.used(bound, env)
        sliced = inference.use(base, node.node)
        return sliced.only({"list", "string"}) if "list" not in sliced.kinds else list_of(item_of(sliced))
    if isinstance(node.arg, nodes.Const):
        return _step(inference, node, base, node.arg.value)
    key = inference.used(node.arg, env)
    if base.is_missing:
        return base
    if "mapping" in base.kinds and key.constants and len(key.constants) == 1:
        ((_, constant),) = key.constants
        return field(base, constant).type
    found: list[Type] = []
    if "mapping" in base.kinds:
        found.append(members_of(base))
    if "list" in base.kinds:
        found.append(item_of(base))
    return join(found).maybe(base.undefined) if found else UNKNOWN


def infer_list(inference: Inference, node: nodes.List | nodes.Tuple, env: Environment) -> Type:
    items = [inference.use(inference.infer(each, env), each, omits=True) for each in node.items]
    return replace(list_of(join(items) if items else None, least=len(items)), elements=tuple(items))


def infer_dict(inference: Inference, node: nodes.Dict, env: Environment) -> Type:
    fields: dict[str, Type] = {}
    is_open = False
    for pair in node.items:
        value = inference.use(inference.infer(pair.value, env), pair.value, omits=True)
        key = inference.used(pair.key, env)
        if isinstance(pair.key, nodes.Const):
            fields[str(pair.key.value)] = value
        else:
            is_open = is_open or bool(key)
    return Type(frozenset({"mapping"})) if is_open else mapping_of(fields)


def infer_condition(inference: Inference, node: nodes.CondExpr, env: Environment) -> Type:
    truth = inference.condition(node.test, env)
    branches: list[Type] = []
    if truth is not False:
        branches.append(inference.infer(node.expr1, narrowing.assume(inference, node.test, env, truth=True)))
    if truth is not True:
        inner = narrowing.assume(inference, node.test, env, truth=False)
        branches.append(inference.infer(node.expr2, inner) if node.expr2 is not None else missing(Undefined("omit")))
    return join(branches)


def infer_and(inference: Inference, node: nodes.And, env: Environment) -> Type:
    left = inference.used(node.left, env)
    if truth_of(left) is False:
        return left
    right = inference.infer(node.right, narrowing.assume(inference, node.left, env, truth=True))
    return right if truth_of(left) is True else join((narrowing.falsy(left), inference.use(right, node.right)))


def infer_or(inference: Inference, node: nodes.Or, env: Environment) -> Type:
    if is_membership(node):
        inference.report_constants(node)
    left = inference.used(node.left, env)
    if truth_of(left) is True:
        return left
    right = inference.infer(node.right, narrowing.assume(inference, node.left, env, truth=False))
    return right if truth_of(left) is False else join((narrowing.truthy(left), right))


def infer_not(inference: Inference, node: nodes.Not, env: Environment) -> Type:
    truth = inference.condition(node.node, env)
    return BOOLEAN if truth is None else of_constant(not truth)


def infer_operation(inference: Inference, node: nodes.BinExpr, env: Environment) -> Type:
    left, right = inference.used(node.left, env), inference.used(node.right, env)
    outcome = operator_types.arithmetic(node.operator, left, right)
    _report_outcome(inference, outcome.problem, node, warn=outcome.is_possible)
    return outcome.type


def infer_sign(inference: Inference, node: nodes.UnaryExpr, env: Environment) -> Type:
    value = inference.used(node.node, env)
    return value.only({"integer", "number", "boolean"}) if value.kinds & {"integer", "number"} else UNKNOWN


def infer_concat(inference: Inference, node: nodes.Concat, env: Environment) -> Type:
    for each in node.nodes:
        value = inference.used(each, env)
        if value.is_known and value.kinds and value.kinds <= CONTAINERS:
            message = f"{text_of(each) or 'this'} is {describe(value.kinds)}, which cannot be a part of text"
            inference.problem("type-mismatch", message, each, text_of(each), "~")
    return STRING


def infer_compare(inference: Inference, node: nodes.Compare, env: Environment) -> Type:
    left, left_node = inference.used(node.expr, env), node.expr
    results: list[bool | None] = []
    for operand in node.ops:
        right = inference.used(operand.expr, env)
        results.append(inference.compare(operand.op, (left, left_node), (right, operand.expr), node))
        left, left_node = right, operand.expr
    if len(results) == 1 and results[0] is not None:
        return of_constant(results[0])
    return BOOLEAN


def _report_outcome(inference: Inference, problem: Problem | None, node: nodes.BinExpr, *, warn: bool) -> None:
    if problem is not None:
        words = (text_of(node.left), text_of(node.right), node.operator)
        inference.problem(problem.code, problem.message, node, *words, warn=warn)


EXPRESSIONS: Final[Mapping[type[nodes.Node], Visit]] = {
    nodes.Name: infer_name,
    nodes.Const: infer_constant,
    nodes.TemplateData: lambda *_: STRING,
    nodes.Getattr: infer_field,
    nodes.Getitem: infer_item,
    nodes.List: infer_list,
    nodes.Tuple: infer_list,
    nodes.Dict: infer_dict,
    nodes.CondExpr: infer_condition,
    nodes.And: infer_and,
    nodes.Or: infer_or,
    nodes.Not: infer_not,
    **dict.fromkeys(
        (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow), infer_operation
    ),
    nodes.Neg: infer_sign,
    nodes.Pos: infer_sign,
    nodes.Concat: infer_concat,
    nodes.Compare: infer_compare,
    nodes.Filter: infer_filter,
    nodes.Test: infer_test,
    nodes.Call: infer_call,
}
