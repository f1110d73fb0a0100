"""The part of ruleop that tests import, whatever the operator under test is written in: a Kubernetes cluster in memory,
and the faults that it can have. All other modules may change with any version.

pytest has the fixtures `kube_cluster` and `kube_cluster_session`, and runs the tests of rules, without an import.
"""

from __future__ import annotations

from ruleop.localcluster import Effect, Fault, Faults, LocalCluster

__all__ = ["Effect", "Fault", "Faults", "LocalCluster"]
