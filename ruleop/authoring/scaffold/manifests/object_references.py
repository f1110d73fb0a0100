"""References from one object to another, by name: they follow the names of the new objects.

Where a field refers to a kind is known by the names of fields, which the API and custom kinds use alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.trees import items_at, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.authoring.scaffold.trees import TreePath

_NAMES: Final = {
    "serviceName": "Service",
    "secretName": "Secret",
    "claimName": "PersistentVolumeClaim",
    "configMapName": "ConfigMap",
    "serviceAccountName": "ServiceAccount",
    "subdomain": "Service",
}
"""Fields whose value is a name."""
_HOLDERS: Final = {
    **dict.fromkeys(("configMap", "configMapRef", "configMapKeyRef"), "ConfigMap"),
    **dict.fromkeys(("secret", "secretRef", "secretKeyRef"), "Secret"),
    "service": "Service",
    "scaleTargetRef": "Deployment",
    "issuerRef": "Issuer",
}
"""Mappings with the field `name`."""
_LISTS: Final = {"imagePullSecrets": "Secret", "backendRefs": "Service", "services": "Service", "parentRefs": "Gateway"}
"""Lists of mappings with the field `name`."""
_ANNOTATIONS: Final = re.compile(r"nginx\.ingress\.kubernetes\.io/(auth-secret|auth-tls-secret|proxy-ssl-secret)")
_RESOURCES: Final = {
    "services": "Service",
    "secrets": "Secret",
    "configmaps": "ConfigMap",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "serviceaccounts": "ServiceAccount",
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
}
"""Resources of a Role whose objects `resourceNames` names."""


@dataclass(frozen=True, slots=True)
class Reference:
    path: TreePath
    kind: str
    name: str


def references(body: Mapping[str, Any]) -> Iterator[Reference]:
    """All fields that name another object."""
    for path, value in walk(body):
        if not path or not isinstance(value, dict):
            continue
        for key, member in value.items():
            if key in _NAMES and isinstance(member, str) and member:
                yield Reference((*path, key), _NAMES[key], member)
            elif path[-1] == "annotations" and _ANNOTATIONS.fullmatch(str(key)) and isinstance(member, str):
                yield Reference((*path, key), "Secret", member)
        yield from _of_rule(path, value)
        name, kind = value.get("name"), value.get("kind")
        if not isinstance(name, str):
            continue
        if isinstance(kind, str):
            yield Reference((*path, "name"), kind, name)
        elif path[-1] in _HOLDERS:
            yield Reference((*path, "name"), _HOLDERS[str(path[-1])], name)
        elif len(path) > 1 and path[-2] in _LISTS:
            yield Reference((*path, "name"), _LISTS[str(path[-2])], name)


def _of_rule(path: TreePath, rule: Mapping[str, Any]) -> Iterator[Reference]:
    """The objects that a rule of a Role names, where all its resources are of one kind that is known."""
    kinds = {_RESOURCES.get(str(each).partition("/")[0], "") for each in items_at(rule, ("resources",))}
    if len(kinds) == 1 and "" not in kinds:
        for index, name in enumerate(items_at(rule, ("resourceNames",))):
            if isinstance(name, str):
                yield Reference((*path, "resourceNames", index), next(iter(kinds)), name)


@dataclass(slots=True)
class Links:
    """The dependencies between children. An expression that would close a circle is refused."""

    _reads: dict[str, set[str]] = field(default_factory=dict)

    def add(self, reader: str, read: str) -> bool:
        """Whether the child may read the other one; then it does."""
        if reader == read or self._reaches(read, reader):
            return False
        self._reads.setdefault(reader, set()).add(read)
        return True

    def _reaches(self, start: str, goal: str) -> bool:
        open_ids, seen = [start], set()
        while open_ids:
            current = open_ids.pop()
            if current == goal:
                return True
            if current not in seen:
                seen.add(current)
                open_ids += self._reads.get(current, ())
        return False
