"""Infers the types of expressions over Jinja's nodes, and reports what cannot work.

A value is *used* where its absence fails: printed, compared, tested for truth, looped over, given to a filter. Only
`default`, `required` and the test `defined` look at a value without using it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.checking.typing import narrowing, operators
from ruleop.checking.typing.calls import infer_call, infer_filter, infer_test
from ruleop.checking.typing.constant_operands import constant_operands, is_membership
from ruleop.checking.typing.environments import Environment, chain_of, text_of
from ruleop.checking.typing.filters import members_of
from ruleop.checking.typing.lookups import Lookup, Problem, field
from ruleop.checking.typing.messages import NO_SPEC, last_name, missing_message
from ruleop.checking.typing.types import (
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
from ruleop.errors import Site
from ruleop.rules.checks.names import FUNCTION_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from ruleop.checking.typing.report import Report, Source
    from ruleop.rules.check_ids import Code

_STEP_CODES: Final[tuple[Code, ...]] = ("unknown-field", "type-mismatch")
_COMPARE_CODES: Final[tuple[Code, ...]] = ("type-mismatch", "constant-condition")


@dataclass(frozen=True, slots=True)
class Let:
    """A name whose type depends on what is known where it is used: a let, or a child with `when`."""

    infer: Callable[[Environment], Type] | None = None
    value: nodes.Node | None = None  # the expression of a let that is a single slot
    implied: nodes.Node | None = None  # the condition under which there is a value


class Inference:
    """Infers the types of expressions. `statements` runs the bodies of macros and included files."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.source: Source
        self.run_macro: Callable[[Any, Any, Environment], Type] = lambda *_: STRING
        self.run_file: Callable[[str, Environment], Environment] = lambda _, env: env
        self.base: Environment = Environment()  # the names of the rule, which `render` sees
        self.kind_site = Site("")  # of the watched kind
        self.defers_missing = False  # in a let: the place that uses it reports a missing value
        self.defer_level = 0
        self.missed: Undefined | None = None
        self._lets: dict[tuple[int, int, int], tuple[Type, Environment, Type]] = {}
        self._constants: dict[int, nodes.Node] = {}  # those that are reported, kept so that their ids stay unique

    @contextmanager
    def within(self, source: Source) -> Iterator[None]:
        outer, self.source = self.source if hasattr(self, "source") else source, source
        try:
            yield
        finally:
            self.source = outer

    def quiet(self, node: nodes.Node, env: Environment) -> Type:
        with self.report.silence():
            return self.infer(node, env)

    # -- findings ------------------------------------------------------------------------------------------------------

    def problem(self, code: Code, message: str, node: nodes.Node, *words: str, warn: bool = False) -> None:
        if code == "unknown-field" or not self.report.is_silent:
            self.report.add(code, message, self.source, node.lineno, *words, warn=warn)

    def use(self, value: Type, node: nodes.Node, *, omits: bool = False) -> Type:
        """The value where it is needed. `omits`: it may be `omit`."""
        undefined = value.undefined
        if undefined is None or undefined.waits or undefined.reason == "unset":
            return value.defined()
        if undefined.reason == "omit" and omits:
            return value.defined()
        if self.defers_missing and undefined.reason != "unknown":
            if self.report.level == self.defer_level:  # not in a part that is read silently
                self.missed = self.missed or undefined
            return value.defined()
        if undefined.reason == "unknown":
            if undefined.hint:
                self.problem("unknown-field", undefined.hint, node, undefined.path, last_name(undefined.path))
            return UNKNOWN if not value.kinds else value.defined()
        if undefined.reason == "no-spec":
            self.report.at("maybe-missing", NO_SPEC, self.kind_site, warn=True)
            return value.defined()
        message = missing_message(undefined, text_of(node), certain=not value.kinds)
        words = (text_of(node), undefined.path, last_name(undefined.path))
        self.problem("maybe-missing", message, node, *words, warn=bool(value.kinds))
        return value.defined() if value.kinds else UNKNOWN

    def used(self, node: nodes.Node, env: Environment) -> Type:
        return self.use(self.infer(node, env), node)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def infer(self, node: nodes.Node, env: Environment) -> Type:
        path = chain_of(node) if isinstance(node, (nodes.Getattr, nodes.Getitem)) else None
        if path is not None and path in env.facts:
            return env.facts[path]
        visit = _EXPRESSIONS.get(type(node))
        if visit is None:
            for child in node.iter_child_nodes():
                self.infer(child, env)
            return UNKNOWN
        return visit(self, node, env)

    def of_name(self, node: nodes.Name, env: Environment) -> Type:
        if (node.name,) in env.facts:
            return env.facts[(node.name,)]
        found = env.names.get(node.name)
        if found is None and node.name in FUNCTION_NAMES:
            instead = "write metadata.namespace" if node.name == "namespace" else f"call it: `{node.name}(...)`"
            self.problem("type-mismatch", f"`{node.name}` is a function here, not data: {instead}", node, node.name)
        if found is None:
            return missing(Undefined("omit")) if node.name == "omit" else UNKNOWN
        if isinstance(found.code, Let) and found.code.infer is not None and (env.facts or env.truths):
            return self._let(found, env)
        return found

    def _let(self, found: Type, env: Environment) -> Type:
        """The type of a let where it is used: with what is known there of the fields that it reads."""
        key = (id(found), id(env.facts), id(env.truths))
        if key not in self._lets:
            self._lets[key] = (found, env, found.code.infer(env))
        return self._lets[key][2]

    def of_constant(self, node: nodes.Const, _env: Environment) -> Type:
        return of_constant(node.value)

    def of_field(self, node: nodes.Getattr, env: Environment) -> Type:
        return self._step(node, self.infer(node.node, env), node.attr)

    def _step(self, node: nodes.Getattr | nodes.Getitem, base: Type, key: object) -> Type:
        if base.code == MODULE and base.fields is not None:
            return base.fields.get(str(key), UNKNOWN)
        found = field(base, key)
        self.report_step(node, found, text_of(node))
        return found.type

    def report_step(self, node: nodes.Node, found: Lookup, *words: str) -> None:
        problem = found.problem
        for code in _STEP_CODES:
            self.report.visit(node, code)
        if problem is None:
            return
        last = words[0].rpartition(".")[2] if words and words[0] else ""
        self.report.add_if_always(node, problem.code, problem.message, self.source, node.lineno, *words, last)

    def of_item(self, node: nodes.Getitem, env: Environment) -> Type:
        base = self.infer(node.node, env)
        if isinstance(node.arg, nodes.Slice):
            for bound in node.arg.iter_child_nodes():
                self.used(bound, env)
            sliced = self.use(base, node.node)
            return sliced.only({"list", "string"}) if "list" not in sliced.kinds else list_of(item_of(sliced))
        if isinstance(node.arg, nodes.Const):
            return self._step(node, base, node.arg.value)
        key = self.used(node.arg, env)
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

    def of_list(self, node: nodes.List | nodes.Tuple, env: Environment) -> Type:
        items = [self.use(self.infer(each, env), each, omits=True) for each in node.items]
        return replace(list_of(join(items) if items else None, least=len(items)), elements=tuple(items))

    def of_dict(self, node: nodes.Dict, env: Environment) -> Type:
        fields: dict[str, Type] = {}
        is_open = False
        for pair in node.items:
            value = self.use(self.infer(pair.value, env), pair.value, omits=True)
            key = self.used(pair.key, env)
            if isinstance(pair.key, nodes.Const):
                fields[str(pair.key.value)] = value
            else:
                is_open = is_open or bool(key)
        return Type(frozenset({"mapping"})) if is_open else mapping_of(fields)

    def of_condition(self, node: nodes.CondExpr, env: Environment) -> Type:
        truth = self.condition(node.test, env)
        branches: list[Type] = []
        if truth is not False:
            branches.append(self.infer(node.expr1, narrowing.assume(self, node.test, env, truth=True)))
        if truth is not True:
            inner = narrowing.assume(self, node.test, env, truth=False)
            branches.append(self.infer(node.expr2, inner) if node.expr2 is not None else missing(Undefined("omit")))
        return join(branches)

    def condition(self, node: nodes.Node, env: Environment) -> bool | None:
        """Whether a condition holds; None if that depends on the values."""
        self.report_constants(node)
        value = self.used(node, env)
        truth = truth_of(value)
        if isinstance(node, (nodes.Getattr, nodes.Getitem, nodes.Filter)):
            self.report.visit(node, "constant-condition")
            if truth is not None:
                members = sorted(str(each) for _, each in value.constants or ())
                what = text_of(node) or "this value"
                why = f"{what} is one of {', '.join(members)}" if len(members) > 1 else f"{what} is {members[0]}"
                self.report_always(node, truth, f"{why}; compare it with == or !=")
        return truth

    def of_and(self, node: nodes.And, env: Environment) -> Type:
        left = self.used(node.left, env)
        if truth_of(left) is False:
            return left
        right = self.infer(node.right, narrowing.assume(self, node.left, env, truth=True))
        return right if truth_of(left) is True else join((narrowing.falsy(left), self.use(right, node.right)))

    def of_or(self, node: nodes.Or, env: Environment) -> Type:
        if is_membership(node):
            self.report_constants(node)
        left = self.used(node.left, env)
        if truth_of(left) is True:
            return left
        right = self.infer(node.right, narrowing.assume(self, node.left, env, truth=False))
        return right if truth_of(left) is False else join((narrowing.truthy(left), right))

    def of_not(self, node: nodes.Not, env: Environment) -> Type:
        truth = self.condition(node.node, env)
        return BOOLEAN if truth is None else of_constant(not truth)

    def of_operation(self, node: nodes.BinExpr, env: Environment) -> Type:
        left, right = self.used(node.left, env), self.used(node.right, env)
        outcome = operators.arithmetic(node.operator, left, right)
        self._report_outcome(outcome.problem, node, warn=outcome.is_possible)
        return outcome.type

    def of_sign(self, node: nodes.UnaryExpr, env: Environment) -> Type:
        value = self.used(node.node, env)
        return value.only({"integer", "number", "boolean"}) if value.kinds & {"integer", "number"} else UNKNOWN

    def of_concat(self, node: nodes.Concat, env: Environment) -> Type:
        for each in node.nodes:
            value = self.used(each, env)
            if value.is_known and value.kinds and value.kinds <= CONTAINERS:
                message = f"{text_of(each) or 'this'} is {describe(value.kinds)}, which cannot be a part of text"
                self.problem("type-mismatch", message, each, text_of(each), "~")
        return STRING

    def of_compare(self, node: nodes.Compare, env: Environment) -> Type:
        left, left_node = self.used(node.expr, env), node.expr
        results: list[bool | None] = []
        for operand in node.ops:
            right = self.used(operand.expr, env)
            results.append(self.compare(operand.op, (left, left_node), (right, operand.expr), node))
            left, left_node = right, operand.expr
        if len(results) == 1 and results[0] is not None:
            return of_constant(results[0])
        return BOOLEAN

    def compare(
        self, op: str, left: tuple[Type, nodes.Node], right: tuple[Type, nodes.Node], node: nodes.Node
    ) -> bool | None:
        """The result of a comparison, if it is the same for all values."""
        for each in _COMPARE_CODES:
            self.report.visit(node, each)
        outcome = operators.comparison(op, left[0], right[0], (text_of(left[1]), text_of(right[1])))
        if outcome.problem is not None:
            code, message = outcome.problem
            words = (text_of(left[1]), text_of(right[1]))
            warn = outcome.is_possible or code != "type-mismatch"
            self.report.add_if_always(node, code, message, self.source, node.lineno, *words, warn=warn)
        return outcome.truth

    def _report_outcome(self, problem: Problem | None, node: nodes.BinExpr, *, warn: bool) -> None:
        if problem is not None:
            words = (text_of(node.left), text_of(node.right), node.operator)
            self.problem(problem.code, problem.message, node, *words, warn=warn)

    def report_constants(self, condition: nodes.Node, *, allowed: Container[Any] = ()) -> None:
        """Reports constants that are tested for truth."""
        for each in constant_operands(condition) if not self.report.is_silent else ():
            if each.node.value not in allowed and id(each.node) not in self._constants:
                self._constants[id(each.node)] = each.node  # the inner `or` of `a == 1 or 2 or 3` has it again
                self.problem("constant-condition", each.message, each.node, *each.words, warn=True)

    def report_always(self, node: nodes.Node, truth: bool, why: str) -> None:
        message = f"this is always {str(truth).lower()}: {why}"
        words = text_of(node.node) if isinstance(node, (nodes.Test, nodes.Filter)) else text_of(node)
        self.report.add_if_always(node, "constant-condition", message, self.source, node.lineno, words, warn=True)


_EXPRESSIONS: dict[type[nodes.Node], Callable[[Inference, Any, Environment], Type]] = {
    nodes.Name: Inference.of_name,
    nodes.Const: Inference.of_constant,
    nodes.TemplateData: lambda *_: STRING,
    nodes.Getattr: Inference.of_field,
    nodes.Getitem: Inference.of_item,
    nodes.List: Inference.of_list,
    nodes.Tuple: Inference.of_list,
    nodes.Dict: Inference.of_dict,
    nodes.CondExpr: Inference.of_condition,
    nodes.And: Inference.of_and,
    nodes.Or: Inference.of_or,
    nodes.Not: Inference.of_not,
    **dict.fromkeys(
        (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow), Inference.of_operation
    ),
    nodes.Neg: Inference.of_sign,
    nodes.Pos: Inference.of_sign,
    nodes.Concat: Inference.of_concat,
    nodes.Compare: Inference.of_compare,
    nodes.Filter: infer_filter,
    nodes.Test: infer_test,
    nodes.Call: infer_call,
}
