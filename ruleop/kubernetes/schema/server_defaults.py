"""Defaults of built-in kinds that the OpenAPI documents of the API server do not declare, by the names of its types.

From the SetDefaults functions of k8s.io/kubernetes/pkg/apis and the types of k8s.io/api. Only defaults that matter to a
merge are here:

- those inside lists and maps that are replaced as a whole; elsewhere an additional live field is not a difference;
- empty values that people write (`value: ""`, `hostNetwork: false`) and the server does not keep: the field is not a
  pointer in Go, so an empty value and a missing one are the same. Where the field is a pointer (`privileged`,
  `replicas`), they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_CORE, _APPS, _RBAC, _DEVICES = (f"io.k8s.api.{group}.v1" for group in ("core", "apps", "rbac", "resource"))
_ADMISSION, _NETWORKING = "io.k8s.api.admissionregistration.v1", "io.k8s.api.networking.v1"
_READ_ONLY = {"readOnly": False}
_COUNT_ONE = {"allocationMode": "ExactCount", "count": 1}

SERVER_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    f"{_ADMISSION}.MatchResources": {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}},
    f"{_ADMISSION}.NamedRuleWithOperations": {"scope": "*"},
    f"{_ADMISSION}.RuleWithOperations": {"scope": "*"},
    f"{_ADMISSION}.WebhookClientConfig": {"caBundle": ""},
    f"{_APPS}.DaemonSetSpec": {"minReadySeconds": 0},
    f"{_APPS}.DeploymentSpec": {"minReadySeconds": 0, "paused": False},
    f"{_APPS}.ReplicaSetSpec": {"minReadySeconds": 0},
    f"{_APPS}.StatefulSetSpec": {"minReadySeconds": 0},
    f"{_CORE}.Container": {"workingDir": "", "stdin": False, "stdinOnce": False, "tty": False},
    f"{_CORE}.ContainerPort": {"name": "", "hostPort": 0, "hostIP": ""},
    f"{_CORE}.EmptyDirVolumeSource": {"medium": ""},
    f"{_CORE}.EndpointPort": {"name": "", "protocol": "TCP"},
    f"{_CORE}.EnvFromSource": {"prefix": ""},
    f"{_CORE}.EnvVar": {"value": ""},
    f"{_CORE}.NFSVolumeSource": _READ_ONLY,
    f"{_CORE}.ObjectFieldSelector": {"apiVersion": "v1"},
    f"{_CORE}.PersistentVolumeClaim": {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "status": {"phase": "Pending"},
    },
    f"{_CORE}.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem", "volumeName": ""},
    f"{_CORE}.PersistentVolumeClaimVolumeSource": _READ_ONLY,
    f"{_CORE}.PersistentVolumeSpec": {"storageClassName": ""},
    f"{_CORE}.PodSpec": {
        **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC"), False),
        **dict.fromkeys(("hostname", "nodeName", "priorityClassName", "serviceAccountName", "subdomain"), ""),
    },
    f"{_CORE}.Probe": {"initialDelaySeconds": 0},
    f"{_CORE}.ResourceFieldSelector": {"containerName": "", "divisor": "0"},
    f"{_CORE}.ServiceAccountTokenProjection": {"audience": "", "expirationSeconds": 3600},
    f"{_CORE}.ServicePort": {"name": "", "nodePort": 0},
    f"{_CORE}.ServiceSpec": {"externalName": "", "loadBalancerIP": "", "publishNotReadyAddresses": False},
    f"{_CORE}.Toleration": {"key": "", "value": "", "effect": ""},
    f"{_CORE}.VolumeMount": {**_READ_ONLY, "subPath": "", "subPathExpr": ""},
    f"{_DEVICES}.DeviceSubRequest": _COUNT_ONE,
    f"{_DEVICES}.ExactDeviceRequest": _COUNT_ONE,
    f"{_NETWORKING}.HTTPIngressPath": {"path": ""},
    f"{_NETWORKING}.IngressRule": {"host": ""},
    f"{_NETWORKING}.IngressTLS": {"secretName": ""},
    f"{_NETWORKING}.NetworkPolicyPort": {"protocol": "TCP"},
    f"{_RBAC}.RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    f"{_RBAC}.Subject": {"apiGroup": "rbac.authorization.k8s.io", "namespace": ""},
    "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "io.k8s.api.discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "io.k8s.api.scheduling.v1.PriorityClass": {"description": "", "globalDefault": False},
}
