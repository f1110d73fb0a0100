"""The buckets that a process of several may work on: a state machine without I/O.

Each process is a shard with an ordinal and a Lease of its own. How many there are is in one place, the StatefulSet; an
`Epoch` is a count and the resourceVersion at which it was read. Each shard writes the epoch that it goes by into its
Lease. At most one shard works on a bucket, however late anybody learns of a new count:

- A shard that learns of a newer epoch first stops work on the buckets that it loses, and waits for what is running.
- Then it writes the epoch into its Lease. From then on, all that list the Leases know which buckets it may work
  on: those of its ordinal under the count of this epoch.
- Then it lists all Leases, from the server's latest state. It begins work on a bucket only if no other shard goes by a
  newer epoch, and no other shard may work on it under the epoch in its Lease.

So of two shards that would work on the same bucket, the later one to write its Lease sees the other's. A Lease that is
released or has run out counts no longer: its process has stopped before that (see `lease.py`).

Processes without shards, each with a label selector, divide the resources by hand. If two select the same resource, the
first that acquired its Lease has it, by the resourceVersion of that write: who lists the Leases after writing its own
sees all that are earlier. The same holds between shards and such a process.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.kubernetes.buckets import BUCKETS, buckets_of
from ruleop.kubernetes.labels import label_requirements, meets
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kubernetes.labels import Requirement


SKEW: Final = 2.0  # seconds by which clocks may run apart during a Lease


@dataclass(frozen=True, slots=True, order=True)
class Epoch:
    """`number` orders epochs; two with the same count divide the buckets alike."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: Any) -> Epoch | None:
        number, _, count = text.partition("/") if isinstance(text, str) and len(text) < 40 else ("", "", "")
        if not (number.isdecimal() and count.isdecimal()):
            return None
        return cls(int(number), int(count))


NO_SHARD: Final = -1


@dataclass(frozen=True, slots=True)
class ProcessLease:
    """The Lease of one of the operator's processes, as listed."""

    name: str
    ordinal: int  # or NO_SHARD
    holder: str
    epoch: Epoch | None  # None: it works on nothing yet
    version: str
    duration: float
    since: int = 0  # the resourceVersion at which its holder acquired it
    selector: str = ""

    @property
    def buckets(self) -> frozenset[int]:
        """Those that its holder may work on while it is held."""
        return buckets_of(self.ordinal, self.epoch.count) if self.holder and self.epoch is not None else frozenset()


@dataclass(frozen=True, slots=True)
class Drain:
    """Wait until nothing runs on buckets that are not held, then call `drained`."""

    buckets: frozenset[int]  # that this shard will have


@dataclass(frozen=True, slots=True)
class Confirm:
    """Write the epoch into the Lease, then call `confirmed`."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class ListLeases:
    """List all Leases, then pass them to `listed`. With `again`, after a pause: others still hold buckets."""

    again: bool


Step: TypeAlias = Drain | Confirm | ListLeases


class FreshLeases:
    """Tells held Leases from others. The times in a Lease are for people: it has run out when it was seen unchanged for
    its duration and `skew`, by this process's clock."""

    def __init__(self, skew: float) -> None:
        self._skew = skew
        self._seen: dict[str, tuple[str, float]] = {}  # version and time, by the name of the Lease

    def of(self, leases: Iterable[ProcessLease], now: float) -> list[ProcessLease]:
        seen, found = {}, []
        for each in leases:
            version, since = self._seen.get(each.name, ("", now))
            since = since if version == each.version else now
            seen[each.name] = each.version, since
            if each.holder and now < since + each.duration + self._skew:
                found.append(each)
        self._seen = seen
        return found


