"""All templates of a project, read once and rendered from memory only.

Compiling is slow (milliseconds) and happens once, when the project is loaded; what can be wrong with a template's text is found then, with its line.
Rendering takes a scope, a mapping of names to values, and gives plain objects.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jinja2
from jinja2 import nodes

from ruleop.errors import RenderError, RuleError, RuleopError, Site
from ruleop.kinds import JSON, Kind
from ruleop.schema.nearest import nearest
from ruleop.templating.budget import MAX_TEXT, Exhausted
from ruleop.templating.compiler import attach_places, check_dynamic_names, named_templates
from ruleop.templating.environment import Callable_, CompiledTemplate, Environment, as_fault
from ruleop.templating.filters import OTHER_NAMES, REFUSED
from ruleop.templating.references import Reads, Reference, read_tree
from ruleop.templating.skeleton import Skeleton, Unreadable, fill, parse
from ruleop.templating.static_kinds import kinds_in
from ruleop.templating.text import RESERVED, Dump, Slot, Text, faulty, flat, lay_out
from ruleop.templating.values import OMIT, Absent, Fault, NotThereYet, Omit, plain, scalar_text
from ruleop.templating.yaml_reader import YamlNode, read_yaml

CACHED_SKELETONS = 4096
MAX_DOCUMENTS = 5000


class RuleErrors(RuleopError):
    """Several mistakes at once."""

    def __init__(self, mistakes: list[RuleError]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class Waiting(RenderError):
    """What is rendered needs something that is not there yet. Not a mistake: it waits for `path`."""

    def __init__(self, path: str, site: Site, *, expression: str = "") -> None:
        super().__init__(f"{path} is not there yet", site, expression=expression)
        self.path = path


def raise_for(fault: Fault, site: Site, expression: str = "") -> None:
    """Raises the fault as what callers know: a `Waiting` or a `RenderError`, with its place."""
    at = getattr(fault, "site", None) or site
    said = getattr(fault, "expression", "") or expression
    if isinstance(fault, NotThereYet):
        raise Waiting(fault.path, at, expression=said) from None
    message = f"{{{{ {said} }}}}: {fault.reason}" if said and not fault.reason.startswith(said) else fault.reason
    raise RenderError(message, at, expression=said) from None


@dataclass(slots=True, eq=False)
class Source:
    """One file of templates/, parsed; compiled when it is first used."""

    name: str
    path: str
    tree: nodes.Template
    reads: Reads
    named: tuple[tuple[str, int, bool], ...]
    compiled: CompiledTemplate | None = None


class Library:
    """The templates of a project. Renders one thing at a time, from one thread."""

    def __init__(self, sources: Mapping[str, str], *, prefix: str = "templates/") -> None:
        self.texts = dict(sources)
        self.prefix = prefix
        self.environment = Environment(self._load, self._read_captured)
        self.environment.globals["file"] = Callable_("file", self._file)
        self.environment.globals["render"] = Callable_("render", self._render_inside)
        self.scope: Mapping[str, Any] = {}
        self.rendering: list[str] = []
        self.depth = 0
        self._sources: dict[str, Source] = {}
        self._skeletons: OrderedDict[str, Skeleton] = OrderedDict()

    # -- what rules are made of ----------------------------------------------------------------------------------------------------------

    def text(self, name: str) -> TextTemplate:
        """A template file that gives objects."""
        files = self._closure(name)
        main = self.source(name)
        mistakes: list[RuleError] = []
        kinds, documents = kinds_in([(self.source(each).tree, self.source(each).path) for each in sorted(files, key=lambda each: each != name)], mistakes)
        if not kinds and not mistakes:
            mistakes.append(RuleError("no apiVersion and kind in plain text: ruleop has to know them before it renders", Site(main.path, 1)))
        if mistakes:
            raise RuleErrors(mistakes)
        return TextTemplate(self, name, Site(main.path, 1), self._reads_of(files), kinds=kinds, many=documents > 1, files=files)

    def text_mapping(self, name: str) -> TextTemplate:
        """A template file that gives one mapping which is no object: a status."""
        files = self._closure(name)
        return TextTemplate(self, name, Site(self.source(name).path, 1), self._reads_of(files), kinds=frozenset(), many=False, files=files)

    def expression(self, source: str, site: Site) -> Expression:
        """A bare expression, or one wrapped in {{ }}."""
        text = source.strip()
        wrapped = text.startswith("{{") and text.endswith("}}") and "{{" not in text[2:]
        inner = text[2:-2].strip("-+ \t\n") if wrapped else text
        if not inner:
            raise RuleErrors([RuleError("an expression is missing here", site)])
        if "{{" in inner or "{%" in inner:
            raise RuleErrors([RuleError("this takes one expression, such as spec.replicas > 1, not text with {{ }} or {% %} in it", site)])
        tree = self._parse_string("{{ " + inner + " }}", site)
        return Expression(self, self._compile_string(tree, site), inner, site, _reads_at(tree, site))

    def string(self, source: str, site: Site) -> StringTemplate:
        if not _has_templates(source):
            _check_reserved(source, site)
            return StringTemplate(self, None, source, site, Reads())
        tree = self._parse_string(source, site)
        return StringTemplate(self, self._compile_string(tree, site), source, site, _reads_at(tree, site))

    def tree(self, node: YamlNode) -> Tree:
        """A value with templates in its strings."""
        mistakes: list[RuleError] = []
        strings: list[StringTemplate] = []
        built = self._tree(node, strings, mistakes)
        kind, kind_mistake = _kind_of(node)
        if mistakes:
            raise RuleErrors(mistakes)
        reads = Reads(
            frozenset().union(*(string.names for string in strings)),
            tuple(reference for string in strings for reference in string.references),
            tuple(call for string in strings for call in string.calls),
            tuple(name for string in strings for name in string.assigned),
        )
        return Tree(self, built, node.site, reads, constant=not strings, kinds=frozenset([kind]) if kind else frozenset(), kind_mistake=kind_mistake)

    def _tree(self, node: YamlNode, strings: list[StringTemplate], mistakes: list[RuleError]) -> Any:
        value = node.value
        if isinstance(value, str):
            return self._tree_string(value, node.site, strings, mistakes)
        if isinstance(value, list):
            return [self._tree(item, strings, mistakes) for item in value]
        if isinstance(value, dict):
            entries = []
            for key, member in value.items():
                entries.append((self._tree_string(key, node.key_sites[key], strings, mistakes), self._tree(member, strings, mistakes)))
            if any(isinstance(key, StringTemplate) for key, _ in entries):
                return SlottedKeys(tuple(entries))
            return dict(entries)
        return value

    def _tree_string(self, text: str, site: Site, strings: list[StringTemplate], mistakes: list[RuleError]) -> Any:
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
        text = self.texts[name]
        if reserved := RESERVED.search(text):
            line = text.count("\n", 0, reserved.start()) + 1
            raise RuleErrors([RuleError(f"the character U+{ord(reserved[0]):04X} is reserved (it is none that text may hold): remove it", Site(path, line))])
        tree = self._parse(text, path, path)
        attach_places(tree, self.environment.marked.printed if self.environment.marked else [], path)
        if dynamic := check_dynamic_names(tree):
            line, word = dynamic
            raise RuleErrors([RuleError(f"the name in {word} must be literal text, so that ruleop knows what belongs to a rule", Site(path, line))])
        return Source(name, path, tree, read_tree(tree, path), tuple(named_templates(tree)))

    def _parse(self, text: str, name: str, path: str, first_line: int = 1) -> nodes.Template:
        environment = self.environment
        try:
            tree = environment._parse(text, name, path)  # noqa: SLF001 - `parse` would rewrite the errors that are wanted here
        except jinja2.TemplateSyntaxError as error:
            raise RuleErrors([RuleError(_syntax(error), Site(path, error.lineno + first_line - 1))]) from None
        except RecursionError:
            raise RuleErrors([RuleError("nested too deeply", Site(path, first_line))]) from None
        mistakes = [RuleError(message, Site(path, line + first_line - 1)) for line, message in _unknown_functions(tree, environment)]
        if mistakes:
            raise RuleErrors(mistakes)
        return tree

    def _parse_string(self, source: str, site: Site) -> nodes.Template:
        _check_reserved(source, site)
        try:
            tree = self._parse(source, site.path, site.path)
        except RuleErrors as errors:
            raise RuleErrors([RuleError(error.message, site) for error in errors.mistakes]) from None
        for node in tree.find_all((nodes.Include, nodes.Extends, nodes.Block)):
            raise RuleErrors([RuleError(f"{type(node).__name__.lower()} belongs into a template file; here it has no meaning", site)])
        printed = self.environment.marked.printed if self.environment.marked else []
        for found in printed:
            found.line += site.line - 1
            found.alone = False
        attach_places(tree, printed, site.path)
        return tree

    def _compile_string(self, tree: nodes.Template, site: Site) -> CompiledTemplate:
        try:
            return self.environment.build(tree, str(site))
        except jinja2.TemplateSyntaxError as error:
            raise RuleErrors([RuleError(_syntax(error), site)]) from None

    def _load(self, name: str) -> CompiledTemplate:
        if name not in self.texts:
            raise jinja2.TemplateNotFound(name)
        source = self.source(name)
        if source.compiled is None:
            try:
                source.compiled = self.environment.build(source.tree, source.path)
            except jinja2.TemplateSyntaxError as error:
                raise RuleErrors([RuleError(_syntax(error), Site(source.path, error.lineno))]) from None
        return source.compiled

    def _closure(self, name: str) -> frozenset[str]:
        """A template and all that it includes, imports or extends; each compiled, each name known to exist."""
        mistakes: list[RuleError] = []
        seen: dict[str, None] = {}
        todo = [name]
        while todo:
            each = todo.pop()
            if each in seen:
                continue
            try:
                source = self.source(each)
                seen[each] = None
                self._load(each)
            except RuleErrors as errors:
                mistakes.extend(errors.mistakes)
                seen[each] = None
                continue
            for other, line, optional in source.named:
                if other in self.texts:
                    todo.append(other)
                elif not optional:
                    close = nearest(other, self.texts)
                    hint = f" (did you mean {close}?)" if close else ""
                    mistakes.append(RuleError(f"there is no template {self.prefix}{other}{hint}", Site(source.path, line)))
        if mistakes:
            raise RuleErrors(mistakes)
        return frozenset(seen)

    def _reads_of(self, files: frozenset[str]) -> Reads:
        """What the files read together. A name that one sets at its top is known to those that it includes."""
        reads = [self.source(name).reads for name in sorted(files)]
        given = {name for read in reads for name, _ in read.assigned} if len(files) > 1 else set()
        return Reads(
            frozenset(name for read in reads for name in read.names if name not in given),
            tuple(reference for read in reads for reference in read.references if reference.name not in given),
            tuple(call for read in reads for call in read.calls),
            tuple(name for read in reads for name in read.assigned),
        )

    # -- running -------------------------------------------------------------------------------------------------------------------------

    def run(self, template: CompiledTemplate, scope: Mapping[str, Any], site: Site) -> list[Any]:
        """The parts that a template gives; raises `Waiting` or `RenderError`."""
        environment = self.environment
        context = environment.context_class(environment, scope, template.name, template.blocks)  # type: ignore[arg-type]
        context.parent = {**environment.globals, **scope} if scope is not self.scope else self._merged
        self.depth += 1
        try:
            return list(template.root_render_func(context))
        except RecursionError:
            raise RenderError("macros, includes or values are nested too deeply", site) from None
        except MemoryError:
            raise RenderError("the template needs too much memory", site) from None
        except RuleErrors:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a template does wrong becomes one kind of error, with its line
            fault = as_fault(error)
            if getattr(fault, "site", None) is None:
                fault.site = _line_of(error, template, site)  # type: ignore[attr-defined]
            raise_for(fault, site)
            raise AssertionError from None
        finally:
            self.depth -= 1

    def begin(self, scope: Mapping[str, Any]) -> None:
        """A new render, unless one is running: a `let` that it reads is worked out inside it, on its budget."""
        if self.depth:
            return
        self.environment.budget.refill()
        self.scope = scope
        self._merged = {**self.environment.globals, **scope}  # anew each time: the caller may have added names to the same mapping

    def objects(self, parts: list[Any], name: str, site: Site, *, lenient: bool = False) -> list[JSON]:
        try:
            layout = lay_out(flat(parts))
            if len(layout.text) > MAX_TEXT:
                raise Exhausted(f"the rendered text has {len(layout.text):,} characters; at most {MAX_TEXT:,} are allowed")
            skeleton = self._skeletons.get(layout.text)
            if skeleton is None:
                skeleton = parse(layout, name)
                self._skeletons[layout.text] = skeleton
                if len(self._skeletons) > CACHED_SKELETONS:
                    self._skeletons.popitem(last=False)
            return fill(skeleton, layout, lenient=lenient)
        except Unreadable as error:
            first = error.mistakes[0]
            raise RenderError(first.message, first.site) from None
        except RecursionError:
            raise RenderError("nested too deeply", site) from None
        except Fault as fault:
            raise_for(fault, site)
            raise AssertionError from None

    def _read_captured(self, value: Any, what: str) -> Any:
        """`from_yaml`: captured text is parsed with its slots, like a template; any other text as the data that it is."""
        if isinstance(value, Dump):
            return value.data
        if isinstance(value, Text):
            layout = lay_out(value.parts)
            try:
                documents = fill(parse(layout, what), layout)
            except Unreadable as error:
                raise Fault(f"{what}: {error.mistakes[0].message}") from None
            return documents[0] if documents else None
        text = scalar_text(value)
        self.environment.budget.text(len(text) * 8)
        nodes_, mistakes = read_yaml(text, what)
        if mistakes:
            raise Fault(f"{what}: not YAML, or more than plain data")
        return nodes_[0].data() if nodes_ else None

    def _file(self, name: str) -> str:
        text = self.texts.get(name)
        if text is None:
            raise Fault(f"file: there is no {self.prefix}{name}" + _did_you_mean(name, self.texts))
        self.environment.budget.text(len(text))
        return text

    def _render_inside(self, name: str) -> str:
        if name not in self.texts:
            raise Fault(f"render: there is no {self.prefix}{name}" + _did_you_mean(name, self.texts))
        if len(self.rendering) > 20:
            raise Exhausted("render: templates render each other without end")
        template = self._load(name)
        environment = self.environment
        environment.budget.spend(1)
        context = environment.context_class(environment, {}, template.name, template.blocks)  # type: ignore[arg-type]
        context.parent = self._merged
        self.rendering.append(name)
        try:
            return Text(template.root_render_func(context)).as_text()
        finally:
            self.rendering.pop()


# -- what the rules hold -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Compiled:
    library: Library = field(repr=False)
    site: Site
    reads: Reads = field(repr=False)

    @property
    def names(self) -> frozenset[str]:
        return self.reads.names

    @property
    def references(self) -> tuple[Reference, ...]:
        return self.reads.references

    @property
    def calls(self) -> tuple[tuple[str, Site], ...]:
        return self.reads.calls

    @property
    def assigned(self) -> tuple[tuple[str, Site], ...]:
        return self.reads.assigned


class TextTemplate(_Compiled):
    """A template file that gives objects."""

    __slots__ = ("files", "kinds", "many", "name")

    def __init__(self, library: Library, name: str, site: Site, reads: Reads, *, kinds: frozenset[Kind], many: bool, files: frozenset[str]) -> None:
        _set(self, library=library, site=site, reads=reads, name=name, kinds=kinds, many=many, files=files)

    name: str
    kinds: frozenset[Kind]
    many: bool
    files: frozenset[str]

    def render(self, scope: Mapping[str, Any], *, lenient: bool = False) -> list[JSON]:
        """The documents. Raises `Waiting` or `RenderError`."""
        library = self.library
        library.begin(scope)
        parts = library.run(library._load(self.name), scope, self.site)  # noqa: SLF001
        return library.objects(parts, self.site.path, self.site, lenient=lenient)


class _String(_Compiled):
    __slots__ = ("compiled", "source")
    compiled: CompiledTemplate | None
    source: str


class Expression(_String):
    """An expression over a scope."""

    __slots__ = ()

    def __init__(self, library: Library, compiled: CompiledTemplate, source: str, site: Site, reads: Reads) -> None:
        _set(self, library=library, site=site, reads=reads, compiled=compiled, source=source)

    def value(self, scope: Mapping[str, Any]) -> Any:
        """The value as the template sees it (views and all), for use as another scope's value. Raises `Waiting` or `RenderError`."""
        library = self.library
        library.begin(scope)
        assert self.compiled is not None
        parts = library.run(self.compiled, scope, self.site)
        slot = next(part for part in parts if isinstance(part, Slot))
        value = slot.value
        if isinstance(value, Absent) and value is not OMIT:
            raise_for(value.fault(), self.site, self.source)
        return value

    def evaluate(self, scope: Mapping[str, Any]) -> JSON:
        """The value as JSON; None for `omit`."""
        value = self.value(scope)
        try:
            return None if isinstance(value, Omit) else plain(value)
        except Fault as fault:
            raise_for(fault, self.site, self.source)
            raise AssertionError from None

    def truth(self, scope: Mapping[str, Any]) -> bool:
        value = self.value(scope)
        try:
            return False if isinstance(value, Omit) else bool(value)
        except Fault as fault:
            raise_for(fault, self.site, self.source)
            raise AssertionError from None


