"""The checks: an id, a code, a title and a remedy for each.

An id stays what it is for ever, because people write it into comments, projects and CI jobs; a check that is removed
leaves a gap. The first digit is the group: 1 files, 2 watches.yaml, 3 names, 4 schemas and types, 5 children, 6 status,
7 safety, 8 the checks themselves. docs/checks.md has a row for each, `ruleop check --explain` the details.
"""

from __future__ import annotations

from typing import Final, Literal

from ruleop.nearest import did_you_mean_quoted
from ruleop.values import dataclass

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
    "unmatched-selector",
    "scaled-replicas",
    "immutable-change",
    "stale-job",
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
    remedy: str


CHECKS: Final = (
    Check(
        "RO101",
        "unreadable",
        "A file cannot be read, or is outside of the project",
        "Use regular files in UTF-8 inside the project; names of templates have letters, digits, `.`, `_` and `-`",
    ),
    Check(
        "RO102",
        "yaml",
        "A file is not YAML that ruleop accepts",
        "Correct the syntax, duplicate keys and anchors; quote what YAML would read as another type",
    ),
    Check(
        "RO103",
        "template",
        "A template or an expression cannot be parsed",
        "Correct the syntax, or use the filter, test or function that the message names",
    ),
    Check(
        "RO104",
        "missing-file",
        "A file that is named does not exist",
        "Correct the name, or add the file",
    ),
    Check(
        "RO105",
        "unused-template",
        "Nothing uses a template",
        "Correct the name that should use it, or remove the file",
    ),
    Check(
        "RO201",
        "unknown-key",
        "A key is not part of watches.yaml",
        "Use the key that the message names",
    ),
    Check(
        "RO202",
        "missing-key",
        "A required key is missing",
        "Add the key",
    ),
    Check(
        "RO203",
        "wrong-type",
        "A value of watches.yaml has the wrong type",
        "Write a value of the type that the message names",
    ),
    Check(
        "RO204",
        "wrong-value",
        "A value of watches.yaml is outside of what its key allows",
        "Use an allowed word, name or number; a duration needs a unit",
    ),
    Check(
        "RO205",
        "conflict",
        "Keys exclude or require each other, or names are duplicates",
        "Leave one of the keys out, add the missing one, or give each watch its own name",
    ),
    Check(
        "RO206",
        "environment",
        "An environment variable in vars is missing or invalid",
        "Set the variable, or give it a default of the right type",
    ),
    Check(
        "RO207",
        "elsewhere",
        "${NAME} or {{ }} where it is plain text",
        "Read `${NAME}` in `vars`, and use `{{ vars.x }}` elsewhere",
    ),
    Check(
        "RO208",
        "looks-like-expression",
        "Plain text looks like an expression",
        'Put braces around the expression: `"{{ ... }}"`',
    ),
    Check(
        "RO209",
        "hidden-watch",
        "An earlier watch matches every custom resource of a watch",
        "Move the narrower watch to the front",
    ),
    Check(
        "RO301",
        "taken-name",
        "A name has a meaning already",
        "Choose another name",
    ),
    Check(
        "RO302",
        "unknown-name",
        "A name is not defined",
        "Correct the name, or set it",
    ),
    Check(
        "RO303",
        "unknown-id",
        "No child and no observed resource has this id",
        "Correct the id",
    ),
    Check(
        "RO304",
        "out-of-place",
        "A name exists, but not here",
        "Read children in `waitFor`; `when` reads the CR, `vars`, `let` and observed objects",
    ),
    Check(
        "RO305",
        "cycle",
        "Children depend on each other in a cycle",
        "Read an existing object with `live.ID`, which does not wait",
    ),
    Check(
        "RO306",
        "unused-name",
        "Nothing uses a value of let or an observed resource",
        "Correct the name where it is read, or remove it",
    ),
    Check(
        "RO401",
        "crd",
        "A CustomResourceDefinition is missing or invalid",
        "Add the definition to `crds/`, or correct it",
    ),
    Check(
        "RO402",
        "unknown-kind",
        "Kubernetes does not have this kind",
        "Correct the kind or its version",
    ),
    Check(
        "RO403",
        "unknown-field",
        "A field is not in the schema",
        "Correct the field, or add it to the CRD",
    ),
    Check(
        "RO404",
        "maybe-missing",
        "An optional field is used without a default or a guard",
        "Use `default`, test with `is defined`, or give the field a default in the CRD",
    ),
    Check(
        "RO405",
        "type-mismatch",
        "A value has another type than its place",
        "Convert the value, or correct the type in the CRD; a quantity needs a pattern there",
    ),
    Check(
        "RO406",
        "invalid-literal",
        "The API server refuses a literal of a child",
        "Correct the literal",
    ),
    Check(
        "RO407",
        "constant-condition",
        "A condition is always true or always false",
        "Correct the comparison: `spec.size in ['small', 'medium']`",
    ),
    Check(
        "RO501",
        "reach",
        "A child is outside of its custom resource's namespace",
        "Set `reach: cluster`, or leave the namespace out",
    ),
    Check(
        "RO502",
        "random",
        "A child would render differently each time",
        "Set `strategy: create-only` in the child",
    ),
    Check(
        "RO503",
        "runs-again",
        "A finished Job is deleted and runs again",
        "Remove `ttlSecondsAfterFinished`",
    ),
    Check(
        "RO504",
        "invalid-name",
        "A value can make a name or label invalid",
        "Use `dns_label`, or a pattern or `maxLength` in the CRD",
    ),
    Check(
        "RO505",
        "name-collision",
        "Two objects of one rule have the same name",
        "Use the custom resource's name, or the item, in the name",
    ),
    Check(
        "RO506",
        "example",
        "A custom resource of examples/ fails",
        "Correct the example, the CRD or the rule",
    ),
    Check(
        "RO507",
        "missing-reference",
        "A child refers to an object, a key or a port that nothing provides",
        "Correct the name, observe the object, add the key, or mark a Pod's reference as `optional: true`",
    ),
    Check(
        "RO508",
        "unmatched-selector",
        "A selector matches the Pods of no child",
        "Use the labels of the Pods' template in the selector",
    ),
    Check(
        "RO509",
        "scaled-replicas",
        "A child and its autoscaler both set the replicas",
        "Set `apply: {ignore: [spec.replicas]}` in the child, or leave the field out",
    ),
    Check(
        "RO510",
        "immutable-change",
        "A custom resource can change an immutable field of a child",
        "Make the field of the spec immutable in the CRD, or set `onImmutable: recreate`",
    ),
    Check(
        "RO511",
        "stale-job",
        "A Job of a fixed name ignores changes of the spec",
        "Put the value into the name, set `once`, or set `strategy: create-only` if that is meant",
    ),
    Check(
        "RO601",
        "status-room",
        "The CRD has no field for a part of the status",
        "Declare the field in the CRD; set the fields that it requires in `status`",
    ),
    Check(
        "RO701",
        "secret-data",
        "Data of a Secret reaches a place where it can be read",
        "Leave the value out; status, conditions, messages and names can be read by many",
    ),
    Check(
        "RO702",
        "adopts-any",
        "A custom resource decides which object is adopted",
        "Leave `adopt` out, or make the name or the namespace constant",
    ),
    Check(
        "RO703",
        "sensitive-field",
        "A custom resource decides what a Pod may run or reach",
        "Bound the value by an enum, a pattern or `validate`, or allow the finding with a reason",
    ),
    Check(
        "RO704",
        "missing-permission",
        "The operator's roles do not cover a kind",
        "Grant the verbs, as `ruleop generate rbac` does, or list them under `rbac`",
    ),
    Check(
        "RO705",
        "exposed-secret",
        "Data of a Secret is copied to where more people can read it",
        "Let the Pod read the Secret, or make the file a Secret",
    ),
    Check(
        "RO801",
        "wrong-allow",
        "An allow comment has no reason, or names an unknown check",
        "Give a reason, and the id of a check",
    ),
    Check(
        "RO802",
        "unused-allow",
        "An allow comment silences nothing",
        "Remove the comment",
    ),
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


def id_of(code: Code) -> str:
    return BY_CODE[code].id


def refusal(name: str) -> str | None:
    """The reason that a check of this name cannot be allowed; None if it can."""
    check = BY_ID.get(name)
    if check is None:
        meant = next((each for code, each in BY_CODE.items() if code == name), None)
        guess = f": write its id, {meant.id}" if meant is not None else did_you_mean_quoted(name, BY_ID)
        return f'unknown check "{name}"{guess}'
    if check.code in FATAL:
        return f"{name} ({check.code}) cannot be allowed: the project cannot be used until it is corrected"
    return None
