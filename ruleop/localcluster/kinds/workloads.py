"""Pods and what makes them: defaults of a whole object, admission, and fields that may not change."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import forbidden
from ruleop.localcluster.kinds.resources import PRIORITY_CLASSES, SERVICE_ACCOUNTS
from ruleop.localcluster.store.store import Name

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.localcluster.store.store import Store

_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_ANY_KEY: Final = ""
_UNREACHABLE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_JOB_NAME, _JOB_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"


# -- pods --------------------------------------------------------------------------------------------------------------


def with_pod_defaults(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod has defaults that its template does not have yet."""
    spec = {"enableServiceLinks": True, **pod.get("spec", {})}
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [_container(each, host=bool(spec.get("hostNetwork"))) for each in spec[name]]
    found = {**pod, "spec": spec}
    if "status" in pod and "qosClass" not in pod["status"]:
        found["status"] = {"qosClass": _service_class(spec), **pod["status"]}
    return found


def pod_created(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "status": {"phase": "Pending", "qosClass": _service_class(pod["spec"])}}


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


def _service_class(spec: Object) -> str:
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


def admit_pod(pod: dict[str, Any], store: Store) -> dict[str, Any]:
    """What admission adds: the service account with its token, tolerations, the priority."""
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
        _mount_token(spec)
    return {**pod, "spec": spec}


def _name_asked(metadata: Object) -> str:
    """The name in a refusal. A name is generated after admission, so that its beginning is all there is."""
    name, beginning = str(metadata["name"]), str(metadata.get("generateName", ""))
    return beginning if beginning and name[:-5] == beginning[:58] else name


def admit_pod_as_it_is(pod: dict[str, Any], store: Store) -> dict[str, Any]:
    """What admission adds where nobody makes service accounts: tolerations, the priority."""
    spec, name = _with_tolerations(pod["spec"]), _name_asked(pod["metadata"])
    found = _priority(spec, name, store)
    if (given := spec.get("priority", found["priority"])) != found["priority"]:
        message = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {found['priority']} from the given PriorityClass name"
        )
        raise forbidden("", "pods", name, message)
    return {**pod, "spec": {**spec, **found}}


def _mount_token(spec: dict[str, Any]) -> None:
    if all(
        any(mount.get("mountPath") == _TOKEN_PATH for mount in each.get("volumeMounts") or [])
        for each in spec.get("containers") or []
    ):
        return
    name = f"kube-api-access-{''.join(secrets.choice(_LETTERS) for _ in range(5))}"
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
                each
                if any(one.get("mountPath") == _TOKEN_PATH for one in each.get("volumeMounts") or [])
                else {**each, "volumeMounts": [*(each.get("volumeMounts") or []), mount]}
                for each in spec[kind]
            ]


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
    """What admission adds to an update, and what stays of the pod."""
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


# -- what makes pods ---------------------------------------------------------------------------------------------------


def with_template_number(daemon_set: dict[str, Any]) -> dict[str, Any]:
    """The server counts the template's versions in an annotation, which each object has."""
    return daemon_set if _TEMPLATE_GENERATION in _annotations(daemon_set) else _numbered(daemon_set, 0)


def daemon_set_created(daemon_set: dict[str, Any]) -> dict[str, Any]:
    return _numbered(daemon_set, 1)


def daemon_set_updated(new: dict[str, Any], old: Object) -> dict[str, Any]:
    number = int(_annotations(old).get(_TEMPLATE_GENERATION, "1"))
    return _numbered(new, number + (new["spec"].get("template") != old["spec"].get("template")))


def _annotations(obj: Object) -> Object:
    found: Object = obj["metadata"].get("annotations") or {}
    return found


def _numbered(daemon_set: dict[str, Any], number: int) -> dict[str, Any]:
    annotations = {**_annotations(daemon_set), _TEMPLATE_GENERATION: str(number)}
    return {**daemon_set, "metadata": {**daemon_set["metadata"], "annotations": annotations}}


# -- jobs --------------------------------------------------------------------------------------------------------------


def with_job_defaults(job: dict[str, Any]) -> dict[str, Any]:
    """Those of a Job; the template in a CronJob does not have them. A Job without labels gets those of its pods."""
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


def job_created(job: dict[str, Any]) -> dict[str, Any]:
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
