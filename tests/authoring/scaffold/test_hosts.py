"""Names of objects in manifests: references and host names follow the custom resource, anything else stays and is
listed."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.authoring.offline import documents_in
from ruleop.authoring.scaffold.manifests.application import Asked, application_project
from tests.authoring.scaffold.projects import planned, rendered
from tests.authoring.scaffold.test_credentials import deployment
from tests.authoring.scaffold.test_from_manifests import made, obj, renamed

DB = obj(
    "Service",
    "web-db",
    spec={"ports": [{"name": "sql", "port": 5432}, {"name": "metrics", "port": 99}]},
    metadata={"namespace": "prod"},
)


def other(objects: list[dict[str, Any]], tmp_path: Any) -> dict[str, Any]:
    """The objects of a custom resource with the name `other`."""
    return rendered(planned(renamed(made(objects), "other"), tmp_path))


def test_an_image_does_not_follow_a_service_of_the_same_name(tmp_path):
    service = obj("Service", "web", spec={"ports": [{"port": 80}]})
    pods = deployment({"env": [{"name": "SIDECAR_IMAGE", "value": "web:8080"}], "args": ["--image=acme/web:8080"]})
    found = other([service, pods], tmp_path)["Deployment/other"]["spec"]["template"]["spec"]["containers"][0]
    assert found["image"] == "acme/web:1.2"
    assert found["args"] == ["--image=acme/web:8080"]
    assert found["env"] == [{"name": "SIDECAR_IMAGE", "value": "web:8080"}]


HOSTS = [
    ("DATA", "http://web-db/x", "http://other-db/x"),
    ("DATA", "postgres://joe@web-db/web-db", "postgres://joe@other-db/web-db"),
    ("DATA", "web-db:5432", "other-db:5432"),
    ("DATA", "web-db:99", "other-db:99"),
    ("DATA", "web-db.prod.svc.cluster.local", "other-db.default.svc.cluster.local"),
    ("DATA", "web-db.prod:80", "other-db.default:80"),
    ("DATA", "tcp(web-db:5432)/x", "tcp(other-db:5432)/x"),
    ("DB_HOST", "web-db", "other-db"),
    ("LEADER", "web-db", "other-db"),
    ("BROKERS", "web-db:98,web-db", "other-db:98,other-db"),
    ("DATA", "host=web-db port=1", "host=other-db port=1"),
    ("DATA", "pg_dump -h web-db", "pg_dump -h other-db"),
    ("DATA", "until nc -z web-db 5432; do sleep 1; done", "until nc -z other-db 5432; do sleep 1; done"),
    ("DATA", '{"server": "web-db"}', '{"server": "other-db"}'),
]
LEFT = [
    ("DATABASE", "web-db"),
    ("DATA", "run web-db"),
    ("DATA", "web-db:8.4"),
    ("DATA", "web-db:98"),
    ("DB_HOST", "web-db.other.svc"),
    ("DATA", "deployment/web-db"),
    ("PORT", "$(WEB_DB_SERVICE_PORT)"),
    ("IMAGE", "web-db:5432"),
]
NO_NAMES = ["web-db://example.com", "web-dbs", "my-web-db", "web-db.example.com", "/etc/web-db/x", "acme/web-db:5432"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text", "expected"), HOSTS)
def test_a_host_name_in_a_variable_follows_the_service(name, text, expected, tmp_path):
    pods = deployment({"env": [{"name": name, "value": text}]})
    found = other([DB, pods], tmp_path)["Deployment/other"]["spec"]["template"]["spec"]["containers"][0]
    assert found["env"][0]["value"] == expected


@pytest.mark.parametrize(("name", "text", "expected"), HOSTS)
def test_a_host_name_in_a_file_follows_the_service(name, text, expected, tmp_path):
    found = other([DB, obj("ConfigMap", "web", data={name: text})], tmp_path)
    assert found["ConfigMap/other"]["data"][name] == expected


@pytest.mark.parametrize(("name", "text"), LEFT)
def test_a_word_that_may_be_the_name_of_something_else_stays_and_is_listed(name, text):
    project = made([DB, deployment({"env": [{"name": name, "value": text}]})])
    place = f"Deployment/web:spec.template.spec.containers[name=web].env[name={name}].value"
    assert [each for _, each in project.left] == [place]
    [value] = project.samples[0]["spec"]["env"].values()
    assert value == text


@pytest.mark.parametrize("text", NO_NAMES)
def test_a_name_inside_of_another_is_not_listed(text):
    project = made([DB, deployment({"env": [{"name": "DB_HOST", "value": text}]})])
    assert project.left == ()
    assert [*project.samples[0]["spec"]["env"].values()] == [text]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--host", "web-db"], ["--host", "other-db"]),
        (["--slaveof", "web-db", "1"], ["--slaveof", "other-db", "1"]),
        (["-h", "web-db"], ["-h", "other-db"]),
        (["--upstream=web-db"], ["--upstream=other-db"]),
        (["dump", "web-db"], ["dump", "web-db"]),
    ],
)
def test_the_argument_of_an_option_for_hosts_follows_the_service(arguments, expected, tmp_path):
    found = other([DB, deployment({"args": arguments})], tmp_path)["Deployment/other"]
    assert found["spec"]["template"]["spec"]["containers"][0]["args"] == expected


def test_a_name_that_a_file_defines_itself_stays():
    text = "upstream web-db { server web-db:5432; }\nproxy_pass http://web-db;\n"
    project = made([DB, obj("ConfigMap", "web", data={"nginx.conf": text})])
    assert [child.template["data"] for child in project.children if child.id == "configMap"] == [{"nginx.conf": text}]
    assert project.left == (("web-db", "ConfigMap/web:data['nginx.conf']"),)


@pytest.mark.slow
def test_names_of_roles_and_pods_follow_their_objects(tmp_path):
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["web-config", "x"], "verbs": ["get"]}]
    role = obj("Role", "web", "rbac.authorization.k8s.io/v1", rules=rules)
    annotations = {"nginx.ingress.kubernetes.io/auth-secret": "web-users"}
    backend = {"service": {"name": "web-db", "port": {"number": 5432}}}
    ingress = obj(
        "Ingress",
        "web",
        "networking.k8s.io/v1",
        metadata={"annotations": annotations},
        spec={"defaultBackend": backend},
    )
    service = {**DB, "metadata": {"name": "web-db"}}
    objects = [role, ingress, service, obj("ConfigMap", "web-config"), deployment({}, subdomain="web-db")]
    found = other(objects, tmp_path)
    assert found["Role/other"]["rules"][0]["resourceNames"] == ["other-config", "x"]
    assert found["Ingress/other"]["metadata"]["annotations"] == {
        "nginx.ingress.kubernetes.io/auth-secret": "other-users"
    }
    assert found["Deployment/other"]["spec"]["template"]["spec"]["subdomain"] == "other-db"


def test_names_that_stay_are_listed_with_file_and_line():
    text = """\
apiVersion: v1
kind: Service
metadata: {name: web-db}
spec: {ports: [{port: 1}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data:
  a.conf: |
    # one

    name web-db
  b: web-db
"""
    documents, _ = documents_in(text, "k8s/web.yaml")
    asked = Asked("example.com", "v1", "", "app")
    project = application_project([each.data for each in documents], asked, documents=documents)
    assert project.left == (
        ("web-db", "k8s/web.yaml:13: ConfigMap/web:data['a.conf']"),
        ("web-db", "k8s/web.yaml:14: ConfigMap/web:data.b"),
    )
