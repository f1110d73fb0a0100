"""Templates, rendered to objects. Values are inserted after YAML parsing, so they never change the structure."""

from ruleop.core.templating.compile.compiled import Expression, StringTemplate, TextTemplate, Tree
from ruleop.core.templating.compile.environment import TemplateFunction
from ruleop.core.templating.compile.library import Library
from ruleop.core.templating.compile.other_tools import instead_of
from ruleop.core.templating.compile.references import SAME_ITEMS, Reference
from ruleop.core.templating.compile.value_flow import slots_from
from ruleop.core.templating.filters.registry import FILTER_NAMES
from ruleop.core.templating.tree.resource_reader import read_resources
from ruleop.core.templating.tree.yaml_node import YamlNode
from ruleop.core.templating.tree.yaml_reader import NotJson, read_yaml, resolve_scalar
from ruleop.core.templating.tree.yaml_writer import yaml_document, yaml_text
from ruleop.core.templating.values.data import (
    Lazy,
    MapView,
    ObjectsView,
    PartialObjectsView,
    loop_items,
    partial_view,
    plain,
    view,
)
from ruleop.core.templating.values.faults import Fault, LimitExceeded, NotPermitted, NotThereYet, RuleErrors, Waiting
from ruleop.core.templating.values.text import SlotPlace
from ruleop.core.templating.values.undefined import (
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

_WORDS = (
    "and or not in is if else elif for recursive true false none True False None self super loop caller varargs kwargs"
)
_GLOBALS = (
    "omit range dict namespace cycler joiner file render lipsum has_kind random_password now "
    "age after within duration "
    "genCA genSignedCert genSelfSignedCert htpasswd"
)
JINJA_NAMES = frozenset([*_WORDS.split(), *_GLOBALS.split()])
"""Keywords and globals of Jinja, and functions of ruleop: reserved, so no id or name of a rule may be one of them."""

NONDETERMINISTIC = frozenset({"random_password", "now", "genCA", "genSignedCert", "genSelfSignedCert", "htpasswd"})
"""Functions whose result differs on every call: allowed only in children that are created once and never updated."""

TIME_FUNCTIONS = frozenset({"age", "after", "within"})
"""Functions whose result changes with time alone: a plan that has called one is made again when it does."""

FUNCTIONS = frozenset({"has_kind", "duration", *TIME_FUNCTIONS, *NONDETERMINISTIC})
"""Functions that a scope provides, because their results depend on the cluster, a seed or the clock."""

__all__ = [
    "FILTER_NAMES",
    "FUNCTIONS",
    "JINJA_NAMES",
    "NONDETERMINISTIC",
    "OMIT",
    "SAME_ITEMS",
    "TIME_FUNCTIONS",
    "Announced",
    "Broken",
    "Disabled",
    "Expression",
    "Fault",
    "Later",
    "Lazy",
    "Library",
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
    "Tree",
    "UndefinedValue",
    "Waiting",
    "YamlNode",
    "instead_of",
    "loop_items",
    "partial_view",
    "plain",
    "read_resources",
    "read_yaml",
    "resolve_scalar",
    "slots_from",
    "view",
    "yaml_document",
    "yaml_text",
]
