"""Validation of CustomResourceDefinitions and of the CEL rules in them, in the words of the API server where authors
meet them often. Rules that cannot be evaluated are a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.cel import RuleVerdict, cel_rules
from ruleop.kubernetes.crd import SchemaForm, parse_crd
from ruleop.kubernetes.crd_checks import COLUMN_TYPES, SCHEMA_TYPES, check_crd
from ruleop.kubernetes.names import is_subdomain
from ruleop.kubernetes.schema import SchemaError, subschemas
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    invalid_value,
    invalid_values,
    letter_label_problems,
    refusal,
    unsupported,
)
from ruleop.messages import format_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.kubernetes.cel import BrokenRule, CelRule
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Schema
    from ruleop.kubernetes.validation.rules import Check, Errors, Rows


_INVALID: Final = "FieldValueInvalid"


def _definition(definition: Any, old: Any) -> Errors:
    if errors := [*_FORM(definition, old)] or [*_stored(definition)]:
        return errors
    if not definition["metadata"].get("name"):
        return ()
    try:
        found = check_crd(definition)
    except SchemaError as error:
        found = [error.finding]
    return [FieldError(_INVALID, f"Invalid value: {each.message}", format_path(each.path)) for each in found]


CUSTOM_RESOURCE_DEFINITION: Final = _definition


def _name(definition: Any, _: Any) -> Errors:
    spec, name = definition["spec"], definition["metadata"].get("name")
    if name and name != f"{(spec.get('names') or {}).get('plural')}.{spec.get('group')}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _stored(definition: Object) -> Iterator[FieldError]:
    """The errors of the versions that the status names as stored."""
    versions = [each["name"] for each in definition["spec"]["versions"]]
    for index, name in enumerate((definition.get("status") or {}).get("storedVersions") or ()):
        if name not in versions:
            problem = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield invalid_value(f"status.storedVersions[{index}]", name, problem)


# -- conversion ------------------------------------------------------------------------------------------------------


def _renamed(rows: Rows, names: dict[str, str]) -> Check:
    """Rules whose errors name some fields as the server's internal type has them."""
    check = rules.table(rows)

    def renamed(error: FieldError) -> FieldError:
        found = next((name for name in names if name in error.field), "")
        return error._replace(field=error.field.replace(found, names.get(found, ""), 1))

    return lambda value, old: [renamed(each) for each in check(value, old)]


_SCHEME: Final = "Invalid value: {}: 'https' is the only allowed URL scheme; desired format: https://host[/path]"
_CLIENT: Final[Rows] = {
    lambda client: (client.get("url") is None) == (client.get("service") is None): (
        rules.always("Required value: exactly one of url or service is required")
    ),
    rules.lacks("service"): {
        "url": {
            lambda url: not url.startswith("https://"): lambda url, _: (refusal(_SCHEME, url.partition(":")[0]),),
        }
    },
    rules.lacks("url"): {
        "service.name service.namespace": "needed",
        "service.port": rules.between(1, 65535, "port is not valid: must be between 1 and 65535, inclusive"),
    },
}
_NO_CLIENT: Final = "Required value: required when strategy is set to Webhook"
_CONVERSION: Final[Rows] = {
    "strategy": "needed |None|Webhook",
    rules.differs("strategy", "Webhook", None): {
        "webhook.clientConfig webhook.conversionReviewVersions": {
            bool: "Forbidden: should not be set when strategy is not set to Webhook"
        }
    },
    rules.equals("strategy", "Webhook"): {
        "webhook!": {rules.lacks("clientConfig"): rules.always(_NO_CLIENT, "clientConfig")},
        "webhook!.clientConfig": _CLIENT,
        "webhook!.conversionReviewVersions": (
            "needed",
            rules.unique(empty=True, message="Invalid value: {}: duplicate version"),
            {
                lambda versions: versions and {"v1", "v1beta1"}.isdisjoint(versions): (
                    "Invalid value: {}: must include at least one of v1, v1beta1"
                )
            },
        ),
        "webhook!.conversionReviewVersions[]": "full-letter-label",
    },
}
_INTERNAL_NAMES: Final = {"webhook.clientConfig": "webhookClientConfig", "webhook.conversion": "conversion"}


