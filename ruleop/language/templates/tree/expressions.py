"""Jinja's expressions as functions of a scope.

Each node of an expression becomes a function that calls those of its parts. Operators, fields, methods, filters and
tests are those of `values` and `filters`, which bound their results and keep undefined values apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jinja2.runtime import LoopContext
from jinja2.utils import Cycler, Joiner, Namespace

from ruleop.language.templates import syntax
from ruleop.language.templates.filters.registry import TemplateFunction
from ruleop.language.templates.tree.pieces import MacroValue
from ruleop.language.templates.values.cost import called
from ruleop.language.templates.values.data import MapView
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.operators import (
    call_on_data,
    collected,
    comparable,
    contains,
    field_by_value,
    field_of,
    given,
    joined,
    operate,
    passes,
    slice_of,
)
from ruleop.language.templates.values.undefined import OMIT, UndefinedValue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ruleop.language.templates.filters.registry import Callables
    from ruleop.language.templates.tree.state import Scope

Compute: TypeAlias = "Callable[[Scope], Any]"

_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "lt": lambda left, right: left < right,
    "lteq": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "gteq": lambda left, right: left >= right,
}
_HELPERS: Final = (Namespace, Joiner, Cycler)


class Expressions:
    """Makes the functions. `render` is the function of that name, which needs the names of the render. `outcome`: what
    counts the outcomes of a condition, if anything does."""

    def __init__(
        self,
        callables: Callables,
        render: Callable[[str, Scope], str],
        outcome: Callable[[syntax.Expr], Callable[[Any], None] | None],
    ) -> None:
        self.callables = callables
        self.render = render
        self.outcome = outcome

    def compute(self, node: syntax.Expr) -> Compute:
        made: Compute = getattr(self, f"_{type(node).__name__.lower()}")(node)
        return made

    def condition(self, node: syntax.Expr) -> Compute:
        """An expression that is tested for truth."""
        compute, count = self.compute(node), self.outcome(node)
        if count is None:
            return compute

        def counted(scope: Scope) -> Any:
            found = compute(scope)
            count(found)
            return found

        return counted

    def computed(self, parts: Sequence[syntax.Expr]) -> tuple[Compute, ...]:
        return tuple(map(self.compute, parts))

    # -- values --------------------------------------------------------------------------------------------------------

    def _const(self, node: syntax.Const) -> Compute:
        value = node.value
        return lambda _: value

    def _name(self, node: syntax.Name) -> Compute:
        name = node.name
        return lambda scope: scope.get(name)

    def _list(self, node: syntax.List) -> Compute:
        items = self.computed(node.items)
        return lambda scope: collected([item(scope) for item in items])

    def _tuple(self, node: syntax.Tuple) -> Compute:
        items = self.computed(node.items)
        return lambda scope: tuple(collected([item(scope) for item in items]))

    def _dict(self, node: syntax.Dict) -> Compute:
        pairs = [(self.compute(each.key), self.compute(each.value)) for each in node.items]
        return lambda scope: dict(collected([(key(scope), value(scope)) for key, value in pairs]))

    # -- fields --------------------------------------------------------------------------------------------------------

    def _field(self, node: syntax.Field) -> Compute:
        variable, *steps = syntax.chain_of(node) or (None,)
        if not isinstance(variable, str) or not all(isinstance(each, str) for each in steps):
            name, of = node.name, self.compute(node.of)
            return lambda scope: field_of(of(scope), name)
        fields = tuple(steps)

        def chain(scope: Scope) -> Any:
            """Most fields are text or numbers of data, for which the steps between need no views."""
            found = scope.get(variable)
            if type(found) is MapView:
                data = found.data
                for each in fields:
                    data = data.get(each) if type(data) is dict else None
                kind = type(data)
                if kind is str or kind is int or kind is bool:
                    return data
            for each in fields:
                found = field_of(found, each)
            return found

        return chain

    def _item(self, node: syntax.Item) -> Compute:
        of, key = self.compute(node.of), self.compute(node.key)
        find = field_of if isinstance(node.key, syntax.Const) else field_by_value
        return lambda scope: find(of(scope), key(scope))

    def _slice(self, node: syntax.Slice) -> Compute:
        of = self.compute(node.of)
        bounds = [self.compute(each) if each is not None else None for each in (node.start, node.stop, node.step)]
        return lambda scope: slice_of(of(scope), *(None if each is None else each(scope) for each in bounds))

    # -- operators -----------------------------------------------------------------------------------------------------

    def _operation(self, node: syntax.Operation) -> Compute:
        left, symbol, right = self.compute(node.left), node.operator, self.compute(node.right)
        return lambda scope: operate(symbol, left(scope), right(scope))

    def _and(self, node: syntax.And) -> Compute:
        left, right = self.compute(node.left), self.compute(node.right)
        return lambda scope: left(scope) and right(scope)

    def _or(self, node: syntax.Or) -> Compute:
        left, right = self.compute(node.left), self.compute(node.right)
        return lambda scope: left(scope) or right(scope)

    def _not(self, node: syntax.Not) -> Compute:
        value = self.compute(node.value)
        return lambda scope: not value(scope)

    def _sign(self, node: syntax.Sign) -> Compute:
        value = self.compute(node.value)
        if node.operator == "-":
            return lambda scope: -value(scope)
        return lambda scope: +value(scope)

    def _concat(self, node: syntax.Concat) -> Compute:
        parts = self.computed(node.parts)
        return lambda scope: joined(tuple(part(scope) for part in parts))

    def _conditional(self, node: syntax.Conditional) -> Compute:
        test, then = self.condition(node.test), self.compute(node.then)
        otherwise = self.compute(node.otherwise) if node.otherwise is not None else None
        return lambda scope: then(scope) if test(scope) else OMIT if otherwise is None else otherwise(scope)

    def _compare(self, node: syntax.Compare) -> Compute:
        """Python's chains: each operand is computed once, and none after a comparison that is false."""
        second = node.others[0]
        if second.operator in {"in", "notin"}:
            needle, haystack, desired = self.compute(node.first), self.compute(second.value), second.operator == "in"
            return lambda scope: contains(needle(scope), haystack(scope)) is desired
        left = self._operand(node.first)
        pairs = [(_COMPARISONS[each.operator], self._operand(each.value)) for each in node.others]
        if len(pairs) == 1:
            compare, right = pairs[0]
            return lambda scope: compare(left(scope), right(scope))

        def chain(scope: Scope) -> Any:
            before, result = left(scope), True
            for compare, operand in pairs:
                after = operand(scope)
                result = compare(before, after)
                if not result:
                    break
                before = after
            return result

        return chain

    def _operand(self, node: syntax.Expr) -> Compute:
        value = self.compute(node)
        return value if isinstance(node, syntax.Const) else lambda scope: comparable(value(scope))

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _filter(self, node: syntax.Filter) -> Compute:
        assert node.value is not None, "it is not that of a block"
        return self._applied(self.callables.filters[node.name], self.compute(node.value), node)

    def filtered(self, value: Compute, node: syntax.Filter) -> Compute:
        """The filters of a block, applied to this value."""
        if isinstance(node.value, syntax.Filter):
            value = self.filtered(value, node.value)
        return self._applied(self.callables.filters[node.name], value, node)

    def _test(self, node: syntax.Test) -> Compute:
        return self._applied(self.callables.tests[node.name], self.compute(node.value), node)

    def _applied(self, function: Any, value: Compute, node: syntax.WithArguments) -> Compute:
        arguments = self._arguments(node)
        if arguments is None:
            return lambda scope: function(value(scope))

        def apply(scope: Scope) -> Any:
            of = value(scope)
            args, kwargs = arguments(scope)
            return function(of, *args, **kwargs)

        return apply

    def _arguments(self, node: syntax.WithArguments) -> Callable[[Scope], tuple[list[Any], dict[str, Any]]] | None:
        """The arguments of a call; None if there are none."""
        args = self.computed(node.args)
        named = [(key, self.compute(value)) for key, value in node.kwargs.items()]
        more = self.compute(node.more_args) if node.more_args is not None else None
        others = self.compute(node.more_kwargs) if node.more_kwargs is not None else None
        if not (args or named or more or others):
            return None
        if len(args) == 1 and not (named or more or others):
            (only,) = args
            return lambda scope: ([only(scope)], {})

        def compute(scope: Scope) -> tuple[list[Any], dict[str, Any]]:
            found = [each(scope) for each in args]
            if more is not None:
                found.extend(more(scope))
            by_name = {key: value(scope) for key, value in named}
            if others is not None:
                by_name.update(others(scope))
            return found, by_name

        return compute

    def _call(self, node: syntax.Call) -> Compute:
        return self.called(node, None)

    def called(self, node: syntax.Call, caller: Callable[[Scope], Any] | None) -> Compute:
        """A call. `caller`: what the block of the tag `call` gives."""
        arguments = self._arguments(node)

        def given_arguments(scope: Scope) -> tuple[list[Any], dict[str, Any]]:
            args, kwargs = arguments(scope) if arguments is not None else ([], {})
            if caller is not None:
                kwargs["caller"] = caller(scope)
            return args, kwargs

        if node.method is not None:
            of, name = self.compute(node.method.of), node.method.name

            def call_method(scope: Scope) -> Any:
                obj = of(scope)
                args, kwargs = given_arguments(scope)
                return _call_method(obj, name, args, kwargs)

            return call_method
        if node.name == "render":
            (option,) = node.args
            assert isinstance(option, syntax.Const)
            file = str(option.value)
            return lambda scope: self.render(file, scope)
        function = self.compute(node.function)

        def call(scope: Scope) -> Any:
            obj = function(scope)
            args, kwargs = given_arguments(scope)
            return _call(obj, args, kwargs)

        return call


def _call(obj: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    kind = type(obj)
    if kind is TemplateFunction:
        arguments = tuple(map(given, args)), {key: given(value) for key, value in kwargs.items()}
        return called(obj.name, obj.function, *arguments, 0)
    if kind is MacroValue:
        return obj(*args, **kwargs)
    if kind is LoopContext:
        return obj(passes(args[0]), *args[1:]) if args else obj(**kwargs)
    if kind is Joiner or any(obj is each for each in _HELPERS):
        return obj(*args, **kwargs)
    if isinstance(obj, UndefinedValue):
        raise obj.fault()
    raise Fault("this is data, not a function")


def _call_method(obj: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if isinstance(obj, UndefinedValue):
        raise obj.fault()
    kind = type(obj)
    if kind is LoopContext and name in {"cycle", "changed"}:
        return getattr(obj, name)(*map(comparable, args))
    if kind is Cycler and name in {"next", "reset"}:
        return getattr(obj, name)()
    if kind is Namespace:
        return _call(field_of(obj, name), args, kwargs)
    if isinstance(obj, dict) and isinstance(obj.get(name), (MacroValue, TemplateFunction)):
        return _call(obj[name], args, kwargs)
    return call_on_data(obj, name, tuple(args), kwargs)
