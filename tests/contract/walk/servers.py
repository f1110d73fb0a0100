"""The two servers of a walk, with what both need to have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from ruleop.localcluster import LocalCluster
from tests.contract.client import Server
from tests.contract.definitions import define_samples


@contextlib.contextmanager
def two_servers(kubeconfig: Mapping[str, Any]) -> Iterator[tuple[Server, Server]]:
    """A real server, and one in memory, which has as few controllers and storage classes as the real one."""
    cluster = LocalCluster()
    cluster.machinery.controllers = []
    with cluster:
        real, memory = Server.of(kubeconfig), Server.of(cluster.kubeconfig())
        memory.send("DELETE", "/apis/storage.k8s.io/v1/storageclasses/standard")
        for server in (real, memory):
            define_samples(server)
        yield real, memory
        real.close()
        memory.close()
