"""The part of the cluster that a pass observes.

A plan depends only on this, the rule, the custom resource and its history. The same input gives the same plan, byte for
byte, so a recorded pass can be replayed."""

from __future__ import annotations

import datetime as dt
from dataclasses import field
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey, owners_of
from ruleop.kubernetes.labels import Matches, any_labels, labels_of
from ruleop.kubernetes.names import DEFAULT_OPERATOR, RESERVED_PREFIX
from ruleop.kubernetes.schema import FORMATS, UNKNOWN, Shape
from ruleop.language.templates.values.cost import OBJECT_BYTES, USUAL_SIZE, object_bytes
from ruleop.planning.model.managers import managers_on
from ruleop.planning.model.marks import PART_OF
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Observe
    from ruleop.planning.model.conditions import Condition
    from ruleop.planning.model.marks import Proofs

LAST: Final = 253_402_300_800.0  # the year 10000: what changes later never changes


def parse_time(text: str) -> float:
    """The seconds since 1970 of a time in RFC 3339. Raises ValueError."""
    if not FORMATS["datetime"](text):
        raise ValueError(text)
    return dt.datetime.fromisoformat(text.upper()).timestamp()


DEFAULT_FINALIZER = f"{RESERVED_PREFIX}{DEFAULT_OPERATOR}"


class Served(Enum):
    """Whether objects of a kind can be read."""

    SYNCED = "synced"  # its objects are known
    PENDING = "pending"  # its objects are being listed
    UNSERVED = "unserved"  # the cluster has no such kind (yet)
    FORBIDDEN = "forbidden"  # ruleop may not read it
    UNWATCHED = "unwatched"  # of a namespace: it is not among those that ruleop watches


@dataclass(frozen=True, slots=True)
class KindInfo:
    kind: Kind
    namespaced: bool = True
    state: Served = Served.SYNCED  # of children of this kind, as seen from the CR's namespace
    shape: Shape = UNKNOWN
    status_schema: Mapping[str, Any] | None = (
        None  # of a custom resource: openAPIV3Schema, which decides what is pruned
    )
    status_subresource: bool = True
    known: bool = True  # False: neither built in nor in crds/; offline commands assume that the cluster serves it
    places: Mapping[str, Served] | None = None  # by watched namespace; None: ruleop watches all namespaces
    served: bool = True  # the cluster has the kind, even if its objects cannot be read
    resource: str = ""  # `deployments.apps`, where it is known

    def state_in(self, namespace: str) -> Served:
        """The state for objects of this namespace, which may differ from the CR's."""
        if self.places is None or not self.namespaced:
            return self.state
        return self.places.get(namespace, Served.UNWATCHED)


class Kinds(Protocol):
    """The kinds that the cluster serves."""

    def info(self, kind: Kind) -> KindInfo: ...
    def state_of(self, observe: Observe) -> Served:
        """Whether the objects of an `observe` can be read, from the CR's namespace."""
        ...


class Query(NamedTuple):
    """The objects that are asked for."""

    kind: GroupKind
    namespace: str | None = None  # None: all
    version: str = ""  # of the kind; "": any
    partial: bool = False  # their metadata is enough
    matches: Matches = any_labels
    owner: str = ""  # only those of the owner with this uid

    def among(self, objects: Mapping[ObjectKey, Object | None]) -> list[Object]:
        """Those of these that it asks for, sorted by their keys. None: the object does not exist."""
        found = [
            (key, obj)
            for key, obj in objects.items()
            if obj is not None
            and key.group_kind == self.kind
            and self.namespace in {None, key.namespace}
            and self.matches(labels_of(obj))
            and (not self.owner or self.owner in owners_of(obj["metadata"]))
        ]
        return [obj for _, obj in sorted(found, key=itemgetter(0))]


class Objects(Protocol):
    """The objects of the cluster that a pass over one CR may read."""

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        """The object in this version of its kind; "": in any version. `partial`: its metadata is enough."""
        ...

    def children(self, part_of: str) -> Iterable[Object]:
        """All objects with this CR's label, in each version that the rules use."""
        ...

    def patched(self, part_of: str) -> Iterable[Object]:
        """The objects with fields that a child of this CR has set, with its part of their managedFields."""
        ...

    def select(self, query: Query) -> Iterable[Object]:
        """The objects sorted by namespace and name. There may be many, so each is read only when it is asked for, and
        only its labels if they do not match."""
        ...


