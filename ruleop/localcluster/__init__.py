<<<<<<< HEAD
"""An API server in memory, over real HTTP, for development and tests.

It behaves as the real API server does wherever a client can see it; one contract suite runs against both. It knows the
kinds of the API and how they merge, and nothing of rules, planning and the engine.
"""
=======
"""An API server in memory, over real HTTP, with the controllers that an operator's author needs to see work."""

from ruleop.localcluster.cluster import LocalCluster

__all__ = ["LocalCluster"]
>>>>>>> table
