"""An API server in memory, over real HTTP, with the controllers that an operator's author needs to see work."""

from ruleop.localcluster.cluster import LocalCluster

__all__ = ["LocalCluster"]
