"""Compares the verbs that the rules need with the roles of a manifest.

The roles are taken together, with any subject and in any namespace. An entry with resourceNames does not
count: the operator lists objects, and does not know their names before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.offline.cluster import OfflineKinds
from ruleop.permissions import ORDER
from ruleop.planning.model.permissions import verbs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.errors import Site
    from ruleop.kinds import Kind, Object
    from ruleop.rules import Findings, Loaded, Watch

_ROLES: Final = frozenset({"Role", "ClusterRole"})
_ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Grants:
    """The entries of roles."""

    files: str  # their names, for messages
    entries: tuple[tuple[frozenset[str], frozenset[str], frozenset[str]], ...]  # API groups, resources, verbs

    @classmethod
    def of(cls, files: str, objects: Iterable[Object]) -> Grants:
        return cls(files, tuple(entry for obj in objects for entry in _entries(obj)))

    def verbs(self, group: str, resource: str) -> frozenset[str]:
        """The verbs on a resource; that of a subresource has a slash."""
        names = {resource, _ANY, f"*/{resource.partition('/')[2]}" if "/" in resource else _ANY}
        found = [granted for groups, resources, granted in self.entries if {group, _ANY} & groups and names & resources]
        return frozenset().union(*found)

    def mentions(self, group: str) -> bool:
        return any({group, _ANY} & groups for groups, _, _ in self.entries)


def _entries(obj: Object) -> Iterator[tuple[frozenset[str], frozenset[str], frozenset[str]]]:
    if obj.get("kind") not in _ROLES or not isinstance(obj.get("rules"), list):
        return
    for rule in obj["rules"]:
        if isinstance(rule, dict) and not rule.get("resourceNames"):
            yield _words(rule, "apiGroups"), _words(rule, "resources"), _words(rule, "verbs")


def _words(rule: dict[str, Any], key: str) -> frozenset[str]:
    found = rule.get(key)
    return frozenset(str(each) for each in found) if isinstance(found, list) else frozenset()


def check_permissions(loaded: Loaded, grants: Grants, findings: Findings) -> None:
    kinds = OfflineKinds(loaded.project)
    for watch in loaded.watches:
        for kind, site in _used(watch):
            needed = verbs(loaded.project.rules, kind.versionless)
            title = kinds.info(kind).resource
            resource, _, group = title.partition(".")
            if title:
                _report(grants, group, resource, needed, site, findings)
            elif not grants.mentions(kind.group):
                message = f"{grants.files} grants nothing in the API group {kind.group}, and {kind.kind} needs "
                findings.mistake("missing-permission", message + _listed(needed), site)
        info = kinds.info(watch.rule.kind)
        resource, _, group = info.resource.partition(".")
        if watch.rule.manage_status and info.status_subresource and resource:
            _report(grants, group, f"{resource}/status", frozenset({"patch"}), watch.rule.site, findings)


def _used(watch: Watch) -> Iterator[tuple[Kind, Site]]:
    """The kinds that a rule watches, makes and observes, each with its place."""
    yield watch.rule.kind, watch.rule.site
    for child in watch.rule.every_child():
        for kind in sorted(child.kinds):
            yield kind, child.site
    for observe in watch.rule.observe.values():
        yield observe.kind, observe.site


def _report(grants: Grants, group: str, resource: str, needed: frozenset[str], site: Site, findings: Findings) -> None:
    granted = grants.verbs(group, resource)
    if _ANY in granted or needed <= granted:
        return
    plural, slash, subresource = resource.partition("/")
    title = f"{plural}.{group}{slash}{subresource}" if group else resource
    rest = f"; it needs {_listed(needed)}" if granted else ""
    message = f"{grants.files} does not grant {_listed(needed - granted)} on {title}{rest}"
    findings.mistake("missing-permission", message, site)


def _listed(needed: Iterable[str]) -> str:
    return ", ".join(sorted(needed, key=ORDER.index))