class Shard:
    """One process. `held` are the buckets that it may work on at this moment, as long as it holds its own Lease."""

    def __init__(self, ordinal: int, *, since: int = 0, skew: float = SKEW) -> None:
        self.ordinal, self.since = ordinal, since
        self.held: frozenset[int] = frozenset()
        self.seen: Epoch | None = None  # the newest that the StatefulSet had
        self.target: Epoch | None = None  # the one to go by
        self.epoch: Epoch | None = None  # in its Lease
        self.blocked: Mapping[int, ProcessLease] = {}  # its buckets that others may still work on
        self.others: tuple[ProcessLease, ...] = ()  # the other held Leases, as last listed
        self._drained: Epoch | None = None
        self._fresh = FreshLeases(skew)
        self._is_listed = False  # all that its epoch gives it is held

    def aim(self, epoch: Epoch) -> None:
        """The StatefulSet was read. Most of its versions have the same count, and need no step."""
        self.seen = epoch if self.seen is None else max(self.seen, epoch)
        if self.target is None or (self.seen > self.target and self.seen.count != self.target.count):
            self._move(self.seen)

    def _move(self, epoch: Epoch) -> None:
        self.target = epoch
        self.held &= buckets_of(self.ordinal, epoch.count)
        self._is_listed = False

    def next(self) -> Step | None:
        """The next step; None if there is nothing to do until the count changes."""
        target = self.target
        if target is None:
            return None
        if self.epoch != target:
            return Confirm(target) if self._drained == target else Drain(buckets_of(self.ordinal, target.count))
        return None if self._is_listed else ListLeases(again=bool(self.blocked))

    def drained(self, buckets: frozenset[int]) -> None:
        """Nothing runs on other buckets than these."""
        if self.target is not None and buckets == buckets_of(self.ordinal, self.target.count):
            self._drained = self.target

    def confirmed(self, epoch: Epoch) -> None:
        self.epoch = epoch
        self.blocked = {}

    def listed(self, leases: Iterable[ProcessLease], now: float) -> None:
        """The Leases, as they were after the epoch was confirmed."""
        held = self._fresh.of((each for each in leases if each.ordinal != self.ordinal), now)
        self.others = tuple(held)
        target = self.target
        if target is None or self.epoch != target:
            return
        shards = [each for each in held if each.ordinal != NO_SHARD]
        newest = max((each.epoch for each in shards if each.epoch is not None), default=target)
        if newest.number > target.number:
            self._move(newest if self.seen is None else max(newest, self.seen))
            return
        mine = buckets_of(self.ordinal, target.count)
        self.blocked = {bucket: each for each in shards for bucket in each.buckets & mine}
        for each in held:
            if each.ordinal == NO_SHARD and each.since < self.since:
                self.blocked = dict.fromkeys(mine - self.held, each)
        self.held |= mine - self.blocked.keys()
        self._is_listed = not self.blocked

    def unowned(self) -> frozenset[int]:
        """Buckets that no shard works on or may take, as last listed: they wait for a process that is not there."""
        owned = {bucket for each in self.others for bucket in each.buckets}
        return frozenset(range(BUCKETS)) - owned - self.held


class Claims:
    """A process without shards. `earlier` are the processes that were here before it, and keep what they have."""

    def __init__(self, name: str, since: int, *, skew: float = SKEW) -> None:
        self.name, self.since = name, since
        self.earlier: tuple[ProcessLease, ...] = ()
        self._fresh = FreshLeases(skew)

    def listed(self, leases: Iterable[ProcessLease], now: float) -> bool:
        """The Leases, as they were after this process acquired its own. Whether an earlier process is gone."""
        others = [each for each in leases if each.name != self.name and each.since < self.since]
        before, self.earlier = self.earlier, tuple(self._fresh.of(others, now))
        return {each.name for each in before} > {each.name for each in self.earlier}

    def owner_of(self, labels: Mapping[str, str]) -> ProcessLease | None:
        """The earlier process that has a resource with these labels. Shards have all."""
        for each in self.earlier:
            if meets(labels, requirements(each.selector)):
                return each
        return None


class Roster:
    """The processes without shards, as each of them sees them. Only one looks for the resources that none of their
    selectors matches: the one whose Lease is the first by name."""

    def __init__(self, name: str, *, duration: float, period: float = 600.0, skew: float = SKEW) -> None:
        """`duration` of a Lease: all must have been the same for so long before it looks, because a process that is
        replaced is back by then. `period`: after which it looks once more."""
        self.name, self.duration, self.period = name, duration, period
        self.is_first = False
        self.selectors: frozenset[str] = frozenset()
        self._fresh = FreshLeases(skew)
        self._next = 0.0

    def listed(self, leases: Iterable[ProcessLease], now: float) -> None:
        held = self._fresh.of(leases, now)
        before = self.is_first, self.selectors
        self.is_first = min((each.name for each in held), default="") == self.name
        self.selectors = frozenset(each.selector for each in held)
        if before != (self.is_first, self.selectors):
            self._next = now + self.duration

    def is_due(self, now: float) -> bool:
        """Whether it is time for this process to look."""
        return self.is_first and now >= self._next

    def looked(self, selectors: frozenset[str], now: float) -> None:
        """For what none of these matches. Meanwhile there may be others."""
        if selectors == self.selectors:
            self._next = now + self.period


@lru_cache
def requirements(selector: str) -> tuple[Requirement, ...]:
    """Of a selector from a Lease, which anybody may have written: one that cannot be read selects all."""
    try:
        return label_requirements(selector)
    except ValueError:
        return ()
