"""Fields that the API server fills in from other fields of the same object and then keeps.

The server fills them in when they are missing, not when their source changes. So what it made of an earlier source stays: beside a
`serviceAccount` that it copied, a `serviceAccountName` cannot be removed; a NetworkPolicy that lost its egress rules still denies
all egress, by `policyTypes`. A merge therefore needs to know what such a field would be (`ruleop.merge.derived`).

From the conversions and SetDefaults functions of k8s.io/kubernetes/pkg/apis and the strategies of pkg/registry. A field belongs here
when its value depends on another field that may change. What the server fills in regardless is in `ruleop.schema.filled`. Not here:

- what the server corrects by itself on an update: a Service's node ports, traffic policies and addresses when its `type` changes,
  `sessionAffinityConfig`, the type and members of a Deployment's `strategy`;
- what may not change, nor may its source: `completions` of a Job, a Pod's `requests` (from its limits) and `hostPort` (from
  hostNetwork), a Pod's `imagePullPolicy`. Pod templates have no default for requests;
- what lies in a list or map that is replaced as a whole, and is filled in again: the items of a LimitRange, an autoscaler's metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kinds import JSON, Object

ANYTHING: Final[Any] = object()
"""Nobody but the server decides the value, and it cannot be computed here."""


@dataclass(frozen=True, slots=True)
class Derived:
    """One field of a type. `value` is what the server makes of the field's siblings and the object of that type, None if it leaves the
    field out. `within` is the path from the type to the map with the field; a list on the way stands for each of its items. `restored`:
    an update that removes the field gets the old value back."""

    field: str
    source: str
    value: Callable[[Object, Object], JSON]
    within: tuple[str, ...] = ()
    restored: bool = False


def _copy_of(source: str) -> Callable[[Object, Object], JSON]:
    return lambda siblings, _: siblings.get(source) or None


def _pull_policy(image: str) -> Callable[[Object, Object], JSON]:
    """`Always` for the tag `latest`, which also stands for no tag and no digest."""

    def policy(siblings: Object, _: Object) -> JSON:
        named, digest = str(siblings.get(image) or "").partition("@")[::2]
        colon, tag = named.rpartition("/")[2].partition(":")[1:]
        return "Always" if tag == "latest" or not (colon or digest) else "IfNotPresent"

    return policy


def _host_port(port: Object, template: Object) -> JSON:
    return port.get("containerPort") if (template.get("spec") or {}).get("hostNetwork") else None


def _policy_types(spec: Object, _: Object) -> JSON:
    return ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _rolls(strategy: Object) -> bool:
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def _in_rolling_update(**defaults: JSON) -> Callable[[Object, Object], JSON]:
    return lambda strategy, _: defaults if _rolls(strategy) else None


def _family_policy(spec: Object, _: Object) -> JSON:
    if spec.get("type") == "ExternalName":
        return None
    return "RequireDualStack" if spec.get("clusterIP") == "None" and not spec.get("selector") else "SingleStack"


def _labels_of_template(spec: Object, _: Object) -> JSON:
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels") or None


_CORE = "io.k8s.api.core.v1"
_CONTAINERS = (("spec", "containers"), ("spec", "initContainers"))

DERIVED: Mapping[str, tuple[Derived, ...]] = {
    # The deprecated name is an alias: of two, the newer one counts, and of one, both are made.
    f"{_CORE}.PodSpec": (
        Derived("serviceAccount", "serviceAccountName", _copy_of("serviceAccountName")),
        Derived("serviceAccountName", "serviceAccount", _copy_of("serviceAccount")),
    ),
    # Templates only: in a Pod the image may change, and nothing that follows from it.
    f"{_CORE}.PodTemplateSpec": (
        *(Derived("imagePullPolicy", "image", _pull_policy("image"), path) for path in _CONTAINERS),
        # Servers before 1.28 filled these in in templates too, and what they stored is still there.
        *(Derived("hostPort", "hostNetwork", _host_port, (*path, "ports")) for path in _CONTAINERS),
    ),
    f"{_CORE}.ImageVolumeSource": (Derived("pullPolicy", "reference", _pull_policy("reference")),),
    # Filled in from the egress rules: left behind, it denies all egress; left out, egress rules have no effect.
    "io.k8s.api.networking.v1.NetworkPolicySpec": (Derived("policyTypes", "egress", _policy_types),),
    # An older and a newer name of one thing, each filled in from the other. Neither may change: the server says so if both go.
    f"{_CORE}.PersistentVolumeClaimSpec": (
        Derived("dataSource", "dataSourceRef", _copy_of("dataSourceRef")),
        Derived("dataSourceRef", "dataSource", _copy_of("dataSource")),
    ),
    f"{_CORE}.ServiceSpec": (
        # Only `type: ExternalName` gives an address up; else both come back.
        Derived("clusterIPs", "clusterIP", lambda spec, _: [spec["clusterIP"]] if spec.get("clusterIP") else None),
        # Headless without a selector, it is RequireDualStack even where the cluster has one family: then a selector would be refused.
        Derived("ipFamilyPolicy", "selector", _family_policy, restored=True),
    ),
    # Refused beside `type: OnDelete` in a StatefulSet, meaningless there in a DaemonSet.
    "io.k8s.api.apps.v1.StatefulSetUpdateStrategy": (Derived("rollingUpdate", "type", _in_rolling_update(partition=0, maxUnavailable=1)),),
    "io.k8s.api.apps.v1.DaemonSetUpdateStrategy": (
        Derived("rollingUpdate", "type", _in_rolling_update(maxUnavailable=1, maxSurge=0)),
        Derived("maxUnavailable", "type", lambda _, strategy: int(_rolls(strategy)), ("rollingUpdate",)),
    ),
    # Refused when it does not match the template's labels.
    f"{_CORE}.ReplicationControllerSpec": (Derived("selector", "template", _labels_of_template),),
    # Collected from other roles by a controller: permissions that would stay when their reason is gone.
    "io.k8s.api.rbac.v1.ClusterRole": (
        Derived("rules", "aggregationRule", lambda role, _: ANYTHING if role.get("aggregationRule") else None),
    ),
}
