"""The image, run as a pod would run it. `make test-image` runs this file; it needs root, buildah, runc and
debootstrap."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster import deployed
from tests.cluster.image import built
from tests.cluster.image.container import CONTAINER, Contained
from tests.cluster.test_example_app import APP
from tests.cluster.test_example_memcached import V1ALPHA1 as MEMCACHED
from tests.docs.console import prepared
from tests.docs.manifests import TEXT, mounted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.cluster import ControlPlane

MEBIBYTE = 2**20
DERIVED = f"{built.IMAGE}-derived"
pytestmark = pytest.mark.timeout(900)  # the first test waits for the build


@pytest.fixture(scope="module")
def store() -> built.Store:
    store = built.store()
    base = built.base(store)
    built.build(store, base)
    print(f"\nbase {base}: {built.size(store, base)}; image: {built.size(store, built.IMAGE)}")  # noqa: T201 - what a person wants to know
    return store


@pytest.fixture(scope="module")
def operator(
    control_plane: ControlPlane, store: built.Store, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Contained]:
    control_plane.define(APP.crd, MEMCACHED.crd)
    folder = tmp_path_factory.mktemp("operator")
    # Its user is another than that of these tests.
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    with Contained(control_plane, folder / "log", store) as running:
        yield running


def test_the_container_has_no_privileges(operator: Contained) -> None:
    status = operator.status()
    assert status["Uid"].split() == status["Gid"].split() == ["10001"] * 4
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"


def test_check_runs_on_the_mounted_project(operator: Contained) -> None:
    checked = operator.offline("check")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_an_image_with_its_own_rules_is_built_on_it(store: built.Store, tmp_path: Path) -> None:
    """By the Dockerfile of docs/operations.md, in a project."""
    project = prepared(tmp_path) / "checkout"
    (dockerfile,) = re.findall(r"```dockerfile\n(.*?)```", TEXT, re.DOTALL)
    (project / "Dockerfile").write_text(dockerfile.replace("FROM ruleop\n", f"FROM {built.IMAGE}\n"))
    store.buildah("build", "--pull-never", "--tag", DERIVED, str(project))
    configuration = built.configuration(store, DERIVED)
    assert (configuration["Entrypoint"], configuration["Cmd"]) == (["ruleop"], ["run", "--no-reload"])
    container = store.buildah("from", "--pull-never", DERIVED)
    try:
        rules = Path(store.buildah("mount", container)) / "rules"
        assert {str(file.relative_to(rules)) for file in rules.rglob("*.*")} == set(mounted())
    finally:
        store.buildah("rm", container)
        store.buildah("rmi", DERIVED)


class TestContained(deployed.DeploymentTests):
    """The operator in a container."""


def test_memory_is_within_the_request_of_the_deployment(operator: Contained) -> None:
    used = int(operator.status()["VmHWM"].removesuffix(" kB")) * 1024 / MEBIBYTE
    print(f"memory: {used:.0f} MiB at most")  # noqa: T201 - what a person wants to know
    assert used < int(CONTAINER["resources"]["requests"]["memory"].removesuffix("Mi"))


def test_the_operator_stops_cleanly(operator: Contained) -> None:
    deployed.stops_in_order(operator)
