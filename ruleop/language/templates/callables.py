"""The names that templates may call: filters, tests, and the functions that are the same for all renders.

Templates access plain data and these. No attribute of a Python object is accessible: fields are looked up in data
(`values.lookup`), and methods in a short table (`values.methods`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jinja2.defaults import DEFAULT_POLICIES
from jinja2.utils import Cycler, Joiner, Namespace

from ruleop.language.templates.filters.exact_numbers import Exact
from ruleop.language.templates.filters.registry import build_filters, build_tests
from ruleop.language.templates.values.cost import MAX_RANGE, exceeded
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.undefined import OMIT

if TYPE_CHECKING:
    from collections.abc import Callable


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
