"""The filters and tests that templates may use: Jinja's own, where they are useful for objects and their cost can be
bounded, and ruleop's. All that is known of them is declared here, and beside the functions of the other modules.

Each is wrapped by `_guarded`: an undefined value raises its fault, captured text is converted to a string, and the size
of input and output is counted. Not offered are Jinja's filters for HTML (`escape`, `safe`, `urlize`, ...), `attr` and
`pprint`, which expose Python objects, and `random`, which would render differently every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import jinja2.filters
import jinja2.tests
from jinja2.defaults import DEFAULT_POLICIES
from jinja2.utils import Cycler, Joiner, Namespace

from ruleop.language.templates.declarations import DeclaredFilter, DeclaredTest, Filters, Trait, declared_kinds
from ruleop.language.templates.filters import data_filters, list_filters, text_filters
from ruleop.language.templates.filters.data_filters import Exact
from ruleop.language.templates.filters.list_filters import SIZED
from ruleop.language.templates.filters.text_filters import version
from ruleop.language.templates.values.cost import MAX_RANGE, Exhausted, called, exceeded, read_size
from ruleop.language.templates.values.data import View, scalar_text
from ruleop.language.templates.values.faults import Fault, reworded
from ruleop.language.templates.values.operators import comparable, contains, given, printf, reach, replaced
from ruleop.language.templates.values.text import Dump, Text
from ruleop.language.templates.values.undefined import OMIT, UndefinedValue

if TYPE_CHECKING:
    from types import FrameType


def _guarded(name: str, function: Callable[..., Any], traits: Trait = Trait.NONE) -> Callable[..., Any]:
    takes_undefined, takes_text = Trait.TAKES_UNDEFINED in traits, Trait.KEEPS_TEXT in traits
    by_character = Trait.WALKS_ITEMS in traits
    argument = _unchanged if Trait.GIVES_ARGUMENT in traits else given

    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, UndefinedValue):
            if not takes_undefined:
                raise value.fault()
            size = 0
        elif isinstance(value, (Text, Dump)) and takes_text:
            size = 0
        else:
            value = given(value)
            size = read_size(value, by_character=by_character)
        if args:
            args = tuple(map(argument, args))
        if kwargs:
            kwargs = {key: argument(item) for key, item in kwargs.items()}
        try:
            return called(name, function, (value, *args), kwargs, size)
        except Fault:
            raise
        except RecursionError:
            raise Exhausted(f"{name}: a value is nested too deeply") from None
        except TypeError as error:
            raise Fault(f"{name}: {reworded(error) or 'cannot use these values'}") from None
        except (ArithmeticError, LookupError, ValueError, jinja2.TemplateError):
            raise Fault(f"{name} cannot use these values") from None

    return call


def filter_of(frame: FrameType) -> str:
    """The name of the filter whose call the frame is; "" for other frames."""
    return str(frame.f_locals["name"]) if frame.f_code.co_qualname == f"{_guarded.__name__}.<locals>.call" else ""


def _unchanged(value: Any) -> Any:
    return value


_OWN: Final = Filters()

# -- undefined values --------------------------------------------------------------------------------------------------

_OF_UNDEFINED: Final = Trait.TAKES_UNDEFINED | Trait.GIVES_ARGUMENT | Trait.KEEPS_TEXT


@_OWN.declare("default d", traits=_OF_UNDEFINED | Trait.SAME_ITEMS)
def default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    if isinstance(value, UndefinedValue) or (boolean and not value):
        return default_value
    return value


@_OWN.declare("required", traits=_OF_UNDEFINED, example=("spec.image | required('say which image')", '"1.20"'))
def required(value: Any, message: Any = "a value is required here") -> Any:
    """The value; an error with this message if it is missing, null or empty."""
    if isinstance(value, UndefinedValue):
        fault = value.fault()
        raise fault if fault.kind == "later" else Fault(scalar_text(message), redacted="a value is required here")
    if value is None or (isinstance(value, (str, Text)) and not value):
        raise Fault(scalar_text(message))
    return value


@_OWN.declare("ternary", traits=Trait.GIVES_ARGUMENT, example=("(spec.size > 2) | ternary('big', 'small')", "big"))
def ternary(value: Any, true_val: Any, false_val: Any, none_val: Any = None) -> Any:
    """The first if the value is true, else the second; the third, if given, for null."""
    if value is None and none_val is not None:
        return none_val
    return true_val if value else false_val


# -- filters and tests by name -----------------------------------------------------------------------------------------


@_OWN.declare("map", SIZED, "list", Trait.WALKS_ITEMS | Trait.TAKES_ATTRIBUTE, needs="callables")
def map_(callables: Callables, value: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
    if "attribute" in kwargs:
        attribute = kwargs.pop("attribute")
        fallback = kwargs.pop("default", None)
        if kwargs or args:
            raise Fault("map takes attribute='...' and default=..., or the name of a filter and its arguments")
        if fallback is None:
            return list(list_filters.attributes(value, attribute))
        return [default(reach(item, attribute), fallback) for item in value]
    name, *rest = args or [""]
    filter_ = callables.filters.get(str(name))
    if filter_ is None:
        raise Fault("map takes attribute='...', or the name of an existing filter")
    return [filter_(item, *rest, **kwargs) for item in value]


def _item_test(callables: Callables, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], bool]:
    if not args:
        return bool
    name, *rest = args
    test = callables.tests.get(str(name))
    if test is None:
        raise Fault("unknown test")
    return lambda item: bool(test(item, *rest, **kwargs))


_BY_ATTRIBUTE: Final = Trait.WALKS_ITEMS | Trait.SAME_ITEMS | Trait.TAKES_ATTRIBUTE


def _tests_definedness(args: tuple[Any, ...]) -> bool:
    return bool(args) and args[0] in {"defined", "undefined"}


@_OWN.declare("select", SIZED, "list", Trait.WALKS_ITEMS | Trait.SAME_ITEMS, needs="callables")
def select(callables: Callables, value: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
    test = _item_test(callables, args, kwargs)
    return [item for item in value if test(item)]


@_OWN.declare("reject", SIZED, "list", Trait.WALKS_ITEMS | Trait.SAME_ITEMS, needs="callables")
def reject(callables: Callables, value: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
    test = _item_test(callables, args, kwargs)
    return [item for item in value if not test(item)]


@_OWN.declare("selectattr", SIZED, "list", _BY_ATTRIBUTE, needs="callables")
def selectattr(callables: Callables, value: Iterable[Any], attribute: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """The items whose attribute passes the test. Items without the attribute do not."""
    test, takes_undefined = _item_test(callables, args, kwargs), _tests_definedness(args)
    pairs = ((item, reach(item, attribute)) for item in value)
    return [item for item, found in pairs if (takes_undefined or not isinstance(found, UndefinedValue)) and test(found)]


@_OWN.declare("rejectattr", SIZED, "list", _BY_ATTRIBUTE, needs="callables")
def rejectattr(callables: Callables, value: Iterable[Any], attribute: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """The items whose attribute does not pass the test, and those without the attribute."""
    test, takes_undefined = _item_test(callables, args, kwargs), _tests_definedness(args)
    pairs = ((item, reach(item, attribute)) for item in value)
    return [
        item for item, found in pairs if (isinstance(found, UndefinedValue) and not takes_undefined) or not test(found)
    ]


@_OWN.declare("round", "scalar", "number")
def round_(value: Any, precision: int = 0, method: str = "common") -> float:
    if not -20 <= int(precision) <= 20:
        raise Fault("round takes a precision from -20 to 20")
    return jinja2.filters.do_round(float(value), int(precision), method)  # type: ignore[arg-type]


_of_jinja = cast("dict[str, Callable[..., Any]]", jinja2.filters.FILTERS)
FILTERS: Final[Mapping[str, DeclaredFilter]] = {
    **text_filters.FILTERS,
    **list_filters.FILTERS,
    **data_filters.FILTERS,
    **_OWN,
    "string": DeclaredFilter(scalar_text, "scalar", "string", Trait.SAME_TRUTH),
    "format": DeclaredFilter(printf, "string", "string"),
    "replace": DeclaredFilter(replaced, "scalar", "string"),
    "truncate": DeclaredFilter(_of_jinja["truncate"], needs="callables"),
    "list": DeclaredFilter(list, SIZED, "list", Trait.WALKS_ITEMS | Trait.SAME_ITEMS | Trait.SAME_TRUTH),
    "abs": DeclaredFilter(_of_jinja["abs"], "boolean or number", "number"),
    "float": DeclaredFilter(_of_jinja["float"], gives="number"),
    **{name: DeclaredFilter(_of_jinja[name], gives="integer") for name in ("int", "wordcount")},
    **{
        name: DeclaredFilter(_of_jinja[name], SIZED, "integer", Trait.CHECKSUM | Trait.SAME_TRUTH)
        for name in ("length", "count")
    },
    **{
        name: DeclaredFilter(_of_jinja[name], gives="string")
        for name in ("capitalize", "filesizeformat", "lower", "title", "upper")
    },
}
FILTER_NAMES: Final = frozenset(FILTERS)


def filters_with(trait: Trait) -> frozenset[str]:
    return frozenset(name for name, each in FILTERS.items() if trait in each.traits)


def filters_that_give(kinds: frozenset[str]) -> frozenset[str]:
    """The filters that give nothing but values of these kinds."""
    return frozenset(name for name, each in FILTERS.items() if declared_kinds(each.gives) <= kinds)


_SHARED: Final = {name: _guarded(name, each.function, each.traits) for name, each in FILTERS.items() if not each.needs}
"""The filters that need nothing of a project."""


def build_filters(callables: Callables, read_captured: Callable[[Any, str], Any]) -> dict[str, Callable[..., Any]]:
    given_as: Mapping[str, object] = {"callables": callables, "read_captured": read_captured}
    bound = {name: partial(each.function, given_as[each.needs]) for name, each in FILTERS.items() if each.needs}
    return {**_SHARED, **{name: _guarded(name, each, FILTERS[name].traits) for name, each in bound.items()}}


_JINJA_TESTS = cast("dict[str, Callable[..., Any]]", jinja2.tests.TESTS)


def _tested(function: Callable[..., Any]) -> Callable[..., bool]:
    def call(value: Any, *args: Any) -> bool:
        return bool(function(comparable(given(value)), *(comparable(given(arg)) for arg in args)))

    return call


def _tested_case(test: Callable[..., bool]) -> Callable[..., bool]:
    def call(value: Any) -> bool:
        text = scalar_text(given(value))
        return bool(called("is", test, (text,), {}, read_size(text)))

    return call


def _tested_number(function: Callable[..., Any]) -> Callable[..., bool]:
    """A test by `%`, which would format text."""
    test = _tested(function)

    def call(value: Any, *args: Any) -> bool:
        if isinstance(given(value), str):
            raise Fault("this test takes a number, not text")
        return test(value, *args)

    return call


_LIKE_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "version": version,
    "match": text_filters.matches_at_start,
    "search": text_filters.regex_match,
    "contains": lambda value, item: contains(item, value),
    "subset": lambda value, other: not list_filters.difference(value, other),
    "superset": lambda value, other: not list_filters.difference(other, value),
    "ip_in": data_filters.ip_in,
    "ip_address": data_filters.is_address,
    "ipv4_address": lambda value: data_filters.is_address(value, 4),
    "ipv6_address": lambda value: data_filters.is_address(value, 6),
}
"""Tests whose work depends on the size of their values, by Ansible's names."""

