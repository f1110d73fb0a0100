"""A running application as a project: the same objects for a custom resource of its name, and consistent ones for
another."""

from __future__ import annotations

import copy
import difflib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.scaffold.manifests.application import Asked, application_project
from ruleop.authoring.scaffold.manifests.names import references
from ruleop.authoring.scaffold.naming import ScaffoldError
from ruleop.authoring.scaffold.new_project import NewProject, project_files
from ruleop.authoring.scaffold.yaml_layout import replaced, walk
from ruleop.language.rules.checking import build_project
from ruleop.localcluster import LocalCluster
from tests.authoring.scaffold.projects import planned, rendered
from tests.docs.messages import ROOT

BLOG = ROOT / "tests" / "authoring" / "scaffold" / "blog.yaml"
OTHERS = {"console", "teams", "tenant", "images.yaml"}  # with Namespaces, computed names, or Jobs of a version
APPLICATIONS = [
    BLOG,
    *(
        path
        for folder in ("examples", "tests/projects")
        for path in sorted(ROOT.glob(f"{folder}/*/tests/snapshots/*.yaml"))
        if OTHERS.isdisjoint(path.parts)
    ),
]
FAST = {
    BLOG,
    ROOT / "examples/postgres/tests/snapshots/orders.yaml",
    ROOT / "tests/projects/kafka/tests/snapshots/events.yaml",
}


def some(paths: list[Path]) -> pytest.MarkDecorator:
    """A test of each application; of most of them only where there is time."""
    marked = [
        pytest.param(path, id=path.relative_to(ROOT).as_posix(), marks=() if path in FAST else pytest.mark.slow)
        for path in paths
    ]
    return pytest.mark.parametrize("path", marked)


