"""All templates of a project, read once and rendered from memory only.

Compiling is slow (milliseconds) and happens once, when the project is loaded; what can be wrong with a template's text is found then, with
its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import nodes

from ruleop.errors import RuleError, Site
from ruleop.schema.nearest import did_you_mean
from ruleop.templating.compile.compiled import Expression, Member, SlottedKeys, StringTemplate, TextTemplate, Tree
from ruleop.templating.compile.compiler import attach_places
from ruleop.templating.compile.environment import CompiledTemplate, Environment, TemplateFunction
from ruleop.templating.compile.hints import (
    check_reserved,
    has_templates,
    kind_of,
    misplaced_words,
    refused_tags,
    syntax,
    unknown_functions,
)
from ruleop.templating.compile.named_files import Named, check_dynamic_names, named_templates
from ruleop.templating.compile.references import Reads, read_tree
from ruleop.templating.compile.renderer import Renderer
from ruleop.templating.compile.static_fields import computed_fields
from ruleop.templating.compile.static_kinds import kinds_in
from ruleop.templating.values.budget import METER
from ruleop.templating.values.data import scalar_text
from ruleop.templating.values.faults import Fault, RuleErrors, mistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.templating.tree.yaml_reader import YamlNode


_PER_RENDER = frozenset({"namespace", "cycler", "joiner", "render"})
"""Functions whose results belong to one render: they remember what was done with them, or read the names of the render at hand."""


@dataclass(slots=True, eq=False)
class Source:
    """One file of templates/, parsed; compiled when it is first used."""

    name: str
    path: str
    tree: nodes.Template
    reads: Reads
    named: tuple[Named, ...]
    compiled: CompiledTemplate | None = None


class Library:
    """The templates of a project. Renders one thing at a time, from one thread."""

    def __init__(self, sources: Mapping[str, str], *, prefix: str = "templates/") -> None:
        self.texts = dict(sources)
        self.prefix = prefix
        self.renderer = Renderer()
        self.environment = self.renderer.environment = Environment(self._load, self.renderer.read_captured)
        self.environment.globals["file"] = TemplateFunction("file", self._file)
        self.environment.globals["render"] = TemplateFunction("render", self._render)
        self._sources: dict[str, Source] = {}

    # -- what rules are made of ----------------------------------------------------------------------------------------------------------

    def text(self, name: str) -> TextTemplate:
        """A template file that gives objects."""
        files = self._files([name])
        main = self.source(name)
        mistakes: list[RuleError] = []
        in_document = self._laid_into(name)
        kinds, documents = kinds_in([(self.source(each).tree, self.source(each).path) for each in in_document], mistakes)
        if not kinds and not mistakes:
            mistakes.append(
                RuleError("no apiVersion and kind in plain text: ruleop has to know them before it renders", Site(main.path, 1))
            )
        if mistakes:
            raise RuleErrors(mistakes)
        return TextTemplate(self.renderer, Site(main.path, 1), self._reads_of(files), self._load(name), name, files, kinds, documents > 1)

    def text_mapping(self, name: str) -> TextTemplate:
        """A template file that gives one mapping which is no object: a status."""
        files = self._files([name])
        return TextTemplate(self.renderer, Site(self.source(name).path, 1), self._reads_of(files), self._load(name), name, files)

    def computed_fields(self, name: str) -> list[RuleError]:
        """The mistakes in a template file for a status: fields of which nobody knows the name without rendering it."""
        source = self.source(name)
        return computed_fields(source.tree, source.path, frozenset(local for local, _ in source.reads.assigned))

    def expression(self, source: str, site: Site) -> Expression:
        """A bare expression, or one wrapped in {{ }}."""
        inner = source.strip()
        if inner.startswith("{{") and inner.endswith("}}") and "{{" not in inner[2:]:
            inner = inner[2:-2].removeprefix("-").removeprefix("+").removesuffix("-").removesuffix("+").strip()
        if not inner:
            raise mistake("an expression is missing here", site)
        if "{{" in inner or "{%" in inner:
            raise mistake("this takes one expression, such as spec.replicas > 1, not text with {{ }} or {% %} in it", site)
        tree, reads = self._parse_string("{{ " + inner + " }}", site)
        printed = [node for output in tree.body for node in getattr(output, "nodes", [None])]
        if len(printed) != 1 or isinstance(printed[0], nodes.TemplateData):
            raise mistake("this takes one expression, such as spec.replicas > 1", site)
        return Expression(self.renderer, site, reads, self._compile(tree, site), inner)

    def string(self, source: str, site: Site) -> StringTemplate:
        if not has_templates(source):
            check_reserved(source, site)
            return StringTemplate(self.renderer, site, Reads(), None, source)
        tree, reads = self._parse_string(source, site)
        return StringTemplate(self.renderer, site, reads, self._compile(tree, site), source)

    def tree(self, node: YamlNode) -> Tree:
        """A value with templates in its strings."""
        mistakes: list[RuleError] = []
        strings: list[StringTemplate] = []
        built = self._tree(node, strings, mistakes)
        kind, kind_mistake = kind_of(node)
        if mistakes:
            raise RuleErrors(mistakes)
        reads = Reads.joined(string.reads for string in strings)
        return Tree(self.renderer, node.site, reads, built, not strings, frozenset([kind]) if kind else frozenset(), kind_mistake)

    def _tree(self, node: YamlNode, strings: list[StringTemplate], mistakes: list[RuleError]) -> Any:
        value = node.value
        if isinstance(value, str):
            return self._tree_string(value, node.site, strings, mistakes)
        if isinstance(value, list):
            return [self._tree(item, strings, mistakes) for item in value]
        if isinstance(value, dict):
            members = tuple(
                Member(self._tree_string(key, site := node.key_sites[key], strings, mistakes), site, self._tree(inner, strings, mistakes))
                for key, inner in value.items()
            )
            if any(isinstance(member.key, StringTemplate) for member in members):
                return SlottedKeys(members)
            return {member.key: member.value for member in members}
        return value

    def _tree_string(self, text: str, site: Site, strings: list[StringTemplate], mistakes: list[RuleError]) -> str | StringTemplate:
        try:
            string = self.string(text, site)
        except RuleErrors as errors:
            mistakes.extend(errors.mistakes)
            return text
        if string.constant is not None:
            return text
        strings.append(string)
        return string

    # -- sources -------------------------------------------------------------------------------------------------------------------------

    def source(self, name: str) -> Source:
        found = self._sources.get(name)
        if found is None:
            found = self._sources[name] = self._read(name)
        return found

    def _read(self, name: str) -> Source:
        path = self.prefix + name
        text = self.texts.get(name)
        if text is None:
            raise mistake(f"there is no such template{did_you_mean(name, self.texts)}", Site(path))
        check_reserved(text, Site(path), lines=True)
        tree = self._parse(text, path)
        attach_places(tree, self.environment.printed(), path)
        return Source(name, path, tree, self._read_tree(tree, Site(path, 1)), tuple(named_templates(tree)))

    def _parse(self, text: str, path: str) -> nodes.Template:
        try:
            tree = self.environment._parse(text, path, path)  # noqa: SLF001 - `parse` would rewrite the errors that are wanted here
            found = [
                *unknown_functions(tree, self.environment.filters, self.environment.tests),
                *check_dynamic_names(tree),
                *refused_tags(tree),
                *misplaced_words(tree),
            ]
        except jinja2.TemplateSyntaxError as error:
            raise mistake(syntax(error, text), Site(path, error.lineno)) from None
        except RecursionError:
            raise mistake("nested too deeply", Site(path, 1)) from None
        if found:
            raise RuleErrors([RuleError(message, Site(path, line)) for line, message in found])
        return tree

    def _parse_string(self, source: str, site: Site) -> tuple[nodes.Template, Reads]:
        check_reserved(source, site)
        try:
            tree = self._parse(source, site.path)
        except RuleErrors as errors:
            raise RuleErrors([RuleError(error.message, site) for error in errors.mistakes]) from None
        for node in tree.find_all((nodes.Include, nodes.Extends, nodes.Block)):
            raise mistake(f"{type(node).__name__.lower()} belongs into a template file; here it has no meaning", site)
        printed = self.environment.printed()
        for found in printed:
            found.alone = False
        attach_places(tree, printed, site)
        named = tuple(named_templates(tree))
        self._check_named(named, site)
        files = self._files(each.name for each in named if each.is_run)
        if mistakes := self._hidden_names(named, site):
            raise RuleErrors(mistakes)
        return tree, Reads.joined([self._read_tree(tree, site), self._reads_of(files)])

    def _read_tree(self, tree: nodes.Template, site: Site) -> Reads:
        try:
            return read_tree(tree, site.path, site.line)
        except jinja2.TemplateSyntaxError as error:  # two blocks of one name
            raise mistake(syntax(error), Site(site.path, site.line + error.lineno - 1)) from None
        except RecursionError:
            raise mistake("nested too deeply", site) from None

    def _compile(self, tree: nodes.Template, where: str | Site) -> CompiledTemplate:
        path, line = (where, None) if isinstance(where, str) else (where.path, where)
        try:
            return self.environment.build(tree, where)
        except jinja2.TemplateSyntaxError as error:
            raise mistake(syntax(error), line or Site(path, error.lineno)) from None
        except (SyntaxError, RecursionError, MemoryError):  # of the Python that Jinja makes of it
            raise mistake("nested too deeply", line or Site(path, 1)) from None

    def _load(self, name: str) -> CompiledTemplate:
        if name not in self.texts:
            raise jinja2.TemplateNotFound(name)
        source = self.source(name)
        if source.compiled is None:
            source.compiled = self._compile(source.tree, source.path)
            source.compiled.stands_alone = cache(partial(self._stands_alone, name))
        return source.compiled

    def _stands_alone(self, name: str) -> bool:
        """Whether a template reads nothing of a resource and remembers nothing: then what it is can be made once for all resources."""
        sources = [self.source(each) for each in self._closure([name])]
        return not any(source.reads.names or any(at.name in _PER_RENDER for at in source.tree.find_all(nodes.Name)) for source in sources)

    def _check_named(self, named: Iterable[Named], site: Site) -> None:
        mistakes = [
            RuleError(
                f"there is no {self.prefix}{each.name}{did_you_mean(each.name, self.texts)}",
                Site(site.path, each.line) if not site.line else site,
            )
            for each in named
            if each.name not in self.texts and not each.optional
        ]
        if mistakes:
            raise RuleErrors(mistakes)

    def _files(self, names: Iterable[str]) -> frozenset[str]:
        """As `_closure`, with no name hidden from those that read it."""
        files = self._closure(names)
        mistakes = [
            mistake for name in sorted(files) for mistake in self._hidden_names(self.source(name).named, Site(self.source(name).path))
        ]
        if mistakes:
            raise RuleErrors(mistakes)
        return files

    def _hidden_names(self, named: Iterable[Named], site: Site) -> list[RuleError]:
        mistakes = []
        for each in named:
            hidden = self._reads_of(self._closure([each.name])).names if each.hides_names and each.name in self.texts else None
            if hidden:
                message = (
                    f"{each.name} reads {', '.join(sorted(hidden))}, which an import `without context` hides: remove `without context`"
                )
                mistakes.append(RuleError(message, site if site.line else Site(site.path, each.line)))
        return mistakes

    def _closure(self, names: Iterable[str]) -> frozenset[str]:
        """The templates and all that they include, import, extend or render; each compiled, each name known to exist."""
        mistakes: list[RuleError] = []
        seen: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            try:
                self._load(name) if name in self.texts else self.source(name)
                source = self.source(name)
                todo.extend(each.name for each in source.named if each.is_run and each.name in self.texts)
                self._check_named(source.named, Site(source.path))
            except RuleErrors as errors:
                mistakes.extend(errors.mistakes)
        if mistakes:
            raise RuleErrors(mistakes)
        return frozenset(seen)

    def _laid_into(self, name: str) -> list[str]:
        """The template, then those whose text may become a part of its documents: all but those that it renders into a string."""
        order: dict[str, None] = {}
        todo = [name]
        while todo:
            each = todo.pop(0)
            if each not in order and each in self.texts:
                order[each] = None
                todo.extend(sorted(named.name for named in self.source(each).named if named.is_laid))
        return list(order)

    def _reads_of(self, files: frozenset[str]) -> Reads:
        """What the files read together. A name that one sets at its top is known to those that it includes."""
        reads = Reads.joined(self.source(name).reads for name in sorted(files))
        given = {name for name, _ in reads.assigned} if len(files) > 1 else set()
        return Reads(
            reads.names - given,
            tuple(reference for reference in reads.references if reference.name not in given),
            reads.calls,
            reads.assigned,
        )

    # -- functions for templates ---------------------------------------------------------------------------------------------------------

    def _file(self, name: Any) -> str:
        text = self.texts.get(scalar_text(name))
        if text is None:
            raise Fault(f"there is no such file below {self.prefix}{did_you_mean(scalar_text(name), self.texts)}")
        METER.text(len(text))
        return text

    def _render(self, name: Any) -> str:
        return self.renderer.render_inside(self._load(scalar_text(name)))