_COMPARING: Final = {
    "eq": "== eq equalto", "ne": "!= ne", "gt": "> gt greaterthan", "lt": "< lt lessthan", "gteq": ">= ge",
    "lteq": "<= le",
}  # fmt: skip
TESTS: Final[Mapping[str, DeclaredTest]] = {
    **{
        name: DeclaredTest(_tested(_JINJA_TESTS[name]), compares=operator)
        for operator, names in _COMPARING.items()
        for name in names.split()
    },
    "in": DeclaredTest(contains, compares="in"),
    "none": DeclaredTest(_tested(_JINJA_TESTS["none"]), "null"),
    **{name: DeclaredTest(_tested(_JINJA_TESTS[name]), name) for name in ("boolean", "integer", "string")},
    **{name: DeclaredTest(_tested(_JINJA_TESTS[name])) for name in ("false", "true", "float", "number", "iterable")},
    **{name: DeclaredTest(_tested_number(_JINJA_TESTS[name])) for name in ("odd", "even", "divisibleby")},
    **{name: DeclaredTest(_JINJA_TESTS[name], needs="callables") for name in ("filter", "test")},
    "lower": DeclaredTest(_tested_case(str.islower)),
    "upper": DeclaredTest(_tested_case(str.isupper)),
    "sameas": DeclaredTest(lambda value, other: given(value) is given(other)),
    "mapping": DeclaredTest(lambda value: isinstance(given(value), Mapping), "mapping"),
    "defined": DeclaredTest(lambda value: not isinstance(value, UndefinedValue)),
    "undefined": DeclaredTest(lambda value: isinstance(value, UndefinedValue)),
    "sequence": DeclaredTest(
        lambda value: (
            isinstance(given(value), (list, tuple, range, str))
            or (isinstance(value, View) and isinstance(value.data, list))
        )
    ),
    **{name: DeclaredTest(_guarded(name, test)) for name, test in _LIKE_FILTERS.items()},
}


