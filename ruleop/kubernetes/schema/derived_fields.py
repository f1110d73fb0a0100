"""Fields that the API server fills in from other fields of the same object and then keeps.

The server fills them in when they are missing, not when their source changes. So the value that it derived from an
earlier source stays: a `serviceAccountName` cannot be removed beside the `serviceAccount` that was copied from it, and
a NetworkPolicy whose egress rules are removed denies all egress, because of its `policyTypes`. A merge needs to know
the value that the server would derive now (`ruleop.kubernetes.merge.server_changes`).

The table is taken from the conversions and SetDefaults functions of k8s.io/kubernetes/pkg/apis and the strategies of
pkg/registry. A field belongs here if its value depends on another field that may change. Defaults that depend on
nothing are in `ruleop.kubernetes.schema.openapi`. Not here:

- fields that the server itself updates: a Service's node ports, traffic policies and addresses when its `type` changes,
  and its `sessionAffinityConfig`; the members of a Deployment's `strategy`, which exclude each other by the API's
  declaration;
- fields that are immutable, like their source: a Job's `completions`; a kind's `singular` and `listKind`; a Pod's
  `requests` (from its limits), `hostPort` (from hostNetwork) and `imagePullPolicy`. Pod templates have no default for
  requests;
- fields inside a list that is replaced as a whole, and so filled in again: the items of a LimitRange, an autoscaler's
  metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kubernetes.kinds import JSON, Object

ANYTHING: Final[Any] = object()
"""Only the server can compute the value."""


@dataclass(frozen=True, slots=True)
class Derived:
    """One field of a type. `value` computes it from the map that holds it and from the object of that type; None if the
    server leaves it out. `within` is the path from the type to that map; a list on the path stands for each of its
    items. `restored`: when an update removes the field, the server restores the old value."""

    field: str
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


def _is_rolling_update(strategy: Object) -> bool:
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def _for_rolling_update(**defaults: JSON) -> Callable[[Object, Object], JSON]:
    return lambda strategy, _: defaults if _is_rolling_update(strategy) else None


def _family_policy(spec: Object, _: Object) -> JSON:
    if spec.get("type") == "ExternalName":
        return None
    return "RequireDualStack" if spec.get("clusterIP") == "None" and not spec.get("selector") else "SingleStack"


def _labels_of_template(spec: Object, _: Object) -> JSON:
    labels: JSON = spec
    for name in ("template", "metadata", "labels"):
        labels = labels.get(name) if type(labels) is dict else None
    return labels or None


_CORE = "io.k8s.api.core.v1"
_CONTAINERS = (("spec", "containers"), ("spec", "initContainers"))

DERIVED: Mapping[str, tuple[Derived, ...]] = {
    # serviceAccount is a deprecated alias. serviceAccountName wins over it, and is filled in from it.
    f"{_CORE}.PodSpec": (
        Derived("serviceAccount", _copy_of("serviceAccountName")),
        Derived("serviceAccountName", _copy_of("serviceAccount")),
    ),
    # Only in templates: of a Pod, the image may change and the pull policy may not.
    f"{_CORE}.PodTemplateSpec": (
        *(Derived("imagePullPolicy", _pull_policy("image"), path) for path in _CONTAINERS),
        # Servers before 1.28 filled in host ports in templates too, and these are still stored.
        *(Derived("hostPort", _host_port, (*path, "ports")) for path in _CONTAINERS),
    ),
    f"{_CORE}.ImageVolumeSource": (Derived("pullPolicy", _pull_policy("reference")),),
    # "Egress" without rules denies all egress; rules without "Egress" have no effect.
    "io.k8s.api.networking.v1.NetworkPolicySpec": (Derived("policyTypes", _policy_types),),
    # An older and a newer name, each filled in from the other. Both are immutable, but the server rejects only the
    # removal of both.
    f"{_CORE}.PersistentVolumeClaimSpec": (
        Derived("dataSource", _copy_of("dataSourceRef")),
        Derived("dataSourceRef", _copy_of("dataSource")),
    ),
    f"{_CORE}.ServiceSpec": (
        # The server releases an address only for `type: ExternalName`; else it restores both.
        Derived("clusterIPs", lambda spec, _: [spec["clusterIP"]] if spec.get("clusterIP") else None),
        # RequireDualStack for a headless Service without selector, also in a cluster with one family, which rejects it
        # beside a selector.
        Derived("ipFamilyPolicy", _family_policy, restored=True),
    ),
    # Beside `type: OnDelete`, rejected in a StatefulSet and without effect in a DaemonSet.
    "io.k8s.api.apps.v1.StatefulSetUpdateStrategy": (
        Derived("rollingUpdate", _for_rolling_update(partition=0, maxUnavailable=1)),
    ),
    "io.k8s.api.apps.v1.DaemonSetUpdateStrategy": (
        Derived("rollingUpdate", _for_rolling_update(maxUnavailable=1, maxSurge=0)),
        Derived("maxUnavailable", lambda _, strategy: int(_is_rolling_update(strategy)), ("rollingUpdate",)),
    ),
    # Rejected if it does not match the template's labels.
    f"{_CORE}.ReplicationControllerSpec": (Derived("selector", _labels_of_template),),
    # Aggregated by a controller; without the aggregation rule the permissions would stay.
    "io.k8s.api.rbac.v1.ClusterRole": (
        Derived("rules", lambda role, _: ANYTHING if role.get("aggregationRule") else None),
    ),
}
