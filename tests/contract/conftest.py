"""One suite for two servers: the one in memory, and a real kube-apiserver with its controllers.

    pytest tests/contract                                                 the one in memory
    pytest tests/contract --contract-server=real                          the real one
    pytest tests/contract --contract-server=KUBECONFIG                    one that runs already
    pytest tests/contract --contract-server=real --record-contract        stores its answers in recorded/

Where they differ, the one in memory is wrong.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import sys
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from collections.abc import Iterator

from controlplane.cluster import ControlPlane

from ruleop.localcluster import LocalCluster
from ruleop.localcluster.controllers.services import Ingresses
from tests.contract.client import Server
from tests.contract.definitions import Definitions, define_samples
from tests.contract.kinds import CRDS, INGRESSES, WIDGETS, Sample
from tests.contract.recording import Recording

RECORDED = Path(__file__).resolve().parent / "recorded"


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    which = request.config.getoption("--contract-server")
    if which == "memory":
        cluster = LocalCluster()
        # A real cluster without add-ons has no controller of Ingresses.
        cluster.machinery.controllers = [
            each for each in cluster.machinery.controllers if not isinstance(each, Ingresses)
        ]
        with cluster:
            found = Server.of(cluster.kubeconfig())
            found.compact = cluster.compact
            define_samples(found)
            yield found
            found.close()
    elif which == "real":
        with ControlPlane() as plane:
            found = Server.of(yaml.safe_load(plane.kubeconfig("admin").read_text()))
            found.compact = lambda: _compact(plane.layout.etcd_url)
            define_samples(found)
            plane.restart_controllers(watching=[crd["metadata"]["name"] for crd in CRDS])
            yield found
            found.close()
            plane.check()
    else:
        found = Server.of(yaml.safe_load(Path(which).read_text()))
        define_samples(found)
        yield found
        found.close()


def _compact(etcd: str) -> None:
    """Lets etcd forget all versions but the current one, and the API server know of it as its own compactor does."""

    def call(path: str, body: object) -> Any:
        with contextlib.closing(http.client.HTTPConnection(urlsplit(etcd).netloc)) as connection:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            return json.load(connection.getresponse())

    key = base64.b64encode(b"compact_rev_key").decode()
    revision = call("/v3/kv/range", {"key": key})["header"]["revision"]
    call("/v3/kv/put", {"key": key, "value": base64.b64encode(revision.encode()).decode()})
    call("/v3/kv/compaction", {"revision": revision})


@pytest.fixture
def namespace(server: Server) -> str:
    """A new namespace. It stays, as the server goes after the tests: a real one asks each kind to empty a namespace,
    and hundreds of them would keep those waiting whose end is tested."""
    name = f"contract-{uuid.uuid4().hex[:8]}"
    server.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
def definitions(server: Server) -> Iterator[Definitions]:
    found = Definitions(server)
    yield found
    found.remove()


@pytest.fixture(params=[INGRESSES, WIDGETS], ids=lambda sample: sample.plural)
def sample(request: pytest.FixtureRequest) -> Sample:
    """A built-in and a custom kind, with spec, status and generation, on which no controller writes."""
    found: Sample = request.param
    return found


@pytest.fixture
def recording(request: pytest.FixtureRequest) -> Recording:
    name = request.path.stem.removeprefix("test_")
    return Recording(RECORDED / f"{name}.json", records=request.config.getoption("--record-contract"))
