"""Text to objects: templates whose values never meet the YAML parser."""

from ruleop.templating.environment import Callable_ as TemplateFunction
from ruleop.templating.library import Expression, Library, RuleErrors, StringTemplate, TextTemplate, Tree, Waiting
from ruleop.templating.references import Reference
from ruleop.templating.values import OMIT, Absent, Broken, Fault, Later, Lazy, Missing, NotThereYet, ObjectsView, Omit, Origin, Unwanted, View, plain, view
from ruleop.templating.yaml_reader import YamlNode, read_yaml

JINJA_NAMES = frozenset(
    "and or not in is if else elif for recursive true false none True False None self super loop caller varargs kwargs "
    "omit range dict namespace cycler joiner file render lipsum has_kind random_password now".split()
)
"""Jinja's own words and globals, and our functions: what no id or name may be called."""

FUNCTIONS = frozenset({"has_kind", "random_password", "now"})
"""Functions that a scope brings along, because what they give depends on the cluster, a seed or the clock."""

NONDETERMINISTIC = frozenset({"random_password", "now"})
"""Those that give something else every time: only for a child that is created once and then left alone."""

__all__ = [
    "FUNCTIONS",
    "JINJA_NAMES",
    "NONDETERMINISTIC",
    "OMIT",
    "Absent",
    "Broken",
    "Expression",
    "Fault",
    "Later",
    "Lazy",
    "Library",
    "Missing",
    "NotThereYet",
    "ObjectsView",
    "Omit",
    "Origin",
    "Reference",
    "RuleErrors",
    "StringTemplate",
    "TemplateFunction",
    "TextTemplate",
    "Tree",
    "Unwanted",
    "View",
    "Waiting",
    "YamlNode",
    "plain",
    "read_yaml",
    "view",
]
