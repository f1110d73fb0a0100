"""The Jinja environment: its parser, and everything that a template can access.

That is plain data and the functions listed here. No attribute of a Python object is accessible: fields are looked up in
data (`values.lookup`), and methods in a short table (`values.methods`). Nothing is compiled to Python: the parsed
templates are evaluated by `template_tree`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import jinja2
from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace

from ruleop.language.templates.compile.tokens import SHELL_LENGTH, STAND_IN, Marked, Printed, mark_up
from ruleop.language.templates.filters.exact_numbers import Exact
from ruleop.language.templates.filters.registry import build_filters, build_tests
from ruleop.language.templates.values.cost import MAX_RANGE, exceeded
from ruleop.language.templates.values.faults import Fault, reworded
from ruleop.language.templates.values.undefined import OMIT

if TYPE_CHECKING:
    from collections.abc import Callable


class TemplateFunction:
    """A function that templates may call. Nothing else is callable for them but macros and helpers of Jinja."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function


MAX_DIGITS: Final = 1000
"""Of an integer literal. Python parses at most 4300 digits; `hints` checks the size of the number."""


class Environment(ImmutableSandboxedEnvironment):
    # Jinja computes an operation of constants where it only looks for names, unless a sandbox intercepts it.
    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})

    def __init__(self, read_captured: Callable[[Any, str], Any]) -> None:
        super().__init__(autoescape=False, keep_trailing_newline=True, optimized=False, cache_size=0, auto_reload=False)
        self.marked: Marked | None = None
        self.filters = build_filters(self, read_captured)
        self.tests = build_tests(self)  # type: ignore[assignment]
        self.globals = {
            "omit": OMIT,
            "range": TemplateFunction("range", bounded_range),
            "dict": TemplateFunction("dict", dict),
            "namespace": Namespace,
            "cycler": Cycler,
            "joiner": Joiner,
        }

    def _tokenize(self, source: str, name: str | None, filename: str | None = None, state: str | None = None) -> Any:
        if state is not None:
            return super()._tokenize(source, name, filename, state)
        raw = self.lexer.tokeniter(source.replace(SHELL_LENGTH, STAND_IN), name, filename)
        self.marked = mark_up(iter(raw))
        for line, kind, value in self.marked.tokens:
            if (kind == "integer" and len(value) > MAX_DIGITS) or (kind == "float" and math.isinf(float(value))):
                raise TemplateSyntaxError("number too large", line, name, filename)
        return TokenStream(self.lexer.wrap(iter(self.marked.tokens), name, filename), name, filename)

    def printed(self) -> list[Printed]:
        """The printed expressions of the template that was just parsed."""
        return self.marked.printed if self.marked else []


def bounded_range(*args: Any) -> range:
    numbers = range(*map(_integer, args))
    if len(numbers) > MAX_RANGE:
        raise exceeded("range of {} numbers", len(numbers), MAX_RANGE)
    return numbers


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float, Exact)) or value != int(value):
        raise Fault("range takes whole numbers")
    return int(value)


def as_fault(error: Exception) -> Fault:
    """The error of an expression as a fault, whose message contains no values."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, TypeError):
        return Fault(reworded(error) or "values of these types cannot be used together here")
    if isinstance(error, jinja2.TemplateError):
        return Fault(str(error.message))
    return Fault(f"this expression failed ({type(error).__name__})")
