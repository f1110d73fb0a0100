"""Loads a project, or reports all its mistakes at once.

`build_project` works in memory; `load_project` reads the files for it. `build_with_sources` and `load_with_sources`
also return what the rules were made from, for checks that the operator does not run. A reload is another call; the
results are compared by their digest, which covers every file and every environment variable that was read.

The digest of a rule is of everything that its plans depend on, and nothing else. Sites are not part of it, so a line
inserted before a watch changes nothing. The text of a template counts together with all templates that it can use.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruleop.core.errors import Site
from ruleop.core.reachable import reached
from ruleop.core.rules.checks.child_bodies import check_bodies
from ruleop.core.rules.checks.crd_files import check_definition, check_kinds, read_crds
from ruleop.core.rules.checks.likely_mistakes import (
    check_kro_expressions,
    warn_of_adoption,
    warn_of_job_ttl,
    warn_of_plain_text,
    warn_of_unused,
)
from ruleop.core.rules.checks.order import check_cycles, check_deletion_order, check_item_ends, check_run_cycles, reads
from ruleop.core.rules.checks.owned_lists import check_owned
from ruleop.core.rules.checks.random_functions import check_random, check_renewals, check_request_ids, check_time
from ruleop.core.rules.checks.read_names import check_defined_names, check_dependencies, check_lets, check_read_names
from ruleop.core.rules.checks.scopes import Part, parts
from ruleop.core.rules.checks.secret_reads import check_secrets
from ruleop.core.rules.checks.watches import check_watch, check_watches
from ruleop.core.rules.findings import Findings, ProjectErrors
from ruleop.core.rules.language.definitions import read_definitions
from ruleop.core.rules.language.env_vars import Constants, EnvVars
from ruleop.core.rules.language.model import Project, Rule
from ruleop.core.rules.language.parsed import Draft, Shared, join, read_file
from ruleop.core.rules.language.value_types import Reading
from ruleop.core.rules.loading.build import build_rule
from ruleop.core.rules.loading.project_files import WATCHES, included, read_files
from ruleop.core.templating import Expression, Library, StringTemplate, TextTemplate, Tree, read_yaml
from ruleop.core.templating.compile.named_files import quoted_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.core.kinds import GroupKind
    from ruleop.core.rules.language.watches_yaml import FileTable
    from ruleop.core.schema.crd.crds import CustomResourceDefinition
    from ruleop.core.templating.template_tree.templates import Instrument

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
CRDS = "crds/"


@dataclass(frozen=True, slots=True)
class Watch:
    """A rule and what it was made from."""

    rule: Rule
    draft: Draft
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A project and what it was made from."""

    project: Project
    watches: tuple[Watch, ...]
    files: Mapping[str, str]  # the texts of all files, by their relative paths
    library: Library
    allow: Mapping[str, str]  # the checks that are off, by their ids, with the reasons
    variables: Mapping[str, str | None]  # that the rules read, with their defaults: None without one, "" for several


def load_project(root: Path | str, *, environ: Mapping[str, str], probe: Instrument | None = None) -> Project:
    """The project in a folder. Raises ProjectErrors with all its mistakes. `probe`: observes what templates do."""
    return _without_bodies(load_with_sources(root, environ=environ, probe=probe))


def _without_bodies(loaded: Loaded) -> Project:
    """The project, whose templates keep the library in memory."""
    loaded.library.forget_bodies()
    return loaded.project


def load_with_sources(root: Path | str, *, environ: Mapping[str, str], probe: Instrument | None = None) -> Loaded:
    files, findings = _read(root)
    return _Loading.of(files, environ, findings, probe).loaded(str(root))


def _read(root: Path | str) -> tuple[Mapping[str, str], Findings]:
    """The texts of a project's files, and the findings about them."""
    files: dict[str, str] = {}
    findings = Findings(files)
    files.update(read_files(Path(root), findings))
    return files, findings


def files_digest(root: Path | str) -> str:
    """The digest of a project's files, and of files that cannot be read. Detects that nothing has changed without
    loading."""
    files, findings = _read(root)
    return _digest([*sorted(files.items()), *(("", str(each)) for each in findings.sorted())])


def build_project(files: Mapping[str, str], *, root: str, environ: Mapping[str, str]) -> Project:
    """The project with these files, by their relative paths. Raises ProjectErrors with all its mistakes."""
    return _without_bodies(build_with_sources(files, root=root, environ=environ))


def build_with_sources(files: Mapping[str, str], *, root: str, environ: Mapping[str, str]) -> Loaded:
    return _Loading.of(files, environ, Findings(files)).loaded(root)


