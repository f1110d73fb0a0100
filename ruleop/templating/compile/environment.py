"""The Jinja environment: what a template can reach while it runs.

Nothing but plain data and the functions listed here. Jinja's sandbox decides by name which of Python's attributes are safe; here no
attribute of a Python object is reachable at all: a field is looked up in data (`fields`), and a method is one of a short table of our own
(`methods`).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2.environment import TemplateModule
from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import TokenStream
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace, missing

from ruleop.errors import Site
from ruleop.templating.compile.compiler import PASSES, Generator
from ruleop.templating.compile.tokens import SHELL_LENGTH, STAND_IN, Marked, Printed, mark_up
from ruleop.templating.compile.unpacking import ROWS, UNPACKED, rows, unpacked
from ruleop.templating.filters.exact_numbers import Exact
from ruleop.templating.filters.registry import build_filters, build_tests
from ruleop.templating.values.budget import MAX_RANGE, METER, Exhausted
from ruleop.templating.values.data import Lazy
from ruleop.templating.values.faults import Fault
from ruleop.templating.values.lookup import field_by_value, field_of, sliced
from ruleop.templating.values.methods import call_on_data
from ruleop.templating.values.operators import comparable, contains, given, joined, operate, passes
from ruleop.templating.values.text import Place, Slot, Text
from ruleop.templating.values.undefined import OMIT, Absent, Broken, Unknown
from ruleop.templating.values.wording import reworded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, TracebackType

    from jinja2.nodes import Template as TemplateNode


class Scope(Context):
    """Jinja's context, in which a `Lazy` value is worked out when its name is first read."""

    def resolve_or_missing(self, key: str) -> Any:
        value = self.vars.get(key, missing)
        if value is missing:
            value = self.parent.get(key, missing)
        return value.value() if type(value) is Lazy else value


class TemplateFunction:
    """A function that templates may call. Only instances of this, and Jinja's own macros and helpers, are callable for them."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function


MOST_DIGITS = 1000  # of an integer. Python reads no more than 4300; what is too large although it has less is refused by the compiler

_RUNTIME = {
    "OMIT": OMIT,
    "Slot": Slot,
    "comparable": comparable,
    "contains": contains,
    "field_by_value": field_by_value,
    "field_of": field_of,
    "joined": joined,
    "sliced": sliced,
}
"""What our generator's code calls."""


class CompiledTemplate(jinja2.Template):
    """A template whose code has its literals and places beside it."""

    environment: Environment
    stands_alone: Callable[[], bool] = staticmethod(lambda: False)  # whether its macros depend on nothing but their arguments

    @classmethod
    def build(cls, environment: Environment, code: CodeType, where: str | Site, constants: Sequence[Any]) -> CompiledTemplate:
        namespace: dict[str, Any] = {"environment": environment, "__file__": str(where), "constants": constants, "where": where, **_RUNTIME}
        exec(code, namespace)  # noqa: S102 - code that our own compiler has just made
        template: CompiledTemplate = cls._from_namespace(environment, namespace, environment.globals)  # type: ignore[assignment]
        return template

    def _get_default_module(self, ctx: Context | None = None) -> TemplateModule:  # noqa: ARG002 - Jinja's signature; our contexts have no globals of their own
        """What the template is without a context. One that stands alone is made once, so nothing of any one resource may get into it."""
        if self._module is not None:
            return self._module
        self.environment.without_context += 1
        try:
            module = self._make_module()
        finally:
            self.environment.without_context -= 1
        if self.stands_alone():
            self._module = module
        return module

    def make_module(self, *context: Any) -> TemplateModule:
        return self._get_default_module() if self.stands_alone() else self._make_module(*context)

    def _make_module(self, *context: Any) -> TemplateModule:
        module = super().make_module(*context)
        METER.spend(8 + 2 * len(vars(module)))
        return module


