"""Renderings of a chart as a project: a custom resource with the values of a rendering has the objects of that
rendering."""

from __future__ import annotations

import base64
import copy
import difflib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from ruleop.authoring.scaffold.manifests.application import Asked
from ruleop.authoring.scaffold.manifests.compared_project import compared_project
from ruleop.authoring.scaffold.new_project import NewProject, project_files
from ruleop.authoring.scaffold.unusable_input import ScaffoldError
from tests.exploration import examples
from tests.scaffold import charts
from tests.scaffold.charts import Chart, rendering
from tests.scaffold.projects import planned

NAMES = st.sampled_from(["alpha", "beta9", "x-1", "shop.example.org"])
NUMBERS = st.integers(1, 9) | st.integers(1000, 9999)
SWITCH = st.booleans()
LABELS = st.dictionaries(st.sampled_from(["tier", "team", "disk"]), NAMES, max_size=2)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def any_of(*choices: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(choices)


HOST = st.builds(
    lambda host, paths: {"host": host, "paths": [{"path": f"/{each}"} for each in paths]},
    NAMES,
    st.lists(any_of("", "api", "img"), min_size=1, max_size=2, unique=True),
)
WEB = some(
    replicaCount=NUMBERS,
    image=some(tag=any_of("1.27", "2.0-rc1"), repository=NAMES),
    serviceAccount=some(create=SWITCH, name=any_of("", "robot")),
    service=some(type=any_of("NodePort", "ClusterIP"), port=NUMBERS),
    ingress=some(
        enabled=SWITCH,
        className=any_of("", "nginx"),
        hosts=st.lists(HOST, min_size=1, max_size=2, unique_by=lambda each: each["host"]),
        tls=any_of([], [{"secretName": "shop-tls", "hosts": ["shop.example.org"]}]),
    ),
    resources=any_of({}, {"limits": {"cpu": "1", "memory": "1Gi"}}, {"requests": {"cpu": "100m"}}),
    autoscaling=some(enabled=SWITCH, maxReplicas=st.integers(2, 9)),
    podLabels=LABELS,
    nodeSelector=LABELS,
    tolerations=any_of([], [{"key": "gpu", "operator": "Exists"}]),
    extraEnv=any_of([], [{"name": "DEBUG", "value": "yes"}], [{"name": "A", "value": "b"}]),
)
MEMCACHED = some(
    memory=NUMBERS,
    verbose=SWITCH,
    extraFlags=any_of([], ["-o", "modern"], ["-l", "10.0.0.1"]),
    replicas=NUMBERS,
    persistence=some(enabled=SWITCH, size=any_of("1Gi", "20Gi"), storageClass=NAMES),
    pdb=some(create=SWITCH, minAvailable=st.just("50%") | NUMBERS),
    metrics=some(enabled=SWITCH, port=NUMBERS),
)
WORKER = some(
    replicas=NUMBERS,
    logLevel=any_of("debug", "warn"),
    queue=some(host=NAMES, port=NUMBERS, tls=SWITCH),
    features=some(beta=SWITCH),
    cleanup=some(enabled=SWITCH, schedule=st.just("0 5 * * *")),
    config=st.dictionaries(any_of("a.txt", "b.txt"), NAMES, max_size=2),
    podAnnotations=LABELS,
)
CHARTS = {
    "web": (charts.web, charts.WEB, WEB),
    "memcached": (charts.memcached, charts.MEMCACHED, MEMCACHED),
    "worker": (charts.worker, charts.WORKER, WORKER),
}


def made(chart: Chart, defaults: dict[str, Any], *values: dict[str, Any]) -> NewProject:
    renderings = [rendering(chart, defaults, each, f"v{number}") for number, each in enumerate(({}, *values))]
    return compared_project(renderings, Asked("example.com", "v1", "Web", "app"))


def comparable(value: Any) -> Any:
    """What an object means: without labels of Helm, and without empty fields."""
    if isinstance(value, dict):
        kept = {key: comparable(each) for key, each in value.items() if not key.startswith("helm.sh/")}
        left = {key: each for key, each in kept.items() if each not in ({}, [], None)}
        return {key: each for key, each in left.items() if key not in ("app.kubernetes.io/managed-by", "namespace")}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def objects_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        f"{each['kind']}/{each['metadata']['name']}": comparable(charts.without_nothing(each))
        for each in objects
        if "helm.sh/hook" not in each["metadata"].get("annotations", {})
    }