class StringTemplate(_String):
    """A string of watches.yaml. One slot keeps its type; anything else is text."""

    __slots__ = ()

    def __init__(self, library: Library, compiled: CompiledTemplate | None, source: str, site: Site, reads: Reads) -> None:
        _set(self, library=library, site=site, reads=reads, compiled=compiled, source=source)

    @property
    def constant(self) -> str | None:
        return self.source if self.compiled is None else None

    def evaluate(self, scope: Mapping[str, Any]) -> JSON | Omit:
        """The value, or OMIT where the field is to be left out. Raises `Waiting` or `RenderError`."""
        if self.compiled is None:
            return self.source
        self.library.begin(scope)
        return self.within(scope)

    def within(self, scope: Mapping[str, Any]) -> JSON | Omit:
        """As `evaluate`, as a part of a larger value: on the same budget."""
        assert self.compiled is not None
        parts = flat(self.library.run(self.compiled, scope, self.site))
        try:
            if len(parts) == 1 and isinstance(parts[0], Slot):
                slot = parts[0]
                if slot.value is None or slot.value is OMIT:
                    return OMIT
                try:
                    return plain(slot.value)
                except Fault as fault:
                    raise faulty(fault, slot.place) from None
            return Text(parts).as_text()
        except RecursionError:
            raise RenderError("a value is nested too deeply", self.site) from None
        except Fault as fault:
            if getattr(fault, "site", None) is not None:
                fault.site = self.site  # type: ignore[attr-defined]
            raise_for(fault, self.site, self.source)
            raise AssertionError from None

    def string(self, scope: Mapping[str, Any]) -> str:
        """The value as text, for reasons, messages and names; '' where it is left out."""
        value = self.evaluate(scope)
        if isinstance(value, Omit):
            return ""
        try:
            return scalar_text(value)
        except Fault as fault:
            raise_for(fault, self.site, self.source)
            raise AssertionError from None


