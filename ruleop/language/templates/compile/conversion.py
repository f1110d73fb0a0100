"""Jinja's tree of a template as the nodes of `syntax`. Nothing else knows Jinja's nodes.

What Jinja parses and the language does not have is refused here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from jinja2 import nodes

from ruleop.errors import RuleError, Site
from ruleop.language.templates import syntax
from ruleop.language.templates.values.text import SlotPlace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ruleop.language.templates.compile.tokens import PrintedTag

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


def converted(
    tree: nodes.Template, printed: Iterable[PrintedTag], start: Site, *, is_file: bool
) -> tuple[syntax.Template, list[RuleError]]:
    """The tree, and the mistakes in it. `printed`: everything that is printed, in the order of the source. `start`: the
    first line of a file, or the site of a string of watches.yaml."""
    conversion = _Conversion(printed, start, is_file=is_file)
    return syntax.Template(conversion.body(tree.body), site=start), conversion.mistakes


class _Conversion:
    """The methods have the names of Jinja's classes."""

    def __init__(self, printed: Iterable[PrintedTag], start: Site, *, is_file: bool) -> None:
        self.printed, self.start, self.is_file = iter(printed), start, is_file
        self.mistakes: list[RuleError] = []
        self._sites: dict[int, Site] = {}

    def site(self, node: nodes.Node) -> Site:
        line = node.lineno or 1
        site = self._sites.get(line)
        if site is None:
            site = self._sites[line] = Site(self.start.path, max(self.start.line, 1) + line - 1)
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
        operator = _OPERATORS.get(type(node))
        if operator is not None:
            assert isinstance(node, nodes.BinExpr)
            left, right = self.expression(node.left), self.expression(node.right)
            return syntax.Operation(left, operator, right, site=self.site(node))
        found: syntax.Expr = getattr(self, f"_{type(node).__name__.lower()}")(node)
        return found

    def _expressions(self, parts: Iterable[nodes.Node]) -> tuple[syntax.Expr, ...]:
        return tuple(map(self.expression, parts))

    def _maybe(self, node: nodes.Node | None) -> syntax.Expr | None:
        return None if node is None else self.expression(node)

    def _const(self, node: nodes.Const) -> syntax.Expr:
        return syntax.Const(node.value, site=self.site(node))

    def _name(self, node: nodes.Name) -> syntax.Expr:
        return syntax.Name(node.name, site=self.site(node))

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
        return syntax.Field(self.expression(node.node), node.attr, site=self.site(node))

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
