"""From the text of a template to the nodes of `syntax`, by Jinja's parser. Nothing else knows Jinja's nodes.

What Jinja parses and the language does not have is refused here.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ruleop.errors import RuleError, Site
from ruleop.language.templates import syntax
from ruleop.language.templates.values.text import SlotPlace
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ruleop.language.templates.filters.registry import Callables


# -- tokens ------------------------------------------------------------------------------------------------------------
#
# Changes to a template's tokens before Jinja parses them, for which Jinja has no settings:
#
# - a line that contains only tags, comments and white space is removed with its newline, while a tag in the middle of a
#   line keeps all white space (`trim_blocks` and `lstrip_blocks` would join `{% if a %}x{% endif %}` with the next
#   line);
# - `${#` is shell, not a comment: `echo ${#args[@]}`;
# - an import is `with context` unless it is marked `without context`, so that a macro that reads `spec` also works in a
#   file of its own;
# - the text of each `{{ ... }}` is kept for error messages, together with whether it is alone on its line.
#
# Tags whose result is printed in their place (`include`, and `filter` and `call` blocks) count as printed, not as tags:
# the white space around them is kept, so that their output can be indented to their column.

MAX_DEPTH: Final = 200  # of expressions inside others: the evaluator calls itself for each

RawToken: TypeAlias = tuple[int, str, str]

SHELL_LENGTH = "${#"
STAND_IN = "$\ufdd2"  # reserved: no template may contain it (see `tree.parser.RESERVED`)
_BLANK = re.compile(r"[ \t]*\Z")
_PRINTED_BLOCKS = frozenset({"filter", "call"})
_CLOSING = frozenset({"endfilter", "endcall", "endset", "endmacro"})
_IMPORT = re.compile(r"import\b.+\bas\b.+|from\b.+\bimport\b.*\w")
_HAS_CONTEXT = re.compile(r"\bwith(out)? context\Z")
_WITH_CONTEXT = (("whitespace", " "), ("name", "with"), ("whitespace", " "), ("name", "context"))
_SET_BLOCK = re.compile(r"set\b[^=|]*(\||\Z)")


class PrintedTag(NamedTuple):
    """A `{{ ... }}`, or a tag whose result is printed, in the order of the source."""

    line: int
    expression: str
    alone: bool  # only white space and tags precede it on its line; what follows is known after rendering


@dataclass(slots=True)
class _Cut:
    """White space of a data token, with its newline if it ends the line."""

    token: int
    start: int
    end: int


@dataclass(slots=True)
class _Stretch:
    """A line, or the part of one that is inside or outside of a captured block."""

    blanks: list[_Cut] = field(default_factory=list)
    tags: bool = False
    kept: bool = False  # contains text, or something printed


class _Marker:
    def __init__(self, tokens: list[RawToken]) -> None:
        self.tokens = tokens
        self.printed: list[PrintedTag] = []
        self.current = _Stretch()
        self.outer: list[_Stretch | None] = []  # the stretches around captured blocks; None once the line has ended
        self.cuts: dict[int, list[_Cut]] = {}

    def run(self) -> list[RawToken]:
        """The tokens without removed lines."""
        number = 0
        while number < len(self.tokens):
            number = self._token(number)
        self._end_line()
        kept = []
        for index, (line, kind, value) in enumerate(self.tokens):
            cuts = sorted(self.cuts.get(index, ()), key=lambda cut: cut.start, reverse=True)
            for cut in cuts:
                if cut.start == 0:
                    line += value.count("\n", 0, cut.end)  # noqa: PLW2901 - the rest of the literal starts on a later line
                value = value[: cut.start] + value[cut.end :]  # noqa: PLW2901 - the same token, shortened
            if value or kind != "data":
                kept.append((line, kind, value.replace(STAND_IN, SHELL_LENGTH)))
        return kept

    def _token(self, number: int) -> int:
        line, kind, value = self.tokens[number]
        if kind == "data":
            self._data(number, value)
        elif kind == "variable_begin":
            end, source = self._until(number, "variable_end")
            self._print(PrintedTag(line, source, not self.current.kept))
            return end + 1
        elif kind == "block_begin":
            end, source = self._until(number, "block_end")
            self._tag(line, source)
            if _IMPORT.fullmatch(source) and not _HAS_CONTEXT.search(source):
                at = self.tokens[end - 1][0]
                self.tokens[end:end] = [(at, kind, value) for kind, value in _WITH_CONTEXT]
                end += len(_WITH_CONTEXT)
            return end + 1
        else:
            self.current.tags = True  # a comment, or a tag of `raw`
        return number + 1

    def _until(self, number: int, kind: str) -> tuple[int, str]:
        end = number + 1
        while end < len(self.tokens) and self.tokens[end][1] != kind:
            end += 1
        source = "".join(value for _, _, value in self.tokens[number + 1 : end])
        return end, " ".join(source.replace(STAND_IN, SHELL_LENGTH).split())

    def _print(self, printed: PrintedTag) -> None:
        self.printed.append(printed)
        self.current.kept = True

    def _tag(self, line: int, source: str) -> None:
        word = source.split(" ", 1)[0].split("(", 1)[0]
        alone = not self.current.kept
        if word == "print":
            self._print(PrintedTag(line, source.removeprefix("print").strip(), alone))
        elif word == "include":
            self._print(PrintedTag(line, source, alone))
        elif word in _PRINTED_BLOCKS:
            self._print(PrintedTag(line, source, alone))
            self._open()
        elif word == "macro" or _SET_BLOCK.match(source):
            self.current.tags = True
            self._open()
        elif word in _CLOSING:
            self._close(prints=word in {"endfilter", "endcall"})
        else:
            self.current.tags = True

    def _open(self) -> None:
        self.outer.append(self.current)
        self.current = _Stretch(tags=True)

    def _close(self, *, prints: bool) -> None:
        self._finish(self.current)
        outside = self.outer.pop() if self.outer else None
        self.current = outside or _Stretch(tags=True, kept=prints)

    def _data(self, number: int, value: str) -> None:
        at = 0
        while True:
            newline = value.find("\n", at)
            stop = len(value) if newline < 0 else newline
            if _BLANK.match(value, at, stop):
                self.current.blanks.append(_Cut(number, at, stop if newline < 0 else newline + 1))
            else:
                self.current.kept = True
            if newline < 0:
                return
            self._end_line()
            at = newline + 1

    def _end_line(self) -> None:
        for number, stretch in enumerate(self.outer):
            if stretch is not None:
                self._finish(stretch)
                self.outer[number] = None
        self._finish(self.current)
        self.current = _Stretch()

    def _finish(self, stretch: _Stretch) -> None:
        if stretch.tags and not stretch.kept:
            for cut in stretch.blanks:
                self.cuts.setdefault(cut.token, []).append(cut)


# -- environment -------------------------------------------------------------------------------------------------------
#
# Only the parser is used of it: nothing is compiled to Python. The parsed templates become trees, which
# `templates.tree` evaluates.

MAX_DIGITS: Final = 1000
"""Of an integer literal. Python parses at most 4300 digits; `hints` checks the size of the number."""


class ParserEnvironment(ImmutableSandboxedEnvironment):
    # Jinja computes an operation of constants where it only looks for names, unless a sandbox intercepts it.
    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})

    def __init__(self, callables: Callables) -> None:
        super().__init__(autoescape=False, keep_trailing_newline=True, optimized=False, cache_size=0, auto_reload=False)
        self.printed: list[PrintedTag] = []  # of the template that was just parsed
        self.filters, self.globals = callables.filters, callables.functions
        self.tests = callables.tests  # type: ignore[assignment]
        self._known = lru_cache(maxsize=256)(self._read)  # many strings of watches.yaml are equal

    def _tokenize(self, source: str, name: str | None, filename: str | None = None, state: str | None = None) -> Any:
        if state is not None:
            return super()._tokenize(source, name, filename, state)
        raw = self.lexer.tokeniter(source.replace(SHELL_LENGTH, STAND_IN), name, filename)
        marker = _Marker(list(raw))
        tokens, self.printed = marker.run(), marker.printed
        for line, kind, value in tokens:
            if (kind == "integer" and len(value) > MAX_DIGITS) or (kind == "float" and math.isinf(float(value))):
                raise TemplateSyntaxError("number too large", line, name, filename)
        return TokenStream(self.lexer.wrap(iter(tokens), name, filename), name, filename)

    def _read(self, text: str) -> tuple[nodes.Template, list[PrintedTag]]:
        return self._parse(text, None, None), self.printed  # `parse` would rewrite errors

    def tree(self, text: str, start: Site, *, is_file: bool) -> tuple[syntax.Template, list[RuleError]]:
        """The tree of a text, and the mistakes in it. `start`: the first line of a file, or the site of a string of
        watches.yaml. Raises TemplateSyntaxError and RecursionError."""
        found, printed = self._read(text) if is_file else self._known(text)
        conversion = _Conversion(printed, start, is_file=is_file)
        return syntax.Template(conversion.body(found.body), site=start), conversion.mistakes


# -- conversion --------------------------------------------------------------------------------------------------------

_OPERATORS: Final[dict[type[nodes.Node], str]] = {
    nodes.Add: "+",
    nodes.Sub: "-",
    nodes.Mul: "*",
    nodes.Div: "/",
    nodes.FloorDiv: "//",
    nodes.Mod: "%",
    nodes.Pow: "**",
}
_DYNAMIC: Final = "the name in {} must be literal text, so that the files of a rule are known before rendering"
_SEVERAL_KEYS: Final = "template syntax: a slice cannot be one of several keys"


class _Conversion:
    """The methods have the names of Jinja's classes."""

    def __init__(self, printed: Iterable[PrintedTag], start: Site, *, is_file: bool) -> None:
        self.printed, self.start, self.is_file = iter(printed), start, is_file
        self.mistakes: list[RuleError] = []
        self._sites: dict[int, Site] = {}
        self._depth = 0  # of an expression inside others

    def site(self, node: nodes.Node) -> Site:
        line = node.lineno or 1
        site = self._sites.get(line)
        if site is None:
            first = self.start if not self.is_file else Site(self.start.path, max(self.start.line, 1))
            site = self._sites[line] = first if line == 1 else Site(first.path, max(first.line, 1) + line - 1)
        return site

    def place(self) -> SlotPlace:
        """The place of what is printed next."""
        found = next(self.printed)
        if not self.is_file:
            return SlotPlace(self.start, found.expression)
        return SlotPlace(Site(self.start.path, found.line), found.expression, found.alone)

    def refuse(self, node: nodes.Node, message: str) -> None:
        self.mistakes.append(RuleError(message, self.site(node)))

    # -- statements ----------------------------------------------------------------------------------------------------

    def body(self, body: Sequence[nodes.Node]) -> syntax.Body:
        found: list[syntax.Stmt] = []
        for node in body:
            if isinstance(node, nodes.Output):
                found += map(self._printed, node.nodes)
            else:
                statement: syntax.Stmt = getattr(self, f"_{type(node).__name__.lower()}")(node)
                found.append(statement)
        return tuple(found)

    def _printed(self, node: nodes.Expr) -> syntax.Stmt:
        if isinstance(node, nodes.TemplateData):
            return syntax.Data(node.data, site=self.site(node))
        return syntax.Print(self.expression(node), self.place(), site=self.site(node))

    def _if(self, node: nodes.If) -> syntax.If:
        branches = tuple(
            syntax.Branch(self.expression(each.test), self.body(each.body), site=self.site(each))
            for each in (node, *node.elif_)
        )
        return syntax.If(branches, self.body(node.else_), site=self.site(node))

    def _for(self, node: nodes.For) -> syntax.For:
        return syntax.For(
            self._target(node.target),
            self.expression(node.iter),
            self._maybe(node.test),
            self.body(node.body),
            self.body(node.else_),
            node.recursive,
            site=self.site(node),
        )

    def _with(self, node: nodes.With) -> syntax.With:
        targets, values = tuple(map(self._target, node.targets)), self._expressions(node.values)
        return syntax.With(targets, values, self.body(node.body), site=self.site(node))

    def _assign(self, node: nodes.Assign) -> syntax.Set:
        return syntax.Set(self._target(node.target), self.expression(node.node), site=self.site(node))

    def _assignblock(self, node: nodes.AssignBlock) -> syntax.SetBlock:
        filter_ = self._filter(node.filter) if node.filter is not None else None
        return syntax.SetBlock(self._target(node.target), filter_, self.body(node.body), site=self.site(node))

    def _macro(self, node: nodes.Macro) -> syntax.Macro:
        defaults = self._expressions(node.defaults)
        return syntax.Macro(node.name, _params(node), defaults, self.body(node.body), site=self.site(node))

    def _callblock(self, node: nodes.CallBlock) -> syntax.CallBlock:
        place, call, defaults = self.place(), self._call(node.call), self._expressions(node.defaults)
        return syntax.CallBlock(call, _params(node), defaults, self.body(node.body), place, site=self.site(node))

    def _filterblock(self, node: nodes.FilterBlock) -> syntax.FilterBlock:
        place, filter_ = self.place(), self._filter(node.filter)
        return syntax.FilterBlock(filter_, self.body(node.body), place, site=self.site(node))

    def _include(self, node: nodes.Include) -> syntax.Include:
        named = node.template.items if isinstance(node.template, (nodes.List, nodes.Tuple)) else [node.template]
        files = tuple(self._file(node, each, "include") for each in named)
        return syntax.Include(files, node.ignore_missing, node.with_context, self.place(), site=self.site(node))

    def _import(self, node: nodes.Import) -> syntax.Import:
        file = self._file(node, node.template, "import")
        return syntax.Import(file, node.target, node.with_context, site=self.site(node))

    def _fromimport(self, node: nodes.FromImport) -> syntax.FromImport:
        file = self._file(node, node.template, "import")
        names = tuple((each, each) if isinstance(each, str) else each for each in node.names)
        return syntax.FromImport(file, names, node.with_context, site=self.site(node))

    def _extends(self, node: nodes.Extends) -> syntax.Extends:
        return syntax.Extends(self._file(node, node.template, "extends"), site=self.site(node))

    def _block(self, node: nodes.Block) -> syntax.Block:
        return syntax.Block(node.name, self.body(node.body), self.start.path, site=self.site(node))

    def _scope(self, node: nodes.Scope) -> syntax.Stmt:
        """Jinja's parser makes one around the tag `autoescape` alone."""
        self.refuse(node.body[0], "the tag autoescape is not offered: it is for HTML")
        return syntax.Data("", site=self.site(node.body[0]))

    def _file(self, tag: nodes.Stmt, name: nodes.Expr, word: str) -> str:
        if isinstance(name, nodes.Const) and isinstance(name.value, str):
            return name.value
        self.refuse(tag, _DYNAMIC.format(word))
        return ""

    def _target(self, node: nodes.Node) -> syntax.Target:
        if isinstance(node, nodes.NSRef):
            return syntax.Attribute(node.name, node.attr, site=self.site(node))
        if isinstance(node, nodes.Name):
            return syntax.Variable(node.name, site=self.site(node))
        assert isinstance(node, nodes.Tuple), "Jinja assigns to nothing else"
        return syntax.Variables(tuple(map(self._target, node.items)), site=self.site(node))

    # -- expressions ---------------------------------------------------------------------------------------------------

    def expression(self, node: nodes.Node) -> syntax.Expr:
        """Raises RecursionError for one that is nested deeper than can be evaluated."""
        if self._depth >= MAX_DEPTH:
            raise RecursionError
        self._depth += 1
        operator = _OPERATORS.get(type(node))
        found: syntax.Expr
        if operator is not None:
            assert isinstance(node, nodes.BinExpr)
            left, right = self.expression(node.left), self.expression(node.right)
            found = syntax.Operation(left, operator, right, site=self.site(node))
        else:
            found = getattr(self, f"_{type(node).__name__.lower()}")(node)
        self._depth -= 1
        return found

    def _expressions(self, parts: Iterable[nodes.Node]) -> tuple[syntax.Expr, ...]:
        return tuple(map(self.expression, parts))

    def _maybe(self, node: nodes.Node | None) -> syntax.Expr | None:
        return None if node is None else self.expression(node)

    def _const(self, node: nodes.Const) -> syntax.Expr:
        return syntax.Const(node.value, site=self.site(node))

    def _name(self, node: nodes.Name) -> syntax.Expr:
        return syntax.Name(sys.intern(node.name), site=self.site(node))

    def _list(self, node: nodes.List) -> syntax.Expr:
        return syntax.List(self._expressions(node.items), site=self.site(node))

    def _tuple(self, node: nodes.Tuple) -> syntax.Expr:
        return syntax.Tuple(self._expressions(node.items), site=self.site(node))

    def _dict(self, node: nodes.Dict) -> syntax.Expr:
        pairs = (
            syntax.Pair(self.expression(each.key), self.expression(each.value), site=self.site(each))
            for each in node.items
        )
        return syntax.Dict(tuple(pairs), site=self.site(node))

    def _getattr(self, node: nodes.Getattr) -> syntax.Expr:
        return syntax.Field(self.expression(node.node), sys.intern(node.attr), site=self.site(node))

    def _getitem(self, node: nodes.Getitem) -> syntax.Expr:
        of, key = self.expression(node.node), node.arg
        if isinstance(key, nodes.Const) and isinstance(key.value, str):
            return syntax.Field(of, key.value, in_brackets=True, site=self.site(node))
        if isinstance(key, nodes.Slice):
            bounds = map(self._maybe, (key.start, key.stop, key.step))
            return syntax.Slice(of, *bounds, site=self.site(node))
        return syntax.Item(of, self.expression(key), site=self.site(node))

    def _slice(self, node: nodes.Slice) -> syntax.Expr:
        self.refuse(node, _SEVERAL_KEYS)
        return syntax.Const(None, site=self.site(node))

    def _and(self, node: nodes.And) -> syntax.Expr:
        return syntax.And(self.expression(node.left), self.expression(node.right), site=self.site(node))

    def _or(self, node: nodes.Or) -> syntax.Expr:
        return syntax.Or(self.expression(node.left), self.expression(node.right), site=self.site(node))

    def _not(self, node: nodes.Not) -> syntax.Expr:
        return syntax.Not(self.expression(node.node), site=self.site(node))

    def _neg(self, node: nodes.Neg) -> syntax.Expr:
        return syntax.Sign("-", self.expression(node.node), site=self.site(node))

    def _pos(self, node: nodes.Pos) -> syntax.Expr:
        return syntax.Sign("+", self.expression(node.node), site=self.site(node))

    def _concat(self, node: nodes.Concat) -> syntax.Expr:
        return syntax.Concat(self._expressions(node.nodes), site=self.site(node))

    def _condexpr(self, node: nodes.CondExpr) -> syntax.Expr:
        test, then = self.expression(node.test), self.expression(node.expr1)
        return syntax.Conditional(test, then, self._maybe(node.expr2), site=self.site(node))

    def _compare(self, node: nodes.Compare) -> syntax.Expr:
        others = (syntax.Operand(each.op, self.expression(each.expr), site=self.site(each.expr)) for each in node.ops)
        return syntax.Compare(self.expression(node.expr), tuple(others), site=self.site(node))

    def _filter(self, node: nodes.Filter) -> syntax.Filter:
        value = self._maybe(node.node)
        return syntax.Filter(*self._arguments(node), value=value, name=node.name, site=self.site(node))

    def _test(self, node: nodes.Test) -> syntax.Expr:
        value = self.expression(node.node)
        return syntax.Test(*self._arguments(node), value=value, name=node.name, site=self.site(node))

    def _call(self, node: nodes.Call) -> syntax.Call:
        function = self.expression(node.node)
        call = syntax.Call(*self._arguments(node), function=function, site=self.site(node))
        if call.name == "render" and not (
            len(call.args) == 1 and isinstance(call.args[0], syntax.Const) and isinstance(call.args[0].value, str)
        ):
            self.refuse(node, _DYNAMIC.format("render"))
        return call

    def _arguments(self, node: nodes.Filter | nodes.Test | nodes.Call) -> _Arguments:
        return (
            self._expressions(node.args),
            {str(each.key): self.expression(each.value) for each in node.kwargs},
            self._maybe(node.dyn_args),
            self._maybe(node.dyn_kwargs),
        )


_Arguments: TypeAlias = tuple[
    tuple[syntax.Expr, ...], dict[str, syntax.Expr], "syntax.Expr | None", "syntax.Expr | None"
]


def _params(node: nodes.Macro | nodes.CallBlock) -> tuple[str, ...]:
    return tuple(each.name for each in node.args)
