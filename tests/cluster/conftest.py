"""The tests in this folder run against a real Kubernetes control plane: see tests/controlplane."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from controlplane.fixtures import control_plane, kubectl, namespace

__all__ = ["control_plane", "kubectl", "namespace"]
