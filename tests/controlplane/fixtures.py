"""pytest's fixtures for tests against a real API server. A conftest.py imports them.

There is one cluster for the whole run, or for each of its workers, since starting takes seconds, and a namespace of its
own for each test, since that is what keeps tests apart. What is not namespaced (CRDs, cluster roles) a test must name
uniquely and remove.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from .build import BuildError
from .cluster import ControlPlane

# Names a folder that gets the logs, the audit log and the kubeconfigs, and keeps them after the run.
KEEP_VARIABLE = "RULEOP_CLUSTER_WORK"


class Kubectl(Protocol):
    """kubectl as the admin, in the test's namespace."""

    def __call__(self, *arguments: str, stdin: str | None = None, user: str = "admin", timeout: float = 60.0) -> str:
        """Returns what it prints; raises with its error message."""


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The cluster of this run, or of this worker of pytest-xdist."""
    keep = os.environ.get(KEEP_VARIABLE)
    try:
        plane = ControlPlane(work=Path(keep) / os.environ.get("PYTEST_XDIST_WORKER", "") if keep else None)
    except BuildError as error:
        # An error instead of a skip: a run that skips these tests would look as if they had passed.
        pytest.fail(str(error), pytrace=False)
    with plane:
        yield plane
        # A program that died in between may have made a test pass, or fail, for no reason of its own.
        plane.check()


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace, named after the test so that logs are easy to read."""
    test = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{test}-{uuid.uuid4().hex[:8]}"
    api = control_plane.api()
    api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    # The namespace controller empties it in its own time; no test waits for that.
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def kubectl(control_plane: ControlPlane, namespace: str) -> Kubectl:
    """kubectl of the same version as the API server."""

    def run(*arguments: str, stdin: str | None = None, user: str = "admin", timeout: float = 60.0) -> str:
        return control_plane.kubectl(f"--namespace={namespace}", *arguments, stdin=stdin, user=user, timeout=timeout)

    return run
