"""The Jinja environment: everything that a template can access.

That is plain data and the functions listed here. Jinja's sandbox decides by name which attributes of Python objects are
safe; here no attribute of a Python object is accessible: fields are looked up in data (`values.lookup`), and methods in
a short table (`values.methods`).
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import jinja2
from jinja2.environment import TemplateModule
from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import TokenStream
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace, missing

from ruleop.core.errors import Site
from ruleop.core.templating.compile.compiler import PASSES, ROWS, UNPACKED, Generator, rows, unpacked
from ruleop.core.templating.compile.tokens import SHELL_LENGTH, STAND_IN, Marked, Printed, mark_up
from ruleop.core.templating.filters.exact_numbers import Exact
from ruleop.core.templating.filters.registry import build_filters, build_tests
from ruleop.core.templating.values.cost import FAULT_BYTES, FAULT_UNITS, MAX_RANGE, METER, Exhausted, exceeded
from ruleop.core.templating.values.data import Lazy
from ruleop.core.templating.values.faults import Fault, reworded
from ruleop.core.templating.values.lookup import field_by_value, field_of, slice_of
from ruleop.core.templating.values.methods import call_on_data
from ruleop.core.templating.values.operators import comparable, contains, given, joined, operate, passes
from ruleop.core.templating.values.text import Slot, SlotPlace, Text
from ruleop.core.templating.values.undefined import OMIT, Broken, UndefinedValue, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType, TracebackType

    from jinja2.nodes import Template as TemplateNode


class TemplateContext(Context):
    """Jinja's context, in which a `Lazy` value is computed when its name is first read."""

    def resolve_or_missing(self, key: str) -> Any:
        value = self.vars.get(key, missing)
        if value is missing:
            value = self.parent.get(key, missing)
        return value.value() if type(value) is Lazy else value


class TemplateFunction:
    """A function that templates may call. Nothing else is callable for them but macros and helpers of Jinja."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function


MAX_DIGITS = (
    1000  # of an integer literal. Python parses at most 4300 digits; the code generator checks the size of the number
)


_RUNTIME = {
    "OMIT": OMIT,
    "Slot": Slot,
    "comparable": comparable,
    "contains": contains,
    "field_by_value": field_by_value,
    "field_of": field_of,
    "joined": joined,
    "slice_of": slice_of,
}
"""The names that generated code uses."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Generated:
    """The code of a template, and the objects to which it refers by number."""

    code: CodeType
    constants: list[Any]


_GENERATED: WeakValueDictionary[tuple[str | Site, str], Generated] = WeakValueDictionary()
"""By place and text. A project that is loaded again generates code only for templates that have changed. What no
project has any more is dropped."""


class CompiledTemplate(jinja2.Template):
    """A template with the literals and places of its code."""

    environment: Environment
    generated: Generated
    units = 0  # of one run, without its loops and macros
    stands_alone: Callable[[], bool] = staticmethod(lambda: False)  # whether its macros depend only on their arguments

    @classmethod
    def build(cls, environment: Environment, generated: Generated, where: str | Site) -> CompiledTemplate:
        namespace: dict[str, Any] = {
            "environment": environment,
            "__file__": str(where),
            "constants": generated.constants,
            "where": where,
            **_RUNTIME,
        }
        exec(generated.code, namespace)  # noqa: S102 - code that the generator has just made
        template: CompiledTemplate = cls._from_namespace(environment, namespace, environment.globals)  # type: ignore[assignment]
        template.generated = generated
        template.units = code_units(template.root_render_func)
        return template

    def _get_default_module(self, ctx: Context | None = None) -> TemplateModule:  # noqa: ARG002 - Jinja's signature; contexts have no globals of their own here
        """The module of the template without a context. Such a module is cached, so it must not contain data of a
        single resource."""
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
        METER.spend(self.units + 2 * len(vars(module)))
        return module


