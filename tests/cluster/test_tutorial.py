"""The tutorial as it is written, with its steps that need kubectl."""

from __future__ import annotations

from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane

from tests.docs.reader import Reader, blocks

pytestmark = pytest.mark.real_server("kubectl is typed by the reader")


def test_the_tutorial_works_with_kubectl(control_plane: ControlPlane, tmp_path: Path) -> None:
    reader = Reader(tmp_path, [control_plane.layout.built])
    try:
        for block in blocks("tutorial.md"):
            reader.follow(block)
    finally:
        reader.stop()
