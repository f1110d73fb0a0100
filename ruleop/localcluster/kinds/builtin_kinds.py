"""Changes by the server to the objects of its built-in kinds beyond their defaults and their validation."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.kind_defaults import (
    numbered,
    service_class,
    template_number,
    with_selector,
    with_sources,
    with_sources_of_new,
)
from ruleop.kubernetes.times import now
from ruleop.kubernetes.validation import GROUP as RBAC
from ruleop.localcluster.kinds.served import Strategy
from ruleop.localcluster.kinds.services import allocate, kept_on_update
from ruleop.localcluster.object_store import CLASSES, PRIORITY_CLASSES, SERVICE_ACCOUNTS, Name
from ruleop.localcluster.status_errors import forbidden

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.object_store import Store


# -- pods: their first status, admission, and what an update keeps ---------------------------------------------------


_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_ANY_KEY: Final = ""
_UNREACHABLE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def pod_created(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "status": {"phase": "Pending", "qosClass": service_class(pod["spec"])}}


def admit_pod(pod: dict[str, Any], store: Store) -> dict[str, Any]:
    """The pod with the fields that admission adds: the service account with its token, tolerations, the priority."""
    return admit_pod_as_it_is(_with_account(pod, store), store)


def _with_account(pod: dict[str, Any], store: Store) -> dict[str, Any]:
    metadata, spec = pod["metadata"], dict(pod["spec"])
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    found = store.get(SERVICE_ACCOUNTS, Name(metadata["namespace"], account))
    if found is None and account != "default":  # the controller of namespaces makes that one
        message = (
            f'error looking up service account {metadata["namespace"]}/{account}: serviceaccount "{account}" not found'
        )
        raise forbidden("", "pods", _name_asked(metadata), message)
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    mounts = spec.get("automountServiceAccountToken")
    if mounts is None and found is not None:
        mounts = found.obj.get("automountServiceAccountToken")
    if mounts is not False:
        _mount_token(spec, Random(metadata["uid"]))  # noqa: S311 - not for secrets
    return {**pod, "spec": spec}


def _name_asked(metadata: Object) -> str:
    """The name in a refusal. A name is generated after admission, so that its beginning is all there is."""
    name, beginning = str(metadata["name"]), str(metadata.get("generateName", ""))
    return beginning if beginning and name[:-5] == beginning[:58] else name


def admit_pod_as_it_is(pod: dict[str, Any], store: Store) -> dict[str, Any]:
    """The pod with the fields that admission adds where nobody makes service accounts: tolerations, the priority."""
    spec, name = _with_tolerations(pod["spec"]), _name_asked(pod["metadata"])
    found = _priority(spec, name, store)
    if (given := spec.get("priority", found["priority"])) != found["priority"]:
        message = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {found['priority']} from the given PriorityClass name"
        )
        raise forbidden("", "pods", name, message)
    return {**pod, "spec": {**spec, **found}}


def _mount_token(spec: dict[str, Any], random: Random) -> None:
    if all(map(_has_token, spec.get("containers") or [])):
        return
    name = f"kube-api-access-{''.join(random.choice(_LETTERS) for _ in range(5))}"
    field = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources: list[dict[str, Any]] = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [field]}},
    ]
    volume = {"name": name, "projected": {"sources": sources, "defaultMode": 420}}
    spec["volumes"] = [*(spec.get("volumes") or []), volume]
    mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [
                each if _has_token(each) else {**each, "volumeMounts": [*(each.get("volumeMounts") or []), mount]}
                for each in spec[kind]
            ]


def _has_token(container: Object) -> bool:
    return any(each.get("mountPath") == _TOKEN_PATH for each in container.get("volumeMounts") or [])


def _priority(spec: Object, name: str, store: Store) -> dict[str, Any]:
    class_name = spec.get("priorityClassName")
    if not class_name:
        chosen = next((each.obj for each in store.all(PRIORITY_CLASSES) if each.obj.get("globalDefault")), None)
    elif class_name in ("system-cluster-critical", "system-node-critical"):
        return {"priority": 2_000_000_000 + 1000 * (class_name == "system-node-critical"), **_PREEMPTS}
    elif (found := store.get(PRIORITY_CLASSES, Name("", class_name))) is not None:
        chosen = found.obj
    else:
        raise forbidden("", "pods", name, f"no PriorityClass with name {class_name} was found")
    if chosen is None:
        return {"priority": 0, **_PREEMPTS}
    return {
        "priority": chosen["value"],
        "priorityClassName": chosen["metadata"]["name"],
        "preemptionPolicy": chosen.get("preemptionPolicy", "PreemptLowerPriority"),
    }


_OF_PRIORITY: Final = ("priority", "priorityClassName", "preemptionPolicy")
_PREEMPTS: Final = {"preemptionPolicy": "PreemptLowerPriority"}


def pod_updated(new: dict[str, Any], old: Object) -> dict[str, Any]:
    """The updated pod with the fields that admission adds, and those that no update changes."""
    before = old["spec"]
    kept = {name: before[name] for name in _OF_PRIORITY if name in before}
    return {**new, "spec": {**kept, **_with_tolerations(new["spec"])}}


def _with_tolerations(spec: dict[str, Any]) -> dict[str, Any]:
    """With those of nodes that fail for a short time."""
    given = {
        each.get("key") or _ANY_KEY
        for each in spec.get("tolerations") or []
        if each.get("effect") in ("NoExecute", None) and (each.get("key") or each.get("operator") == "Exists")
    }
    more = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in _UNREACHABLE
        if not given & {key, _ANY_KEY}
    ]
    return {**spec, "tolerations": [*(spec.get("tolerations") or []), *more]} if more else spec


def grace_seconds(pod: Object) -> int:
    seconds = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return seconds if isinstance(seconds, int) else 30


# -- other kinds -----------------------------------------------------------------------------------------------------


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
