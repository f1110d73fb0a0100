"""Changes by the server to the objects of its built-in kinds beyond their defaults and their validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.validation.batch.job import with_selector
from ruleop.core.validation.networking.network_policy import has_empty_fields
from ruleop.core.validation.rbac.roles import GROUP as RBAC
from ruleop.localcluster.kinds.apiextensions.accepted_names import CLEANUP, admitted
from ruleop.localcluster.kinds.apps.daemon_set import daemon_set_created, daemon_set_updated
from ruleop.localcluster.kinds.core.namespace import namespace_created, namespace_updated
from ruleop.localcluster.kinds.core.node import node_created
from ruleop.localcluster.kinds.core.persistent_volume import volume_created
from ruleop.localcluster.kinds.core.persistent_volume_claim import admit_claim, claim_created, claim_updated
from ruleop.localcluster.kinds.core.pod import admit_pod, grace_seconds, pod_created, pod_updated
from ruleop.localcluster.kinds.core.service import kept_on_update
from ruleop.localcluster.kinds.core.service_allocation import allocate
from ruleop.localcluster.kinds.served import Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping


_COUNTED: Final = Strategy(has_generation=True)
_WEBHOOKS: Final = Strategy(has_generation=True, counted=("webhooks",))
_UPSERTED: Final = Strategy(creates_on_update=True)
_ADMISSION: Final = "admissionregistration.k8s.io"

STRATEGIES: Final[Mapping[tuple[str, str], Strategy]] = {
    **{("", kind): _UPSERTED for kind in ("Endpoints", "Event", "LimitRange")},
    ("events.k8s.io", "Event"): _UPSERTED,
    ("", "Namespace"): Strategy(create=namespace_created, update=namespace_updated),
    ("", "Node"): Strategy(create=node_created),
    ("", "PersistentVolume"): Strategy(create=volume_created),
    ("", "PersistentVolumeClaim"): Strategy(create=claim_created, update=claim_updated, admit=admit_claim),
    ("", "Pod"): Strategy(
        create=pod_created,
        admit=admit_pod,
        update=pod_updated,
        has_generation=True,
        grace=grace_seconds,
    ),
    ("", "Service"): Strategy(
        update=kept_on_update,
        admit=allocate,
        allocates_on_update=True,
        creates_on_update=True,
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Strategy(
        admit=admitted,
        allocates_on_update=True,
        has_generation=True,
        finalizers=(CLEANUP,),
        unconditional_update=False,
    ),
    ("apps", "Deployment"): Strategy(has_generation=True, counted_metadata=("annotations",)),
    **{("apps", kind): _COUNTED for kind in ("ReplicaSet", "StatefulSet")},
    ("apps", "DaemonSet"): Strategy(create=daemon_set_created, update=daemon_set_updated, has_generation=True),
    ("batch", "Job"): Strategy(create=with_selector, orphans=True, has_generation=True),
    ("batch", "CronJob"): _COUNTED,
    ("coordination.k8s.io", "Lease"): Strategy(unconditional_update=False, creates_on_update=True),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(
        has_generation=True, counted=("addressType", "endpoints", "ports"), counted_metadata=("labels",)
    ),
    **{("networking.k8s.io", kind): _COUNTED for kind in ("Ingress", "IngressClass")},
    ("networking.k8s.io", "NetworkPolicy"): Strategy(has_generation=True, compares_empty=has_empty_fields),
    ("policy", "PodDisruptionBudget"): Strategy(
        has_generation=True, checks_metadata_last=True, unconditional_update=False
    ),
    **{(RBAC, kind): _UPSERTED for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")},
    ("scheduling.k8s.io", "PriorityClass"): Strategy(has_generation=True, counted=()),
    **{(_ADMISSION, kind): _COUNTED for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")},
    **{(_ADMISSION, kind): _WEBHOOKS for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")},
}
