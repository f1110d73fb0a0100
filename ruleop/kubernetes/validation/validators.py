"""The validators of the built-in kinds, with the defaults of kinds beyond those that their schemas state, and what the
server writes into new objects before it validates them. A kind without a validator is held to its types alone."""

from __future__ import annotations

import base64
import functools
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.builtin.completion import as_stored, complete
from ruleop.kubernetes.builtin.immutable_fields import needs_health_check
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.validation import core, networking, pods, policy, workloads
from ruleop.kubernetes.validation.core import WITH_NODE_PORTS, is_exposed
from ruleop.kubernetes.validation.custom_resource_definitions import (
    CUSTOM_RESOURCE_DEFINITION,
    defaulted,
    rule_warnings,
)
from ruleop.kubernetes.validation.rules import table
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.field_errors import FieldError
    from ruleop.kubernetes.validation.rules import Check, Rows


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


# -- validators ------------------------------------------------------------------------------------------------------


def _same(obj: dict[str, Any]) -> dict[str, Any]:
    return obj


def _silent(_new: Object, _old: Object | None) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, eq=False)
class Validator:
    """Validates the objects of a kind whose fields have the right types and their types' defaults."""

    rows: Rows = ()
    default: Callable[[dict[str, Any]], dict[str, Any]] = _same  # the object with the defaults of its kind
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = _same  # a new one as if what the server generates were there

    warn: Callable[[Object, Object | None], list[str]] = _silent  # what the author of a new version should know

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        """The reasons why a new version of an object is not accepted."""
        return list(_check(self)(new, old))


@functools.cache
def _check(validator: Validator) -> Check:
    return table(validator.rows)


ACCEPTING: Final = Validator()

VALIDATORS: Final[Mapping[tuple[str, str], Validator]] = {
    ("", "ConfigMap"): Validator(core.CONFIG_MAP),
    ("", "Event"): Validator(core.EVENT),
    ("", "PersistentVolume"): Validator(core.VOLUME),
    ("", "PersistentVolumeClaim"): Validator(core.CLAIM, prepare=with_sources_of_new),
    ("", "Pod"): Validator(pods.POD, default=with_pod_defaults),
    ("", "ReplicationController"): Validator(default=with_labels_of_template),
    ("", "Secret"): Validator(core.SECRET, default=with_encoded_data),
    ("", "Service"): Validator(core.SERVICE, default=with_service_defaults, prepare=as_allocated),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Validator(
        CUSTOM_RESOURCE_DEFINITION,
        default=defaulted,
        warn=rule_warnings,
    ),
    ("apps", "DaemonSet"): Validator(workloads.DAEMON_SET, default=with_template_number),
    ("apps", "Deployment"): Validator(workloads.DEPLOYMENT),
    ("apps", "ReplicaSet"): Validator(workloads.REPLICA_SET),
    ("apps", "StatefulSet"): Validator(workloads.STATEFUL_SET),
    ("autoscaling", "HorizontalPodAutoscaler"): Validator(workloads.AUTOSCALER),
    ("batch", "CronJob"): Validator(workloads.CRON_JOB),
    ("batch", "Job"): Validator(workloads.JOB, default=with_job_defaults, prepare=with_selector),
    ("coordination.k8s.io", "Lease"): Validator(policy.LEASE),
    ("discovery.k8s.io", "EndpointSlice"): Validator(networking.ENDPOINT_SLICE),
    ("events.k8s.io", "Event"): Validator(core.EVENT),
    ("networking.k8s.io", "Ingress"): Validator(networking.INGRESS),
    ("networking.k8s.io", "IngressClass"): Validator(networking.INGRESS_CLASS),
    ("networking.k8s.io", "NetworkPolicy"): Validator(networking.NETWORK_POLICY),
    ("policy", "PodDisruptionBudget"): Validator(policy.BUDGET),
    (policy.GROUP, "ClusterRole"): Validator(policy.CLUSTER_ROLE),
    (policy.GROUP, "ClusterRoleBinding"): Validator(policy.CLUSTER_ROLE_BINDING),
    (policy.GROUP, "Role"): Validator(policy.ROLE),
    (policy.GROUP, "RoleBinding"): Validator(policy.ROLE_BINDING),
    ("scheduling.k8s.io", "PriorityClass"): Validator(policy.PRIORITY_CLASS),
    ("storage.k8s.io", "StorageClass"): Validator(core.STORAGE_CLASS),
}


def find_validator(group: str, kind: str) -> Validator:
    return VALIDATORS.get((group, kind), ACCEPTING)


# -- errors of new objects, beyond those that their schemas state ----------------------------------------------------


_UID: Final = "00000000-0000-0000-0000-000000000000"  # a Job's labels have its uid


def creation_errors(obj: Object) -> list[FieldError]:
    """The errors of an object whose fields have the right types, which schemas do not state for its name; none of a
    kind that is not known."""
    kind = Kind.of(obj)
    shape = typed_shape(kind)
    if shape is None or kind.kind == "Event":  # an Event has the namespace of another object
        return []
    if not isinstance(obj["metadata"].get("name"), str):
        return []
    validator = find_validator(kind.group, kind.kind)
    metadata = {"namespace": "default", "uid": _UID, **obj["metadata"]}
    new = as_stored(validator.default(complete({**obj, "metadata": metadata}, shape)), shape)
    return list(validator.validate(validator.prepare(new), None))
