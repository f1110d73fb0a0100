"""`make image` uses the first working builder and reports missing tools; `make test-image` reports them before it
starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
WORKS = 'case $1 in info) ;; *) echo "$(basename "$0") $*" >>"$CALLS" ;; esac\n'
FAILS = 'case $1 in info) exit 1 ;; *) echo "$(basename "$0") $*" >>"$CALLS" ;; esac\n'


class Machine:
    """Programs in a folder that is all the scripts find."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.calls = folder / "calls"
        for each in ("sh", "dirname", "basename", "id"):
            self.install(each, f'exec {shutil.which(each)} "$@"\n')

    def install(self, name: str, script: str) -> None:
        file = self.programs / name
        file.write_text(f"#!{shutil.which('sh')}\n{script}", encoding="utf-8")
        file.chmod(0o755)

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(shutil.which("sh")), str(ROOT / "image" / script), *arguments],
            env={"PATH": str(self.programs), "CALLS": str(self.calls), **environment},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def called(self) -> list[str]:
        return self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("installed", "taken"),
    [
        ({"docker": WORKS}, "docker"),
        ({"podman": WORKS, "docker": WORKS}, "podman"),
        ({"buildah": WORKS, "podman": WORKS, "docker": WORKS}, "buildah"),
        ({"buildah": FAILS, "podman": FAILS, "docker": WORKS}, "docker"),
    ],
)
def test_the_first_working_builder_is_used(machine: Machine, installed: dict[str, str], taken: str) -> None:
    for name, script in installed.items():
        machine.install(name, script)
    run = machine.run("build.sh")
    assert (run.returncode, run.stderr) == (0, "")
    assert machine.called() == [f"{taken} build --tag ruleop .", f"{taken} images ruleop"]


def test_builder_image_name_and_base_image_can_be_set(machine: Machine) -> None:
    machine.install("buildah", WORKS)
    machine.install("docker", WORKS)
    machine.run("build.sh", "--no-cache", BUILDER="docker", IMAGE="mine:1", BASE="python:3.14")
    assert machine.called()[0] == "docker build --build-arg PYTHON=python:3.14 --tag mine:1 --no-cache ."


@pytest.mark.parametrize("builder", ["docker", ""])
def test_a_builder_whose_engine_does_not_answer_is_reported(machine: Machine, builder: str) -> None:
    machine.install("docker", FAILS)
    run = machine.run("build.sh", BUILDER=builder)
    assert run.returncode == 2
    assert "docker info" in run.stderr
    assert machine.called() == []


def test_installation_instructions_are_printed_if_there_is_no_builder(machine: Machine) -> None:
    run = machine.run("build.sh")
    assert run.returncode == 2
    assert "needs buildah, podman or docker, and none of them works here" in run.stderr
    assert "apt-get install buildah" in run.stderr


def test_a_failed_build_has_a_nonzero_exit_status(machine: Machine) -> None:
    machine.install("docker", "test $1 = info\n")
    assert machine.run("build.sh").returncode == 1


def test_missing_tools_are_listed_with_the_command_that_installs_them(machine: Machine) -> None:
    machine.install("runc", WORKS)
    machine.install("id", "echo 0\n")
    run = machine.run("missing.sh")
    assert run.returncode == 2
    assert run.stdout.count("\n") == 1
    assert "needs buildah debootstrap." in run.stdout
    assert "apt-get install buildah debootstrap\n" in run.stdout
    assert machine.called() == [], "nothing is installed"


def test_testing_the_image_needs_root(machine: Machine) -> None:
    for each in ("buildah", "runc", "debootstrap"):
        machine.install(each, WORKS)
    machine.install("id", "echo 1000\n")
    assert machine.run("missing.sh").returncode == 2
    machine.install("id", "echo 0\n")
    run = machine.run("missing.sh")
    assert (run.returncode, run.stdout) == (0, "")


def test_the_scripts_are_executable() -> None:
    for each in ("build.sh", "missing.sh"):
        assert os.access(ROOT / "image" / each, os.X_OK)


def test_debootstrap_is_not_needed_with_a_given_base_image(machine: Machine) -> None:
    for each in ("buildah", "runc"):
        machine.install(each, WORKS)
    machine.install("id", "echo 0\n")
    assert machine.run("missing.sh").returncode == 2
    assert machine.run("missing.sh", BASE="python:3.14").returncode == 0