class Environment(ImmutableSandboxedEnvironment):
    code_generator_class = Generator
    template_class = CompiledTemplate
    context_class = Scope
    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})
    concat = Text  # type: ignore[assignment]
    getattr = staticmethod(field_of)  # type: ignore[assignment]
    getitem = staticmethod(field_of)  # type: ignore[assignment]

    def __init__(self, load: Callable[[str], CompiledTemplate], read_captured: Callable[[Any, str], Any]) -> None:
        super().__init__(undefined=Unknown, autoescape=False, keep_trailing_newline=True, optimized=False, cache_size=0, auto_reload=False)
        self.load = load
        self.without_context = 0  # how many templates are being made for all resources at once
        self.constants: dict[str, list[Any]] = {}
        self.marked: Marked | None = None
        self.filters = {**build_filters(self, read_captured), PASSES: passes, ROWS: rows, UNPACKED: unpacked}
        self.tests = build_tests(self)  # type: ignore[assignment]
        self.globals = {
            "omit": OMIT,
            "range": TemplateFunction("range", bounded_range),
            "dict": TemplateFunction("dict", bounded_dict),
            "namespace": Namespace,
            "cycler": Cycler,
            "joiner": Joiner,
        }

    # -- compiling -----------------------------------------------------------------------------------------------------------------------

    def _tokenize(self, source: str, name: str | None, filename: str | None = None, state: str | None = None) -> Any:
        if state is not None:
            return super()._tokenize(source, name, filename, state)
        raw = self.lexer.tokeniter(source.replace(SHELL_LENGTH, STAND_IN), name, filename)
        self.marked = mark_up(iter(raw))
        for line, kind, value in self.marked.tokens:
            if (kind == "integer" and len(value) > MOST_DIGITS) or (kind == "float" and math.isinf(float(value))):
                raise TemplateSyntaxError("a number of this size has no use here", line, name, filename)
        return TokenStream(self.lexer.wrap(iter(self.marked.tokens), name, filename), name, filename)

    def printed(self) -> list[Printed]:
        """What the template that was just parsed prints."""
        return self.marked.printed if self.marked else []

    def constants_of(self, name: str) -> list[Any]:
        return self.constants.setdefault(name, [])

    def build(self, tree: TemplateNode, where: str | Site) -> CompiledTemplate:
        """The template of a file, named by its path, or of a string of watches.yaml, named by its site."""
        constants: list[Any] = []
        self.constants[str(where)] = constants
        source = self._generate(tree, str(where), str(where))
        return CompiledTemplate.build(self, compile(source, str(where), "exec"), where, constants)

    def get_template(self, name: Any, parent: str | None = None, globals: Any = None) -> CompiledTemplate:  # noqa: A002, ARG002 - Jinja's signature
        return self.load(str(name))

    # -- running -------------------------------------------------------------------------------------------------------------------------

    def included(self, name: Any, context: Any, local: Any, ignore_missing: bool) -> Text:
        METER.spend(1)
        for option in name if isinstance(name, (list, tuple)) else [name]:
            try:
                template = self.load(option)
            except jinja2.TemplateNotFound:
                continue
            if context is None:
                return Text(template._get_default_module()._body_stream)  # noqa: SLF001 - as Jinja's own generated code does
            return Text(template.root_render_func(template.new_context(context.get_all(), True, local)))
        if ignore_missing:
            return Text(())
        raise Fault("none of the templates named here exists")

    def failed(self, error: Exception, place: Place) -> Absent:
        """What a slot holds whose expression failed."""
        if isinstance(error, (RecursionError, MemoryError)):
            raise error
        if isinstance(error, Exhausted):
            raise error.at(line_of(error.__traceback__.tb_next if error.__traceback__ else None) or place.site, place.expression)
        fault = as_fault(error)
        within = line_of(error.__traceback__.tb_next) if error.__traceback__ else None  # behind the slot's own line
        return Broken("", fault.at(within, "") if within else fault)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002 - Jinja's signature
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        METER.spend(8)
        kind = type(obj)
        if kind is TemplateFunction:
            return obj.function(*map(given, args), **{key: given(value) for key, value in kwargs.items()})
        if kind in {Macro, BlockReference, Joiner, LoopContext} or obj is Namespace or obj is Joiner or obj is Cycler:
            return obj(*args, **kwargs)
        if isinstance(obj, Absent):
            raise obj.fault()
        raise Fault("this is data, not a function")

    def call_method(self, context: Context, obj: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        METER.spend(1)
        if isinstance(obj, Absent):
            raise obj.fault()
        kind = type(obj)
        if kind is LoopContext and name in {"cycle", "changed"}:
            return getattr(obj, name)(*map(comparable, args))
        if kind is Cycler and name in {"next", "reset"}:
            return getattr(obj, name)()
        if kind in {TemplateModule, TemplateReference, Namespace, BlockReference}:
            return self.call(context, field_of(obj, name), *args, **kwargs)
        if isinstance(obj, dict) and isinstance(obj.get(name), (Macro, TemplateFunction)):
            return self.call(context, obj[name], *args, **kwargs)
        return call_on_data(obj, name, args, kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002 - Jinja's signature
        return operate(operator, left, right)


def bounded_range(*args: Any) -> range:
    numbers = range(*map(_integer, args))
    if len(numbers) > MAX_RANGE:
        raise Exhausted(f"range of {len(numbers):,} numbers; at most {MAX_RANGE:,} are allowed")
    return numbers


def bounded_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    METER.items(sum(len(arg) for arg in args) + len(kwargs))
    return dict(*args, **kwargs)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float, Exact)) or value != int(value):
        raise Fault("range takes whole numbers")
    return int(value)


_UNPACKING = re.compile(r"values to unpack \(expected|cannot unpack non-iterable")  # Python's own; the passes of a recursive loop
_SAYS_NO_VALUE = ("takes not more than", "was invoked with two values")  # of a macro; Jinja's own words


def as_fault(error: Exception) -> Fault:
    """Any error of an expression, in words that hold none of its values."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, (TypeError, ValueError)) and _UNPACKING.search(str(error)):
        return Fault("the values do not fit the names that they are unpacked into")
    if isinstance(error, TypeError):
        text = str(error)
        if macro := re.match(r"(macro '\w*' takes no keyword argument) ", text):
            return Fault(f"{macro[1]} of a name that is used here")  # the name may have come out of a mapping
        if any(words in text for words in _SAYS_NO_VALUE):
            return Fault(text)
        return Fault(reworded(error) or "values of these types cannot be used together here")
    if isinstance(error, jinja2.TemplateError):
        return Fault(str(error.message))
    return Fault(f"this expression failed ({type(error).__name__})")


def line_of(traceback: TracebackType | None) -> Site | None:
    """The template line at which an error arose, from the way through Jinja's generated code."""
    found = None
    while traceback is not None:
        namespace = traceback.tb_frame.f_globals
        if "constants" in namespace and "debug_info" in namespace:
            where = namespace["where"]
            found = where if isinstance(where, Site) else Site(where, _template_line(namespace["debug_info"], traceback.tb_lineno))
        traceback = traceback.tb_next
    return found


def _template_line(debug_info: str, line: int) -> int:
    """Jinja says `template line=code line`, in order, joined by &."""
    template_line = 1
    for pair in debug_info.split("&"):
        left, _, right = pair.partition("=")
        if right and int(right) <= line:
            template_line = int(left)
    return template_line
