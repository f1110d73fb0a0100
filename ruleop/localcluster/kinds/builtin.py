"""What the server does to the objects of its built-in kinds beyond what their types say: `completion` has that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.kinds import (
    access_causes,
    job_causes,
    network_causes,
    plain,
    services,
    storage,
    workload_causes,
    workloads,
)
from ruleop.localcluster.kinds.accepted_names import admitted
from ruleop.localcluster.kinds.custom import CLEANUP, defaulted
from ruleop.localcluster.kinds.definition_causes import definition_causes
from ruleop.localcluster.kinds.events import event_causes
from ruleop.localcluster.kinds.pod_causes import pod_causes
from ruleop.localcluster.kinds.pod_warnings import named_after, of_template, pod_warnings
from ruleop.localcluster.kinds.served import Strategy
from ruleop.localcluster.kinds.service_causes import service_causes
from ruleop.localcluster.kinds.validation_rules import rule_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import Object


def _pod_grace(pod: Object) -> int:
    seconds = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return seconds if isinstance(seconds, int) else 30


_COUNTED: Final = Strategy(has_generation=True)
_DATA: Final = Strategy(validate=plain.data_causes)
_BINDING: Final = Strategy(validate=access_causes.binding_causes)
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"

CREATED_BY_UPDATE: Final = frozenset(
    {
        *(("", kind) for kind in ("Endpoints", "Event", "LimitRange", "Service")),
        *((_RBAC, kind) for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
        ("coordination.k8s.io", "Lease"),
        ("events.k8s.io", "Event"),
        ("node.k8s.io", "RuntimeClass"),
    }
)
"""Kinds of which a PUT creates what is missing."""

STRATEGIES: Final[Mapping[tuple[str, str], Strategy]] = {
    ("", "ConfigMap"): _DATA,
    ("", "Event"): Strategy(validate=event_causes),
    ("events.k8s.io", "Event"): Strategy(validate=event_causes),
    ("", "Namespace"): Strategy(create=plain.namespace_created, update=plain.namespace_updated),
    ("", "Node"): Strategy(create=plain.node_created),
    ("", "PersistentVolume"): Strategy(create=storage.volume_created),
    ("", "PersistentVolumeClaim"): Strategy(
        create=storage.claim_created, admit=storage.admit_claim, validate=storage.claim_causes
    ),
    ("", "Pod"): Strategy(
        default=workloads.with_pod_defaults,
        create=workloads.pod_created,
        admit=workloads.admit_pod,
        validate=pod_causes,
        update=workloads.pod_updated,
        warn=pod_warnings,
        has_generation=True,
        grace=_pod_grace,
    ),
    ("", "Secret"): Strategy(default=plain.with_encoded_data, validate=plain.data_causes),
    ("", "Service"): Strategy(
        default=services.with_service_defaults,
        update=services.kept_on_update,
        admit=services.allocate,
        allocates_on_update=True,
        validate=service_causes,
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Strategy(
        default=defaulted,
        admit=admitted,
        allocates_on_update=True,
        validate=definition_causes,
        warn=rule_warnings,
        has_generation=True,
        finalizers=(CLEANUP,),
        unconditional_update=False,
    ),
    ("apps", "Deployment"): Strategy(
        has_generation=True, validate=workload_causes.deployment_causes, warn=named_after("spec", "template")
    ),
    ("apps", "ReplicaSet"): Strategy(
        has_generation=True, validate=workload_causes.replica_set_causes, warn=of_template("spec", "template")
    ),
    ("apps", "StatefulSet"): Strategy(
        has_generation=True, validate=workload_causes.stateful_set_causes, warn=of_template("spec", "template")
    ),
    ("apps", "DaemonSet"): Strategy(
        default=workloads.with_template_number,
        create=workloads.daemon_set_created,
        update=workloads.daemon_set_updated,
        has_generation=True,
        validate=workload_causes.daemon_set_causes,
        warn=of_template("spec", "template"),
    ),
    ("batch", "Job"): Strategy(
        default=workloads.with_job_defaults,
        create=workloads.job_created,
        validate=job_causes.job_causes,
        orphans=True,
        warn=named_after("spec", "template"),
        has_generation=True,
    ),
    ("batch", "CronJob"): Strategy(
        has_generation=True,
        validate=job_causes.cron_job_causes,
        warn=named_after("spec", "jobTemplate", "spec", "template"),
    ),
    ("coordination.k8s.io", "Lease"): Strategy(unconditional_update=False),
    ("autoscaling", "HorizontalPodAutoscaler"): Strategy(validate=plain.autoscaler_causes),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(has_generation=True, validate=plain.slice_causes),
    ("networking.k8s.io", "Ingress"): Strategy(has_generation=True, validate=network_causes.ingress_causes),
    ("networking.k8s.io", "IngressClass"): _COUNTED,
    ("networking.k8s.io", "NetworkPolicy"): Strategy(has_generation=True, validate=network_causes.policy_causes),
    ("policy", "PodDisruptionBudget"): Strategy(
        has_generation=True, validate=plain.budget_causes, unconditional_update=False
    ),
    **{(_RBAC, kind): Strategy(validate=access_causes.role_causes) for kind in ("Role", "ClusterRole")},
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    ("scheduling.k8s.io", "PriorityClass"): Strategy(has_generation=True, validate=plain.priority_class_causes),
    ("storage.k8s.io", "StorageClass"): Strategy(validate=storage.class_causes),
    **{(_ADMISSION, kind): _COUNTED for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")},
    **{(_ADMISSION, kind): _COUNTED for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")},
}
