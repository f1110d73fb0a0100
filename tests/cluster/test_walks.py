"""Random walks: whatever a rule wanted before, the object ends as one made afresh.

Each step draws another valid object of the kind (`random_objects`), applies it over the live one with ruleop's own merge, as one merge
patch, and compares the server's answer with what the server would make of the same object if it were new (a dry run). A field that the
server holds on to, restores or computed once and for all shows as a difference. It is either mended (`ruleop.schema.derived`) or named in
docs/merge.md, "What the server keeps", and here in `KEPT`.

    RULEOP_WALK_STEPS=2000 RULEOP_WALK_SEED=7 pytest ... tests/cluster/test_walks.py     more steps for each kind, another walk
"""

from __future__ import annotations

import collections
import copy
import http.client
import json
import os
import random
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from controlplane.cluster import ControlPlane
from controlplane.flags import SERVICE_RANGE

from ruleop.kinds import Kind
from ruleop.merge import FieldSet, Learned, Record, create_fields, decode, encode, merge_patch, normalise_wanted, three_way
from ruleop.schema.table import builtin_shape
from tests.cluster.random_objects import Drawing
from tests.cluster.server import Client, RefusedError
from tests.cluster.test_at_rest import OBJECTS, path_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.schema.shape import Shape

JSON = Any
Object = dict[str, Any]

SEED = int(os.environ.get("RULEOP_WALK_SEED", "1"))
STEPS = int(os.environ.get("RULEOP_WALK_STEPS", "30"))
LABELS = {"app.kubernetes.io/managed-by": "ruleop", "ruleop.dev/part-of": "walks"}

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


@dataclass(frozen=True)
class Kept:
    """A difference that stays, by the name that it has in docs/merge.md."""

    name: str
    kind: str
    path: str  # a regular expression
    live: Sequence[JSON]
    afresh: Sequence[JSON]


UNUSED = "Settings of a rolling update"
KEPT = [
    Kept(UNUSED, "StatefulSet", r"spec\.updateStrategy\.rollingUpdate", [{"partition": 0}, None], [None, {"partition": 0}]),
    Kept(UNUSED, "DaemonSet", r"spec\.updateStrategy\.rollingUpdate", [{"maxSurge": 0, "maxUnavailable": 0}], [None]),
    Kept("Node ports of a load balancer", "Service", r"spec\.ports\[\d+\]\.nodePort", ["allocated"], [None]),
    Kept("The pull policy of a Pod", "Pod", r"spec\.containers\[\d+\]\.imagePullPolicy", ["Always"], ["IfNotPresent"]),
    Kept("The completions of a Job", "Job", r"spec\.completions", [1], [None]),
    Kept("A traffic policy beside ExternalName", "Service", r"spec\.internalTrafficPolicy", ["Local"], ["Cluster"]),
    Kept("The address of a Service", "Service", r"spec\.clusterIPs?(\[0\])?", ["None"], ["allocated"]),
]