class FixedObjects:
    """Objects from a list, for offline commands and tests."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._by_key: dict[ObjectKey, Object] = {ObjectKey.of(obj): obj for obj in objects}

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:  # noqa: ARG002 - objects have one version here
        return self._by_key.get(key)

    def children(self, part_of: str) -> Iterable[Object]:
        for _, obj in sorted(self._by_key.items()):
            if ((obj.get("metadata") or {}).get("labels") or {}).get(PART_OF) == part_of:
                yield obj

    def patched(self, part_of: str) -> Iterable[Object]:
        for _, obj in sorted(self._by_key.items()):
            if any(part_of == each.part_of for each in managers_on(obj)):
                yield obj

    def select(self, query: Query) -> Sequence[Object]:
        return query.among(self._by_key)

    def __iter__(self) -> Any:
        return iter(self._by_key.values())


@dataclass(frozen=True, slots=True)
class Observed:
    """The cluster as one pass sees it, with the time and the operator's own name."""

    objects: Objects
    kinds: Kinds
    now: str = "1970-01-01T00:00:00Z"  # RFC 3339, as Kubernetes writes it
    clock: float = 0.0  # seconds, monotonic; times in the history are compared with it
    seed: bytes = b""  # of random_password
    finalizer: str = DEFAULT_FINALIZER
    retired: Collection[str] = ()  # condition types that the rules no longer have
    held_until: str = ""  # RFC 3339: after a change of the rules, nothing is deleted or released before; "": no limit
    namespace_terminating: bool = False
    expects_refusals: bool = False  # nobody asks the server: changes of immutable fields count as refused
    rollout: Condition | None = None  # which revision of the rules the resource has, with `rollout`
    proofs: Proofs | None = None  # of annotations and managers; offline without a key, they are believed by their text
    sharded: bool = False  # the operator is one of several processes, so children have the label of their bucket
    own: Collection[ObjectKey] = ()  # the operator's own objects, which no rule may write
    # Whose fields the rules of the CR's kind set or have set, by the inventory; without a name or namespace: of any.
    # None: there is no inventory, as offline.
    patched: Collection[ObjectKey] | None = None
    resource_of: Callable[[str], ObjectKey | None] = field(default=lambda _: None)  # a known CR, by its label


# -- read objects ------------------------------------------------------------------------------------------------------
#
# The objects that a plan reads, each charged when it is read: others decide how many there are, and how large. A child
# is parsed only once.
#
# A child of the usual size is charged little, because the plan is charged for the rendered object already: what could
# be created can be planned again.


class ReadObjects:
    def __init__(self, objects: Objects, charge: Callable[[int], None]) -> None:
        """`charge` raises Exhausted."""
        self._objects, self._charge = objects, charge
        self._read: set[ObjectKey] = set()
        self._children: dict[tuple[ObjectKey, str], Object] = {}  # by their versions

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        if (child := self._children.get((key, version))) is not None:
            return child
        found = self._objects.get(key, version=version, partial=partial)
        return None if found is None else self._charged(key, found)

    def children(self, part_of: str) -> Iterator[Object]:
        for child in self._objects.children(part_of):
            key = ObjectKey.of(child)
            self._children[key, Kind.of(child).version] = child
            yield self._charged(key, child)

    def patched(self, part_of: str) -> Iterator[Object]:
        return self._each(self._objects.patched(part_of), USUAL_SIZE)

    def select(self, query: Query) -> Iterator[Object]:
        def matches(labels: Mapping[str, Any]) -> bool:
            self._charge(OBJECT_BYTES)  # of all objects, whether they match or not
            return query.matches(labels)

        return self._each(self._objects.select(query._replace(matches=matches)), 0)

    def _each(self, objects: Iterable[Object], usual: int) -> Iterator[Object]:
        for obj in objects:
            yield self._charged(ObjectKey.of(obj), obj, usual)

    def _charged(self, key: ObjectKey, obj: Object, usual: int = USUAL_SIZE) -> Object:
        if key not in self._read:
            self._read.add(key)
            self._charge(object_bytes(obj, usual))
        return obj
