"""Loads a project and checks it: all its mistakes are reported at once.

The operator does without this module: a process loads and checks its rules, and sends them.

`build_project` works in memory; `load_project` reads the files for it. `build_with_sources` and `load_with_sources`
also return what the rules were made from, for further checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.language.rules.checks.child_bodies import check_bodies, check_owned
from ruleop.language.rules.checks.crd_files import check_crds, read_crds
from ruleop.language.rules.checks.likely_mistakes import warn_of_mistakes, warn_of_unused
from ruleop.language.rules.checks.random_functions import check_changing_functions
from ruleop.language.rules.checks.read_names import check_names
from ruleop.language.rules.checks.watches import check_watch, check_watches
from ruleop.language.rules.keys.definitions import read_definitions
from ruleop.language.rules.loading import Loading
from ruleop.language.rules.project_files import RuleFiles
from ruleop.language.rules.secret_reads import check_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ruleop.language.rules.keys.model import Project
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.templates.tree.templates import Instrument

CRDS: Final = "crds/"


def load_project(root: Path | str, *, environ: Mapping[str, str]) -> Project:
    """The project in a folder. Raises ProjectErrors with all its mistakes."""
    return _without_bodies(load_with_sources(root, environ=environ))


def load_with_sources(root: Path | str, *, environ: Mapping[str, str], probe: Instrument | None = None) -> Loaded:
    """`probe`: observes what templates do."""
    return checked(RuleFiles.read(root), environ=environ, probe=probe)


def build_project(files: Mapping[str, str], *, root: str, environ: Mapping[str, str]) -> Project:
    """The project with these files, by their relative paths. Raises ProjectErrors with all its mistakes."""
    return _without_bodies(build_with_sources(files, root=root, environ=environ))


def build_with_sources(files: Mapping[str, str], *, root: str, environ: Mapping[str, str]) -> Loaded:
    return checked(RuleFiles(root, files), environ=environ)


def _without_bodies(loaded: Loaded) -> Project:
    """The project, whose templates keep the library in memory."""
    loaded.library.forget_bodies()
    return loaded.project


def checked(files: RuleFiles, *, environ: Mapping[str, str], probe: Instrument | None = None) -> Loaded:
    """The rules of these files. Raises ProjectErrors with all their mistakes."""
    loading = Loading.of(files, environ, probe=probe)
    findings = loading.findings
    crds = read_crds({path: text for path, text in files.texts.items() if path.startswith(CRDS)}, findings)
    parsed = loading.parsed()
    drafts = [draft for draft, _ in parsed]
    defined = read_definitions(drafts, findings)
    crds = (*(crd for crd in crds if (crd.group, crd.kind) not in defined), *(each.crd for each in defined.values()))
    used = {draft.kind.versionless for draft in drafts}
    used |= {kind.versionless for draft in drafts for child in draft.everyone for kind in child.kinds}
    library = loading.reading.library
    for draft, draft_parts in parsed:
        check_watch(draft, crds, findings)
        check_names(draft, draft_parts, crds, findings)
        check_bodies(draft, crds, library, findings)
        check_changing_functions(draft_parts, library, findings)
        check_secrets(draft, draft_parts, library, findings)
        check_crds(draft, crds, used, library, findings)
        warn_of_mistakes(draft, draft_parts, library, findings)
    check_watches(drafts, findings)
    check_owned(drafts, crds, findings)
    if not findings.failed:
        warn_of_unused(library.texts, [part for _, draft_parts in parsed for part in draft_parts], findings)
    return loading.built(parsed, crds)
