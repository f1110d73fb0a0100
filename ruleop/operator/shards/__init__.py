"""Several processes of one operator: which custom resources this one reconciles."""

from ruleop.operator.shards.ownership import (
    BySelector,
    Ownership,
    Pod,
    ProcessLeases,
    Sharding,
    UnownedResources,
    lease_labels,
    read_lease,
)

__all__ = [
    "BySelector",
    "Ownership",
    "Pod",
    "ProcessLeases",
    "Sharding",
    "UnownedResources",
    "lease_labels",
    "read_lease",
]
