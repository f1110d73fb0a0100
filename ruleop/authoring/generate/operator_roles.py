"""The roles of the operator: exactly the permissions that it needs, in the fewest places.

Roles for people who work with the custom resources are part of Kubernetes' own roles view, edit and admin, so that who
may edit a namespace may edit the custom resources in it. Only the operator writes the status.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.dataflow import Sources
from ruleop.authoring.checking.needed_permissions import (
    Permission,
    PermissionScope,
    granting_children,
    is_by_hand,
    needed_permissions,
    wildcards,
)
from ruleop.authoring.offline import OfflineKinds
from ruleop.authoring.scaffold import Noted
from ruleop.kubernetes.permissions import IMPERSONATE, listed, ordered
from ruleop.language.rules import Findings, ProjectErrors
from ruleop.planning.model.rule_permissions import RBAC
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Finding, Project
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.operator_choices import Choices


_Key = tuple[str, str, tuple[str, ...], tuple[str, ...]]
VERSION: Final = f"{RBAC}/v1"


@dataclass(frozen=True, slots=True)
class OperatorRoles:
    """The rules of roles, each of which may be empty."""

    cluster: tuple[Permission, ...]  # of a ClusterRole that is bound everywhere
    watched: tuple[Permission, ...]  # of a Role in each watched namespace; empty if all are watched
    operator: tuple[Permission, ...]  # of a Role in the operator's own namespace
    elsewhere: Mapping[str, tuple[Permission, ...]] = field(default_factory=dict)  # of Roles in other namespaces
    warnings: tuple[Finding, ...] = ()


def operator_roles(loaded: Loaded, choices: Choices, *, elsewhere: bool = True) -> OperatorRoles:
    """Raises ProjectErrors with what cannot be computed. `elsewhere`: there may be roles in other namespaces; else what
    is needed there is granted in the cluster."""
    findings = Findings(loaded.files)
    needed = _needed(loaded, choices, findings)
    if findings.failed:
        raise ProjectErrors(findings.sorted())
    if not elsewhere:
        needed = [
            replace(
                each,
                scope=PermissionScope.CLUSTER,
                namespace="",
                everywhere=f"it is needed in the namespace {each.namespace}",
            )
            if each.scope is PermissionScope.FIXED
            else each
            for each in needed
        ]
    by_scope = {scope: [each for each in needed if each.scope is scope] for scope in PermissionScope}
    watched = by_scope[PermissionScope.WATCHED] if choices.namespaces else []
    cluster = _merged(
        each
        for each in needed
        if each.scope in {PermissionScope.CLUSTER, PermissionScope.WATCHED} and each not in watched
    )
    fixed: dict[str, list[Permission]] = {}
    for each in by_scope[PermissionScope.FIXED]:
        fixed.setdefault(each.namespace, []).append(each)
    return OperatorRoles(
        cluster,
        _merged(watched),
        _merged(by_scope[PermissionScope.OPERATOR]),
        {name: left for name, each in sorted(fixed.items()) if (left := _beyond(_merged(each), cluster))},
        findings.sorted(),
    )


def _needed(loaded: Loaded, choices: Choices, findings: Findings) -> list[Permission]:
    rules = loaded.project.rules
    found = list(needed_permissions(loaded.project, OfflineKinds(loaded.project), choices))
    for each in found:
        if not each.resource and not is_by_hand(each, rules) and each.site is not None:
            example = f"{{apiGroups: [{each.group}], resources: [PLURAL], verbs: [{listed(each.verbs)}]}}"
            message = f"the plural of {each.kind} in the API group {each.group} is unknown, and a role needs it"
            remedy = f"put the CRD into crds/, or list the permission under `rbac` in the watch: [{example}]"
            findings.mistake("missing-permission", f"{message}: {remedy}", each.site)
    found = [each for each in found if each.resource]
    for sources in (Sources(watch, loaded) for watch in loaded.watches):
        for child in granting_children(sources):
            permissions = child.permissions()
            if permissions is None:
                message = f"the permissions that this {child.kind} grants cannot be read from the template"
                if child.granting.aggregated:
                    message = f"this {child.kind} grants what other roles grant (aggregationRule)"
                findings.mistake("missing-permission", f"{message}: {child.remedy()}", child.site)
            found += permissions or ()
    for each in found:
        if each.verbs == (IMPERSONATE,) and not each.names and each.site is not None:
            where = "its own namespace" if each.scope is PermissionScope.WATCHED else each.namespace
            message = f"the operator may write as every ServiceAccount: a custom resource chooses one of {where}"
            findings.warning("missing-permission", f"{message}. Write the name literally to limit it", each.site)
    for each in wildcards(found):
        assert each.site is not None, "only the author of the rules writes wildcards"
        message = f"{listed(each.verbs)} on {each.title}: the operator may do more than these rules need"
        findings.warning("missing-permission", message, each.site)
    return found


def _merged(permissions: Iterable[Permission]) -> tuple[Permission, ...]:
    """One rule for each resource and names: the first, with the verbs of all. Verbs on all objects cover those on
    objects with names, and names with equal verbs are in one rule."""
    found: dict[_Key, Permission] = {}
    for each in permissions:
        key: _Key = (each.group, each.resource, each.names, each.urls)
        found[key] = _with(found[key], each) if key in found else each
    for key, each in [*found.items()]:
        held = found.get((each.group, each.resource, (), ())) if each.names else None
        if held is not None and (left := _beyond([each], [held])):
            found[key] = left[0]
        elif held is not None:
            found[each.group, each.resource, (), ()] = _with(held, each)
            del found[key]
    named: dict[tuple[object, ...], Permission] = {}
    for each in found.values():
        equal = (each.group, each.resource, each.verbs, each.urls, bool(each.names))
        first = named.get(equal)
        names = () if first is None else tuple(sorted({*first.names, *each.names}))
        named[equal] = each if first is None else replace(_with(first, each), names=names)
    return tuple(named.values())


def _with(one: Permission, other: Permission) -> Permission:
    needs = tuple(dict.fromkeys([*(one.needs or (one,)), *(other.needs or (other,))]))
    wide = other if other.scope is PermissionScope.CLUSTER else one
    verbs = ordered([*one.verbs, *other.verbs])
    return replace(one, verbs=verbs, needs=needs, scope=wide.scope, everywhere=wide.everywhere)


def _beyond(permissions: Iterable[Permission], held: Iterable[Permission]) -> tuple[Permission, ...]:
    """The permissions that others do not grant already."""
    granted = {(each.group, each.resource, each.names): each.verbs for each in held}
    found: list[Permission] = []
    for each in permissions:
        known = {verb for names in ((), each.names) for verb in granted.get((each.group, each.resource, names), ())}
        if left := tuple(verb for verb in each.verbs if verb not in known):
            found.append(replace(each, verbs=left))
    return tuple(found)


# -- documents ---------------------------------------------------------------------------------------------------------


def role_objects(roles: OperatorRoles, choices: Choices, *, comments: bool = False) -> list[Object]:
    """The roles and their bindings, without empty ones. `comments`: the rules have their reasons, for YAML."""
    in_namespaces: dict[str, list[Permission]] = {
        name: [*roles.watched] for name in choices.namespaces if roles.watched
    }
    for namespace, others in roles.elsewhere.items():
        in_namespaces.setdefault(namespace, []).extend(others)
    if roles.operator:
        in_namespaces.setdefault(choices.namespace, []).extend(roles.operator)
    found: list[Object] = []
    if roles.cluster:
        found += _granted("Cluster", "", roles.cluster, choices, comments=comments)
    for namespace, permissions in in_namespaces.items():
        found += _granted("", namespace, _merged(permissions), choices, comments=comments)
    return found


def service_account(choices: Choices) -> Object:
    metadata = {"name": choices.name, "namespace": choices.namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def wide_permissions(roles: OperatorRoles, choices: Choices) -> Iterator[str]:
    """The reasons for a ClusterRole although single namespaces are watched."""
    for each in roles.cluster if choices.namespaces else ():
        yield f"{listed(each.verbs)} on {each.title} needs a ClusterRole: {each.everywhere} ({_origin(each)})"


def _granted(
    prefix: str, namespace: str, permissions: Iterable[Permission], choices: Choices, *, comments: bool
) -> Iterator[Object]:
    """A role and its binding. `prefix`: "Cluster", or "" for those of a namespace."""
    metadata = {"name": choices.name} | ({"namespace": namespace} if namespace else {})
    account = {"kind": "ServiceAccount", "name": choices.name, "namespace": choices.namespace}
    rules: list[Any] = [
        Noted(_comment(each, choices), rule_of(each)) if comments else rule_of(each) for each in permissions
    ]
    yield {"apiVersion": VERSION, "kind": f"{prefix}Role", "metadata": metadata, "rules": rules}
    yield {
        "apiVersion": VERSION,
        "kind": f"{prefix}RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": f"{prefix}Role", "name": choices.name},
        "subjects": [account],
    }


def rule_of(permission: Permission) -> dict[str, Any]:
    """As a rule of a role."""
    if permission.urls:
        return {"nonResourceURLs": list(permission.urls), "verbs": list(permission.verbs)}
    found: dict[str, Any] = {"apiGroups": [permission.group], "resources": [permission.resource]}
    if permission.names:
        found["resourceNames"] = list(permission.names)
    return {**found, "verbs": list(permission.verbs)}


def _comment(permission: Permission, choices: Choices) -> str:
    """Its reasons, one a line, with their verbs if these are not all."""
    lines = [
        _origin(each) if {*each.verbs} == {*permission.verbs} else f"{_origin(each)}: {listed(each.verbs)}"
        for each in permission.needs or (permission,)
    ]
    if choices.namespaces and permission.everywhere:
        lines.append(f"not in a Role: {permission.everywhere}")
    return "\n".join(dict.fromkeys(lines))


def _origin(permission: Permission) -> str:
    site = permission.site
    return f"{permission.reason} ({site.path}:{site.line})" if site is not None else permission.reason


_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "update", "patch", "delete", "deletecollection"]
_SCALE: Final = ["update", "patch"]
ROLES: Final = ("view", "edit", "admin")


def user_roles(project: Project, choices: Choices) -> list[Object]:
    """Each role is complete, so that it can also be bound by itself."""
    crds = {(crd.group, crd.kind): crd for crd in project.crds}
    kinds = dict.fromkeys((rule.kind.group, rule.kind.kind) for rule in project.rules)
    watched = [crds[kind] for kind in kinds if kind in crds]
    return [_role(name, watched, choices) for name in ROLES] if watched else []


def _role(name: str, watched: list[CustomResourceDefinition], choices: Choices) -> Object:
    metadata = {"name": f"{choices.name}-{name}", "labels": {f"{RBAC}/aggregate-to-{name}": "true"}}
    rules = [rule for crd in watched for rule in _rules(crd, writes=name != "view")]
    return {"apiVersion": VERSION, "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _rules(crd: CustomResourceDefinition, *, writes: bool) -> Iterator[Any]:
    rule = _rule(crd, "", [*_READ, *(_WRITE if writes else ())])
    if crd.namespaced:
        yield rule
    else:
        words = f"{crd.kind} is cluster-scoped: only a ClusterRoleBinding gives access to it, no RoleBinding"
        yield Noted(words, rule)
    served = [each for each in crd.versions if each.served]
    if any(each.status_subresource for each in served):
        yield _rule(crd, "/status", ["get"])
    if any(each.scale_subresource for each in served):
        yield _rule(crd, "/scale", ["get", *(_SCALE if writes else ())])


def _rule(crd: CustomResourceDefinition, subresource: str, verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [crd.group], "resources": [f"{crd.plural}{subresource}"], "verbs": verbs}