@dataclass(frozen=True, slots=True)
class _Loading:
    files: Mapping[str, str]
    reading: Reading
    constants: Constants
    allow: dict[str, str] = field(default_factory=dict)  # of watches.yaml

    @classmethod
    def of(
        cls,
        files: Mapping[str, str],
        environ: Mapping[str, str],
        findings: Findings,
        probe: Instrument | None = None,
    ) -> _Loading:
        templates = {path.removeprefix(TEMPLATES): text for path, text in files.items() if path.startswith(TEMPLATES)}
        return cls(
            files, Reading(Library(templates, probe=probe), templates, findings), Constants(EnvVars(environ), findings)
        )

    @property
    def findings(self) -> Findings:
        return self.reading.findings

    def loaded(self, root: str) -> Loaded:
        crds = read_crds({path: text for path, text in self.files.items() if path.startswith(CRDS)}, self.findings)
        drafts = list(self._drafts())
        defined = read_definitions(drafts, self.findings)
        crds = (
            *(crd for crd in crds if (crd.group, crd.kind) not in defined),
            *(each.crd for each in defined.values()),
        )
        if not drafts and not self.findings.failed:
            self._report_no_watches()
        every_part = [(draft, list(parts(draft))) for draft in drafts]
        used = {draft.kind.versionless for draft in drafts}
        used |= {kind.versionless for draft in drafts for child in draft.everyone for kind in child.kinds}
        for draft, draft_parts in every_part:
            self._check(draft, draft_parts, crds, used)
        check_watches(drafts, self.findings)
        check_owned(drafts, crds, self.findings)
        if not self.findings.failed:
            warn_of_unused(
                self.reading.templates, [part for _, draft_parts in every_part for part in draft_parts], self.findings
            )
        found = self.findings.sorted()
        if self.findings.failed:
            raise ProjectErrors(found)
        built = [build_rule(draft, draft_parts, self.reading.library) for draft, draft_parts in every_part]
        rules = tuple(self._with_digests(rule, draft) for rule, draft in zip(built, drafts, strict=True))
        project = Project(
            root,
            rules,
            crds,
            self.reading.templates,
            self._digest(),
            digest_of_files(self.files),
            self.files,
            bool(self.constants.environment.read),
            found,
        )
        watches = tuple(
            Watch(rule, draft, tuple(draft_parts)) for rule, (draft, draft_parts) in zip(rules, every_part, strict=True)
        )
        return Loaded(
            project, watches, self.files, self.reading.library, self.allow, self.constants.environment.defaults
        )

    def _with_digests(self, rule: Rule, draft: Draft) -> Rule:
        found = digest(rule, self.reading.templates)
        if not draft.from_environment:
            return replace(rule, digest=found, revision=found)
        public = digest(replace(rule, vars=draft.public_vars), self.reading.templates)
        return replace(rule, digest=found, revision=public)

    def _report_no_watches(self) -> None:
        documents, _ = read_yaml(self.files[WATCHES], WATCHES)
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
        for path in included(top.include, self.files, self.findings):
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
        if path not in self.files:
            self.findings.mistake("missing-file", "no such file: it contains the rules of a project", Site(path))
            return None
        documents, mistakes = read_yaml(self.files[path], path)
        self.findings.take(mistakes, "yaml")
        if len(documents) > 1:
            message = "a second document: a file of watches is one list or one mapping"
            self.findings.mistake("wrong-type", message, documents[1].site)
        if not documents:
            if not mistakes:
                self.findings.mistake("missing-key", "the file has no watches", Site(path))
            return None
        return read_file(documents[0], self.reading)

    def _check(
        self,
        draft: Draft,
        draft_parts: list[Part],
        crds: tuple[CustomResourceDefinition, ...],
        used: set[GroupKind],
    ) -> None:
        findings = self.findings
        check_watch(draft, crds, findings)
        check_defined_names(draft, findings)
        check_read_names(draft, draft_parts, crds, findings)
        check_lets(draft, draft_parts, findings)
        check_dependencies(draft, findings)
        read = reads(draft, draft_parts)
        check_cycles(draft.children, read, findings)
        check_cycles(draft.final, read, findings)
        check_deletion_order(draft, read, findings)
        check_item_ends(draft, findings)
        check_run_cycles(draft, findings)
        check_bodies(draft, crds, self.reading.library, findings)
        check_random(draft_parts, self.reading.templates, findings)
        check_request_ids(draft_parts, self.reading.library, findings)
        check_renewals(draft_parts, self.reading.library, findings)
        check_time(draft_parts, self.reading.library, findings)
        check_secrets(draft, draft_parts, self.reading.library, findings)
        check_definition(draft, crds, used, findings)
        check_kinds(draft, crds, self.reading.templates, findings)
        warn_of_plain_text(draft_parts, self.reading.library, findings)
        check_kro_expressions(draft, draft_parts, self.reading.templates, findings)
        warn_of_job_ttl(draft_parts, self.reading.templates, findings)
        warn_of_adoption(draft, draft_parts, self.reading.templates, findings)

    def _digest(self) -> str:
        """The digest of every file and every variable that was read."""
        read = self.constants.environment.read
        return _digest([*sorted(self.files.items()), *sorted((f"${name}", value) for name, value in read.items())])


def digest_of_files(files: Mapping[str, str]) -> str:
    return _digest(sorted(files.items()))


def _digest(parts: Iterable[tuple[str, str | None]]) -> str:
    """The digest of the parts with their lengths, so that different sequences differ."""
    found = hashlib.sha256()
    for name, text in parts:
        for part in (name, "" if text is None else f"={text}"):
            data = part.encode("utf-8", "surrogatepass")
            found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()
