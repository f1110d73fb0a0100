"""The operator's view of the cluster.

Informers and their stores, the index of the CRs that an event concerns, the schemas of the kinds, and ruleop's own
writes that the watches have not delivered yet. Decides nothing about a CR.
"""

from ruleop.operator.cache.cache import Cache
from ruleop.operator.cache.cache_view import UNPUBLISHED, CacheView, Index, Published, WatchedShare, kind_info
from ruleop.operator.cache.informers import Informer, Informers, WatchSpec, belief, selection
from ruleop.operator.cache.own_writes import ControllerExpectations, OwnWrites
from ruleop.operator.cache.published_schemas import PublishedSchemas
from ruleop.operator.cache.watch_specs import child_needs, observe_need, uses_has_kind

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
