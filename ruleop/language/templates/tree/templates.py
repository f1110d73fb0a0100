"""The templates of a project as trees, with the files that they extend, and their rendering."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar, final

from ruleop.errors import Site
from ruleop.language.templates import syntax
from ruleop.language.templates.filters.registry import Callables
from ruleop.language.templates.syntax import EFFECTS, find, walk
from ruleop.language.templates.tree.evaluation import Evaluator
from ruleop.language.templates.tree.expressions import Expressions
from ruleop.language.templates.tree.nodes import Documents
from ruleop.language.templates.tree.pieces import Form, MacroValue, Piece
from ruleop.language.templates.tree.state import Scope, Sites, State, charge_render
from ruleop.language.templates.tree.statements import Statements
from ruleop.language.templates.tree.writing import Writer
from ruleop.language.templates.values.cost import ITEM_BYTES, Exhausted, parsed
from ruleop.language.templates.values.data import scalar_text
from ruleop.language.templates.values.faults import Fault, RuleErrors, located
from ruleop.language.templates.values.text import Dump
from ruleop.language.templates.yaml_reader import read_yaml
from ruleop.nearest import did_you_mean
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates.tree.expressions import Compute
    from ruleop.language.templates.tree.nodes import Node
    from ruleop.language.templates.values.text import Part


# -- inheritance -------------------------------------------------------------------------------------------------------
#
# Files that extend others: their statements are those of the outermost one, with the blocks that are in force.

S = TypeVar("S", bound=syntax.Stmt)


@dataclass(slots=True)
class Inherited:
    """The statements of a file and its blocks, each with those that it overrides."""

    path: str  # of the outermost file
    body: syntax.Body = ()
    blocks: dict[str, syntax.Block] = field(default_factory=dict)
    origins: dict[int, tuple[syntax.Body, ...]] = field(default_factory=dict)
    """By the ids of bodies that were put together: what they are made of, for coverage."""

    @classmethod
    def of(cls, tree: syntax.Template, parent_of: Callable[[str], syntax.Template | None]) -> Inherited:
        """`parent_of`: the file of a name, None if there is none. Raises RecursionError for files that extend each
        other."""
        trees = [tree]
        while (extends := next(find(trees[-1], syntax.Extends), None)) is not None:
            if (parent := parent_of(extends.file)) is None:
                break
            if parent in trees:
                raise RecursionError
            trees.append(parent)
        levels: dict[str, list[syntax.Block]] = {}
        for block in (block for each in trees for block in find(each, syntax.Block)):
            levels.setdefault(block.name, []).append(block)
        if not levels and len(trees) == 1:
            return cls(tree.site.path, tree.body)
        found = cls(trees[-1].site.path)
        for name in levels:
            found.block(name, levels)
        *inner, outermost = (each.body for each in trees)
        effects = [each for body in inner for each in body if isinstance(each, EFFECTS)]
        found.body = (*effects, *found.filled(outermost, levels))
        found.origins[id(found.body)] = (*inner, outermost)
        return found

    def block(self, name: str, levels: dict[str, list[syntax.Block]]) -> syntax.Block:
        """The block in force."""
        if name not in self.blocks:
            first, *others = (replace(each, body=self.filled(each.body, levels)) for each in levels[name])
            self.blocks[name] = replace(first, overridden=tuple(others))
        return self.blocks[name]

    def filled(self, body: syntax.Body, levels: dict[str, list[syntax.Block]]) -> syntax.Body:
        """The statements, with the blocks in force in the places of those that they override."""
        if not any(next(find(each, syntax.Block), None) for each in body):
            return body
        found = tuple(self._statement(each, levels) for each in body)
        self.origins[id(found)] = (body,)
        return found

    def _statement(self, node: S, levels: dict[str, list[syntax.Block]]) -> S | syntax.Block:
        match node:
            case syntax.Block():
                return replace(self.block(node.name, levels), site=node.site)
            case syntax.If():
                branches = tuple(replace(each, body=self.filled(each.body, levels)) for each in node.branches)
                return replace(node, branches=branches, otherwise=self.filled(node.otherwise, levels))
            case syntax.For():
                body, otherwise = self.filled(node.body, levels), self.filled(node.otherwise, levels)
                return replace(node, body=body, otherwise=otherwise)
            case syntax.With() | syntax.SetBlock() | syntax.Macro() | syntax.CallBlock() | syntax.FilterBlock():
                return replace(node, body=self.filled(node.body, levels))
        return node


# -- templates ---------------------------------------------------------------------------------------------------------

Rendering: TypeAlias = "tuple[File, list[JSON], Sites]"
"""The file that was rendered, its documents, and the places of their fields."""

What: TypeAlias = Literal["file", "string", "value"]
_Pieces: TypeAlias = "tuple[Form, dict[str, Form], list[tuple[syntax.Body, Documents | RuleErrors]]]"

FOLDER: Final = "templates/"
"""The files of a project that are templates."""
MAX_RENDERS: Final = 20  # nested calls of render()
NO_NAMES: Final[dict[str, Any]] = {}
"""Of a file that is included or imported without context."""
_NOTHING: Final[Mapping[Any, Any]] = {}


class Instrument(Protocol):
    """Observes what templates do."""

    def observe(self, tree: syntax.Template, where: str | Site) -> None:
        """Notes what can be observed of a file, by its path, or of a string of watches.yaml, by its site."""
        ...

    def counter(self, bodies: Sequence[syntax.Body]) -> Callable[[], None] | None:
        """Counts one evaluation of lists of statements."""
        ...

    def observe_value(self, bodies: Sequence[syntax.Body], site: Site) -> None:
        """The same of a value of watches.yaml, by the statements that are evaluated together."""
        ...

    def outcome(self, condition: syntax.Expr) -> Callable[[Any], None] | None:
        """Counts one outcome of a condition."""
        ...


@final
class Computation:
    """An expression of watches.yaml, whose function is made on first use."""

    __slots__ = ("_body", "_compute", "_expression", "_templates")

    def __init__(self, templates: Templates, expression: syntax.Expr, body: syntax.Body) -> None:
        """`body`: its statements, for coverage."""
        self._templates, self._expression, self._body = templates, expression, body
        self._compute: Compute | None = None

    @property
    def compute(self) -> Compute:
        if self._compute is None:
            self._compute = self._templates.compute(self._expression, self._body)
        return self._compute

    def __reduce__(self) -> tuple[type[Computation], tuple[Templates, syntax.Expr, syntax.Body]]:
        return Computation, (self._templates, self._expression, self._body)


@final
class File:
    """A template file, or a string or another value of watches.yaml."""

    __slots__ = ("_known", "blocks", "evaluator", "form", "located", "origins", "place", "templates", "what", "writer")

    def __init__(
        self,
        templates: Templates,
        place: Site,
        what: What = "file",
        *,
        body: syntax.Body = (),
        documents: Documents | None = None,
        origins: Mapping[int, tuple[syntax.Body, ...]] = _NOTHING,
    ) -> None:
        """`documents`: of a value. `origins`: see `Inherited`."""
        self.templates, self.place, self.what, self.origins = templates, place, what, origins
        self.writer = Writer(Statements(templates.expressions, self), self, templates.state)
        self.evaluator = Evaluator(self.writer, templates.state, is_value=what == "value")
        self.located = located(place)
        self.blocks: dict[str, Form] = {}
        self._known: dict[tuple[int, ...], tuple[syntax.Body, Documents | RuleErrors]] = {}
        self.form = Form(self, body, documents)

    def __reduce__(self) -> Any:
        """With its pieces, as they were parsed. Functions are made again on first use."""
        return File, (self.templates, self.place, self.what), (self.form, self.blocks, [*self._known.values()])

    def __setstate__(self, state: _Pieces) -> None:
        self.form, self.blocks, known = state
        self._known = {tuple(map(id, each[0])): each for each in known}

    @property
    def path(self) -> str:
        return self.place.path

    def documents(self, body: syntax.Body) -> Documents:
        """The documents of a piece of the file, which is parsed once. Raises RuleErrors."""
        key = tuple(map(id, body))
        if (known := self._known.get(key)) is None:
            known = self._known[key] = body, self._parsed(body)
        if isinstance(known[1], RuleErrors):
            raise known[1]
        return known[1]

    def _parsed(self, body: syntax.Body) -> Documents | RuleErrors:
        # The pieces of a loaded project are parsed; what computes them in another form is rare.
        from ruleop.language.templates.tree.parser import parse  # noqa: PLC0415

        try:
            path = body[-1].site.path if body else self.path  # names that are set go first
            return parse(body, path, self.templates.lines_of)
        except RuleErrors as errors:
            return errors

    def site_of(self, node: syntax.Node) -> Site:
        return self.place if self.what == "string" else node.site

    def counter(self, body: syntax.Body) -> Callable[[], None] | None:
        probe = self.templates.probe
        return None if probe is None else probe.counter(self.origins.get(id(body), (body,)))

    def pieces(self) -> Iterator[Form]:
        """The file, and what it captures."""
        yield self.form
        for each in walk(*self.form.body):
            if isinstance(each, (syntax.Macro, syntax.SetBlock, syntax.CallBlock)):
                yield Form(self, each.body)

    def text_of(self, body: syntax.Body) -> Callable[[Scope, list[Part]], None]:
        return self.writer.body(body)

    def documents_of(self, documents: Documents) -> Callable[[Scope, list[JSON]], None]:
        return self.evaluator.documents(documents)

    def addition_of(self, documents: Documents) -> Callable[[Scope, Any], None]:
        return self.evaluator.addition(documents)

    def module(self, name: str, scope: Scope) -> dict[str, Any]:
        inner = scope.inner()
        self.templates.file(name).form.write(inner, [])
        charge_render(ITEM_BYTES * len(inner.names))
        return {each: value for each, value in inner.names.items() if not each.startswith("_")}

    def first_of(self, names: Sequence[str]) -> Form | None:
        return next((self.templates.file(name).form for name in names if self.templates.has(name)), None)

    def empty_scope(self) -> Scope:
        return self.templates.scope(NO_NAMES)

    def scope(self, names: Mapping[str, Any]) -> Scope:
        """The scope of a render, with the blocks as `self`."""
        scope = self.templates.scope(names)
        if self.blocks:
            scope.names["self"] = {
                name: MacroValue(name, (), (), frozenset(), form, scope) for name, form in self.blocks.items()
            }
        return scope


class Templates:
    """Renders. Threads may do so at once: what a template needs is made on first use, by whichever comes first."""

    def __init__(
        self,
        texts: Mapping[str, str],
        parsed: Callable[[str], syntax.Template | None] | None = None,
        probe: Instrument | None = None,
    ) -> None:
        """`texts`: of the files, by their names in templates/. `parsed`: the statements of a file, None for a name that
        no file has."""
        self.texts, self.probe = texts, probe
        self.callables = Callables(self._text, self.read_captured)
        outcome = (lambda _: None) if probe is None else probe.outcome
        self.expressions = Expressions(self.callables, self._render, outcome)
        self.state = State()
        self.trace: list[Rendering] | None = None  # is given each template that is rendered, for tests' messages
        self._parsed = parsed
        self.files: dict[str, File] = {}  # that are parsed
        self._lines: tuple[str, list[str]] = "", []  # of the file that is being parsed

    def lines_of(self, path: str) -> list[str]:
        if path != self._lines[0]:
            self._lines = path, self.texts.get(path.removeprefix(FOLDER), "").split("\n")
        return self._lines[1]

    def has(self, name: str) -> bool:
        return name in self.files or (self._parsed is not None and self._parsed(name) is not None)

    def scope(self, names: Mapping[str, Any]) -> Scope:
        return Scope({}, root=names, defaults=self.callables.functions)

    def render(
        self, file: File, names: Mapping[str, Any], *, lenient: bool = False, form: Form | None = None
    ) -> list[JSON]:
        """The documents. Raises `Waiting` or `RenderError`. `form`: of a part of the file."""
        state = self.state
        if self.trace is not None and state.sites is None:
            documents, sites = self.traced(file, names, lenient=lenient, form=form)
            self.trace.append((file, documents, sites))
            return documents
        found: list[JSON] = []
        outer = state.begin(lenient=lenient)
        try:
            (form or file.form).evaluate(file.scope(names), found)
        except Exception as error:
            file.located.place(error)
            raise
        finally:
            state.end(outer)
        return found

    def traced(
        self, file: File, names: Mapping[str, Any], *, lenient: bool = False, form: Form | None = None
    ) -> tuple[list[JSON], Sites]:
        """The documents, with the place of each of their fields."""
        outer, sites = self.state.sites, Sites()
        self.state.sites = sites
        try:
            return self.render(file, names, lenient=lenient, form=form), sites
        finally:
            self.state.sites = outer

    def value(self, node: Node, site: Site) -> File:
        """A value of watches.yaml."""
        return File(self, site, "value", documents=Documents((node,)))

    def string(self, body: syntax.Body, site: Site) -> File:
        """A string of watches.yaml."""
        return File(self, site, "string", body=body)

    def compute(self, expression: syntax.Expr, body: syntax.Body) -> Compute:
        """The function of an expression of watches.yaml, whose statements are `body`."""
        compute = self.expressions.condition(expression)
        count = None if self.probe is None else self.probe.counter([body])
        if count is None:
            return compute

        def counted(scope: Scope) -> Any:
            count()
            return compute(scope)

        return counted

    def file(self, name: str) -> File:
        found = self.files.get(name)
        if found is None:
            tree = self._tree(name)
            inherited = Inherited.of(tree, self._tree)
            found = self.files[name] = File(
                self, Site(tree.site.path, 1), body=inherited.body, origins=inherited.origins
            )
            found.blocks = {each: Form(found, (block,)) for each, block in inherited.blocks.items()}
        return found

    def _tree(self, name: str) -> syntax.Template:
        if self._parsed is None or (parsed := self._parsed(name)) is None:
            raise Fault(f"no such template: {name}")
        return parsed

    def _text(self, name: Any) -> str:
        text = self.texts.get(scalar_text(name))
        if text is None:
            raise Fault(f"no such file below {FOLDER}{did_you_mean(scalar_text(name), self.texts)}")
        return text

    def _render(self, name: str, scope: Scope) -> str:
        """`render('x.j2')`: the text of a template with the names of the render, without those that were set since."""
        if scope.root is NO_NAMES:
            raise Fault("render() has no resource here: this template is included or imported without context")
        if self.state.renders >= MAX_RENDERS:
            raise Exhausted("render: templates render each other recursively")
        self.state.renders += 1
        try:
            return Piece(self.file(name).form, self.scope(scope.root)).as_text()
        finally:
            self.state.renders -= 1

    def read_captured(self, value: Any, what: str) -> Any:
        """`from_yaml`: a piece is data as it is written, like a template; any other text is read as plain data."""
        if isinstance(value, Dump):
            return value.data
        if isinstance(value, Piece):
            found: list[JSON] = []
            try:
                value.form.prepare()
            except RuleErrors as errors:
                first = errors.mistakes[0]
                raise Fault(f"{what}: {first.message}").at(first.site, "") from None
            outer = self.state.begin(lenient=False)
            try:
                value.form.evaluate(value.scope, found)
            finally:
                self.state.end(outer)
            return found[0] if found else None
        text = scalar_text(value)
        charge_render(parsed(text))
        read, mistakes = read_yaml(text, what)
        if mistakes:
            raise Fault(f"{what}: not YAML, or YAML with anchors or tags")
        return read[0].data() if read else None
