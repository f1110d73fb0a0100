"""Validation of CustomResourceDefinitions and of the CEL rules in them, in the words of the API server where authors
meet them often. Rules that cannot be evaluated are a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.cel import RuleVerdict, cel_rules
from ruleop.kubernetes.crd import SchemaForm, parse_crd
from ruleop.kubernetes.crd_checks import COLUMN_TYPES, SCHEMA_TYPES, check_crd
from ruleop.kubernetes.schema import SchemaError, subschemas
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden_value,
    invalid_value,
    invalid_values,
    letter_label_problems,
    required,
    subdomain_problems,
    validate_one_of,
)
from ruleop.kubernetes.validation.rules import FieldRule, frozen, holds, invalid, is_new, placed, sub_table
from ruleop.messages import format_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ruleop.kubernetes.cel import BrokenRule, CelRule
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Schema
    from ruleop.kubernetes.validation.rules import At, Errors


_INVALID: Final = "FieldValueInvalid"
_SCALE_PATHS: Final = (
    ("specReplicasPath", (".spec.",), ".spec"),
    ("statusReplicasPath", (".status.",), ".status"),
    ("labelSelectorPath", (".spec.", ".status."), "either .spec or .status"),
)


def _definition(new: Any, at: At) -> Errors:
    if errors := [*_FORM.check(new, at)] or [*_validate_stored(new)]:
        return errors
    if not new["metadata"].get("name"):
        return ()
    try:
        found = check_crd(new)
    except SchemaError as error:
        found = [error.finding]
    return [FieldError(_INVALID, f"Invalid value: {each.message}", format_path(each.path)) for each in found]


def _name(document: Any, _: At) -> Errors:
    spec, name = document["spec"], document["metadata"].get("name")
    if name and name != f"{(spec.get('names') or {}).get('plural')}.{spec.get('group')}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _versions(versions: Any, at: At) -> Iterator[FieldError]:
    shown = None if versions is None else [_version(each) for each in versions]
    versions = versions or []
    if len({each.get("name") for each in versions}) < len(versions):
        yield invalid_value(at.field, shown, "must contain unique version names")
    if sum(bool(each.get("storage")) for each in versions) != 1:
        yield invalid_value(at.field, shown, "must have exactly one version marked as storage version")
        if not (at.root.get("status") or {}).get("storedVersions"):
            yield invalid_value("status.storedVersions", None, "must have at least one stored version")
    if len(versions) == 1 and (name := versions[0].get("name")):
        yield from invalid_values("spec.version", name, letter_label_problems(name))
    for part, check in _PARTS.items():
        values = [each.get(part) for each in versions]
        if values and all(each == values[0] for each in values):
            yield from check(values[0], "spec")  # what all versions have alike becomes a field of the definition
        else:
            for index, value in enumerate(values):
                yield from check(value, f"{at.field}[{index}]")


def _conversion(conversion: Any, at: At) -> Iterator[FieldError]:
    """The real server names the fields as its internal type has them."""
    strategy, webhook = conversion.get("strategy"), conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or ()
    client_field, versions_field = at.child("webhookClientConfig"), at.child("conversionReviewVersions")
    if strategy != "Webhook":
        for each, value in ((client_field, client), (versions_field, versions)) if strategy else ():
            if value:
                yield forbidden_value(each, "should not be set when strategy is not set to Webhook")
        return
    if client is None:
        yield required(client_field, "required when strategy is set to Webhook")
    else:
        yield from _validate_client(client, client_field)
    if not versions:
        yield required(versions_field)
    elif not {"v1", "v1beta1"} & set(versions):
        yield invalid_value(versions_field, list(versions), "must include at least one of v1, v1beta1")
    for index, each in enumerate(versions):
        yield from invalid_values(f"{versions_field}[{index}]", each, letter_label_problems(each))
        if each in versions[:index]:
            yield invalid_value(f"{versions_field}[{index}]", each, "duplicate version")


def _validate_client(client: Object, field: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(field, "exactly one of url or service is required")
    elif url is not None and not url.startswith("https://"):
        problem = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        yield invalid_value(f"{field}.url", url.partition(":")[0], problem)
    elif service is not None:
        yield from (required(f"{field}.service.{name}") for name in ("name", "namespace") if not service.get(name))
        if not 1 <= service.get("port", 443) <= 65535:
            problem = "port is not valid: must be between 1 and 65535, inclusive"
            yield invalid_value(f"{field}.service.port", service["port"], problem)


def _validate_schema(schema: Any, at: str) -> Iterator[FieldError]:
    if found := (schema or {}).get("openAPIV3Schema"):
        whole, path = SchemaForm(found).schema, f"{at}.{'validation' if at == 'spec' else 'schema'}.openAPIV3Schema"
        errors = list(_validate_type(whole, path))
        yield from errors or validate_rule_expressions(whole, path)


def _validate_subresource(subresources: Any, at: str) -> Iterator[FieldError]:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return
    for name, prefixes, where in _SCALE_PATHS:
        field, path = f"{at}.subresources.scale.{name}", scale.get(name)
        if path and not path.startswith(prefixes):
            yield invalid_value(field, path, f"should be a json path under {where}")
        elif not path and name != "labelSelectorPath":
            yield required(field)


def _validate_column(columns: Any, at: str) -> Iterator[FieldError]:
    for index, column in enumerate(columns or ()):
        field = f"{at}.additionalPrinterColumns[{index}]"
        if not column.get("name"):
            yield required(f"{field}.name")
        if not (type_ := column.get("type")):
            yield required(f"{field}.type")
        elif type_ not in COLUMN_TYPES:
            yield invalid_value(f"{field}.type", type_, f"must be one of {','.join(COLUMN_TYPES)}")
        if not (path := column.get("jsonPath")):
            yield required(f"{field}.JSONPath")
        elif not path.startswith("."):
            yield invalid_value(f"{field}.JSONPath", path, "must be a simple json path starting with .")


_PARTS: Final[dict[str, Callable[[Any, str], Iterator[FieldError]]]] = {
    "schema": _validate_schema,
    "subresources": _validate_subresource,
    "additionalPrinterColumns": _validate_column,
}
"""The parts of a version that have a validation of their own."""


def _validate_stored(document: Object) -> Iterator[FieldError]:
    """Validates the versions that the status names as stored."""
    versions = [each["name"] for each in document["spec"]["versions"]]
    stored = (document.get("status") or {}).get("storedVersions") or []
    path = "status.storedVersions"
    for index, name in enumerate(stored):
        if name not in versions:
            problem = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from {path}"
            )
            yield invalid_value(f"{path}[{index}]", name, problem)


def _version(version: Object) -> dict[str, Any]:
    """A version as Go prints the internal type."""
    return {
        "Name": version.get("name", ""),
        "Served": version.get("served", False),
        "Storage": version.get("storage", False),
        "Deprecated": version.get("deprecated", False),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None,
        "Subresources": version.get("subresources"),
        "AdditionalPrinterColumns": version.get("additionalPrinterColumns"),
        "SelectableFields": version.get("selectableFields"),
    }


def _validate_type(schema: Schema, path: str) -> Iterator[FieldError]:
    yield from validate_one_of(f"{path}.type", schema.get("type"), SCHEMA_TYPES, optional=True)
    for steps, each in subschemas(schema):
        keyword, *rest = steps
        yield from _validate_type(each, f"{path}.{keyword}" + "".join(f"[{step}]" for step in rest))


_HAS_DOT: Final = holds(
    lambda group: not group or "." in group or bool(subdomain_problems(group)),
    "should be a domain with at least one dot",
)
_FORM: Final = sub_table(
    (
        frozen(),
        sub_table(_name, when=is_new),
        {
            "spec.group": ("needed subdomain", _HAS_DOT),
            "spec.scope": "needed |Cluster|Namespaced",
            "spec.names!": (
                {
                    "plural singular kind listKind": "needed",
                    "plural singular shortNames[] categories[]": "letter-label",
                    "kind listKind": "kind",
                },
                invalid(
                    "listKind",
                    lambda names: names["listKind"] != names.get("kind"),
                    "kind and listKind may not be the same",
                ),
            ),
            "spec.conversion!": ({"strategy": "needed |None|Webhook"}, _conversion),
            "spec.versions": FieldRule(_versions, missing=True, is_local=False),
            "spec.versions[]": {"name": "given-letter-label", "schema!.openAPIV3Schema": "given"},
        },
    )
)
CUSTOM_RESOURCE_DEFINITION: Final = placed(_definition)


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
