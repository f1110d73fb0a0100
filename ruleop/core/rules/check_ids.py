"""The checks: an id, a code and a title for each.

An id stays what it is for ever, because people write it into comments, projects and CI jobs; a check that is removed
leaves a gap. The first digit is the group: 1 files, 2 watches.yaml, 3 names, 4 schemas and types, 5 children, 6 status,
7 safety, 8 the checks themselves. docs/checks.md has a section for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Code = Literal[
    "unreadable",
    "yaml",
    "template",
    "missing-file",
    "unused-template",
    "unknown-key",
    "missing-key",
    "wrong-type",
    "wrong-value",
    "conflict",
    "environment",
    "elsewhere",
    "looks-like-expression",
    "hidden-watch",
    "taken-name",
    "unknown-name",
    "unknown-id",
    "out-of-place",
    "cycle",
    "unused-name",
    "crd",
    "unknown-kind",
    "unknown-field",
    "maybe-missing",
    "type-mismatch",
    "invalid-literal",
    "constant-condition",
    "reach",
    "random",
    "runs-again",
    "invalid-name",
    "name-collision",
    "example",
    "missing-reference",
    "status-room",
    "secret-data",
    "adopts-any",
    "sensitive-field",
    "missing-permission",
    "exposed-secret",
    "wrong-allow",
    "unused-allow",
]


@dataclass(frozen=True, slots=True)
class Check:
    id: str
    code: Code
    title: str


CHECKS: Final = (
    Check("RO101", "unreadable", "A file cannot be read, or is outside of the project"),
    Check("RO102", "yaml", "A file is not YAML that ruleop accepts"),
    Check("RO103", "template", "A template or an expression cannot be parsed"),
    Check("RO104", "missing-file", "A file that is named does not exist"),
    Check("RO105", "unused-template", "Nothing uses a template"),
    Check("RO201", "unknown-key", "A key is not part of watches.yaml"),
    Check("RO202", "missing-key", "A required key is missing"),
    Check("RO203", "wrong-type", "A value of watches.yaml has the wrong type"),
    Check("RO204", "wrong-value", "A value of watches.yaml is outside of what its key allows"),
    Check("RO205", "conflict", "Keys exclude or require each other, or names are duplicates"),
    Check("RO206", "environment", "An environment variable in vars is missing or invalid"),
    Check("RO207", "elsewhere", "${NAME} or {{ }} where it is plain text"),
    Check("RO208", "looks-like-expression", "Plain text looks like an expression"),
    Check("RO209", "hidden-watch", "An earlier watch matches every custom resource of a watch"),
    Check("RO301", "taken-name", "A name has a meaning already"),
    Check("RO302", "unknown-name", "A name is not defined"),
    Check("RO303", "unknown-id", "No child and no observed resource has this id"),
    Check("RO304", "out-of-place", "A name exists, but not here"),
    Check("RO305", "cycle", "Children depend on each other in a cycle"),
    Check("RO306", "unused-name", "Nothing uses a value of let or an observed resource"),
    Check("RO401", "crd", "A CustomResourceDefinition is missing or invalid"),
    Check("RO402", "unknown-kind", "Kubernetes does not have this kind"),
    Check("RO403", "unknown-field", "A field is not in the schema"),
    Check("RO404", "maybe-missing", "An optional field is used without a default or a guard"),
    Check("RO405", "type-mismatch", "A value has another type than its place"),
    Check("RO406", "invalid-literal", "The API server refuses a literal of a child"),
    Check("RO407", "constant-condition", "A condition is always true or always false"),
    Check("RO501", "reach", "A child is outside of its custom resource's namespace"),
    Check("RO502", "random", "A child would render differently each time"),
    Check("RO503", "runs-again", "A finished Job is deleted and runs again"),
    Check("RO504", "invalid-name", "A value can make a name or label invalid"),
    Check("RO505", "name-collision", "Two objects of one rule have the same name"),
    Check("RO506", "example", "A custom resource of examples/ fails"),
    Check("RO507", "missing-reference", "A Pod refers to an object or a key that nothing provides"),
    Check("RO601", "status-room", "The CRD has no field for a part of the status"),
    Check("RO701", "secret-data", "Data of a Secret reaches a place where it can be read"),
    Check("RO702", "adopts-any", "A custom resource decides which object is adopted"),
    Check("RO703", "sensitive-field", "A custom resource decides what a Pod may run or reach"),
    Check("RO704", "missing-permission", "The operator's roles do not cover a kind"),
    Check("RO705", "exposed-secret", "Data of a Secret is copied to where more people can read it"),
    Check("RO801", "wrong-allow", "An allow comment has no reason, or names an unknown check"),
    Check("RO802", "unused-allow", "An allow comment silences nothing"),
)
BY_CODE: Final = {check.code: check for check in CHECKS}
BY_ID: Final = {check.id: check for check in CHECKS}

FATAL: Final[frozenset[Code]] = frozenset(
    {
        "unreadable",
        "yaml",
        "template",
        "unknown-key",
        "wrong-type",
        "wrong-value",
        "taken-name",
        "unknown-id",
        "out-of-place",
        "cycle",
        "hidden-watch",
        "reach",
        "random",
        "secret-data",
    }
)
"""Checks whose every finding makes the project invalid. Of others, some findings are warnings."""
SILENCEABLE: Final = tuple(check for check in CHECKS if check.code not in FATAL)
