"""Infers the types of filters, tests, functions and methods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jinja2 import nodes

from ruleop.authoring.checking.typing import operator_types
from ruleop.authoring.checking.typing.environments import text_of
from ruleop.authoring.checking.typing.filters import FILTERS, FUNCTIONS, TESTS, Applied, method_of
from ruleop.authoring.checking.typing.lookups import Lookup, below, field
from ruleop.authoring.checking.typing.types import (
    BOOLEAN,
    MODULE,
    NULL,
    STRING,
    UNKNOWN,
    Type,
    describe,
    join,
    of_constant,
)

if TYPE_CHECKING:
    from ruleop.authoring.checking.typing.environments import Environment
    from ruleop.authoring.checking.typing.inference import Inference

_LOOKS_AT_MISSING: Final = frozenset({"default", "d", "required"})


def infer_filter(inference: Inference, node: nodes.Filter, env: Environment) -> Type:
    if node.node is None:
        return STRING
    value = inference.infer(node.node, env)
    keeps_missing = node.name in _LOOKS_AT_MISSING
    if not keeps_missing:
        value = inference.use(value, node.node)
    value, waits = (value, None) if keeps_missing else (value.defined(), value.undefined)
    args = tuple(_argument(inference, each, env, keeps=keeps_missing) for each in node.args)
    kwargs = {str(each.key): _argument(inference, each.value, env, keeps=keeps_missing) for each in node.kwargs}
    for more in (node.dyn_args, node.dyn_kwargs):
        if more is not None:
            inference.used(more, env)
    result = _apply(inference, node, value, args, kwargs)
    return result.maybe(waits)


def _argument(inference: Inference, node: nodes.Node, env: Environment, *, keeps: bool) -> Type:
    found = inference.infer(node, env)
    return found if keeps else inference.use(found, node, omits=True)


def _apply(
    inference: Inference, node: nodes.Filter, value: Type, args: tuple[Type, ...], kwargs: dict[str, Type]
) -> Type:
    row = FILTERS.get(node.name)
    if row is None:
        return UNKNOWN
    _check_input(inference, node, value, row.takes)

    def attribute(item: Type, name: str) -> Lookup:
        found = below(item, name)
        if found.problem is not None:
            problem = found.problem
            inference.report.add(problem.code, problem.message, inference.source, node.lineno, name)
        return found

    def apply(name: str, item: Type) -> Type:
        other = FILTERS.get(name)
        inner = nodes.Filter(None, name, node.args[1:], [], None, None, lineno=node.lineno)
        if other is None:
            return UNKNOWN
        _check_input(inference, inner, item, other.takes)
        return other.gives(Applied(item, args[1:], {}, inner, attribute, apply))

    return row.gives(Applied(value, args, kwargs, node, attribute, apply))


def _check_input(inference: Inference, node: nodes.Filter, value: Type, takes: frozenset[str] | None) -> None:
    if takes is None or not value.is_known or not value.kinds or value.kinds <= takes:
        return
    what = text_of(node.node) or ("an item" if node.node is None else "this value")
    wrong = value.kinds - takes
    possible = bool(value.kinds & takes)
    may_be = "may be" if possible else "is"
    message = f"{what} {may_be} {describe(wrong)}, and {node.name} takes {describe(takes - {'null'})}"
    inference.problem("type-mismatch", message, node, text_of(node.node), node.name, warn=possible)


def infer_test(inference: Inference, node: nodes.Test, env: Environment) -> Type:
    value = inference.infer(node.node, env)
    for each in (*node.args, *(named.value for named in node.kwargs)):
        inference.used(each, env)
    if node.name in {"defined", "undefined"}:
        return _defined(inference, node, value)
    value = inference.use(value, node.node)
    truth = _tested(inference, node, value, env)
    return BOOLEAN if truth is None else of_constant(truth)


def _defined(inference: Inference, node: nodes.Test, value: Type) -> Type:
    inference.report.visit(node, "constant-condition")
    undefined = value.undefined
    if undefined is not None and undefined.reason == "unset":
        return BOOLEAN
    if undefined is None and value.is_known:
        truth = node.name == "defined"
        inference.report_always(node, truth, f"{text_of(node.node) or 'this value'} is always set")
    elif value.is_missing and undefined is not None and undefined.reason == "unknown":
        truth = node.name == "undefined"
    else:
        return BOOLEAN
    return of_constant(truth)


def _tested(inference: Inference, node: nodes.Test, value: Type, env: Environment) -> bool | None:
    compared = operator_types.TESTS.get(node.name)
    if compared is not None and node.args:
        return inference.compare(compared, (value, node.node), (inference.quiet(node.args[0], env), node.args[0]), node)
    kinds = TESTS.get(node.name)
    if kinds is None or not value.is_known or not value.kinds:
        return None
    if value.kinds <= kinds:
        return True
    return False if not value.kinds & kinds else None


def infer_call(inference: Inference, node: nodes.Call, env: Environment) -> Type:
    if isinstance(node.node, nodes.Getattr):
        return _method(inference, node, node.node, env)
    args = [inference.infer(each, env) for each in node.args]
    args += [inference.infer(each.value, env) for each in node.kwargs]
    for more in (node.dyn_args, node.dyn_kwargs):
        if more is not None:
            inference.used(more, env)
    if not isinstance(node.node, nodes.Name):
        inference.infer(node.node, env)
        return UNKNOWN
    name = node.node.name
    found = env.names.get(name)
    if found is not None and found.code is not None:
        return inference.run_macro(found.code, node, env)
    if found is not None:
        return UNKNOWN
    for value, argument in zip(args, [*node.args, *(each.value for each in node.kwargs)], strict=True):
        inference.use(value, argument, omits=True)
    if name == "render" and node.args and isinstance(node.args[0], nodes.Const):
        inference.run_file(str(node.args[0].value), inference.base)
    return FUNCTIONS.get(name, UNKNOWN)


def _method(inference: Inference, node: nodes.Call, method: nodes.Getattr, env: Environment) -> Type:
    base = inference.infer(method.node, env)
    if base.code == MODULE and base.fields is not None and method.attr in base.fields:
        for each in node.args:
            inference.infer(each, env)
        return inference.run_macro(base.fields[method.attr].code, node, env)
    base = inference.use(base, method.node)
    args = [inference.infer(each, env) for each in node.args]
    for value, argument in zip(args, node.args, strict=True):
        inference.use(value, argument, omits=True)
    if "other" in base.kinds or not base.kinds:
        return UNKNOWN
    if method.attr == "get" and "mapping" in base.kinds:
        return _get(inference, node, method, base, args)
    results = [found for kind in sorted(base.kinds) if (found := method_of(kind, method.attr, base)) is not None]
    if not results:
        what = text_of(method.node) or "this value"
        message = f"{what} is {describe(base.kinds)}, which has no method {method.attr}()"
        inference.problem("type-mismatch", message, method, f"{text_of(method.node)}.{method.attr}", method.attr)
        return UNKNOWN
    result = join(results)
    return replace(result, least=1) if method.attr in {"split", "rsplit"} and node.args else result


def _get(inference: Inference, node: nodes.Call, method: nodes.Getattr, base: Type, args: list[Type]) -> Type:
    key = node.args[0] if node.args else None
    if not isinstance(key, nodes.Const):
        return UNKNOWN
    found = field(base.only({"mapping"}), key.value)
    inference.report_step(node, found, text_of(method.node))
    fallback = args[1] if len(args) > 1 else NULL
    value = found.type
    if value.undefined is None:
        return value
    if value.undefined.waits and len(args) < 2:
        return value
    return join((value.defined(), fallback)) if value.kinds else fallback
