"""The roles of a manifest: what they grant, and where.

The roles are taken together, with any subject. A ClusterRole that is bound by RoleBindings only holds in their
namespaces; without any binding it holds everywhere. An entry with resourceNames grants access to these objects only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.permissions import ANY
from ruleop.core.planning.model.rbac_children import BINDINGS, ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.core.kinds import Object

ANYWHERE: Final = None
UNKNOWN: Final = ""
"""The namespace of a Role that does not name one: `kubectl apply -n` decides it."""


@dataclass(frozen=True, slots=True)
class Entry:
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
    entries: tuple[Entry, ...]
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

    def _covers(self, asked: Entry, namespace: str | None) -> bool:
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


def _entries(rules: Iterable[dict[str, Any]], namespaces: frozenset[str] | None) -> Iterator[Entry]:
    for rule in rules:
        groups, resources, verbs = (_words(rule, key) for key in ("apiGroups", "resources", "verbs"))
        names, urls = _words(rule, "resourceNames"), _words(rule, "nonResourceURLs")
        yield Entry(groups, resources, verbs, names, urls, namespaces)


def _words(rule: dict[str, Any], key: str) -> frozenset[str]:
    found = rule.get(key)
    return frozenset(str(each) for each in found) if isinstance(found, list) else frozenset()
