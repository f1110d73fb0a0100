"""The operator's view of the cluster.

Informers and their stores, the index of the CRs that an event concerns, the schemas of the kinds, and ruleop's own
writes that the watches have not delivered yet. Decides nothing about a CR.
"""

from ruleop.operator.cache.cache import UNPUBLISHED, Cache, CacheView, Index, Published, WatchedShare, kind_info
from ruleop.operator.cache.informers import (
    Informer,
    Informers,
    WatchSpec,
    belief,
    child_needs,
    observe_need,
    selection,
    uses_has_kind,
)
from ruleop.operator.cache.own_writes import ControllerExpectations, OwnWrites
from ruleop.operator.cache.published_schemas import PublishedSchemas

__all__ = [
    "UNPUBLISHED",
    "Cache",
    "CacheView",
    "ControllerExpectations",
    "Index",
    "Informer",
    "Informers",
    "OwnWrites",
    "Published",
    "PublishedSchemas",
    "WatchSpec",
    "WatchedShare",
    "belief",
    "child_needs",
    "kind_info",
    "observe_need",
    "selection",
    "uses_has_kind",
]
