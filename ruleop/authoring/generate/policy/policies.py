"""ValidatingAdmissionPolicies of the rules of `validate`: the API server refuses what the operator would call Invalid.

A policy has the rules of one watch that CEL can express exactly (cel_translation.py). The others stay with the operator
alone. A rule that fails for a custom resource, because a field is missing, is refused too (`failurePolicy: Fail`): no
webhook is asked, so nothing can be unavailable.

A resource that breaks a rule already can still be deleted, and its metadata and its status be changed: a policy looks
only at creations and at changes of what its rules read. So a new rule does not lock what exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.typing.bodies.schema_nodes import KindSchemas
from ruleop.authoring.checking.typing.strings import expression_node
from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.generate.policy.cel_terms import InexactError, constant
from ruleop.authoring.generate.policy.cel_translation import CelNames, Translation
from ruleop.authoring.scaffold import rules_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules import Rule
    from ruleop.language.rules.keys.model import Validation
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.operator_choices import Choices

VERSION: Final = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Kept:
    """A rule or a message that is not in a policy as it is."""

    site: Site
    reason: str

    def __str__(self) -> str:
        return f"{self.site.path}:{self.site.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a watch. Its name is below that of the operator."""

    name: str
    spec: Object


def policies(loaded: Loaded) -> tuple[list[Policy], list[Kept]]:
    """The policies of the watches, and what is not in them."""
    found: list[Policy] = []
    kept: list[Kept] = []
    kinds = KindSchemas(loaded.project.crds)
    for watch in loaded.watches:
        rule = watch.rule
        crd, node = kinds.crd(rule.kind), kinds.node(rule.kind)
        if crd is None or node is None:
            kept += [
                Kept(each.site, f"only the operator checks this rule: {rule.kind.kind} has no CRD in the project")
                for each in rule.validate
            ]
            continue
        translation = Translation(CelNames.of(loaded, watch, node, namespaced=crd.namespaced))
        validations = [each for rule in rule.validate if (each := _validation(translation, rule, kept)) is not None]
        if validations:
            suffix = f"-{rule.name}" if rule.name else ""
            found.append(Policy(f"{crd.name}{suffix}", _spec(rule, crd.plural, translation.reads, validations)))
    return found, kept


def _validation(translation: Translation, validation: Validation, kept: list[Kept]) -> Object | None:
    rule, message = validation.rule, validation.message
    library = translation.names.loaded.library
    try:
        expression = translation.condition(expression_node(library, rule))
    except InexactError as error:
        kept.append(Kept(validation.site, f"only the operator checks this rule: {error}"))
        return None
    found = {"expression": expression}
    if message.constant is not None:
        return {**found, "message": _line(message.constant)}
    plain, computed, reason = translation.message(message.source, message.site)
    if reason:
        kept.append(Kept(message.site, f"the message of the policy is incomplete: {reason}"))
    # The API server uses the plain text where the other fails, or has line breaks.
    return {**found, "message": _line(plain), **({"messageExpression": computed} if computed else {})}


def _line(text: str) -> str:
    return " ".join(text.split()) or "..."


def _spec(rule: Rule, plural: str, reads: set[str], validations: Sequence[Object]) -> Object:
    kind = rule.kind
    resources = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
        "scope": "*",  # the default, without which each `kubectl apply` would change the list
    }
    namespaces = {"namespaceSelector": _named(rule.selection.namespaces)} if rule.selection.namespaces else {}
    selected = list(_selected(rule))
    parts = sorted(reads | ({"metadata.labels"} if selected else set()))
    conditions = [
        {"name": "not-deleted", "expression": "!has(object.metadata.deletionTimestamp)"},
        {"name": "changed", "expression": " || ".join(["request.operation == 'CREATE'", *map(_differs, parts)])},
        *({"name": f"selected-{number}", "expression": each} for number, each in enumerate(selected, 1)),
    ]
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            # The object is converted to this version before the rules see it, whatever version was sent.
            "matchPolicy": "Equivalent",
            **namespaces,
            "resourceRules": [resources],
        },
        "matchConditions": conditions,
        "validations": list(validations),
    }


def _differs(part: str) -> str:
    """Whether an update changes a part of the object, which may be missing before and after."""
    old, new = f"oldObject.{part}", f"object.{part}"
    return f"has({new}) != has({old}) || has({new}) && {new} != {old}"


def _selected(rule: Rule) -> Iterator[str]:
    """The selector of the watch. An `objectSelector` would also match an object that has just left it."""
    if rule.selection.selector is None:
        return
    labels = "object.metadata.labels"
    for name, text in rule.selection.selector.match_labels.items():
        yield f"has({labels}) && {_has_label(labels, name)} && {_one_of(labels, name, [str(text.constant)])}"
    for each in rule.selection.selector.match_expressions:
        there = f"has({labels}) && {_has_label(labels, each.key)}"
        if each.operator in {"In", "NotIn"}:
            there += f" && {_one_of(labels, each.key, [str(text.constant) for text in each.values])}"
        yield there if each.operator in {"In", "Exists"} else f"!({there})"


def _has_label(labels: str, name: str) -> str:
    return f"{constant(name).text} in {labels}"


def _one_of(labels: str, name: str, values: list[JSON]) -> str:
    return f"{labels}[{constant(name).text}] in {constant(values).text}"


def _named(namespaces: Sequence[str]) -> Object:
    """A selector of namespaces by their names."""
    expression = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
    return {"matchExpressions": [expression]}


# -- documents ---------------------------------------------------------------------------------------------------------


def policy_objects(found: Sequence[Policy], choices: Choices) -> list[Object]:
    """The policies and their bindings. They belong to no namespace, so two operators need two names."""
    objects: list[Object] = []
    limits = {"matchResources": {"namespaceSelector": _named(choices.namespaces)}} if choices.namespaces else {}
    for each in found:
        metadata = {"name": f"{choices.name}-{each.name}"}
        objects.append(
            {"apiVersion": VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": each.spec}
        )
        spec = {"policyName": metadata["name"], "validationActions": ["Deny"], **limits}
        objects.append(
            {"apiVersion": VERSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": spec}
        )
    return objects


def policy_text(found: Sequence[Policy], kept: Sequence[Kept], choices: Choices) -> str:
    head = f"{MARK} policy` from `validate` in watches.yaml: change it there.\n"
    head += "".join(f"# {each}\n" for each in kept)
    return head + "---\n".join(map(rules_text, policy_objects(found, choices)))
