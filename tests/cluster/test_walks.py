"""Random walks: whatever a rule wanted before, the object ends up as if it had just been created.

Each step draws another valid object of the kind (`random_objects`), applies it over the live one with ruleop's own
merge, as one merge patch, and compares the server's answer with a dry run of creating the same object (`walk`). A field
that the server keeps, restores or computes only once shows as a difference. Either the merge handles it
(`ruleop.kubernetes.schema.shape`), or docs/merge.md names it, "Fields that the server derives from others",
and so does `walk.KEPT`.

    RULEOP_WALK_STEPS=2000 RULEOP_WALK_SEED=7 pytest ... tests/cluster/test_walks.py     more steps for each kind, other
    walks
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from controlplane.flags import SERVICE_RANGE

from tests.cluster.conftest import NewCluster
from tests.cluster.random_objects import Drawing
from tests.cluster.server import Client
from tests.cluster.test_at_rest import OBJECTS
from tests.cluster.walk import JSON, KEPT, Object, Walk

SEED = int(os.environ.get("RULEOP_WALK_SEED", "1"))
STEPS = int(os.environ.get("RULEOP_WALK_STEPS", "30"))

# What may not change in an object of a kind: held as it was at the start of a walk. `*-a-b` is all but a and b.
SELECTED = ("spec.selector", "spec.template.metadata.labels")
FIXED: dict[str, Sequence[str]] = {
    "CSIDriver": ("spec.*-requiresRepublish-tokenRequests-seLinuxMount-storageCapacity-fsGroupPolicy-podInfoOnMount",),
    "CSIStorageCapacity": ("nodeTopology", "storageClassName"),
    "ClusterRoleBinding": ("roleRef",),
    "ConfigMap": ("immutable",),
    "ControllerRevision": ("data",),
    "DaemonSet": SELECTED,
    "Deployment": SELECTED,
    "EndpointSlice": ("addressType",),
    "Job": ("spec.*-activeDeadlineSeconds-backoffLimit-parallelism-suspend-ttlSecondsAfterFinished",),
    "PersistentVolume": ("spec.*-accessModes-capacity-mountOptions-persistentVolumeReclaimPolicy-storageClassName",),
    "PersistentVolumeClaim": ("spec",),
    "Pod": ("spec",),
    "PriorityClass": ("globalDefault", "preemptionPolicy", "value"),
    "ReplicaSet": SELECTED,
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "ResourceQuota": ("spec.scopeSelector", "spec.scopes"),
    "RoleBinding": ("roleRef",),
    "RuntimeClass": ("handler",),
    "Secret": ("immutable", "type"),
    "StatefulSet": ("spec.podManagementPolicy", "spec.serviceName", "spec.volumeClaimTemplates", *SELECTED),
    "Service": ("spec.clusterIP", "spec.clusterIPs"),
    "StorageClass": ("*-allowVolumeExpansion-metadata",),
    "VolumeAttributesClass": ("driverName", "parameters"),
}
WALKED = [
    "apps/v1 Deployment",
    "apps/v1 StatefulSet",
    "apps/v1 DaemonSet",
    "apps/v1 ReplicaSet",
    "batch/v1 Job",
    "batch/v1 CronJob",
    "v1 Pod",
    "v1 PodTemplate",
    "v1 ReplicationController",
    "v1 Service",
    "v1 ConfigMap",
    "v1 Secret",
    "v1 ServiceAccount",
    "v1 PersistentVolumeClaim",
    "v1 PersistentVolume",
    "v1 Namespace",
    "v1 LimitRange",
    "v1 ResourceQuota",
    "v1 Endpoints",
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
    "apps/v1 ControllerRevision",
    "autoscaling/v1 HorizontalPodAutoscaler",
    "autoscaling/v2 HorizontalPodAutoscaler",
    "coordination.k8s.io/v1 Lease",
    "discovery.k8s.io/v1 EndpointSlice",
    "flowcontrol.apiserver.k8s.io/v1 FlowSchema",
    "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration",
    "networking.k8s.io/v1 Ingress",
    "networking.k8s.io/v1 IngressClass",
    "networking.k8s.io/v1 NetworkPolicy",
    "node.k8s.io/v1 RuntimeClass",
    "policy/v1 PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1 ClusterRole",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
    "rbac.authorization.k8s.io/v1 Role",
    "rbac.authorization.k8s.io/v1 RoleBinding",
    "resource.k8s.io/v1 DeviceClass",
    "resource.k8s.io/v1 ResourceClaim",
    "resource.k8s.io/v1 ResourceClaimTemplate",
    "scheduling.k8s.io/v1 PriorityClass",
    "storage.k8s.io/v1 CSIDriver",
    "storage.k8s.io/v1 CSIStorageCapacity",
    "storage.k8s.io/v1 StorageClass",
    "storage.k8s.io/v1 VolumeAttributesClass",
]
# They change what the server serves to all tests.
NOT_WALKED = {"APIService", "CustomResourceDefinition", "ServiceCIDR"}


@pytest.fixture(scope="module")
def schemas(server: Client) -> tuple[dict[str, Any], dict[str, str]]:
    """The types of the built-in kinds, and the name of each kind's type."""
    found = server.schemas()
    types = {
        f"{each['group']}/{each['version']} {each['kind']}".removeprefix("/"): name
        for name, schema in found.items()
        for each in schema.get("x-kubernetes-group-version-kind") or ()
    }
    return found, types


