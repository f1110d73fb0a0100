"""The pytest plugin: fixtures of the cluster in memory. Any project may use them: no rules are needed.

`kube_cluster` is a cluster per test; `kube_cluster_session` one per session. The plugin imports nothing else of ruleop
until a test asks for one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.localcluster import LocalCluster


@pytest.fixture
def kube_cluster() -> Iterator[LocalCluster]:
    """A Kubernetes cluster in memory, new for each test."""
    from ruleop.localcluster import LocalCluster  # noqa: PLC0415 - lazy: most test runs need no cluster

    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kube_cluster_session() -> Iterator[LocalCluster]:
    """A Kubernetes cluster in memory for all tests of the session."""
    from ruleop.localcluster import LocalCluster  # noqa: PLC0415 - lazy

    with LocalCluster() as cluster:
        yield cluster
