"""Loads a project, or says everything that is wrong with it at once.

`build_project` does all the work in memory; `load_project` only reads the files for it. A reload is a second call: what the two give can be
told apart by the digest, which covers every file and every environment variable that was read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.errors import Site
from ruleop.rules.checks.child_bodies import check_bodies
from ruleop.rules.checks.crds import check_definition, check_kinds, read_crds
from ruleop.rules.checks.job_ttl import warn_of_expiry
from ruleop.rules.checks.likely_mistakes import warn_of_looks
from ruleop.rules.checks.names import check_dependencies, check_given, check_let_reach, check_read
from ruleop.rules.checks.order import check_cycles, reads
from ruleop.rules.checks.owned_lists import check_owned
from ruleop.rules.checks.randomness import check_random
from ruleop.rules.checks.scopes import Part, parts
from ruleop.rules.checks.secrets import check_secrecy
from ruleop.rules.checks.unused_templates import warn_of_unused
from ruleop.rules.checks.watches import check_watch, check_watches
from ruleop.rules.findings import Findings, ProjectErrors
from ruleop.rules.language.environment import Constants, Environment
from ruleop.rules.language.model import Project
from ruleop.rules.language.parsed import Draft, Shared, join, read_file
from ruleop.rules.language.value_types import Reading
from ruleop.rules.loading.build import build_rule
from ruleop.rules.loading.digests import digest
from ruleop.rules.loading.files import read_files
from ruleop.rules.loading.includes import WATCHES, included
from ruleop.templating import Library, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.rules.language.watches_yaml import FileTable
    from ruleop.schema.crds import CustomResourceDefinition

TEMPLATES = "templates/"
CRDS = "crds/"


def load_project(root: Path | str, *, environ: Mapping[str, str]) -> Project:
    """The project in a folder. Raises ProjectErrors with all its mistakes."""
    files: dict[str, str] = {}
    findings = Findings(files)
    files.update(read_files(Path(root), findings))
    return _Loading.of(files, environ, findings).project(str(root))


def files_digest(root: Path | str) -> str:
    """Of what is in a project's files, and of what cannot be read of them. To tell that nothing has changed costs no loading."""
    files: dict[str, str] = {}
    findings = Findings(files)
    files.update(read_files(Path(root), findings))
    return _digest([*sorted(files.items()), *(("", str(each)) for each in findings.sorted())])


def build_project(files: Mapping[str, str], *, root: str, environ: Mapping[str, str]) -> Project:
    """The project that these files make, by their paths below its folder. Raises ProjectErrors with all its mistakes."""
    return _Loading.of(files, environ, Findings(files)).project(root)


@dataclass(frozen=True, slots=True)
class _Loading:
    files: Mapping[str, str]
    reading: Reading
    constants: Constants

    @classmethod
    def of(cls, files: Mapping[str, str], environ: Mapping[str, str], findings: Findings) -> _Loading:
        templates = {path.removeprefix(TEMPLATES): text for path, text in files.items() if path.startswith(TEMPLATES)}
        return cls(files, Reading(Library(templates), templates, findings), Constants(Environment(environ), findings))

    @property
    def findings(self) -> Findings:
        return self.reading.findings

    def project(self, root: str) -> Project:
        crds = read_crds({path: text for path, text in self.files.items() if path.startswith(CRDS)}, self.findings)
        drafts = list(self._drafts())
        if not drafts and not self.findings.failed:
            self._say_that_nothing_is_watched()
        every_part = [(draft, list(parts(draft))) for draft in drafts]
        for draft, its_parts in every_part:
            self._check(draft, its_parts, crds)
        check_watches(drafts, self.findings)
        check_owned(drafts, crds, self.findings)
        if not self.findings.failed:
            warn_of_unused(self.reading.templates, [part for _, its_parts in every_part for part in its_parts], self.findings)
        found = self.findings.sorted()
        if self.findings.failed:
            raise ProjectErrors(found)
        built = [build_rule(draft, its_parts, self.reading.templates) for draft, its_parts in every_part]
        rules = tuple(replace(rule, digest=digest(rule, self.reading.templates)) for rule in built)
        return Project(root, rules, crds, self.reading.templates, self._digest(), found)

    def _say_that_nothing_is_watched(self) -> None:
        documents, _ = read_yaml(self.files[WATCHES], WATCHES)
        said = documents[0].value if documents else None
        if isinstance(said, dict) and "watches" in said and "include" not in said:
            # Said in so many words: how an operator is told to let go of all its CRs before it is uninstalled.
            self.findings.warning("missing-key", "the project has no watches: no custom resource is looked after", said["watches"].site)
        else:
            # Most probably files that are being written.
            self.findings.mistake("missing-key", "the project has no watches; if none is meant, say `watches: []`", Site(WATCHES))

    def _drafts(self) -> Iterator[Draft]:
        """The watches in order: those of watches.yaml first, then those of each included file."""
        top = self._file(WATCHES)
        if top is None:
            return
        outer = Shared().within(top, self.constants)
        tables = [(watch, outer) for watch in top.watches]
        for path in included(top.include, self.files, self.findings):
            inner = self._file(path)
            if inner is None:
                continue
            if inner.include:
                message = "only watches.yaml may include files: name them there"
                self.findings.mistake("conflict", message, inner.said["include"])
            if not inner.watches and "watches" not in inner.said:
                self.findings.mistake("missing-key", "the file holds no watches", Site(path))
            shared = outer.within(inner, self.constants)
            tables += [(watch, shared) for watch in inner.watches]
        for watch, shared in tables:
            if (found := join(watch, shared, self.constants)) is not None:
                yield found

    def _file(self, path: str) -> FileTable | None:
        if path not in self.files:
            self.findings.mistake("missing-file", "there is no such file: it holds the rules of a project", Site(path))
            return None
        documents, mistakes = read_yaml(self.files[path], path)
        self.findings.take(mistakes, "yaml")
        if len(documents) > 1:
            self.findings.mistake("wrong-type", "a second document: a file of watches is one list or one mapping", documents[1].site)
        if not documents:
            if not mistakes:
                self.findings.mistake("missing-key", "the file holds no watches", Site(path))
            return None
        return read_file(documents[0], self.reading)

    def _check(self, draft: Draft, its_parts: list[Part], crds: tuple[CustomResourceDefinition, ...]) -> None:
        findings = self.findings
        check_watch(draft, findings)
        check_given(draft, findings)
        check_read(draft, its_parts, findings)
        check_let_reach(draft, its_parts, findings)
        check_dependencies(draft, findings)
        read = reads(draft, its_parts)
        check_cycles(draft.children, read, findings)
        check_cycles(draft.final, read, findings)
        check_bodies(draft, crds, findings)
        check_random(its_parts, self.reading.templates, findings)
        check_secrecy(draft, its_parts, self.reading.templates, findings)
        check_definition(draft, crds, findings)
        check_kinds(draft, crds, findings)
        warn_of_looks(its_parts, self.reading.library, findings)
        warn_of_expiry(its_parts, self.reading.templates, findings)

    def _digest(self) -> str:
        """Of every file and every variable that was read."""
        read = self.constants.environment.read
        return _digest([*sorted(self.files.items()), *sorted((f"${name}", value) for name, value in read.items())])


def _digest(parts: Iterable[tuple[str, str | None]]) -> str:
    """Each part counts with its length, so that no two sequences run together."""
    found = hashlib.sha256()
    for name, text in parts:
        for part in (name, "" if text is None else f"={text}"):
            data = part.encode("utf-8", "surrogatepass")
            found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()
