"""Validation of CustomResourceDefinitions, in the words of `ruleop check`, and of custom resources by the CEL rules in
them, in those of the API server. Rules that cannot be evaluated are a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.cel import RuleVerdict, cel_rules
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.crd_checks import check_crd
from ruleop.kubernetes.schema import SchemaError
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.field_errors import FieldError, invalid_value, unsupported
from ruleop.messages import format_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.kubernetes.cel import BrokenRule, CelRule
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Schema
    from ruleop.kubernetes.validation.rules import Errors, Rows


_CLIENT: Final[Rows] = {
    lambda client: (client.get("url") is None) == (client.get("service") is None): (
        rules.invalid("exactly one of url or service is required")
    ),
    "url if !service": rules.text(("https://.*", "'https' is the only allowed URL scheme")),
    "service.name service.namespace if !url": "needed",
    "service.port if !url": "1..65535",
}
_CONVERSION: Final[Rows] = {
    "strategy": "needed |None|Webhook",
    "webhook.clientConfig webhook.conversionReviewVersions if strategy!=|Webhook": "empty",
    "if strategy=Webhook": {
        "webhook!.clientConfig": ("given", _CLIENT),
        "webhook!.conversionReviewVersions": (
            "needed",
            rules.unique(empty=True),
            {
                lambda versions: versions and {"v1", "v1beta1"}.isdisjoint(versions): (
                    rules.invalid("must include at least one of v1, v1beta1")
                )
            },
        ),
        "webhook!.conversionReviewVersions[]": "full-letter-label",
    },
}
_SCALE: Final[Rows] = {
    "specReplicasPath": ("needed", rules.text((r"\.spec\..*", "should be a json path under .spec"))),
    "statusReplicasPath": ("needed", rules.text((r"\.status\..*", "should be a json path under .status"))),
    "labelSelectorPath": rules.text((r"\.(spec|status)\..*", "should be a json path under either .spec or .status")),
}


def _stored(definition: Any, _: Any) -> Iterator[FieldError]:
    """The versions that the status names as stored are there."""
    versions = [each.get("name") for each in definition["spec"].get("versions") or ()]
    for index, name in enumerate((definition.get("status") or {}).get("storedVersions") or ()):
        if name not in versions:
            problem = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield invalid_value(f"status.storedVersions[{index}]", name, problem)


_FORM: Final = rules.table(
    (
        rules.frozen(),
        _stored,
        {"spec.conversion!": _CONVERSION, "spec.versions[].subresources.scale": _SCALE},
    )
)


def _definition(definition: Any, old: Any) -> Errors:
    """The problems that `ruleop check` reports, and those that it leaves to the server."""
    if errors := list(_FORM(definition, old)):
        return errors
    if not definition["metadata"].get("name"):
        return ()
    try:
        found = check_crd(definition)
    except SchemaError as error:
        found = [error.finding]
    if not found:
        return _rule_errors(definition)
    return [FieldError("FieldValueInvalid", f"Invalid value: {each.message}", format_path(each.path)) for each in found]


def _rule_errors(definition: Object) -> Iterator[FieldError]:
    for index, version in enumerate(parse_crd(definition).versions):
        for each in cel_rules(version.schema).rules:
            field = format_path(("spec", "versions", index, "schema", "openAPIV3Schema", *each.path))
            if each.reason not in _RULE_REASONS:
                yield unsupported(f"{field}.reason", each.reason, _RULE_REASONS)
            if each.wrong_field:
                yield invalid_value(f"{field}.fieldPath", each.wrong_field, "must be a valid path")


CUSTOM_RESOURCE_DEFINITION: Final = _definition


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
