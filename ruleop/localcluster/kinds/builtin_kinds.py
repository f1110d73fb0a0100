"""Changes by the server to the objects of its built-in kinds beyond their defaults and their validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.validation import GROUP as RBAC
from ruleop.kubernetes.validation import numbered, template_number, with_selector, with_sources, with_sources_of_new
from ruleop.localcluster.kinds.pods import admit_pod, grace_seconds, pod_created, pod_updated
from ruleop.localcluster.kinds.resources import CLASSES
from ruleop.localcluster.kinds.served import Strategy
from ruleop.localcluster.kinds.services import allocate, kept_on_update
from ruleop.localcluster.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.object_store import Store

_GROUP_VERSION: Final = "events.k8s.io/v1"
_NAMES: Final = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_NAMES_BACK: Final = {core: name for name, core in _NAMES.items()}
_ALWAYS: Final = {"reportingComponent": "", "reportingInstance": "", "source": {}}


def to_core(event: Object) -> dict[str, Any]:
    """The Event of events.k8s.io as one of v1."""
    found = {_NAMES.get(name, name): value for name, value in event.items()}
    return {**_ALWAYS, **found, "apiVersion": "v1"}


def from_core(event: Object) -> dict[str, Any]:
    """The Event of v1 as one of events.k8s.io."""
    found = {_NAMES_BACK.get(name, name): value for name, value in event.items()}
    for name in ("reportingController", "reportingInstance"):
        if not found.get(name):
            found.pop(name, None)
    return {**found, "apiVersion": _GROUP_VERSION}


def namespace_created(obj: dict[str, Any]) -> dict[str, Any]:
    spec = {**(obj.get("spec") or {}), "finalizers": ["kubernetes"]}
    return {**_with_its_name(obj), "spec": spec, "status": {"phase": "Active"}}


def namespace_updated(new: dict[str, Any], _old: Object) -> dict[str, Any]:
    """Its finalizers are written through a subresource; the label of its name is kept."""
    return {**_with_its_name(new), "spec": {"finalizers": [], **(new.get("spec") or {})}}


def _with_its_name(namespace: dict[str, Any]) -> dict[str, Any]:
    """With the label by which selectors find it."""
    metadata = namespace["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**namespace, "metadata": {**metadata, "labels": labels}}


def node_created(obj: dict[str, Any]) -> dict[str, Any]:
    """A node is not ready until its kubelet reports that it is."""
    spec = obj.get("spec") or {}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    return {**obj, "spec": {**spec, "taints": [*(spec.get("taints") or []), taint]}}


CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"  # the finalizer of a CRD


def established(document: dict[str, Any], _store: Store) -> dict[str, Any]:
    """The definition with the status that the server gives it. It is served at once."""
    spec, status = document["spec"], document.get("status") or {}
    conditions = status.get("conditions") or [
        {"type": type_, "status": "True", "lastTransitionTime": now(), "reason": reason, "message": message}
        for type_, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    stored = [each["name"] for each in spec.get("versions") or () if each.get("storage") and each.get("name")]
    versions = list(dict.fromkeys([*(status.get("storedVersions") or ()), *stored]))
    names = {"conditions": conditions, "acceptedNames": spec.get("names") or {}, "storedVersions": versions}
    return {**document, "status": {**status, **names}}


DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
CLAIM_PROTECTION, VOLUME_PROTECTION = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"


def protected(obj: dict[str, Any], finalizer: str) -> dict[str, Any]:
    metadata = obj["metadata"]
    finalizers = metadata.get("finalizers") or []
    if finalizer in finalizers:
        return obj
    return {**obj, "metadata": {**metadata, "finalizers": [*finalizers, finalizer]}}


def volume_created(obj: dict[str, Any]) -> dict[str, Any]:
    status = {"phase": "Pending", "lastPhaseTransitionTime": now()}
    return protected({**obj, "status": status}, VOLUME_PROTECTION)


def claim_created(obj: dict[str, Any]) -> dict[str, Any]:
    return protected({**with_sources_of_new(obj), "status": {"phase": "Pending"}}, CLAIM_PROTECTION)


def admit_claim(claim: dict[str, Any], store: Store) -> dict[str, Any]:
    """The claim with the default class, if it names none."""
    spec = claim["spec"]
    if "storageClassName" in spec:
        return claim
    for each in store.all(CLASSES):
        if (each.obj["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true":
            return {**claim, "spec": {**spec, "storageClassName": each.name.name}}
    return claim


def daemon_set_updated(new: dict[str, Any], old: Object) -> dict[str, Any]:
    return numbered(new, template_number(old) + (new["spec"].get("template") != old["spec"].get("template")))


_COUNTED: Final = Strategy(has_generation=True)
_WEBHOOKS: Final = Strategy(has_generation=True, counted=("webhooks",))
_UPSERTED: Final = Strategy(creates_on_update=True)
_ADMISSION: Final = "admissionregistration.k8s.io"
_FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io"

STRATEGIES: Final[Mapping[tuple[str, str], Strategy]] = {
    **{("", kind): _UPSERTED for kind in ("Endpoints", "Event", "LimitRange")},
    ("events.k8s.io", "Event"): _UPSERTED,
    ("", "Namespace"): Strategy(create=namespace_created, update=namespace_updated),
    ("", "Node"): Strategy(create=node_created),
    ("", "PersistentVolume"): Strategy(create=volume_created),
    ("", "PersistentVolumeClaim"): Strategy(
        create=claim_created,
        update=lambda new, old: {**new, "spec": with_sources(new.get("spec") or {}, old.get("spec") or {})},
        admit=admit_claim,
    ),
    ("", "Pod"): Strategy(
        create=pod_created,
        admit=admit_pod,
        update=pod_updated,
        has_generation=True,
        grace=grace_seconds,
    ),
    ("", "Service"): Strategy(
        update=kept_on_update,
        admit=allocate,
        allocates_on_update=True,
        creates_on_update=True,
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Strategy(
        admit=established,
        allocates_on_update=True,
        has_generation=True,
        finalizers=(CLEANUP,),
        unconditional_update=False,
    ),
    ("apps", "Deployment"): Strategy(has_generation=True, counted_metadata=("annotations",)),
    **{("apps", kind): _COUNTED for kind in ("ReplicaSet", "StatefulSet")},
    **{("", kind): _COUNTED for kind in ("PodTemplate", "ReplicationController")},
    **{(_FLOW_CONTROL, kind): _COUNTED for kind in ("FlowSchema", "PriorityLevelConfiguration")},
    ("resource.k8s.io", "DeviceClass"): _COUNTED,
    ("apps", "DaemonSet"): Strategy(
        create=lambda new: numbered(new, 1), update=daemon_set_updated, has_generation=True
    ),
    ("batch", "Job"): Strategy(create=with_selector, orphans=True, has_generation=True),
    ("batch", "CronJob"): _COUNTED,
    ("coordination.k8s.io", "Lease"): Strategy(unconditional_update=False, creates_on_update=True),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(
        has_generation=True, counted=("addressType", "endpoints", "ports"), counted_metadata=("labels",)
    ),
    **{("networking.k8s.io", kind): _COUNTED for kind in ("Ingress", "IngressClass", "NetworkPolicy")},
    ("policy", "PodDisruptionBudget"): Strategy(
        has_generation=True, checks_metadata_last=True, unconditional_update=False
    ),
    **{(RBAC, kind): _UPSERTED for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")},
    ("scheduling.k8s.io", "PriorityClass"): Strategy(has_generation=True, counted=()),
    **{
        (_ADMISSION, f"{policy}{kind}"): _COUNTED
        for policy in ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
        for kind in ("", "Binding")
    },
    **{(_ADMISSION, kind): _WEBHOOKS for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")},
}
