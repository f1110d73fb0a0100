"""Loads watches.yaml and templates/ as typed, frozen rules. `ruleop.core.rules.checking` also checks them."""

from ruleop.core.rules.facts.scopes import RESERVED as RESERVED_NAMES
from ruleop.core.rules.findings import Finding, Findings, ProjectErrors
from ruleop.core.rules.language.durations import parse_duration
from ruleop.core.rules.language.model import (
    Child,
    Condition,
    Form,
    Given,
    ItemEnd,
    Loop,
    Observe,
    Once,
    Ordinary,
    OwnedBy,
    Patched,
    PolicyRule,
    Project,
    Rollout,
    Rotation,
    Rule,
    Scheduled,
    Selector,
    Share,
)
from ruleop.core.rules.language.refused_metadata import REFUSED_METADATA
from ruleop.core.rules.loading.loader import Loaded, RuleFiles, Watch, build_unchecked, digest_of_files
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
    "Form",
    "Given",
    "ItemEnd",
    "Loaded",
    "Loop",
    "Observe",
    "Once",
    "Ordinary",
    "OwnedBy",
    "Patched",
    "Place",
    "PolicyRule",
    "Project",
    "ProjectErrors",
    "Rollout",
    "Rotation",
    "Rule",
    "RuleFiles",
    "Scheduled",
    "Selector",
    "Share",
    "Watch",
    "build_unchecked",
    "digest_of_files",
    "parse_duration",
    "places",
]