def read(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def made(objects: list[dict[str, Any]], *lift: str) -> NewProject:
    return application_project(objects, Asked("example.com", "v1", "", "app", lift))


def renamed(project: NewProject, name: str) -> NewProject:
    """The project with a sample of another name."""
    sample = copy.deepcopy(dict(project.samples[0]))
    sample["metadata"]["name"] = name
    return NewProject(**{each: getattr(project, each) for each in project.__slots__} | {"samples": (sample,)})  # type: ignore[arg-type]


def comparable(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without its namespace and passwords, and without labels that make selectors unique."""
    obj = copy.deepcopy(obj)
    obj["metadata"].pop("namespace", None)
    if not obj["metadata"].get("annotations", True):
        del obj["metadata"]["annotations"]
    for key in ("data", "stringData"):
        if obj["kind"] == "Secret":
            obj.pop(key, None)
    return obj


def moved(obj: dict[str, Any]) -> Any:
    """An object of the blog whose password in plain text is a reference."""
    if isinstance(obj, list):
        return [moved(each) for each in obj]
    if not isinstance(obj, dict):
        return obj
    if obj.get("value") == "plaintext":
        key = {"name": "blog-credentials", "key": obj["name"]}
        return {"name": obj["name"], "valueFrom": {"secretKeyRef": key}}
    return {key: moved(each) for key, each in obj.items()}


@pytest.mark.slow
@some(APPLICATIONS)
def test_a_custom_resource_of_the_same_name_has_the_same_objects(path, tmp_path):
    objects = read(path)
    project = made(objects)
    found = rendered(planned(project, tmp_path))
    scaled = any("decides them" in note for note in project.notes)
    for obj in objects:
        name = f"{obj['kind']}/{obj['metadata']['name']}"
        if name == "Secret/smtp":
            continue  # observed
        expected, new = comparable(obj), comparable(found[name])
        if scaled and obj["kind"] == "Deployment":
            expected["spec"].pop("replicas", None)
        text = yaml.safe_dump(moved(expected))
        shown = [line for line in text.splitlines() if line.strip() != "resources: {}"]
        difference = list(difflib.unified_diff(shown, yaml.safe_dump(new).splitlines(), lineterm="", n=1))
        assert difference == []


@pytest.mark.slow
@some(APPLICATIONS)
def test_with_another_name_all_objects_and_their_references_follow_it(path, tmp_path):
    objects = read(path)
    known = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    project = made(objects)
    found = rendered(planned(renamed(project, "other"), tmp_path))
    names = {tuple(name.split("/")) for name in found}
    assert all(name.startswith("other") for _, name in names)
    for obj in found.values():
        for reference in references(obj):
            target = (reference.kind, reference.name)
            assert target not in known or target[1] in ("smtp", "blog-credentials"), (
                f"{obj['kind']} still refers to {target}"
            )
            if reference.name.startswith("other") and not any("not among" in note for note in project.notes):
                assert target in names
        selector = obj.get("spec", {}).get("selector")
        if obj["kind"] == "Service":
            assert any("other" in value for value in selector.values()), (
                "it would select pods of other custom resources"
            )


def test_no_data_of_a_secret_is_in_any_file(tmp_path):
    text = "\n".join(project_files(made(read(BLOG)), {}).values())
    for value in ("aHVudGVyMg==", "aHVudGVyMw==", "hunter", "joe", "plaintext"):
        assert value not in text


def test_a_secret_of_passwords_is_generated_and_another_is_observed(tmp_path):
    project = made(read(BLOG))
    files = project_files(project, {})
    assert yaml.safe_load(files["watches.yaml"])[0]["children"]["dbSecret"] == {
        "template": "blog/db-secret.yaml.j2",
        "apply": {"strategy": "create-only"},
        "adopt": "orphans",
        "deletion": "orphan",
    }
    assert "password: {{ random_password(24) }}" in files["templates/blog/db-secret.yaml.j2"]
    assert yaml.safe_load(files["existing/smtp.yaml"])["stringData"] == {
        "username": "change-me",
        "password": "change-me",
    }
    assert "name: {{ smtpSecret.metadata.name }}" in files["templates/blog/deployment.yaml.j2"]
    assert project.samples[0]["spec"]["smtpSecret"] == "smtp"
    assert any("Secret/smtp was not copied: users make such a Secret" in note for note in project.notes)


def test_the_spec_has_the_varying_fields_with_their_values_as_defaults():
    project = made(read(BLOG))
    spec = project.samples[0]["spec"]
    assert spec["image"] == "wordpress:6.8"
    assert spec["host"] == "blog.example.com"
    assert spec["db"]["storage"] == "10Gi"
    schema = project.spec
    assert schema["required"] == ["host", "smtpSecret", "credentialsSecret"]
    assert schema["properties"]["image"]["default"] == "wordpress:6.8"
    assert ("spec.host", "Ingress/blog:spec.rules[0].host") in project.lifted


def test_lifted_fields_can_be_named():
    project = made(
        read(BLOG),
        "Deployment/blog:spec.replicas=size",
        "spec.template.spec.containers[name=wordpress].env[name=WORDPRESS_DEBUG].value",
        "ConfigMap/blog-config:data['custom.ini']=php.ini",
    )
    assert [name for name, _ in project.lifted] == [
        *("spec.size", "spec.wordpressDebug", "spec.smtpSecret", "spec.credentialsSecret")
    ]


@pytest.mark.parametrize(
    ("lift", "message"),
    [
        ("spec.replica", "no manifest has this field"),
        ("Deployment/web:spec.replicas", "no manifest has this field in Deployment/web"),
        ("metadata.name", "follow the custom resource"),
        ("spec..x", "expected the name of a field"),
    ],
)
def test_a_field_that_cannot_be_lifted_is_refused(lift, message):
    with pytest.raises(ScaffoldError, match=message):
        made(read(BLOG), lift)


def obj(kind: str, name: str = "web", api_version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **more.pop("metadata", {})}, **more}


@pytest.mark.parametrize(
    ("left_out", "reason"),
    [
        (
            obj("Pod", metadata={"ownerReferences": [{"kind": "ReplicaSet", "name": "x", "controller": True}]}),
            "makes it",
        ),
        (obj("Namespace"), "a namespace of its own choice"),
        (obj("ClusterRole", api_version="rbac.authorization.k8s.io/v1"), "cluster-scoped"),
        (obj("ConfigMap", "kube-root-ca.crt"), "each namespace has it"),
        (obj("Secret", type="helm.sh/release.v1"), "made by Kubernetes or Helm"),
        (obj("Secret", "unused", data={"token": "eA=="}), "no other object refers to it"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_objects_that_are_not_the_applications_are_left_out_with_the_reason(left_out, reason):
    project = made([obj("ConfigMap", "web", data={"a": "b"}), left_out])
    assert [child.template["kind"] for child in project.children] == ["ConfigMap"]
    assert any("was left out" in note and reason in note for note in project.notes)


def test_objects_of_another_namespace_are_left_out(tmp_path):
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    binding = obj(
        "RoleBinding", "web", "rbac.authorization.k8s.io/v1", metadata={"namespace": "kube-system"}, roleRef=role
    )
    config = [obj("ConfigMap", name, data={"a": "b"}, metadata={"namespace": "shop"}) for name in ("web-a", "web-b")]
    project = made([binding, *config, obj("ConfigMap", "web-c", data={"a": "b"})])
    assert [child.template["kind"] for child in project.children] == ["ConfigMap"] * 3
    note = "RoleBinding/web was left out: it is in the namespace kube-system, and the application in shop."
    assert note in project.notes
    planned(project, tmp_path)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([obj("Namespace")], "the manifests have no object that a rule could make"),
        ([obj("ConfigMap"), obj("ConfigMap")], "ConfigMap/web appears twice"),
        ([{"apiVersion": "v1", "kind": "ConfigMap"}], "metadata.name of a ConfigMap is missing"),
        (
            [obj("ConfigMap", "a", metadata={"namespace": "x"}), obj("ConfigMap", "b", metadata={"namespace": "y"})],
            "several namespaces, half of them of y: use those of x",
        ),
    ],
)
def test_manifests_that_cannot_be_used_are_refused(objects, message):
    with pytest.raises(ScaffoldError, match=message):
        made(objects)


def test_selectors_without_the_name_get_a_label_for_the_instance(tmp_path):
    labels = {"app": "nginx"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    objects = [
        obj("Deployment", "web", "apps/v1", spec={"selector": {"matchLabels": labels}, "template": pod}),
        obj("Service", "web", spec={"selector": labels, "ports": [{"port": 80}]}),
    ]
    found = rendered(planned(made(objects), tmp_path))
    assert found["Service/web"]["spec"]["selector"] == {"app": "nginx", "app.kubernetes.io/instance": "web"}
    assert found["Deployment/web"]["spec"]["selector"]["matchLabels"] == found["Service/web"]["spec"]["selector"]


def test_names_without_a_common_beginning_get_the_name_of_the_custom_resource(tmp_path):
    objects = [obj("ConfigMap", name, data={"a": "b"}) for name in ("red", "green", "blue")]
    assert list(rendered(planned(made(objects), tmp_path))) == [
        "ConfigMap/app-red",
        "ConfigMap/app-green",
        "ConfigMap/app-blue",
    ]


def test_a_custom_kind_is_optional():
    project = made(
        [obj("ConfigMap"), obj("Certificate", api_version="cert-manager.io/v1", spec={"secretName": "web-tls"})]
    )
    assert [child.optional for child in project.children] == [False, True]


def test_the_namespace_of_an_own_subject_is_that_of_the_custom_resource(tmp_path):
    objects = [
        obj("ServiceAccount", "web"),
        obj(
            "RoleBinding",
            "web",
            "rbac.authorization.k8s.io/v1",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            subjects=[
                {"kind": "ServiceAccount", "name": "web", "namespace": "prod"},
                {"kind": "ServiceAccount", "name": "robot", "namespace": "ci"},
            ],
        ),
    ]
    subjects = rendered(planned(made(objects), tmp_path))["RoleBinding/web"]["subjects"]
    assert [each["namespace"] for each in subjects] == ["default", "ci"]


def test_templates_are_tidy_although_kubectl_writes_fields_in_alphabetical_order():
    container = {"command": ["date"], "image": "busybox", "name": "task", "resources": {}}
    pod = {"metadata": {"creationTimestamp": None, "name": "web"}, "spec": {"containers": [container]}}
    config = obj("ConfigMap", "web", data={"status": "{}", "spec": "{}", "resources": ""})
    deployment = obj("Deployment", "web", "apps/v1", spec={"strategy": {}, "template": pod}, status={})
    files = project_files(made([config, deployment]), {})
    assert files["templates/web/deployment.yaml.j2"].splitlines()[4:] == [
        "spec:",
        "  template:",
        "    spec:",
        "      containers:",
        "        - name: task",
        "          image: {{ spec.image }}",
        "          command: [date]",
    ]
    assert yaml.safe_load(files["templates/web/config-map.yaml.j2"].rpartition("\ndata:")[2]) == config["data"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://web-db:80/x", "http://other-db:80/x"),
        ("web-db:5432", "other-db:5432"),
        ("user@web-db", "user@other-db"),
        ("web-db.prod.svc.cluster.local", "other-db.default.svc.cluster.local"),
        ("web-db-0.web-db", "other-db-0.other-db"),
        ("web-db", "web-db"),
        ("my-web-db:80", "my-web-db:80"),
        ("web-dbs:80", "web-dbs:80"),
    ],
)
def test_host_names_of_services_in_text_follow_the_name(text, expected, tmp_path):
    service = obj("Service", "web-db", spec={"ports": [{"port": 80}]}, metadata={"namespace": "prod"})
    config = obj("ConfigMap", "web", data={"a": text}, metadata={"namespace": "prod"})
    found = rendered(planned(renamed(made([service, config]), "other"), tmp_path))
    assert found["ConfigMap/other"]["data"]["a"] == expected


CUSTOM = {"orders.yaml", "replicated.yaml"}  # with a ServiceMonitor
STANDARD = [path for path in APPLICATIONS if "shop" not in path.parts and path.name not in CUSTOM]


@some(STANDARD)
def test_objects_of_a_cluster_give_the_project_that_their_manifests_give(path):
    """What the server has filled in and assigned is dropped."""
    cluster = LocalCluster()
    objects = [{**each, "metadata": {**each["metadata"], "uid": "u"}} for each in read(path)]
    for claim in objects:
        if claim["kind"] == "PersistentVolumeClaim":
            claim["spec"].setdefault("storageClassName", "standard")  # assigned by the cluster, and lifted
    live = [dict(cluster.apply(each).obj) for each in read(path)]
    assert all(each["metadata"]["managedFields"] for each in live)
    assert project_files(made(live), {}) == project_files(made(objects), {})


IDENTITY = {("apiVersion",), ("kind",)}  # which the reader of the files has checked
PLACES = [
    (number, path) for number, body in enumerate(read(BLOG)) for path, _ in walk(body) if path and path not in IDENTITY
]
ODD = st.sampled_from(
    [None, "", "x", "{{ x }}", "A b/c", 0, -1, 1.5, True, [], {}, [None], {"": None}, {"name": 7}, {"a/b": ["x"]}]
)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=3))
def test_odd_manifests_are_refused_or_become_files(changes):
    objects = read(BLOG)
    for (number, path), value in changes:
        objects[number] = replaced(objects[number], {path: value})
    try:
        files = project_files(made(objects), {})
    except ScaffoldError:
        return
    for path, text in files.items():
        if path.endswith(".yaml"):
            yaml.safe_load(text)


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [3, "x", 1.5, True, {"name": 7}])
def test_only_a_number_of_replicas_can_be_scaled(replicas):
    objects = read(BLOG)
    (number,) = (number for number, body in enumerate(objects) if body["kind"] == "Deployment")
    objects[number] = replaced(objects[number], {("spec", "replicas"): replicas})
    files = project_files(made(objects), {})
    build_project(files, root="", environ={})
    assert ("scale" in yaml.safe_load(files["watches.yaml"])[0]["schema"]) == (replicas == 3)


@pytest.mark.slow
@given(st.tuples(st.sampled_from(PLACES), ODD))
def test_odd_manifests_become_projects_that_load(change):
    """What an API server would reject may be a finding of check, but never a mistake of what init has written."""
    objects = read(BLOG)
    (number, path), value = change
    objects[number] = replaced(objects[number], {path: value})
    try:
        files = project_files(made(objects), {})
    except ScaffoldError:
        return
    build_project(files, root="", environ={})