@dataclass
class Walk:
    """One object, from its creation through all its changes."""

    server: Client
    obj: Object
    made: int = 0
    kept: collections.Counter[str] = field(default_factory=collections.Counter)
    live: Object = field(default_factory=dict)
    wanted: Object = field(default_factory=dict)
    record: Record = field(default_factory=lambda: Record("walk", FieldSet()))
    learned: Learned = Learned.NOTHING

    @property
    def kind(self) -> Kind:
        return Kind.of(self.obj)

    @property
    def shape(self) -> Shape:
        shape = builtin_shape(self.kind)
        assert shape is not None
        return shape

    @property
    def path(self) -> str:
        return path_of(self.kind)

    def at_random(self, drawing: Drawing, steps: int) -> None:
        """Goes that many steps from the object as it is."""
        self.begin(self.obj)
        fixed = FIXED.get(self.kind.kind, ())
        for _ in range(steps):
            drawn = drawing.valid(self.wanted, fixed, self._refusal)
            if drawn is not None:
                self.step(drawn)

    def begin(self, wanted: Object) -> None:
        self.wanted = {**copy.deepcopy(wanted), "metadata": {"name": "walked"}}
        normal = self._normal(self.wanted)
        self.live = self.server.post(self.path, normal)
        self.record = Record("walk", create_fields(normal, self.shape))
        self.learned = Learned.NOTHING.learn(normal, self.live, self.shape)

    def end(self) -> None:
        if self.live:
            if self.live["metadata"].get("finalizers"):  # a server's plugin protects volumes and claims in use
                self.server.merge(f"{self.path}/walked", {"metadata": {"finalizers": None}}, "test")
            self.server.delete(f"{self.path}/walked?gracePeriodSeconds=0&propagationPolicy=Background")

    def _normal(self, wanted: Object) -> Object:
        labels = {**(wanted["metadata"].get("labels") or {}), **LABELS}
        return dict(normalise_wanted({**wanted, "metadata": {**wanted["metadata"], "labels": labels}}, self.kind))

    def _afresh(self, wanted: Object) -> Object:
        named = self._normal(wanted)
        new: Object = self.server.post(
            f"{self.path}?dryRun=All&fieldValidation=Strict", {**named, "metadata": {**named["metadata"], "name": "afresh"}}
        )
        return new

    def _refusal(self, wanted: Object) -> RefusedError | None:
        try:
            self._afresh(wanted)
        except RefusedError as refused:
            return refused
        except http.client.RemoteDisconnected:  # the server panics at some, such as a successPolicy without completions
            return RefusedError({"message": "the server panicked"})
        return None

    def step(self, wanted: Object) -> None:
        """Applies what is wanted now; raises AssertionError where the result is not that of an object made afresh."""
        normal = self._normal(wanted)
        merged = three_way(self.live, normal, self.record.fields, self.shape, learned=self.learned)
        patch = merge_patch(self.live, merged.object)
        record = decode(encode(Record("walk", merged.fields)))
        assert record is not None
        try:
            after = self.live if patch is None else self.server.merge(f"{self.path}/walked", patch, "ruleop")
        except RefusedError as refused:
            raise AssertionError(self._failure(f"refused: {refused}", wanted, patch)) from refused
        found = differences(comparable(after), comparable(self._afresh(wanted)))
        unexplained = [str(each) for each in found if not self._is_kept(each)]
        assert not unexplained, self._failure("\n".join(unexplained), wanted, patch)
        learned = Learned.NOTHING.learn(normal, after, self.shape)
        again = three_way(after, normal, record.fields, self.shape, learned=learned)
        assert again.object is after, self._failure(f"written again: {merge_patch(after, again.object)}", wanted, patch)
        self.live, self.wanted, self.record, self.learned = after, wanted, record, learned
        self.made += 1

    def _is_kept(self, difference: Difference) -> bool:
        for each in KEPT:
            known = self.kind.kind == each.kind and re.fullmatch(each.path, difference.path)
            if known and difference.live in each.live and difference.afresh in each.afresh:
                self.kept[each.name] += 1
                return True
        return False

    def _failure(self, what: str, wanted: Object, patch: JSON) -> str:
        parts = yaml.safe_dump({"before": self.wanted, "wanted": wanted, "patch": patch}, sort_keys=False, width=1000)
        return f"RULEOP_WALK_SEED={SEED}, {self.kind}, step {self.made + 1}:\n{what}\n\n{parts}"


