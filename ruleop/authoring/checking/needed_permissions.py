"""The permissions that an operator with these rules needs: exact verbs, resources and names, each with its reason and
its place in the rules; and what it needs besides to write roles and bindings. `check --rbac` compares them with roles,
and `generate rbac` makes roles of them."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.typing.inference import Report
from ruleop.authoring.checking.typing.statements import Runner
from ruleop.authoring.checking.typing.types import KindSchemas
from ruleop.authoring.checking.typing.watches import WatchTypes
from ruleop.kubernetes.builtin.table import builtin_kinds, builtin_resource
from ruleop.kubernetes.names import lease_name
from ruleop.kubernetes.permissions import (
    ANY,
    EVENT_VERBS,
    FOLLOW,
    GRANTING,
    IMPERSONATE,
    NAMED,
    READ,
    REVIEWS,
    STORED,
    literal_parts,
    ordered,
)
from ruleop.language.rules import Findings
from ruleop.language.templates.bodies.body import BodyMembers, Scalar, literal_data, member
from ruleop.planning.model.rule_permissions import RBAC, Granting, Need, needs
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.checking.dataflow import Sources
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import PolicyRule, Project, Rule
    from ruleop.language.rules.operator_choices import Choices
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import StringTemplate
    from ruleop.language.templates.bodies.body import Body
    from ruleop.planning.model.observed import KindInfo, Kinds


_OF_CLUSTER_SCOPED = "default"
"""The namespace of the Events on cluster-scoped objects."""


class PermissionScope(Enum):
    """Where a permission is needed."""

    CLUSTER = "cluster"  # a ClusterRole and a ClusterRoleBinding
    WATCHED = "watched"  # in each watched namespace; without --namespaces, in all of them
    FIXED = "fixed"  # in one namespace, which the rules name
    OPERATOR = "operator"  # in the operator's own namespace


@dataclass(frozen=True, slots=True)
class Permission:
    """One rule of a role. Without a resource, the plural of the kind is unknown."""

    group: str
    resource: str  # the plural; of a subresource "sites/status"
    verbs: tuple[str, ...]
    scope: PermissionScope
    reason: str
    kind: str = ""
    site: Site | None = None
    names: tuple[str, ...] = ()  # resourceNames; empty for objects of any name
    without: str = ""  # what happens without it, if the operator runs nevertheless
    namespace: str = ""  # with Scope.FIXED
    everywhere: str = ""  # with Scope.CLUSTER: why roles in the watched namespaces are not enough
    urls: tuple[str, ...] = ()  # nonResourceURLs, instead of a resource
    needs: tuple[Permission, ...] = ()  # if it is made of several

    @property
    def title(self) -> str:
        plural, slash, subresource = self.resource.partition("/")
        named = f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource
        return named or ", ".join(self.urls)


def needed_permissions(project: Project, kinds: Kinds, choices: Choices) -> Iterator[Permission]:
    """In the order of the rules, then those of the operator itself. Several may be for one resource."""
    builtin = map(builtin_resource, builtin_kinds())
    cluster_scoped = {each.title for each in builtin if each is not None and not each.namespaced}
    cluster_scoped |= {crd.name for crd in project.crds if not crd.namespaced}
    for rule in project.rules:
        yield from _of_rule(rule, kinds)
        if rule.reach.write_as is not None:
            yield _impersonation(rule, rule.reach.write_as)
        for policy in rule.reach.rbac:
            yield from _by_hand(policy, rule, cluster_scoped)
    yield from _of_operator(project.rules, kinds, choices)


def _of_rule(rule: Rule, kinds: Kinds) -> Iterator[Permission]:
    children = (kind for child in rule.every_child for kind in sorted(child.kinds))
    used = {kind.versionless: kind for kind in (rule.kind, *children, *(each.kind for each in rule.read_objects))}
    for kind in used.values():
        info = kinds.info(kind)
        for need in needs(rule, kind.versionless, info):
            yield _on_kind(kind, info, need)
        if kind.versionless == rule.kind.versionless and rule.status.managed and info.status_subresource:
            status = Need(("patch",), f"the status of {kind.kind}", rule.site)
            yield from [_on_kind(kind, info, status, "/status")] if info.resource else ()


def _on_kind(kind: Kind, info: KindInfo, need: Need, subresource: str = "") -> Permission:
    plural, _, group = info.resource.partition(".")
    fixed = info.namespaced and need.namespace
    return Permission(
        group if plural else kind.group,
        f"{plural}{subresource}",
        need.verbs,
        PermissionScope.FIXED if fixed else PermissionScope.WATCHED if info.namespaced else PermissionScope.CLUSTER,
        need.reason,
        kind.kind,
        need.site,
        (need.name,) if need.name else (),
        namespace=need.namespace if fixed else "",
        everywhere="" if info.namespaced else f"{kind.kind} is cluster-scoped",
    )


def _impersonation(rule: Rule, write_as: StringTemplate) -> Permission:
    """Only on the account that the rule names. A computed namespace is the CR's own, so one that is watched."""
    namespace, name = literal_parts(write_as.source)
    return Permission(
        "",
        "serviceaccounts",
        (IMPERSONATE,),
        PermissionScope.FIXED if namespace else PermissionScope.WATCHED,
        f"`writeAs` of {rule.kind.kind}",
        "ServiceAccount",
        write_as.site,
        (name,) if name else (),
        namespace=namespace,
    )


