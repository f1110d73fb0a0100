"""The permissions that a rule needs on the kinds that it names, and the message when one is missing. The message is the
same for a forbidden request and for a kind that cannot be listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from ruleop.errors import RenderError
from ruleop.kubernetes.permissions import (
    ACCOUNT_IN_WORDS,
    FOLLOW,
    IMPERSONATE,
    READ,
    ServiceAccount,
    listed,
    missing,
    ordered,
    place,
)
from ruleop.language.templates import view
from ruleop.messages import shortened
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import GroupKind, Object
    from ruleop.language.rules import Child, Rule
    from ruleop.planning.model.actions import Failed
    from ruleop.planning.model.observed import KindInfo


# -- rbac children -----------------------------------------------------------------------------------------------------
#
# The permissions that the API server asks of a client that writes roles and bindings.
#
# Nobody may grant more than they have: who writes a binding needs `bind` on the role, or all that the role grants; who
# writes a role needs all that it grants, or `escalate`.


RBAC: Final = "rbac.authorization.k8s.io"
BINDINGS: Final = frozenset({"RoleBinding", "ClusterRoleBinding"})
ROLES: Final = frozenset({"Role", "ClusterRole"})
_PLURALS: Final = {"Role": "roles", "ClusterRole": "clusterroles"}


@dataclass(frozen=True, slots=True)
class Granting:
    """Of one role or binding."""

    verb: str  # bind or escalate
    role: str  # Role or ClusterRole
    name: str  # of the role; empty if it is unknown
    aggregated: bool = False  # a ClusterRole whose rules are those of others

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Granting | None:
        """None for an object that grants nothing."""
        kind = obj.get("kind")
        if kind in BINDINGS:
            role = obj.get("roleRef")
            role = role if isinstance(role, dict) else {}
            referred = role.get("kind")
            return cls("bind", referred, str(role.get("name") or "")) if referred in ROLES else None
        if kind in ROLES:
            name = (obj.get("metadata") or {}).get("name")
            return cls("escalate", str(kind), str(name or ""), bool(obj.get("aggregationRule")))
        return None

    @property
    def resource(self) -> str:
        """The plural of the role's kind."""
        return _PLURALS[self.role]

    def remedy(self, account: str = "") -> str:
        """A name is quoted if it is known. `account`: the ServiceAccount that writes it, if not the operator."""
        named = f" (resourceNames: [{self.name}])" if self.name else ""
        others = "every permission" if self.aggregated else "all permissions of that role"
        whom = f"ServiceAccount {account}" if account else "operator"
        return f"grant the {whom} `{self.verb}` on {self.resource}.{RBAC}{named}, or {others}"


# -- write account -----------------------------------------------------------------------------------------------------
#
# The ServiceAccount by whose permissions the children of a custom resource are written: `writeAs`.
#
# Its author may write any value into a custom resource. So a computed account is one of the custom resource's own
# namespace; any other has to be literal in the rule.


def account_of(rule: Rule, resource: Object) -> ServiceAccount | None:
    """None: children are written as the operator. Raises RenderError."""
    template = rule.reach.write_as
    if template is None:
        return None
    given = {name: value for name, value in resource.items() if name != "status"}
    names = {"cr": view("cr", given), "vars": view("vars", dict(rule.vars))}
    names |= {name: view(name, resource.get(name) or {}) for name in ("metadata", "spec")}
    text = template.string(names)
    found = ServiceAccount.parse(text)
    if found is None:
        message = f"{shortened(text)!r} is not {ACCOUNT_IN_WORDS}"
        raise RenderError(message, template.site, expression=template.quotation)
    namespace = resource["metadata"].get("namespace") or ""
    if template.constant is None and found.namespace != namespace:
        of = f"of its own namespace {namespace}" if namespace else "that is literal in the rule"
        message = f"{found} is not permitted: the custom resource can name only a ServiceAccount {of}"
        raise RenderError(message, template.site, expression=template.quotation)
    return found


# -- rule permissions --------------------------------------------------------------------------------------------------


LEFT = (*READ, "patch", "delete")  # of a kind that the rules no longer use: existing objects are deleted or released


@dataclass(frozen=True, slots=True)
class Need:
    """Verbs on a kind, for one purpose."""

    verbs: tuple[str, ...]
    reason: str
    site: Site
    name: str = ""  # of the only object; empty for all
    namespace: str = ""  # the only one; empty for that of the CR, and others with `reach: cluster`


class Serving(Protocol):
    """The properties of a kind as the cluster serves it."""

    @property
    def namespaced(self) -> bool: ...
    @property
    def status_subresource(self) -> bool:
        """Without one, the status is written through the CR itself."""
        ...


