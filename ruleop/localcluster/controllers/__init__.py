"""The controllers that make objects live: workloads, volumes, services, garbage collection, namespaces."""

from ruleop.localcluster.controllers.garbage_collector import GarbageCollector
from ruleop.localcluster.controllers.namespaces import Definitions, Namespaces
from ruleop.localcluster.controllers.volumes import ClaimProtection, VolumeProtection

ENDINGS = (Namespaces, Definitions, GarbageCollector, ClaimProtection, VolumeProtection)
"""The controllers that delete: for a test that says itself what the others do."""
