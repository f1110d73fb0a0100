"""docs/deploying.md as it is written: each command is run, and what it prints is compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from controlplane import programs
from controlplane.cluster import ControlPlane

from tests.cluster.kubelet import Kubelet, replacing_crd
from tests.docs.console import Command
from tests.docs.reader import Reader, blocks

pytestmark = pytest.mark.real_server("kubectl and Helm are typed by the reader, Pod Security and RBAC answer")

CHANGES_OF_THE_CRD = ("helm upgrade sites", "helm rollback sites")


class Deployer(Reader):
    """A reader with a cluster, whose kubelet notices what a command changed."""

    def __init__(self, plane: ControlPlane, home: Path, kubelet: Kubelet) -> None:
        tools = [plane.layout.built, programs.program("helm").parent]
        super().__init__(home, tools, plane.kubeconfig())
        self.kubelet = kubelet

    def run(self, command: Command) -> None:
        if command.line.startswith(CHANGES_OF_THE_CRD):
            with replacing_crd(self.kubelet.plane, "/apis/example.com/v1/sites"):
                super().run(command)
        else:
            super().run(command)
        self.kubelet.sync()


def test_the_page_works_as_it_is_written(control_plane: ControlPlane, tmp_path: Path) -> None:
    with Kubelet(control_plane, tmp_path) as kubelet:
        reader = Deployer(control_plane, tmp_path, kubelet)
        for block in blocks("deploying.md"):
            reader.follow(block)
        assert kubelet.pods == {}, "the page ends with an empty cluster"
    left = control_plane.kubectl("get", "crd,clusterrole,namespace", "--output=name").split()
    assert [each for each in left if "sites" in each or "shop" in each or "site-" in each] == []
