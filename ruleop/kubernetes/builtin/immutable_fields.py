"""Immutable fields of Kubernetes' own kinds.

The operator does not ask this table: it sends the change, and the API server decides, which may be newer than the
table. What has no server to ask does: `plan` and the dry run foresee the refusal, and the API server in memory refuses
by the same table, in the words of the real one.

The table is taken from the update validation of k8s.io/kubernetes/pkg/apis and pkg/registry. Only what depends on the
two versions of the object is here: whether a StorageClass lets a claim grow, for example, is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection

    from ruleop.kubernetes.kinds import Object

STATEFUL_MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
"""The fields that may change in the spec of a StatefulSet, in the order of the server's message."""

_JOB: Final = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_WHILE_SUSPENDED: Final = ("affinity", "nodeSelector", "tolerations", "schedulingGates", "schedulingGroup")
_OF_PODS: Final = ("activeDeadlineSeconds", "tolerations", "nodeName", "schedulingGates")
_GRACE: Final = "terminationGracePeriodSeconds"
_RBAC: Final = "rbac.authorization.k8s.io"

Changes: TypeAlias = Callable[["Object", "Object"], Iterator[str]]


def immutable_changes(new: Object, old: Object | None) -> list[str]:
    """The paths of immutable fields that differ in a new version of an object; none of a new object, or of a kind that
    is not known."""
    group = str(new.get("apiVersion", "")).rpartition("/")[0]
    changes = _KINDS.get((group, str(new.get("kind", ""))))
    return list(changes(new, old)) if changes is not None and old is not None else []


def value_at(obj: Object, path: str) -> Any:
    """The value of a field such as `spec.selector`; None if it is missing."""
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def needs_health_check(service: Object) -> bool:
    """Whether the spec of a Service has a health check's node port."""
    return service.get("type") == "LoadBalancer" and service.get("externalTrafficPolicy") == "Local"


def claim_parts(new: Object, old: Object) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parts of the specs of a claim that have to be equal: the size of a bound one may change, and what it did not
    ask for may be filled in."""
    after, before = dict(_map(new, "spec")), dict(_map(old, "spec"))
    if not before.get("volumeName") and "volumeName" in after:
        before["volumeName"] = after["volumeName"]
    if "storageClassName" not in before and "storageClassName" in after:
        del after["storageClassName"]
    if _map(old, "status").get("phase") != "Bound":
        return after, before
    resources = _map(after, "resources")
    if isinstance(requests := resources.get("requests"), Mapping):
        size = value_at(before, "resources.requests.storage")
        after["resources"] = {**resources, "requests": {**requests, "storage": size}}
    after.pop("volumeAttributesClassName", None)
    if "volumeAttributesClassName" in before:
        after["volumeAttributesClassName"] = before["volumeAttributesClassName"]
    return after, before


def _map(obj: Object, name: str) -> Mapping[str, Any]:
    found = obj.get(name)
    return found if isinstance(found, Mapping) else {}


def _list(obj: Object, name: str) -> list[Any]:
    found = obj.get(name)
    return found if isinstance(found, list) else []


def _fields(*paths: str) -> Changes:
    return lambda new, old: (path for path in paths if value_at(new, path) != value_at(old, path))


def _members(new: Object, old: Object, path: str, but: Collection[str] = ()) -> Iterator[str]:
    """The members of a part of both that differ."""
    for name in dict.fromkeys((*new, *old)):
        if name not in but and new.get(name) != old.get(name):
            yield f"{path}.{name}"


def _when_set(*names: str) -> Changes:
    """`immutable` of a ConfigMap or a Secret."""

    def changes(new: Object, old: Object) -> Iterator[str]:
        if old.get("immutable"):
            if not new.get("immutable"):
                yield "immutable"
            yield from (name for name in names if (new.get(name) or {}) != (old.get(name) or {}))

    return changes


def _secret(new: Object, old: Object) -> Iterator[str]:
    if (new.get("type") or "") != (old.get("type") or ""):
        yield "type"
    yield from _when_set("data")(new, old)


def _stateful_set(new: Object, old: Object) -> Iterator[str]:
    return _members(_map(new, "spec"), _map(old, "spec"), "spec", STATEFUL_MUTABLE)


def _job(new: Object, old: Object) -> Iterator[str]:
    spec, before = _map(new, "spec"), _map(old, "spec")
    if spec.get("completions") != before.get("completions") and spec.get("completionMode") != "Indexed":
        yield "spec.completions"
    if spec.get("selector") != before.get("selector"):
        yield "spec.selector"
    template, known = _map(spec, "template"), _map(before, "template")
    if not before.get("suspend"):
        if template != known:
            yield "spec.template"
    elif _pod_part(template, _WHILE_SUSPENDED, "resources") != _pod_part(known, _WHILE_SUSPENDED, "resources"):
        yield "spec.template.spec"  # where a suspended Job's pods will run, and what they need, may change
    yield from (f"spec.{name}" for name in _JOB if spec.get(name) != before.get(name))


def _pod(new: Object, old: Object) -> Iterator[str]:
    spec, before = (_pod_part(each, _OF_PODS, "image") for each in (new, old))
    is_mended = isinstance(grace := before.get(_GRACE), int) and grace < 0 and spec.get(_GRACE) == 1
    return _members(spec, before, "spec", (_GRACE,) if is_mended else ())


def _pod_part(pod: Object, may_change: Collection[str], of_containers: str) -> Mapping[str, Any]:
    """A pod's spec without the fields that may change: some of its own, and one of its containers."""
    found = {name: value for name, value in _map(pod, "spec").items() if name not in may_change}
    for part in ("containers", "initContainers"):
        if isinstance(containers := found.get(part), list):
            found[part] = [
                {name: each[name] for name in each if name != of_containers} if isinstance(each, Mapping) else each
                for each in containers
            ]
    return found


