"""Several processes of one operator: which custom resources this one reconciles."""

from ruleop.operator.shards.ownership import (
    BySelector,
    Ownership,
    Pod,
    ProcessLeases,
    Sharding,
    lease_labels,
    read_lease,
)
from ruleop.operator.shards.unowned import UnownedResources

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
