"""Compiles a rule: its types are checked against those of the schema, and it becomes a function.

The types decide only whether the API server would accept the rule. Values are dispatched by their own types again when
it runs, as on the server: an int-or-string has one only then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from ruleop.kubernetes.cel import values
from ruleop.kubernetes.cel.functions import FUNCTIONS
from ruleop.kubernetes.cel.parser import (
    RESERVED,
    CelCall,
    CelMacro,
    CelName,
    EvaluationError,
    InvalidRuleError,
    ListLiteral,
    Literal,
    MapLiteral,
    NotEvaluatedError,
    Select,
    parse,
)
from ruleop.kubernetes.cel.values import (
    BOOL,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    Budget,
    CelType,
    ListValue,
    MapValue,
    OptionalValue,
    TypeValue,
    Value,
    compare,
    equal,
    has_resource,
    list_of,
    map_of,
    mismatch,
    optional_of,
    type_name,
)
from ruleop.kubernetes.schema import compile_pattern
from ruleop.nearest import did_you_mean
from ruleop.patterns import InvalidPatternError
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.cel.functions import Overload
    from ruleop.kubernetes.cel.parser import Node

_MAX_DEPTH: Final = 80  # of a syntax tree: one level takes up to four frames when it runs
_SCALARS: Final = frozenset({"int", "double", "bool", "string"})
_KNOWN: Final = _SCALARS | {"list", "map", "object", "null_type"}
_TYPES: Final = frozenset({"bool", "double", "int", "list", "map", "null_type", "string", "type"})
_NAMESPACES: Final = frozenset(
    {
        *("base64", "cel", "cidr", "format", "google", "ip", "json", "jsonpatch", "kubernetes", "lists", "math", "net"),
        *("optional", "optional_type", "proto", "regex", "semver", "sets", "strings", "url"),
        *("bytes", "duration", "timestamp", "uint"),
    }
)
"""The first names of functions and types that are not implemented."""
_COMPILED: Final = frozenset({"bool", "double", "duration", "int", "matches", "timestamp"})
"""Functions whose literal arguments are read when a rule is compiled."""
_ARITHMETIC: Final[Mapping[str, tuple[Callable[..., Value], tuple[tuple[str, ...], ...]]]] = {
    "-": (values.subtract, (("int",), ("double",), ("duration",))),
    "*": (values.multiply, (("int",), ("double",))),
    "/": (values.divide, (("int",), ("double",))),
    "%": (values.modulo, (("int",),)),
}
_ORDERS: Final[Mapping[str, Callable[[int], bool]]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


@dataclass(slots=True)
class Frame:
    """The environment in which an expression is evaluated."""

    names: dict[str, Value]
    budget: Budget


Run: TypeAlias = Callable[[Frame], Value]


@dataclass(frozen=True, slots=True)
class CelProgram:
    """A compiled expression."""

    run: Run
    type: CelType
    names: frozenset[str]  # the variables that it reads

    def evaluate(self, names: dict[str, Value], budget: Budget) -> Value:
        return self.run(Frame(names, budget))


def compile_rule(text: str, variables: Mapping[str, CelType]) -> CelProgram:
    """The program of an expression. Raises InvalidRuleError if the server would reject it with its CRD, and
    NotEvaluatedError if it uses what is not implemented."""
    compiler = _Compiler(dict(variables))
    type_, run = compiler.compile(parse(text))
    return CelProgram(run, type_, frozenset(compiler.used))


_Typed: TypeAlias = tuple[CelType, Run]


@dataclass(slots=True)
class _Compiler:
    names: dict[str, CelType]
    used: set[str] = field(default_factory=set)
    local: frozenset[str] = frozenset()
    depth: int = 0

    def compile(self, node: Node) -> _Typed:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise NotEvaluatedError("it is nested too deeply")
        compiled = self._compile(node)
        self.depth -= 1
        return compiled

    def _compile(self, node: Node) -> _Typed:
        if isinstance(node, Literal):
            value = node.value
            return _LITERALS[type(value)], lambda _: value
        if isinstance(node, CelName):
            return self._name(node.name)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        if isinstance(node, CelMacro):
            return self._macro(node)
        if node.name in ("&&", "||"):
            return self._logical(node)
        if node.target is None and (operator := getattr(self, _OPERATORS.get(node.name, ""), None)) is not None:
            found: _Typed = operator(node.name, *(self.compile(each) for each in node.arguments))
            if node.name == "in" and node.arguments[1] == ListLiteral(()):
                return BOOL, lambda _: False  # the server does not evaluate what is looked for in an empty list
            return found
        return self._function(node)

    # -- names and fields ---------------------------------------------------------------------------------------------

    def _name(self, name: str) -> _Typed:
        if name in self.names:
            if name not in self.local:
                self.used.add(name)
            return self.names[name], lambda frame: frame.names[name]
        if name in _TYPES:
            return TYPE, lambda _: TypeValue(name)
        if name in _NAMESPACES:
            raise NotEvaluatedError(f"{name} is not implemented")
        raise InvalidRuleError(f"{name} is undefined{did_you_mean(name, self.names)}")

    def _select(self, node: Select) -> _Typed:
        type_, operand = self.compile(node.operand)
        if type_.kind == "optional" and type_.items is not None and not node.tests:
            return self._chained(node, type_.items, operand)
        if node.optional:
            return self._chained(node, type_, operand)
        name, found = self._field(node, type_)
        field = node.field

        def select(frame: Frame) -> Value:
            frame.budget.charge()
            return _member(operand(frame), name, field)

        def has(frame: Frame) -> Value:
            frame.budget.charge()
            owner = operand(frame)
            if not isinstance(owner, MapValue):
                raise NotEvaluatedError("it reads a field of a null")
            return owner.find(name)[0]

        return (BOOL, has) if node.tests else (found, select)

    def _chained(self, node: Select, type_: CelType, operand: Run) -> _Typed:
        """A field of what may be missing, or one that may be missing itself."""
        name, found = self._field(node, type_)

        def run(frame: Frame) -> Value:
            frame.budget.charge()
            owner = operand(frame)
            if isinstance(owner, OptionalValue):
                if not owner.held:
                    return owner
                (owner,) = owner.held
            if not isinstance(owner, MapValue):
                raise NotEvaluatedError("it reads a field of a null")
            is_there, value = owner.find(name)
            return OptionalValue((value,) if is_there else ())

        return optional_of(found), run

    def _field(self, node: Select, type_: CelType) -> tuple[str, CelType]:
        """The name of a field in the object, and its type."""
        if type_.kind == "map" and type_.items is not None:
            return node.field, type_.items
        if type_.kind != "object":
            _refuse(f"{type_} has no fields", [type_])
        # A field that is named like a reserved word may be selected by its own name, too.
        exposed = f"__{node.field}__" if node.field in RESERVED else node.field
        if exposed not in type_.fields:
            raise InvalidRuleError(f"{node.field} is not in the schema{did_you_mean(node.field, type_.fields)}")
        return type_.fields[exposed]

    def _index(self, symbol: str, target: _Typed, index: _Typed) -> _Typed:
        (type_, operand), (index_type, at) = target, index
        key_type = {"list": INT, "map": STRING}.get(type_.kind)
        if key_type is None or type_.items is None:
            _refuse(f"{type_} has no items", [type_])
        _require(index_type, key_type)

        def run(frame: Frame) -> Value:
            frame.budget.charge()
            return _item(operand(frame), at(frame))

        def optional(frame: Frame) -> Value:
            frame.budget.charge()
            owner, key = operand(frame), at(frame)
            try:
                return OptionalValue((_item(owner, key),))
            except EvaluationError:
                return OptionalValue(())

        return (type_.items, run) if symbol == "[]" else (optional_of(type_.items), optional)

    def _map(self, node: MapLiteral) -> _Typed:
        keys, held = [], []
        for key, value in node.entries:
            key_type, key_run = self.compile(key)
            if key_type.kind != "string":
                raise NotEvaluatedError("a map with other keys than strings is not implemented")
            keys.append(key_run)
            held.append(self.compile(value))
        found = _common([type_ for type_, _ in held], "a map has values")
        runs = [run for _, run in held]

        def run(frame: Frame) -> Value:
            frame.budget.charge(len(runs))
            names = [each(frame) for each in keys]
            if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
                raise EvaluationError("Failed with repeated key")
            return MapValue({str(name): each(frame) for name, each in zip(names, runs, strict=True)}, None)

        return map_of(found), run

    def _list(self, node: ListLiteral) -> _Typed:
        compiled = [self.compile(each) for each in node.items]
        found = _common([type_ for type_, _ in compiled], "a list has items")
        runs = [run for _, run in compiled]

        def run(frame: Frame) -> Value:
            frame.budget.charge(len(runs))
            return ListValue([each(frame) for each in runs])

        return list_of(found), run

    # -- operators ----------------------------------------------------------------------------------------------------

    def _logical(self, node: CelCall) -> _Typed:
        runs = []
        for each in node.arguments:
            type_, run = self.compile(each)
            _require(type_, BOOL)
            runs.append(run)
        decisive = node.name == "||"
        return BOOL, lambda frame: _decide((partial(run, frame) for run in runs), decisive=decisive)

    def _not(self, _: str, operand: _Typed) -> _Typed:
        type_, run = operand
        _require(type_, BOOL)
        return BOOL, lambda frame: not _truth(run(frame))

    def _negate(self, _: str, operand: _Typed) -> _Typed:
        type_, run = operand
        if type_.kind not in ("int", "double", "dyn"):
            _refuse(f"{type_} cannot be negated", [type_])
        return type_, lambda frame: values.negate(run(frame))

    def _conditional(self, _: str, condition: _Typed, chosen: _Typed, other: _Typed) -> _Typed:
        (condition_type, test), (first, left), (second, right) = condition, chosen, other
        _require(condition_type, BOOL)
        if mismatch(first, second) is not False:
            _refuse(f"the results of ?: are of the types {first} and {second}", [first, second])
        found = DYN if "dyn" in (first.kind, second.kind) else second if first.kind == "null_type" else first
        return found, lambda frame: left(frame) if _truth(test(frame)) else right(frame)

    def _equality(self, symbol: str, left: _Typed, right: _Typed) -> _Typed:
        (first, one), (second, other) = left, right
        if mismatch(first, second) is not False:
            _refuse(f"{first} and {second} cannot be compared", [first, second])
        if has_resource(first) or has_resource(second):
            raise NotEvaluatedError("it compares metadata")
        expected = symbol == "=="
        return BOOL, lambda frame: equal(one(frame), other(frame), frame.budget) is expected

    def _order(self, symbol: str, left: _Typed, right: _Typed) -> _Typed:
        (first, one), (second, other) = left, right
        kinds = {first.kind, second.kind} - {"dyn"}
        if not (kinds <= {"int", "double"} or kinds in ({"string"}, {"bool"}, {"duration"}, {"timestamp"})):
            _refuse(f"{first} {symbol} {second} is not defined", [first, second])
        test = _ORDERS[symbol]

        def run(frame: Frame) -> Value:
            frame.budget.charge()
            return test(compare(one(frame), other(frame)))

        return BOOL, run

    def _in(self, _: str, left: _Typed, right: _Typed) -> _Typed:
        (first, one), (second, other) = left, right
        if second.kind not in ("list", "map") or second.items is None:
            _refuse(f"`in` needs a list or a map, not {second}", [second])
        sought = second.items if second.kind == "list" else STRING
        if mismatch(first, sought) is not False:
            _refuse(f"{first} cannot be in {second}", [first, sought])
        if has_resource(first):
            raise NotEvaluatedError("it compares metadata")
        return BOOL, lambda frame: _contains(other(frame), one(frame), frame.budget)

    def _add(self, symbol: str, left: _Typed, right: _Typed) -> _Typed:
        (first, one), (second, other) = left, right
        if first.kind == second.kind == "list":
            if mismatch(first, second) is not False:
                _refuse(f"{first} and {second} cannot be joined", [first, second])
            items = first.items or DYN
            if items.kind not in _SCALARS | {"dyn"} or first.list_type in ("set", "map"):
                raise NotEvaluatedError(f"joining {first} is not implemented")
            found = list_of(items if items.kind != "dyn" else second.items or DYN)
        elif {first.kind, second.kind} == {"timestamp", "duration"}:
            found = TIMESTAMP
        else:
            found = self._result(symbol, (first, second), (("int",), ("double",), ("string",), ("duration",)))
        return found, lambda frame: values.add(one(frame), other(frame), frame.budget)

    def _arithmetic(self, symbol: str, left: _Typed, right: _Typed) -> _Typed:
        (first, one), (second, other) = left, right
        operation, kinds = _ARITHMETIC[symbol]
        if symbol == "-" and first.kind == "timestamp" and second.kind in ("timestamp", "duration"):
            found = DURATION if second.kind == "timestamp" else TIMESTAMP
            return found, lambda frame: operation(one(frame), other(frame))
        return self._result(symbol, (first, second), kinds), lambda frame: operation(one(frame), other(frame))

    def _result(self, symbol: str, types: tuple[CelType, CelType], kinds: Iterable[tuple[str, ...]]) -> CelType:
        given = {each.kind for each in types} - {"dyn"}
        if not given:
            return DYN
        if not any(given == set(each) for each in kinds):
            _refuse(f"{types[0]} {symbol} {types[1]} is not defined", list(types))
        return next(each for each in types if each.kind != "dyn")

    # -- functions and macros -----------------------------------------------------------------------------------------

    def _function(self, node: CelCall) -> _Typed:
        if isinstance(node.target, CelName) and node.target.name in _NAMESPACES and node.target.name not in self.names:
            node = CelCall(f"{node.target.name}.{node.name}", None, node.arguments)
        overloads = FUNCTIONS.get(node.name)
        if overloads is None:
            raise NotEvaluatedError(f"{node.name}() is not implemented")
        compiled = [self.compile(each) for each in (*((node.target,) if node.target else ()), *node.arguments)]
        types, runs = [type_ for type_, _ in compiled], [run for _, run in compiled]
        is_method = node.target is not None
        fitting = [each for each in overloads if each.is_method == is_method and _fits(each, types)]
        if not fitting or _differ(fitting[0].parameters, types):
            message = f"{node.name}() does not take {' and '.join(map(str, types)) or 'no arguments'}"
            if node.name != "duration" and all(each.kind in _SCALARS for each in types):
                raise InvalidRuleError(message)
            raise NotEvaluatedError(f"{message} here")
        if len(fitting) > 1 and types[0].kind == "list":
            raise NotEvaluatedError(f"{node.name}() of a list of values without a type is not implemented")
        _check_literal(node, fitting)
        results = [each.result if isinstance(each.result, CelType) else each.result(types[0]) for each in fitting]

        def run(frame: Frame) -> Value:
            frame.budget.charge()
            arguments = [each(frame) for each in runs]
            return _chosen(fitting, arguments)(frame.budget, *arguments)

        return results[0] if len({each.kind for each in results}) == 1 else DYN, run

    def _macro(self, node: CelMacro) -> _Typed:
        range_type, values_of = self.compile(node.target)
        if range_type.kind not in ("list", "map") or range_type.items is None:
            _refuse(f"{node.name}() needs a list or a map, not {range_type}", [range_type])
        variable = node.variable
        if variable.startswith("__"):
            raise NotEvaluatedError(f"{variable} may be a name of CEL's own")
        item = range_type.items if range_type.kind == "list" else STRING
        names, local = self.names, self.local
        self.names, self.local = {**names, variable: item}, local | {variable}
        *conditions, (type_, last) = [self.compile(each) for each in node.arguments]
        self.names, self.local = names, local
        for condition, _ in conditions if node.name == "map" else ((type_, last),):
            _require(condition, BOOL)
        if node.name in ("all", "exists"):
            decisive = node.name == "exists"
            return BOOL, lambda frame: _decide(
                (partial(last, inner) for inner in _frames(frame, values_of(frame), variable)), decisive=decisive
            )
        if node.name in ("exists_one", "existsOne"):
            return (
                BOOL,
                lambda frame: sum(_truth(last(inner)) for inner in _frames(frame, values_of(frame), variable)) == 1,
            )
        transforms = node.name == "map"
        keep = conditions[0][1] if conditions else None if transforms else last

        def run(frame: Frame) -> Value:
            values_ = values_of(frame)
            if isinstance(values_, MapValue) and len(values_.members) > 1:
                raise NotEvaluatedError("it makes a list of a map, which has no order")
            kept = [each for each in _frames(frame, values_, variable) if keep is None or _truth(keep(each))]
            return ListValue([last(each) if transforms else each.names[variable] for each in kept])

        return list_of(type_ if transforms else item), run


def _common(types: list[CelType], what: str) -> CelType:
    """The type of all items of a literal."""
    for each in types[1:]:
        if each.kind != types[0].kind or mismatch(types[0], each) is not False:
            _refuse(f"{what} of the types {types[0]} and {each}", [types[0], each])
    return types[0] if types else DYN


def _differ(parameters: tuple[str, ...], types: list[CelType]) -> bool:
    """Whether the second argument is of another type than what the first one has."""
    if parameters not in (("list", "any"), ("list", "list"), ("optional", "any"), ("optional", "optional")):
        return False
    sought = types[1] if parameters[1] == "any" else types[1].items or DYN
    return mismatch(types[0].items or DYN, sought) is not False


def _refuse(message: str, types: Iterable[CelType]) -> NoReturn:
    """Raises what says that the types do not fit: certain only of those that are fully implemented."""
    kinds = [each.kind for each in types]
    if _KNOWN.issuperset(kinds) and kinds.count("object") < 2:
        raise InvalidRuleError(message)
    raise NotEvaluatedError(message)


def _require(found: CelType, needed: CelType) -> None:
    if found.kind not in (needed.kind, "dyn"):
        _refuse(f"{found} where {needed} is needed", [found])


def _fits(overload: Overload, types: list[CelType]) -> bool:
    return len(types) == len(overload.parameters) and all(map(_accepts, overload.parameters, types))


def _accepts(parameter: str, found: CelType) -> bool:
    if found.kind == "list" and parameter.startswith("list("):
        return found.items is None or found.items.kind in (parameter[5:-1], "dyn")
    return parameter == "any" or found.kind in (parameter, "dyn")


def _check_literal(node: CelCall, overloads: list[Overload]) -> None:
    """Raises InvalidRuleError for a text that the server would not compile: a pattern, or one that cannot be
    converted."""
    last = node.arguments[-1] if node.arguments else None
    if node.name not in _COMPILED or not isinstance(last, Literal) or not isinstance(last.value, str):
        return
    try:
        if node.name == "matches":
            compile_pattern(last.value)
        else:
            _chosen(overloads, [last.value])(Budget(len(last.value)), last.value)
    except (EvaluationError, InvalidPatternError) as error:
        raise InvalidRuleError(f"invalid argument of {node.name}(): {error}") from None
    except NotEvaluatedError:
        return


def _chosen(overloads: list[Overload], arguments: list[Value]) -> Callable[..., Value]:
    """The overload for values, of those that fit their types."""
    values.refuse_unread(*arguments)
    names = [type_name(each) for each in arguments]
    for each in overloads:
        if all(map(_is_value_of, each.parameters, names, arguments)):
            return each.call
    raise EvaluationError("no such overload")


def _is_value_of(sought: str, name: str, value: Value) -> bool:
    """Whether a value is of a type. A list is of the type of its first item."""
    kind, _, items = sought.partition("(")
    if kind not in ("any", name):
        return False
    first = next(iter(value), None) if items and isinstance(value, ListValue) else None
    return first is None or type_name(first) == items[:-1]


def _truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise EvaluationError("no such overload")
    return value


def _decide(operands: Iterable[Callable[[], Value]], *, decisive: bool) -> bool:
    """The result of `&&`, `||`, all() and exists(): the decisive value of one operand absorbs errors of the others."""
    error: EvaluationError | None = None
    for each in operands:
        try:
            if _truth(each()) is decisive:
                return decisive
        except EvaluationError as found:
            error = error or found
    if error is not None:
        raise error
    return not decisive


def _frames(frame: Frame, found: Value, variable: str) -> Iterator[Frame]:
    """The environments in which a macro is evaluated: one for each item of a list, or each key of a map."""
    if not isinstance(found, (ListValue, MapValue)):
        raise NotEvaluatedError("a macro has another range than a list or a map")
    for each in found if isinstance(found, ListValue) else found.members:
        frame.budget.charge()
        yield Frame({**frame.names, variable: each}, frame.budget)


def _item(owner: Value, key: Value) -> Value:
    if isinstance(owner, MapValue) and isinstance(key, str):
        return _member(owner, key, key)
    if not isinstance(owner, ListValue) or type_name(key) != "int":
        raise NotEvaluatedError("it has an index of another type than expected")
    if not 0 <= key < len(owner):  # type: ignore[operator]
        raise EvaluationError(f"index out of bounds: {key}")
    return owner.at(key)  # type: ignore[arg-type]


def _member(owner: Value, name: str, field: str) -> Value:
    if not isinstance(owner, MapValue):
        raise NotEvaluatedError("it reads a field of a null")
    found, value = owner.find(name)
    if not found:
        raise EvaluationError(f"no such key: {field}")
    return value


def _contains(collection: Value, sought: Value, budget: Budget) -> bool:
    if isinstance(collection, MapValue):
        if not isinstance(sought, str):
            raise EvaluationError("no such overload")
        return collection.find(sought)[0]
    if not isinstance(collection, ListValue):
        raise NotEvaluatedError("`in` has another collection than a list or a map")
    return _decide((partial(equal, each, sought, budget) for each in collection), decisive=True)


_LITERALS: Final[Mapping[type, CelType]] = {bool: BOOL, int: INT, float: DOUBLE, str: STRING, type(None): NULL}
_OPERATORS: Final[Mapping[str, str]] = {
    "[]": "_index",
    "[?]": "_index",
    "!_": "_not",
    "-_": "_negate",
    "?:": "_conditional",
    "+": "_add",
    "in": "_in",
    **dict.fromkeys(("==", "!="), "_equality"),
    **dict.fromkeys(_ORDERS, "_order"),
    **dict.fromkeys(_ARITHMETIC, "_arithmetic"),
}
