"""The defaults of built-in kinds beyond those that their schemas state, and what the server writes into new objects
before it validates them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import needs_health_check
from ruleop.kubernetes.validation.tables.core import WITH_NODE_PORTS, is_exposed

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object

# -- pods --------------------------------------------------------------------------------------------------------------


def with_pod_defaults(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod has defaults that its template does not have yet."""
    spec = {"enableServiceLinks": True, **pod.get("spec", {})}
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [_container(each, host=bool(spec.get("hostNetwork"))) for each in spec[name]]
    found = {**pod, "spec": spec}
    if "status" in pod and "qosClass" not in pod["status"]:
        found["status"] = {"qosClass": service_class(spec), **pod["status"]}
    return found


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
            {**each, "hostPort": each.get("hostPort") or each["containerPort"]} for each in found["ports"]
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


# -- workloads ---------------------------------------------------------------------------------------------------------

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
    spec, metadata = dict(job.get("spec") or {}), job["metadata"]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not metadata.get("labels"):
        job = {**job, "metadata": {**metadata, "labels": labels}}
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    policy = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    limit = 2**31 - 1 if "backoffLimitPerIndex" in spec else 6
    spec = {
        "parallelism": 1,
        "backoffLimit": limit,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": policy,
        "manualSelector": False,
        **spec,
    }
    return {**job, "spec": spec}


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


# -- configuration, Services, claims -----------------------------------------------------------------------------------


def with_encoded_data(secret: dict[str, Any]) -> dict[str, Any]:
    """`stringData` becomes `data`."""
    if not secret.get("type"):
        secret = {**secret, "type": "Opaque"}
    if "stringData" not in secret:
        return secret
    found = {name: value for name, value in secret.items() if name != "stringData"}
    texts = {
        name: base64.b64encode(str(value).encode()).decode() for name, value in (secret["stringData"] or {}).items()
    }
    data = {**(secret.get("data") or {}), **texts}
    return {**found, "data": data} if data else found


def with_service_defaults(service: dict[str, Any]) -> dict[str, Any]:
    spec = dict(service.get("spec") or {})
    if is_exposed(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec.get("type") in ("ClusterIP", *WITH_NODE_PORTS):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec.get("type") == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    return {**service, "spec": spec}


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
