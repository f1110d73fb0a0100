"""Pods: their first status, admission, and what an update keeps."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.validation import service_class
from ruleop.localcluster.kinds.resources import PRIORITY_CLASSES, SERVICE_ACCOUNTS
from ruleop.localcluster.object_store import Name
from ruleop.localcluster.status_errors import forbidden

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.object_store import Store

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
    if all(
        any(mount.get("mountPath") == _TOKEN_PATH for mount in each.get("volumeMounts") or [])
        for each in spec.get("containers") or []
    ):
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
