"""All templates of a project, in memory, with the files that each names.

Compiling is slow (milliseconds) and happens once, when the project is loaded. Mistakes in the text of a template are
found then, with their lines.
"""

from __future__ import annotations

import contextlib
import re
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import jinja2

from ruleop.errors import RuleError, Site
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates import syntax
from ruleop.language.templates.bodies.documents import Possible, computed_fields, name_of, possible_of
from ruleop.language.templates.compile.conversion import ParserEnvironment
from ruleop.language.templates.compile.hints import check_reserved, has_templates, mistakes_in, syntax_message
from ruleop.language.templates.compile.references import read_tree
from ruleop.language.templates.compile.value_trees import ValueTree, read_value
from ruleop.language.templates.compiled import Expression, Reads, StringTemplate, TextTemplate, Tree
from ruleop.language.templates.syntax import EFFECTS, find, names_in
from ruleop.language.templates.tree.nodes import Blocks, Constant, DocumentBlock, Statement, depth_of
from ruleop.language.templates.tree.templates import FOLDER, Computation, Instrument, Templates
from ruleop.language.templates.values.faults import RuleErrors, mistake
from ruleop.nearest import did_you_mean
from ruleop.reachable import reached
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from ruleop.language.templates.tree.nodes import Documents, Node
    from ruleop.language.templates.tree.pieces import Form
    from ruleop.language.templates.tree.templates import File
    from ruleop.language.templates.yaml_reader import YamlNode


# -- named files -------------------------------------------------------------------------------------------------------
#
# The other files of templates/ to which a template refers. Names must be literal text, so that the files of a rule are
# known when it is loaded.


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    line: int
    optional: bool = False  # the file may be missing
    is_run: bool = True  # the file is a template; `file` reads it as text
    hides_names: bool = False  # an import `without context`
    is_part_of_document: bool = True  # its text may become a part of the document; `render` returns a string
    imported: frozenset[str] | None = None  # the macros that are imported; None: the whole file is run


def named_templates(tree: syntax.Template) -> Iterator[Named]:
    for tag in find(tree, syntax.Include):
        optional = len(tag.files) > 1 or tag.ignore_missing
        yield from (Named(file, tag.site.line, optional) for file in tag.files)
    for import_ in find(tree, syntax.Import):
        yield Named(import_.file, import_.site.line, hides_names=not import_.with_context)
    for from_import in find(tree, syntax.FromImport):
        imported = frozenset(name for name, _ in from_import.names)
        hides_names = not from_import.with_context
        yield Named(from_import.file, from_import.site.line, hides_names=hides_names, imported=imported)
    for extends in find(tree, syntax.Extends):
        yield Named(extends.file, extends.site.line)
    for call in find(tree, syntax.Call):
        first = call.args[0] if call.args else None
        if call.name in {"file", "render"} and isinstance(first, syntax.Const):
            is_run = call.name == "render"
            yield Named(str(first.value), call.site.line, is_run=is_run, is_part_of_document=False)


def without_unused_macros(tree: syntax.Template, imported: Iterable[str]) -> syntax.Template:
    """The tree of a file without the macros that are neither imported nor called by what is run."""
    macros = {node.name: node for node in tree.body if isinstance(node, syntax.Macro)}
    named = {name for node in tree.body if not isinstance(node, syntax.Macro) for name in names_in(node)}
    used = reached(macros.keys() & {*imported, *named}, lambda name: macros.keys() & names_in(macros[name]))
    body = tuple(node for node in tree.body if not isinstance(node, syntax.Macro) or node.name in used)
    return tree if len(body) == len(tree.body) else syntax.Template(body, site=tree.site)


_QUOTED = re.compile(r"""['"]([A-Za-z0-9._/-]+)['"]""")


def quoted_names(text: str, templates: Container[str]) -> Iterator[str]:
    """The names of templates that are in quotes in a text."""
    return (match[1] for match in _QUOTED.finditer(text) if match[1] in templates)


# -- library -----------------------------------------------------------------------------------------------------------

