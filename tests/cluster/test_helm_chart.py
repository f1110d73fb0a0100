"""The chart of `ruleop generate helm`, installed by Helm, upgraded, rolled back and uninstalled."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from controlplane.cluster import ControlPlane

from ruleop.cli.program import program
from tests.cluster.helm import Helm
from tests.cluster.installed import Installed
from tests.cluster.kubelet import replacing_crd
from tests.cluster.operator import described, eventually
from tests.cluster.server import Client, RefusedError

pytestmark = pytest.mark.real_server("Pod Security, RBAC, and Helm's own way with objects")

GROUP = "sites.example.com"
WATCHES = f"""\
- group: {GROUP}
  version: v1
  kind: Site
  vars: {{domain: "${{BASE_DOMAIN:-example.com}}"}}
  schema:
    spec:
      image: string | required=true
      replicas: integer | default=1
  children:
    web: {{template: web.yaml}}
  status:
    replicas: "{{{{ web.status.readyReplicas | default(0) }}}}"
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ metadata.name }}
  annotations: {host: "{{ metadata.name }}.{{ vars.domain }}"}
spec:
  replicas: {{ spec.replicas }}
  selector: {matchLabels: {app: "{{ metadata.name }}"}}
  template:
    metadata: {labels: {app: "{{ metadata.name }}"}}
    spec:
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: {{ spec.image }}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"""
CHANGES = {
    "watches.yaml": (
        "image: string | required=true",
        "image: string | required=true\n      title: string | default=none",
    ),
    "templates/web.yaml": ("annotations: {", 'annotations: {title: "{{ spec.title }}", '),
}
"""A new field, and a rule that uses it."""


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "templates").mkdir(parents=True)
        (folder / "watches.yaml").write_text(WATCHES)
        (folder / "templates" / "web.yaml").write_text(WEB)
        (folder / "ruleop.yaml").write_text("name: site-operator\n")

    def change(self) -> None:
        for path, (old, new) in CHANGES.items():
            text = (self.folder / path).read_text()
            assert old in text
            (self.folder / path).write_text(text.replace(old, new))

    def generate(self, *arguments: str) -> str:
        ran = CliRunner().invoke(program, ["generate", *arguments, "-C", str(self.folder)])
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    def chart(self, version: str = "0.1.0") -> str:
        path = self.folder.parent / "chart"
        self.generate("helm", "--out", str(path), "--version", version)
        return str(path)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def helm(control_plane: ControlPlane, tmp_path: Path) -> Helm:
    return Helm(control_plane, tmp_path / "helm")


@pytest.fixture
def admin(control_plane: ControlPlane) -> Iterator[Client]:
    client = Client(control_plane)
    yield client
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for each in client.get(crds)["items"]:
        if each["spec"]["group"] == GROUP:
            client.delete(f"{crds}/{each['metadata']['name']}")
    client.close()


@pytest.fixture
def restricted(admin: Client) -> Iterator[Callable[[], str]]:
    """Makes namespaces that enforce Pod Security `restricted`."""
    made: list[str] = []

    def make() -> str:
        name = f"restricted-{uuid.uuid4().hex[:6]}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        metadata = {"name": name, "labels": labels}
        admin.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        made.append(name)
        return name

    yield make
    for each in made:
        admin.delete(f"/api/v1/namespaces/{each}")


class Site:
    """A custom resource."""

    def __init__(self, admin: Client, namespace: str, name: str) -> None:
        self.admin, self.namespace, self.name = admin, namespace, name
        self.path = f"/apis/{GROUP}/v1/namespaces/{namespace}/sites"

    def create(self) -> Site:
        body = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Site",
            "metadata": {"name": self.name},
            "spec": {"image": "web:1"},
        }
        eventually("the kind to be served", lambda: self.admin.post(self.path, body))
        return self

    def until_ready(self) -> None:
        eventually(
            f"{self.name} to be ready", lambda: self.condition("Ready") == "True" and self.status["replicas"] == 1
        )

    @property
    def status(self) -> Any:
        return self.admin.get(f"{self.path}/{self.name}")["status"]

    def condition(self, name: str) -> str:
        return next(str(each["status"]) for each in self.status["conditions"] if each["type"] == name)

    def annotations(self) -> Any:
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.name}"
        return self.admin.get(path)["metadata"]["annotations"]

    def delete(self) -> None:
        self.admin.delete(f"{self.path}/{self.name}")


def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(
    control_plane: ControlPlane,
    project: Project,
    helm: Helm,
    admin: Client,
    restricted: Callable[[], str],
    tmp_path: Path,
) -> None:
    home, blog = restricted(), restricted()
    chart = project.chart()
    assert "0 chart(s) failed" in helm("lint", "--strict", chart)
    notes = helm("install", "sites", chart, "--set", "settings.BASE_DOMAIN=test", namespace=home)
    assert f"runs in the namespace {home} and watches all namespaces" in notes
    site = Site(admin, blog, "first").create()
    with Installed(control_plane, tmp_path / "operator", home, "site-operator") as operator:
        site.until_ready()
        assert site.annotations()["host"] == "first.test"

        project.change()
        chart = project.chart("0.2.0")
        with replacing_crd(control_plane, site.path):
            helm("upgrade", "sites", chart, "--reset-then-reuse-values", namespace=home)
        operator.sync()
        eventually("the changed rule", lambda: site.annotations()["title"] == "none")
        admin.merge(f"{site.path}/first", {"spec": {"title": "news"}}, "somebody")
        eventually("the new field", lambda: site.annotations()["title"] == "news")

        with replacing_crd(control_plane, site.path):
            helm("rollback", "sites", "1", namespace=home)
        operator.sync()
        eventually("the rule of before", lambda: "title" not in site.annotations())
        site.until_ready()
        refused = [each for each in operator.requests() if each.get("responseStatus", {}).get("code") == 403]
        assert [described(each) for each in refused] == []
        site.delete()
        eventually("the site to be gone", lambda: is_gone(admin, f"{site.path}/first"))
        kept = Site(admin, blog, "kept").create()
        kept.until_ready()
        assert operator.terminate() == 0
    helm("uninstall", "sites", "--wait", namespace=home)
    assert left(admin, home) == {
        "ConfigMap/kube-root-ca.crt",
        "ServiceAccount/default",
        "ConfigMap/site-operator-inventory",
        "ConfigMap/site-operator-revisions",
        "Lease/site-operator",
    }
    assert kept.condition("Ready") == "True", "custom resources and their children stay"
    assert "title" not in json.dumps(admin.get(kept.path))
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert not [each for each in admin.get(roles)["items"] if each["metadata"]["name"].startswith(home)]


def test_an_upgrade_keeps_the_number_of_shards_until_the_value_changes(
    control_plane: ControlPlane, project: Project, helm: Helm, admin: Client, restricted: Callable[[], str]
) -> None:
    home, chart = restricted(), project.chart()
    path = f"/apis/apps/v1/namespaces/{home}/statefulsets/site-operator"

    def number() -> int:
        return int(admin.get(path)["spec"]["replicas"])

    assert "replicas: 2" in helm("template", "sites", chart, "--set", "shards=2", namespace=home)
    helm("install", "sites", chart, "--set", "shards=2", namespace=home)
    assert number() == 2
    control_plane.kubectl("scale", "statefulset/site-operator", f"--namespace={home}", "--replicas=3")
    helm("upgrade", "sites", chart, "--reset-then-reuse-values", namespace=home)
    assert number() == 3
    helm("upgrade", "sites", chart, "--set", "shards=4", "--force-conflicts", namespace=home)
    assert number() == 4
    helm("uninstall", "sites", "--wait", namespace=home)


def left(admin: Client, namespace: str) -> set[str]:
    """All objects of a namespace, but Events."""
    found: set[str] = set()
    paths = ["/api/v1", *(f"/apis/{each['preferredVersion']['groupVersion']}" for each in admin.get("/apis")["groups"])]
    for path in paths:
        for each in admin.get(path)["resources"]:
            if each["namespaced"] and "list" in each["verbs"] and each["name"] != "events":
                items = admin.get(f"{path}/namespaces/{namespace}/{each['name']}")["items"]
                found |= {f"{each['kind']}/{item['metadata']['name']}" for item in items}
    return found


def is_gone(admin: Client, path: str) -> bool:
    try:
        admin.get(path)
    except RefusedError:
        return True
    return False
