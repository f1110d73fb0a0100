"""Why claims, budgets, autoscalers, roles, bindings and data are invalid. Word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.creation import answer_to_creation

if TYPE_CHECKING:
    from tests.contract.client import Server
    from tests.contract.recording import Recording

LABELS = {"app": "a"}
RBAC = "rbac.authorization.k8s.io"


def claim(**spec: Any) -> tuple[str, dict[str, Any]]:
    given = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return "v1 PersistentVolumeClaim persistentvolumeclaims", {"spec": given}


def storage(amount: str) -> tuple[str, dict[str, Any]]:
    return claim(resources={"requests": {"storage": amount}})


def budget(**spec: Any) -> tuple[str, dict[str, Any]]:
    return "policy/v1 PodDisruptionBudget poddisruptionbudgets", {"spec": {"selector": {"matchLabels": LABELS}, **spec}}


def autoscaler(**spec: Any) -> tuple[str, dict[str, Any]]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    about = "autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers"
    return about, {"spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, **spec}}


def role(**rule: Any) -> tuple[str, dict[str, Any]]:
    given = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], **rule}
    return f"{RBAC}/v1 Role roles", {"rules": [{name: value for name, value in given.items() if value is not None}]}


def binding(*subjects: dict[str, Any], **reference: Any) -> tuple[str, dict[str, Any]]:
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "a", **reference}
    return f"{RBAC}/v1 RoleBinding rolebindings", {"roleRef": reference, "subjects": list(subjects)}


def config_map(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "v1 ConfigMap configmaps", fields


def secret(type_: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "v1 Secret secrets", {"type": type_, **fields}


MISTAKES = {
    "a claim without modes": claim(accessModes=[]),
    "an unknown mode": claim(accessModes=["Write"]),
    "one pod and other modes": claim(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
    "a claim without storage": claim(resources={}),
    "no storage": storage("0"),
    "negative storage": storage("-1Gi"),
    "an unknown mode of a volume": claim(volumeMode="File"),
    "an invalid storage class": claim(storageClassName="A_b"),
    "a budget with both numbers": budget(minAvailable=1, maxUnavailable=1),
    "a budget below zero": budget(minAvailable=-1),
    "a budget that is no percentage": budget(minAvailable="x"),
    "a budget of more than all": budget(maxUnavailable="200%"),
    "a budget with a key with a space": budget(minAvailable=1, selector={"matchLabels": {"a b": "c"}}),
    "no replicas at most": autoscaler(maxReplicas=0),
    "more replicas at least than at most": autoscaler(minReplicas=5),
    "no replicas at least": autoscaler(minReplicas=0),
    "no target": autoscaler(scaleTargetRef={"kind": "", "name": ""}),
    "a rule without verbs": role(verbs=None),
    "a rule without resources": role(resources=None),
    "a rule without groups": role(apiGroups=None),
    "a rule of paths in a namespace": role(apiGroups=None, resources=None, nonResourceURLs=["/x"]),
    "a reference to another kind": binding(kind="Pod"),
    "a reference to another group": binding(apiGroup="example.com"),
    "a reference without a name": binding(name=""),
    "an unknown kind of subject": binding({"kind": "Pod", "name": "a"}),
    "a subject without a name": binding({"kind": "User", "apiGroup": RBAC, "name": ""}),
    "a subject without a namespace": binding({"kind": "ServiceAccount", "name": "a"}),
    "a key with a space": config_map(data={"a b": "c"}),
    "a key of two dots": config_map(data={"..": "c"}),
    "a key of one dot": config_map(data={".": "c"}),
    "a key that begins with two dots": config_map(data={"..a": "c"}),
    "a key of text and of bytes": config_map(data={"a": "b"}, binaryData={"a": "Yg=="}),
    "no certificate": secret("kubernetes.io/tls"),
    "no credentials of a registry": secret("kubernetes.io/dockerconfigjson"),
    "no earlier credentials of a registry": secret("kubernetes.io/dockercfg"),
    "neither user nor password": secret("kubernetes.io/basic-auth"),
    "a password alone is no error": secret("kubernetes.io/basic-auth", stringData={"password": "a"}),
    "no key of SSH": secret("kubernetes.io/ssh-auth"),
    "no service account": secret("kubernetes.io/service-account-token"),
    "an unknown type of addresses": ("discovery.k8s.io/v1 EndpointSlice endpointslices", {"addressType": "IPv5"}),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_invalid_object_is_answered_with_its_causes(
    server: Server, namespace: str, name: str, recording: Recording
) -> None:
    about, fields = MISTAKES[name]
    recording.check(name, answer_to_creation(server, namespace, about, fields), namespace)
