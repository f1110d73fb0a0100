"""The templates of a project as trees, and their rendering."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jinja2 import nodes

from ruleop.core.errors import RenderError, Site
from ruleop.core.templating.compile.compiler import attach_places
from ruleop.core.templating.template_tree.evaluation import Evaluator, State
from ruleop.core.templating.template_tree.expressions import Expressions
from ruleop.core.templating.template_tree.pieces import Form, MacroValue, Piece
from ruleop.core.templating.template_tree.scope import Scope
from ruleop.core.templating.template_tree.statements import Statements, block_node
from ruleop.core.templating.template_tree.writing import Writer
from ruleop.core.templating.values.cost import METER, Exhausted
from ruleop.core.templating.values.faults import Fault, raise_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ruleop.core.kinds import JSON
    from ruleop.core.templating.compile.library import Library
    from ruleop.core.templating.template_tree.nodes import Documents
    from ruleop.core.templating.values.text import Part

Levels: TypeAlias = "dict[str, list[list[nodes.Node]]]"
"""The bodies of each block, the one in force first."""

MAX_RENDERS: Final = 20  # nested calls of render()


@dataclass(slots=True, eq=False)
class File:
    """A template file."""

    templates: Templates
    name: str
    path: str
    body: list[nodes.Node]
    writer: Writer = field(init=False)
    evaluator: Evaluator = field(init=False)
    form: Form = field(init=False)
    blocks: dict[str, Form] = field(default_factory=dict)

    def text_of(self, body: Sequence[nodes.Node]) -> Callable[[Scope, list[Part]], None]:
        return self.writer.body(body)

    def documents_of(self, documents: Documents) -> Callable[[Scope, list[JSON]], None]:
        return self.evaluator.documents(documents)

    def addition_of(self, documents: Documents) -> Callable[[Scope, Any], None]:
        return self.evaluator.addition(documents)

    def module(self, name: str, scope: Scope) -> dict[str, Any]:
        inner = scope.inner()
        self.templates.file(name).form.write(inner, [])
        return {each: value for each, value in inner.names.items() if not each.startswith("_")}

    def first_of(self, names: Sequence[str]) -> Form | None:
        return next((self.templates.file(name).form for name in names if name in self.templates.library.texts), None)

    def empty_scope(self) -> Scope:
        return Scope({}, root=self.templates.environment.globals)

    def scope(self, root: Mapping[str, Any]) -> Scope:
        """The scope of a render, with the blocks as `self`."""
        scope = Scope({}, root=root)
        if self.blocks:
            scope.names["self"] = {
                name: MacroValue(name, (), (), frozenset(), form, scope) for name, form in self.blocks.items()
            }
        return scope

    def __post_init__(self) -> None:
        self.writer = Writer(Statements(self.templates.expressions, self), self)
        self.evaluator = Evaluator(self.writer, self.templates.state)
        self.form = Form(self, self.body)


class Templates:
    def __init__(self, library: Library) -> None:
        self.library = library
        self.environment = library.environment
        self.expressions = Expressions(self.environment, self._render)
        self.state = State()
        self._files: dict[str, File] = {}
        self._renders = 0

    def render(self, name: str, scope: Mapping[str, Any], *, lenient: bool = False) -> list[JSON]:
        """The documents. Raises `Waiting` or `RenderError`."""
        file = self.file(name)
        site = Site(file.path, 1)
        self.state.begin(lenient=lenient)
        try:
            with self.library.renderer:
                found: list[JSON] = []
                file.form.evaluate(file.scope({**self.environment.globals, **scope}), found)
                return found
        except Fault as fault:
            raise_for(fault, site)
        except RecursionError:
            raise RenderError("macros, includes or values are nested too deeply", site) from None
        except MemoryError:
            raise RenderError("the template needs too much memory", site) from None

    def file(self, name: str) -> File:
        found = self._files.get(name)
        if found is None:
            path = self.library.prefix + name
            blocks: Levels = {}
            found = self._files[name] = File(self, name, path, self._body(name, blocks))
            found.blocks = {each: Form(found, [block_node(levels)]) for each, levels in blocks.items()}
        return found

    def _parsed(self, name: str) -> nodes.Template:
        path = self.library.prefix + name
        tree = self.environment._parse(self.library.texts[name], path, path)  # noqa: SLF001 - `parse` would rewrite the errors
        attach_places(tree, self.environment.printed(), path)
        return tree

    def _body(self, name: str, blocks: Levels) -> list[nodes.Node]:
        """The statements of a file; if it extends another, those of that one. `blocks`: those that override its own."""
        tree = self._parsed(name)
        for each in tree.find_all(nodes.Block):
            blocks.setdefault(each.name, []).append(each.body)
        extends = next(iter(tree.find_all(nodes.Extends)), None)
        if extends is not None and isinstance(extends.template, nodes.Const):
            return self._body(str(extends.template.value), blocks)
        return _with_blocks(tree.body, blocks)

    def _render(self, name: str, scope: Scope) -> str:
        """`render('x.j2')`: the text of a template with the names of the render, without those that were set since."""
        if scope.root is self.environment.globals:
            raise Fault("render() has no resource here: this template is included or imported without context")
        if self._renders >= MAX_RENDERS:
            raise Exhausted("render: templates render each other recursively")
        METER.spend(8)
        self._renders += 1
        try:
            return Piece(self.file(name).form, Scope({}, root=scope.root)).as_text()
        finally:
            self._renders -= 1


def _with_blocks(body: Sequence[nodes.Node], blocks: Levels) -> list[nodes.Node]:
    """The statements with the blocks that are in force."""
    found: list[nodes.Node] = []
    for node in body:
        if isinstance(node, nodes.Block):
            found.append(block_node([_with_blocks(each, blocks) for each in blocks[node.name]]))
            found[-1].lineno = node.lineno
            continue
        changed = node
        if next(iter(node.find_all(nodes.Block)), None) is not None:
            changed = copy.copy(node)
            for name in ("body", "else_", "elif_"):
                inside = getattr(node, name, None)
                if isinstance(inside, list):
                    setattr(changed, name, _with_blocks(inside, blocks))
        found.append(changed)
    return found
