"""The built-in resources that the server and the controllers name."""

from __future__ import annotations

from typing import Final

from ruleop.localcluster.object_store import Resource

CONFIG_MAPS: Final = Resource("", "configmaps")
ENDPOINTS: Final = Resource("", "endpoints")
EVENTS: Final = Resource("", "events")
NAMESPACES: Final = Resource("", "namespaces")
NODES: Final = Resource("", "nodes")
CLAIMS: Final = Resource("", "persistentvolumeclaims")
VOLUMES: Final = Resource("", "persistentvolumes")
PODS: Final = Resource("", "pods")
SECRETS: Final = Resource("", "secrets")
SERVICE_ACCOUNTS: Final = Resource("", "serviceaccounts")
SERVICES: Final = Resource("", "services")
CRDS: Final = Resource("apiextensions.k8s.io", "customresourcedefinitions")
REVISIONS: Final = Resource("apps", "controllerrevisions")
DAEMON_SETS: Final = Resource("apps", "daemonsets")
DEPLOYMENTS: Final = Resource("apps", "deployments")
REPLICA_SETS: Final = Resource("apps", "replicasets")
STATEFUL_SETS: Final = Resource("apps", "statefulsets")
CRON_JOBS: Final = Resource("batch", "cronjobs")
JOBS: Final = Resource("batch", "jobs")
SLICES: Final = Resource("discovery.k8s.io", "endpointslices")
INGRESSES: Final = Resource("networking.k8s.io", "ingresses")
BUDGETS: Final = Resource("policy", "poddisruptionbudgets")
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "priorityclasses")
CLASSES: Final = Resource("storage.k8s.io", "storageclasses")
