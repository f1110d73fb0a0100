"""Manifests of the built-in kinds as the server stores them: defaults, allocation, normalisation, and immutable
fields."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes
from ruleop.operator.wire.client.server_errors import response_error
from tests.contract.client import MERGE, Server
from tests.contract.recording import Recording
from tests.patching import patched
from tests.waiting import eventually

TESTS = Path(__file__).resolve().parent.parent
# Kinds of other tests, and one whose finalizer is that of a controller.
OTHERS = frozenset({"CustomResourceDefinition", "VolumeAttributesClass"})
PLURALS = {
    "NetworkPolicy": "networkpolicies",
    "StorageClass": "storageclasses",
    "IngressClass": "ingressclasses",
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
    "DeviceClass": "deviceclasses",
    "CSIStorageCapacity": "csistoragecapacities",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "Ingress": "ingresses",
    "Endpoints": "endpoints",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
}
CLUSTER = frozenset(
    {
        "Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "StorageClass", "PriorityClass",
        "RuntimeClass", "APIService", "CSIDriver", "DeviceClass", "FlowSchema", "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding", "PriorityLevelConfiguration", "ServiceCIDR",
        "IngressClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
    }
)  # fmt: skip


def manifests() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in (TESTS / "cluster" / "builtin.yaml", TESTS / "contract" / "manifests.yaml"):
        for each in yaml.load(path.read_text(), Loader=yaml.CSafeLoader):
            if each["kind"] not in OTHERS and each["apiVersion"] != "autoscaling/v1":
                found[f"{each['apiVersion']} {each['kind']} {each['metadata']['name']}"] = each
    return found


MANIFESTS = manifests()


def path_of(obj: dict[str, Any], namespace: str) -> str:
    kind = obj["kind"]
    root = "apis" if "/" in obj["apiVersion"] else "api"
    place = "" if kind in CLUSTER else f"/namespaces/{namespace}"
    return f"/{root}/{obj['apiVersion']}{place}/{PLURALS.get(kind, f'{kind.lower()}s')}"


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_stored_with_defaults(server: Server, namespace: str, name: str, recording: Recording) -> None:
    obj = json.loads(json.dumps(MANIFESTS[name]).replace("NAMESPACE", namespace))
    if obj["kind"] == "Pod":  # the account is made by a controller
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        eventually("the account is there", lambda: server.exists(path))
    reply = server.send("POST", f"{path_of(obj, namespace)}?dryRun=All&fieldValidation=Ignore", obj)
    found = re.sub(r"kube-api-access-\w{5}", "kube-api-access", json.dumps({"code": reply.status, "body": reply.body}))
    found = found.replace('"kwok-volume"', '"standard"')  # the default class
    recording.check(name, json.loads(found), namespace)


DEPLOYMENT, STATEFUL_SET, JOB = "apps/v1 Deployment minimal", "apps/v1 StatefulSet claims", "batch/v1 Job minimal"
SERVICE, CLAIM, POD = "v1 Service minimal", "v1 PersistentVolumeClaim no-class", "v1 Pod minimal"
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "selector": (DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"a": "c"}}}}),
    "replicas": (DEPLOYMENT, {"spec": {"replicas": 3}}),
    "recreate": (DEPLOYMENT, {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}),
    "image": (DEPLOYMENT, {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b:1"}]}}}}),
    "selector of a ReplicaSet": ("apps/v1 ReplicaSet minimal", {"spec": {"selector": {"matchLabels": {"a": "c"}}}}),
    "selector of a DaemonSet": ("apps/v1 DaemonSet minimal", {"spec": {"selector": {"matchLabels": {"a": "c"}}}}),
    "template of a DaemonSet": ("apps/v1 DaemonSet minimal", {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}}}),
    "serviceName": (STATEFUL_SET, {"spec": {"serviceName": "other"}}),
    "volumeClaimTemplates": (STATEFUL_SET, {"spec": {"volumeClaimTemplates": None}}),
    "partition": (STATEFUL_SET, {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}}),
    "parallelism": (JOB, {"spec": {"parallelism": 2}}),
    "completions": (JOB, {"spec": {"completions": 2}}),
    "completionMode": (JOB, {"spec": {"completionMode": "Indexed"}}),
    "schedule": ("batch/v1 CronJob minimal", {"spec": {"schedule": "@daily"}}),
    "clusterIP": (SERVICE, {"spec": {"clusterIP": "10.96.1.1", "clusterIPs": None}}),
    "headless": (SERVICE, {"spec": {"clusterIP": "None"}}),
    "to NodePort": (SERVICE, {"spec": {"type": "NodePort"}}),
    "to LoadBalancer": (SERVICE, {"spec": {"type": "LoadBalancer"}}),
    "to ExternalName": (SERVICE, {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
    "from NodePort": ("v1 Service node-port", {"spec": {"type": "ClusterIP"}}),
    "another port": (SERVICE, {"spec": {"ports": [{"port": 81}]}}),
    "no ports": (SERVICE, {"spec": {"ports": []}}),
    "the same port twice": (SERVICE, {"spec": {"ports": [{"port": 81, "name": "a"}, {"port": 81, "name": "b"}]}}),
    "the same name twice": (SERVICE, {"spec": {"ports": [{"port": 81, "name": "a"}, {"port": 82, "name": "a"}]}}),
    "a port that is none": (SERVICE, {"spec": {"ports": [{"port": 70000}]}}),
    "from ExternalName": ("v1 Service external", {"spec": {"type": "ClusterIP", "externalName": None, "ports": [{"port": 1}]}}),
    "a larger claim": (CLAIM, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
    "another class": (CLAIM, {"spec": {"storageClassName": "other"}}),
    "a pod's image": (POD, {"spec": {"containers": [{"name": "a", "image": "b"}]}}),
    "a Secret's type": ("v1 Secret minimal", {"type": "other"}),
    "a Secret's text": ("v1 Secret minimal", {"stringData": {"a": "b"}}),
    "a ConfigMap's key": ("v1 ConfigMap minimal", {"data": {"a b": "c"}}),
    "a role of a binding": ("rbac.authorization.k8s.io/v1 RoleBinding minimal", {"roleRef": {"name": "other"}}),
    "rules": ("rbac.authorization.k8s.io/v1 Role minimal", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    "policy": ("networking.k8s.io/v1 NetworkPolicy minimal", {"spec": {"egress": [{}]}}),
    "a budget's selector": ("policy/v1 PodDisruptionBudget minimal", {"spec": {"selector": {"matchLabels": {"c": "d"}}}}),
    "minAvailable and maxUnavailable": ("policy/v1 PodDisruptionBudget minimal", {"spec": {"minAvailable": 1}}),
    "maxReplicas": ("autoscaling/v2 HorizontalPodAutoscaler minimal", {"spec": {"maxReplicas": 5}}),
    "maxReplicas below minReplicas": ("autoscaling/v2 HorizontalPodAutoscaler behaviour", {"spec": {"maxReplicas": 1}}),
    "a slice's address type": ("discovery.k8s.io/v1 EndpointSlice minimal", {"addressType": "IPv6"}),
    "hard": ("v1 ResourceQuota minimal", {"spec": {"hard": {"pods": "20"}}}),
    "a Namespace's label": ("v1 Namespace minimal-namespace", {"metadata": {"labels": {"a": "b"}}}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_patch_of_a_builtin_object_is_stored_or_refused(
    server: Server, namespace: str, name: str, recording: Recording
) -> None:
    manifest, patch = CHANGES[name]
    obj = json.loads(json.dumps(MANIFESTS[manifest]).replace("NAMESPACE", namespace))
    obj["metadata"]["name"] = own = f"changed-{namespace}"
    path = path_of(obj, namespace)
    if obj["kind"] == "Pod":
        eventually(
            "the account is there", lambda: server.exists(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        )
    server.create(path, obj)
    reply = server.send("PATCH", f"{path}/{own}?dryRun=All", patch, media=MERGE)
    server.send("DELETE", f"{path}/{own}")
    body = {each: value for each, value in reply.body.items() if each != "status"}
    if reply.status >= 400:
        body["message"] = body["message"].partition("\n")[0]
        for cause in body["details"].get("causes", ()):
            cause["message"] = cause["message"].partition("\n")[0]
    text = json.dumps({"code": reply.status, "body": body}).replace(own, "changed")
    text = re.sub(r"kube-api-access-\w{5}", "kube-api-access", text).replace('"kwok-volume"', '"standard"')
    found = json.loads(text)
    if reply.status < 400:
        for each in ("annotations", "generation"):  # of which controllers have their part
            found["body"]["metadata"].pop(each, None)
        found["body"].get("spec", {}).pop("nodeName", None)
    recording.check(f"changed: {name}", found, namespace)


@pytest.mark.parametrize("name", sorted(CHANGES.keys() - {"a pod's image"}))  # its list lacks the server's defaults
def test_the_table_of_immutable_fields_foresees_refusals(server: Server, namespace: str, name: str) -> None:
    """With the operator's view of the answers: `plan` foresees what `onImmutable` reacts to."""
    manifest, patch = CHANGES[name]
    obj = json.loads(json.dumps(MANIFESTS[manifest]).replace("NAMESPACE", namespace))
    obj["metadata"]["name"] = own = f"foreseen-{namespace}"
    path = path_of(obj, namespace)
    live = server.create(path, obj)
    reply = server.send("PATCH", f"{path}/{own}?dryRun=All", patch, media=MERGE)
    server.send("DELETE", f"{path}/{own}")
    causes = reply.refused(422, "Invalid")["details"]["causes"] if reply.status >= 400 else []
    single = [json.dumps({**reply.body, "details": {"causes": [each]}}).encode() for each in causes]
    is_foreseen = bool(immutable_changes(patched(live, patch), live))
    assert is_foreseen == any(response_error(422, each, verb="patch", resource=own).immutable for each in single)


