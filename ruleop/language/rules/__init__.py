"""Rules as typed, frozen values, and the files of a project. `loading` makes the ones of the others, `checking` checks
them."""

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
from ruleop.language.rules.project_files import MAX_CRD_BYTES, RuleFiles, digest_of_files
from ruleop.language.rules.watched_paths import Place, places

__all__ = [
    "MAX_CRD_BYTES",
    "REFUSED_METADATA",
    "Child",
    "Condition",
    "Finding",
    "Findings",
    "Form",
    "Given",
    "ItemEnd",
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
    "digest_of_files",
    "parse_duration",
    "places",
]
