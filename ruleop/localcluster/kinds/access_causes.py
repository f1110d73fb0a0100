"""Roles and their bindings: why one is invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.errors import invalid_value, invalid_values, required, unsupported
from ruleop.localcluster.kinds.label_selectors import label_selector_causes
from ruleop.localcluster.objects.names import path_segment_causes, subdomain_problems
from ruleop.schema.immutable_fields import immutable_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")
_ROLES: Final = {"RoleBinding": ("Role", "ClusterRole"), "ClusterRoleBinding": ("ClusterRole",)}
_SERVICE_ACCOUNT: Final = "ServiceAccount"


def role_causes(new: Object, _old: Object | None) -> list[Cause]:
    """Of a Role or a ClusterRole."""
    namespaced = new["kind"] == "Role"
    causes = [
        cause
        for index, rule in enumerate(new.get("rules") or ())
        for cause in _rule_causes(f"rules[{index}]", rule, namespaced=namespaced)
    ]
    return [*causes, *_aggregation_causes(new.get("aggregationRule"))]


def _rule_causes(field: str, rule: Object, *, namespaced: bool) -> Iterator[Cause]:
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


def _aggregation_causes(aggregation: Object | None) -> Iterator[Cause]:
    if aggregation is None:
        return
    field, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or []
    if not selectors:
        yield required(field, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, each in enumerate(selectors):
        causes = list(label_selector_causes(each, f"{field}[{index}]"))
        yield from causes
        if causes:
            yield invalid_value(f"{field}[{index}]", None, "invalid label selector.")


def binding_causes(new: Object, old: Object | None) -> list[Cause]:
    """Of a RoleBinding or a ClusterRoleBinding. The role of a binding may not change."""
    reference = new.get("roleRef") or {}
    causes = [*_reference_causes(reference, _ROLES[new["kind"]])]
    for index, each in enumerate(new.get("subjects") or ()):
        causes += _subject_causes(f"subjects[{index}]", each, namespaced=new["kind"] == "RoleBinding")
    if old is not None and immutable_changes(new, old):
        shown = {
            "APIGroup": reference.get("apiGroup", ""),
            "Kind": reference.get("kind", ""),
            "Name": reference.get("name", ""),
        }
        causes.append(invalid_value("roleRef", shown, "cannot change roleRef"))
    return causes


def _reference_causes(reference: Object, kinds: tuple[str, ...]) -> Iterator[Cause]:
    if (group := reference.get("apiGroup", "")) != GROUP:
        yield unsupported("roleRef.apiGroup", group, [GROUP])
    if (kind := reference.get("kind", "")) not in kinds:
        yield unsupported("roleRef.kind", kind, kinds)
    yield from path_segment_causes("roleRef.name", reference.get("name", ""))


def _subject_causes(field: str, subject: Object, *, namespaced: bool) -> Iterator[Cause]:
    name, kind, group = (subject.get(each, "") for each in ("name", "kind", "apiGroup"))
    if not name:
        yield required(f"{field}.name")
    if kind not in _SUBJECTS:
        yield unsupported(f"{field}.kind", kind, _SUBJECTS)
    elif kind != _SERVICE_ACCOUNT:
        if group != GROUP:
            yield unsupported(f"{field}.apiGroup", group, [GROUP])
    else:
        yield from _account_causes(field, subject, namespaced=namespaced)


def _account_causes(field: str, subject: Object, *, namespaced: bool) -> Iterator[Cause]:
    name, group = subject.get("name", ""), subject.get("apiGroup", "")
    if name:
        yield from invalid_values(f"{field}.name", name, subdomain_problems(name))
    if group:
        yield unsupported(f"{field}.apiGroup", group, [""])
    if not namespaced and not subject.get("namespace"):
        yield required(f"{field}.namespace")