# -- versions --------------------------------------------------------------------------------------------------------


def _versions(definition: Any, _: Any) -> Iterator[FieldError]:
    given = definition["spec"].get("versions")
    versions = given or []
    if len({each.get("name") for each in versions}) < len(versions):
        yield invalid_value("spec.versions", given, "must contain unique version names")
    if sum(bool(each.get("storage")) for each in versions) != 1:
        yield invalid_value("spec.versions", given, "must have exactly one version marked as storage version")
        if not (definition.get("status") or {}).get("storedVersions"):
            yield invalid_value("status.storedVersions", None, "must have at least one stored version")
    if len(versions) == 1 and (name := versions[0].get("name")):
        yield from invalid_values("spec.version", name, letter_label_problems(name))
    for part, check in _PARTS.items():
        values = [each.get(part) for each in versions]
        # What all versions have alike becomes a field of the definition.
        if all(each == values[0] for each in values):
            places = [f"spec.{'validation' if part == 'schema' else part}"]
        else:
            places = [f"spec.versions[{index}].{part}" for index in range(len(values))]
        for place, value in zip(places, values, strict=False):
            yield from (each.below(place) for each in check(value, None)) if value is not None else ()


def _schema(schema: Any, _: Any) -> Iterator[FieldError]:
    if found := schema.get("openAPIV3Schema"):
        whole = SchemaForm(found).schema
        errors = [*_type_errors(whole)] or rule_expression_errors(whole)
        yield from (each.below("openAPIV3Schema") for each in errors)


def _type_errors(schema: Schema) -> Iterator[FieldError]:
    if (type_ := schema.get("type")) not in (None, *SCHEMA_TYPES):
        yield unsupported("type", type_, SCHEMA_TYPES)
    for (keyword, *rest), each in subschemas(schema):
        step = f"{keyword}{''.join(f'[{name}]' for name in rest)}"
        yield from (error.below(step) for error in _type_errors(each))


_SCALE: Final[Rows] = {
    "specReplicasPath": ("needed", rules.text((r"\.spec\..*", "should be a json path under .spec"))),
    "statusReplicasPath": ("needed", rules.text((r"\.status\..*", "should be a json path under .status"))),
    "labelSelectorPath": rules.text((r"\.(spec|status)\..*", "should be a json path under either .spec or .status")),
}
_COLUMN: Final[Rows] = {
    "name type jsonPath": "needed",
    "type": rules.text(("|".join(COLUMN_TYPES), f"must be one of {','.join(COLUMN_TYPES)}")),
    "jsonPath": rules.text((r"\..*", "must be a simple json path starting with .")),
}
_PARTS: Final[dict[str, Check]] = {
    "schema": _schema,
    "subresources": rules.table({"scale": _SCALE}),
    "additionalPrinterColumns": _renamed({"[]": _COLUMN}, {"jsonPath": "JSONPath"}),
}
"""The parts of a version that have a validation of their own."""


_NAMES: Final[Rows] = {
    "plural singular kind listKind": "needed",
    "plural singular shortNames[] categories[]": "letter-label",
    "kind listKind": "kind",
    lambda names: names.get("listKind") == names.get("kind"): {
        "listKind": "Invalid value: {}: kind and listKind may not be the same"
    },
}
_NO_DOT: Final = "should be a domain with at least one dot"
_FORM: Final = rules.table(
    (
        rules.frozen(),
        rules.new(_name),
        {
            "spec.group": ("needed subdomain", {is_subdomain: rules.text((r".*\..*", _NO_DOT))}),
            "spec.scope": "needed |Cluster|Namespaced",
            "spec.names!": _NAMES,
            "spec.conversion!": _renamed(_CONVERSION, _INTERNAL_NAMES),
            "spec.versions[]": {"name": "given-letter-label", "schema!.openAPIV3Schema": "given"},
        },
        _versions,
    )
)


