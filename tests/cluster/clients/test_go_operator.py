"""A Go operator written by hand (bench/baseline-go) works with the server in memory, in both encodings of its
client."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.build import build_dir

from ruleop.localcluster import LocalCluster
from tests.cluster.clients.sides import Side
from tests.waiting import eventually

pytestmark = pytest.mark.real_server("kubectl and the operator are built from Go modules")

BENCH = Path(__file__).resolve().parents[3] / "bench"
APPS = 20
TIMEOUT = 60.0


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("go-operator") / "operator"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    subprocess.run(["go", "build", "-o", str(built), "."], cwd=BENCH / "baseline-go", check=True, env=environment)
    return built


@pytest.fixture(params=["protobuf", "json"])
def local(request: pytest.FixtureRequest, program: Path, local_cluster: LocalCluster, tmp_path: Path) -> Iterator[Side]:
    """The server in memory, with the operator at work on it."""
    kubeconfig = tmp_path / "local.kubeconfig"
    local_cluster.write_kubeconfig(kubeconfig)
    side = Side("local", tmp_path / "local", (build_dir(),))
    side.prepare(kubeconfig)
    run(side, f"apply -f {BENCH / 'crd' / 'app.yaml'}")
    environment = {**os.environ, "KUBECONFIG": str(side.kubeconfig)}
    log = tmp_path / "operator.log"
    with log.open("wb") as output:
        command = [str(program), "-reports", *(["-json"] if request.param == "json" else [])]
        operator = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        yield side
        assert operator.poll() is None, log.read_text()
    finally:
        operator.kill()
        operator.wait()
        print(log.read_text()[-4000:])  # noqa: T201 - pytest shows it when the test fails


def run(side: Side, arguments: str) -> str:
    output = side.run(f"kubectl {arguments}")
    assert output.endswith("[exit status 0]\n"), output
    return output.removesuffix("[exit status 0]\n")


def items(side: Side, resource: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(side, f"get {resource} -o json"))["items"]
    return found


def app(number: int, image: str) -> dict[str, Any]:
    name = f"app-{number}"
    deployment = {"name": name, "image": image, "replicas": 2}
    return {
        "apiVersion": "myapp.k8s.io/v1",
        "kind": "App",
        "metadata": {"name": name},
        "spec": {"deployment": deployment, "service": {"name": name}},
    }


def apply_apps(side: Side, image: str) -> None:
    (side.folder / "apps.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [app(number, image) for number in range(APPS)]})
    )
    run(side, "apply -f apps.json")


def ready_apps(side: Side) -> int:
    return sum(
        each.get("status", {}).get("availableReplicas") == 2
        and any(one["type"] == "Ready" and one["status"] == "True" for one in each["status"].get("conditions", []))
        for each in items(side, "apps")
    )


@pytest.mark.timeout(600)
def test_a_go_operator_drives_its_apps(local: Side) -> None:
    apply_apps(local, "example.com/app:1")
    eventually("all Apps are ready", lambda: ready_apps(local) == APPS)
    assert len(items(local, "services -l app")) == APPS

    apply_apps(local, "example.com/app:2")
    eventually(
        "all Deployments have the new image",
        lambda: all(
            each["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/app:2"
            for each in items(local, "deployments")
        ),
    )
    run(local, "scale deployment --all --replicas=5")
    eventually(
        "the replicas are as the Apps want them",
        lambda: all(each["spec"]["replicas"] == 2 for each in items(local, "deployments")),
    )
    before = {each["metadata"]["uid"] for each in items(local, "services -l app")}
    run(local, "delete services -l app")
    eventually(
        "the Services are there again",
        lambda: len({each["metadata"]["uid"] for each in items(local, "services -l app")} - before) == APPS,
    )
    eventually("all Apps are ready again", lambda: ready_apps(local) == APPS)
    run(local, "delete apps --all")
    eventually("nothing is left of them", lambda: not items(local, "deployments,services,pods -l app"))
