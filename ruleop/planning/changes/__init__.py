"""The fields that an action changes, and descriptions of changes, drift and failed writes without values of Secrets."""

from ruleop.planning.changes.differences import NOTHING, Difference, Value, differences, flow, leaves
from ruleop.planning.changes.drift import (
    WHOLE_OBJECT,
    Correction,
    Decision,
    Reverted,
    conflict_message,
    corrected_fields,
    corrections,
    is_altered,
    managers_of,
    reverted,
)
from ruleop.planning.changes.rejected_writes import (
    changes_in_words,
    condition_reason,
    conflict_in_words,
    expected_refusal,
    refused_changes,
)
from ruleop.planning.changes.writes import Change, Verb, changes, field_paths, is_mark, reason_for, verb_of

__all__ = [
    "NOTHING",
    "WHOLE_OBJECT",
    "Change",
    "Correction",
    "Decision",
    "Difference",
    "Reverted",
    "Value",
    "Verb",
    "changes",
    "changes_in_words",
    "condition_reason",
    "conflict_in_words",
    "conflict_message",
    "corrected_fields",
    "corrections",
    "differences",
    "expected_refusal",
    "field_paths",
    "flow",
    "is_altered",
    "is_mark",
    "leaves",
    "managers_of",
    "reason_for",
    "refused_changes",
    "reverted",
    "verb_of",
]
