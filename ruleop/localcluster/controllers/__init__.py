"""The controllers that make objects live: workloads, volumes, services, garbage collection, namespaces."""

from ruleop.localcluster.controllers.apps.daemon_set import DaemonSets
from ruleop.localcluster.controllers.apps.deployment import Deployments
from ruleop.localcluster.controllers.apps.replica_set import ReplicaSets
from ruleop.localcluster.controllers.apps.stateful_set import StatefulSets
from ruleop.localcluster.controllers.batch.job import CronJobs, Jobs
from ruleop.localcluster.controllers.core.namespaces import Definitions, Namespaces
from ruleop.localcluster.controllers.core.pods import Pods
from ruleop.localcluster.controllers.core.services import Ingresses, Services
from ruleop.localcluster.controllers.core.volume_binding import VolumeProtection, Volumes
from ruleop.localcluster.controllers.garbage_collector import GarbageCollector
from ruleop.localcluster.controllers.policy.disruption import DisruptionBudgets

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