@dataclass(frozen=True, slots=True)
class SlottedKeys:
    entries: tuple[tuple[Any, Any], ...]


class Tree(_Compiled):
    """A value of watches.yaml with templates in its strings: an `object`, a `status`, a `let`."""

    __slots__ = ("built", "constant", "kind_mistake", "kinds")

    built: Any
    constant: bool
    kinds: frozenset[Kind]
    kind_mistake: RuleError | None

    def __init__(
        self, library: Library, built: Any, site: Site, reads: Reads, *, constant: bool, kinds: frozenset[Kind], kind_mistake: RuleError | None
    ) -> None:
        _set(self, library=library, built=built, site=site, reads=reads, constant=constant, kinds=kinds, kind_mistake=kind_mistake)

    many = False

    def evaluate(self, scope: Mapping[str, Any], *, lenient: bool = False) -> JSON | Omit:
        """The value with its strings evaluated. `lenient`: what is not there yet leaves out its own field or item."""
        if self.constant:
            return _without_nulls(self.built)
        self.library.begin(scope)
        return self._value(self.built, scope, lenient)

    def members(self) -> Mapping[str, Tree]:
        """Each member of a mapping as a tree of its own, so that one that fails harms no other."""
        built = self.built if isinstance(self.built, dict) else {}
        return {
            key: Tree(self.library, member, self.site, self.reads, constant=False, kinds=frozenset(), kind_mistake=None) for key, member in built.items()
        }

    def render(self, scope: Mapping[str, Any], *, lenient: bool = False) -> list[JSON]:
        value = self.evaluate(scope, lenient=lenient)
        return [] if isinstance(value, Omit) or value is None else [value]

    def view(self, scope: Mapping[str, Any]) -> Any:
        """As `evaluate`, but a tree that is one string keeps what its slot holds, views and all (for `let`)."""
        built = self.built
        if isinstance(built, StringTemplate) and built.compiled is not None:
            parts = flat(self.library.run(built.compiled, scope, built.site))
            if len(parts) == 1 and isinstance(parts[0], Slot):
                return parts[0].value
            return Text(parts)
        return self._value(built, scope, lenient=False)

    def _value(self, built: Any, scope: Mapping[str, Any], lenient: bool) -> Any:
        if type(built) is StringTemplate:
            try:
                return built.within(scope)
            except Waiting:
                if lenient:
                    return OMIT
                raise
        if type(built) is dict:
            result = {}
            for key, member in built.items():
                if member is None:
                    continue
                value = self._value(member, scope, lenient) if type(member) in _COMPOUND else member
                if value is not OMIT:
                    result[key] = value
            return result
        if type(built) is list:
            values = (self._value(item, scope, lenient) for item in built if item is not None)
            return [value for value in values if value is not OMIT]
        if type(built) is SlottedKeys:
            return self._slotted(built, scope, lenient)
        return built

    def _slotted(self, built: SlottedKeys, scope: Mapping[str, Any], lenient: bool) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, member in built.entries:
            name = self._value(key, scope, lenient)
            value = OMIT if member is None else self._value(member, scope, lenient)
            if name is OMIT or value is OMIT:
                continue
            site = key.site if isinstance(key, StringTemplate) else self.site
            try:
                name = scalar_text(name)
            except Fault as fault:
                raise_for(fault, site)
            if name in result:
                raise RenderError(f'the key "{name}" stands here twice', site)
            result[name] = value
        return result


