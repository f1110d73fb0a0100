"""The Jinja environment: what a template can reach while it runs.

Nothing but plain data and the functions listed here. Jinja's sandbox decides by name which of Python's attributes are safe; here no attribute of
a Python object is reachable at all: a field is looked up in data, and a method is one of a short table of our own. One `Environment` renders one
thing at a time, from one thread, because the budget of the render at hand is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import jinja2
from jinja2.nodes import Template as TemplateNode
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, TemplateReference, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace, missing

from ruleop.templating.budget import MAX_BITS, MAX_RANGE, Budget, Exhausted
from ruleop.templating.compiler import PASSES, Generator
from ruleop.templating.filters import build_filters, build_tests, format_text
from ruleop.templating.methods import METHODS
from ruleop.templating.quantity import Exact
from ruleop.templating.syntax import SHELL_LENGTH, STAND_IN, Marked, mark_up
from ruleop.templating.text import Dump, Lit, Place, Slot, Text
from ruleop.templating.values import (
    OMIT,
    Absent,
    Broken,
    Fault,
    Lazy,
    ListView,
    MapView,
    Missing,
    Unknown,
    View,
    plain,
    scalar_text,
)

LOOP_FIELDS = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem"})


class Scope(Context):
    """Jinja's context, in which a `Lazy` value is worked out when its name is first read."""

    def resolve_or_missing(self, key: str) -> Any:
        value = self.vars.get(key, missing)
        if value is missing:
            value = self.parent.get(key, missing)
        return value.value() if type(value) is Lazy else value


