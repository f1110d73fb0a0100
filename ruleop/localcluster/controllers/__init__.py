"""The controllers that make objects live: workloads, volumes, services, garbage collection, namespaces."""

from ruleop.localcluster.controllers.core.namespaces import Definitions, Namespaces
from ruleop.localcluster.controllers.core.volume_binding import ClaimProtection, VolumeProtection
from ruleop.localcluster.controllers.garbage_collector import GarbageCollector

ENDINGS = (Namespaces, Definitions, GarbageCollector, ClaimProtection, VolumeProtection)
"""The controllers that delete: for a test that says itself what the others do."""
