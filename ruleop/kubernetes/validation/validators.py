"""The validators of the built-in kinds. A kind without one is held to its types alone."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.validation import defaults
from ruleop.kubernetes.validation.apiextensions.cel_rules import rule_warnings
from ruleop.kubernetes.validation.apiextensions.custom_resource_definition import (
    defaulted,
    validate_custom_resource_definition,
)
from ruleop.kubernetes.validation.rows import RuleTable
from ruleop.kubernetes.validation.rules import At, placed
from ruleop.kubernetes.validation.tables import (
    apps,
    autoscaling,
    batch,
    core,
    networking,
    pods,
    policy,
    rbac,
    storage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.field_errors import FieldError
    from ruleop.kubernetes.validation.rows import Rows


def _same(obj: dict[str, Any]) -> dict[str, Any]:
    return obj


def _silent(_new: Object, _old: Object | None) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, eq=False)
class Validator:
    """Validates the objects of a kind whose fields have the right types and their types' defaults."""

    rows: Rows = ()
    default: Callable[[dict[str, Any]], dict[str, Any]] = _same  # the object with the defaults of its kind
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = _same  # a new one as if what the server generates were there

    warn: Callable[[Object, Object | None], list[str]] = _silent  # what the author of a new version should know

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        """The reasons why a new version of an object is not accepted."""
        return _table(self).errors(new, At("", old, new, old))


@functools.cache
def _table(validator: Validator) -> RuleTable:
    return RuleTable(validator.rows)


ACCEPTING: Final = Validator()

VALIDATORS: Final[Mapping[tuple[str, str], Validator]] = {
    ("", "ConfigMap"): Validator(core.CONFIG_MAP),
    ("", "Event"): Validator(core.EVENT),
    ("", "PersistentVolume"): Validator(storage.VOLUME),
    ("", "PersistentVolumeClaim"): Validator(storage.CLAIM, prepare=defaults.with_sources_of_new),
    ("", "Pod"): Validator(pods.POD, default=defaults.with_pod_defaults),
    ("", "ReplicationController"): Validator(default=defaults.with_labels_of_template),
    ("", "Secret"): Validator(core.SECRET, default=defaults.with_encoded_data),
    ("", "Service"): Validator(core.SERVICE, default=defaults.with_service_defaults, prepare=defaults.as_allocated),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Validator(
        placed(lambda new, at: validate_custom_resource_definition(new, at.old_root)),
        default=defaulted,
        warn=rule_warnings,
    ),
    ("apps", "DaemonSet"): Validator(apps.DAEMON_SET, default=defaults.with_template_number),
    ("apps", "Deployment"): Validator(apps.DEPLOYMENT),
    ("apps", "ReplicaSet"): Validator(apps.REPLICA_SET),
    ("apps", "StatefulSet"): Validator(apps.STATEFUL_SET),
    ("autoscaling", "HorizontalPodAutoscaler"): Validator(autoscaling.AUTOSCALER),
    ("batch", "CronJob"): Validator(batch.CRON_JOB),
    ("batch", "Job"): Validator(batch.JOB, default=defaults.with_job_defaults, prepare=defaults.with_selector),
    ("coordination.k8s.io", "Lease"): Validator(policy.LEASE),
    ("discovery.k8s.io", "EndpointSlice"): Validator(policy.ENDPOINT_SLICE),
    ("events.k8s.io", "Event"): Validator(core.EVENT),
    ("networking.k8s.io", "Ingress"): Validator(networking.INGRESS),
    ("networking.k8s.io", "IngressClass"): Validator(networking.INGRESS_CLASS),
    ("networking.k8s.io", "NetworkPolicy"): Validator(networking.NETWORK_POLICY),
    ("policy", "PodDisruptionBudget"): Validator(policy.BUDGET),
    (rbac.GROUP, "ClusterRole"): Validator(rbac.CLUSTER_ROLE),
    (rbac.GROUP, "ClusterRoleBinding"): Validator(rbac.CLUSTER_ROLE_BINDING),
    (rbac.GROUP, "Role"): Validator(rbac.ROLE),
    (rbac.GROUP, "RoleBinding"): Validator(rbac.ROLE_BINDING),
    ("scheduling.k8s.io", "PriorityClass"): Validator(policy.PRIORITY_CLASS),
    ("storage.k8s.io", "StorageClass"): Validator(storage.STORAGE_CLASS),
}


def find_validator(group: str, kind: str) -> Validator:
    return VALIDATORS.get((group, kind), ACCEPTING)
