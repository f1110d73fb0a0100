"""Loads a project and checks it: all its mistakes are reported at once.

The operator does without this module: a process loads and checks its rules, and sends them (`transfer.py`).

`build_project` works in memory; `load_project` reads the files for it. `build_with_sources` and `load_with_sources`
also return what the rules were made from, for further checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.language.rules.checks.allowed_checks import refusal
from ruleop.language.rules.checks.child_bodies import check_bodies
from ruleop.language.rules.checks.crd_files import check_definition, check_kinds, read_crds
from ruleop.language.rules.checks.cycles import check_cycles, check_deletion_order, check_item_ends, check_run_cycles
from ruleop.language.rules.checks.foreign_keys import OF_A_CHILD, OF_A_SCHEMA, OF_A_WATCH, OF_AN_OBSERVE
from ruleop.language.rules.checks.likely_mistakes import (
    check_kro_expressions,
    warn_of_adoption,
    warn_of_job_ttl,
    warn_of_plain_text,
    warn_of_unused,
)
from ruleop.language.rules.checks.owned_lists import check_owned
from ruleop.language.rules.checks.random_functions import check_random, check_renewals, check_request_ids, check_time
from ruleop.language.rules.checks.read_names import (
    check_defined_names,
    check_dependencies,
    check_lets,
    check_read_names,
)
from ruleop.language.rules.checks.secret_data import check_secrets
from ruleop.language.rules.checks.watches import check_watch, check_watches
from ruleop.language.rules.facts.order import reads
from ruleop.language.rules.keys.definitions import read_definitions
from ruleop.language.rules.keys.schema_keys import SchemaTable
from ruleop.language.rules.keys.value_types import Analysis
from ruleop.language.rules.keys.watches_yaml import ChildTable, ObserveTable, WatchTable
from ruleop.language.rules.loading.loader import Loading
from ruleop.language.rules.project_files import RuleFiles

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import GroupKind
    from ruleop.language.rules.facts.scopes import RulePart
    from ruleop.language.rules.keys.model import Project
    from ruleop.language.rules.keys.parsed import Draft
    from ruleop.language.rules.loading.loader import Loaded
    from ruleop.language.templates.tree.templates import Instrument

CRDS: Final = "crds/"
ANALYSIS: Final = Analysis(
    refusal=refusal,
    foreign_keys={
        WatchTable.DEFINITION: OF_A_WATCH,
        ChildTable.DEFINITION: OF_A_CHILD,
        ObserveTable.DEFINITION: OF_AN_OBSERVE,
        SchemaTable.DEFINITION: OF_A_SCHEMA,
    },
)


def load_project(root: Path | str, *, environ: Mapping[str, str], probe: Instrument | None = None) -> Project:
    """The project in a folder. Raises ProjectErrors with all its mistakes. `probe`: observes what templates do."""
    return _without_bodies(load_with_sources(root, environ=environ, probe=probe))


def load_with_sources(root: Path | str, *, environ: Mapping[str, str], probe: Instrument | None = None) -> Loaded:
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
    loading = Loading.of(files, environ, analysis=ANALYSIS, probe=probe)
    findings = loading.findings
    crds = read_crds({path: text for path, text in files.texts.items() if path.startswith(CRDS)}, findings)
    parsed = loading.parsed()
    drafts = [draft for draft, _ in parsed]
    defined = read_definitions(drafts, findings)
    crds = (*(crd for crd in crds if (crd.group, crd.kind) not in defined), *(each.crd for each in defined.values()))
    used = {draft.kind.versionless for draft in drafts}
    used |= {kind.versionless for draft in drafts for child in draft.everyone for kind in child.kinds}
    for draft, draft_parts in parsed:
        _check(loading, draft, draft_parts, crds, used)
    check_watches(drafts, findings)
    check_owned(drafts, crds, findings)
    if not findings.failed:
        warn_of_unused(loading.reading.templates, [part for _, draft_parts in parsed for part in draft_parts], findings)
    return loading.built(parsed, crds)


def _check(
    loading: Loading,
    draft: Draft,
    draft_parts: list[RulePart],
    crds: tuple[CustomResourceDefinition, ...],
    used: set[GroupKind],
) -> None:
    findings, library, templates = loading.findings, loading.reading.library, loading.reading.templates
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
    check_bodies(draft, crds, library, findings)
    check_random(draft_parts, library, findings)
    check_request_ids(draft_parts, library, findings)
    check_renewals(draft_parts, library, findings)
    check_time(draft_parts, library, findings)
    check_secrets(draft, draft_parts, library, findings)
    check_definition(draft, crds, used, findings)
    check_kinds(draft, crds, library, findings)
    warn_of_plain_text(draft_parts, library, findings)
    check_kro_expressions(draft, draft_parts, templates, findings)
    warn_of_job_ttl(draft_parts, library, findings)
    warn_of_adoption(draft, draft_parts, library, findings)