def defaulted(document: dict[str, Any]) -> dict[str, Any]:
    """The definition with the names that the server fills in."""
    spec = dict(document.get("spec") or {})
    names = dict(spec.get("names") or {})
    kind = names.get("kind")
    if isinstance(kind, str):
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
    spec["names"] = names
    spec.setdefault("conversion", {"strategy": "None"})
    return {**document, "spec": spec}


# -- rules in CEL ----------------------------------------------------------------------------------------------------


_ROOT: Final = "<nil>"  # a path without steps, as Go prints it
_BLOCKING: Final = frozenset(
    {
        *("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany"),
        "FieldValueTypeInvalid",
    }
)
_BLOCKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_VALUELESS: Final = ("FieldValueForbidden", "FieldValueRequired")
_RULE_REASONS: Final = {
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
}
_OVERLOAD: Final = "call arguments did not match a supported operator, function or macro signature for rule"


def validate_rules(obj: Object, schema: Schema, old: Object | None, errors: Sequence[FieldError]) -> list[FieldError]:
    """The rules that an object breaks. They are not evaluated if some `errors` say that its form is wrong."""
    rules = cel_rules(schema)
    if not rules.rules:
        return []
    if any(each.reason in _BLOCKING for each in errors):
        return [invalid_value(_ROOT, None, _BLOCKED)]
    return [_cause(each) for each in rules.broken(obj, old) if each.verdict is not RuleVerdict.NOT_EVALUATED]


def _cause(broken: BrokenRule) -> FieldError:
    field, rule, detail = broken.field or _ROOT, broken.rule, broken.detail
    if broken.verdict is RuleVerdict.FAILED:
        problem = f"'{detail}': {_OVERLOAD}" if detail.startswith("no such overload") else f"{detail} evaluating rule"
        return invalid_value(field, rule.schema_type, f"{problem}: {rule.message or rule.rule}")
    shown = [] if broken.value is None or rule.reason in _VALUELESS else [orjson.dumps(broken.value).decode()]
    words = [] if rule.reason == "FieldValueDuplicate" else [detail]
    return FieldError(rule.reason, ": ".join((_RULE_REASONS[rule.reason], *shown, *words)), field)


_UNNAMED: Final = ("items", "additionalProperties")  # keywords with one schema


def rule_expression_errors(schema: Schema) -> Iterator[FieldError]:
    """The rules for which a CRD is rejected. The real server prints its Go structure and the place in the rule."""
    for each in cel_rules(schema).rules:
        steps = iter(each.path)
        field = ".".join(each if each in _UNNAMED else f"{each}[{next(steps)}]" for each in steps)
        if each.is_invalid:
            message = f"Invalid value: {each.rule}: compilation failed: {each.problem}"
            yield FieldError(_INVALID, message, f"{field}.rule")
        if each.reason not in _RULE_REASONS:
            yield unsupported(f"{field}.reason", each.reason, _RULE_REASONS)
        if each.wrong_field:
            yield invalid_value(f"{field}.fieldPath", each.wrong_field, "must be a valid path")


def rule_warnings(document: Object, old: Object | None) -> list[str]:
    """The warning for a CRD that has other rules than before which are not evaluated."""
    rules = _not_evaluated(document)
    if not rules or (old is not None and rules == _not_evaluated(old)):
        return []
    (path, first), *_ = rules
    count = f"{len(rules)} CEL rule{' is' if len(rules) == 1 else 's are'}"
    return [f"{count} not evaluated by this local cluster (at {path}: {first.problem})"]


def _not_evaluated(document: Object) -> list[tuple[str, CelRule]]:
    try:
        versions = parse_crd(document).versions
    except SchemaError:
        return []
    return [
        (format_path(("spec", "versions", index, "schema", "openAPIV3Schema", *rule.path)), rule)
        for index, version in enumerate(versions)
        for rule in cel_rules(version.schema).not_evaluated
    ]
