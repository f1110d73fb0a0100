"""Several processes of one operator: which custom resources this one reconciles."""

from ruleop.operator.shards.ownership import (
    BySelector,
    Ownership,
    ProcessLeases,
    Sharding,
    UnownedResources,
    read_lease,
)

__all__ = [
    "BySelector",
    "Ownership",
    "ProcessLeases",
    "Sharding",
    "UnownedResources",
    "read_lease",
]
