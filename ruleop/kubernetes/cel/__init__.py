"""CEL rules of CRDs (x-kubernetes-validations), decided as the API server decides them, or not at all.

A rule is parsed (`parser`), compiled against the types of its schema (`types`, `compiler`) and evaluated (`values`,
`functions`) for each value of a custom resource that it concerns (`rules`).

A wrong verdict is worse than none, so there are three: a rule holds, it is broken, or it is not evaluated. Whatever
is not known for certain to be as on the server (a function, a type, a quirk of a value, too many steps) raises
NotEvaluatedError.
"""

from ruleop.kubernetes.cel.parser import (
    CelCall,
    CelMacro,
    CelName,
    EvaluationError,
    InvalidRuleError,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    NotEvaluatedError,
    Select,
    parse,
)
from ruleop.kubernetes.cel.rules import BrokenRule, CelRule, CelRules, RuleVerdict, cel_rules

__all__ = [
    "BrokenRule",
    "CelCall",
    "CelMacro",
    "CelName",
    "CelRule",
    "CelRules",
    "EvaluationError",
    "InvalidRuleError",
    "ListLiteral",
    "Literal",
    "MapLiteral",
    "Node",
    "NotEvaluatedError",
    "RuleVerdict",
    "Select",
    "cel_rules",
    "parse",
]
