"""Runs compiled templates with a scope, and builds objects from their output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.core.errors import RenderError, Site
from ruleop.core.templating.compile.environment import CompiledTemplate, Environment, as_fault, line_of
from ruleop.core.templating.compile.hints import joined_lines
from ruleop.core.templating.tree.filling import fill
from ruleop.core.templating.tree.layout import lay_out
from ruleop.core.templating.tree.skeleton import Skeletons, Unreadable
from ruleop.core.templating.tree.yaml_reader import read_yaml
from ruleop.core.templating.values.cost import MAX_TEXT, METER, Exhausted, exceeded
from ruleop.core.templating.values.data import scalar_text
from ruleop.core.templating.values.faults import Fault, RuleErrors, raise_for
from ruleop.core.templating.values.text import Dump, Part, Text, flatten_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ruleop.core.kinds import JSON
    from ruleop.core.templating.tree.layout import Layout

MAX_RENDERS = 20  # nested calls of render()


class Renderer:
    """The environment, the cached skeletons, and the names of the current render. One per library."""

    def __init__(self) -> None:
        self.environment: Environment
        self.skeletons = Skeletons()
        self.names: Mapping[str, Any] = {}
        self.inner_renders = 0
        self.depth = 0
        self.hide: Callable[[tuple[Part, ...]], tuple[Part, ...]] | None = None  # changes what a template yields
        self.trace: Callable[[str, Layout, list[JSON]], None] | None = None  # is shown each text and its objects
        self.tag_at_end: Callable[[Site], str] = lambda _: ""  # the tag that ends a line of a template
        self.before = 0  # of the meter, at the start of the outermost evaluation

    def __enter__(self) -> None:
        """Starts an evaluation, whose account nested evaluations share."""
        if not self.depth:
            self.before = METER.begin_render()
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if not self.depth:
            METER.end_render(self.before)

    def reset(self) -> None:
        """Drops the state of an evaluation that was interrupted, perhaps where it was to be restored."""
        self.names, self.depth, self.inner_renders, self.hide, self.trace = {}, 0, 0, None, None
        self.environment.without_context = 0

    def run(self, template: CompiledTemplate, scope: Mapping[str, Any], site: Site) -> tuple[Part, ...]:
        """The parts that a template yields. Raises `Waiting` or `RenderError`."""
        outer, self.names = self.names, {**self.environment.globals, **scope}
        try:
            METER.spend(template.units)
            parts = flatten_parts(template.root_render_func(self._context(template)))
            return parts if self.hide is None else self.hide(parts)
        except RecursionError:
            raise RenderError("macros, includes or values are nested too deeply", site) from None
        except MemoryError:
            raise RenderError("the template needs too much memory", site) from None
        except (RuleErrors, RenderError):
            raise
        except Exception as error:  # noqa: BLE001 - every error of a template becomes one with its line
            raise_for(as_fault(error).at(line_of(error.__traceback__) or site, ""), site)
        finally:
            self.names = outer

    def _context(self, template: CompiledTemplate) -> Any:
        context = self.environment.context_class(self.environment, {}, template.name, template.blocks)
        context.parent = self.names  # type: ignore[assignment]
        return context

    def objects(self, parts: Sequence[Part], name: str, site: Site, *, lenient: bool) -> list[JSON]:
        with located(site):
            layout = lay_out(parts)
            if len(layout.text) > MAX_TEXT:
                raise exceeded("the rendered text has {} characters", len(layout.text), MAX_TEXT)
            try:
                skeleton = self.skeletons.of(layout, name)
            except Unreadable as error:
                first = error.mistakes[0]
                if error.joined is not None and (tag := self.tag_at_end(error.joined[0])):
                    first = joined_lines(tag, *error.joined)
                raise RenderError(first.message, first.site) from None
            documents = fill(skeleton, layout, lenient=lenient)
            if self.trace is not None:
                self.trace(name, layout, documents)
            return documents

    def read_captured(self, value: Any, what: str) -> Any:
        """`from_yaml`: captured text is parsed with its slots, like a template; any other text as plain data."""
        if isinstance(value, Dump):
            return value.data
        if isinstance(value, Text):
            layout = lay_out(value.parts)
            try:
                documents = fill(self.skeletons.of(layout, what), layout)
            except Unreadable as error:
                first = error.mistakes[0]
                raise Fault(f"{what}: {first.message}").at(first.site, "") from None
            return documents[0] if documents else None
        text = scalar_text(value)
        METER.parse(text)
        nodes, mistakes = read_yaml(text, what)
        if mistakes:
            raise Fault(f"{what}: not YAML, or YAML with anchors or tags")
        return nodes[0].data() if nodes else None

    def render_inside(self, template: CompiledTemplate) -> str:
        """`render('x.j2')`: the text of a template with the names of this render, but without the variables that the
        caller has `set`."""
        if self.environment.without_context:
            raise Fault("render() has no resource here: this template is included or imported without context")
        if self.inner_renders >= MAX_RENDERS:
            raise Exhausted("render: templates render each other recursively")
        METER.spend(template.units)
        self.inner_renders += 1
        try:
            return Text(template.root_render_func(self._context(template))).as_text()
        finally:
            self.inner_renders -= 1


class located:  # noqa: N801 - used like a function; a class, because a generator is slow
    """`with located(site):` adds the site to errors that have none."""

    __slots__ = ("expression", "site")

    def __init__(self, site: Site, expression: str = "") -> None:
        self.site = site
        self.expression = expression

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None:
            return
        if isinstance(error, Fault):
            raise_for(error, self.site, self.expression)
        if isinstance(error, RecursionError):
            raise RenderError("a value is nested too deeply", self.site, expression=self.expression) from None
        if isinstance(error, MemoryError):
            raise RenderError("the template needs too much memory", self.site, expression=self.expression) from None