def check_project(chart: Chart, defaults: dict[str, Any], values: tuple[dict[str, Any], ...], root: Path) -> NewProject:
    """Each sample of the project gives the objects of its rendering, and nothing else."""
    project = made(chart, defaults, *values)
    plans = sorted(planned(project, root, {"sensitive-field"}), key=lambda each: each.resource.name)
    for number, (plan, each) in enumerate(zip(plans, ({}, *values), strict=True)):
        text = json.dumps([obj for _, _, obj in plan.rendered]).replace(f"{charts.RELEASE}-v{number}", charts.RELEASE)
        expected = objects_of(chart(copy.deepcopy(charts.merged(defaults, each))))
        found = objects_of(json.loads(text))
        shown = [yaml.safe_dump(every).splitlines() for every in (expected, found)]
        assert list(difflib.unified_diff(*shown, lineterm="", n=2)) == []
    return project


def depends_on_two_values(values: list[dict[str, Any]]) -> bool:
    """Whether the name of the ServiceAccount is given in one rendering, and in another neither given nor computed."""
    accounts = [{"create": True, "name": "", **each.get("serviceAccount", {})} for each in values]
    return any(each["name"] for each in accounts) and any(not each["create"] and not each["name"] for each in accounts)


@pytest.mark.parametrize(
    "values", [({"name": "robot"}, {"create": False}), ({"create": False}, {"create": False, "name": "robot"})]
)
def test_a_name_that_depends_on_two_values_is_refused_with_what_to_do(values):
    renderings = [{"serviceAccount": each} for each in values]
    assert depends_on_two_values(renderings)
    with pytest.raises(ScaffoldError, match=r"serviceAccountName differs.*leave this rendering out, and edit"):
        made(charts.web, charts.WEB, *renderings)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARTS)
