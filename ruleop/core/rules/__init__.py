"""Loads watches.yaml, templates/ and crds/ as typed, frozen rules, and reports every mistake with its place."""

from ruleop.core.rules.checks.child_bodies import REFUSED_METADATA
from ruleop.core.rules.checks.scopes import RESERVED as RESERVED_NAMES
from ruleop.core.rules.findings import Finding, Findings, ProjectErrors
from ruleop.core.rules.language.durations import parse_duration
from ruleop.core.rules.language.json_schema import watches_schema
from ruleop.core.rules.language.model import (
    Child,
    Condition,
    Loop,
    Observe,
    OwnedBy,
    PolicyRule,
    Project,
    Rollout,
    Rule,
    Selector,
    Share,
)
from ruleop.core.rules.loading.loader import (
    Loaded,
    Watch,
    build_project,
    build_with_sources,
    digest_of_files,
    files_digest,
    load_project,
    load_with_sources,
)
from ruleop.core.rules.loading.project_files import MAX_CRD_BYTES
from ruleop.core.rules.loading.watched_paths import Place, places

__all__ = [
    "MAX_CRD_BYTES",
    "REFUSED_METADATA",
    "RESERVED_NAMES",
    "Child",
    "Condition",
    "Finding",
    "Findings",
    "Loaded",
    "Loop",
    "Observe",
    "OwnedBy",
    "Place",
    "PolicyRule",
    "Project",
    "ProjectErrors",
    "Rollout",
    "Rule",
    "Selector",
    "Share",
    "Watch",
    "build_project",
    "build_with_sources",
    "digest_of_files",
    "files_digest",
    "load_project",
    "load_with_sources",
    "parse_duration",
    "places",
    "watches_schema",
]
