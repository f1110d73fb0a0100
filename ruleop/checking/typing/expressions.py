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
from ruleop.checking.typing.environments import Environment, chain_of, text_of
from ruleop.checking.typing.filters import FILTERS, FUNCTIONS, TESTS, Applied, members_of, method_of
from ruleop.checking.typing.lookups import Lookup, Problem, below, field
from ruleop.checking.typing.types import (
    BOOLEAN,
    CONTAINERS,
    NULL,
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.checking.typing.report import Report, Source
    from ruleop.rules.check_ids import Code

_LOOKS_AT_MISSING: Final = frozenset({"default", "d", "required"})
_STEP_CODES: Final[tuple[Code, ...]] = ("unknown-field", "type-mismatch")
_COMPARE_CODES: Final[tuple[Code, ...]] = ("type-mismatch", "constant-condition")
_NO_SPEC: Final = (
    "the CRD does not require `spec`, so a custom resource without it fails: add `required: [spec]` to its schema"
)
MODULE: Final = "module"
"""The `code` of an imported file, whose fields are its macros."""


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
        self.missed: Undefined | None = None
        self._lets: dict[tuple[int, int, int], tuple[Type, Environment, Type]] = {}

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
            if not self.report.is_silent:
                self.missed = self.missed or undefined
            return value.defined()
        if undefined.reason == "unknown":
            if undefined.hint:
                self.problem("unknown-field", undefined.hint, node, undefined.path, _last(undefined.path))
            return UNKNOWN if not value.kinds else value.defined()
        if undefined.reason == "no-spec":
            self.report.at("maybe-missing", _NO_SPEC, self.kind_site, warn=True)
            return value.defined()
        message = _missing_message(undefined, text_of(node), certain=not value.kinds)
        self.problem(
            "maybe-missing", message, node, text_of(node), undefined.path, _last(undefined.path), warn=bool(value.kinds)
        )
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
        self._report_step(node, found, text_of(node))
        return found.type

    def _report_step(self, node: nodes.Node, found: Lookup, *words: str) -> None:
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
        value = self.used(node, env)
        truth = truth_of(value)
        if isinstance(node, (nodes.Getattr, nodes.Getitem, nodes.Filter)):
            self.report.visit(node, "constant-condition")
            if truth is not None:
                members = sorted(str(each) for _, each in value.constants or ())
                what = text_of(node) or "this value"
                why = f"{what} is one of {', '.join(members)}" if len(members) > 1 else f"{what} is {members[0]}"
                self._report_always(node, truth, f"{why}; compare it with == or !=")
        return truth

    def of_and(self, node: nodes.And, env: Environment) -> Type:
        left = self.used(node.left, env)
        if truth_of(left) is False:
            return left
        right = self.infer(node.right, narrowing.assume(self, node.left, env, truth=True))
        return right if truth_of(left) is True else join((narrowing.falsy(left), self.use(right, node.right)))

    def of_or(self, node: nodes.Or, env: Environment) -> Type:
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

    # -- filters, tests and calls --------------------------------------------------------------------------------------

    def of_filter(self, node: nodes.Filter, env: Environment) -> Type:
        if node.node is None:
            return STRING
        value = self.infer(node.node, env)
        keeps_missing = node.name in _LOOKS_AT_MISSING
        if not keeps_missing:
            value = self.use(value, node.node)
        value, waits = (value, None) if keeps_missing else (value.defined(), value.undefined)
        args = tuple(self._argument(each, env, keeps=keeps_missing) for each in node.args)
        kwargs = {str(each.key): self._argument(each.value, env, keeps=keeps_missing) for each in node.kwargs}
        for more in (node.dyn_args, node.dyn_kwargs):
            if more is not None:
                self.used(more, env)
        result = self._apply(node, value, args, kwargs)
        return result.maybe(waits)

    def _argument(self, node: nodes.Node, env: Environment, *, keeps: bool) -> Type:
        found = self.infer(node, env)
        return found if keeps else self.use(found, node, omits=True)

    def _apply(self, node: nodes.Filter, value: Type, args: tuple[Type, ...], kwargs: dict[str, Type]) -> Type:
        row = FILTERS.get(node.name)
        if row is None:
            return UNKNOWN
        self._check_input(node, value, row.takes)

        def attribute(item: Type, name: str) -> Lookup:
            found = below(item, name)
            if found.problem is not None:
                problem = found.problem
                self.report.add(problem.code, problem.message, self.source, node.lineno, name)
            return found

        def apply(name: str, item: Type) -> Type:
            other = FILTERS.get(name)
            inner = nodes.Filter(None, name, node.args[1:], [], None, None, lineno=node.lineno)
            if other is None:
                return UNKNOWN
            return other.gives(Applied(item, args[1:], {}, inner, attribute, apply))

        return row.gives(Applied(value, args, kwargs, node, attribute, apply))

    def _check_input(self, node: nodes.Filter, value: Type, takes: frozenset[str] | None) -> None:
        if takes is None or not value.is_known or not value.kinds or value.kinds <= takes:
            return
        what = text_of(node.node) or "this value"
        wrong = value.kinds - takes
        possible = bool(value.kinds & takes)
        may_be = "may be" if possible else "is"
        message = f"{what} {may_be} {describe(wrong)}, and {node.name} takes {describe(takes - {'null'})}"
        self.problem("type-mismatch", message, node, text_of(node.node), node.name, warn=possible)

    def of_test(self, node: nodes.Test, env: Environment) -> Type:
        value = self.infer(node.node, env)
        for each in node.args:
            self.used(each, env)
        if node.name in {"defined", "undefined"}:
            return self._defined(node, value)
        value = self.use(value, node.node)
        truth = self._tested(node, value, env)
        return BOOLEAN if truth is None else of_constant(truth)

    def _defined(self, node: nodes.Test, value: Type) -> Type:
        self.report.visit(node, "constant-condition")
        undefined = value.undefined
        if undefined is not None and undefined.reason == "unset":
            return BOOLEAN
        if undefined is None and value.is_known:
            truth = node.name == "defined"
            self._report_always(node, truth, f"{text_of(node.node) or 'this value'} is always set")
        elif value.is_missing and undefined is not None and undefined.reason == "unknown":
            truth = node.name == "undefined"
        else:
            return BOOLEAN
        return of_constant(truth)

    def _report_always(self, node: nodes.Node, truth: bool, why: str) -> None:
        message = f"this is always {str(truth).lower()}: {why}"
        words = text_of(node.node) if isinstance(node, (nodes.Test, nodes.Filter)) else text_of(node)
        self.report.add_if_always(node, "constant-condition", message, self.source, node.lineno, words, warn=True)

    def _tested(self, node: nodes.Test, value: Type, env: Environment) -> bool | None:
        compared = operators.TESTS.get(node.name)
        if compared is not None and node.args:
            return self.compare(compared, (value, node.node), (self.quiet(node.args[0], env), node.args[0]), node)
        kinds = TESTS.get(node.name)
        if kinds is None or not value.is_known or not value.kinds:
            return None
        if value.kinds <= kinds:
            return True
        return False if not value.kinds & kinds else None

    def of_call(self, node: nodes.Call, env: Environment) -> Type:
        if isinstance(node.node, nodes.Getattr):
            return self._method(node, node.node, env)
        args = [self.infer(each, env) for each in node.args]
        args += [self.infer(each.value, env) for each in node.kwargs]
        for more in (node.dyn_args, node.dyn_kwargs):
            if more is not None:
                self.used(more, env)
        if not isinstance(node.node, nodes.Name):
            self.infer(node.node, env)
            return UNKNOWN
        name = node.node.name
        found = env.names.get(name)
        if found is not None and found.code is not None:
            return self.run_macro(found.code, node, env)
        if found is not None:
            return UNKNOWN
        for value, argument in zip(args, [*node.args, *(each.value for each in node.kwargs)], strict=True):
            self.use(value, argument, omits=True)
        if name == "render" and node.args and isinstance(node.args[0], nodes.Const):
            self.run_file(str(node.args[0].value), self.base)
        return FUNCTIONS.get(name, UNKNOWN)

    def _method(self, node: nodes.Call, method: nodes.Getattr, env: Environment) -> Type:
        base = self.infer(method.node, env)
        if base.code == MODULE and base.fields is not None and method.attr in base.fields:
            for each in node.args:
                self.infer(each, env)
            return self.run_macro(base.fields[method.attr].code, node, env)
        base = self.use(base, method.node)
        args = [self.infer(each, env) for each in node.args]
        for value, argument in zip(args, node.args, strict=True):
            self.use(value, argument, omits=True)
        if "other" in base.kinds or not base.kinds:
            return UNKNOWN
        if method.attr == "get" and "mapping" in base.kinds:
            return self._get(node, method, base, args)
        results = [found for kind in sorted(base.kinds) if (found := method_of(kind, method.attr, base)) is not None]
        if not results:
            what = text_of(method.node) or "this value"
            message = f"{what} is {describe(base.kinds)}, which has no method {method.attr}()"
            self.problem("type-mismatch", message, method, f"{text_of(method.node)}.{method.attr}", method.attr)
            return UNKNOWN
        result = join(results)
        return replace(result, least=1) if method.attr in {"split", "rsplit"} and node.args else result

    def _get(self, node: nodes.Call, method: nodes.Getattr, base: Type, args: list[Type]) -> Type:
        key = node.args[0] if node.args else None
        if not isinstance(key, nodes.Const):
            return UNKNOWN
        found = field(base.only({"mapping"}), key.value)
        self._report_step(node, found, text_of(method.node))
        fallback = args[1] if len(args) > 1 else NULL
        value = found.type
        if value.undefined is None:
            return value
        if value.undefined.waits and len(args) < 2:
            return value
        return join((value.defined(), fallback)) if value.kinds else fallback


def _last(path: str) -> str:
    return path.rpartition(".")[2].partition("[")[0]


def _missing_message(undefined: Undefined, text: str, *, certain: bool) -> str:
    path, reason = undefined.path, undefined.reason
    if reason == "omit":
        return "an `if` without `else` (or `omit`) can leave no value here, where one is needed: add an `else`"
    if reason == "empty":
        what = f"{path} may be empty" if path else "this list may be empty"
        return f"{what}, and {undefined.hint or 'this'} of an empty list has no value: add `default(...)`"
    if reason == "live":
        return f"{path} may not exist yet, and `live` does not wait: add `default(...)`"
    if reason == "undesired":
        return f"{path} has no value while `when` of the child is false: test it with `is defined`"
    base = path or text
    used = f", and {text} needs it" if text and path and text != path and text.startswith(path) else ""
    if certain:
        return f"{base or 'this value'} is not set here{used}"
    hint = f" ({undefined.hint})" if undefined.hint else " (it is optional in the CRD)"
    return f"{base or 'this value'} may be missing{hint}{used}: use `default(...)`, or test it with `is defined`"


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
    nodes.Filter: Inference.of_filter,
    nodes.Test: Inference.of_test,
    nodes.Call: Inference.of_call,
}
