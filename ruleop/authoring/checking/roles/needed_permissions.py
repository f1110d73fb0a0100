"""The permissions that an operator with these rules needs: exact verbs, resources and names, each with its reason and
its place in the rules. `check --rbac` compares them with roles, and `generate rbac` makes roles of them; what a role or
binding of a child needs besides is in `granting`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from ruleop.kubernetes.builtin.table import builtin_kinds, builtin_resource
from ruleop.kubernetes.names import DEFAULT_OPERATOR, lease_name
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
from ruleop.planning.model.rule_permissions import Need, needs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import PolicyRule, Project, Rule
    from ruleop.language.templates import StringTemplate
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


@dataclass(frozen=True, slots=True)
class RoleSettings:
    """The flags of `run` that change what is needed."""

    name: str = DEFAULT_OPERATOR
    namespaces: tuple[str, ...] = ()
    leader_elect: bool = False
    metrics_auth: bool = False
    selector: str = ""
    shards: bool = False


def needed_permissions(project: Project, kinds: Kinds, settings: RoleSettings) -> Iterator[Permission]:
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
    yield from _of_operator(project.rules, kinds, settings)


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


def _of_operator(rules: Sequence[Rule], kinds: Kinds, settings: RoleSettings) -> Iterator[Permission]:
    name = settings.name
    yield from _stored("", "configmaps", f"{name}-inventory", "the inventory")
    yield from _stored("", "configmaps", f"{name}-revisions", "revisions of the rules", "they are not kept")
    if any(rule.rollout is not None for rule in rules):
        yield from _stored("", "configmaps", f"{name}-rollouts", "`rollout`", verbs=(*NAMED, *FOLLOW))
    if any(rule.needs_key for rule in rules):
        yield from _stored("", "secrets", f"{name}-owner-key", "the key that signs owner annotations")
    if settings.shards:
        # How many Leases there are changes with the number of pods.
        verbs = ordered(("list", *STORED))
        yield Permission("coordination.k8s.io", "leases", verbs, PermissionScope.OPERATOR, "the Leases of the shards")
        yield Permission("apps", "statefulsets", READ, PermissionScope.OPERATOR, "the number of shards", names=(name,))
    elif settings.leader_elect:
        lease = lease_name(name, selector=settings.selector)
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
    if not settings.namespaces:
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
    if settings.metrics_auth:
        for group, resource in REVIEWS:
            why = "tokens hold in the whole cluster"
            yield Permission(group, resource, ("create",), PermissionScope.CLUSTER, "--metrics-auth", everywhere=why)


def _stored(
    group: str, resource: str, name: str, reason: str, without: str = "", verbs: tuple[str, ...] = NAMED
) -> Iterator[Permission]:
    """An object of the operator's own. A role cannot limit the creation of objects to a name."""
    yield Permission(group, resource, ("create",), PermissionScope.OPERATOR, reason, without=without)
    yield Permission(group, resource, verbs, PermissionScope.OPERATOR, reason, names=(name,), without=without)
