"""The resources that are served: the built-in kinds and those of CustomResourceDefinitions."""

from ruleop.localcluster.kinds.builtin_kinds import CLAIM_PROTECTION, CLEANUP, VOLUME_PROTECTION
from ruleop.localcluster.kinds.registry import REVIEWS, Registry, follow, is_builtin_group, resource_of, served_versions
from ruleop.localcluster.kinds.served import (
    ServedKind,
    open_kind,
)

__all__ = [
    "CLAIM_PROTECTION",
    "CLEANUP",
    "REVIEWS",
    "VOLUME_PROTECTION",
    "Registry",
    "ServedKind",
    "follow",
    "is_builtin_group",
    "open_kind",
    "resource_of",
    "served_versions",
]
