"""Compares the permissions that the operator needs with the roles of a manifest."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.needed_permissions import (
    Permission,
    PermissionScope,
    granting_children,
    is_by_hand,
    needed_permissions,
)
from ruleop.authoring.offline import OfflineKinds
from ruleop.kubernetes.permissions import ANY, listed, place
from ruleop.planning.model.rule_permissions import BINDINGS, RBAC, ROLES
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.checking.dataflow import Sources
    from ruleop.authoring.checking.needed_permissions import GrantingChild
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Findings
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.operator_choices import Choices


ANYWHERE: Final = None
UNKNOWN: Final = ""
"""The namespace of a Role that does not name one: `kubectl apply -n` decides it."""


@dataclass(frozen=True, slots=True)
class NeededEntry:
    """One rule of a role."""

    groups: frozenset[str]
    resources: frozenset[str]
    verbs: frozenset[str]
    names: frozenset[str]  # empty for all
    urls: frozenset[str]
    namespaces: frozenset[str] | None  # where it holds; None for everywhere

    def holds_in(self, namespace: str | None) -> bool:
        """`namespace`: None for everywhere, UNKNOWN for any one."""
        if self.namespaces is ANYWHERE:
            return True
        return namespace is not None and (namespace == UNKNOWN or bool({namespace, UNKNOWN} & self.namespaces))

    def covers(self, group: str, resource: str, name: str) -> bool:
        resources = {resource, ANY, f"*/{resource.partition('/')[2]}" if "/" in resource else ANY}
        named = not self.names or name in self.names
        return bool({group, ANY} & self.groups and resources & self.resources) and named


@dataclass(frozen=True, slots=True)
class Grants:
    files: str  # their names, for messages
    entries: tuple[NeededEntry, ...]
    roles: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)  # rules by kind and name

    @classmethod
    def of(cls, files: str, objects: Iterable[Object]) -> Grants:
        found = list(objects)
        roles = [each for each in found if each.get("kind") in ROLES]
        bound = _bound(found)
        entries = [entry for role in roles for entry in _entries(rules_of(role), _places(role, bound))]
        return cls(files, tuple(entries), {(str(each["kind"]), _name(each)): rules_of(each) for each in roles})

    def missing(
        self, group: str, resource: str, verbs: Iterable[str], *, namespace: str | None, name: str = ""
    ) -> list[str]:
        """The verbs that are not granted; on the object of this name, or on all."""
        held = [each for each in self.entries if each.holds_in(namespace) and each.covers(group, resource, name)]
        granted = frozenset().union(*(each.verbs for each in held))
        return [] if ANY in granted else [verb for verb in verbs if verb not in granted]

    def mentions(self, group: str) -> bool:
        return any({group, ANY} & each.groups for each in self.entries)

    def cover(self, rules: Sequence[dict[str, Any]], *, namespace: str | None) -> bool:
        """Whether they grant all that these rules of another role grant."""
        return all(self._covers(entry, namespace) for entry in _entries(rules, ANYWHERE))

    def _covers(self, asked: NeededEntry, namespace: str | None) -> bool:
        urls = (
            any(verb in each.verbs or ANY in each.verbs for each in self.entries if {url, ANY} & each.urls)
            for url in asked.urls
            for verb in asked.verbs
        )
        return all(urls) and not any(
            self.missing(group, resource, asked.verbs, namespace=namespace, name=name)
            for group in asked.groups
            for resource in asked.resources
            for name in asked.names or ("",)
        )


def rules_of(role: Object) -> list[dict[str, Any]]:
    rules = role.get("rules")
    return [each for each in rules if isinstance(each, dict)] if isinstance(rules, list) else []


def _name(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def _namespace(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("namespace") or UNKNOWN)


def _bound(objects: Iterable[Object]) -> dict[str, set[str] | None]:
    """Where the ClusterRoles hold that a binding refers to, by name."""
    found: dict[str, set[str] | None] = {}
    for each in objects:
        role = each.get("roleRef")
        if each.get("kind") not in BINDINGS or not isinstance(role, dict) or role.get("kind") != "ClusterRole":
            continue
        name = str(role.get("name"))
        known = found.get(name, set())
        everywhere = each["kind"] == "ClusterRoleBinding" or known is ANYWHERE
        found[name] = None if everywhere else {*(known or ()), _namespace(each)}
    return found


def _places(role: Object, bound: dict[str, set[str] | None]) -> frozenset[str] | None:
    if role["kind"] == "Role":
        return frozenset([_namespace(role)])
    places = bound.get(_name(role))
    return frozenset(places) if places is not None else ANYWHERE


def _entries(rules: Iterable[dict[str, Any]], namespaces: frozenset[str] | None) -> Iterator[NeededEntry]:
    for rule in rules:
        groups, resources, verbs = (_words(rule, key) for key in ("apiGroups", "resources", "verbs"))
        names, urls = _words(rule, "resourceNames"), _words(rule, "nonResourceURLs")
        yield NeededEntry(groups, resources, verbs, names, urls, namespaces)


def _words(rule: dict[str, Any], key: str) -> frozenset[str]:
    found = rule.get(key)
    return frozenset(str(each) for each in found) if isinstance(found, list) else frozenset()


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of the operator, and the choices that it is started with."""

    grants: Grants
    choices: Choices
    operator_namespace: str = ""

    def places(self, scope: PermissionScope) -> tuple[str | None, ...]:
        """The namespaces in which a permission is needed; None for everywhere."""
        if scope is PermissionScope.OPERATOR:
            return (self.operator_namespace or UNKNOWN,)
        return self.choices.namespaces or (ANYWHERE,) if scope is PermissionScope.WATCHED else (ANYWHERE,)


