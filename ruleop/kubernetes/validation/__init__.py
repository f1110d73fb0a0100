"""Validation of the objects of built-in kinds, as the API server does it, for the server in memory and `ruleop check`.

`tables` has what the kinds of an API group refuse: rows of paths and rules, most of which are words (`rules`), the
others functions. `rows` applies a table. Nothing here reads another object or knows how objects are stored and served.
Contract tests hold the decisions to the real server, and most of the words.
"""

from ruleop.kubernetes.validation.apiextensions.cel_rules import validate_rules
from ruleop.kubernetes.validation.defaults import (
    numbered,
    service_class,
    template_number,
    with_selector,
    with_sources,
    with_sources_of_new,
)
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    forbidden_value,
    immutable_value,
    invalid_value,
    invalid_values,
    required,
    too_long,
    unsupported,
)
from ruleop.kubernetes.validation.field_names import (
    key_problems,
    kind_problems,
    label_problems,
    path_segment_problems,
    subdomain_problems,
    validate_annotations,
    validate_labels,
)
from ruleop.kubernetes.validation.new_objects import creation_errors
from ruleop.kubernetes.validation.tables.core import (
    HEADLESS,
    INTERNAL_POLICIES,
    WITH_NODE_PORTS,
    is_exposed,
    validate_cluster_ips,
)
from ruleop.kubernetes.validation.tables.pods import validate_resources
from ruleop.kubernetes.validation.tables.rbac import GROUP
from ruleop.kubernetes.validation.validators import ACCEPTING, Validator, find_validator

__all__ = [
    "ACCEPTING",
    "GROUP",
    "HEADLESS",
    "INTERNAL_POLICIES",
    "WITH_NODE_PORTS",
    "FieldError",
    "Validator",
    "creation_errors",
    "find_validator",
    "forbidden_value",
    "immutable_value",
    "invalid_value",
    "invalid_values",
    "is_exposed",
    "key_problems",
    "kind_problems",
    "label_problems",
    "numbered",
    "path_segment_problems",
    "required",
    "service_class",
    "subdomain_problems",
    "template_number",
    "too_long",
    "unsupported",
    "validate_annotations",
    "validate_cluster_ips",
    "validate_labels",
    "validate_resources",
    "validate_rules",
    "with_selector",
    "with_sources",
    "with_sources_of_new",
]
