"""The validators of the built-in kinds. A kind without one is held to its types alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.validation.apiextensions.cel_rules import rule_warnings
from ruleop.core.validation.apiextensions.custom_resource_definition import (
    defaulted,
    validate_custom_resource_definition,
)
from ruleop.core.validation.apps.daemon_set import validate_daemon_set, with_template_number
from ruleop.core.validation.apps.deployment import validate_deployment, validate_deployment_status
from ruleop.core.validation.apps.replica_set import validate_replica_set
from ruleop.core.validation.apps.stateful_set import (
    stateful_set_warnings,
    validate_stateful_set,
    validate_stateful_set_status,
)
from ruleop.core.validation.autoscaling.horizontal_pod_autoscaler import (
    validate_horizontal_pod_autoscaler,
    validate_horizontal_pod_autoscaler_status,
)
from ruleop.core.validation.batch.cron_job import validate_cron_job
from ruleop.core.validation.batch.job import validate_job, with_job_defaults, with_selector
from ruleop.core.validation.coordination.lease import validate_lease
from ruleop.core.validation.core.config_map import validate_config_map
from ruleop.core.validation.core.event import validate_event
from ruleop.core.validation.core.persistent_volume import validate_persistent_volume
from ruleop.core.validation.core.persistent_volume_claim import (
    claim_warnings,
    validate_persistent_volume_claim,
    with_sources_of_new,
)
from ruleop.core.validation.core.pod import validate_pod, with_pod_defaults
from ruleop.core.validation.core.pod_warnings import named_after, of_template, pod_warnings
from ruleop.core.validation.core.secret import secret_warnings, validate_secret, with_encoded_data
from ruleop.core.validation.core.service import (
    as_allocated,
    service_warnings,
    validate_load_balancer_status,
    validate_service,
    validate_service_status,
    with_service_defaults,
)
from ruleop.core.validation.discovery.endpoint_slice import validate_endpoint_slice
from ruleop.core.validation.networking.ingress import ingress_warnings, validate_ingress
from ruleop.core.validation.networking.ingress_class import validate_ingress_class
from ruleop.core.validation.networking.network_policy import policy_warnings, validate_network_policy
from ruleop.core.validation.policy.pod_disruption_budget import (
    validate_pod_disruption_budget,
    validate_pod_disruption_budget_status,
)
from ruleop.core.validation.rbac.roles import GROUP, validate_role, validate_role_binding
from ruleop.core.validation.scheduling.priority_class import validate_priority_class
from ruleop.core.validation.storage.storage_class import validate_storage_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError


def _same(obj: dict[str, Any]) -> dict[str, Any]:
    return obj


def with_labels_of_template(obj: dict[str, Any]) -> dict[str, Any]:
    labels = ((obj["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if not labels or obj["metadata"].get("labels"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def _accept(_new: Object, _old: Object | None) -> list[Any]:
    return []


@dataclass(frozen=True, slots=True)
class Validator:
    """Validates the objects of a kind whose fields have the right types and their types' defaults."""

    default: Callable[[dict[str, Any]], dict[str, Any]] = _same  # the object with the defaults of its kind
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = _same  # a new one as if what the server generates were there
    validate: Callable[[Object, Object | None], Iterable[FieldError]] = _accept  # (new, old): why it is not accepted
    validate_status: Callable[[Object, Object | None], Iterable[FieldError]] = (
        _accept  # of an update of the status alone
    )
    warn: Callable[[Object, Object | None], list[str]] = _accept  # (new, old): what its author should know


ACCEPTING: Final = Validator()
_TEMPLATE: Final = ("spec", "template")

VALIDATORS: Final[Mapping[tuple[str, str], Validator]] = {
    ("", "ConfigMap"): Validator(validate=validate_config_map),
    ("", "Event"): Validator(validate=validate_event),
    ("", "PersistentVolume"): Validator(validate=validate_persistent_volume),
    ("", "PersistentVolumeClaim"): Validator(
        prepare=with_sources_of_new, validate=validate_persistent_volume_claim, warn=claim_warnings
    ),
    ("", "Pod"): Validator(default=with_pod_defaults, validate=validate_pod, warn=pod_warnings),
    ("", "ReplicationController"): Validator(default=with_labels_of_template),
    ("", "Secret"): Validator(default=with_encoded_data, validate=validate_secret, warn=secret_warnings),
    ("", "Service"): Validator(
        default=with_service_defaults,
        prepare=as_allocated,
        validate=validate_service,
        validate_status=validate_service_status,
        warn=service_warnings,
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Validator(
        default=defaulted, validate=validate_custom_resource_definition, warn=rule_warnings
    ),
    ("apps", "DaemonSet"): Validator(
        default=with_template_number, validate=validate_daemon_set, warn=of_template(*_TEMPLATE)
    ),
    ("apps", "Deployment"): Validator(
        validate=validate_deployment, validate_status=validate_deployment_status, warn=named_after(*_TEMPLATE)
    ),
    ("apps", "ReplicaSet"): Validator(validate=validate_replica_set, warn=of_template(*_TEMPLATE)),
    ("apps", "StatefulSet"): Validator(
        validate=validate_stateful_set, validate_status=validate_stateful_set_status, warn=stateful_set_warnings
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Validator(
        validate=validate_horizontal_pod_autoscaler, validate_status=validate_horizontal_pod_autoscaler_status
    ),
    ("batch", "CronJob"): Validator(validate=validate_cron_job, warn=named_after("spec", "jobTemplate", *_TEMPLATE)),
    ("batch", "Job"): Validator(
        default=with_job_defaults, prepare=with_selector, validate=validate_job, warn=named_after(*_TEMPLATE)
    ),
    ("coordination.k8s.io", "Lease"): Validator(validate=validate_lease),
    ("discovery.k8s.io", "EndpointSlice"): Validator(validate=validate_endpoint_slice),
    ("events.k8s.io", "Event"): Validator(validate=validate_event),
    ("networking.k8s.io", "Ingress"): Validator(
        validate=validate_ingress, validate_status=validate_load_balancer_status, warn=ingress_warnings
    ),
    ("networking.k8s.io", "IngressClass"): Validator(validate=validate_ingress_class),
    ("networking.k8s.io", "NetworkPolicy"): Validator(validate=validate_network_policy, warn=policy_warnings),
    ("policy", "PodDisruptionBudget"): Validator(
        validate=validate_pod_disruption_budget, validate_status=validate_pod_disruption_budget_status
    ),
    (GROUP, "ClusterRole"): Validator(validate=validate_role),
    (GROUP, "ClusterRoleBinding"): Validator(validate=validate_role_binding),
    (GROUP, "Role"): Validator(validate=validate_role),
    (GROUP, "RoleBinding"): Validator(validate=validate_role_binding),
    ("scheduling.k8s.io", "PriorityClass"): Validator(validate=validate_priority_class),
    ("storage.k8s.io", "StorageClass"): Validator(validate=validate_storage_class),
}


def find_validator(group: str, kind: str) -> Validator:
    return VALIDATORS.get((group, kind), ACCEPTING)
