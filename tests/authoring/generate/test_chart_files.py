"""The chart, except what Helm makes of it (tests/cluster)."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.generate.chart_files import chart_files
from ruleop.authoring.generate.crds import installed_crds
from ruleop.language.rules.operator_choices import Choices
from tests.authoring.generate.projects import CONFIG, REQUIRED, WATCHES, project

DEFAULTS = Choices()


def chart(choices: Choices = DEFAULTS, watches: str = WATCHES) -> dict[str, str]:
    loaded = project(watches=watches)
    return chart_files(loaded, choices, installed_crds(loaded))


def values(choices: Choices = DEFAULTS) -> Any:
    return yaml.safe_load(chart(choices)["values.yaml"])


def refused(changes: dict[str, Any]) -> list[str]:
    """Where the schema refuses the values with some changed."""
    validator = jsonschema.Draft7Validator(json.loads(chart()["values.schema.json"]))
    changed = values()
    for name, value in changes.items():
        changed[name] = {**changed[name], **value} if isinstance(value, dict) and name in changed else value
    return ["/".join(map(str, error.path)) for error in validator.iter_errors(changed)]


def test_two_runs_give_the_same_bytes() -> None:
    assert list(chart().items()) == list(chart().items())


def test_rules_and_crds_are_files_that_no_template_engine_reads() -> None:
    files = chart()
    assert files["files/rules/templates/config.yaml"] == CONFIG
    assert files["files/rules/watches.yaml"] == WATCHES
    (crd,) = [yaml.safe_load(text) for path, text in files.items() if path.startswith("files/crds/")]
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert not [path for path in files if path.startswith("crds/")], "Helm never upgrades these"
    (policy,) = [yaml.safe_load(text) for path, text in files.items() if path.startswith("files/policies/")]
    assert policy["validations"][0]["expression"] == '!object.spec.page.contains("<b>")'


def test_with_the_rules_in_the_image_the_chart_has_none() -> None:
    assert not [path for path in chart(Choices(rules="image")) if path.startswith("files/rules/")]


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("ruleop:0.1.0", ("ruleop", "0.1.0", "")),
        ("localhost:5000/shop/operator", ("localhost:5000/shop/operator", "1.2.0", "")),
        (f"a.example.com/b:c@sha256:{'0' * 64}", ("a.example.com/b", "c", f"sha256:{'0' * 64}")),
        (f"b@sha256:{'0' * 64}", ("b", "", f"sha256:{'0' * 64}")),
    ],
)
def test_the_image_is_taken_apart(image: str, parts: tuple[str, str, str]) -> None:
    found = values(Choices(image=image, version="1.2.0"))["image"]
    assert (found["repository"], found["tag"], found["digest"]) == parts


def test_the_choices_are_the_default_values() -> None:
    found = values(
        Choices(namespaces=("a", "b"), replicas=3, metrics_auth=True, env={"DOMAIN": "shop.test", "MORE": "1"})
    )
    assert (found["watchNamespaces"], found["replicas"], found["metrics"]["secure"]) == (["a", "b"], 3, True)
    assert found["settings"] == {"DOMAIN": "shop.test", "MORE": "1"}
    assert values(Choices(leader_elect=False))["leaderElect"] is False


@pytest.mark.slow
def test_the_default_values_are_valid() -> None:
    schema = json.loads(chart()["values.schema.json"])
    jsonschema.Draft7Validator.check_schema(schema)
    assert refused({}) == []


@pytest.mark.slow
@given(st.sampled_from(sorted(values())), st.integers(min_value=0))
def test_a_misspelt_value_is_refused(name: str, place: int) -> None:
    letter = place % len(name)
    assert refused({name[:letter] + "_" + name[letter + 1 :]: None}) == [""]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"image": {"tags": "1"}}, "image"),
        ({"metrics": {"serviceMonitor": {"enable": True}}}, "metrics/serviceMonitor"),
        ({"settings": {"DOMIAN": "a"}}, "settings"),
        ({"settings": {"DOMAIN": 1}}, "settings/DOMAIN"),
        ({"watchNamespaces": ["Shop"]}, "watchNamespaces/0"),
        ({"fullnameOverride": "a/b"}, "fullnameOverride"),
        ({"fullnameOverride": "a" * 41}, "fullnameOverride"),
        ({"logLevel": "trace"}, "logLevel"),
        ({"replicas": "2"}, "replicas"),
        ({"rules": {"image": "example.com/rules:1"}}, "rules/image"),
        ({"podLabels": {"a": 1}}, "podLabels/a"),
        ({"dashboard": {"labels": {"a": 1}}}, "dashboard/labels/a"),
        ({"alerts": {"enable": True}}, "alerts"),
        ({"resources": None}, "resources"),
        ({"tolerations": "all"}, "tolerations"),
    ],
)
def test_an_invalid_value_is_refused(changes: dict[str, Any], where: str) -> None:
    assert refused(changes) == [where]


@pytest.mark.parametrize(
    "changes",
    [
        {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}},
        {"affinity": {"podAntiAffinity": {}}},
        {"tolerations": [{"operator": "Exists"}]},
        {"serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn"}}},
        {"global": {"anything": 1}},
        {"rules": {"image": f"example.com/rules:1@sha256:{'0' * 64}"}},
        {"dashboard": {"labels": {"dashboards": "shop"}}, "alerts": {"labels": {"release": "prometheus"}}},
        {"extraArgs": ["--kube-api-qps=20"], "extraEnv": [{"name": "A", "value": "b"}]},
    ],
)
def test_valid_values_are_accepted(changes: dict[str, Any]) -> None:
    assert refused(changes) == []


def test_a_variable_without_a_default_has_to_be_set() -> None:
    files = chart(watches=REQUIRED)
    found = yaml.safe_load(files["values.yaml"])
    assert found["settings"] == {"DOMAIN": ""}
    validator = jsonschema.Draft7Validator(json.loads(files["values.schema.json"]))
    (error,) = validator.iter_errors(found)
    assert list(error.path) == ["settings", "DOMAIN"]


def test_each_value_is_used_by_a_template() -> None:
    files = chart()
    templates = "".join(text for path, text in files.items() if path.startswith("templates/"))
    for name, value in values().items():
        for path in [f"{name}.{inner}" for inner in value] if isinstance(value, dict) and name not in WHOLE else [name]:
            assert f".Values.{path}" in templates or (name == "image" and f".{path.partition('.')[2]}" in templates), (
                path
            )


WHOLE = {"settings", "resources", "podAnnotations", "podLabels", "nodeSelector", "affinity"}


def test_artifact_hub_finds_the_kinds_an_example_of_each_and_the_images() -> None:
    rules = f"registry.example.com/rules@sha256:{'0' * 64}"
    choices = Choices(image="registry.example.com/ruleop:1", rules_image=rules, version="1.2.0-rc.1")
    found = yaml.safe_load(chart(choices)["Chart.yaml"])["annotations"]
    assert all(isinstance(each, str) for each in found.values())
    hub = {name.removeprefix("artifacthub.io/"): yaml.safe_load(text) for name, text in found.items()}
    assert hub["crds"] == [
        {
            "kind": "Site",
            "version": "v1",
            "name": "sites.example.com",
            "displayName": "Site",
            "description": "Site of example.com",
        }
    ]
    assert [(each["kind"], list(each["spec"])) for each in hub["crdsExamples"]] == [("Site", ["page"])]
    assert [each["image"] for each in hub["images"]] == ["registry.example.com/ruleop:1", rules]
    assert (hub["operator"], hub["operatorCapabilities"], hub["prerelease"]) == (True, "Deep Insights", True)
    assert "artifacthub.io/prerelease" not in yaml.safe_load(chart()["Chart.yaml"])["annotations"]