def build_tests(callables: Callables) -> dict[str, Callable[..., bool]]:
    return {
        name: _tested(partial(each.function, callables)) if each.needs else each.function
        for name, each in TESTS.items()
    }


# -- callables ---------------------------------------------------------------------------------------------------------
#
# The names that templates may call: filters, tests, and the functions that are the same for all renders.
#
# Templates access plain data and these. No attribute of a Python object is accessible: fields are looked up in data,
# and methods in a short table (`values.operators`).


class TemplateFunction:
    """A function that templates may call. Nothing else is callable for them but macros and helpers of Jinja."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function


class Callables:
    policies: Final = DEFAULT_POLICIES  # of Jinja's filters

    def __init__(self, read_file: Callable[[Any], str], read_captured: Callable[[Any, str], Any]) -> None:
        """`read_file`: the text of a file, by its name. `read_captured`: the data of captured text."""
        self.filters: dict[str, Callable[..., Any]] = build_filters(self, read_captured)
        self.tests: dict[str, Callable[..., bool]] = build_tests(self)
        self.functions: Final = {
            "omit": OMIT,
            "range": TemplateFunction("range", bounded_range),
            "dict": TemplateFunction("dict", dict),
            "namespace": Namespace,
            "cycler": Cycler,
            "joiner": Joiner,
            "file": TemplateFunction("file", read_file),
        }


def bounded_range(*args: Any) -> range:
    numbers = range(*map(_integer, args))
    if len(numbers) > MAX_RANGE:
        raise exceeded("range of {} numbers", len(numbers), MAX_RANGE)
    return numbers


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float, Exact)) or value != int(value):
        raise Fault("range takes whole numbers")
    return int(value)