SERVER_SET = ("uid", "name", "namespace", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")


def comparable(obj: Object) -> Object:
    """An object without what the server sets, and without what it allocates."""
    metadata = obj["metadata"]
    text = json.dumps({name: value for name, value in obj.items() if name != "status"})
    for name in ("uid", "name"):
        text = text.replace(json.dumps(metadata[name])[1:-1], f"its {name}")
    plain: Object = json.loads(text)
    plain["metadata"] = {name: value for name, value in plain["metadata"].items() if name not in SERVER_SET}
    if obj["kind"] == "DaemonSet":  # another generation
        plain["metadata"]["annotations"].pop("deprecated.daemonset.template.generation")
    if obj["kind"] == "Service":
        spec = plain["spec"]
        if spec.get("clusterIP", "None") != "None":
            spec |= {"clusterIP": "allocated", "clusterIPs": ["allocated"] * len(spec["clusterIPs"])}
        spec |= {"healthCheckNodePort": "allocated"} if "healthCheckNodePort" in spec else {}
        for port in spec.get("ports") or ():
            port.update({"nodePort": "allocated"} if "nodePort" in port else {})
    return plain


@dataclass(frozen=True)
class Difference:
    path: str
    live: JSON
    afresh: JSON

    def __str__(self) -> str:
        return f"{self.path}: {self.live!r}, made afresh {self.afresh!r}"


def differences(live: JSON, afresh: JSON, path: str = "") -> Iterator[Difference]:
    """The smallest places at which the two differ."""
    if type(live) is dict and type(afresh) is dict:
        for name in sorted({*live, *afresh}):
            yield from differences(live.get(name), afresh.get(name), f"{path}.{name}" if path else name)
    elif type(live) is list and type(afresh) is list and len(live) == len(afresh):
        for index, (one, other) in enumerate(zip(live, afresh, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif live != afresh:
        yield Difference(path, live, afresh)


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


def test_every_kind_that_is_made_is_walked_or_there_is_a_reason() -> None:
    assert {name.split()[1] for name in WALKED} | NOT_WALKED == {obj["kind"] for obj in OBJECTS}
    assert not {name.split()[1] for name in WALKED} & NOT_WALKED


@pytest.mark.parametrize("name", WALKED)
@pytest.mark.timeout(0)  # RULEOP_WALK_STEPS as long as it likes
def test_an_object_ends_as_one_made_afresh(
    server: Client, schemas: tuple[dict[str, Any], dict[str, str]], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    obj = next(each for each in OBJECTS if f"{each['apiVersion']} {each['kind']}" == name)
    walk = Walk(server, obj)
    try:
        walk.at_random(Drawing(schemas[0], OBJECTS, schemas[1], random.Random(f"{SEED} {name}")), STEPS)  # noqa: S311
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
    "an address of its own, then any": [{**PLAIN, "clusterIP": "10.96.7.7"}, PLAIN, EXTERNAL],
    "an address of its own, then a name": [{**PLAIN, "clusterIP": "10.96.7.7"}, EXTERNAL],
    "two families, then the default": [PREFERRED, PLAIN],
    "families by name, then the default": [CHOSEN, PLAIN, CHOSEN, {**PLAIN, "ipFamilyPolicy": "SingleStack"}],
    "families, then a name": [CHOSEN, EXTERNAL, PLAIN],
    "a load balancer for local traffic, then not": [
        {**BALANCED, "externalTrafficPolicy": "Local"},
        BALANCED,
        {**PLAIN, "type": "NodePort"},
        PLAIN,
    ],
    "a load balancer without node ports": [BALANCED, {**BALANCED, "allocateLoadBalancerNodePorts": False}, BALANCED, PLAIN],
    "external addresses, then none": [{**PLAIN, "externalIPs": ["1.2.3.4"], "externalTrafficPolicy": "Local"}, PLAIN],
    "a class of load balancers, then none": [{**BALANCED, "loadBalancerClass": "example.com/x"}, PLAIN],
}
KEPT_OF_SERVICES = {
    "headless, then not": {"The address of a Service"},
    "a load balancer without node ports": {"Node ports of a load balancer"},
}


@pytest.fixture(scope="module")
def dual_stack() -> Iterator[Client]:
    """A server that gives out addresses of both families."""
    ranges = f"--service-cluster-ip-range={SERVICE_RANGE},fd00:10:96::/108"
    with ControlPlane(controllers=False, audit=False, apiserver_flags=[ranges]) as plane:
        client = Client(plane)
        yield client
        client.close()
        plane.check()


@pytest.mark.parametrize("families", ["server", "dual_stack"])
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_ends_as_one_made_afresh(request: pytest.FixtureRequest, families: str, name: str) -> None:
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


def test_what_follows_from_an_image_in_a_pod_may_not_change(server: Client) -> None:
    assert followed(server, "v1 Pod", [pods(image="app"), pods(image="app:1")]) == {"The pull policy of a Pod"}


def test_completions_of_a_job_may_not_change(server: Client) -> None:
    assert followed(server, "batch/v1 Job", [job(), job(parallelism=2)]) == {"The completions of a Job"}


@pytest.mark.parametrize("field", ["dataSource", "dataSourceRef"])
def test_the_server_says_that_the_source_of_a_claim_may_not_go(server: Client, field: str) -> None:
    """With its mirror left, it would come back without a word."""
    claim: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    sourced = {**claim, field: {"kind": "PersistentVolumeClaim", "name": "other"}}
    with pytest.raises(AssertionError, match=r"refused: 422 Invalid.*spec is immutable"):
        followed(server, "v1 PersistentVolumeClaim", [{"spec": sourced}, {"spec": claim}])


def test_server_side_apply_keeps_what_it_derived_unless_it_is_named(server: Client) -> None:
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


def test_what_is_kept_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "merge.md").read_text(encoding="utf-8")
    assert [each.name for each in KEPT if f"**{each.name}**" not in text] == []
