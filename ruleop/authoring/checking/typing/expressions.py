"""Infers the types of expressions, by the class of their node: among them filters, tests, functions and methods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.typing import narrowing, operators
from ruleop.authoring.checking.typing.filters import (
    FilterCall,
    argument_problem,
    members_of,
    result_of,
    result_of_method,
)
from ruleop.authoring.checking.typing.inference import Let, TypeEnvironment, is_membership
from ruleop.authoring.checking.typing.operators import Lookup, below, field
from ruleop.authoring.checking.typing.types import (
    BOOLEAN,
    CONTAINERS,
    MODULE,
    NULL,
    STRING,
    UNKNOWN,
    Type,
    Undefined,
    declared,
    describe,
    item_of,
    join,
    list_of,
    mapping_of,
    misfit,
    missing,
    of_constant,
    truth_of,
)
from ruleop.language.templates import FUNCTION_NAMES, Trait, syntax
from ruleop.language.templates.declarations import FUNCTIONS, declared_kinds
from ruleop.language.templates.filters.registry import FILTERS, TESTS
from ruleop.language.templates.syntax import children, source_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.authoring.checking.typing.inference import Inference, Visit


def infer_filter(inference: Inference, node: syntax.Filter, env: TypeEnvironment) -> Type:
    if node.value is None:
        return STRING
    value = inference.infer(node.value, env)
    declared_filter = FILTERS.get(node.name)
    keeps_missing = declared_filter is not None and Trait.TAKES_UNDEFINED in declared_filter.traits
    if not keeps_missing:
        value = inference.use(value, node.value)
    value, waits = (value, None) if keeps_missing else (value.defined(), value.undefined)
    args = tuple(_argument(inference, each, env, keeps=keeps_missing) for each in node.args)
    kwargs = {key: _argument(inference, each, env, keeps=keeps_missing) for key, each in node.kwargs.items()}
    for more in (node.more_args, node.more_kwargs):
        if more is not None:
            inference.used(more, env)
    result = _apply(inference, node, value, args, kwargs)
    return result.maybe(waits)


def _argument(inference: Inference, node: syntax.Expr, env: TypeEnvironment, *, keeps: bool) -> Type:
    found = inference.infer(node, env)
    return found if keeps else inference.use(found, node, omits=True)


def _apply(
    inference: Inference, node: syntax.Filter, value: Type, args: tuple[Type, ...], kwargs: dict[str, Type]
) -> Type:
    if node.name not in FILTERS:
        return UNKNOWN
    _check_call(inference, node, value)

    def attribute(item: Type, name: str) -> Lookup:
        found = below(item, name)
        if found.problem is not None:
            problem = found.problem
            inference.report.add(problem.code, problem.message, node.site, name, f".{name}")
        return found

    def apply(name: str, item: Type) -> Type:
        if name not in FILTERS:
            return UNKNOWN
        inner = syntax.Filter(node.args[1:], node.kwargs, value=None, name=name, site=node.site)
        _check_call(inference, inner, item)
        return result_of(FilterCall(item, args[1:], kwargs, inner, attribute, apply))

    return result_of(FilterCall(value, args, kwargs, node, attribute, apply))


def _check_call(inference: Inference, node: syntax.Filter, value: Type) -> None:
    """Reports arguments that the filter does not have, and an input that it does not take."""
    wrong = "" if node.is_dynamic else argument_problem(node)
    if wrong:
        inference.problem("template", f"{node.name}: {wrong}", node, node.name)
    takes = declared_kinds(FILTERS[node.name].takes)
    if not value.is_known or not value.kinds or value.kinds <= takes:
        return
    what = source_of(node.value) or ("an item" if node.value is None else "this value")
    wrong, possible = misfit(value.kinds, takes)
    message = f"{what} {wrong}, and {node.name} takes {describe(takes - {'null'})}"
    inference.problem("type-mismatch", message, node, source_of(node.value), node.name, warn=possible)


def infer_test(inference: Inference, node: syntax.Test, env: TypeEnvironment) -> Type:
    value = inference.infer(node.value, env)
    for each in (*node.args, *node.kwargs.values()):
        inference.used(each, env)
    if node.name in {"defined", "undefined"}:
        return _defined(inference, node, value)
    value = inference.use(value, node.value)
    truth = _tested(inference, node, value, env)
    return BOOLEAN if truth is None else of_constant(truth)


def _defined(inference: Inference, node: syntax.Test, value: Type) -> Type:
    inference.report.visit(node, "constant-condition")
    undefined = value.undefined
    if undefined is not None and undefined.reason == "unset":
        return BOOLEAN
    if undefined is None and value.is_known:
        truth = node.name == "defined"
        inference.report_always(node, truth, f"{source_of(node.value) or 'this value'} is always set")
    elif value.is_missing and undefined is not None and undefined.reason == "unknown":
        truth = node.name == "undefined"
    else:
        return BOOLEAN
    return of_constant(truth)


def _tested(inference: Inference, node: syntax.Test, value: Type, env: TypeEnvironment) -> bool | None:
    test = TESTS.get(node.name)
    if test is None:
        return None
    if test.compares and node.args:
        return inference.compare(
            test.compares, (value, node.value), (inference.quiet(node.args[0], env), node.args[0]), node
        )
    if not test.true_for or not value.is_known or not value.kinds:
        return None
    kinds = declared_kinds(test.true_for)
    if value.kinds <= kinds:
        return True
    return False if not value.kinds & kinds else None


def infer_call(inference: Inference, node: syntax.Call, env: TypeEnvironment) -> Type:
    if node.method is not None:
        return _method(inference, node, node.method, env)
    given = (*node.args, *node.kwargs.values())
    args = [inference.infer(each, env) for each in given]
    for more in (node.more_args, node.more_kwargs):
        if more is not None:
            inference.used(more, env)
    name = node.name
    if not name:
        inference.infer(node.function, env)
        return UNKNOWN
    found = env.names.get(name)
    if found is not None and found.code is not None:
        return inference.run_macro(found.code, node, env)
    if found is not None:
        return UNKNOWN
    for value, argument in zip(args, given, strict=True):
        inference.use(value, argument, omits=True)
    if name == "render" and node.args and isinstance(node.args[0], syntax.Const):
        inference.run_file(str(node.args[0].value), inference.base)
    function = FUNCTIONS.get(name)
    if function is None:
        return UNKNOWN
    return mapping_of(dict.fromkeys(function.fields, STRING)) if function.fields else declared(function.gives)


def _method(inference: Inference, node: syntax.Call, method: syntax.Field, env: TypeEnvironment) -> Type:
    base = inference.infer(method.of, env)
    if base.code == MODULE and base.fields is not None and method.name in base.fields:
        for each in node.args:
            inference.infer(each, env)
        return inference.run_macro(base.fields[method.name].code, node, env)
    base = inference.use(base, method.of)
    args = [inference.infer(each, env) for each in node.args]
    for value, argument in zip(args, node.args, strict=True):
        inference.use(value, argument, omits=True)
    if "other" in base.kinds or not base.kinds:
        return UNKNOWN
    if method.name == "get" and "mapping" in base.kinds:
        return _get(inference, node, method, base, args)
    results = [found for kind in sorted(base.kinds) if (found := result_of_method(kind, method.name, base, node.args))]
    if not results:
        what = source_of(method.of) or "this value"
        message = f"{what} is {describe(base.kinds)}, which has no method {method.name}()"
        inference.problem("type-mismatch", message, method, f"{source_of(method.of)}.{method.name}", f".{method.name}")
        return UNKNOWN
    return join(results)


def _get(inference: Inference, node: syntax.Call, method: syntax.Field, base: Type, args: list[Type]) -> Type:
    key = node.args[0] if node.args else None
    if not isinstance(key, syntax.Const):
        return UNKNOWN
    found = field(base.only({"mapping"}), key.value)
    inference.report_step(node, found, source_of(method.of), str(key.value))
    fallback = args[1] if len(args) > 1 else NULL
    value = found.type
    if value.undefined is None:
        return value
    if value.undefined.waits and len(args) < 2:
        return value
    return join((value.defined(), fallback)) if value.kinds else fallback


def infer_name(inference: Inference, node: syntax.Name, env: TypeEnvironment) -> Type:
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


def _let(inference: Inference, found: Type, env: TypeEnvironment) -> Type:
    """The type of a let where it is used: with what is known there of the fields that it reads."""
    key = (id(found), id(env.facts), id(env.truths))
    if key not in inference.lets:
        inference.lets[key] = (found, env, found.code.infer(env))
    return inference.lets[key][2]


def _step(inference: Inference, node: syntax.Field | syntax.Item, base: Type, key: object) -> Type:
    if base.code == MODULE and base.fields is not None:
        return base.fields.get(str(key), UNKNOWN)
    found = field(base, key)
    inference.report_step(node, found, source_of(node), f".{key}", str(key))
    return found.type


def infer_field(inference: Inference, node: syntax.Field, env: TypeEnvironment) -> Type:
    return _step(inference, node, inference.infer(node.of, env), node.name)


def infer_slice(inference: Inference, node: syntax.Slice, env: TypeEnvironment) -> Type:
    base = inference.infer(node.of, env)
    for bound in children(node)[1:]:
        inference.used(bound, env)
    sliced = inference.use(base, node.of)
    return sliced.only({"list", "string"}) if "list" not in sliced.kinds else list_of(item_of(sliced))


def infer_item(inference: Inference, node: syntax.Item, env: TypeEnvironment) -> Type:
    base = inference.infer(node.of, env)
    if isinstance(node.key, syntax.Const):
        return _step(inference, node, base, node.key.value)
    key = inference.used(node.key, env)
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


def infer_list(inference: Inference, node: syntax.List | syntax.Tuple, env: TypeEnvironment) -> Type:
    items = [inference.use(inference.infer(each, env), each, omits=True) for each in node.items]
    return replace(list_of(join(items) if items else None, least=len(items)), elements=tuple(items))


def infer_dict(inference: Inference, node: syntax.Dict, env: TypeEnvironment) -> Type:
    fields: dict[str, Type] = {}
    is_open = False
    for pair in node.items:
        given = inference.infer(pair.value, env)
        omitted = given.undefined if given.undefined is not None and given.undefined.reason == "omit" else None
        value = inference.use(given, pair.value, omits=True).maybe(omitted)
        key = inference.used(pair.key, env)
        if isinstance(pair.key, syntax.Const):
            fields[str(pair.key.value)] = value
        else:
            is_open = is_open or bool(key)
    return Type(frozenset({"mapping"})) if is_open else mapping_of(fields)


def infer_condition(inference: Inference, node: syntax.Conditional, env: TypeEnvironment) -> Type:
    truth = inference.condition(node.test, env)
    branches: list[Type] = []
    if truth is not False:
        branches.append(inference.infer(node.then, narrowing.assume(inference, node.test, env, truth=True)))
    if truth is not True:
        inner = narrowing.assume(inference, node.test, env, truth=False)
        branches.append(
            inference.infer(node.otherwise, inner) if node.otherwise is not None else missing(Undefined("omit"))
        )
    return join(branches)


def infer_and(inference: Inference, node: syntax.And, env: TypeEnvironment) -> Type:
    left = inference.used(node.left, env)
    if truth_of(left) is False:
        return left
    right = inference.infer(node.right, narrowing.assume(inference, node.left, env, truth=True))
    return right if truth_of(left) is True else join((narrowing.falsy(left), inference.use(right, node.right)))


def infer_or(inference: Inference, node: syntax.Or, env: TypeEnvironment) -> Type:
    if is_membership(node):
        inference.report_constants(node)
    left = inference.used(node.left, env)
    if truth_of(left) is True:
        return left
    right = inference.infer(node.right, narrowing.assume(inference, node.left, env, truth=False))
    return right if truth_of(left) is False else join((narrowing.truthy(left), right))


def infer_not(inference: Inference, node: syntax.Not, env: TypeEnvironment) -> Type:
    truth = inference.condition(node.value, env)
    return BOOLEAN if truth is None else of_constant(not truth)


def infer_operation(inference: Inference, node: syntax.Operation, env: TypeEnvironment) -> Type:
    left, right = inference.used(node.left, env), inference.used(node.right, env)
    outcome = operators.arithmetic(node.operator, left, right)
    if outcome.problem is not None:
        words = (source_of(node.left), source_of(node.right), node.operator)
        inference.problem(outcome.problem.code, outcome.problem.message, node, *words, warn=outcome.is_possible)
    return outcome.type


def infer_sign(inference: Inference, node: syntax.Sign, env: TypeEnvironment) -> Type:
    value = inference.used(node.value, env)
    return value.only({"integer", "number", "boolean"}) if value.kinds & {"integer", "number"} else UNKNOWN


def infer_concat(inference: Inference, node: syntax.Concat, env: TypeEnvironment) -> Type:
    for each in node.parts:
        value = inference.used(each, env)
        if value.is_known and value.kinds and value.kinds <= CONTAINERS:
            message = f"{source_of(each) or 'this'} is {describe(value.kinds)}, which cannot be a part of text"
            inference.problem("type-mismatch", message, each, source_of(each), "~")
    return STRING


def infer_compare(inference: Inference, node: syntax.Compare, env: TypeEnvironment) -> Type:
    left, left_node = inference.used(node.first, env), node.first
    results: list[bool | None] = []
    for operand in node.others:
        right = inference.used(operand.value, env)
        results.append(inference.compare(operand.operator, (left, left_node), (right, operand.value), node))
        left, left_node = right, operand.value
    if len(results) == 1 and results[0] is not None:
        return of_constant(results[0])
    return BOOLEAN


EXPRESSIONS: Final[Mapping[type[syntax.Node], Visit]] = {
    syntax.Name: infer_name,
    syntax.Const: lambda _inference, node, _env: of_constant(node.value),
    syntax.Field: infer_field,
    syntax.Item: infer_item,
    syntax.Slice: infer_slice,
    syntax.List: infer_list,
    syntax.Tuple: infer_list,
    syntax.Dict: infer_dict,
    syntax.Conditional: infer_condition,
    syntax.And: infer_and,
    syntax.Or: infer_or,
    syntax.Not: infer_not,
    syntax.Operation: infer_operation,
    syntax.Sign: infer_sign,
    syntax.Concat: infer_concat,
    syntax.Compare: infer_compare,
    syntax.Filter: infer_filter,
    syntax.Test: infer_test,
    syntax.Call: infer_call,
}
