"""What the server does to the objects of its built-in kinds beyond what their types say: `completion` has that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.kinds import (
    access_causes,
    autoscaler_causes,
    budget_causes,
    claims,
    configuration,
    endpoint_slice_causes,
    ingress_causes,
    job_causes,
    network_policy_causes,
    plain,
    service_allocation,
    service_causes,
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
from ruleop.localcluster.kinds.pod_warnings import named_after, of_template, pod_warnings, stateful_set_warnings
from ruleop.localcluster.kinds.served import Strategy
from ruleop.localcluster.kinds.validation_rules import rule_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import Object


def _pod_grace(pod: Object) -> int:
    seconds = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return seconds if isinstance(seconds, int) else 30


_COUNTED: Final = Strategy(has_generation=True)
_WEBHOOKS: Final = Strategy(has_generation=True, counted=("webhooks",))
_ROLE: Final = Strategy(validate=access_causes.role_causes, creates_on_update=True)
_BINDING: Final = Strategy(validate=access_causes.binding_causes, creates_on_update=True)
_EVENT: Final = Strategy(validate=event_causes, creates_on_update=True)
_ADMISSION: Final = "admissionregistration.k8s.io"

STRATEGIES: Final[Mapping[tuple[str, str], Strategy]] = {
    ("", "ConfigMap"): Strategy(validate=configuration.config_map_causes),
    ("", "Endpoints"): Strategy(creates_on_update=True),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "LimitRange"): Strategy(creates_on_update=True),
    ("", "Namespace"): Strategy(create=plain.namespace_created, update=plain.namespace_updated),
    ("", "Node"): Strategy(create=plain.node_created),
    ("", "PersistentVolume"): Strategy(create=storage.volume_created),
    ("", "PersistentVolumeClaim"): Strategy(
        create=claims.claim_created,
        update=claims.claim_updated,
        admit=claims.admit_claim,
        validate=claims.claim_causes,
        warn=claims.claim_warnings,
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
    ("", "Secret"): Strategy(
        default=configuration.with_encoded_data,
        validate=configuration.secret_causes,
        warn=configuration.secret_warnings,
    ),
    ("", "Service"): Strategy(
        default=services.with_service_defaults,
        update=services.kept_on_update,
        admit=service_allocation.allocate,
        allocates_on_update=True,
        creates_on_update=True,
        validate=service_causes.service_causes,
        validate_status=service_causes.service_status_causes,
        warn=service_causes.service_warnings,
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
        has_generation=True,
        counted_metadata=("annotations",),
        validate=workload_causes.deployment_causes,
        validate_status=workload_causes.deployment_status_causes,
        warn=named_after("spec", "template"),
    ),
    ("apps", "ReplicaSet"): Strategy(
        has_generation=True, validate=workload_causes.replica_set_causes, warn=of_template("spec", "template")
    ),
    ("apps", "StatefulSet"): Strategy(
        has_generation=True,
        validate=workload_causes.stateful_set_causes,
        validate_status=workload_causes.stateful_set_status_causes,
        warn=stateful_set_warnings,
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
    ("coordination.k8s.io", "Lease"): Strategy(
        unconditional_update=False, creates_on_update=True, validate=plain.lease_causes
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Strategy(
        validate=autoscaler_causes.autoscaler_causes, validate_status=autoscaler_causes.autoscaler_status_causes
    ),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(
        has_generation=True,
        counted=("addressType", "endpoints", "ports"),
        counted_metadata=("labels",),
        validate=endpoint_slice_causes.slice_causes,
    ),
    ("networking.k8s.io", "Ingress"): Strategy(
        has_generation=True,
        validate=ingress_causes.ingress_causes,
        validate_status=ingress_causes.ingress_status_causes,
        warn=ingress_causes.ingress_warnings,
    ),
    ("networking.k8s.io", "IngressClass"): Strategy(has_generation=True, validate=ingress_causes.class_causes),
    ("networking.k8s.io", "NetworkPolicy"): Strategy(
        has_generation=True,
        compares_empty=network_policy_causes.has_empty_fields,
        validate=network_policy_causes.policy_causes,
        warn=network_policy_causes.policy_warnings,
    ),
    ("policy", "PodDisruptionBudget"): Strategy(
        has_generation=True,
        checks_metadata_last=True,
        validate=budget_causes.budget_causes,
        validate_status=budget_causes.budget_status_causes,
        unconditional_update=False,
    ),
    **{(access_causes.GROUP, kind): _ROLE for kind in ("Role", "ClusterRole")},
    **{(access_causes.GROUP, kind): _BINDING for kind in ("RoleBinding", "ClusterRoleBinding")},
    ("scheduling.k8s.io", "PriorityClass"): Strategy(
        has_generation=True, counted=(), validate=plain.priority_class_causes
    ),
    ("storage.k8s.io", "StorageClass"): Strategy(validate=storage.class_causes),
    **{(_ADMISSION, kind): _COUNTED for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")},
    **{(_ADMISSION, kind): _WEBHOOKS for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")},
}
