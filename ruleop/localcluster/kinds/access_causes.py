"""Why roles and their bindings are invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ruleop.localcluster.errors import Cause, invalid_value, required, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object

_GROUP: Final = "rbac.authorization.k8s.io"
_ROLES: Final = ("Role", "ClusterRole")
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def role_causes(new: Object, _old: Object | None) -> list[Cause]:
    rules = enumerate(new.get("rules") or ())
    namespaced = new["kind"] == "Role"
    return [cause for index, rule in rules for cause in _rule_causes(rule, f"rules[{index}]", namespaced=namespaced)]


def _rule_causes(rule: Object, field: str, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield required(f"{field}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            problem = "namespaced rules cannot apply to non-resource URLs"
            yield invalid_value(f"{field}.nonResourceURLs", urls, problem)
        elif rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            problem = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid_value(f"{field}.nonResourceURLs", urls, problem)
        return
    if not rule.get("apiGroups"):
        yield required(f"{field}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{field}.resources", "resource rules must supply at least one resource")


def binding_causes(new: Object, old: Object | None) -> list[Cause]:
    """The role of a binding may not change."""
    causes = [*_reference_causes(new.get("roleRef") or {}, new["kind"]), *_subject_causes(new, new["kind"])]
    if old is None or new.get("roleRef") == old.get("roleRef"):
        return causes
    reference = new.get("roleRef") or {}
    shown = {name: reference.get(f"{name[0].lower()}{name[1:]}", "") for name in ("Kind", "Name")}
    shown = {"APIGroup": reference.get("apiGroup", ""), **shown}
    message = f"Invalid value: {orjson.dumps(shown).decode()}: cannot change roleRef"
    return [*causes, Cause("FieldValueInvalid", message, "roleRef")]


def _reference_causes(reference: Object, kind: str) -> Iterator[Cause]:
    if reference.get("apiGroup") != _GROUP:
        yield unsupported("roleRef.apiGroup", reference.get("apiGroup", ""), (_GROUP,))
    known = _ROLES if kind == "RoleBinding" else _ROLES[1:]
    if reference.get("kind") not in known:
        yield unsupported("roleRef.kind", reference.get("kind", ""), known)
    if not reference.get("name"):
        yield required("roleRef.name")


def _subject_causes(binding: Object, kind_of_binding: str) -> Iterator[Cause]:
    for index, each in enumerate(binding.get("subjects") or ()):
        field, kind = f"subjects[{index}]", each.get("kind", "")
        if not each.get("name"):
            yield required(f"{field}.name")
        if kind not in _SUBJECTS:
            yield unsupported(f"{field}.kind", kind, _SUBJECTS)
        elif kind == "ServiceAccount" and kind_of_binding == "ClusterRoleBinding" and not each.get("namespace"):
            yield required(f"{field}.namespace")