def test_bytes_may_have_line_breaks(server: Server, namespace: str) -> None:
    """As `base64` without `-w0` writes them. They are stored without."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a"},
        "data": {"a": "aGVs\nbG8=", "b": "aGVsbG8=\r\n"},
    }
    assert server.create(path, secret)["data"] == {"a": "aGVsbG8=", "b": "aGVsbG8="}
    for data in ("aG\nVs!bG8=", "aGVs\nbG8"):
        refused = server.send("POST", path, {**secret, "data": {"a": data}}).refused(400, "BadRequest")
        assert "base64" in refused["message"]


def test_every_cluster_has_the_same_first_objects(server: Server) -> None:
    service = server.get("/api/v1/namespaces/default/services/kubernetes")
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    (port,) = service["spec"]["ports"]
    assert (port["name"], port["port"]) == ("https", 443)
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)):
        assert server.get(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")["value"] == value
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    roles = {name: server.get(f"{rbac}/clusterroles/{name}") for name in ("cluster-admin", "admin", "edit", "view")}
    assert roles["cluster-admin"]["rules"][0] == {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    for name in ("admin", "edit", "view"):
        assert roles[name]["aggregationRule"] == {
            "clusterRoleSelectors": [{"matchLabels": {f"rbac.authorization.k8s.io/aggregate-to-{name}": "true"}}]
        }
        assert any("services" in each["resources"] for each in roles[name]["rules"])
    assert server.get(f"{rbac}/clusterrolebindings/cluster-admin")["roleRef"]["name"] == "cluster-admin"


def test_a_kind_without_a_controller_is_stored(server: Server) -> None:
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    obj = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "fast"}, "handler": "fast"}
    assert server.create(path, obj) == server.get(f"{path}/fast")
    server.delete(f"{path}/fast")
    assert not server.exists(f"{path}/fast")
