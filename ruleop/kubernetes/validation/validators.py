"""The validators of the built-in kinds, with the defaults of their kinds. A kind without a validator is held to its
types alone."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.builtin.completion import as_stored, complete
from ruleop.kubernetes.builtin.kind_defaults import (
    as_allocated,
    with_encoded_data,
    with_job_defaults,
    with_labels_of_template,
    with_pod_defaults,
    with_selector,
    with_service_defaults,
    with_sources_of_new,
    with_template_number,
)
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.validation import core, networking, pods, policy, workloads
from ruleop.kubernetes.validation.custom_resource_definitions import (
    CUSTOM_RESOURCE_DEFINITION,
    defaulted,
    rule_warnings,
)
from ruleop.kubernetes.validation.rules import table
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.field_errors import FieldError
    from ruleop.kubernetes.validation.rules import Check, Rows


# -- validators ------------------------------------------------------------------------------------------------------


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
        return list(_check(self)(new, old))


@functools.cache
def _check(validator: Validator) -> Check:
    return table(validator.rows)


ACCEPTING: Final = Validator()

VALIDATORS: Final[Mapping[tuple[str, str], Validator]] = {
    ("", "ConfigMap"): Validator(core.CONFIG_MAP),
    ("", "Event"): Validator(core.EVENT),
    ("", "PersistentVolume"): Validator(core.VOLUME),
    ("", "PersistentVolumeClaim"): Validator(core.CLAIM, prepare=with_sources_of_new),
    ("", "Pod"): Validator(pods.POD, default=with_pod_defaults),
    ("", "ReplicationController"): Validator(default=with_labels_of_template),
    ("", "Secret"): Validator(core.SECRET, default=with_encoded_data),
    ("", "Service"): Validator(core.SERVICE, default=with_service_defaults, prepare=as_allocated),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Validator(
        CUSTOM_RESOURCE_DEFINITION,
        default=defaulted,
        warn=rule_warnings,
    ),
    ("apps", "DaemonSet"): Validator(workloads.DAEMON_SET, default=with_template_number),
    ("apps", "Deployment"): Validator(workloads.DEPLOYMENT),
    ("apps", "ReplicaSet"): Validator(workloads.REPLICA_SET),
    ("apps", "StatefulSet"): Validator(workloads.STATEFUL_SET),
    ("autoscaling", "HorizontalPodAutoscaler"): Validator(workloads.AUTOSCALER),
    ("batch", "CronJob"): Validator(workloads.CRON_JOB),
    ("batch", "Job"): Validator(workloads.JOB, default=with_job_defaults, prepare=with_selector),
    ("coordination.k8s.io", "Lease"): Validator(policy.LEASE),
    ("discovery.k8s.io", "EndpointSlice"): Validator(networking.ENDPOINT_SLICE),
    ("events.k8s.io", "Event"): Validator(core.EVENT),
    ("networking.k8s.io", "Ingress"): Validator(networking.INGRESS),
    ("networking.k8s.io", "IngressClass"): Validator(networking.INGRESS_CLASS),
    ("networking.k8s.io", "NetworkPolicy"): Validator(networking.NETWORK_POLICY),
    ("policy", "PodDisruptionBudget"): Validator(policy.BUDGET),
    (policy.GROUP, "ClusterRole"): Validator(policy.CLUSTER_ROLE),
    (policy.GROUP, "ClusterRoleBinding"): Validator(policy.CLUSTER_ROLE_BINDING),
    (policy.GROUP, "Role"): Validator(policy.ROLE),
    (policy.GROUP, "RoleBinding"): Validator(policy.ROLE_BINDING),
    ("scheduling.k8s.io", "PriorityClass"): Validator(policy.PRIORITY_CLASS),
    ("storage.k8s.io", "StorageClass"): Validator(core.STORAGE_CLASS),
}


def find_validator(group: str, kind: str) -> Validator:
    return VALIDATORS.get((group, kind), ACCEPTING)


# -- errors of new objects, beyond those that their schemas state ----------------------------------------------------


_UID: Final = "00000000-0000-0000-0000-000000000000"  # a Job's labels have its uid


def creation_errors(obj: Object) -> list[FieldError]:
    """The errors of an object whose fields have the right types, which schemas do not state for its name; none of a
    kind that is not known."""
    kind = Kind.of(obj)
    shape = typed_shape(kind)
    if shape is None or kind.kind == "Event":  # an Event has the namespace of another object
        return []
    if not isinstance(obj["metadata"].get("name"), str):
        return []
    validator = find_validator(kind.group, kind.kind)
    metadata = {"namespace": "default", "uid": _UID, **obj["metadata"]}
    new = as_stored(validator.default(complete({**obj, "metadata": metadata}, shape)), shape)
    return list(validator.validate(validator.prepare(new), None))
