"""The image in the pod of the chart: installed by Helm, admitted by the API server where Pod Security is `restricted`,
and run by runc. `make test-image` runs this file; it needs root, buildah, runc and debootstrap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from ruleop.cli.program import program
from tests.cluster.example_projects import ROOT, LiveExample
from tests.cluster.helm import Helm
from tests.cluster.image import built
from tests.cluster.image.container import Contained
from tests.cluster.operator import eventually
from tests.cluster.test_examples import APP
from tests.cluster.test_examples import V1ALPHA1 as MEMCACHED
from tests.docs.console import copy_project

MEBIBYTE = 2**20
DERIVED = f"{built.IMAGE}-derived"
NAMESPACE = RELEASE = "ruleop"
pytestmark = pytest.mark.timeout(900)  # the first test waits for the build


@pytest.fixture(scope="module")
def store() -> built.Store:
    store = built.store()
    base = built.base(store)
    built.build(store, base)
    print(f"\nbase {base}: {built.size(store, base)}; image: {built.size(store, built.IMAGE)}")  # noqa: T201 - what a person wants to know
    return store


def generate(*arguments: str) -> None:
    ran = CliRunner().invoke(program, ["generate", *arguments])
    assert ran.exit_code == 0, ran.output


@pytest.fixture(scope="module")
def operator(
    control_plane: ControlPlane, store: built.Store, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Contained]:
    folder = tmp_path_factory.mktemp("operator")
    # Its user is another than that of these tests.
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    generate("helm", "-C", str(ROOT), "--out", str(folder / "chart"), "--image", f"{built.IMAGE}:latest")
    control_plane.kubectl("create", "namespace", NAMESPACE)
    control_plane.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    helm = Helm(control_plane, folder / "helm")
    helm("install", RELEASE, str(folder / "chart"), namespace=NAMESPACE)
    with Contained(control_plane, folder / "pod", (NAMESPACE, RELEASE), store) as running:
        yield running
    helm("uninstall", RELEASE, namespace=NAMESPACE)
    control_plane.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    control_plane.kubectl("delete", f"--filename={ROOT}/crds", "--wait=true")


def test_the_container_has_no_privileges(operator: Contained) -> None:
    status = operator.status()
    assert status["Uid"].split() == status["Gid"].split() == ["10001"] * 4
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"


def test_the_probes_of_the_deployment_succeed(operator: Contained) -> None:
    ports = {each["name"]: each["containerPort"] for each in operator.container["ports"]}
    for name in ("livenessProbe", "readinessProbe"):
        asked = operator.container[name]["httpGet"]
        assert ports[asked["port"]] == 8081, "its port in a network of its own"
        assert operator.probe(asked["path"])[0] == 200


def test_check_runs_on_the_mounted_project(operator: Contained) -> None:
    """It has no CRDs: the operator takes them from the cluster."""
    checked = operator.offline("check")
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout


def test_app_and_memcached_become_ready(operator: Contained, namespace: str, kubectl: Kubectl) -> None:
    for example in (APP, MEMCACHED):
        live_example = LiveExample(example, operator, namespace, kubectl)
        live_example.apply()
        live_example.wait_until_settled()


def test_an_edit_of_the_configmap_updates_the_children(operator: Contained, namespace: str, kubectl: Kubectl) -> None:
    """Also a second time: the first change has removed what was watched before."""
    live_example = LiveExample(APP, operator, namespace, kubectl)
    live_example.apply()
    live_example.wait_until_settled()
    key = "templates__app__service.yaml.j2"
    rules = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{RELEASE}-rules"
    before = operator.admin.get(rules)["data"][key]
    for port in (8080, 8081, 80):
        changed = {"data": {key: before.replace("targetPort: 80", f"targetPort: {port}")}}
        operator.admin.merge(rules, changed, "somebody")
        operator.sync()
        eventually(
            f"port {port}",
            lambda port=port: live_example.get(APP.children[1])["spec"]["ports"][0]["targetPort"] == port,
            60,
        )


def test_memory_is_within_the_request_of_the_deployment(operator: Contained) -> None:
    used = int(operator.status()["VmHWM"].removesuffix(" kB")) * 1024 / MEBIBYTE
    print(f"memory: {used:.0f} MiB at most")  # noqa: T201 - what a person wants to know
    assert used < int(operator.container["resources"]["requests"]["memory"].removesuffix("Mi"))


def test_the_operator_stops_cleanly(operator: Contained) -> None:
    """It has logged nothing unexpected, and exits with 0 at SIGTERM."""
    operator.check()
    warnings = [line for line in operator.log() if line["level"] in {"warning", "error"}]
    # Of the namespaces of the tests before.
    assert [line for line in warnings if "is being terminated" not in line.get("error", "")] == []
    assert operator.terminate() == 0
    assert operator.lease()["spec"]["holderIdentity"] == "", "the next one need not wait"


def test_an_image_with_its_own_rules_is_built_on_it(store: built.Store, tmp_path: Path) -> None:
    """By `ruleop generate image`, in a folder with more than the project."""
    copy_project(tmp_path)
    (tmp_path / "secret").write_text("not for the image")
    generate("image", "-C", str(tmp_path), "--out", str(tmp_path), "--name", "apps", "--version", "1.2.0")
    build = ("build", "--pull-never", "--build-arg", f"BASE={built.IMAGE}", "--build-arg", "REVISION=abc")
    store.buildah(*build, "--tag", DERIVED, str(tmp_path))
    configuration = built.configuration(store, DERIVED)
    assert (configuration["Entrypoint"], configuration["Cmd"]) == (["ruleop"], ["run", "--no-reload"])
    assert configuration["User"] == built.configuration(store)["User"]
    labels = {f"org.opencontainers.image.{name}" for name in ("title", "version", "revision", "base.name")}
    found = {name: text for name, text in configuration["Labels"].items() if name in labels}
    assert sorted(found.values()) == sorted(["apps", "1.2.0", "abc", built.IMAGE])
    container = store.buildah("from", "--pull-never", DERIVED)
    try:
        rules = Path(store.buildah("mount", container)) / "rules"
        copied = {str(file.relative_to(rules)) for file in rules.rglob("*") if file.is_file()}
        read = [path for folder in ("templates", "crds") for path in (ROOT / folder).rglob("*.*")]
        assert copied == {"watches.yaml", *(str(path.relative_to(ROOT)) for path in read)}
    finally:
        store.buildah("rm", container)
        store.buildah("rmi", DERIVED)
