"""A cluster in memory without HTTP, and the workloads of its tests."""

import yaml

from ruleop.localcluster import LocalCluster
from ruleop.localcluster.api.requests import DeleteOptions, WriteOptions
from ruleop.localcluster.object_store import Name, Resource

PODS, SETS = Resource("", "pods"), Resource("apps", "replicasets")
DEPLOYMENTS, STATEFUL, DAEMONS = (Resource("apps", each) for each in ("deployments", "statefulsets", "daemonsets"))
JOBS, CRON_JOBS = Resource("batch", "jobs"), Resource("batch", "cronjobs")
CLAIMS, VOLUMES = Resource("", "persistentvolumeclaims"), Resource("", "persistentvolumes")
SLICES, SERVICES = Resource("discovery.k8s.io", "endpointslices"), Resource("", "services")
EVENTS = Resource("", "events")


class Play:
    """A cluster that works only when asked, and then until nothing is left to do."""

    def __init__(self):
        self.cluster = LocalCluster()
        self.machinery, self.store = self.cluster.machinery, self.cluster.store

    def apply(self, text):
        found = [self.cluster.apply(each) for each in yaml.safe_load_all(text)]
        self.machinery.settle()
        return found[0]

    def get(self, resource, name, namespace="default"):
        found = self.store.get(resource, Name(namespace, name))
        return found.obj if found is not None else None

    def all(self, resource, namespace="default"):
        """Without those that every cluster has."""
        return [each.obj for each in self.store.all(resource, namespace) if each.name.name != "kubernetes"]

    def names(self, resource):
        return [each["metadata"]["name"] for each in self.all(resource)]

    def edit(self, resource, name, **spec):
        found = self.store.get(resource, Name("default", name))
        edited = {**found.obj, "spec": {**found.obj["spec"], **spec}}
        served = self.machinery.served(resource)
        self.cluster.writer.update(served, found, edited, "", WriteOptions(manager="test"))
        self.machinery.settle()

    def delete(self, resource, name, propagation=""):
        found = self.store.get(resource, Name("default", name))
        self.machinery.delete(resource, found, DeleteOptions(propagation=propagation))
        self.machinery.settle()

    def reasons(self):
        return {each["reason"] for each in self.all(EVENTS)}


def pod(image="nginx", labels="{app: web}", annotations="{}", **more):
    spec = {"containers": [{"name": "c", "image": image}], **more}
    return yaml.safe_dump(
        {"metadata": {"labels": yaml.safe_load(labels), "annotations": yaml.safe_load(annotations)}, "spec": spec},
        default_flow_style=True,
    ).strip()


def workload(kind, group="apps", *, replicas=3, template=None, **spec):
    fields = {"selector": {"matchLabels": {"app": "web"}}, "replicas": replicas, **spec}
    if kind in ("Job", "DaemonSet"):
        del fields["replicas"]
    if kind == "Job":
        del fields["selector"]
    body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "web"}, "spec": fields}
    body["spec"]["template"] = yaml.safe_load(template or pod())
    return yaml.safe_dump(body)
