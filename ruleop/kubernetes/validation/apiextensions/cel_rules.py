"""Rules in CEL: the errors of objects that break them, and a warning about those that are not evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.cel import RuleVerdict, cel_rules
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.schema import SchemaError
from ruleop.kubernetes.validation.field_errors import FieldError, duplicate, invalid_value, validate_one_of
from ruleop.messages import format_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.kubernetes.cel import BrokenRule, CelRule
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Schema

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
_RULE_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_REASONS: Final = {"FieldValueForbidden": "Forbidden", "FieldValueRequired": "Required value"}
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
        named = rule.message or rule.rule
        if detail.startswith("no such overload"):
            return invalid_value(field, rule.schema_type, f"'{detail}': {_OVERLOAD}: {named}")
        return invalid_value(field, rule.schema_type, f"{detail} evaluating rule: {named}")
    if rule.reason in _REASONS:
        return FieldError(rule.reason, f"{_REASONS[rule.reason]}: {detail}", field)
    is_scalar = broken.value is not None
    if rule.reason == "FieldValueDuplicate":
        return duplicate(field, broken.value) if is_scalar else FieldError(rule.reason, "Duplicate value", field)
    if is_scalar:
        return invalid_value(field, broken.value, detail)
    return FieldError("FieldValueInvalid", f"Invalid value: {detail}", field)


def validate_rule_expressions(schema: Schema, path: str) -> Iterator[FieldError]:
    """The rules for which a CRD is rejected. The real server prints its Go structure and the place in the rule."""
    for each in cel_rules(schema).rules:
        field, steps = path, iter(each.path)
        for keyword in steps:
            field += f".{keyword}" if keyword in ("items", "additionalProperties") else f".{keyword}[{next(steps)}]"
        if each.is_invalid:
            yield FieldError(
                "FieldValueInvalid", f"Invalid value: {each.rule}: compilation failed: {each.problem}", f"{field}.rule"
            )
        yield from validate_one_of(f"{field}.reason", each.reason, _RULE_REASONS)
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
