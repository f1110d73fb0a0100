"""Children that are roles or bindings, and the permissions that the operator needs to write them.

Nobody may grant more than they have. A binding needs `bind` on its role, and a role needs all that it grants. A binding
to a role that the same watch writes needs no `bind`: the operator has all that the role grants anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.roles.needed_permissions import Permission, PermissionScope
from ruleop.authoring.checking.typing.bodies.schema_nodes import KindSchemas
from ruleop.authoring.checking.typing.bodies.typed_watches import WatchTypes
from ruleop.authoring.checking.typing.statements import Runner
from ruleop.authoring.checking.typing.type_findings import Report
from ruleop.kubernetes.permissions import ANY
from ruleop.language.rules import Findings
from ruleop.language.templates.bodies.body import BodyMembers, Scalar, literal_data, member
from ruleop.planning.model.rule_permissions import RBAC, Granting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.checking.dataflow.sources import Sources
    from ruleop.errors import Site
    from ruleop.language.rules import PolicyRule
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates.bodies.body import Body

Rules = list[dict[str, Any]]
_GRANTED: Final = ("roleRef", "aggregationRule", "rules")


@dataclass(frozen=True, slots=True)
class GrantingChild:
    id: str
    kind: str
    site: Site  # of its roleRef or rules
    granting: Granting
    names: tuple[str, ...]  # of the role; empty if they are unknown
    rules: Rules | None  # all that its role grants; None if that is computed, or the role is not in the watch
    by_hand: tuple[PolicyRule, ...]  # `rbac` of the watch

    @property
    def is_wide(self) -> bool:
        """Whether it grants permissions in the whole cluster."""
        return self.kind in {"ClusterRole", "ClusterRoleBinding"}

    def permissions(self) -> tuple[Permission, ...] | None:
        """The permissions that the operator needs to write it, beyond `rbac`; None if the templates do not show it."""
        if self.rules is not None:
            return () if self.granting.verb == "bind" else tuple(self._of_role(self.rules))
        if self.granting.verb == "bind" and self.names:
            return (self._permission(RBAC, self.granting.resource, ("bind",), names=self.names),)
        return () if self._is_by_hand() else None

    def _of_role(self, rules: Rules) -> Iterator[Permission]:
        for rule in rules:
            groups, resources, verbs, names, urls = (
                tuple(map(str, rule.get(key) or ()))
                for key in ("apiGroups", "resources", "verbs", "resourceNames", "nonResourceURLs")
            )
            for group in groups:
                for resource in resources:
                    yield self._permission(group, resource, verbs, names=names)
            if urls:
                yield self._permission("", "", verbs, urls=urls)

    def _permission(self, group: str, resource: str, verbs: tuple[str, ...], **fields: Any) -> Permission:
        scope = PermissionScope.CLUSTER if self.is_wide else PermissionScope.WATCHED
        everywhere = f"a {self.kind} grants permissions in the whole cluster" if self.is_wide else ""
        reason = f"the child {self.id} {'binds' if self.granting.verb == 'bind' else 'grants'} it"
        return Permission(group, resource, verbs, scope, reason, site=self.site, everywhere=everywhere, **fields)

    def _is_by_hand(self) -> bool:
        """Whether `rbac` may be for it: it has the verb on the role, or, for a role, permissions to grant."""
        granting = self.granting
        return any(
            ({RBAC, ANY} & {*each.groups} and {granting.resource, ANY} & {*each.resources} and self._fits(each))
            or (granting.verb == "escalate" and not granting.aggregated and {*each.verbs} != {"bind"})
            for each in self.by_hand
        )

    def _fits(self, policy: PolicyRule) -> bool:
        return ({*self.names} <= {*policy.names} or not policy.names) and bool(
            {self.granting.verb, ANY} & {*policy.verbs}
        )

    def remedy(self) -> str:
        """An example of `rbac` for it."""
        granting, names = self.granting, f", resourceNames: [{', '.join(self.names) or 'NAME'}]"
        example = f"{{apiGroups: [{RBAC}], resources: [{granting.resource}]{names}, verbs: [{granting.verb}]}}"
        if granting.verb == "bind":
            return f"list the roles under `rbac` in the watch: [{example}]"
        if granting.aggregated:
            return f"permit it under `rbac` in the watch: [{example}]; with that, the operator can grant everything"
        least = "{apiGroups: [apps], resources: [deployments], verbs: [get]}"
        return f"list all that the role may grant under `rbac` in the watch, such as [{least}]"


def granting_children(sources: Sources) -> Iterator[GrantingChild]:
    """Of one watch. A child with branches may give several. With `writeAs`, another account writes them and needs the
    permissions."""
    if sources.watch.rule.reach.write_as is not None:
        return
    for part in sources.body_parts:
        for body in sources.bodies(part):
            document = body.document
            if body.kind.group != RBAC or not isinstance(document, BodyMembers):
                continue
            granting = Granting.of(literal_data(document))
            if granting is None:
                continue
            sites = [document.entries[key].key.site for key in _GRANTED if key in document.entries]
            site = next(iter(sites), document.site)
            rules = None if granting.aggregated else _granted(granting, body, sources)
            id_ = part.child.id if part.child is not None else ""
            names = (granting.name,) if granting.name else _enumerated(part, site, sources)
            yield GrantingChild(id_, body.kind.kind, site, granting, names, rules, sources.watch.rule.reach.rbac)


def _enumerated(part: RulePart, site: Site, sources: Sources) -> tuple[str, ...]:
    """The possible names of the role that a binding refers to, if the schema enumerates them."""
    loaded = sources.loaded
    runner = Runner.of(loaded.library, Report(Findings({})))
    types = WatchTypes(sources.watch, runner, KindSchemas(loaded.project.crds))
    types.check()
    found: set[str] = set()
    for document, printed in types.bodies.typed(part):
        reference = document.entries.get("roleRef") if isinstance(document, BodyMembers) else None
        if reference is None or reference.key.site != site:
            continue
        name = member(reference.value, "name")
        only = name.only if isinstance(name, Scalar) else None
        constants = printed.slot(only).type.constants if only is not None else None
        if constants is None:
            return ()
        found |= {str(value) for _, value in constants}
    return tuple(sorted(found))


def _granted(granting: Granting, body: Body, sources: Sources) -> Rules | None:
    """All that a role grants, or the role that a binding refers to. If it is not literal, nobody knows."""
    if granting.verb == "escalate":
        return _rules(body)
    referred = _text(body, ("roleRef", "name"))
    written = [each for each in _find_roles(sources, granting.role) if _text(each, ("metadata", "name")) == referred]
    found = [_rules(each) for each in written]
    return [rule for rules in found for rule in rules or ()] if found and None not in found else None


def _find_roles(sources: Sources, kind: str) -> Iterator[Body]:
    for part in sources.body_parts:
        yield from (each for each in sources.bodies(part) if each.kind.group == RBAC and each.kind.kind == kind)


def _text(body: Body, path: tuple[str, ...]) -> tuple[str, ...]:
    """A field as it is written, with the expressions that it prints."""
    found = next((field for field in body.fields if field.path == path), None)
    if found is None:
        return ()
    pieces = found.pieces or (str(found.value),)
    return tuple(each if isinstance(each, str) else each.place.expression for each in pieces)


def _rules(body: Body) -> Rules | None:
    """The rules of a role; None if a part of them is computed."""
    if any(field.path[:1] in {("rules",), ("*",), ()} and any(field.slots) for field in body.fields):
        return None
    if member(body.document, "aggregationRule") is not None:
        return None
    rules = member(body.document, "rules")
    found = literal_data(rules) if rules is not None else []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else None


def wildcards(permissions: Iterable[Permission]) -> Iterator[Permission]:
    """Those that grant more than they name."""
    return (each for each in permissions if ANY in {each.group, *each.resource.split("/"), *each.verbs, *each.urls})
