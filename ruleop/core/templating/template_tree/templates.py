"""The templates of a project as trees, and their rendering."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from jinja2 import nodes

from ruleop.core.errors import Site
from ruleop.core.templating.compile.node_index import nodes_of
from ruleop.core.templating.template_tree.evaluation import Evaluator
from ruleop.core.templating.template_tree.expressions import Expressions
from ruleop.core.templating.template_tree.faults import located
from ruleop.core.templating.template_tree.lines import EFFECTS
from ruleop.core.templating.template_tree.pieces import Form, MacroValue, Piece
from ruleop.core.templating.template_tree.scope import Scope
from ruleop.core.templating.template_tree.state import Sites, State
from ruleop.core.templating.template_tree.statements import Statements, block_node
from ruleop.core.templating.template_tree.writing import Writer
from ruleop.core.templating.tree.yaml_reader import read_yaml
from ruleop.core.templating.values.cost import METER, Exhausted
from ruleop.core.templating.values.data import scalar_text
from ruleop.core.templating.values.faults import Fault, RuleErrors
from ruleop.core.templating.values.text import Dump

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ruleop.core.kinds import JSON
    from ruleop.core.templating.compile.environment import Environment
    from ruleop.core.templating.template_tree.expressions import Compute
    from ruleop.core.templating.template_tree.nodes import Documents
    from ruleop.core.templating.values.text import Part

Levels: TypeAlias = "dict[str, list[list[nodes.Node]]]"
"""The bodies of each block, the one in force first."""

Rendering: TypeAlias = "tuple[str, list[JSON], Sites]"
"""The name of a template, its documents, and the places of their fields."""

MAX_RENDERS: Final = 20  # nested calls of render()
NO_NAMES: Final[dict[str, Any]] = {}
"""Of a file that is included or imported without context."""


class Instrument(Protocol):
    """Observes what templates do."""

    @property
    def filters(self) -> dict[str, Any]:
        """The functions that changed templates call, as filters."""
        ...

    def instrument(self, tree: nodes.Template, where: str | Site) -> None:
        """Changes the tree of a file, by its path, or of a string of watches.yaml, by its site."""
        ...

    def counter(self, body: Sequence[nodes.Node]) -> Callable[[], None] | None:
        """Counts one evaluation of a list of statements."""
        ...


@dataclass(slots=True, eq=False)
class File:
    """A template file, or a string of watches.yaml: `site` is its own."""

    templates: Templates
    path: str
    body: Sequence[nodes.Node]
    site: Site | None = None
    writer: Writer = field(init=False)
    evaluator: Evaluator = field(init=False)
    form: Form = field(init=False)
    located: located = field(init=False)
    blocks: dict[str, Form] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.writer = Writer(Statements(self.templates.expressions, self), self, self.templates.state)
        self.evaluator = Evaluator(self.writer, self.templates.state)
        self.form = Form(self, self.body)
        self.located = located(self.site or Site(self.path, 1))

    def site_of(self, node: nodes.Node) -> Site:
        return self.site or Site(self.path, node.lineno)

    def counter(self, body: Sequence[nodes.Node]) -> Callable[[], None] | None:
        probe = self.templates.probe
        return None if probe is None else probe.counter(body)

    def text_of(self, body: Sequence[nodes.Node]) -> Callable[[Scope, list[Part]], None]:
        return self.writer.body(body)

    def documents_of(self, documents: Documents) -> Callable[[Scope, list[JSON]], None]:
        return self.evaluator.documents(documents)

    def addition_of(self, documents: Documents) -> Callable[[Scope, Any], None]:
        return self.evaluator.addition(documents)

    def module(self, name: str, scope: Scope) -> dict[str, Any]:
        inner = scope.inner()
        self.templates.file(name).form.write(inner, [])
        METER.spend(8 + 4 * len(inner.names))
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
        environment: Environment,
        parsed: Callable[[str], tuple[nodes.Template, str] | None],
        probe: Instrument | None,
    ) -> None:
        """`parsed`: a file's statements and its path, None for a name that no file has."""
        self.environment, self.probe = environment, probe
        self.expressions = Expressions(environment, self._render)
        self.state = State()
        self.trace: list[Rendering] | None = None  # is given each template that is rendered, for tests' messages
        self._parsed = parsed
        self._files: dict[str, File] = {}

    def has(self, name: str) -> bool:
        return self._parsed(name) is not None

    def scope(self, names: Mapping[str, Any]) -> Scope:
        return Scope({}, root=names, defaults=self.environment.globals)

    def render(self, name: str, names: Mapping[str, Any], *, lenient: bool = False) -> list[JSON]:
        """The documents. Raises `Waiting` or `RenderError`."""
        if self.trace is not None and self.state.sites is None:
            documents, sites = self.traced(name, names, lenient=lenient)
            self.trace.append((name, documents, sites))
            return documents
        file, state = self.file(name), self.state
        outer = state.begin(lenient=lenient)
        try:
            with state, file.located:
                METER.spend(8)
                found: list[JSON] = []
                file.form.evaluate(file.scope(names), found)
                return found
        finally:
            state.lenient, state.weight = outer

    def traced(self, name: str, names: Mapping[str, Any], *, lenient: bool = False) -> tuple[list[JSON], Sites]:
        """The documents, with the place of each of their fields."""
        outer, sites = self.state.sites, Sites()
        self.state.sites = sites
        try:
            return self.render(name, names, lenient=lenient), sites
        finally:
            self.state.sites = outer

    def string(self, body: Sequence[nodes.Node], site: Site) -> File:
        """A string of watches.yaml."""
        return File(self, site.path, body, site)

    def compute(self, expression: nodes.Node, body: Sequence[nodes.Node]) -> Compute:
        """The function of an expression of watches.yaml, whose statements are `body`."""
        compute = self.expressions.compute(expression)
        count = None if self.probe is None else self.probe.counter(body)
        if count is None:
            return compute

        def counted(scope: Scope) -> Any:
            count()
            return compute(scope)

        return counted

    def file(self, name: str) -> File:
        found = self._files.get(name)
        if found is None:
            blocks: Levels = {}
            tree, path = self._tree(name)
            found = File(self, path, self._body(tree, blocks))
            found.blocks = {each: Form(found, [block_node(levels)]) for each, levels in blocks.items()}
            self._files[name] = found
        return found

    def plain_text(self, name: str) -> str:
        """The text of a file outside of tags, with a mark for each `{{ }}`."""
        outputs = nodes_of(self._tree(name)[0], nodes.Output)
        return "".join(
            each.data if isinstance(each, nodes.TemplateData) else "_" for output in outputs for each in output.nodes
        )

    def _tree(self, name: str) -> tuple[nodes.Template, str]:
        parsed = self._parsed(name)
        if parsed is None:
            raise Fault(f"no such template: {name}")
        return parsed

    def _body(self, tree: nodes.Template, blocks: Levels) -> list[nodes.Node]:
        """The statements of a file; if it extends another, those of that one. `blocks`: those that override its own."""
        for each in nodes_of(tree, nodes.Block):
            blocks.setdefault(each.name, []).append(each.body)
        extends = next(iter(nodes_of(tree, nodes.Extends)), None)
        if extends is not None and isinstance(extends.template, nodes.Const):
            effects = [each for each in tree.body if isinstance(each, EFFECTS)]
            return [*effects, *self._body(self._tree(str(extends.template.value))[0], blocks)]
        _fill_blocks(tree.body, blocks)
        return tree.body

    def _render(self, name: str, scope: Scope) -> str:
        """`render('x.j2')`: the text of a template with the names of the render, without those that were set since."""
        if scope.root is NO_NAMES:
            raise Fault("render() has no resource here: this template is included or imported without context")
        if self.state.renders >= MAX_RENDERS:
            raise Exhausted("render: templates render each other recursively")
        METER.spend(8)
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
                self.state.lenient, self.state.weight = outer
            return found[0] if found else None
        text = scalar_text(value)
        METER.parse(text)
        read, mistakes = read_yaml(text, what)
        if mistakes:
            raise Fault(f"{what}: not YAML, or YAML with anchors or tags")
        return read[0].data() if read else None


def _fill_blocks(body: list[nodes.Node], blocks: Levels) -> None:
    """Puts the blocks that are in force into the statements. Each file that has any is parsed for itself."""
    for index, node in enumerate(body):
        if isinstance(node, nodes.Block):
            levels = blocks[node.name]
            for each in levels:
                _fill_blocks(each, blocks)
            body[index] = block_node(levels)
            body[index].lineno = node.lineno
            continue
        for name in ("body", "else_", "elif_"):
            inside = getattr(node, name, None)
            if isinstance(inside, list):
                _fill_blocks(inside, blocks)
