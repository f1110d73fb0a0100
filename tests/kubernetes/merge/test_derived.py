"""Fields that the server derived from others are updated with their source: each row of
`ruleop.kubernetes.schema.shape`, and the exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import Learned, create_fields, merge_patch, parse_path, three_way
from ruleop.kubernetes.schema.shape import DERIVED

Object = dict[str, Any]

DEPLOYMENT, STATEFUL_SET, DAEMON_SET = (Kind("apps", "v1", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet"))
SERVICE, CLAIM, POD, CONTROLLER = (
    Kind("", "v1", kind) for kind in ("Service", "PersistentVolumeClaim", "Pod", "ReplicationController")
)
POLICY = Kind("networking.k8s.io", "v1", "NetworkPolicy")
ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole")


def shape_of(kind: Kind) -> Any:
    shape = builtin_shape(kind)
    assert shape is not None
    return shape


def merged(kind: Kind, applied: Object, live: Object, wanted: Object, **options: Any) -> Any:
    shape = shape_of(kind)
    return three_way(live, wanted, create_fields(applied, shape), shape, **options).object


def pod(**spec: Any) -> Object:
    return {"spec": {"template": {"spec": spec}}}


def container(**fields: Any) -> Object:
    return pod(containers=[{"name": "app", **fields}])


def service(**spec: Any) -> Object:
    return {"spec": spec}


SOURCE = {"kind": "PersistentVolumeClaim", "name": "old"}
SOURCE_AS_SERVED = {"apiGroup": None, **SOURCE}
EGRESS = {"egress": [{}]}
RULE = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
COLLECTED = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
ROLLING = {"spec": {"updateStrategy": {"type": "RollingUpdate"}}}
ON_DELETE = {"spec": {"updateStrategy": {"type": "OnDelete"}}}


def rolling(**fields: int) -> Object:
    return {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": fields}}}


def host_network(*, port: Object, host: bool) -> Object:
    return pod(containers=[{"name": "app", "ports": [port]}], **({"hostNetwork": True} if host else {}))


PORT = {"containerPort": 80, "protocol": "TCP"}


@dataclass(frozen=True)
class Case:
    """ruleop wanted `applied`, the server made `live` of it, and now the rule wants `wanted`. With `unless`, live as
    somebody else changed it, the derived field stays."""

    row: tuple[str, str]
    kind: Kind
    applied: Object
    live: Object
    wanted: Object
    result: Object
    unless: Object | None = None


CASES = {
    "an alias goes with the name of a service account": Case(
        ("PodSpec", "serviceAccount"),
        DEPLOYMENT,
        pod(serviceAccountName="one"),
        pod(serviceAccountName="one", serviceAccount="one"),
        pod(),
        pod(),
        unless=pod(serviceAccountName="one", serviceAccount="other"),
    ),
    "the name of a service account goes with the alias": Case(
        ("PodSpec", "serviceAccountName"),
        DEPLOYMENT,
        pod(serviceAccount="one"),
        pod(serviceAccountName="one", serviceAccount="one"),
        pod(),
        pod(),
    ),
    "a new alias counts, although the older name would win": Case(
        ("PodSpec", "serviceAccountName"),
        DEPLOYMENT,
        pod(serviceAccount="one"),
        pod(serviceAccountName="one", serviceAccount="one"),
        pod(serviceAccount="two"),
        pod(serviceAccountName="two", serviceAccount="two"),
    ),
    "latest is always pulled, and a version is not": Case(
        ("PodTemplateSpec", "imagePullPolicy"),
        DEPLOYMENT,
        container(image="app"),
        container(image="app", imagePullPolicy="Always"),
        container(image="app:1"),
        container(image="app:1", imagePullPolicy="IfNotPresent"),
        unless=container(image="app", imagePullPolicy="Never"),
    ),
    "the same in an init container": Case(
        ("PodTemplateSpec", "imagePullPolicy"),
        DEPLOYMENT,
        pod(initContainers=[{"name": "init", "image": "init:1"}]),
        pod(initContainers=[{"name": "init", "image": "init:1", "imagePullPolicy": "IfNotPresent"}]),
        pod(initContainers=[{"name": "init", "image": "init"}]),
        pod(initContainers=[{"name": "init", "image": "init", "imagePullPolicy": "Always"}]),
    ),
    "ports of the host are given back": Case(
        ("PodTemplateSpec", "hostPort"),
        DEPLOYMENT,
        host_network(port=PORT, host=True),
        host_network(port={**PORT, "hostPort": 80}, host=True),
        host_network(port=PORT, host=False),
        host_network(port=PORT, host=False),
        unless=host_network(port={**PORT, "hostPort": 8080}, host=True),
    ),
    "the same for an image as a volume": Case(
        ("ImageVolumeSource", "pullPolicy"),
        DEPLOYMENT,
        pod(volumes=[{"name": "data", "image": {"reference": "data"}}]),
        pod(volumes=[{"name": "data", "image": {"reference": "data", "pullPolicy": "Always"}}]),
        pod(volumes=[{"name": "data", "image": {"reference": "data:1"}}]),
        pod(volumes=[{"name": "data", "image": {"reference": "data:1", "pullPolicy": "IfNotPresent"}}]),
    ),
    "a policy without egress rules does not deny all egress": Case(
        ("NetworkPolicySpec", "policyTypes"),
        POLICY,
        {"spec": {"podSelector": {}, **EGRESS}},
        {"spec": {"podSelector": {}, **EGRESS, "policyTypes": ["Ingress", "Egress"]}},
        {"spec": {"podSelector": {}}},
        {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
        unless={"spec": {"podSelector": {}, **EGRESS, "policyTypes": ["Egress"]}},
    ),
    "new egress rules have an effect": Case(
        ("NetworkPolicySpec", "policyTypes"),
        POLICY,
        {"spec": {"podSelector": {}}},
        {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
        {"spec": {"podSelector": {}, **EGRESS}},
        {"spec": {"podSelector": {}, **EGRESS, "policyTypes": ["Ingress", "Egress"]}},
    ),
    "the newer name of a claim's source goes with the older one": Case(
        ("PersistentVolumeClaimSpec", "dataSourceRef"),
        CLAIM,
        {"spec": {"dataSource": SOURCE}},
        {"spec": {"dataSource": SOURCE_AS_SERVED, "dataSourceRef": SOURCE}},
        {"spec": {}},
        {"spec": {}},
        unless={"spec": {"dataSource": SOURCE_AS_SERVED, "dataSourceRef": {**SOURCE, "name": "other"}}},
    ),
    "the older name of a claim's source goes with the newer one": Case(
        ("PersistentVolumeClaimSpec", "dataSource"),
        CLAIM,
        {"spec": {"dataSourceRef": SOURCE}},
        {"spec": {"dataSource": SOURCE_AS_SERVED, "dataSourceRef": SOURCE}},
        {"spec": {}},
        {"spec": {}},
    ),
    "a Service without an address has no list of addresses": Case(
        ("ServiceSpec", "clusterIPs"),
        SERVICE,
        service(clusterIP="None"),
        service(clusterIP="None", clusterIPs=["None"]),
        service(type="ExternalName"),
        service(type="ExternalName"),
        unless=service(clusterIP="None", clusterIPs=["None", "None"]),
    ),
    "a headless Service that gets a selector is of one family": Case(
        ("ServiceSpec", "ipFamilyPolicy"),
        SERVICE,
        service(clusterIP="None"),
        service(clusterIP="None", ipFamilyPolicy="RequireDualStack"),
        service(clusterIP="None", selector={"a": "b"}),
        service(clusterIP="None", selector={"a": "b"}, ipFamilyPolicy="SingleStack"),
        unless=service(clusterIP="None", ipFamilyPolicy="PreferDualStack"),
    ),
    "a policy of families that the server would restore is set to what it would be": Case(
        ("ServiceSpec", "ipFamilyPolicy"),
        SERVICE,
        service(ipFamilyPolicy="PreferDualStack", selector={"a": "b"}),
        service(ipFamilyPolicy="PreferDualStack", selector={"a": "b"}),
        service(selector={"a": "b"}),
        service(ipFamilyPolicy="SingleStack", selector={"a": "b"}),
    ),
    "a StatefulSet without rolling updates has no settings of them": Case(
        ("StatefulSetUpdateStrategy", "rollingUpdate"),
        STATEFUL_SET,
        ROLLING,
        rolling(partition=0),
        ON_DELETE,
        ON_DELETE,
        unless=rolling(partition=3),
    ),
    "a DaemonSet without rolling updates has no settings of them": Case(
        ("DaemonSetUpdateStrategy", "rollingUpdate"),
        DAEMON_SET,
        ROLLING,
        rolling(maxSurge=0, maxUnavailable=1),
        ON_DELETE,
        ON_DELETE,
        unless=rolling(maxSurge=0, maxUnavailable=2),
    ),
    "a DaemonSet's rolling updates may proceed again": Case(
        ("DaemonSetUpdateStrategy", "maxUnavailable"),
        DAEMON_SET,
        {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}}},
        {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}},
        {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}}}},
        rolling(maxSurge=0, maxUnavailable=1),
    ),
    "a controller selects by the labels of its template": Case(
        ("ReplicationControllerSpec", "selector"),
        CONTROLLER,
        {"spec": {"template": {"metadata": {"labels": {"a": "1"}}}}},
        {"spec": {"template": {"metadata": {"labels": {"a": "1"}}}, "selector": {"a": "1"}}},
        {"spec": {"template": {"metadata": {"labels": {"a": "2"}}}}},
        {"spec": {"template": {"metadata": {"labels": {"a": "2"}}}, "selector": {"a": "2"}}},
        unless={"spec": {"template": {"metadata": {"labels": {"a": "1"}}}, "selector": {"b": "1"}}},
    ),
    "collected permissions go with the reason for them": Case(
        ("ClusterRole", "rules"),
        ROLE,
        COLLECTED,
        {**COLLECTED, "rules": [RULE]},
        {},
        {},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_derived_field_follows_its_source(case: Case) -> None:
    assert merged(case.kind, case.applied, case.live, case.wanted) == case.result


@pytest.mark.parametrize(
    "case", [case for case in CASES.values() if case.unless], ids=[name for name, case in CASES.items() if case.unless]
)
def test_a_value_set_by_others_is_kept(case: Case) -> None:
    field = case.row[1]
    assert _found(merged(case.kind, case.applied, case.unless, case.wanted), field) == _found(case.unless, field) != []


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_derived_field_is_not_written_while_its_source_stays(case: Case) -> None:
    assert merged(case.kind, case.applied, case.live, case.applied) is case.live


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_second_merge_does_not_write_a_derived_field_again(case: Case) -> None:
    shape = shape_of(case.kind)
    first = three_way(case.live, case.wanted, create_fields(case.applied, shape), shape)
    assert three_way(first.object, case.wanted, first.fields, shape).object is first.object


def test_each_derived_field_has_a_case() -> None:
    rows = {(name.rpartition(".")[2], row.field) for name, rows in DERIVED.items() for row in rows}
    assert rows == {case.row for case in CASES.values()}


def test_each_derived_field_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "merge.md").read_text(encoding="utf-8")
    table = text.partition("## Fields that the server derives from others")[2].partition("\n\nA derived field")[0]
    assert [row.field for rows in DERIVED.values() for row in rows if f"`{row.field}`" not in table] == []


def _found(value: Any, name: str) -> list[Any]:
    """What stands under a name, anywhere."""
    if isinstance(value, dict):
        here = [value[name]] if name in value else []
        return here + [each for member in value.values() for each in _found(member, name)]
    return [each for item in value for each in _found(item, name)] if isinstance(value, list) else []


def test_a_derived_field_that_the_rule_sets_has_the_desired_value() -> None:
    live = container(image="app", imagePullPolicy="Always")
    wanted = container(image="app:1", imagePullPolicy="Always")
    assert merged(DEPLOYMENT, container(image="app"), live, wanted) == wanted


def test_a_derived_field_that_the_rule_had_set_is_removed_with_its_source() -> None:
    applied = pod(serviceAccountName="one", serviceAccount="one")
    assert merged(DEPLOYMENT, applied, applied, pod()) == pod()


def test_an_ignored_field_is_left_alone() -> None:
    live, wanted = container(image="app", imagePullPolicy="Always"), container(image="app:1")
    for text in ("spec.template.spec.containers[name=app].imagePullPolicy", "spec.template.spec.containers[name=app]"):
        result = merged(DEPLOYMENT, container(image="app"), live, wanted, ignore=[parse_path(text)])
        assert _found(result, "imagePullPolicy") == ["Always"]
    live = pod(serviceAccountName="one", serviceAccount="one")
    ignore = [parse_path("spec.template.spec.serviceAccount")]
    assert merged(DEPLOYMENT, pod(serviceAccountName="one"), live, pod(), ignore=ignore) == pod(serviceAccount="one")


def test_containers_of_others_keep_their_derived_fields() -> None:
    side = {"name": "side", "image": "side", "imagePullPolicy": "Always"}
    live = pod(containers=[{"name": "app", "image": "app:1", "imagePullPolicy": "IfNotPresent"}, side])
    result = merged(DEPLOYMENT, container(image="app:1"), live, container(image="app:2"))
    assert result == pod(containers=[{"name": "app", "image": "app:2", "imagePullPolicy": "IfNotPresent"}, side])


def test_a_pod_keeps_its_immutable_pull_policy() -> None:
    live = {"spec": {"containers": [{"name": "app", "image": "app", "imagePullPolicy": "Always"}]}}
    result = merged(
        POD, live, live, {"spec": {"containers": [{"name": "app", "image": "app:1", "imagePullPolicy": "Always"}]}}
    )
    assert _found(result, "imagePullPolicy") == ["Always"]
    applied, wanted = ({"spec": {"containers": [{"name": "app", "image": image}]}} for image in ("app", "app:1"))
    assert _found(merged(POD, applied, live, wanted), "imagePullPolicy") == ["Always"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("registry.example.com:5000/app", "Always"),
        (f"app:latest@sha256:{'0' * 64}", "Always"),
        ("app:1", "IfNotPresent"),
        ("registry.example.com:5000/app:1", "IfNotPresent"),
        (f"app@sha256:{'0' * 64}", "IfNotPresent"),
    ],
)
def test_the_tag_of_an_image_decides_its_derived_pull_policy(image: str, policy: str) -> None:
    other = {"Always": "app:0", "IfNotPresent": "app"}[policy]
    derived = {"Always": "IfNotPresent", "IfNotPresent": "Always"}[policy]
    result = merged(
        DEPLOYMENT, container(image=other), container(image=other, imagePullPolicy=derived), container(image=image)
    )
    assert result == container(image=image, imagePullPolicy=policy)


def test_defaulted_settings_that_the_rule_set_later_are_removed_with_their_source() -> None:
    shape = shape_of(STATEFUL_SET)
    first = three_way(rolling(partition=0), rolling(partition=2), create_fields(ROLLING, shape), shape)
    assert three_way(first.object, ON_DELETE, first.fields, shape).object == ON_DELETE


@pytest.mark.parametrize("kind", [DEPLOYMENT, STATEFUL_SET, DAEMON_SET, SERVICE, CLAIM, POD, CONTROLLER, POLICY, ROLE])
@pytest.mark.parametrize("wrong", ["text", 1, [1], {"spec": "text"}, {"spec": [1]}, {"metadata": []}])
def test_a_value_of_the_wrong_type_is_left_to_the_server_to_reject(kind: Kind, wrong: Any) -> None:
    template = {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
    live = {
        "spec": {"template": template, "updateStrategy": {"type": "OnDelete"}, "selector": {"a": "1"}},
        "rules": [RULE],
    }
    for wanted in (
        {"spec": wrong},
        {"spec": {"template": wrong}},
        {"spec": {"template": {"spec": wrong}}},
        {"spec": {"updateStrategy": wrong}},
    ):
        shape = shape_of(kind)
        result = three_way(live, wanted, None, shape)
        assert three_way(result.object, wanted, result.fields, shape).object == result.object


def test_a_merge_without_a_record_removes_no_derived_field() -> None:
    live = pod(serviceAccountName="one", serviceAccount="one")
    assert three_way(live, pod(), None, shape_of(DEPLOYMENT)).object is live


def test_a_learned_answer_does_not_apply_after_its_source_is_removed() -> None:
    """Of two names for the service account the newer one won. It goes, and the older one counts."""
    both, older = pod(serviceAccountName="two", serviceAccount="one"), pod(serviceAccount="one")
    answered = pod(serviceAccountName="two", serviceAccount="two")
    learned = Learned.NOTHING.learn(both, answered, shape_of(DEPLOYMENT))
    assert merged(DEPLOYMENT, both, answered, both, learned=learned) is answered
    assert merged(DEPLOYMENT, both, answered, older, learned=learned) == older


def test_an_empty_desired_value_counts_as_missing() -> None:
    def controller(label: str, **spec: Any) -> Object:
        return {"spec": {"template": {"metadata": {"labels": {"a": label}}}, **spec}}

    live = controller("1", selector={"a": "1"})
    applied, wanted = controller("1", selector={}), controller("2", selector={})
    learned = Learned.NOTHING.learn(applied, live, shape_of(CONTROLLER))
    assert merged(CONTROLLER, applied, live, wanted, learned=learned) == controller("2", selector={"a": "2"})


def test_an_empty_struct_in_the_rule_is_not_missing() -> None:
    wanted = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}}}
    assert _found(merged(DAEMON_SET, ROLLING, rolling(maxSurge=0, maxUnavailable=1), wanted), "rollingUpdate") != []


def test_the_patch_removes_derived_fields() -> None:
    live = pod(serviceAccountName="one", serviceAccount="one")
    patch = merge_patch(live, merged(DEPLOYMENT, pod(serviceAccountName="one"), live, pod()))
    assert patch == pod(serviceAccountName=None, serviceAccount=None)