class Environment(ImmutableSandboxedEnvironment):
    template_class = CompiledTemplate
    context_class = TemplateContext
    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})
    concat = Text  # type: ignore[assignment]
    getattr = staticmethod(field_of)  # type: ignore[assignment]
    getitem = staticmethod(field_of)  # type: ignore[assignment]

    def __init__(self, load: Callable[[str], CompiledTemplate], read_captured: Callable[[Any, str], Any]) -> None:
        super().__init__(
            undefined=Unknown,
            autoescape=False,
            keep_trailing_newline=True,
            optimized=False,
            cache_size=0,
            auto_reload=False,
        )
        self.load = load
        self.without_context = 0  # the depth of modules that are being made without a context
        self.constants: dict[str, list[Any]] = {}  # of the compiled templates, by their place
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

    # -- compiling -----------------------------------------------------------------------------------------------------

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

    def build(self, tree: TemplateNode, where: str | Site, text: str | None) -> CompiledTemplate:
        """The template of a file, identified by its path, or of a string of watches.yaml, identified by its site.
        `text` is that of the tree; None if the tree was changed."""
        generated = None if text is None else _GENERATED.get((where, text))
        if generated is None:
            generated = self._generated(tree, str(where))
            if text is not None:
                _GENERATED[where, text] = generated
        self.constants[str(where)] = generated.constants
        return CompiledTemplate.build(self, generated, where)

    def _generated(self, tree: TemplateNode, where: str) -> Generated:
        generator = Generator(self, where, where, code := StringIO(), optimized=self.optimized)
        generator.visit(tree)
        return Generated(compile(code.getvalue(), where, "exec"), generator.constants)

    def get_template(self, name: Any, parent: str | None = None, globals: Any = None) -> CompiledTemplate:  # noqa: A002, ARG002 - Jinja's signature
        return self.load(str(name))

    # -- running -------------------------------------------------------------------------------------------------------

    def include(self, name: Any, context: Any, local: Any, ignore_missing: bool) -> Text:
        METER.spend(8)
        for option in name if isinstance(name, (list, tuple)) else [name]:
            try:
                template = self.load(option)
            except jinja2.TemplateNotFound:
                continue
            if context is None:
                return Text(template._get_default_module()._body_stream)  # noqa: SLF001 - as Jinja's own generated code does
            METER.spend(template.units)
            return Text(template.root_render_func(template.new_context(context.get_all(), True, local)))
        if ignore_missing:
            return Text(())
        raise Fault("none of these templates exists")

    def broken_value(self, error: Exception, place: SlotPlace) -> UndefinedValue:
        """The value of a slot whose expression failed."""
        if isinstance(error, (RecursionError, MemoryError)):
            raise error
        if isinstance(error, Exhausted):
            raise error.at(
                line_of(error.__traceback__.tb_next if error.__traceback__ else None) or place.site, place.expression
            )
        METER.keep(FAULT_BYTES)
        METER.spend(FAULT_UNITS)
        fault = as_fault(error)
        within = line_of(error.__traceback__.tb_next) if error.__traceback__ else None  # inside the slot's own line
        return Broken("", fault.at(within, "") if within else fault)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002 - Jinja's signature
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        kind = type(obj)
        if kind is Macro:
            METER.spend(code_units(obj._func))  # noqa: SLF001 - there is no public way to the code of a macro
        elif kind is LoopContext and args:
            args = (passes(args[0], code_units(obj._recurse)), *args[1:])  # noqa: SLF001 - nor to that of a loop
        else:
            METER.spend(8)
        if kind is TemplateFunction:
            return obj.function(*map(given, args), **{key: given(value) for key, value in kwargs.items()})
        if kind in {Macro, BlockReference, Joiner, LoopContext} or obj is Namespace or obj is Joiner or obj is Cycler:
            return obj(*args, **kwargs)
        if isinstance(obj, UndefinedValue):
            raise obj.fault()
        raise Fault("this is data, not a function")

    def call_method(self, context: Context, obj: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        METER.spend(2)
        if isinstance(obj, UndefinedValue):
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


def code_units(function: Any) -> int:
    """The units of one call of generated code, by its length. Loops in it are charged by themselves."""
    code = getattr(function, "__code__", None)
    return 8 + (sys.getsizeof(code) >> 7)


def bounded_range(*args: Any) -> range:
    numbers = range(*map(_integer, args))
    if len(numbers) > MAX_RANGE:
        raise exceeded("range of {} numbers", len(numbers), MAX_RANGE)
    return numbers


def bounded_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    METER.items(sum(len(arg) for arg in args) + len(kwargs))
    return dict(*args, **kwargs)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float, Exact)) or value != int(value):
        raise Fault("range takes whole numbers")
    return int(value)


_UNPACKING = re.compile(
    r"values to unpack \(expected|cannot unpack non-iterable"
)  # Python's messages, from recursive loops
_MESSAGES_WITHOUT_VALUES = ("takes not more than", "was invoked with two values")  # Jinja's messages about a macro


def as_fault(error: Exception) -> Fault:
    """The error of an expression as a fault, whose message contains no values."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, (TypeError, ValueError)) and _UNPACKING.search(str(error)):
        return Fault("the values do not fit the names that they are unpacked into")
    if isinstance(error, TypeError):
        text = str(error)
        if macro := re.match(r"(macro '\w*' takes no keyword argument) ", text):
            return Fault(f"{macro[1]} of a name that is used here")  # the name may come from a mapping
        if any(words in text for words in _MESSAGES_WITHOUT_VALUES):
            return Fault(text)
        return Fault(reworded(error) or "values of these types cannot be used together here")
    if isinstance(error, jinja2.TemplateError):
        return Fault(str(error.message))
    return Fault(f"this expression failed ({type(error).__name__})")


def line_of(traceback: TracebackType | None) -> Site | None:
    """The template line of an error, from its traceback through generated code."""
    found = None
    while traceback is not None:
        found = template_line(traceback.tb_frame, traceback.tb_lineno) or found
        traceback = traceback.tb_next
    return found


def template_line(frame: FrameType, line: int) -> Site | None:
    """The template line of a line of generated code; None for other code."""
    namespace = frame.f_globals
    if "constants" not in namespace or "debug_info" not in namespace:
        return None
    where = namespace["where"]
    return where if isinstance(where, Site) else Site(where, _template_line(namespace["debug_info"], line))


def _template_line(debug_info: str, line: int) -> int:
    """The template line of a line of code. `debug_info` is a sequence of `template line=code line`, joined by &."""
    template_line = 1
    for pair in debug_info.split("&"):
        left, _, right = pair.partition("=")
        if right and int(right) <= line:
            template_line = int(left)
    return template_line
