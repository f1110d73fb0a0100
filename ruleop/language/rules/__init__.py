"""Loads watches.yaml and templates/ as typed, frozen rules. `ruleop.language.rules.checking` also checks them."""

from ruleop.language.rules.facts.scopes import RESERVED as RESERVED_NAMES
from ruleop.language.rules.findings import Finding, Findings, ProjectErrors
from ruleop.language.rules.keys.durations import parse_duration
from ruleop.language.rules.keys.model import (
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
from ruleop.language.rules.keys.refused_metadata import REFUSED_METADATA
from ruleop.language.rules.loading.loader import Loaded, RuleFiles, Watch, build_unchecked, digest_of_files
from ruleop.language.rules.loading.project_files import MAX_CRD_BYTES
from ruleop.language.rules.loading.watched_paths import Place, places

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
