"""Helm, with a home of its own."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from controlplane import programs
from controlplane.cluster import ControlPlane


@dataclass(frozen=True, slots=True)
class Helm:
    plane: ControlPlane
    home: Path

    def __call__(self, *arguments: str, namespace: str = "default") -> str:
        """Returns what it prints; fails with its error."""
        command = [str(programs.program("helm")), f"--namespace={namespace}", *arguments]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KUBECONFIG": str(self.plane.kubeconfig()),
        }
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)
        assert ran.returncode == 0, f"{' '.join(arguments)}\n{ran.stdout}{ran.stderr}"
        return ran.stdout
