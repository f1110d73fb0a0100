"""The tutorial as it is written, with its steps that need kubectl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.reader import Reader, blocks

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane.cluster import ControlPlane

pytestmark = pytest.mark.real_server("kubectl is typed by the reader")


def test_the_tutorial_works_with_kubectl(control_plane: ControlPlane, tmp_path: Path) -> None:
    reader = Reader(tmp_path, [control_plane.layout.built])
    try:
        for block in blocks("tutorial.md"):
            reader.follow(block)
    finally:
        reader.stop()
