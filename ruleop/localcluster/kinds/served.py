"""One version of a resource, as it is served.

Clients prefer the versions of a group in this order: v2 to v1, v1 to v1beta2, v1beta2 to v1alpha1, all these to other
names."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.builtin_types import ServedResource
from ruleop.kubernetes.crd import default, prune
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.kubernetes.validation import ACCEPTING, Validator
from ruleop.localcluster.object_store import Resource, Stored, stored
from ruleop.localcluster.tables import PLAIN as PLAIN_PRINTER
from ruleop.localcluster.tables import Printer
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kubernetes.kinds import Kind, Object
    from ruleop.kubernetes.schema import Schema
    from ruleop.localcluster.object_store import Store


_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def priority(version: str) -> tuple[int, int, int, str]:
    """A key by which versions are sorted, the preferred one first."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return len(_STABILITY), 0, 0, version
    major, stability, minor = found.groups()
    return _STABILITY[stability], -int(major), -int(minor or 0), version


VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""Those of custom resources, in the order of discovery."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a kind keeps what its scale subresource shows."""

    replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    selector: str = "spec.selector.matchLabels"  # labels, of a custom resource a text


NO_SCALE: Final = Scale("", "", "")


def _same(obj: dict[str, Any]) -> dict[str, Any]:
    return obj


@dataclass(frozen=True, slots=True)
class Strategy:
    """Steps of the server for the objects of one kind, beyond those for all kinds and beyond validation."""

    create: Callable[[dict[str, Any]], dict[str, Any]] = _same  # the object as it is stored first
    update: Callable[[dict[str, Any], Object], dict[str, Any]] | None = None  # (new, old): as it is stored next
    admit: Callable[[dict[str, Any], Store], dict[str, Any]] | None = None  # what follows from other objects
    allocates_on_update: bool = False  # `admit` is called for updates as well
    has_generation: bool = False
    counted: tuple[str, ...] = ("spec",)  # the fields of which a change gets a new generation
    counted_metadata: tuple[str, ...] = ()  # and those of the metadata
    grace: Callable[[Object], int] | None = None  # seconds from a deletion until the object is gone
    finalizers: tuple[str, ...] = ()  # that the server adds at deletion
    creates_on_update: bool = False  # an update of an object that does not exist creates it
    checks_metadata_last: bool = False  # of a new object, metadata are checked only if nothing else is wrong
    orphans: bool = False  # a deletion that does not say otherwise leaves the dependents
    unconditional_update: bool = True  # an update need not name the resourceVersion


PLAIN: Final = Strategy()


@dataclass(frozen=True, slots=True)
class Alias:
    """A resource whose objects are stored as those of another one."""

    resource: Resource
    to_stored: Callable[[Object], dict[str, Any]]
    from_stored: Callable[[Object], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ServedKind(ServedResource):
    scale: Scale = NO_SCALE
    shape: Shape = UNKNOWN
    printer: Printer = PLAIN_PRINTER
    strategy: Strategy = PLAIN
    validator: Validator = ACCEPTING
    list_kind: str = ""
    storage_version: str = ""
    stored_as: Alias | None = None
    # of custom resources
    is_custom: bool = False
    ends: bool = False  # its definition is being deleted
    schema: Schema = field(default_factory=dict)
    storage_schema: Schema = field(default_factory=dict)  # of the version in which objects are stored
    shapes: tuple[tuple[str, Shape], ...] = ()  # of the other versions, by apiVersion
    deprecation: str = ""  # the warning of each response
    selectable: tuple[str, ...] = ()  # fields for selectors
    resource: Resource = field(init=False)

    def __post_init__(self) -> None:
        own = Resource(self.kind.group, self.plural)
        object.__setattr__(self, "resource", self.stored_as.resource if self.stored_as is not None else own)

    def seen(self, found: Stored) -> Stored:
        """A stored object as this resource shows it: a custom resource without the fields that its version does not
        declare."""
        if found.obj["apiVersion"] == self.kind.api_version:
            return found
        if self.stored_as is not None:
            return stored(self.stored_as.from_stored(found.obj), found.version)
        return stored(prune({**found.obj, "apiVersion": self.kind.api_version}, self.schema), found.version)

    def kept(self, obj: dict[str, Any]) -> dict[str, Any]:
        """An object of this resource as it is stored: a custom resource with the fields and defaults of the version in
        which it is stored."""
        if self.stored_as is not None:
            return self.stored_as.to_stored(obj)
        if self.kind.version == self.storage_version:
            return obj
        in_storage = {**obj, "apiVersion": f"{self.kind.group}/{self.storage_version}"}
        return default(prune(in_storage, self.storage_schema), self.storage_schema)


def open_kind(kind: Kind, *, namespaced: bool = True) -> ServedKind:
    """A custom kind whose objects may have any fields."""
    return ServedKind(
        kind=kind,
        plural=f"{kind.kind.lower()}s",
        singular=kind.kind.lower(),
        namespaced=namespaced,
        verbs=VERBS,
        list_kind=f"{kind.kind}List",
        storage_version=kind.version,
        status_subresource=True,
        is_custom=True,
        schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    )