def _claim(new: Object, old: Object) -> Iterator[str]:
    return _members(*claim_parts(new, old), "spec")


def _service(new: Object, old: Object) -> Iterator[str]:
    spec, before = _map(new, "spec"), _map(old, "spec")
    addresses, known = (list(_list(each, "clusterIPs")) for each in (spec, before))
    if addresses in ([], known) and (first := spec.get("clusterIP")) != before.get("clusterIP"):
        addresses[:1] = [first]  # the server takes the first address from the older field
    headless = addresses == ["None"], known == ["None"]
    if "ExternalName" not in (spec.get("type"), before.get("type")) and not all(headless):
        for index, (one, other) in enumerate(zip(known, addresses, strict=False)):
            if one != other:
                yield f"spec.clusterIPs[{index}]"
        if not any(headless):
            families = zip(_list(before, "ipFamilies"), _list(spec, "ipFamilies"), strict=False)
            if any(one != other for one, other in families):
                yield "spec.ipFamilies[0]"
    if spec.get("type") == before.get("type") == "LoadBalancer":
        yield from _fields("spec.loadBalancerClass")(new, old)
    if needs_health_check(spec) and needs_health_check(before):
        yield from _fields("spec.healthCheckNodePort")(new, old)


def _definition(new: Object, old: Object) -> Iterator[str]:
    """Scope and kind of a CRD once it is served."""
    conditions = (each for each in _list(_map(old, "status"), "conditions") if isinstance(each, Mapping))
    if any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions):
        yield from _fields("spec.scope", "spec.names.kind")(new, old)
    yield from _fields("spec.group", "spec.names.plural")(new, old)


_SELECTOR: Final = _fields("spec.selector")
_KINDS: Final[Mapping[tuple[str, str], Changes]] = {
    ("", "ConfigMap"): _when_set("data", "binaryData"),
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "DaemonSet"): _SELECTOR,
    ("apps", "Deployment"): _SELECTOR,
    ("apps", "ReplicaSet"): _SELECTOR,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
    ("discovery.k8s.io", "EndpointSlice"): _fields("addressType"),
    ("networking.k8s.io", "IngressClass"): _fields("spec.controller"),
    (_RBAC, "ClusterRoleBinding"): _fields("roleRef"),
    (_RBAC, "RoleBinding"): _fields("roleRef"),
    ("scheduling.k8s.io", "PriorityClass"): _fields("value", "preemptionPolicy"),
    ("storage.k8s.io", "StorageClass"): _fields("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
}
