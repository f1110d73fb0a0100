"""docs/ten-commands.md as it is written, by somebody who has nothing but the wheel."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest
from controlplane import programs
from controlplane.cluster import ControlPlane

from tests.cluster.kubelet import Kubelet
from tests.docs.console import Command
from tests.docs.messages import ROOT
from tests.docs.reader import Reader, blocks

pytestmark = pytest.mark.real_server("kubectl and Helm are typed by the reader")

OWN = "ruleop"
INSTALLED = Path(sysconfig.get_path("purelib"))


class OwnKubelet(Kubelet):
    """That of a cluster in which other tests left Deployments."""

    def _operators(self) -> list[dict[str, Any]]:
        return [each for each in super()._operators() if each["metadata"]["namespace"] == "shop-system"]


class Newcomer(Reader):
    """A reader with a virtual environment of their own, in which only what ruleop depends on is installed."""

    def __init__(self, plane: ControlPlane, home: Path, kubelet: Kubelet) -> None:
        environment = home / "own"
        venv.create(environment, with_pip=True)
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
        for each in INSTALLED.iterdir():
            if OWN not in each.name and not (packages / each.name).exists():
                (packages / each.name).symlink_to(each)
        tools = [environment / "bin", plane.layout.built, programs.program("helm").parent]
        super().__init__(home, tools, plane.kubeconfig())
        self.environment["PATH"] = ":".join(map(str, [*tools, "/usr/local/bin", "/usr/bin", "/bin"]))
        self.kubelet = kubelet

    def run(self, command: Command) -> None:
        super().run(command)
        self.kubelet.sync()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    copy = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
    make = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "."]
    subprocess.run([*make, "--wheel-dir", str(tmp_path)], cwd=copy, check=True)
    (found,) = tmp_path.glob("*.whl")
    return found


def test_ten_commands_lead_from_the_wheel_to_a_release(
    control_plane: ControlPlane, tmp_path: Path, wheel: Path
) -> None:
    with OwnKubelet(control_plane, tmp_path) as kubelet:
        reader = Newcomer(control_plane, tmp_path, kubelet)
        wheel.rename(reader.folder / wheel.name)
        (block,) = [each for each in blocks("ten-commands.md") if each.language == "console"]
        assert block.text.count("$ ") == 10
        reader.follow(block)
        # With its group: kubectl remembers kinds of the same name that other tests had.
        found = control_plane.kubectl("get", "shops.example.com,deployments.apps", "--output=name").split()
        assert {"shop.example.com/shop-sample", "deployment.apps/shop-sample"} <= {*found}
        control_plane.kubectl("delete", "shops.example.com", "--all")
        subprocess.run(["helm", "uninstall", "shop", "--namespace", "shop-system"], env=reader.environment, check=True)
        control_plane.kubectl("delete", "crd/shops.example.com", "namespace/shop-system")
        kubelet.sync()
