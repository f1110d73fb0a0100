"""Loads rules from the files of a project: they are parsed, and then built.

Between the two steps `rules.checking` checks them. A process does both for the operator, at its start and when files
change; results are compared by their digest, which covers every file and every environment variable that was read.

The digest of a rule is of everything that its plans depend on, and nothing else. Sites are not part of it, so a line
inserted before a watch changes nothing. The text of a template counts together with all templates that it can use.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ruleop.errors import Site
from ruleop.language.rules.facts.scopes import RulePart, parts
from ruleop.language.rules.findings import Findings, ProjectErrors, did_you_mean_quoted
from ruleop.language.rules.keys.env_vars import Constants, EnvVars
from ruleop.language.rules.keys.model import Project, Rule
from ruleop.language.rules.keys.parsed import Draft, Shared, join, read_file
from ruleop.language.rules.keys.value_types import NO_ANALYSIS, Analysis, FileReading
from ruleop.language.rules.loading.build import build_rule
from ruleop.language.rules.project_files import (
    WATCHES,
    RuleFiles,
    digest_of,
    digest_of_files,
    has_wildcards,
    is_inside,
    matches,
    normalise_pattern,
)
from ruleop.language.templates import Expression, StringTemplate, TextTemplate, Tree, read_yaml
from ruleop.language.templates.compile import Library
from ruleop.language.templates.compile.library import quoted_names
from ruleop.reachable import reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.language.rules.keys.value_types import Word
    from ruleop.language.rules.keys.watches_yaml import FileTable
    from ruleop.language.templates.tree.templates import Instrument

_COMPUTED = re.compile(r"""\bfile\s*\(\s*(?!(['"])[A-Za-z0-9._/-]+\1\s*\))""")
"""A call of `file` with a computed name, which can read every file."""
_IGNORED_FIELDS = frozenset({"site", "digest", "slots", "words", "rbac", "rollout", "revision"})


def digest(rule: Rule, templates: Mapping[str, str]) -> str:
    content = list(_content(rule))
    names = sorted(_used_templates((text for text in content if isinstance(text, str)), templates))
    parts = [repr(each) for each in content] + [repr((name, templates[name])) for name in names]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _content(value: Any) -> Iterator[Any]:
    """The content of a value in order: names, texts, numbers, and sizes of containers."""
    match value:
        case Expression() | StringTemplate():
            yield from (type(value).__name__, value.source)
        case TextTemplate():
            yield from ("TextTemplate", f"'{value.name}'", *(f"'{name}'" for name in sorted(value.files)))
        case Tree():
            yield "Tree"
            yield from _content(value.node.data())
        case frozenset():
            yield (len(value), *sorted(value))
        case tuple() | list():
            yield (type(value).__name__, len(value))
            for item in value:
                yield from _content(item)
        case _ if hasattr(value, "items"):
            yield ("mapping", len(value))
            for key, member in value.items():
                yield key
                yield from _content(member)
        case _ if dataclasses.is_dataclass(value):
            yield type(value).__name__
            for field in dataclasses.fields(value):
                if field.name not in _IGNORED_FIELDS:
                    yield from _content(getattr(value, field.name))
        case _:
            yield value


def _used_templates(texts: Iterable[str], templates: Mapping[str, str]) -> set[str]:
    """The templates whose names are in quotes in these texts, or in templates that are used."""
    texts = list(texts)
    named = (name for text in texts for name in quoted_names(text, templates))
    used = reached(named, lambda name: quoted_names(templates[name], templates))
    is_computed = any(map(_COMPUTED.search, (*texts, *(templates[name] for name in used))))
    return set(templates if is_computed else used)


TEMPLATES = "templates/"


@dataclass(frozen=True, slots=True)
class Watch:
    """A rule and what it was made from."""

    rule: Rule
    draft: Draft
    parts: tuple[RulePart, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A project and what it was made from."""

    project: Project
    watches: tuple[Watch, ...]
    files: Mapping[str, str]  # the texts of all files, by their relative paths
    library: Library
    allow: Mapping[str, str]  # the checks that are off, by their ids, with the reasons
    variables: Mapping[str, str | None]  # that the rules read, with their defaults: None without one, "" for several

    def for_operator(self) -> Project:
        """The rules, with all that a render may need, and without the CRDs: those of the API server count."""
        self.library.prepare()
        return replace(self.project, crds=(), definitions=())


def build_unchecked(files: RuleFiles, *, environ: Mapping[str, str]) -> Project:
    """The rules of these files, without their CRDs. Raises ProjectErrors with the mistakes that make it impossible to
    build them; `rules.checking` finds all."""
    loading = Loading.of(files, environ)
    loaded = loading.built(loading.parsed())
    project = loaded.for_operator()
    loaded.library.forget_bodies()
    return project


@dataclass(frozen=True, slots=True)
class Loading:
    """Two steps, between which rules can be checked: they are parsed, and then built."""

    files: RuleFiles
    reading: FileReading
    constants: Constants
    allow: dict[str, str] = field(default_factory=dict)  # of watches.yaml

    @classmethod
    def of(
        cls,
        files: RuleFiles,
        environ: Mapping[str, str],
        *,
        analysis: Analysis = NO_ANALYSIS,
        probe: Instrument | None = None,
    ) -> Loading:
        texts, findings = files.texts, files.findings()
        templates = {path.removeprefix(TEMPLATES): text for path, text in texts.items() if path.startswith(TEMPLATES)}
        reading = FileReading(Library(templates, probe=probe), templates, findings, analysis)
        return cls(files, reading, Constants(EnvVars(environ), findings))

    @property
    def findings(self) -> Findings:
        return self.reading.findings

    def parsed(self) -> list[tuple[Draft, list[RulePart]]]:
        """Each watch with its expressions. Mistakes are among the findings."""
        drafts = list(self._drafts())
        if not drafts and not self.findings.failed:
            self._report_no_watches()
        return [(draft, list(parts(draft))) for draft in drafts]

    def built(
        self, parsed: Iterable[tuple[Draft, list[RulePart]]], crds: tuple[CustomResourceDefinition, ...] = ()
    ) -> Loaded:
        """Raises ProjectErrors if there are mistakes."""
        found = self.findings.sorted()
        if self.findings.failed:
            raise ProjectErrors(found)
        watches = tuple(
            Watch(
                self._with_digests(build_rule(draft, draft_parts, self.reading.library), draft),
                draft,
                tuple(draft_parts),
            )
            for draft, draft_parts in parsed
        )
        project = Project(
            self.files.root,
            tuple(watch.rule for watch in watches),
            crds,
            self.reading.templates,
            self._digest(),
            digest_of_files(self.files.texts),
            self.files.texts,
            bool(self.constants.environment.read),
            found,
        )
        return Loaded(
            project, watches, self.files.texts, self.reading.library, self.allow, self.constants.environment.defaults
        )

    def _with_digests(self, rule: Rule, draft: Draft) -> Rule:
        found = digest(rule, self.reading.templates)
        if not draft.from_environment:
            return replace(rule, digest=found, revision=found)
        public = digest(replace(rule, vars=draft.public_vars), self.reading.templates)
        return replace(rule, digest=found, revision=public)

    def _report_no_watches(self) -> None:
        documents, _ = read_yaml(self.files.texts[WATCHES], WATCHES)
        key_sites = documents[0].value if documents else None
        if isinstance(key_sites, dict) and "watches" in key_sites and "include" not in key_sites:
            # Explicit: this is how an operator releases all its CRs before it is uninstalled.
            message = "the project has no watches: no custom resources are managed"
            self.findings.warning("missing-key", message, key_sites["watches"].site)
        else:
            # Probably the files are just being written.
            message = "the project has no watches; write `watches: []` if that is intended"
            self.findings.mistake("missing-key", message, Site(WATCHES))

    def _drafts(self) -> Iterator[Draft]:
        """The watches in order: those of watches.yaml first, then those of each included file."""
        top = self._file(WATCHES)
        if top is None:
            return
        self.allow.update({entry.name: entry.value.text for entry in top.allow if entry.value is not None})
        outer = Shared().within(top, self.constants)
        tables = [(watch, outer) for watch in top.watches]
        for path in included(top.include, self.files.texts, self.findings):
            inner = self._file(path)
            if inner is None:
                continue
            if inner.include:
                message = "only watches.yaml may include files: name them there"
                self.findings.mistake("conflict", message, inner.key_sites["include"])
            if inner.allow:
                message = "only watches.yaml may allow checks: move this there, or write comments"
                self.findings.mistake("conflict", message, inner.key_sites["allow"])
            if not inner.watches and "watches" not in inner.key_sites:
                self.findings.mistake("missing-key", "the file has no watches", Site(path))
            shared = outer.within(inner, self.constants)
            tables += [(watch, shared) for watch in inner.watches]
        for watch, shared in tables:
            if (found := join(watch, shared, self.constants)) is not None:
                yield found

    def _file(self, path: str) -> FileTable | None:
        if path not in self.files.texts:
            self.findings.mistake("missing-file", "no such file: it contains the rules of a project", Site(path))
            return None
        documents, mistakes = read_yaml(self.files.texts[path], path)
        self.findings.take(mistakes, "yaml")
        if len(documents) > 1:
            message = "a second document: a file of watches is one list or one mapping"
            self.findings.mistake("wrong-type", message, documents[1].site)
        if not documents:
            if not mistakes:
                self.findings.mistake("missing-key", "the file has no watches", Site(path))
            return None
        return read_file(documents[0], self.reading)

    def _digest(self) -> str:
        """The digest of every file and every variable that was read."""
        read = self.constants.environment.read
        return digest_of(
            [*sorted(self.files.texts.items()), *sorted((f"${name}", value) for name, value in read.items())]
        )


def included(words: Iterable[Word], files: Iterable[str], findings: Findings) -> Iterator[str]:
    """The included files in the order of the patterns, each once, without watches.yaml itself."""
    known = sorted(set(files) - {WATCHES})
    taken: set[str] = set()
    for word in words:
        if not is_inside(word.text):
            message = f'"{word.text}" is outside of the project: included files must be inside'
            findings.mistake("missing-file", message, word.site)
            continue
        pattern = normalise_pattern(word.text)
        found = [path for path in known if matches(path, pattern)]
        if pattern == WATCHES:
            findings.mistake("conflict", f"{WATCHES} cannot include itself: remove it from the list", word.site)
        elif not found and has_wildcards(pattern):
            findings.warning("missing-file", f'no file matches "{word.text}"', word.site)
        elif not found:
            others = [path for path in known if not path.startswith(("templates/", "crds/"))]
            message = f'the file "{word.text}" does not exist{did_you_mean_quoted(word.text, others)}'
            findings.mistake("missing-file", message, word.site)
        yield from (path for path in found if path not in taken)
        taken.update(found)
