"""Steps 1, 7 and 8 of docs/start.md, as it is written: kubectl, Helm, `ruleop run`, and Ctrl-C."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from controlplane import programs
from controlplane.cluster import ControlPlane

from tests.cluster.kubelet import Kubelet
from tests.cluster.operator import eventually
from tests.docs.console import README, START, agrees, blocks, prepared

pytestmark = pytest.mark.real_server("kubectl is typed by the reader")

*LINES, INSTALL = [
    command.line for block in blocks(START) if block.mark == "needs a cluster" for command in block.commands
]
IN_MEMORY = [command.line for block in blocks(START) if block.mark == "needs kubectl" for command in block.commands]


class Terminal:
    """A shell in the checkout, with kubectl and a kubeconfig."""

    def __init__(self, plane: ControlPlane, home: Path) -> None:
        self.home = home
        path = f"{plane.layout.built}:{programs.program('helm').parent}:/usr/local/bin:/usr/bin:/bin"
        # The addresses are the machine's, and other tests may have the default ones.
        addresses = {"RULEOP_METRICS_BIND_ADDRESS": "0", "RULEOP_HEALTH_PROBE_BIND_ADDRESS": "0"}
        self.environment = {"PATH": path, "HOME": str(home), "KUBECONFIG": str(plane.kubeconfig()), **addresses}

    def run(self, line: str) -> str:
        command = ["sh", "-c", line]
        run = subprocess.run(
            command,
            cwd=self.home / "checkout",
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert run.returncode == 0, f"{line}\n{run.stdout}{run.stderr}"
        return run.stdout

    @contextlib.contextmanager
    def running(self, line: str) -> Iterator[Path]:
        """A command that runs until Ctrl-C, and where it prints to."""
        output = self.home / "output"
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["sh", "-c", f"exec {line}"],
                cwd=self.home / "checkout",
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            yield output
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0, output.read_text()
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def terminal(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(control_plane, prepared(tmp_path))
    yield terminal
    control_plane.kubectl("delete", "--ignore-not-found", f"--filename={tmp_path}/checkout/crds", "--wait=true")


def test_the_tour_works_on_a_cluster(terminal: Terminal, control_plane: ControlPlane) -> None:
    (dry, wet) = (number for number, line in enumerate(LINES) if line.startswith(".venv/bin/ruleop run"))
    children = ["get", "deployment/app-deployment", "service/app-service", "--output=name", "--ignore-not-found"]
    for line in LINES[:dry]:
        terminal.run(line)
    control_plane.restart_controllers(
        watching=["apps.myapp.k8s.io"]
    )  # so that the garbage collector knows the kind at once
    with terminal.running(LINES[dry]) as output:
        for child in ("Deployment/default/app-deployment", "Service/default/app-service"):
            eventually(f"a line about {child}", lambda child=child: f"create {child}" in output.read_text())
    assert control_plane.kubectl(*children) == ""

    show, scale, *after = LINES[wet + 1 :]
    with terminal.running(LINES[wet]) as output:
        eventually(
            "both children",
            lambda: (
                control_plane.kubectl(*children).split() == ["deployment.apps/app-deployment", "service/app-service"]
            ),
        )
        assert "app-deployment" in terminal.run(show)
        terminal.run(scale)
        replicas = ["get", "deployment", "app-deployment", "--output=jsonpath={.spec.replicas}"]
        eventually("the scaling to be reverted", lambda: control_plane.kubectl(*replicas) == "2")
        template = terminal.home / "checkout/templates/app/service.yaml.j2"
        template.write_text(template.read_text().replace("targetPort: 80", "targetPort: 8080"))
        port = ["get", "service", "app-service", "--output=jsonpath={.spec.ports[0].targetPort}"]
        eventually("the edit of the template", lambda: control_plane.kubectl(*port) == "8080")
        # Text for a port, which check finds.
        template.write_text(template.read_text().replace("port: 80\n", "port: eighty\n"))
        eventually("the refusal", lambda: "reload rejected" in output.read_text())
        ready = ["get", "app", "app-sample", "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}"]
        assert control_plane.kubectl(*ready) == "True", "the last good rules are in force"
    for line in after:
        terminal.run(line)
    assert control_plane.kubectl(*children) == ""
    assert control_plane.kubectl(*["get", "configmaps", "--output=name"]).split() == ["configmap/kube-root-ca.crt"]


def test_the_last_step_installs_an_operator_that_makes_an_app_ready(
    terminal: Terminal, control_plane: ControlPlane, tmp_path: Path
) -> None:
    terminal.run(INSTALL)
    with Kubelet(control_plane, tmp_path) as kubelet:
        kubelet.sync()
        terminal.run("kubectl wait --for=condition=Established crd/apps.myapp.k8s.io")
        control_plane.restart_controllers(watching=["apps.myapp.k8s.io"])
        terminal.run("kubectl apply -f examples/app.yaml")
        terminal.run("kubectl wait --for=condition=Ready app/app-sample --timeout=50s")
        terminal.run("kubectl delete --cascade=foreground app app-sample")
        terminal.run("helm uninstall app")
        kubelet.sync()
        assert kubelet.pods == {}
    terminal.run("kubectl delete lease/ruleop configmap/ruleop-inventory configmap/ruleop-revisions")


def test_the_first_step_works_with_a_cluster_in_memory(terminal: Terminal) -> None:
    """The same commands against the API server in memory."""
    first, get, scale, patch, delete = IN_MEMORY
    with terminal.running(first) as output:
        printed = eventually("the kubeconfig", lambda: re.search(r"export KUBECONFIG=(.+)", output.read_text()))
        terminal.environment["KUBECONFIG"] = printed[1]
        app = "kubectl get app app-sample --output=jsonpath={.status.availableReplicas}"
        eventually("the App to be ready", lambda: terminal.run(app) == "2")
        assert "deployment.apps/app-deployment" in terminal.run(get)
        terminal.run(scale)
        replicas = "kubectl get deployment app-deployment --output=jsonpath={.spec.replicas}"
        eventually("the scaling to be reverted", lambda: terminal.run(replicas) == "2")
        terminal.run(patch)
        eventually("the edit of the App", lambda: terminal.run(app) == "3")
        terminal.run(delete)
        children = "kubectl get deployments,services --output=name --selector=app.kubernetes.io/managed-by=ruleop"
        eventually("the children to be gone", lambda: "app-deployment" not in terminal.run(children))


def test_the_commands_of_the_readme_print_what_it_shows(terminal: Terminal) -> None:
    """With `ruleop dev` in another terminal."""
    (block,) = (block for block in blocks(README) if block.mark == "needs kubectl")
    with terminal.running(".venv/bin/ruleop dev") as output:
        printed = eventually("the kubeconfig", lambda: re.search(r"export KUBECONFIG=(.+)", output.read_text()))
        terminal.environment["KUBECONFIG"] = printed[1]
        for command in block.commands:
            eventually(
                f"the output of {command.line}",
                lambda command=command: agrees(command.output, terminal.run(command.line).splitlines()),
            )
