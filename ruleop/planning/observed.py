"""What a pass observes of the cluster. With the rule, the custom resource and its history it is all that a plan depends
on: given the same, planning gives the same plan, byte for byte; recorded, it replays the pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from ruleop.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.names import RESERVED_PREFIX
from ruleop.planning.marks import PART_OF
from ruleop.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ruleop.rules import Observe

DEFAULT_FINALIZER = f"{RESERVED_PREFIX}ruleop"


class Served(Enum):
    """What the cluster says about a kind that a rule needs."""

    SYNCED = "synced"  # its objects are known
    PENDING = "pending"  # not yet: they are being listed
    UNSERVED = "unserved"  # the cluster has no such kind (yet)
    FORBIDDEN = "forbidden"  # ruleop may not read it
    UNWATCHED = "unwatched"  # only of one namespace: ruleop was told to look at others


@dataclass(frozen=True, slots=True)
class KindInfo:
    kind: Kind
    namespaced: bool = True
    state: Served = Served.SYNCED  # of children of this kind, as seen from the CR's namespace
    shape: Shape = UNKNOWN
    status_schema: Mapping[str, Any] | None = (
        None  # of a custom resource: openAPIV3Schema, to know what the server would drop
    )
    status_subresource: bool = True
    known: bool = (
        True  # False: neither built in nor in crds/, so only the cluster can tell (offline it is taken to be served)
    )
    places: Mapping[str, Served] | None = None  # in each namespace that ruleop looks at; None: it looks at all
    served: bool = True  # the cluster has the kind, whatever is known of its objects
    resource: str = ""  # `deployments.apps`, where it is known

    def state_in(self, namespace: str) -> Served:
        """For an object of this namespace, which may be another than the CR's."""
        if self.places is None or not self.namespaced:
            return self.state
        return self.places.get(namespace, Served.UNWATCHED)


class Kinds(Protocol):
    """What the cluster serves."""

    def info(self, kind: Kind) -> KindInfo: ...
    def state_of(self, observe: Observe) -> Served:
        """Whether it is known what an `observe` looks at, as seen from the CR's namespace."""
        ...


class Objects(Protocol):
    """What lives in the cluster, as far as one CR's pass may see it."""

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        """In this version of its kind, or in any; as a whole, or its metadata will do."""
        ...

    def children(self, part_of: str) -> Iterable[Object]:
        """All objects that carry this CR's label, in each version that rules write."""
        ...

    def select(
        self, kind: GroupKind, namespace: str | None, *, version: str = "", partial: bool = False
    ) -> Sequence[Object]:
        """All objects of a kind, of one namespace or of all; sorted by namespace and name."""
        ...


class FixedObjects:
    """Objects from a list: offline commands, tests, and recorded passes."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._by_key: dict[ObjectKey, Object] = {ObjectKey.of(obj): obj for obj in objects}

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:  # noqa: ARG002 - they are as they are
        return self._by_key.get(key)

    def children(self, part_of: str) -> Iterable[Object]:
        for _, obj in sorted(self._by_key.items()):
            if ((obj.get("metadata") or {}).get("labels") or {}).get(PART_OF) == part_of:
                yield obj

    def select(  # they are as they are
        self,
        kind: GroupKind,
        namespace: str | None,
        *,
        version: str = "",  # noqa: ARG002
        partial: bool = False,  # noqa: ARG002
    ) -> Sequence[Object]:
        return [
            obj
            for key, obj in sorted(self._by_key.items())
            if key.group_kind == kind and namespace in {None, key.namespace}
        ]

    def __iter__(self) -> Any:
        return iter(self._by_key.values())


@dataclass(frozen=True, slots=True)
class Observed:
    """The cluster as one pass sees it, with the time and the operator's own name."""

    objects: Objects
    kinds: Kinds
    now: str = "1970-01-01T00:00:00Z"  # RFC 3339, as Kubernetes writes it
    clock: float = 0.0  # seconds that nobody sets back; times of the history are compared with it
    seed: bytes = b""  # of random_password
    finalizer: str = DEFAULT_FINALIZER
    retired: Collection[str] = ()  # types of conditions that the rules had once
    held_until: str = (
        ""  # RFC 3339, after a change of the rules: nothing is deleted or released before; "" is not held back
    )
    namespace_terminating: bool = False
