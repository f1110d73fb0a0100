"""What the server does to the objects of its built-in kinds beyond what their types say: `completion` has that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.kinds import (
    access,
    autoscalers,
    budgets,
    claims,
    configuration,
    ingresses,
    network_policies,
    plain,
    service_allocation,
    service_causes,
    services,
    storage,
    workloads,
)
from ruleop.localcluster.kinds.accepted_names import admitted
from ruleop.localcluster.kinds.custom import CLEANUP, defaulted
from ruleop.localcluster.kinds.definition_causes import definition_causes
from ruleop.localcluster.kinds.events import event_causes
from ruleop.localcluster.kinds.served import Strategy
from ruleop.localcluster.kinds.validation_rules import rule_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import Object


def _pod_grace(pod: Object) -> int:
    seconds = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return seconds if isinstance(seconds, int) else 30


_COUNTED: Final = Strategy(has_generation=True)
_TEMPLATE: Final = Strategy(has_generation=True, validate=workloads.selector_causes)
_ROLE: Final = Strategy(validate=access.role_causes, creates_on_update=True)
_BINDING: Final = Strategy(validate=access.binding_causes, creates_on_update=True)
_ADMISSION: Final = "admissionregistration.k8s.io"

STRATEGIES: Final[Mapping[tuple[str, str], Strategy]] = {
    ("", "ConfigMap"): Strategy(validate=configuration.config_map_causes),
    ("", "Endpoints"): Strategy(creates_on_update=True),
    ("", "LimitRange"): Strategy(creates_on_update=True),
    ("", "Event"): Strategy(validate=event_causes, creates_on_update=True),
    ("events.k8s.io", "Event"): Strategy(validate=event_causes, creates_on_update=True),
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
        validate=workloads.pod_causes,
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
    ("apps", "Deployment"): Strategy(has_generation=True, validate=workloads.deployment_causes),
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): Strategy(has_generation=True, validate=workloads.stateful_set_causes),
    ("apps", "DaemonSet"): Strategy(
        create=workloads.daemon_set_created,
        update=workloads.daemon_set_updated,
        has_generation=True,
        validate=workloads.selector_causes,
    ),
    ("batch", "Job"): Strategy(
        default=workloads.with_job_defaults,
        create=workloads.job_created,
        validate=workloads.job_causes,
        has_generation=True,
    ),
    ("batch", "CronJob"): Strategy(has_generation=True, validate=workloads.cron_job_causes),
    ("coordination.k8s.io", "Lease"): Strategy(unconditional_update=False, creates_on_update=True),
    ("autoscaling", "HorizontalPodAutoscaler"): Strategy(
        validate=autoscalers.autoscaler_causes, validate_status=autoscalers.autoscaler_status_causes
    ),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(has_generation=True, validate=plain.slice_causes),
    ("networking.k8s.io", "Ingress"): Strategy(
        has_generation=True,
        validate=ingresses.ingress_causes,
        validate_status=ingresses.ingress_status_causes,
        warn=ingresses.ingress_warnings,
    ),
    ("networking.k8s.io", "IngressClass"): Strategy(has_generation=True, validate=ingresses.class_causes),
    ("networking.k8s.io", "NetworkPolicy"): Strategy(
        has_generation=True,
        compares_empty=network_policies.has_empty_fields,
        validate=network_policies.policy_causes,
        warn=network_policies.policy_warnings,
    ),
    ("policy", "PodDisruptionBudget"): Strategy(
        has_generation=True,
        validate=budgets.budget_causes,
        validate_status=budgets.budget_status_causes,
        unconditional_update=False,
    ),
    (access.GROUP, "Role"): _ROLE,
    (access.GROUP, "ClusterRole"): _ROLE,
    (access.GROUP, "RoleBinding"): _BINDING,
    (access.GROUP, "ClusterRoleBinding"): _BINDING,
    ("scheduling.k8s.io", "PriorityClass"): Strategy(has_generation=True, validate=plain.priority_class_causes),
    ("storage.k8s.io", "StorageClass"): Strategy(validate=storage.class_causes),
    **{(_ADMISSION, kind): _COUNTED for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")},
    **{(_ADMISSION, kind): _COUNTED for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")},
}