@given(data=st.data())
@settings(
    max_examples=examples(8),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_custom_resource_with_the_values_of_a_rendering_has_its_objects(name, data, tmp_path_factory):
    chart, defaults, strategy = CHARTS[name]
    values = data.draw(st.lists(strategy, min_size=1, max_size=2))
    assume(name != "web" or not depends_on_two_values(values))
    check_project(chart, defaults, tuple(values), tmp_path_factory.mktemp("project") / "web")


PROD = {
    "replicaCount": 3,
    "image": {"tag": "1.27"},
    "service": {"port": 8080},
    "ingress": {"enabled": True, "hosts": [{"host": "shop.example.org", "paths": [{"path": "/"}, {"path": "/api"}]}]},
    "autoscaling": {"enabled": True, "maxReplicas": 7},
    "resources": {"limits": {"memory": "1Gi"}},
    "podLabels": {"tier": "front"},
    "extraEnv": [{"name": "DEBUG", "value": "yes"}],
}


def texts(chart: Chart, defaults: dict[str, Any], *values: dict[str, Any]) -> dict[str, str]:
    return project_files(made(chart, defaults, *values), {})


@pytest.mark.slow
def test_a_value_that_is_a_quantity_has_a_pattern(tmp_path):
    values = tuple({"persistence": {"enabled": True, "size": size}} for size in ("1Gi", "20Gi"))
    project = check_project(charts.memcached, charts.MEMCACHED, values, tmp_path / "web")
    watch = yaml.safe_load(project_files(project, {})["watches.yaml"])[0]
    assert watch["schema"]["spec"]["persistence"]["size"].startswith("string | default=8Gi pattern=")


@pytest.mark.slow
def test_templates_read_what_the_chart_reads(tmp_path):
    check_project(charts.web, charts.WEB, (PROD,), tmp_path / "web")
    files = texts(charts.web, charts.WEB, PROD)
    deployment = files["templates/web/deployment.yaml.j2"]
    for line in (
        "  {% if not spec.autoscaling.enabled %}\n  replicas: {{ spec.replicaCount }}\n  {% endif %}\n",
        "image: nginx:{{ spec.image.tag or '1.16.0' }}\n",
        "containerPort: {{ spec.service.port }}\n",
        "resources: {{ spec.resources }}\n",
        "        {{ spec.podLabels }}\n",
        "            {{ spec.extraEnv }}\n",
    ):
        assert line in deployment
    ingress = files["templates/web/ingress.yaml.j2"]
    assert "{% for host in spec.ingress.hosts %}\n    - host: {{ host.host }}\n" in ingress
    assert "{% for path in host.paths %}\n          - path: {{ path.path }}\n" in ingress
    (watch,) = yaml.safe_load(files["watches.yaml"])
    assert watch["children"]["horizontalPodAutoscaler"]["when"] == "spec.autoscaling.enabled"
    assert watch["children"]["ingress"]["when"] == "spec.ingress.enabled"


def test_the_spec_has_the_values_that_templates_read_with_those_of_the_chart_as_defaults():
    (watch,) = yaml.safe_load(texts(charts.web, charts.WEB, PROD)["watches.yaml"])
    spec = watch["schema"]["spec"]
    assert spec["replicaCount"] == "integer | default=1"
    assert spec["autoscaling"]["enabled"] == "boolean | default=false"
    assert spec["autoscaling"]["maxReplicas"] == "integer | default=100", "it is beside a switch that differs"
    assert spec["podLabels"] == "map[string]string | default={}"
    assert spec["resources"] == "object | default={}"
    assert "repository" not in spec["image"], "it does not differ"
    assert "nodeSelector" not in spec


def test_a_value_that_decides_which_program_runs_is_a_word():
    values = {"image": {"repository": "mirror.example.org/nginx", "tag": "2"}}
    (watch,) = yaml.safe_load(texts(charts.web, charts.WEB, values)["watches.yaml"])
    assert 'pattern="^([A-Za-z0-9][A-Za-z0-9._:/@-]*)?$"' in watch["schema"]["spec"]["image"]["repository"]


def test_files_have_conditions_for_words_and_for_lines(tmp_path):
    values = {"queue": {"tls": True, "host": "q.example.org"}, "features": {"beta": True}}
    check_project(charts.worker, charts.WORKER, (values,), tmp_path / "web")


def test_names_decide_between_values_that_explain_a_difference_and_the_others_are_named():
    project = made(charts.web, charts.WEB, {"ingress": {"enabled": True}, "autoscaling": {"enabled": True}})
    assert {child.id: child.settings["when"] for child in project.children if "when" in child.settings} == {
        "horizontalPodAutoscaler": "spec.autoscaling.enabled",
        "ingress": "spec.ingress.enabled",
    }

    def chart(values: dict[str, Any]) -> list[dict[str, Any]]:
        return [charts.obj("v1", "ConfigMap", "web-x", data={"width": values["a"], "b": "c"})]

    doubtful = made(chart, {"a": "1", "c": "1"}, {"a": "2", "c": "2"})
    assert doubtful.notes[-1] == (
        "ConfigMap/web-x reads spec.a, but spec.c would explain it as well: compare another rendering in which only "
        "one of them differs."
    )
    certain = made(chart, {"a": "1", "c": "1"}, {"a": "2", "c": "2"}, {"a": "1", "c": "2"})
    assert not any("as well" in note for note in certain.notes)


def test_a_difference_that_no_value_explains_becomes_a_field_of_its_own(tmp_path):
    def chart(values: dict[str, Any]) -> list[dict[str, Any]]:
        data = {"half": f"about {values['size'] // 2} of it", "more": "yes" if values["size"] > 9 else None}
        return [charts.obj("v1", "ConfigMap", "web-x", data=data)]

    project = check_project(chart, {"size": 4}, ({"size": 12},), tmp_path / "web")
    assert [dict(each)["spec"] for each in project.samples] == [
        {"configMapHalf": "2", "configMapMore": False},
        {"configMapHalf": "6", "configMapMore": True},
    ]


@pytest.mark.parametrize("key", ["password", "dsn", "setting"])
def test_credentials_among_the_values_are_in_no_file(key):
    def chart(values: dict[str, Any]) -> list[dict[str, Any]]:
        found = charts.worker({**charts.WORKER, "logLevel": values["level"]})
        container = found[1]["spec"]["template"]["spec"]["containers"][0]
        container["env"] = [{"name": "DB_PASSWORD", "value": values[key]}, *values["extraEnv"]]
        found[0]["data"]["db.ini"] = f"password = {values[key]}\n"
        data = {"password": base64.b64encode(values[key].encode()).decode()}
        return [charts.obj("v1", "Secret", "web-db", data=data), *found]

    first = {"level": "a", key: "hunter2", "extraEnv": []}
    second = {"level": "b", key: "Tr0ub4dor&3", "extraEnv": [{"name": "API_TOKEN", "value": "correct-horse-9"}]}
    text = "\n".join(texts(chart, first, second).values())
    assert not [each for each in ("hunter2", "Tr0ub4dor", "correct-horse") if each in text]


@pytest.mark.slow
def test_keys_of_maps_decide_nothing_and_fields_that_items_lack_have_a_default(tmp_path):
    values = {"config": {"b.txt": "x"}, "features": {"beta": True}}
    check_project(charts.worker, charts.WORKER, (values,), tmp_path / "map")

    def chart(values: dict[str, Any]) -> list[dict[str, Any]]:
        items = [{"host": each["host"], "tls": each.get("tls")} for each in values["hosts"]]
        return [charts.obj("example.org/v1", "Thing", "web-x", spec={"hosts": items})]

    hosts = [{"host": "a", "tls": "x"}, {"host": "b"}]
    check_project(chart, {"hosts": [{"host": "c", "tls": "y"}]}, ({"hosts": hosts},), tmp_path / "items")


def test_a_list_in_another_order_keeps_its_order(tmp_path):
    def chart(values: dict[str, Any]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}, {"name": "c"}]
        chosen = items[::-1] if values["reversed"] else items[:2]
        return [charts.obj("example.org/v1", "Thing", "web-x", spec={"items": chosen})]

    check_project(chart, {"reversed": 0}, ({"reversed": 1},), tmp_path / "web")


