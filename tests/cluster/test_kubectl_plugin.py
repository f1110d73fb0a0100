"""kubectl itself finds the plugin that is installed with ruleop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane

import ruleop

pytestmark = pytest.mark.real_server("kubectl is built with the control plane")


def test_kubectl_runs_the_plugin(control_plane: ControlPlane) -> None:
    scripts = Path(sys.executable).parent
    path = f"{scripts}:{control_plane.layout.built}:/usr/bin:/bin"
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(control_plane.kubeconfig())}

    def kubectl(*arguments: str) -> str:
        command = [str(control_plane.layout.built / "kubectl"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout

    assert str(scripts / "kubectl-ruleop") in kubectl("plugin", "list").splitlines()
    assert kubectl("ruleop", "version").startswith(f"ruleop     {ruleop.__version__}\n")
    assert kubectl("ruleop", "plan", "--help").startswith("Usage: kubectl ruleop plan ")
