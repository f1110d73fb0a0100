"""An API server in memory, over real HTTP, with the controllers that an operator's author needs to see work."""

from ruleop.localcluster.injected_faults import Effect, Fault, Faults
from ruleop.localcluster.local_cluster import LocalCluster

__all__ = ["Effect", "Fault", "Faults", "LocalCluster"]