def test_every_kind_is_walked_or_excluded_with_a_reason() -> None:
    assert {name.split()[1] for name in WALKED} | NOT_WALKED == {obj["kind"] for obj in OBJECTS}
    assert not {name.split()[1] for name in WALKED} & NOT_WALKED


@pytest.mark.real_server("the one in memory validates less than random objects need")
@pytest.mark.parametrize("name", WALKED)
@pytest.mark.timeout(0)  # RULEOP_WALK_STEPS as long as it likes
def test_an_object_ends_up_as_if_newly_created(
    server: Client, schemas: tuple[dict[str, Any], dict[str, str]], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    obj = next(each for each in OBJECTS if f"{each['apiVersion']} {each['kind']}" == name)
    walk = Walk(server, obj, f"RULEOP_WALK_SEED={SEED}, ")
    known = [each for each in OBJECTS if f"{each['apiVersion']} {each['kind']}" in schemas[1]]
    drawing = Drawing(schemas[0], known, schemas[1], random.Random(f"{SEED} {name}"))  # noqa: S311
    try:
        walk.at_random(drawing, STEPS, FIXED.get(walk.kind.kind, ()))
    finally:
        walk.end()
    with capsys.disabled():
        sys.stdout.write(f"\n{name}: {walk.made} steps {dict(walk.kept) or ''}\n")


PORTS, SELECTOR = [{"name": "web", "port": 80}], {"app": "x"}
PLAIN: Object = {"ports": PORTS, "selector": SELECTOR}
EXTERNAL: Object = {"type": "ExternalName", "externalName": "one.example.com"}
HEADLESS: Object = {**PLAIN, "clusterIP": "None"}
BALANCED: Object = {**PLAIN, "type": "LoadBalancer"}
PREFERRED: Object = {**PLAIN, "ipFamilyPolicy": "PreferDualStack"}
CHOSEN: Object = {**PREFERRED, "ipFamilies": ["IPv4"]}
# What random walks seldom come by: a Service from one kind of address to another.
SERVICES: dict[str, list[Object]] = {
    "headless, then a name": [HEADLESS, EXTERNAL, PLAIN, EXTERNAL],
    "headless, then not": [HEADLESS, PLAIN],
    "headless without a selector, then with one": [{"ports": PORTS, "clusterIP": "None"}, HEADLESS],
    "headless with a selector, then without": [HEADLESS, {"ports": PORTS, "clusterIP": "None"}],
    "an address of its own, then any": [{**PLAIN, "clusterIP": "10.96.0.7"}, PLAIN, EXTERNAL],
    "an address of its own, then a name": [{**PLAIN, "clusterIP": "10.96.0.8"}, EXTERNAL],
    "two families, then the default": [PREFERRED, PLAIN],
    "families by name, then the default": [CHOSEN, PLAIN, CHOSEN, {**PLAIN, "ipFamilyPolicy": "SingleStack"}],
    "families, then a name": [CHOSEN, EXTERNAL, PLAIN],
    "a load balancer for local traffic, then not": [
        {**BALANCED, "externalTrafficPolicy": "Local"},
        BALANCED,
        {**PLAIN, "type": "NodePort"},
        PLAIN,
    ],
    "a load balancer without node ports": [
        BALANCED,
        {**BALANCED, "allocateLoadBalancerNodePorts": False},
        BALANCED,
        PLAIN,
    ],
    "external addresses, then none": [{**PLAIN, "externalIPs": ["1.2.3.4"], "externalTrafficPolicy": "Local"}, PLAIN],
    "a class of load balancers, then none": [{**BALANCED, "loadBalancerClass": "example.com/x"}, PLAIN],
}
HEADLESS_FAMILIES = pytest.mark.real_server("the one in memory keeps the families of a headless Service")
KEPT_OF_SERVICES = {
    "headless, then not": {"The address of a Service"},
    "a load balancer without node ports": {"Node ports of a load balancer"},
}


@pytest.fixture(scope="module")
def dual_stack(new_cluster: NewCluster) -> Iterator[Client]:
    """A server that gives out addresses of both families."""
    ranges = f"--service-cluster-ip-range={SERVICE_RANGE},fd00:10:96::/108"
    with new_cluster(controllers=False, audit=False, apiserver_flags=[ranges]) as plane:
        client = Client(plane)
        yield client
        client.close()
        plane.check()


@pytest.mark.parametrize(
    "families",
    ["server", pytest.param("dual_stack", marks=pytest.mark.real_server("the server in memory has addresses of IPv4"))],
)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[HEADLESS_FAMILIES] if name.startswith("headless with") else []) for name in SERVICES],
)
def test_a_service_ends_up_as_if_newly_created(request: pytest.FixtureRequest, families: str, name: str) -> None:
    kept = followed(request.getfixturevalue(families), "v1 Service", [{"spec": spec} for spec in SERVICES[name]])
    assert kept == KEPT_OF_SERVICES.get(name, set())


