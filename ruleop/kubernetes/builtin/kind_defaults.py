"""Defaults of kinds beyond those of their types, and what the server writes into new objects: of pods, whose templates
do not have them yet, workloads, Secrets, Services and claims."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import needs_health_check

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object


# -- pods ------------------------------------------------------------------------------------------------------------


def with_pod_defaults(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod has defaults that its template does not have yet."""
    spec = {"enableServiceLinks": True, **pod.get("spec", {})}
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [_container(each, host=bool(spec.get("hostNetwork"))) for each in spec[name]]
    status = {"status": {"qosClass": service_class(spec), **pod["status"]}} if "status" in pod else {}
    return {**pod, "spec": spec, **status}


def _container(container: Object, *, host: bool) -> dict[str, Any]:
    found = {**container}
    resources = found.get("resources") or {}
    if limits := resources.get("limits"):
        found["resources"] = {**resources, "requests": {**limits, **(resources.get("requests") or {})}}
    if "imagePullPolicy" not in found:
        named, digest = str(found.get("image", "")).partition("@")[::2]
        tag = named.rpartition("/")[2].partition(":")[2]
        found["imagePullPolicy"] = "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
    if host and "ports" in found:
        found["ports"] = [
            {**each, "hostPort": number} if (number := each.get("hostPort") or each.get("containerPort")) else each
            for each in found["ports"]
        ]
    return found


def service_class(spec: Object) -> str:
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    pairs = [
        (name, (each.get("resources") or {}).get(name) or {}) for each in containers for name in ("requests", "limits")
    ]
    if not any(name in found for _, found in pairs for name in ("cpu", "memory")):
        return "BestEffort"
    for each in containers:
        resources = each.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        if any(name not in limits or requests.get(name, limits[name]) != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


# -- workloads -------------------------------------------------------------------------------------------------------

_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_JOB_NAME, _JOB_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"


def with_labels_of_template(obj: dict[str, Any]) -> dict[str, Any]:
    labels = ((obj["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if not labels or obj["metadata"].get("labels"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def with_template_number(daemon_set: dict[str, Any]) -> dict[str, Any]:
    """The server counts the template's versions in an annotation, which each object has."""
    annotations = daemon_set["metadata"].get("annotations") or {}
    return daemon_set if _TEMPLATE_GENERATION in annotations else numbered(daemon_set, 0)


def template_number(daemon_set: Object) -> int:
    return int((daemon_set["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1"))


def numbered(daemon_set: dict[str, Any], number: int) -> dict[str, Any]:
    metadata = daemon_set["metadata"]
    annotations = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: str(number)}
    return {**daemon_set, "metadata": {**metadata, "annotations": annotations}}


def with_job_defaults(job: dict[str, Any]) -> dict[str, Any]:
    """A Job has defaults that the template in a CronJob does not have. Without labels it gets those of its pods."""
    spec = {
        "parallelism": 1,
        "backoffLimit": 2**31 - 1 if "backoffLimitPerIndex" in job["spec"] else 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "Failed" if "podFailurePolicy" in job["spec"] else "TerminatingOrFailed",
        "manualSelector": False,
        **job["spec"],
    }
    if job["spec"].keys().isdisjoint(("completions", "parallelism")):
        spec["completions"] = 1
    return {**with_labels_of_template(job), "spec": spec}


def with_selector(job: dict[str, Any]) -> dict[str, Any]:
    """The labels and the selector by which a Job finds its pods. A Job that has the labels of its pods by default has
    these as well, as it shares them with its template; one whose name is generated has not."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return job
    uid, name = metadata["uid"], metadata["name"]
    labels = {_JOB_UID: uid, _JOB_NAME: name, "controller-uid": uid, "job-name": name}
    template = spec.get("template") or {}
    inner = template.get("metadata") or {}
    given, own = inner.get("labels"), metadata.get("labels")
    labels = {**(given or {}), **labels}
    template = {**template, "metadata": {**inner, "labels": labels}}
    return {
        **job,
        "metadata": metadata if own and own is not given else {**metadata, "labels": labels},
        "spec": {**spec, "template": template, "selector": {"matchLabels": {_JOB_UID: uid}}},
    }


# -- configuration, Services, claims ---------------------------------------------------------------------------------


WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")


def is_exposed(spec: Object) -> bool:
    """Whether a Service can be reached from outside the cluster."""
    return spec.get("type") in WITH_NODE_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def with_encoded_data(secret: dict[str, Any]) -> dict[str, Any]:
    """`stringData` becomes `data`."""
    found = {**secret, "type": secret.get("type") or "Opaque"}
    if texts := found.pop("stringData", None):
        encoded = {name: base64.b64encode(str(value).encode()).decode() for name, value in texts.items()}
        found["data"] = {**(found.get("data") or {}), **encoded}
    return found


def with_service_defaults(service: dict[str, Any]) -> dict[str, Any]:
    spec, found = service.get("spec") or {}, dict[str, Any]()
    if is_exposed(spec):
        found["externalTrafficPolicy"] = "Cluster"
    if spec.get("type") in ("ClusterIP", *WITH_NODE_PORTS):
        found["internalTrafficPolicy"] = "Cluster"
    if spec.get("type") == "LoadBalancer":
        found["allocateLoadBalancerNodePorts"] = True
    return {**service, "spec": {**found, **spec}}


def as_allocated(service: dict[str, Any]) -> dict[str, Any]:
    """A new Service as if the server had allocated what its validation asks for."""
    spec = dict(service["spec"])
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if needs_health_check(spec):
        spec.setdefault("healthCheckNodePort", 30000)
    return {**service, "spec": spec}


def with_sources_of_new(claim: dict[str, Any]) -> dict[str, Any]:
    return {**claim, "spec": with_sources(claim.get("spec") or {}, {})}


def with_sources(spec: Object, old: Object) -> dict[str, Any]:
    """`dataSource` and `dataSourceRef` are the same, where both can name it."""
    found = dict(spec)
    if (found.get("dataSourceRef") or {}).get("namespace") and not old.get("dataSourceRef"):
        del found["dataSourceRef"]  # needs a feature of the server that is not enabled
    source, reference = found.get("dataSource"), found.get("dataSourceRef")
    known = old.get("dataSource") or old.get("dataSourceRef")
    if source is not None and reference is None and not known and not _is_known_source(source):
        del found["dataSource"]  # older clients expect that it is ignored
        return found
    if source is not None and reference is None:
        found["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        found["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}
    return found


def _is_known_source(source: Object) -> bool:
    return (source.get("apiGroup") or "", source.get("kind")) in (
        ("", "PersistentVolumeClaim"),
        ("snapshot.storage.k8s.io", "VolumeSnapshot"),
    )