_COMPOUND = frozenset({dict, list, StringTemplate, SlottedKeys})


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def _set(target: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(target, name, value)


def _has_templates(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def _check_reserved(text: str, site: Site) -> None:
    if reserved := RESERVED.search(text):
        raise RuleErrors([RuleError(f"the character U+{ord(reserved[0]):04X} is reserved (it is none that text may hold): remove it", site)])


def _reads_at(tree: nodes.Template, site: Site) -> Reads:
    return read_tree(tree, site.path, site.line)


def _kind_of(node: YamlNode) -> tuple[Kind | None, RuleError | None]:
    if not isinstance(node.value, dict):
        return None, RuleError("an object is a mapping with apiVersion, kind and metadata", node.site)
    found = {}
    for key in ("apiVersion", "kind"):
        member = node.value.get(key)
        if member is None or not isinstance(member.value, str) or not member.value:
            return None, RuleError(f"an object needs {key}, in plain text", node.site)
        if _has_templates(member.value):
            return None, RuleError(f"{key} must be plain text, so that ruleop knows before it starts what to watch", member.site)
        found[key] = member.value
    return Kind.parse(found["apiVersion"], found["kind"]), None


def _did_you_mean(name: Any, known: Mapping[str, Any]) -> str:
    close = nearest(str(name), known)
    return f" (did you mean {close}?)" if close else ""


def _unknown_functions(tree: nodes.Template, environment: Environment) -> Iterator[tuple[int, str]]:
    for node in tree.find_all((nodes.Filter, nodes.Test)):
        is_filter = isinstance(node, nodes.Filter)
        name = node.name  # type: ignore[attr-defined]
        known: Mapping[str, Any] = environment.filters if is_filter else environment.tests
        if name in known:
            continue
        what = "filter" if is_filter else "test"
        if name in OTHER_NAMES:
            yield node.lineno, f"there is no {what} {name}; here it is {OTHER_NAMES[name]}"
        elif is_filter and name in REFUSED:
            yield node.lineno, f"the filter {name} is not offered: {REFUSED[name]}"
        else:
            yield node.lineno, f"there is no {what} {name}" + _did_you_mean(name, {each: None for each in known if each.isidentifier()})


_TAG = re.compile(r"Encountered unknown tag '(\w+)'")


def _syntax(error: jinja2.TemplateSyntaxError) -> str:
    message = str(error.message or "").rstrip(".")
    if match := _TAG.match(message):
        return f"there is no tag {{% {match[1]} %}}" + (": " + message.split(". ", 1)[1] if ". " in message else "")
    return f"template syntax: {message}"


def _line_of(error: BaseException, template: CompiledTemplate, site: Site) -> Site:
    """The template line at which an error arose, from the traceback through Jinja's generated code."""
    found = site
    traceback = error.__traceback__
    while traceback is not None:
        namespace = traceback.tb_frame.f_globals
        if "constants" in namespace and "debug_info" in namespace:
            line = _template_line(namespace["debug_info"], traceback.tb_lineno)
            path = str(namespace["__file__"])
            # A string of watches.yaml is named by its site; a template file by its path.
            found = Site(path, line) if not path.endswith(str(site)) else site
        traceback = traceback.tb_next
    return found


def _template_line(debug_info: str, line: int) -> int:
    template_line = 1
    for pair in debug_info.split("&"):
        left, _, right = pair.partition("=")
        if right and int(right) <= line:
            template_line = int(left)
    return template_line
