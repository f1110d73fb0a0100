"""Validation of the objects of built-in kinds, as the API server does it, for the server in memory and `ruleop check`.

`pods`, `workloads`, `core`, `networking` and `policy` have the tables of the kinds: rows of paths, conditions and
rules, most of which are words that say by themselves what is wrong (`rules`), the others functions. Conditions are
compiled, and not CEL, because a single rule in CEL takes almost half as long as the validation of a whole object.
Nothing here reads another object or knows how objects are stored. Contract tests hold the decisions and the fields to
the real server; the words, where clients depend on them: those of names, and of what may not change.
"""

from ruleop.kubernetes.validation.core import (
    HEADLESS,
    INTERNAL_POLICIES,
    cluster_ip_errors,
)
from ruleop.kubernetes.validation.custom_resource_definitions import validate_rules
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    forbidden_value,
    immutable_value,
    invalid_value,
    invalid_values,
    kind_problems,
    label_problems,
    path_segment_problems,
    required,
    subdomain_problems,
    too_long,
    unsupported,
    validate_annotations,
    validate_labels,
)
from ruleop.kubernetes.validation.pods import resource_errors
from ruleop.kubernetes.validation.policy import GROUP
from ruleop.kubernetes.validation.validators import (
    ACCEPTING,
    Validator,
    creation_errors,
    find_validator,
)

__all__ = [
    "ACCEPTING",
    "GROUP",
    "HEADLESS",
    "INTERNAL_POLICIES",
    "FieldError",
    "Validator",
    "cluster_ip_errors",
    "creation_errors",
    "find_validator",
    "forbidden_value",
    "immutable_value",
    "invalid_value",
    "invalid_values",
    "kind_problems",
    "label_problems",
    "path_segment_problems",
    "required",
    "resource_errors",
    "subdomain_problems",
    "too_long",
    "unsupported",
    "validate_annotations",
    "validate_labels",
    "validate_rules",
]