class Callable_(object):  # noqa: N801, UP004
    """A function that templates may call. Only instances of this, and Jinja's own macros and helpers, are callable for them."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function


class CompiledTemplate(jinja2.Template):
    """A template whose code has its literals and places beside it."""

    environment: Environment

    @classmethod
    def build(cls, environment: Environment, code: CodeType, name: str, constants: Sequence[Any]) -> CompiledTemplate:
        namespace: dict[str, Any] = {
            "environment": environment,
            "__file__": name,
            "constants": constants,
            "Slot": Slot,
            "OMIT": OMIT,
        }
        exec(code, namespace)  # noqa: S102 - code that our own compiler has just made
        template: CompiledTemplate = cls._from_namespace(environment, namespace, environment.globals)  # type: ignore[assignment]
        return template


class Environment(ImmutableSandboxedEnvironment):
    code_generator_class = Generator
    template_class = CompiledTemplate
    context_class = Scope
    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})

    def __init__(self, load: Callable[[str], CompiledTemplate], read_captured: Callable[[Any, str], Any]) -> None:
        super().__init__(undefined=Unknown, autoescape=False, keep_trailing_newline=True, optimized=False, cache_size=0, auto_reload=False)
        self.budget = Budget()
        self.load = load
        self.read_captured = read_captured
        self.concat = Text  # type: ignore[assignment]
        self.constants: dict[str, list[Any]] = {}
        self.marked: Marked | None = None
        self.filters = build_filters(self)  # type: ignore[assignment]
        self.filters[PASSES] = self.passes
        self.tests = build_tests(self)  # type: ignore[assignment]
        self.globals = {
            "omit": OMIT,
            "range": Callable_("range", self.range),
            "dict": Callable_("dict", dict),
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
        from jinja2.lexer import TokenStream

        return TokenStream(self.lexer.wrap(iter(self.marked.tokens), name, filename), name, filename)

    def constants_of(self, name: str) -> list[Any]:
        return self.constants.setdefault(name, [])

    def build(self, tree: TemplateNode, path: str) -> CompiledTemplate:
        self.constants[path] = constants = []
        source = self._generate(tree, path, path)
        return CompiledTemplate.build(self, compile(source, path, "exec"), path, constants)

    def get_template(self, name: Any, parent: str | None = None, globals: Any = None) -> CompiledTemplate:  # noqa: A002, ARG002
        return self.load(str(name))

    # -- running -------------------------------------------------------------------------------------------------------------------------

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        kind = type(obj)
        if kind is MapView or kind is ListView:
            if isinstance(argument, (Text, Dump, Absent)):
                argument = scalar_text(argument)
            return obj.field(argument)
        if isinstance(obj, Absent):
            return obj.step(argument)
        if isinstance(argument, Absent):
            raise argument.fault()
        if isinstance(argument, (Text, Dump)):
            argument = argument.as_text()
        if isinstance(obj, View):
            return obj.field(argument)
        if isinstance(obj, (dict, list, tuple, str)):
            return self._inside(obj, argument)
        if kind is LoopContext and argument in LOOP_FIELDS:
            return getattr(obj, argument)
        if kind is Namespace:
            try:
                return obj[argument]
            except KeyError:
                return Missing(f"namespace.{argument}")
        if isinstance(obj, jinja2.environment.TemplateModule):
            return obj.__dict__.get(argument, Missing(f"{obj.__name__}: {argument}")) if not str(argument).startswith("_") else self._no_field(obj, argument)
        if kind is TemplateReference:
            return obj[argument]
        if kind is BlockReference and argument == "super":
            return obj.super
        if kind is Cycler and argument == "current":
            return obj.current
        return self._no_field(obj, argument)

    def _inside(self, obj: Any, argument: Any) -> Any:
        """A field of a mapping, list or text that the template made itself."""
        if isinstance(obj, (list, tuple)) and isinstance(argument, str) and argument.isdigit():
            argument = int(argument)
        try:
            return obj[argument]
        except (LookupError, TypeError):
            pass
        if isinstance(obj, dict):
            return Missing(f"the key {argument!r}" if isinstance(argument, (str, int)) else "a key")
        return self._no_field(obj, argument)

    def _no_field(self, obj: Any, argument: Any) -> Absent:
        what = {str: "text", Lit: "text", Text: "text", int: "a number", float: "a number", bool: "a boolean", list: "a list", type(None): "null"}.get(
            type(obj), "this"
        )
        return Broken(str(argument), Fault(f"{what} has no field {argument}" if isinstance(argument, (str, int)) else f"{what} has no such field"))

    def reach(self, item: Any, attribute: Any) -> Any:
        """`a.b.0.c` of an item, as `map` and `sort` name it."""
        parts = attribute.split(".") if isinstance(attribute, str) else [attribute]
        for part in parts:
            item = self.getitem(item, part)
        return item

    def sliced(self, obj: Any, start: Any, stop: Any, step: Any) -> Any:
        if isinstance(obj, Absent):
            raise obj.fault()
        if isinstance(obj, (Text, Dump)):
            obj = obj.as_text()
        if not isinstance(obj, (str, list, tuple, ListView)):
            raise Fault("only text and lists have slices")
        self.budget.spend(1 + len(obj) // 64)
        return obj[slice(*(None if part is None else int(part) for part in (start, stop, step)))]

    def haystack(self, needle: Any, haystack: Any) -> Any:
        for value in (needle, haystack):
            if isinstance(value, Absent):
                raise value.fault()
        if isinstance(haystack, (Text, Dump)):
            return haystack.as_text()
        if isinstance(haystack, (str, list, tuple, dict, View, range)):
            self.budget.spend(1 + len(haystack) // 64)
            return haystack
        if isinstance(haystack, Iterable):
            return list(self.passes(haystack))
        raise Fault("`in` looks into text, lists and mappings")

    def passes(self, value: Any) -> Any:
        """What a loop goes over, each pass counted."""
        if isinstance(value, Absent):
            raise value.fault()
        if isinstance(value, (str, Text, Dump, list, tuple, range, dict, View)):
            self.budget.spend(len(value))
            return value
        if isinstance(value, Iterable):
            return self._counted(value)
        raise Fault(f"a loop needs a list or a mapping, not {'null' if value is None else 'a ' + type(value).__name__}")

    def _counted(self, value: Iterable[Any]) -> Iterator[Any]:
        for item in value:
            self.budget.spend(1)
            yield item

    def concatenated(self, values: tuple[Any, ...]) -> Any:
        """`a ~ b`: text; still template text if one of the two was."""
        if any(isinstance(value, Text) for value in values):
            parts: list[Any] = []
            for value in values:
                parts.extend(value.parts if isinstance(value, Text) and not value.indent_by else [Slot(value, NOWHERE)])
            return Text(parts)
        texts = [scalar_text(value) for value in values]
        self.budget.text(sum(map(len, texts)))
        return "".join(texts)

    def included(self, name: Any, context: Any, local: Any, ignore_missing: bool) -> Text:
        self.budget.spend(1)
        names = name if isinstance(name, (list, tuple)) else [name]
        for option in names:
            try:
                template = self.load(option)
            except jinja2.TemplateNotFound:
                continue
            if context is None:
                return Text(template._get_default_module()._body_stream)  # noqa: SLF001
            return Text(template.root_render_func(template.new_context(context.get_all(), True, local)))
        if ignore_missing:
            return Text(())
        raise Fault(f"there is no template {names[0]!r}")

    def failed(self, error: Exception) -> Absent:
        """What a slot holds whose expression failed."""
        if isinstance(error, (Exhausted, RecursionError)):
            raise error
        return Broken("", as_fault(error))

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        self.budget.spend(1)
        kind = type(obj)
        if kind is Callable_:
            return obj.function(*map(_given, args), **{key: _given(value) for key, value in kwargs.items()})
        if kind is Macro:
            return obj(*args, **kwargs)
        if obj is Namespace or obj is Joiner:
            return obj(*args, **kwargs)
        if obj is Cycler:
            return Cycler(*args)
        if kind in {BlockReference, Joiner, LoopContext}:
            return obj(*args, **kwargs)
        if isinstance(obj, Undefined):
            raise obj.fault() if isinstance(obj, Absent) else Fault("this is not a function")
        raise Fault("this is data, not a function")

    def call_method(self, context: Context, obj: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        self.budget.spend(1)
        if isinstance(obj, Absent):
            raise obj.fault()
        if isinstance(obj, (Text, Dump)):
            obj = obj.as_text()
        kind = type(obj)
        if kind is LoopContext and name in {"cycle", "changed"}:
            return getattr(obj, name)(*args)
        if kind is Cycler and name in {"next", "reset"}:
            return getattr(obj, name)()
        if isinstance(obj, (jinja2.environment.TemplateModule, TemplateReference)) or (kind is BlockReference and name == "super"):
            return self.call(context, self.getitem(obj, name), *args, **kwargs)
        method = METHODS.get((_family(obj), name))
        if method is None:
            field_ = self.getitem(obj, name)
            if isinstance(field_, (Macro, Callable_)):
                return self.call(context, field_, *args, **kwargs)
            known = sorted(known for family, known in METHODS if family == _family(obj))
            raise Fault(f"there is no method {name}() here" + (f"; there are {', '.join(known)}" if known else ""))
        try:
            return method(self.budget, obj, *map(_given, args), **{key: _given(value) for key, value in kwargs.items()})
        except (TypeError, ValueError, LookupError):
            raise Fault(f"{name}() cannot take these arguments") from None

    def range(self, *args: Any) -> range:  # type: ignore[override]
        numbers = range(*(_integer(arg, "range") for arg in args))
        if len(numbers) > MAX_RANGE:
            raise Exhausted(f"range of {len(numbers):,} numbers; at most {MAX_RANGE:,} are allowed")
        return numbers

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        if isinstance(left, Absent):
            raise left.fault()
        if isinstance(right, Absent):
            raise right.fault()
        if operator == "+" and (isinstance(left, (Text, Dump, str)) or isinstance(right, (Text, Dump, str))):
            return self._plus_text(left, right)
        left = left.as_text() if isinstance(left, (Text, Dump)) else left
        right = right.as_text() if isinstance(right, (Text, Dump)) else right
        if operator == "%" and isinstance(left, str):
            given = right if isinstance(right, tuple) else (right,)
            return format_text(left, **plain(right)) if isinstance(right, Mapping) else format_text(left, *given)
        if operator in {"*", "**"}:
            self._check_growth(operator, left, right)
        elif operator == "+" and isinstance(left, (list, tuple, ListView)):
            self.budget.items(len(left) + len(right))
        try:
            result = self.binop_table[operator](left, right)
        except Fault:
            raise
        except TypeError:
            raise Fault(f"{_noun(left)} {operator} {_noun(right)} has no meaning") from None
        except (ArithmeticError, ValueError):
            raise Fault(f"{operator} has no result here (a division by zero, or a number too large)") from None
        if isinstance(result, int) and result.bit_length() > MAX_BITS:
            raise Exhausted("a number grows out of all bounds")
        return result

    def _plus_text(self, left: Any, right: Any) -> Any:
        if not (isinstance(left, (Text, Dump, str)) and isinstance(right, (Text, Dump, str))):
            raise Fault(f"{_noun(left)} + {_noun(right)}: only text can be added to text; join anything with ~")
        return self.concatenated((left, right))

    def _check_growth(self, operator: str, left: Any, right: Any) -> None:
        """Before it is too late: how large `left * right` or `left ** right` will be."""
        for one, other in ((left, right), (right, left)):
            if operator == "*" and isinstance(one, str) and isinstance(other, int):
                self.budget.text(len(one) * max(0, other))
                return
            if operator == "*" and isinstance(one, (list, tuple)) and isinstance(other, int):
                self.budget.items(len(one) * max(0, other))
                return
        if operator == "**" and isinstance(left, (int, float, Exact)) and isinstance(right, (int, float, Exact)):
            bits = int(left).bit_length() if abs(left) < 2.0**MAX_BITS else MAX_BITS
            if abs(right) * max(1, bits) > MAX_BITS:
                raise Exhausted("a power grows out of all bounds")


NOWHERE = Place(None, "")  # type: ignore[arg-type]


def as_fault(error: Exception) -> Fault:
    """Any error of an expression, in words that hold none of its values."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, TypeError):
        text = str(error)
        if "not supported between" in text or "unsupported operand" in text or "argument" in text:
            return Fault(text.replace("MapView", "mapping").replace("ListView", "list").replace("NoneType", "null"))
        return Fault("values of these types cannot be used together here")
    if isinstance(error, ZeroDivisionError):
        return Fault("a division by zero")
    if isinstance(error, jinja2.TemplateError):
        return Fault(str(error.message))
    return Fault(f"this expression failed ({type(error).__name__})")


def _given(value: Any) -> Any:
    if isinstance(value, Absent) and value is not OMIT:
        raise value.fault()
    return value.as_text() if isinstance(value, (Text, Dump)) else value


def _integer(value: Any, what: str) -> int:
    value = _given(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Exact)) or value != int(value):
        raise Fault(f"{what} takes whole numbers")
    return int(value)


def _noun(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float, Exact)):
        return "a number"
    if isinstance(value, (str, Text, Dump)):
        return "text"
    return "a mapping" if isinstance(value, Mapping) else "a list"


def _family(obj: Any) -> str:
    if isinstance(obj, str):
        return "text"
    if isinstance(obj, Mapping):
        return "mapping"
    return "list" if isinstance(obj, (list, tuple, ListView)) else ""
