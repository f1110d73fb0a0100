"""What `kubectl apply` installs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ruleop.authoring.generate.crds import installed_crds
from ruleop.authoring.generate.manifests import install_yaml, installation, kustomize_base
from ruleop.kubernetes.kinds import Object
from ruleop.kubernetes.names import lease_name
from ruleop.kubernetes.permissions import READ
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.operator_choices import Choices
from ruleop.operator.manager.parts import Options
from tests.authoring.generate.projects import REQUIRED, WATCHES, project
from tests.docs.messages import ROOT


def objects(choices: Choices, watches: str = WATCHES) -> dict[str, Object]:
    """By kind; of several, the last."""
    loaded = project(watches=watches)
    text = install_yaml(installation(loaded, choices, installed_crds(loaded)))
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def container(choices: Choices, watches: str = WATCHES) -> Any:
    (found,) = objects(choices, watches)["Deployment"]["spec"]["template"]["spec"]["containers"]
    return found


def test_objects_that_others_need_come_first() -> None:
    assert list(objects(Choices(replicas=2))) == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "NetworkPolicy",
    ]


def test_the_deployment_agrees_with_the_operator_and_the_image() -> None:
    pod = objects(Choices())["Deployment"]["spec"]["template"]["spec"]
    (found,) = pod["containers"]
    options = Options()
    ports = {each["name"]: f":{each['containerPort']}" for each in found["ports"]}
    assert ports == {"metrics": options.metrics_address, "health": options.health_address}
    assert pod["terminationGracePeriodSeconds"] > options.grace
    (mount,) = found["volumeMounts"]
    assert f"WORKDIR {mount['mountPath']}\n" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_changed_rules_and_a_new_version_leave_the_pods() -> None:
    before, after = objects(Choices()), objects(Choices(version="0.2.0"), WATCHES.replace("page", "text"))
    assert before["ConfigMap"] != after["ConfigMap"]
    assert before["Deployment"]["spec"]["template"] == after["Deployment"]["spec"]["template"]


def test_shards_are_the_pods_of_a_stateful_set() -> None:
    found = objects(Choices(name="shop", shards=3))
    assert "Deployment" not in found
    stateful_set, budget = found["StatefulSet"]["spec"], found["PodDisruptionBudget"]["spec"]
    (container,) = stateful_set["template"]["spec"]["containers"]
    assert (stateful_set["replicas"], stateful_set["podManagementPolicy"]) == (3, "Parallel")
    assert stateful_set["serviceName"] == found["Service"]["metadata"]["name"]
    assert container["args"] == ["run", "--name=shop", "--shards=auto"]
    paths = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"] if "valueFrom" in each
    }
    assert paths == {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
    assert budget["maxUnavailable"] == 1
    leases = {each["resources"][0]: each["verbs"] for each in found["Role"]["rules"] if "resourceNames" not in each}
    assert leases["leases"] == ["get", "list", "create", "update"]
    sets = {"apiGroups": ["apps"], "resources": ["statefulsets"], "resourceNames": ["shop"], "verbs": [*READ]}
    assert sets in found["Role"]["rules"]


@pytest.mark.slow
def test_a_selector_has_a_lease_of_its_own() -> None:
    found = objects(Choices(name="shop", selector="team=a"))
    lease = lease_name("shop", selector="team=a")
    assert lease.startswith("shop.team-a-")
    names = [name for rule in found["Role"]["rules"] for name in rule.get("resourceNames", ())]
    assert lease in names
    assert "--selector=team=a" in container(Choices(name="shop", selector="team=a"))["args"]


def test_one_pod_without_a_lease_is_gone_before_the_next_starts() -> None:
    deployment = objects(Choices(leader_elect=False))["Deployment"]
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert "--leader-elect" not in container(Choices(leader_elect=False))["args"]


def test_with_the_rules_in_the_image_nothing_is_mounted() -> None:
    found = objects(Choices(rules="image", image="shop:1.0.0"))
    assert "ConfigMap" not in found
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert "volumes" not in pod
    assert (pod["containers"][0]["image"], pod["containers"][0]["args"][-1]) == ("shop:1.0.0", "--no-reload")


def test_the_operator_gets_each_variable_literally() -> None:
    """$$ becomes $ in the pod, and $(NAME) would be replaced."""
    given = Choices(env={"DOMAIN": "$(HOME) $$", "EMPTY": "", "LINES": 'a\n"b": {{ c }}'})
    assert container(given)["env"] == [
        {"name": "DOMAIN", "value": "$$(HOME) $$$$"},
        {"name": "EMPTY"},
        {"name": "LINES", "value": 'a\n"b": {{ c }}'},
    ]
    assert container(Choices())["env"] == [{"name": "DOMAIN", "value": "example.com"}]


@pytest.mark.parametrize(
    ("choices", "made"),
    [
        (Choices(), True),
        (Choices(namespaces=("shop",)), True),
        (Choices(namespace="shop", namespaces=("shop",)), False),
        (Choices(namespace="default"), False),
        (Choices(namespace="kube-system"), False),
    ],
)
def test_a_namespace_with_pods_of_others_does_not_become_restricted(choices: Choices, made: bool) -> None:
    assert ("Namespace" in objects(choices)) is made


def test_a_variable_without_a_value_is_an_error() -> None:
    with pytest.raises(ProjectErrors) as error:
        installation(project(watches=REQUIRED), Choices(), ())
    assert str(error.value) == (
        "ruleop.yaml: the rules read the variable DOMAIN, which has no default: give it a value in `env`"
    )


def test_a_kustomization_names_each_file_and_leaves_components_to_the_user() -> None:
    loaded = project()
    files = kustomize_base(installation(loaded, Choices(), installed_crds(loaded)))
    assert all(text.startswith("# Made by `ruleop generate manifests`") for text in files.values())
    resources = yaml.safe_load(files["kustomization.yaml"])["resources"]
    assert resources == ["namespace.yaml", "crds.yaml", "rbac.yaml", "rules.yaml", "operator.yaml"]
    assert set(files) - {"kustomization.yaml", *resources} == {
        "components/service-monitor/kustomization.yaml",
        "components/service-monitor/service-monitor.yaml",
        "components/policy/kustomization.yaml",
        "components/policy/policy.yaml",
        "components/alerts/kustomization.yaml",
        "components/alerts/alerts.yaml",
        "components/dashboard/kustomization.yaml",
        "components/dashboard/dashboard.yaml",
    }


def test_a_project_without_rules_of_validate_has_no_component_for_them() -> None:
    before, _, rest = WATCHES.partition("  validate:")
    plain = before + "  children:" + rest.partition("  children:")[2]
    assert "policy" not in installation(project(watches=plain), Choices(), ()).components


def test_the_base_and_the_stream_have_the_same_objects() -> None:
    loaded = project()
    found = installation(loaded, Choices(), installed_crds(loaded))
    files = kustomize_base(found)
    base = [
        each
        for name in yaml.safe_load(files["kustomization.yaml"])["resources"]
        for each in yaml.safe_load_all(files[name])
    ]
    assert base == list(yaml.safe_load_all(install_yaml(found)))


def test_alerts_are_about_the_operator_of_one_namespace() -> None:
    """Two releases of the same name have the same job: if one has no leader, the other must not hide it."""
    (found,) = installation(project(), Choices(name="shop", namespace="shop-system"), ()).components["alerts"]
    expressions = [each["expr"] for each in found["spec"]["groups"][0]["rules"]]
    assert all('{job="shop-metrics",namespace="shop-system"' in each for each in expressions)


def test_metrics_for_permitted_users_need_a_certificate() -> None:
    choices = Choices(name="shop", metrics_auth=True)
    pod = objects(choices)["Deployment"]["spec"]["template"]["spec"]
    assert {"name": "metrics-tls", "secret": {"secretName": "shop-metrics-tls"}} in pod["volumes"]
    (monitor,) = installation(project(), choices, ()).components["service-monitor"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]["serverName"]) == ("https", "shop-metrics.ruleop-system.svc")


def test_an_image_of_the_rules_is_mounted_in_place_of_the_config_map() -> None:
    reference = f"registry.example.com/rules:1.2.0@sha256:{'0' * 64}"
    found = objects(Choices(rules_image=reference))
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (only,) = pod["containers"]
    assert "ConfigMap" not in found
    assert pod["volumes"] == [{"name": "rules", "image": {"reference": reference, "pullPolicy": "IfNotPresent"}}]
    assert only["volumeMounts"] == [{"name": "rules", "mountPath": "/rules", "readOnly": True}]
    assert only["image"] == Choices().image
    assert "--no-reload" in only["args"], "an image of a running pod never changes"
