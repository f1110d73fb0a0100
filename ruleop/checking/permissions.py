"""Compares the permissions that the operator needs with the roles of a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.checking.roles import ANYWHERE, UNKNOWN, Grants
from ruleop.offline.cluster import OfflineKinds
from ruleop.permissions import listed, place
from ruleop.planning.model.needed_permissions import Permission, Scope, Settings, needed_permissions
from ruleop.planning.model.rbac_children import RBAC, Granting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.checking.sources import Sources
    from ruleop.kinds import JSON
    from ruleop.rules import Findings, Loaded
    from ruleop.templating import YamlNode
    from ruleop.templating.bodies.body import Body


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of the operator, and the flags that it is started with."""

    grants: Grants
    settings: Settings
    operator_namespace: str = ""

    def places(self, scope: Scope) -> tuple[str | None, ...]:
        """The namespaces in which a permission is needed; None for everywhere."""
        if scope is Scope.OPERATOR:
            return (self.operator_namespace or UNKNOWN,)
        return self.settings.namespaces or (ANYWHERE,) if scope is Scope.WATCHED else (ANYWHERE,)


def check_permissions(every_source: Sequence[Sources], roles: Roles, findings: Findings) -> None:
    """`every_source`: one for each watch."""
    loaded = every_source[0].loaded
    rules = loaded.project.rules
    kinds = OfflineKinds(loaded.project)
    needed: dict[tuple[object, ...], list[Permission]] = {}
    for each in needed_permissions(rules, kinds, roles.settings):
        needed.setdefault((each.group, each.resource, each.kind, each.scope, each.reason, each.site), []).append(each)
    for permissions in needed.values():
        _report(permissions, roles, loaded, findings)
    for sources in every_source:
        for part in sources.body_parts:
            for body in sources.bodies(part):
                if body.kind.group == RBAC:
                    _check_granting(body, roles, sources, findings)


def _report(permissions: list[Permission], roles: Roles, loaded: Loaded, findings: Findings) -> None:
    """Reports what is missing of the permissions for one purpose."""
    first, grants = permissions[0], roles.grants
    site = first.site or loaded.watches[0].rule.site
    needed = [verb for each in permissions for verb in each.verbs]
    if not first.resource:
        if not grants.mentions(first.group):
            message = f"{grants.files} grants nothing in the API group {first.group}, and {first.kind} needs "
            findings.mistake("missing-permission", message + listed(needed), site)
        return
    for namespace in roles.places(first.scope):
        missing = [verb for each in permissions for verb in _missing(each, grants, namespace)]
        if not missing:
            continue
        message = f"{grants.files} does not grant {listed(missing)} on {first.title}{_where(first.scope, namespace)}"
        if first.site is None:
            message += f", for {first.reason}{_named(permissions)}"
        elif len(missing) < len(needed):
            message += f"; it needs {listed(needed)}"
        if namespace is ANYWHERE and not any(_missing(each, grants, UNKNOWN) for each in permissions):
            message += " in all namespaces: it needs a ClusterRole with a ClusterRoleBinding"
            message += ", or --namespaces" if first.scope is Scope.WATCHED else ""
        if first.without:
            findings.warning("missing-permission", f"{message}: without it, {first.without}", site)
        else:
            findings.mistake("missing-permission", message, site)


def _missing(permission: Permission, grants: Grants, namespace: str | None) -> list[str]:
    name = "".join(permission.names)
    return grants.missing(permission.group, permission.resource, permission.verbs, namespace=namespace, name=name)


def _where(scope: Scope, namespace: str | None) -> str:
    if scope is Scope.OPERATOR and not namespace:
        return " in the operator's namespace"
    return place(namespace) if namespace else ""


def _named(permissions: list[Permission]) -> str:
    names = [name for each in permissions for name in each.names]
    return f" ({', '.join(names)})" if names else ""


# -- children that grant permissions -----------------------------------------------------------------------------------


def _check_granting(body: Body, roles: Roles, sources: Sources, findings: Findings) -> None:
    """A child that is a role or a binding: the operator may not grant more than it has."""
    granting = Granting.of(_literal(body.document, body))
    if granting is None:
        return
    kind = body.kind.kind
    places = roles.places(Scope.WATCHED if kind in {"Role", "RoleBinding"} else Scope.CLUSTER)
    for namespace in places:
        missing = roles.grants.missing(
            RBAC, granting.resource, [granting.verb], namespace=namespace, name=granting.name
        )
        if missing and not _holds_all(granting, body, roles.grants, sources, namespace):
            message = f"{roles.grants.files} does not permit the operator to write this {kind}: {granting.remedy()}"
            sites = body.document.key_sites
            site = sites.get("roleRef") or sites.get("rules") or body.document.site
            findings.mistake("missing-permission", message, site)
            return


def _holds_all(granting: Granting, body: Body, grants: Grants, sources: Sources, namespace: str | None) -> bool:
    """Whether the operator has all that the role grants. If the role's rules are not literal, nobody knows."""
    if granting.aggregated:
        return grants.cover([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], namespace=namespace)
    if granting.verb == "escalate":
        rules = _rules(body)
        return rules is not None and grants.cover(rules, namespace=namespace)
    if granting.name:
        known = grants.roles.get((granting.role, granting.name))
        if known is not None:
            return grants.cover(known, namespace=namespace)
    referred = _text(body, ("roleRef", "name"))
    written = [each for each in _roles_of(sources, granting.role) if _text(each, ("metadata", "name")) == referred]
    covered = [(rules := _rules(each)) is not None and grants.cover(rules, namespace=namespace) for each in written]
    return bool(covered) and all(covered)


def _roles_of(sources: Sources, kind: str) -> Iterator[Body]:
    for part in sources.body_parts:
        yield from (each for each in sources.bodies(part) if each.kind.group == RBAC and each.kind.kind == kind)


def _text(body: Body, path: tuple[str, ...]) -> tuple[str, ...]:
    """A field as it is written, with the expressions that it prints."""
    found = next((field for field in body.fields if field.path == path), None)
    if found is None:
        return ()
    pieces = found.pieces or (str(found.value),)
    return tuple(each if isinstance(each, str) else each.place.expression for each in pieces)


def _rules(body: Body) -> list[JSON] | None:
    """The rules of a role; None if a part of them is computed."""
    if any(field.path[:1] in {("rules",), ("*",), ()} and any(field.slots) for field in body.fields):
        return None
    members = body.document.value if isinstance(body.document.value, dict) else {}
    rules = members["rules"].data() if "rules" in members else []
    return [each for each in rules if isinstance(each, dict)] if isinstance(rules, list) else None


def _literal(node: YamlNode, body: Body) -> JSON:
    """The data of a body, in which a computed text is empty."""
    value = node.value
    if isinstance(value, dict):
        return {key: _literal(member, body) for key, member in value.items()}
    if isinstance(value, list):
        return [_literal(each, body) for each in value]
    if isinstance(value, str):
        return "" if any(not isinstance(piece, str) for piece in body.pieces(value)) else value
    return value