Result = TypeVar("Result")
NO_KIND = "no apiVersion and kind in plain text: ruleop has to know them before it renders"


@dataclass(slots=True, eq=False)
class TemplateSource:
    """A parsed file of templates/."""

    name: str
    path: str
    tree: syntax.Template
    reads: Reads
    named: tuple[Named, ...]


MAX_LEVELS: Final = 160
"""Mappings, lists and statements inside each other: each is a few calls of Python, which has a thousand."""


def _require_shallow(file: File) -> None:
    """Raises RuleErrors for documents that could not be evaluated."""
    if depth_of(file.form.documents) > MAX_LEVELS:
        raise mistake("nested too deeply", file.place)


class Library:
    """The templates of a project. It is loaded by one thread."""

    def __init__(self, sources: Mapping[str, str], *, probe: Instrument | None = None) -> None:
        self.texts = dict(sources)
        self.templates = Templates(self.texts, self._evaluated, probe)
        self.environment = ParserEnvironment(self.templates.callables)
        self.probe = probe
        self._possible: dict[str | int, Possible] = {}  # of files, and of values by their ids
        self._sources: dict[str, TemplateSource] = {}
        self._observed: set[str] = set()  # the files that the probe was shown
        self._written_strings: dict[tuple[str, Site], syntax.Template] = {}
        self._written_values: dict[int, tuple[YamlNode, ValueTree]] = {}  # by the ids of the nodes

    # -- templates of rules --------------------------------------------------------------------------------------------

    def text(self, name: str) -> TextTemplate:
        """A template file that renders to objects."""
        files = self._files([name])
        main = self.source(name)
        self._parse_documents(name, files)
        kinds, mistakes = self.possible(name).kinds
        if mistakes or not kinds:
            raise RuleErrors(mistakes or [RuleError(NO_KIND, Site(main.path, 1))])
        return TextTemplate(
            self.templates,
            Site(main.path, 1),
            self._joined_reads([Named(name, 1)]),
            name,
            files,
            kinds,
            _may_be_several(self.templates.file(name).form.documents),
        )

    def text_mapping(self, name: str) -> TextTemplate:
        """A template file that renders to one mapping that is not an object: a status."""
        files = self._files([name])
        reads, start = self._joined_reads([Named(name, 1)]), Site(self.source(name).path, 1)
        self._parse_documents(name, files)
        fields = frozenset(map(name_of, self.possible(name).stream.parts)) - {""}
        return TextTemplate(self.templates, start, reads, name, files, fields=fields)

    def _pieces(self, name: str) -> Iterator[Form]:
        """The file and what it captures, without what is text."""
        for form in self.templates.file(name).pieces():
            with contextlib.suppress(RuleErrors):
                _ = form.documents
                yield form

    def _parse_documents(self, name: str, files: Iterable[str]) -> None:
        """Parses the documents of a file, and the files that it runs."""

        def parse() -> None:
            for each in files:
                self.templates.file(each)
            _require_shallow(self.templates.file(name))

        self._made(parse, Site(self.source(name).path, 1))

    def computed_fields(self, name: str) -> list[RuleError]:
        """The mistakes in a template file for a status: fields whose names are known only after rendering."""
        return [*computed_fields(self.possible(name).stream)]

    def expression(self, source: str, site: Site) -> Expression:
        """A bare expression, or one wrapped in {{ }}."""
        inner = source.strip()
        if inner.startswith("{{") and inner.endswith("}}") and "{{" not in inner[2:]:
            inner = inner[2:-2].removeprefix("-").removeprefix("+").removesuffix("-").removesuffix("+").strip()
        if not inner:
            raise mistake("an expression is missing here", site)
        if "{{" in inner or "{%" in inner:
            raise mistake(
                "this takes one expression, such as spec.replicas > 1, not text with {{ }} or {% %} in it", site
            )
        text = "{{ " + inner + " }}"
        tree, reads = self._parse_string(text, site)
        only = tree.only_value
        if only is None:
            raise mistake("this takes one expression, such as spec.replicas > 1", site)
        self._observe(tree, site)
        return Expression(self.templates, site, reads, Computation(self.templates, only, tree.body), inner)

    def string(self, source: str, site: Site) -> StringTemplate:
        if not has_templates(source):
            check_reserved(source, site)
            return StringTemplate(self.templates, site, Reads(), None, source)
        tree, reads = self._parse_string(source, site)
        self._observe(tree, site)
        return StringTemplate(self.templates, site, reads, self.templates.string(tree.body, site), source)

    def tree(self, node: YamlNode) -> Tree:
        """A value whose strings contain templates."""
        if isinstance(node.value, str):
            kinds, kind_mistake = self._kinds(node)
            only = self.string(node.value, node.site)
            file, constant = self.templates.value(Constant(None, node.site), node.site), only.constant is not None
            return Tree(self.templates, node.site, only.reads, only, file, constant, kinds, kind_mistake, node, {})
        named: list[Named] = []

        def parse(text: str, site: Site) -> syntax.Template:
            tree, its_named = self._checked(text, site)
            named.extend(its_named)
            return tree

        written = read_value(node, parse)
        self._written_values[id(node)] = node, written
        reads = Reads.joined([*(self._read_tree(tree, tree.site) for tree in written.texts), self._joined_reads(named)])
        counts = self._counts(written, node.site)
        file = self.templates.value(written.node, node.site)
        _require_shallow(file)
        constant = not written.texts
        kinds, kind_mistake = self._kinds(node)
        return Tree(self.templates, node.site, reads, None, file, constant, kinds, kind_mistake, node, counts)

    def _kinds(self, node: YamlNode) -> tuple[frozenset[Kind], RuleError | None]:
        """The kinds of an object in watches.yaml, or the mistake in them."""
        if not isinstance(node.value, dict):
            return frozenset(), RuleError("an object is a mapping with apiVersion, kind and metadata", node.site)
        members = [node.value.get(key) for key in ("apiVersion", "kind")]
        texts = [each.value if each is not None and isinstance(each.value, str) else "" for each in members]
        if not all(texts):
            missing = "apiVersion" if not texts[0] else "kind"
            return frozenset(), RuleError(f"an object needs {missing}, in plain text", node.site)
        if not any(map(has_templates, texts)):
            return frozenset({Kind.parse(*texts)}), None
        kinds, mistakes = self.possible(node).kinds
        sites = {node.key_sites[key]: node.value[key].site for key in ("apiVersion", "kind")}
        first = mistakes[0] if mistakes else None
        return kinds, first and RuleError(first.message, sites.get(first.site, first.site))

    def _counts(self, written: ValueTree, site: Site) -> dict[str, Callable[[], None]]:
        """The functions that count evaluations of the members of a value, for coverage."""
        if self.probe is None:
            return {}
        bodies = written.bodies
        self.probe.observe_value(list(bodies.values()), site)
        found = {name: self.probe.counter([body]) for name, body in bodies.items()}
        return {name: count for name, count in found.items() if count is not None}

    def prepare(self) -> None:
        """Parses what is left of the files that are used."""
        for name in self._sources:
            for _ in self._pieces(name):
                pass

    def possible(self, of: str | YamlNode) -> Possible:
        """The documents that a file or a value of watches.yaml may give."""
        key = of if isinstance(of, str) else id(of)
        found = self._possible.get(key)
        if found is None:
            if isinstance(of, str):
                file = self._made(partial(self.templates.file, of), Site(self.source(of).path, 1))
            else:
                file = self.templates.value(self.written_value(of).node, of.site)
            found = self._possible[key] = possible_of(file)
        return found

    def forget_bodies(self) -> None:
        """Releases what was read to check the templates."""
        for each in (self._possible, self._written_strings, self._written_values):
            each.clear()

    # -- sources -------------------------------------------------------------------------------------------------------

    def source(self, name: str) -> TemplateSource:
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = self._read(name)
        return source

    def written_tree(self, name: str) -> syntax.Template:
        """The tree of a file, with the places of its slots."""
        return self.source(name).tree

    def written_trees(self, names: Iterable[str]) -> list[syntax.Template]:
        """The trees of the files and of all that they run."""
        return [self.written_tree(name) for name in sorted(self._closure(names))]

    def written_string(self, text: str, site: Site) -> syntax.Template:
        """The same of a string of watches.yaml that was loaded before."""
        if (text, site) not in self._written_strings:
            self._written_strings[text, site] = self._parse(text, site)
        return self._written_strings[text, site]

    def written_value(self, node: YamlNode) -> ValueTree:
        """The same of a value of watches.yaml."""
        known = self._written_values.get(id(node))
        if known is None:
            known = self._written_values[id(node)] = node, read_value(node, self.written_string)
        return known[1]

    def with_run_files(self, tree: syntax.Template) -> list[syntax.Template]:
        """The tree of a string of watches.yaml, and those of all files that it runs."""
        files = [each.name for each in named_templates(tree) if each.is_run and each.name in self.texts]
        return [tree, *self.written_trees(files)]

    def _read(self, name: str) -> TemplateSource:
        path = FOLDER + name
        text = self.texts.get(name)
        if text is None:
            raise mistake(f"no such template{did_you_mean(name, self.texts)}", Site(path))
        check_reserved(text, Site(path), lines=True)
        tree = self._parse(text, Site(path, 1), is_file=True)
        return TemplateSource(name, path, tree, self._read_tree(tree, Site(path, 1)), tuple(named_templates(tree)))

    def _parse(self, text: str, start: Site, *, is_file: bool = False) -> syntax.Template:
        try:
            tree, refused = self.environment.tree(text, start, is_file=is_file)
        except jinja2.TemplateSyntaxError as error:
            raise mistake(syntax_message(error, text), Site(start.path, error.lineno)) from None
        except RecursionError:
            raise mistake("nested too deeply", start) from None
        if mistakes := [*refused, *mistakes_in(tree)]:
            raise RuleErrors(mistakes)
        return tree

    def _parse_string(self, source: str, site: Site) -> tuple[syntax.Template, Reads]:
        tree, named = self._checked(source, site)
        return tree, Reads.joined([self._read_tree(tree, site), self._joined_reads(named)])

    def _checked(self, source: str, site: Site) -> tuple[syntax.Template, tuple[Named, ...]]:
        """The tree of a string of watches.yaml, and the files that it names."""
        check_reserved(source, site)
        try:
            tree = self._parse(source, site)
        except RuleErrors as errors:
            raise RuleErrors([RuleError(error.message, site) for error in errors.mistakes]) from None
        for node in find(tree, syntax.Include, syntax.Extends, syntax.Block):
            raise mistake(f"{type(node).__name__.lower()} is only allowed in a template file", site)
        named = tuple(named_templates(tree))
        self._check_named(named, site)
        self._files(each.name for each in named if each.is_run)
        if mistakes := self._hidden_names(named, site):
            raise RuleErrors(mistakes)
        self._written_strings[source, site] = tree
        return tree, named

    def _read_tree(self, tree: syntax.Template, site: Site) -> Reads:
        try:
            return read_tree(tree, self.environment.globals)
        except RecursionError:
            raise mistake("nested too deeply", site) from None

    def _observe(self, tree: syntax.Template, where: str | Site) -> None:
        """Shows the probe a tree that nothing else reads."""
        if self.probe is not None:
            self.probe.observe(tree, where)

    @staticmethod
    def _made(make: Callable[[], Result], site: Site) -> Result:
        try:
            return make()
        except RecursionError:
            raise mistake("nested too deeply", site) from None

    def _evaluated(self, name: str) -> syntax.Template | None:
        """The tree of a file for its evaluation."""
        if name not in self.texts:
            return None
        source = self.source(name)
        if name not in self._observed:
            self._observed.add(name)
            self._observe(source.tree, source.path)
        return source.tree

    def _check_named(self, named: Iterable[Named], site: Site) -> None:
        mistakes = [
            RuleError(
                f"{FOLDER}{each.name} does not exist{did_you_mean(each.name, self.texts)}",
                Site(site.path, each.line) if not site.line else site,
            )
            for each in named
            if each.name not in self.texts and not each.optional
        ]
        if mistakes:
            raise RuleErrors(mistakes)

    def _files(self, names: Iterable[str]) -> frozenset[str]:
        """As `_closure`. Raises RuleErrors if an import hides names that a template reads."""
        files = self._closure(names)
        mistakes = [
            mistake
            for name in sorted(files)
            for mistake in self._hidden_names(self.source(name).named, Site(self.source(name).path))
        ]
        if mistakes:
            raise RuleErrors(mistakes)
        return files

    def _hidden_names(self, named: Iterable[Named], site: Site) -> list[RuleError]:
        mistakes = []
        for each in named:
            hidden = self._joined_reads([each]).names if each.hides_names and each.name in self.texts else None
            if hidden:
                names = ", ".join(sorted(hidden))
                message = (
                    f"{each.name} reads {names}, which an import `without context` hides: remove `without context`"
                )
                mistakes.append(RuleError(message, site if site.line else Site(site.path, each.line)))
        return mistakes

    def _closure(self, names: Iterable[str]) -> frozenset[str]:
        """The templates and all templates that they include, import, extend or render. Raises RuleErrors for
        unknown names."""
        mistakes: list[RuleError] = []
        seen: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            try:
                source = self.source(name)
                pending.extend(each.name for each in source.named if each.is_run and each.name in self.texts)
                self._check_named(source.named, Site(source.path))
            except RuleErrors as errors:
                mistakes.extend(errors.mistakes)
        if mistakes:
            raise RuleErrors(mistakes)
        return frozenset(seen)

    def _joined_reads(self, first: Iterable[Named]) -> Reads:
        """The reads of these files and of all that they run. A name that a template sets is known to the templates that
        it includes, and not to those that it renders."""
        reads: list[Reads] = []
        groups, seen = [[*first]], set[str]()
        for group in groups:
            run = [*self._run(group)]
            files = reached(
                (each.name for each in run if each.is_part_of_document),
                lambda name: (each.name for each in self._run(self.source(name).named) if each.is_part_of_document),
            )
            run += (each for name in files for each in self._run(self.source(name).named))
            rendered = {each.name for each in run if not each.is_part_of_document} - seen
            seen |= rendered
            groups += ([Named(name, 1)] for name in sorted(rendered))
            reads.append(self._reads_together(frozenset(files), group))
        return Reads.joined(reads)

    def _run(self, named: Iterable[Named]) -> Iterator[Named]:
        return (each for each in named if each.is_run and each.name in self.texts)

    def _reads_together(self, files: frozenset[str], first: Iterable[Named]) -> Reads:
        """The reads of files that see the names of one another."""
        imported: dict[str, frozenset[str] | None] = {}
        for each in (*first, *(named for name in files for named in self.source(name).named)):
            known = imported.get(each.name, frozenset())
            imported[each.name] = None if known is None or each.imported is None else known | each.imported
        reads = Reads.joined(self._reads_of(name, imported[name]) for name in sorted(files))
        assigned_names = {name for name, _ in reads.assigned} if len(files) > 1 else set()
        return Reads(
            reads.names - assigned_names,
            tuple(reference for reference in reads.references if reference.name not in assigned_names),
            reads.calls,
            reads.assigned,
        )

    def _reads_of(self, name: str, imported: frozenset[str] | None) -> Reads:
        source = self.source(name)
        if imported is None:
            return source.reads
        written = self.written_tree(name)
        tree = without_unused_macros(written, imported)
        return source.reads if tree is written else self._read_tree(tree, Site(source.path, 1))


def _may_be_several(documents: Documents) -> bool:
    """Whether it can render more than one document."""
    found = [each for each in documents.members if not _renders_nothing(each)]
    return len(found) > 1 or any(isinstance(each, DocumentBlock) for each in found)


def _renders_nothing(member: Node | DocumentBlock) -> bool:
    """Whether it consists of statements that have only an effect."""
    return isinstance(member, Blocks) and all(
        isinstance(each, Statement) and isinstance(each.node, EFFECTS) for each in member.members
    )