def check_permissions(every_source: Sequence[Sources], roles: Roles, findings: Findings) -> None:
    """`every_source`: one for each watch."""
    loaded = every_source[0].loaded
    rules = loaded.project.rules
    needed: dict[tuple[object, ...], list[Permission]] = {}
    for each in needed_permissions(loaded.project, OfflineKinds(loaded.project), roles.choices):
        if each.resource or not is_by_hand(each, rules):
            purpose = (each.site, each.names) if each.site is not None else each.reason
            key = (each.group, each.resource, each.kind, each.scope, purpose)
            needed.setdefault(key, []).append(each)
    for permissions in needed.values():
        _report(permissions, roles, loaded, findings)
    for sources in every_source:
        for child in granting_children(sources):
            _check_granting(child, roles, findings)


def _report(permissions: list[Permission], roles: Roles, loaded: Loaded, findings: Findings) -> None:
    """Reports what is missing of the permissions for one purpose."""
    first, grants = permissions[0], roles.grants
    site = first.site or loaded.watches[0].rule.site
    needed = list(dict.fromkeys(verb for each in permissions for verb in each.verbs))
    if not first.resource:
        if not grants.mentions(first.group):
            message = f"{grants.files} grants nothing in the API group {first.group}, and {first.kind} needs "
            findings.mistake("missing-permission", message + listed(needed), site)
        return
    for namespace in (first.namespace,) if first.namespace else roles.places(first.scope):
        missing = [verb for each in permissions for verb in _missing(each, grants, namespace)]
        if not missing:
            continue
        title = first.title + (_named([first]) if first.site is not None else "")
        message = f"{grants.files} does not grant {listed(missing)} on {title}{_where(first.scope, namespace)}"
        if first.site is None:
            message += f", for {first.reason}{_named(permissions)}"
        elif len(missing) < len(needed):
            message += f"; it needs {listed(needed)}"
        if namespace is ANYWHERE and not any(_missing(each, grants, UNKNOWN) for each in permissions):
            message += " in all namespaces: it needs a ClusterRole with a ClusterRoleBinding"
            message += ", or --namespaces" if first.scope is PermissionScope.WATCHED else ""
        if first.without:
            findings.warning("missing-permission", f"{message}: without it, {first.without}", site)
        else:
            findings.mistake("missing-permission", message, site)


def _missing(permission: Permission, grants: Grants, namespace: str | None) -> list[str]:
    missing = (
        grants.missing(permission.group, permission.resource, permission.verbs, namespace=namespace, name=name)
        for name in permission.names or ("",)
    )
    return list(dict.fromkeys(verb for verbs in missing for verb in verbs))


def _where(scope: PermissionScope, namespace: str | None) -> str:
    if scope is PermissionScope.OPERATOR and not namespace:
        return " in the operator's namespace"
    return place(namespace) if namespace else ""


def _named(permissions: list[Permission]) -> str:
    names = [name for each in permissions for name in each.names]
    return f" ({', '.join(names)})" if names else ""


# -- children that grant permissions -----------------------------------------------------------------------------------


def _check_granting(child: GrantingChild, roles: Roles, findings: Findings) -> None:
    """The operator may not grant more than it has."""
    granting, grants = child.granting, roles.grants
    for namespace in roles.places(PermissionScope.CLUSTER if child.is_wide else PermissionScope.WATCHED):
        missing = any(
            grants.missing(RBAC, granting.resource, [granting.verb], namespace=namespace, name=name)
            for name in child.names or ("",)
        )
        if missing and not _holds_all(child, grants, namespace):
            message = f"{grants.files} does not permit the operator to write this {child.kind}: {granting.remedy()}"
            findings.mistake("missing-permission", message, child.site)
            return


def _holds_all(child: GrantingChild, grants: Grants, namespace: str | None) -> bool:
    """Whether the operator has all that the role grants."""
    granting = child.granting
    if granting.aggregated:
        return grants.cover([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], namespace=namespace)
    known = grants.roles.get((granting.role, granting.name)) if granting.verb == "bind" and granting.name else None
    rules = known if known is not None else child.rules
    if rules is None:
        return child.permissions() == ()  # `rbac` names them, and they are compared like all others
    return grants.cover(rules, namespace=namespace)
