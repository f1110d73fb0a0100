"""The fields of a child's body, and of the Pods that it makes: where the body of each built-in kind has their
template."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.kinds import GroupKind
from ruleop.language.templates.bodies.body import Body, BodyField, Printed
from ruleop.language.templates.compile.references import picked_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.language.templates.bodies.body import FieldPath

_TEMPLATES: Final[dict[tuple[str, str], FieldPath]] = {
    ("", "Pod"): (),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
MAKE_NOTHING: Final = frozenset(
    GroupKind(group, kind)
    for group, kinds in {
        "cert-manager.io": ("Certificate", "ClusterIssuer", "Issuer"),
        "external-secrets.io": ("ClusterSecretStore", "ExternalSecret", "SecretStore"),
        "gateway.networking.k8s.io": ("GRPCRoute", "HTTPRoute", "TCPRoute", "TLSRoute"),
        "keda.sh": ("ScaledObject", "TriggerAuthentication"),
        "monitoring.coreos.com": ("PodMonitor", "Probe", "PrometheusRule", "ServiceMonitor"),
        "networking.istio.io": ("DestinationRule", "ServiceEntry", "VirtualService"),
        "snapshot.storage.k8s.io": ("VolumeSnapshot",),
        "traefik.io": ("IngressRoute", "Middleware"),
    }.items()
    for kind in kinds
)
"""Custom kinds whose controllers make no Pods, and nothing but Secrets."""
CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})


def pod_template(kind: GroupKind) -> FieldPath | None:
    """The path of the Pods' metadata and spec; None of a kind that makes none."""
    return _TEMPLATES.get((kind.group, kind.kind))


def fields_of(body: Body) -> Iterator[BodyField]:
    """The fields of a body, with those that a slot picks by name: `{{ spec | pick('cpu') }}` alone on its line."""
    for field in body.fields:
        (slot, *others) = field.pieces or ("",)
        names = picked_names(slot.node) if isinstance(slot, Printed) and not others else None
        if names is None:
            yield field
        for name in names or ():
            yield replace(field, path=(*field.path, name), whole=False, spread=False)


def fields_of_pod(body: Body) -> Iterator[tuple[BodyField, FieldPath]]:
    """The fields of a body that belong to the spec of a Pod, with their paths in it."""
    template = pod_template(body.kind.versionless)
    if template is not None:
        prefix = (*template, "spec")
        for field in fields_of(body):
            if field.path[: len(prefix)] == prefix:
                yield field, field.path[len(prefix) :]
