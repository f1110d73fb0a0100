"""Identities of the Kubernetes API: kinds and object keys. Every package uses them; they import no other package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

JSON: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, a list or a dict with string keys. Treated as frozen: never mutate it."""

Object: TypeAlias = Mapping[str, Any]
"""A Kubernetes object as plain JSON."""


SERVER_METADATA: Final = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)
"""The fields of metadata that only the API server sets."""
CHANGED_BY_WRITES: Final = frozenset({"generation", "managedFields", "resourceVersion"})
"""Those that may be others after any write, also if what was written says the same."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl stores the whole object."""


_new: Final = tuple.__new__
"""Makes a NamedTuple in half the time of its constructor: a pass makes about sixty."""


class Kind(NamedTuple):
    """A group, version and kind. The core group is the empty string."""

    group: str
    version: str
    kind: str

    @classmethod
    def parse(cls, api_version: str, kind: str) -> Kind:
        return _KINDS[api_version, kind]

    @classmethod
    def of(cls, obj: Object) -> Kind:
        return _KINDS[str(obj.get("apiVersion", "")), str(obj.get("kind", ""))]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def versionless(self) -> GroupKind:
        return _new(GroupKind, (self.group, self.kind))

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


MAX_KEPT: Final = 4096
MAX_KEPT_LENGTH: Final = 512
"""Characters of a kind that is kept. A template can render any text as the kind of an object."""


class _Kinds(dict[tuple[str, str], Kind]):
    """The kinds by apiVersion and kind. Those of a cluster are few, and asked for many times in each pass."""

    def __missing__(self, names: tuple[str, str]) -> Kind:
        api_version, name = names
        group, _, version = api_version.rpartition("/")
        kind = Kind(group, version, name)
        if len(api_version) + len(name) <= MAX_KEPT_LENGTH:
            if len(self) >= MAX_KEPT:
                self.clear()
            self[names] = kind
        return kind


_KINDS: Final = _Kinds()
NAMESPACE_KIND: Final = Kind("", "v1", "Namespace")


class GroupKind(NamedTuple):
    """A kind without its version: the versions of a kind show the same objects."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class ObjectKey(NamedTuple):
    """The identity of an object: group, kind, namespace and name, without a version.

    The namespace of a cluster-scoped object is ''.
    """

    group: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Object) -> ObjectKey:
        group, _, kind = _KINDS[str(obj.get("apiVersion", "")), str(obj.get("kind", ""))]
        metadata = obj.get("metadata") or {}
        return _new(cls, (group, kind, metadata.get("namespace") or "", metadata.get("name") or ""))

    @property
    def group_kind(self) -> GroupKind:
        return _new(GroupKind, (self.group, self.kind))

    def title(self, namespace: str) -> str:
        """The kind and the name, with the namespace only if it is not this one."""
        return f"{self.kind}/{self.name}" if self.namespace == namespace else str(self)

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"


def owners_of(metadata: Object) -> frozenset[str]:
    """The uids of the owners of an object."""
    references = metadata.get("ownerReferences")
    found = (each.get("uid") for each in references or () if isinstance(each, Mapping)) if references else ()
    return frozenset(uid for uid in found if isinstance(uid, str) and uid)


def is_being_deleted(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def is_true(obj: Object, condition: str) -> bool:
    """Whether the status of an object has a condition that is true."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == condition and each.get("status") == "True" for each in conditions)


def parse_version(text: Any) -> int:
    """A resourceVersion as a number; 0, which is older than everything, if it is not one."""
    return int(text) if isinstance(text, str) and len(text) < 40 and text.isdecimal() else 0


def version_of(obj: Object | None) -> str:
    """The resourceVersion of an object; empty for none."""
    return (obj["metadata"].get("resourceVersion") or "") if obj is not None else ""
