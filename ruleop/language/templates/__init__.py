"""Templates, rendered to objects. Values are inserted after YAML parsing, so they never change the structure."""

from ruleop.language.templates.compiled import Expression, Reference, StringTemplate, TextTemplate, Tree
from ruleop.language.templates.declarations import (
    FUNCTION_NAMES,
    NONDETERMINISTIC,
    SCOPE_FUNCTIONS,
    SECRET_FUNCTIONS,
    TIME_FUNCTIONS,
    Trait,
)
from ruleop.language.templates.filters.data_filters import Exact
from ruleop.language.templates.filters.registry import FILTER_NAMES, TemplateFunction, filters_with
from ruleop.language.templates.tree.state import FieldPath, ItemStep, Walk
from ruleop.language.templates.values.data import (
    Lazy,
    MapView,
    ObjectsView,
    PartialObjectsView,
    loop_items,
    partial_view,
    plain,
    plain_and_weight,
    scalar_text,
    view,
)
from ruleop.language.templates.values.faults import (
    Fault,
    LimitExceeded,
    NotPermitted,
    NotThereYet,
    RuleErrors,
    Waiting,
    fault_of,
    template_line,
)
from ruleop.language.templates.values.operators import METHODS, field_of
from ruleop.language.templates.values.text import SlotPlace
from ruleop.language.templates.values.undefined import (
    OMIT,
    Announced,
    Broken,
    Disabled,
    Later,
    Missing,
    Omit,
    Origin,
    UndefinedValue,
)
from ruleop.language.templates.yaml_reader import NotJson, YamlNode, read_yaml, resolve_scalar
from ruleop.language.templates.yaml_writer import yaml_document, yaml_text

_WORDS = (
    "and or not in is if else elif for recursive true false none True False None self super loop caller varargs kwargs "
    "omit lipsum"
)
JINJA_NAMES = frozenset([*_WORDS.split(), *FUNCTION_NAMES])
"""Keywords and globals of Jinja, and functions of ruleop: reserved, so no id or name of a rule may be one of them."""

__all__ = [
    "FILTER_NAMES",
    "FUNCTION_NAMES",
    "JINJA_NAMES",
    "METHODS",
    "NONDETERMINISTIC",
    "OMIT",
    "SCOPE_FUNCTIONS",
    "SECRET_FUNCTIONS",
    "TIME_FUNCTIONS",
    "Announced",
    "Broken",
    "Disabled",
    "Exact",
    "Expression",
    "Fault",
    "FieldPath",
    "ItemStep",
    "Later",
    "Lazy",
    "LimitExceeded",
    "MapView",
    "Missing",
    "NotJson",
    "NotPermitted",
    "NotThereYet",
    "ObjectsView",
    "Omit",
    "Origin",
    "PartialObjectsView",
    "Reference",
    "RuleErrors",
    "SlotPlace",
    "StringTemplate",
    "TemplateFunction",
    "TextTemplate",
    "Trait",
    "Tree",
    "UndefinedValue",
    "Waiting",
    "Walk",
    "YamlNode",
    "fault_of",
    "field_of",
    "filters_with",
    "loop_items",
    "partial_view",
    "plain",
    "plain_and_weight",
    "read_yaml",
    "resolve_scalar",
    "scalar_text",
    "template_line",
    "view",
    "yaml_document",
    "yaml_text",
]
