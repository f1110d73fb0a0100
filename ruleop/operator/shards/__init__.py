"""Several processes of one operator: which custom resources this one reconciles."""

from ruleop.operator.shards.claims import NO_SHARD, ProcessLease, requirements
from ruleop.operator.shards.ownership import (
    BySelector,
    Ownership,
    ProcessLeases,
    Sharding,
    UnownedResources,
    read_lease,
)

__all__ = [
    "NO_SHARD",
    "BySelector",
    "Ownership",
    "ProcessLease",
    "ProcessLeases",
    "Sharding",
    "UnownedResources",
    "read_lease",
    "requirements",
]
