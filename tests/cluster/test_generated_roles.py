"""The operator with exactly the roles of `ruleop generate rbac`: nothing is refused, and nothing is granted in vain.

The API server does not stream lists here, so that `list` is used, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane

from ruleop.kubernetes.permissions import GRANTING
from tests.cluster.generated_roles import EVERY, GeneratedRoles, Life, Pair, Prepared
from tests.cluster.operator import eventually
from tests.processes.fork_server import ForkServer

pytestmark = pytest.mark.real_server("RBAC refuses")

ROOT = Path(__file__).parents[2]
OWN = [path.parent for path in sorted((ROOT / "tests/projects").rglob("watches.yaml"))]
WHOLE = [ROOT, ROOT / "examples/postgres", *OWN, EVERY]
EXAMPLES = [path.parent for path in sorted((ROOT / "examples").rglob("watches.yaml")) if path.parent not in WHOLE]
KEY = Pair("update", "secrets")
SOMETIMES = {Pair("patch", "jobs.batch")}
"""A Job that has ended may be gone before somebody changes it."""
GRANTED: set[Pair] = set()
USED: set[Pair] = set()


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane(apiserver_flags=["--feature-gates=WatchList=false"]) as plane:
        yield plane
        plane.check()


@pytest.mark.parametrize("root", EXAMPLES, ids=lambda root: root.name)
def test_the_generated_roles_suffice_for_the_examples(
    control_plane: ControlPlane, fork_server: ForkServer, root: Path, tmp_path: Path, namespace: str
) -> None:
    operator = GeneratedRoles(control_plane, root, tmp_path / "operator" / "log")
    operator.program = fork_server.command()
    life = Life(operator, root, namespace)
    life.define()
    with operator:
        life.create()
        life.delete()
        assert operator.refused() == set()
        operator.check()
    life.undefine()


@pytest.mark.parametrize("root", WHOLE, ids=lambda root: root.name)
def test_the_generated_roles_suffice_for_a_whole_life(
    control_plane: ControlPlane, fork_server: ForkServer, root: Path, tmp_path: Path, namespace: str
) -> None:
    operator = (Prepared if root == EVERY else GeneratedRoles)(control_plane, root, tmp_path / "operator" / "log")
    operator.program = fork_server.command()
    life = Life(operator, root, namespace)
    life.define()
    with operator:
        life.live()
        if root == EVERY:
            eventually("the replaced key to be forgotten", lambda: KEY in operator.used())
        GRANTED.update(operator.granted)
        USED.update(operator.used())
        assert operator.refused() == set()
        operator.check()
    life.undefine()


def test_every_permission_is_used_by_some_project() -> None:
    """But those that the API server looks up itself when a child grants them, and those of what no example does: the
    tests below take such permissions away."""
    assert {each for each in GRANTED - USED - SOMETIMES if each.verb not in GRANTING} == {
        Pair("get", "jobs.batch/status"),
        Pair("patch", "apps.apps.example.com"),  # the finalizer; all children are in the CR's namespace
        Pair("patch", "tenants.platform.example.com"),  # the finalizer; the namespace is not kept
        Pair("delete", "secrets"),  # the password of a Postgres, once its spec names another Secret
        Pair("get", "priorityclasses.scheduling.k8s.io"),  # the live state after an apply with an unknown outcome
    }
