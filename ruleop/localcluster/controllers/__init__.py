"""The controllers that make objects live: workloads, volumes, services, garbage collection, namespaces."""

from ruleop.localcluster.controllers.deployment import Deployments
from ruleop.localcluster.controllers.garbage_collector import Definitions, GarbageCollector, Namespaces
from ruleop.localcluster.controllers.machinery import Machinery
from ruleop.localcluster.controllers.pod_owners import CronJobs, DaemonSets, Jobs, ReplicaSets, StatefulSets
from ruleop.localcluster.controllers.pods import DisruptionBudgets, Nodes, Pods, claim_names
from ruleop.localcluster.controllers.services import Ingresses, Services
from ruleop.localcluster.controllers.volumes import ClaimProtection, VolumeProtection, Volumes

CONTROLLERS = (
    Namespaces,
    Definitions,
    GarbageCollector,
    Nodes,
    Volumes,
    VolumeProtection,
    Pods,
    ReplicaSets,
    Deployments,
    StatefulSets,
    DaemonSets,
    Jobs,
    CronJobs,
    Services,
    Ingresses,
    DisruptionBudgets,
)
"""An event queues them in this order."""

ENDINGS = (Namespaces, Definitions, GarbageCollector, ClaimProtection, VolumeProtection)
"""The controllers that delete: for a test that says itself what the others do."""

__all__ = [
    "CONTROLLERS",
    "ENDINGS",
    "GarbageCollector",
    "Machinery",
    "claim_names",
]
