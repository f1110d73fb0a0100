"""The filters and tests that templates may use: Jinja's own, where they are useful for objects and their cost can be
bounded, and ruleop's.

Each is wrapped by `_guarded`: an undefined value raises its fault, captured text is converted to a string, and the size
of input and output is counted. Not offered are Jinja's filters for HTML (`escape`, `safe`, `urlize`, ...), `attr` and
`pprint`, which expose Python objects, and `random`, which would render differently every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import jinja2.filters
import jinja2.tests

from ruleop.core.templating.filters import data_filters, list_filters, text_filters
from ruleop.core.templating.filters.exact_numbers import Exact
from ruleop.core.templating.filters.text_filters import version
from ruleop.core.templating.values.cost import METER, Exhausted, check_size
from ruleop.core.templating.values.data import View, scalar_text
from ruleop.core.templating.values.faults import Fault, reworded
from ruleop.core.templating.values.lookup import reach
from ruleop.core.templating.values.methods import replaced
from ruleop.core.templating.values.operators import comparable, contains, given, printf
from ruleop.core.templating.values.text import Dump, Text
from ruleop.core.templating.values.undefined import UndefinedValue

if TYPE_CHECKING:
    from types import FrameType

    from jinja2 import Environment

Filter = Callable[..., Any]

_TAKES_UNDEFINED = frozenset({"default", "d", "required"})
_MAY_RETURN_ARGUMENT = frozenset({*_TAKES_UNDEFINED, "ternary"})
_TAKES_TEXT = frozenset(
    {"indent", "trim", "default", "d", "from_yaml", "from_json", "to_yaml", "to_nice_yaml", "to_json", "tojson",
     "required"}
)  # fmt: skip
_WALKS_ITEMS = frozenset(
    {"list", "sort", "unique", "min", "max", "sum", "map", "select", "reject", "selectattr", "rejectattr", "batch",
     "slice", "groupby", "items2dict"}
)  # fmt: skip
"""Filters to which text is a list of its characters."""


def _guarded(name: str, function: Filter) -> Filter:
    takes_undefined, takes_text = name in _TAKES_UNDEFINED, name in _TAKES_TEXT
    charge = _items_of_text if name in _WALKS_ITEMS else METER.text
    argument = _unchanged if name in _MAY_RETURN_ARGUMENT else given

    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        if type(value) is str:
            charge(len(value))
        elif not isinstance(value, UndefinedValue):
            value = _counted(value, takes_text=takes_text)
        elif not takes_undefined:
            raise value.fault()
        if args:
            args = tuple(map(argument, args))
        if kwargs:
            kwargs = {key: argument(item) for key, item in kwargs.items()}
        try:
            result = function(value, *args, **kwargs)
        except Fault:
            raise
        except RecursionError:
            raise Exhausted(f"{name}: a value is nested too deeply") from None
        except TypeError as error:
            raise Fault(f"{name}: {reworded(error) or 'cannot use these values'}") from None
        except (ArithmeticError, LookupError, ValueError, jinja2.TemplateError):
            raise Fault(f"{name} cannot use these values") from None
        kind = type(result)
        if kind is str:
            METER.text(len(result))
        elif kind is list:
            METER.items(len(result))
        elif kind is int or kind is Exact:
            check_size(result)
        return result

    return call


def filter_of(frame: FrameType) -> str:
    """The name of the filter whose call the frame is; "" for other frames."""
    return str(frame.f_locals["name"]) if frame.f_code.co_qualname == f"{_guarded.__name__}.<locals>.call" else ""


def _items_of_text(length: int) -> None:
    METER.text(length)
    METER.items(length)
    METER.entries(length)


def _counted(value: Any, *, takes_text: bool) -> Any:
    """The input of a filter, with its size counted."""
    if isinstance(value, (Text, Dump)):
        if not takes_text:
            value = value.as_text()
            METER.text(len(value))
    elif hasattr(value, "__len__"):
        METER.items(len(value))
    else:
        check_size(value)
        METER.spend(1)
    return value


def _unchanged(value: Any) -> Any:
    return value


# -- undefined values --------------------------------------------------------------------------------------------------


def default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    if isinstance(value, UndefinedValue) or (boolean and not value):
        return default_value
    return value


def required(value: Any, message: Any = "a value is required here") -> Any:
    if isinstance(value, UndefinedValue):
        fault = value.fault()
        raise fault if fault.kind == "later" else Fault(scalar_text(message), redacted="a value is required here")
    if value is None or (isinstance(value, (str, Text)) and not value):
        raise Fault(scalar_text(message))
    return value


def ternary(value: Any, true_val: Any, false_val: Any, none_val: Any = None) -> Any:
    if value is None and none_val is not None:
        return none_val
    return true_val if value else false_val


# -- filters and tests by name -----------------------------------------------------------------------------------------


def map_(environment: Environment, value: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
    if "attribute" in kwargs:
        attribute = kwargs.pop("attribute")
        fallback = kwargs.pop("default", None)
        if kwargs or args:
            raise Fault("map takes attribute='...' and default=..., or the name of a filter and its arguments")
        if fallback is None:
            return list(list_filters.attributes(value, attribute))
        return [default(reach(item, attribute), fallback) for item in value]
    name, *rest = args or [""]
    filter_ = cast("Filter | None", environment.filters.get(str(name)))
    if filter_ is None:
        raise Fault("map takes attribute='...', or the name of an existing filter")
    return [filter_(item, *rest, **kwargs) for item in value]


def _item_test(environment: Environment, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], bool]:
    if not args:
        return bool
    name, *rest = args
    test = cast("Callable[..., bool] | None", environment.tests.get(str(name)))
    if test is None:
        raise Fault("unknown test")
    return lambda item: bool(test(item, *rest, **kwargs))


def _tests_definedness(args: tuple[Any, ...]) -> bool:
    return bool(args) and args[0] in {"defined", "undefined"}


def select(environment: Environment, value: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
    test = _item_test(environment, args, kwargs)
    return [item for item in value if test(item)]


def reject(environment: Environment, value: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
    test = _item_test(environment, args, kwargs)
    return [item for item in value if not test(item)]


def selectattr(environment: Environment, value: Iterable[Any], attribute: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """The items whose attribute passes the test. Items without the attribute do not."""
    test, takes_undefined = _item_test(environment, args, kwargs), _tests_definedness(args)
    pairs = ((item, reach(item, attribute)) for item in value)
    return [item for item, found in pairs if (takes_undefined or not isinstance(found, UndefinedValue)) and test(found)]


def rejectattr(environment: Environment, value: Iterable[Any], attribute: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """The items whose attribute does not pass the test, and those without the attribute."""
    test, takes_undefined = _item_test(environment, args, kwargs), _tests_definedness(args)
    pairs = ((item, reach(item, attribute)) for item in value)
    return [
        item for item, found in pairs if (isinstance(found, UndefinedValue) and not takes_undefined) or not test(found)
    ]


def round_(value: Any, precision: int = 0, method: str = "common") -> float:
    if not -20 <= int(precision) <= 20:
        raise Fault("round takes a precision from -20 to 20")
    return jinja2.filters.do_round(float(value), int(precision), method)  # type: ignore[arg-type]


_FILTERS: dict[str, Filter] = {
    "default": default, "d": default, "required": required,
    "string": scalar_text, "indent": text_filters.indent, "trim": text_filters.trim, "center": text_filters.center,
    "format": printf, "split": text_filters.split, "quote": text_filters.quote, "shell_quote": text_filters.shell_quote,
    "join": text_filters.join, "replace": replaced, "wordwrap": text_filters.wordwrap,
    "urlencode": text_filters.urlencode, "regex_match": text_filters.regex_match,
    "regex_replace": text_filters.regex_replace, "regex_findall": text_filters.regex_findall,
    "regex_search": text_filters.regex_search, "regex_escape": text_filters.regex_escape,
    "basename": text_filters.basename, "dirname": text_filters.dirname,
    "list": list, "first": list_filters.first, "last": list_filters.last, "items": list_filters.items,
    "dictsort": list_filters.dictsort, "reverse": list_filters.reverse, "sort": list_filters.sort,
    "unique": list_filters.unique, "min": list_filters.least, "max": list_filters.greatest, "sum": list_filters.total,
    "groupby": list_filters.groupby, "batch": list_filters.batch, "slice": list_filters.slices,
    "dict2items": list_filters.dict2items, "items2dict": list_filters.items2dict, "difference": list_filters.difference,
    "intersect": list_filters.intersect, "union": list_filters.union,
    "symmetric_difference": list_filters.symmetric_difference, "flatten": list_filters.flatten,
    "zip": list_filters.zipped, "zip_longest": list_filters.zipped_to_longest, "product": list_filters.product,
    "subelements": list_filters.subelements, "keep_keys": list_filters.keep_keys, "pick": list_filters.keep_keys,
    "remove_keys": list_filters.remove_keys, "ternary": ternary, "bool": data_filters.boolean, "round": round_,
    "combine": data_filters.combine, "to_yaml": data_filters.to_yaml,
    "to_nice_yaml": data_filters.to_nice_yaml, "to_json": data_filters.to_json,
    "tojson": data_filters.to_json, "b64encode": data_filters.b64encode, "b64decode": data_filters.b64decode,
    "sha256": data_filters.sha256, "sha1": data_filters.sha1, "hash": data_filters.digest,
    "dns_label": data_filters.dns_label, "quantity": data_filters.quantity,
    "condition": data_filters.condition, "ip_network": data_filters.ip_network, "host": data_filters.host,
    "ip_in": data_filters.ip_in,
}  # fmt: skip
_BY_NAME: dict[str, Filter] = {
    "map": map_,
    "select": select,
    "reject": reject,
    "selectattr": selectattr,
    "rejectattr": rejectattr,
    "truncate": cast("Filter", jinja2.filters.do_truncate),
}
"""Filters whose first argument is the environment."""
_JINJA_FILTERS = (
    "abs",
    "capitalize",
    "count",
    "filesizeformat",
    "float",
    "int",
    "length",
    "lower",
    "title",
    "upper",
    "wordcount",
)


FILTER_NAMES = frozenset({*_FILTERS, *_BY_NAME, *_JINJA_FILTERS, "from_yaml", "from_json"})


def _same_everywhere() -> dict[str, Filter]:
    """The filters that need nothing of a project."""
    functions = {**_FILTERS, **{name: cast("Filter", jinja2.filters.FILTERS[name]) for name in _JINJA_FILTERS}}
    return {name: _guarded(name, function) for name, function in functions.items()}


_SHARED = _same_everywhere()


def build_filters(environment: Environment, read_captured: Callable[[Any, str], Any]) -> dict[str, Filter]:
    functions: dict[str, Filter] = {name: partial(function, environment) for name, function in _BY_NAME.items()}
    functions["from_yaml"] = lambda value: read_captured(value, "from_yaml")
    functions["from_json"] = partial(data_filters.from_json, read_captured)
    return {**_SHARED, **{name: _guarded(name, function) for name, function in functions.items()}}


_JINJA_TESTS = cast("dict[str, Callable[..., Any]]", jinja2.tests.TESTS)
_TESTS = (
    "none", "boolean", "false", "true", "integer", "float", "string", "mapping", "number", "iterable", "sameas",
    "==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", "<", "lt", "lessthan", ">=", "ge", "<=", "le",
)  # fmt: skip
_TESTS_BY_NAME = ("filter", "test")  # whether there is one of this name


def _tested(function: Callable[..., Any]) -> Callable[..., bool]:
    def call(value: Any, *args: Any) -> bool:
        METER.spend(3)
        return bool(function(comparable(given(value)), *(comparable(given(arg)) for arg in args)))

    return call


def _tested_case(test: Callable[..., bool]) -> Callable[..., bool]:
    def call(value: Any) -> bool:
        text = scalar_text(given(value))
        METER.read(len(text))
        return test(text)

    return call


def _tested_number(function: Callable[..., Any]) -> Callable[..., bool]:
    """A test by `%`, which would format text."""
    test = _tested(function)

    def call(value: Any, *args: Any) -> bool:
        if isinstance(given(value), str):
            raise Fault("this test takes a number, not text")
        return test(value, *args)

    return call


_TESTS_LIKE_FILTERS: dict[str, Filter] = {
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

_SHARED_TESTS: dict[str, Callable[..., bool]] = {
    **{name: _tested(_JINJA_TESTS[name]) for name in _TESTS},
    **{name: _tested_number(_JINJA_TESTS[name]) for name in ("odd", "even", "divisibleby")},
    **{name: _guarded(name, test) for name, test in _TESTS_LIKE_FILTERS.items()},
    "lower": _tested_case(str.islower),
    "upper": _tested_case(str.isupper),
    "sameas": lambda value, other: given(value) is given(other),
    "mapping": lambda value: isinstance(given(value), Mapping),
    "in": contains,
    "defined": lambda value: not isinstance(value, UndefinedValue),
    "undefined": lambda value: isinstance(value, UndefinedValue),
    "sequence": lambda value: (
        isinstance(given(value), (list, tuple, range, str))
        or (isinstance(value, View) and isinstance(value.data, list))
    ),
}


def build_tests(environment: Environment) -> dict[str, Callable[..., bool]]:
    by_name = {name: _tested(partial(_JINJA_TESTS[name], environment)) for name in _TESTS_BY_NAME}
    return {**_SHARED_TESTS, **by_name}
