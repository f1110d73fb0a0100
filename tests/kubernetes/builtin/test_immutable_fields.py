"""Which fields of an object cannot change, by its kind and its state."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes

NAMES = st.sampled_from(
    [
        "spec",
        "status",
        "conditions",
        "type",
        "immutable",
        "data",
        "template",
        "suspend",
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "containers",
        "resources",
        "requests",
        "storage",
        "phase",
        "selector",
        "names",
        "scope",
        "terminationGracePeriodSeconds",
        "externalTrafficPolicy",
    ]
)
TEXTS = st.sampled_from(["LoadBalancer", "Local", "Bound", "None", "Established", "True", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=30,
)
HEADS = {
    "v1": ("ConfigMap", "PersistentVolumeClaim", "Pod", "Secret", "Service"),
    "apps/v1": ("Deployment", "DaemonSet", "StatefulSet"),
    "batch/v1": ("Job",),
    "rbac.authorization.k8s.io/v1": ("RoleBinding",),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "storage.k8s.io/v1": ("StorageClass",),
}
KINDS = [(version, kind) for version, kinds in HEADS.items() for kind in kinds]


def of(kind: str, **fields: Any) -> dict[str, Any]:
    version = next(version for version, each in KINDS if each == kind)
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **fields}


def spec(kind: str, **fields: Any) -> dict[str, Any]:
    return of(kind, spec=fields)


BOUND = {"status": {"phase": "Bound"}}
POD = {"containers": [{"name": "a", "image": "a:1"}], "tolerations": []}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
LARGER = {**CLAIM, "resources": {"requests": {"storage": "2Gi"}}}
SERVICE = {"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}]}


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        (spec("Deployment", selector={"a": "b"}), spec("Deployment", selector={"a": "c"}), ["spec.selector"]),
        (spec("Deployment", replicas=1), spec("Deployment", replicas=2), []),
        (spec("StatefulSet", replicas=1, template={}), spec("StatefulSet", replicas=2, template={"a": 1}), []),
        (spec("StatefulSet", serviceName="a"), spec("StatefulSet"), ["spec.serviceName"]),
        (spec("Job", template={"spec": POD}), spec("Job", template={"spec": {}}), ["spec.template"]),
        (spec("Job", parallelism=1), spec("Job", parallelism=2), []),
        (spec("Job", completions=1), spec("Job", completions=2), ["spec.completions"]),
        (spec("Job", completions=1), spec("Job", completions=2, completionMode="Indexed"), ["spec.completionMode"]),
        (
            spec("Job", suspend=True, template={"spec": POD}),
            spec("Job", suspend=True, template={"spec": {**POD, "nodeSelector": {"a": "b"}}}),
            [],
        ),
        (
            spec("Job", suspend=True, template={"spec": POD}),
            spec("Job", suspend=True, template={"spec": {**POD, "volumes": []}}),
            ["spec.template.spec"],
        ),
        (of("ConfigMap", data={"a": "b"}), of("ConfigMap", data={"a": "c"}), []),
        (of("ConfigMap", immutable=True), of("ConfigMap", immutable=True, data={"a": "c"}), ["data"]),
        (of("ConfigMap", immutable=True), of("ConfigMap"), ["immutable"]),
        (of("ConfigMap", immutable=True), of("ConfigMap", immutable=True, data={}), []),
        (of("Secret", type="Opaque"), of("Secret", type="kubernetes.io/tls"), ["type"]),
        (of("RoleBinding", roleRef={"name": "a"}), of("RoleBinding", roleRef={"name": "b"}), ["roleRef"]),
        (of("RoleBinding", subjects=[]), of("RoleBinding", subjects=[{"name": "b"}]), []),
        (spec("PersistentVolumeClaim", **CLAIM), spec("PersistentVolumeClaim", **LARGER), ["spec.resources"]),
        ({**spec("PersistentVolumeClaim", **CLAIM), **BOUND}, spec("PersistentVolumeClaim", **LARGER), []),
        (spec("PersistentVolumeClaim", **CLAIM), spec("PersistentVolumeClaim", **CLAIM, volumeName="v"), []),
        (spec("Pod", **POD), spec("Pod", **{**POD, "containers": [{"name": "a", "image": "a:2"}]}), []),
        (spec("Pod", **POD), spec("Pod", **{**POD, "containers": []}), ["spec.containers"]),
        (spec("Pod", **POD), spec("Pod", **POD, hostNetwork=True), ["spec.hostNetwork"]),
        (spec("Service", **SERVICE), spec("Service", **{**SERVICE, "clusterIP": "None"}), ["spec.clusterIPs[0]"]),
        (spec("Service", **SERVICE), spec("Service", **{**SERVICE, "type": "ExternalName", "clusterIP": ""}), []),
        (spec("Service", **SERVICE), spec("Service", **{**SERVICE, "ports": [{"port": 81}]}), []),
        (
            {**spec("CustomResourceDefinition", scope="Cluster"), "status": {}},
            spec("CustomResourceDefinition", scope="Namespaced"),
            [],
        ),
        (
            {
                **spec("CustomResourceDefinition", scope="Cluster"),
                "status": {"conditions": [{"type": "Established", "status": "True"}]},
            },
            spec("CustomResourceDefinition", scope="Namespaced"),
            ["spec.scope"],
        ),
        (of("StorageClass", provisioner="a"), of("StorageClass", provisioner="b"), ["provisioner"]),
        (
            {**spec("Deployment", selector=1), "apiVersion": "example.com/v1"},
            {**spec("Deployment", selector=2), "apiVersion": "example.com/v1"},
            [],
        ),
    ],
)
def test_changes_of_immutable_fields_are_found_by_kind_and_state(old: Any, new: Any, paths: list[str]) -> None:
    assert immutable_changes(new, old) == paths


@pytest.mark.slow
@pytest.mark.parametrize(("version", "kind"), KINDS)
@given(old=st.dictionaries(NAMES, JSON), new=st.dictionaries(NAMES, JSON))
def test_objects_of_any_form_can_be_compared(version: str, kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    old, new = ({**each, "apiVersion": version, "kind": kind} for each in (old, new))
    assert immutable_changes(old, old) == []
    assert len(set(found := immutable_changes(new, old))) == len(found)
