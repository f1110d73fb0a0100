"""The controllers that make objects live: workloads, volumes, services, garbage collection, namespaces."""

from ruleop.localcluster.controllers.daemon_set import DaemonSets
from ruleop.localcluster.controllers.deployment import Deployments
from ruleop.localcluster.controllers.disruption import DisruptionBudgets
from ruleop.localcluster.controllers.garbage_collector import GarbageCollector
from ruleop.localcluster.controllers.job import CronJobs, Jobs
from ruleop.localcluster.controllers.namespaces import Definitions, Namespaces
from ruleop.localcluster.controllers.pods import Pods
from ruleop.localcluster.controllers.replica_set import ReplicaSets
from ruleop.localcluster.controllers.services import Ingresses, Services
from ruleop.localcluster.controllers.stateful_set import StatefulSets
from ruleop.localcluster.controllers.volumes import VolumeProtection, Volumes

CONTROLLERS = (
    Namespaces,
    Definitions,
    GarbageCollector,
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