def test_renderings_of_different_releases_are_refused():
    first = rendering(lambda values: [charts.obj("v1", "ConfigMap", "a")], {}, {}, "a")
    second = rendering(lambda values: [charts.obj("v1", "ConfigMap", "b")], {}, {}, "b")
    with pytest.raises(ScaffoldError, match="no object in common: render each under the same release name"):
        compared_project([first, second], Asked("example.com", "v1", "Web", "app"))


def test_hooks_tests_and_marks_of_helm_are_left_out_and_listed():
    def chart(values: dict[str, Any]) -> list[dict[str, Any]]:
        hook = charts.obj("batch/v1", "Job", "web-migrate")
        hook["metadata"]["annotations"] = {"helm.sh/hook": "pre-install,pre-upgrade"}
        kept = charts.obj("v1", "ConfigMap", "web-kept", data={"a": values["a"]})
        kept["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep", "meta.helm.sh/release-name": "web"}
        test = charts.obj("v1", "Pod", "web-test")
        test["metadata"]["annotations"] = {"helm.sh/hook": "test"}
        return [hook, kept, test]

    project = made(chart, {"a": "1"}, {"a": "2"})
    (child,) = project.children
    assert child.settings == {"deletion": "orphan", "adopt": "helm"}
    assert "helm" not in str(child.template)
    assert project.notes == (
        (
            "Labels and annotations of Helm were left out: app.kubernetes.io/managed-by, helm.sh/chart, "
            "helm.sh/resource-policy, meta.helm.sh/release-name."
        ),
        "Job/web-migrate was left out: it is a hook of Helm (pre-install,pre-upgrade).",
        "Pod/web-test was left out: it is a test of the chart (test).",
    )


def test_a_checksum_that_differs_is_that_of_the_children_with_the_configuration(tmp_path):
    def chart(values: dict[str, Any]) -> list[dict[str, Any]]:
        found = charts.worker(values)
        annotations = found[1]["spec"]["template"]["metadata"]["annotations"]
        annotations["checksum/config"] = f"sum of {found[0]}"
        return found

    files = texts(chart, charts.WORKER, {"logLevel": "debug"})
    assert "checksum/config: {{ [configMap] | sha256 }}" in files["templates/web/deployment.yaml.j2"]
