"""The permissions that an operator with these rules needs: exact verbs, resources and names, each with its reason and
its place in the rules. `check --rbac` compares them with roles; the messages of forbidden requests name the same verbs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ruleop.permissions import EVENT_VERBS, NAMED, READ, REVIEWS, ordered
from ruleop.planning.model.permissions import needs_key, verbs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.errors import Site
    from ruleop.kinds import Kind
    from ruleop.planning.model.observed import Kinds
    from ruleop.rules import Rule


class Scope(Enum):
    """Where a permission is needed."""

    CLUSTER = "cluster"  # a ClusterRole and a ClusterRoleBinding
    WATCHED = "watched"  # in each watched namespace; without --namespaces, in all of them
    OPERATOR = "operator"  # in the operator's own namespace


@dataclass(frozen=True, slots=True)
class Permission:
    """One rule of a role. Without a resource, the plural of the kind is unknown."""

    group: str
    resource: str  # the plural; of a subresource "sites/status"
    verbs: tuple[str, ...]
    scope: Scope
    reason: str
    kind: str = ""
    site: Site | None = None
    names: tuple[str, ...] = ()  # resourceNames; empty for objects of any name
    without: str = ""  # what happens without it, if the operator runs nevertheless

    @property
    def title(self) -> str:
        plural, slash, subresource = self.resource.partition("/")
        return f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags of `run` that change what is needed."""

    name: str = "ruleop"
    namespaces: tuple[str, ...] = ()
    leader_elect: bool = False
    metrics_auth: bool = False


def needed_permissions(rules: Sequence[Rule], kinds: Kinds, settings: Settings) -> Iterator[Permission]:
    """In the order of the rules, then those of the operator itself. Several may be for one resource."""
    for rule in rules:
        yield from _of_rule(rule, rules, kinds)
    yield from _of_operator(rules, settings)


def _of_rule(rule: Rule, rules: Sequence[Rule], kinds: Kinds) -> Iterator[Permission]:
    yield _on_kind(rule.kind, rules, kinds, "the custom resources", rule.site)
    info = kinds.info(rule.kind)
    if rule.manage_status and info.status_subresource and info.resource:
        plural, _, group = info.resource.partition(".")
        scope = Scope.WATCHED if info.namespaced else Scope.CLUSTER
        yield Permission(group, f"{plural}/status", ("patch",), scope, "the status", rule.kind.kind, rule.site)
    for child in rule.every_child():
        for kind in sorted(child.kinds):
            yield _on_kind(kind, rules, kinds, f"the child {child.id}", child.site)
    for id_, observe in rule.observe.items():
        yield _on_kind(observe.kind, rules, kinds, f"the observed {id_}", observe.site)


def _on_kind(kind: Kind, rules: Sequence[Rule], kinds: Kinds, reason: str, site: Site) -> Permission:
    info = kinds.info(kind)
    plural, _, group = info.resource.partition(".")
    needed = ordered(verbs(rules, kind.versionless))
    scope = Scope.WATCHED if info.namespaced else Scope.CLUSTER
    return Permission(group if plural else kind.group, plural, needed, scope, reason, kind.kind, site)


def _of_operator(rules: Sequence[Rule], settings: Settings) -> Iterator[Permission]:
    name = settings.name
    yield from _stored("", "configmaps", f"{name}-inventory", "the inventory")
    if any(map(needs_key, rules)):
        yield from _stored("", "secrets", f"{name}-owner-key", "the key that signs owner annotations")
    if settings.leader_elect:
        yield from _stored("coordination.k8s.io", "leases", name, "leader election")
    yield Permission(
        "events.k8s.io",
        "events",
        EVENT_VERBS,
        Scope.WATCHED,
        "Events on custom resources",
        without="no Events are written",
    )
    if not settings.namespaces:
        late = "changed CRDs are noticed once a minute, by discovery"
        yield Permission(
            "apiextensions.k8s.io", "customresourcedefinitions", READ, Scope.CLUSTER, "changes of CRDs", without=late
        )
    if any(rule.finalize for rule in rules):
        late = "the deletion of a namespace is noticed when a write in it is rejected"
        yield Permission("", "namespaces", ("get",), Scope.WATCHED, "`finalize`", without=late)
    if settings.metrics_auth:
        for group, resource in REVIEWS:
            yield Permission(group, resource, ("create",), Scope.CLUSTER, "--metrics-auth")


def _stored(group: str, resource: str, name: str, reason: str) -> Iterator[Permission]:
    """An object of the operator's own. A role cannot limit the creation of objects to a name."""
    yield Permission(group, resource, ("create",), Scope.OPERATOR, reason)
    yield Permission(group, resource, NAMED, Scope.OPERATOR, reason, names=(name,))