def needs(rule: Rule, kind: GroupKind, served: Serving) -> Iterator[Need]:
    """The verbs that a rule needs on objects of a kind: as CRs, children and observed resources."""
    owner = rule.kind.kind
    if rule.kind.versionless == kind:
        has_finalizer = _needs_finalizer(rule, namespaced=served.namespaced)
        reads = READ if rule.status.managed or has_finalizer else FOLLOW
        yield Need(reads, f"the custom resources {owner}", rule.site)
        if has_finalizer:
            yield Need(("patch",), f"the finalizer of {owner}", rule.site)
        if rule.status.managed and not served.status_subresource:
            yield Need(("patch",), f"the status of {owner}", rule.site)
        if rule.expire is not None:
            yield Need(("delete",), f"the end of {owner} by `expire`", rule.expire.site)
    for child in rule.owned_children:
        if any(each.versionless == kind for each in child.kinds):
            written = READ if rule.reach.write_as is not None else _written(child)
            yield Need(written, f"the child {child.id} of {owner}", child.site)
    for observe in rule.read_objects:
        if observe.kind.versionless == kind:
            needed: tuple[str, ...] = FOLLOW
            if observe.patched:
                needed = READ if rule.reach.write_as is not None else (*READ, "patch")
            what = "patched" if observe.patched else "observed"
            name = observe.name.constant if observe.name is not None else None
            where = observe.namespace.constant if observe.namespace is not None else None
            yield Need(needed, f"the {what} {observe.id} of {owner}", observe.site, name or "", where or "")


def _written(child: Child) -> tuple[str, ...]:
    """Objects with other names may be deleted when the rules are edited, even if nothing else deletes them."""
    found = {*READ, "create", "patch"}
    always_kept = child.deletion.policy is not None and child.deletion.policy.constant == "orphan"
    on_immutable = child.apply.on_immutable
    if not always_kept or (on_immutable is not None and on_immutable.constant != "fail"):
        found.add("delete")
    return ordered(found)


def _needs_finalizer(rule: Rule, *, namespaced: bool) -> bool:
    """Of a cluster-scoped CR the garbage collector deletes children everywhere. A rule that takes over Helm releases
    removes the finalizer of the Helm operator."""
    far = namespaced and rule.reach.cluster
    return rule.deletes_children or rule.adopts_helm_releases or bool(rule.patches) or far


def verbs(rules: Iterable[Rule], kind: GroupKind, served: Serving) -> frozenset[str]:
    """All verbs that the rules need for objects of a kind."""
    return frozenset(verb for rule in rules for need in needs(rule, kind, served) for verb in need.verbs)


def account_verbs(rule: Rule, kind: GroupKind) -> frozenset[str]:
    """The verbs that the account of `writeAs` needs for objects of a kind: it writes, and the operator reads."""
    written = (
        _written(child) for child in rule.owned_children if any(each.versionless == kind for each in child.kinds)
    )
    patched = any(each.target.kind.versionless == kind for each in rule.patches)
    found = {verb for verbs in written for verb in verbs if verb not in READ}
    return frozenset(found | {"patch"} if patched else found)


def denied_write(rule: Rule, info: KindInfo, namespace: str, failed: Failed) -> str:
    """A message for a write that no Role grants: to the operator, or to the account of `writeAs`."""
    account = ServiceAccount.parse(failed.account)
    if account is None:
        return missing_permission(rule, info, namespace, failed.verb)
    if failed.verb == IMPERSONATE:
        resource = f"serviceaccounts (resourceNames: [{account.name}])"
        return f"cannot write as the ServiceAccount {account}: the operator needs {IMPERSONATE} on {resource}" + place(
            account.namespace
        )
    needed = account_verbs(rule, info.kind.versionless) or set(LEFT) - set(READ)
    return (
        f"the ServiceAccount {account} cannot {failed.verb} {info.resource}"
        f"{place(namespace, namespaced=info.namespaced)}: "
        f"grant it {listed({failed.verb, *needed})} by a Role and a RoleBinding"
    )


def missing_permission(rule: Rule, info: KindInfo, namespace: str, verb: str) -> str:
    """A message for a forbidden request for an object of this kind and namespace."""
    needed = verbs([rule], info.kind.versionless, info) or LEFT
    return missing(verb, info.resource, place(namespace, namespaced=info.namespaced), needed)


def missing_list_permission(rule: Rule, info: KindInfo, namespace: str) -> str:
    """A message for a kind that cannot be listed, in this namespace if ruleop watches single namespaces, else in
    all."""
    return missing_permission(rule, info, namespace if info.places is not None else "", "list")
