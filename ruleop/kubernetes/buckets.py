"""Divides custom resources into 64 buckets by their uid, and the buckets among a number of processes.

The bucket is the top six bits of FNV-1a-64 of the uid: the same hash by which the API server divides lists and watches
(`shardSelector`), so that a range of buckets is a range of the server's hashes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.values import dataclass

BUCKETS: Final = 64
_SHIFT: Final = 64 - 6
_BASIS, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


@lru_cache(maxsize=16_384)
def bucket_of(uid: str) -> int:
    found = _BASIS
    for byte in uid.encode():
        found = (found ^ byte) * _PRIME & _MASK
    return found >> _SHIFT


def owner_of(bucket: int, count: int) -> int:
    """The ordinal of the process, of `count`, that a bucket belongs to. Each has one range of buckets."""
    return bucket * count // BUCKETS


def buckets_of(ordinal: int, count: int) -> frozenset[int]:
    """All buckets of a process; none if there are fewer processes, or more of them than buckets."""
    return frozenset(bucket for bucket in range(BUCKETS) if count and owner_of(bucket, count) == ordinal)


def hash_range(buckets: frozenset[int]) -> tuple[int, int]:
    """The range of the server's hashes that covers all of these: from the first, to before the second."""
    return min(buckets) << _SHIFT, (max(buckets) + 1) << _SHIFT


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a StatefulSet, by its name."""

    namespace: str
    name: str

    @property
    def ordinal(self) -> int:
        return int(self.name.rpartition("-")[2])

    @property
    def stateful_set(self) -> ObjectKey:
        return ObjectKey("apps", "StatefulSet", self.namespace, self.name.rpartition("-")[0])