def _by_hand(policy: PolicyRule, rule: Rule, cluster_scoped: set[str]) -> Iterator[Permission]:
    """Those of `rbac`. Who writes a binding in a namespace needs `bind` there only, also on a ClusterRole."""
    children = {kind.kind for child in rule.every_child for kind in child.kinds}
    is_wide = bool(children & {"ClusterRole", "ClusterRoleBinding"})
    for group in policy.groups:
        for resource in policy.resources:
            plural = resource.partition("/")[0]
            if set(policy.verbs) <= GRANTING:
                why = "a child grants permissions in the whole cluster" if is_wide else ""
            else:
                why = f"{plural} are cluster-scoped" if f"{plural}.{group}".rstrip(".") in cluster_scoped else ""
            scope = PermissionScope.CLUSTER if why else PermissionScope.WATCHED
            permission = Permission(group, resource, policy.verbs, scope, "`rbac`", site=policy.site)
            yield replace(permission, names=policy.names, everywhere=why)


def is_by_hand(permission: Permission, rules: Sequence[Rule]) -> bool:
    """Whether `rbac` has permissions on a kind with an unknown plural: all verbs on some resource of its group."""
    return any(
        {permission.group, ANY} & set(policy.groups) and (ANY in policy.verbs or {*permission.verbs} <= {*policy.verbs})
        for rule in rules
        for policy in rule.reach.rbac
    )


def _of_operator(rules: Sequence[Rule], kinds: Kinds, choices: Choices) -> Iterator[Permission]:
    name = choices.name
    yield from _stored("", "configmaps", f"{name}-inventory", "the inventory")
    yield from _stored("", "configmaps", f"{name}-revisions", "revisions of the rules", "they are not kept")
    if any(rule.rollout is not None for rule in rules):
        yield from _stored("", "configmaps", f"{name}-rollouts", "`rollout`", verbs=(*NAMED, *FOLLOW))
    if any(rule.needs_key for rule in rules):
        yield from _stored("", "secrets", f"{name}-owner-key", "the key that signs owner annotations")
    if choices.shards:
        # How many Leases there are changes with the number of pods.
        verbs = ordered(("list", *STORED))
        yield Permission("coordination.k8s.io", "leases", verbs, PermissionScope.OPERATOR, "the Leases of the shards")
        yield Permission("apps", "statefulsets", READ, PermissionScope.OPERATOR, "the number of shards", names=(name,))
    elif choices.leader_elect:
        lease = lease_name(name, selector=choices.selector)
        yield from _stored("coordination.k8s.io", "leases", lease, "leader election")
        late = "another process that reconciles the same custom resources is not noticed"
        yield Permission(
            "coordination.k8s.io",
            "leases",
            ("list",),
            PermissionScope.OPERATOR,
            "other processes of the operator",
            without=late,
        )
    namespaced = [rule for rule in rules if kinds.info(rule.kind).namespaced]
    unsaid = "no Events are written"
    for scope, namespace, needed in (
        (PermissionScope.WATCHED, "", bool(namespaced)),
        (PermissionScope.FIXED, _OF_CLUSTER_SCOPED, len(namespaced) < len(rules)),
    ):
        if needed:
            why = "Events on cluster-scoped custom resources" if namespace else "Events on custom resources"
            yield Permission("events.k8s.io", "events", EVENT_VERBS, scope, why, without=unsaid, namespace=namespace)
    if not choices.namespaces:
        late = "changed CRDs are noticed once a minute, by discovery"
        yield Permission(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            FOLLOW,
            PermissionScope.CLUSTER,
            "changes of CRDs",
            without=late,
        )
    if any(
        rule.finalize or rule.has_order or rule.patches or (rule.reach.write_as is not None and rule.annotates_children)
        for rule in namespaced
    ):
        late = "the deletion of a namespace is noticed when a write in it is rejected"
        yield Permission(
            "",
            "namespaces",
            ("get",),
            PermissionScope.WATCHED,
            "`finalize`, `patch` and orders of deletion",
            without=late,
        )
    if choices.metrics_auth:
        for group, resource in REVIEWS:
            why = "tokens hold in the whole cluster"
            yield Permission(group, resource, ("create",), PermissionScope.CLUSTER, "--metrics-auth", everywhere=why)


def _stored(
    group: str, resource: str, name: str, reason: str, without: str = "", verbs: tuple[str, ...] = NAMED
) -> Iterator[Permission]:
    """An object of the operator's own. A role cannot limit the creation of objects to a name."""
    yield Permission(group, resource, ("create",), PermissionScope.OPERATOR, reason, without=without)
    yield Permission(group, resource, verbs, PermissionScope.OPERATOR, reason, names=(name,), without=without)


# -- children that are roles or bindings -------------------------------------------------------------------------------
# Children that are roles or bindings, and the permissions that the operator needs to write them.
#
# Nobody may grant more than they have. A binding needs `bind` on its role, and a role needs all that it grants. A
# binding to a role that the same watch writes needs no `bind`: the operator has all that the role grants anyway.

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
