"""A piece of a template that stands elsewhere than where it is written: what a macro, a captured `set`, a `call` block,
an include or a recursive loop gives.

It is inserted as entries or items, is a whole value, or is a part of longer text. Which one depends on where it is
used, never on a value. A piece is parsed in the forms in which it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, final

from ruleop.language.templates.tree.state import Scope, charge_render
from ruleop.language.templates.values.cost import MACRO_BYTES
from ruleop.language.templates.values.faults import Fault, RuleErrors
from ruleop.language.templates.values.text import Indent, Text, flatten_parts
from ruleop.language.templates.values.undefined import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates import syntax
    from ruleop.language.templates.tree.nodes import Documents
    from ruleop.language.templates.values.text import Part

Result = TypeVar("Result")
Made = TypeVar("Made")


class Source(Protocol):
    """The file of a piece."""

    @property
    def path(self) -> str: ...

    def documents(self, body: syntax.Body) -> Documents:
        """The documents of a piece of it. Raises RuleErrors."""
        ...

    def site_of(self, node: syntax.Node) -> Site: ...

    def counter(self, body: syntax.Body) -> Callable[[], None] | None:
        """The function that counts its evaluations, for coverage."""
        ...

    def text_of(self, body: syntax.Body) -> Callable[[Scope, list[Part]], None]: ...

    def documents_of(self, documents: Documents) -> Callable[[Scope, list[JSON]], None]: ...

    def addition_of(self, documents: Documents) -> Callable[[Scope, Any], None]: ...

    def module(self, name: str, scope: Scope) -> dict[str, Any]:
        """The names that another file sets, which sees those of a scope."""
        ...

    def first_of(self, names: Sequence[str]) -> Form | None:
        """The first of these files that exists."""
        ...

    def empty_scope(self) -> Scope:
        """The names that are the same for all resources."""
        ...


@final
class Form:
    """The statements of a piece in two forms: as text, and as documents. Each is made on first use."""

    __slots__ = ("_add", "_count", "_documents", "_evaluate", "_file", "_write", "body")

    def __init__(self, file: Source, body: syntax.Body, documents: Documents | None = None) -> None:
        """`documents`: if they are not to be parsed from the statements."""
        self._file, self.body = file, body
        self._count = file.counter(body)
        self._write: Callable[[Scope, list[Part]], None] | None = None
        self._documents = documents
        self._evaluate: Callable[[Scope, list[JSON]], None] | None = None
        self._add: Callable[[Scope, Any], None] | None = None

    def __reduce__(self) -> tuple[type[Form], tuple[Source, syntax.Body, Documents | None]]:
        return Form, (self._file, self.body, self._documents)

    def write(self, scope: Scope, parts: list[Part]) -> None:
        if self._write is None:
            self.prepare_text()
        self._write(scope, parts)  # type: ignore[misc]

    @property
    def documents(self) -> Documents:
        if self._documents is None:
            self._documents = self._file.documents(self.body)
        return self._documents

    def prepare(self) -> None:
        """Makes the function that evaluates it. Raises RuleErrors."""
        if self._evaluate is None:
            self._evaluate = counted(self._file.documents_of(self.documents), self._count)

    def prepare_text(self) -> None:
        """The same, of its text."""
        if self._write is None:
            self._write = counted(self._file.text_of(self.body), self._count)

    def evaluate(self, scope: Scope, found: list[JSON]) -> None:
        if self._evaluate is None:
            self._parsed(self.prepare)
        self._evaluate(scope, found)  # type: ignore[misc]

    def add(self, scope: Scope, collected: Any) -> None:
        """Adds its entries or items to those around it."""
        if self._add is None:
            self._add = counted(self._file.addition_of(self._parsed(lambda: self.documents)), self._count)
        self._add(scope, collected)

    @staticmethod
    def _parsed(parse: Callable[[], Made]) -> Made:
        """A mistake in the structure of a piece, as a fault of what uses it."""
        try:
            return parse()
        except RuleErrors as errors:
            first = errors.mistakes[0]
            raise Fault(first.message).at(first.site, "") from None


def counted(
    function: Callable[[Scope, Result], None], count: Callable[[], None] | None
) -> Callable[[Scope, Result], None]:
    """The function, which also counts its calls."""
    if count is None:
        return function

    def call(scope: Scope, result: Result) -> None:
        count()
        function(scope, result)

    return call


class Piece(Text):
    """A piece with the names that it sees."""

    __slots__ = ("_made", "_trims", "form", "scope")

    def __init__(self, form: Form, scope: Scope, indent: Indent | None = None, *, trims: bool = False) -> None:
        super(Text, self).__init__(indent)
        self.form, self.scope = form, scope
        self._trims = trims
        self._made: tuple[Part, ...] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:  # type: ignore[override]
        """As text."""
        if self._made is None:
            written: list[Part] = []
            self.form.write(self.scope, written)
            self._made = flatten_parts(written)
            if self._trims:
                self._made = Text(self._made).trimmed(None).parts
        return self._made

    def indented(self, indent: Indent) -> Piece:
        return Piece(self.form, self.scope, indent, trims=self._trims)

    def trimmed(self, chars: str | None) -> Text:
        if chars is not None:
            return Text(self.parts).trimmed(chars)
        return Piece(self.form, self.scope, self.indent, trims=True)

    def frozen(self) -> Piece:
        """With the values that the names have now."""
        return Piece(self.form, snapshot(self.scope), self.indent, trims=self._trims)


def snapshot(scope: Scope) -> Scope:
    """The names with the values that they have now."""
    chain: list[Scope] = []
    at: Scope | None = scope
    while at is not None:
        chain.append(at)
        at = at.outer
    names: dict[str, Any] = {}
    for each in reversed(chain):
        names.update(each.names)
    return Scope(names, root=scope.root, defaults=scope.defaults)


@final
class MacroValue:
    """A macro, with the names around it."""

    __slots__ = ("defaults", "form", "name", "params", "scope", "takes")

    def __init__(
        self,
        name: str,
        params: Sequence[str],
        defaults: Sequence[Callable[[Scope], Any]],
        takes: frozenset[str],
        form: Form,
        scope: Scope,
    ) -> None:
        """`takes`: which of `caller`, `varargs` and `kwargs` it reads."""
        self.name, self.params, self.defaults = name, params, defaults
        self.takes, self.form, self.scope = takes, form, scope

    def __call__(self, *args: Any, caller: Any = None, **kwargs: Any) -> Piece:
        charge_render(MACRO_BYTES)
        scope = self.scope.inner()
        names = scope.names
        first_default = len(self.params) - len(self.defaults)
        for number, name in enumerate(self.params):
            if number < len(args):
                if name in kwargs:
                    raise Fault(f"macro {self.name!r} was invoked with two values for the argument {name!r}")
                names[name] = args[number]
            elif name in kwargs:
                names[name] = kwargs.pop(name)
            elif number >= first_default:
                names[name] = self.defaults[number - first_default](scope)
            else:
                names[name] = Unknown(f"parameter {name!r} was not provided", name=name)
        self._rest(names, args[len(self.params) :], caller, kwargs)
        return Piece(self.form, scope)

    def _rest(self, names: dict[str, Any], args: tuple[Any, ...], caller: Any, kwargs: dict[str, Any]) -> None:
        if "caller" in self.takes:
            names["caller"] = Unknown("No caller defined", name="caller") if caller is None else caller
        elif caller is not None:
            raise Fault(f"macro {self.name!r} was invoked with two values for the special caller argument")
        if "kwargs" in self.takes:
            names["kwargs"] = kwargs
        elif kwargs:
            raise Fault(f"macro {self.name!r} takes no keyword argument of a name that is used here")
        if "varargs" in self.takes:
            names["varargs"] = args
        elif args:
            raise Fault(f"macro {self.name!r} takes not more than {len(self.params)} argument(s)")
