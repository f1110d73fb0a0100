"""Validation of roles and their bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.schema.builtin.immutable_fields import immutable_changes
from ruleop.core.validation.field_errors import invalid_value, invalid_values, required, unsupported, validate_one_of
from ruleop.core.validation.fields.field_names import subdomain_problems, validate_path_segment
from ruleop.core.validation.fields.label_selectors import validate_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")
_ROLES: Final = {"RoleBinding": ("Role", "ClusterRole"), "ClusterRoleBinding": ("ClusterRole",)}
_SERVICE_ACCOUNT: Final = "ServiceAccount"


def validate_role(new: Object, _old: Object | None) -> list[FieldError]:
    """Validates a Role or a ClusterRole."""
    namespaced = new["kind"] == "Role"
    errors = [
        error
        for index, rule in enumerate(new.get("rules") or ())
        for error in _validate_rule(f"rules[{index}]", rule, namespaced=namespaced)
    ]
    return [*errors, *_validate_aggregation(new.get("aggregationRule"))]


def _validate_rule(field: str, rule: Object, *, namespaced: bool) -> Iterator[FieldError]:
    if not rule.get("verbs"):
        yield required(f"{field}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            yield invalid_value(f"{field}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            problem = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid_value(f"{field}.nonResourceURLs", urls, problem)
        return
    for name, one in (("apiGroups", "api group"), ("resources", "resource")):
        if not rule.get(name):
            yield required(f"{field}.{name}", f"resource rules must supply at least one {one}")


def _validate_aggregation(aggregation: Object | None) -> Iterator[FieldError]:
    if aggregation is None:
        return
    field, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or []
    if not selectors:
        yield required(field, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, each in enumerate(selectors):
        errors = list(validate_label_selector(each, f"{field}[{index}]"))
        yield from errors
        if errors:
            yield invalid_value(f"{field}[{index}]", None, "invalid label selector.")


def validate_role_binding(new: Object, old: Object | None) -> list[FieldError]:
    """Validates a RoleBinding or a ClusterRoleBinding. The role of a binding may not change."""
    reference = new.get("roleRef") or {}
    errors = [*_validate_reference(reference, _ROLES[new["kind"]])]
    for index, each in enumerate(new.get("subjects") or ()):
        errors += _validate_subject(f"subjects[{index}]", each, namespaced=new["kind"] == "RoleBinding")
    if immutable_changes(new, old):
        shown = {
            "APIGroup": reference.get("apiGroup", ""),
            "Kind": reference.get("kind", ""),
            "Name": reference.get("name", ""),
        }
        errors.append(invalid_value("roleRef", shown, "cannot change roleRef"))
    return errors


def _validate_reference(reference: Object, kinds: tuple[str, ...]) -> Iterator[FieldError]:
    yield from validate_one_of("roleRef.apiGroup", reference.get("apiGroup", ""), [GROUP])
    yield from validate_one_of("roleRef.kind", reference.get("kind", ""), kinds)
    yield from validate_path_segment("roleRef.name", reference.get("name", ""))


def _validate_subject(field: str, subject: Object, *, namespaced: bool) -> Iterator[FieldError]:
    name, kind, group = (subject.get(each, "") for each in ("name", "kind", "apiGroup"))
    if not name:
        yield required(f"{field}.name")
    if kind not in _SUBJECTS:
        yield unsupported(f"{field}.kind", kind, _SUBJECTS)
    elif kind == _SERVICE_ACCOUNT:
        yield from _validate_account(field, subject, namespaced=namespaced)
    else:
        yield from validate_one_of(f"{field}.apiGroup", group, [GROUP])


def _validate_account(field: str, subject: Object, *, namespaced: bool) -> Iterator[FieldError]:
    name, group = subject.get("name", ""), subject.get("apiGroup", "")
    if name:
        yield from invalid_values(f"{field}.name", name, subdomain_problems(name))
    yield from validate_one_of(f"{field}.apiGroup", group, [""])
    if not namespaced and not subject.get("namespace"):
        yield required(f"{field}.namespace")