def followed(server: Client, name: str, steps: list[Object]) -> set[str]:
    """Goes these steps from the first; the names of what is kept."""
    api_version, kind = name.split()
    first, *rest = ({"apiVersion": api_version, "kind": kind, "metadata": {"name": "walked"}, **step} for step in steps)
    walk = Walk(server, first)
    try:
        walk.begin(first)
        for wanted in rest:
            walk.step(wanted)
    finally:
        walk.end()
    return set(walk.kept)


def pods(**container: JSON) -> Object:
    return {"spec": {"containers": [{"name": "app", **container}]}}


def job(**spec: JSON) -> Object:
    return {"spec": {"template": {"spec": {**pods(image="app:1")["spec"], "restartPolicy": "Never"}}, **spec}}


def test_fields_derived_from_an_image_in_a_pod_are_immutable(server: Client) -> None:
    assert followed(server, "v1 Pod", [pods(image="app"), pods(image="app:1")]) == {"The pull policy of a Pod"}


def test_completions_of_a_job_may_not_change(server: Client) -> None:
    assert followed(server, "batch/v1 Job", [job(), job(parallelism=2)]) == {"The completions of a Job"}


@pytest.mark.parametrize("field", ["dataSource", "dataSourceRef"])
def test_the_server_rejects_removing_the_source_of_a_claim(server: Client, field: str) -> None:
    """If the derived field stayed, the API server would restore the value from it."""
    claim: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    sourced = {**claim, field: {"kind": "PersistentVolumeClaim", "name": "other"}}
    with pytest.raises(AssertionError, match=r"refused: 422 Invalid.*spec is immutable"):
        followed(server, "v1 PersistentVolumeClaim", [{"spec": sourced}, {"spec": claim}])


def test_server_side_apply_keeps_derived_fields_unless_they_are_applied(server: Client) -> None:
    """As docs/merge.md says of `apply.strategy: server-side`."""
    path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/applied"

    def applied(**spec: JSON) -> JSON:
        body = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "applied"}}
        return server.apply(path, {**body, "spec": {"podSelector": {}, **spec}}, "ruleop")["spec"]["policyTypes"]

    assert applied(egress=[{}]) == ["Ingress", "Egress"]
    assert applied() == ["Ingress", "Egress"], "all egress is denied"
    assert applied(egress=[{}], policyTypes=["Ingress", "Egress"]) == ["Ingress", "Egress"]
    assert applied(policyTypes=["Ingress"]) == ["Ingress"]
    assert applied() == ["Ingress"]
    server.delete(path)


def test_fields_kept_by_server_side_apply_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "merge.md").read_text(encoding="utf-8")
    assert [each.name for each in KEPT if f"**{each.name}**" not in text] == []
