"""What the API server in memory costs: a request of each verb beside the budget, start, long lists, many watches.

    make bench        or        python bench/localcluster.py

Requests are handled in the process, without HTTP: the server's own work. Nothing is asserted.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import statistics
import time
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.localcluster import LocalCluster
from ruleop.localcluster.http import Request, Response, ResponseStream

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET = 0.2  # milliseconds
OBJECTS, WATCHES = 10_000, 1_000
LABELS = {"app": "web"}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": LABELS},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "nginx:1.27",
                        "ports": [{"containerPort": 80, "name": "http"}],
                        "env": [{"name": "A", "value": "b"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                        "readinessProbe": {"httpGet": {"port": "http", "path": "/"}},
                        "volumeMounts": [{"name": "c", "mountPath": "/c"}],
                    }
                ],
                "volumes": [{"name": "c", "configMap": {"name": "c"}}],
            },
        },
    },
}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b" * 100}}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "apps.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "apps", "kind": "App"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"image": {"type": "string"}, "size": {"type": "integer", "default": 1}},
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
APP = {"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "a"}, "spec": {"image": "nginx:1.27"}}
KINDS = (
    ("Deployment", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT),
    ("ConfigMap", "/api/v1/namespaces/default/configmaps", CONFIG_MAP),
    ("App (CRD)", "/apis/example.com/v1/namespaces/default/apps", APP),
)
CALLS = 400
APPLIES = ("again", "new")  # after the first apply, and after the deletion
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


def send(
    cluster: LocalCluster, method: str, path: str, body: Any = None, media: str = "application/json", **query: str
) -> Any:
    headers = {"content-type": media, "accept": "application/json", "user-agent": "bench/1"}
    data = b"" if body is None else orjson.dumps(body)
    answer = cluster.api.handle(Request(method, path, query, headers, data))
    if isinstance(answer, Response):
        assert answer.status < 300, answer.body
    return answer


def named(obj: dict[str, Any], number: int) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "name": f"x{number}"}}


def cost(work: Callable[[int], object], calls: int = CALLS) -> float:
    """The median CPU time of a call, in milliseconds."""
    gc.collect()
    found = []
    for number in range(calls):
        start = time.process_time_ns()
        work(number)
        found.append(time.process_time_ns() - start)
    return statistics.median(found) / 1e6


def verbs(cluster: LocalCluster) -> None:
    names = ("create", "get", "patch", "update", "status", "apply", "again", "delete", "new")
    print(f"CPU of one request in milliseconds; the budget is {BUDGET}")
    print(f"{'':14}" + "".join(f"{name:>9}" for name in names))
    for title, path, obj in KINDS:
        requests = Requests(cluster, path, obj)
        found = [cost(getattr(requests, "apply" if name in APPLIES else name)) for name in names]
        print(f"{title:14}" + "".join(f"{each:9.3f}" for each in found))
        for number in range(CALLS):
            requests.delete(number)


class Requests:
    """One request of each verb about the object with a number."""

    def __init__(self, cluster: LocalCluster, path: str, obj: dict[str, Any]) -> None:
        self.cluster, self.path, self.obj = cluster, path, obj
        self.live: dict[int, Any] = {}

    def create(self, number: int) -> None:
        send(self.cluster, "POST", self.path, named(self.obj, number))

    def get(self, number: int) -> None:
        self.live[number] = send(self.cluster, "GET", f"{self.path}/x{number}").body

    def patch(self, number: int) -> None:
        patch = {"metadata": {"labels": {"patched": "yes"}}}
        self.live[number] = send(self.cluster, "PATCH", f"{self.path}/x{number}", patch, MERGE).body

    def update(self, number: int) -> None:
        obj = orjson.loads(self.live[number])
        obj["metadata"]["labels"] = {"updated": "yes"}
        send(self.cluster, "PUT", f"{self.path}/x{number}", obj)

    def status(self, number: int) -> None:
        if "spec" in self.obj:
            patch = {"status": {"observedGeneration": 1}}
            send(self.cluster, "PATCH", f"{self.path}/x{number}/status", patch, MERGE)

    def apply(self, number: int) -> None:
        obj, query = named(self.obj, number), {"fieldManager": "m", "force": "true"}
        send(self.cluster, "PATCH", f"{self.path}/x{number}", obj, APPLY, **query)

    def delete(self, number: int) -> None:
        send(self.cluster, "DELETE", f"{self.path}/x{number}")


class Reader:
    """The client's side of a watch."""

    is_behind = False

    def __init__(self) -> None:
        self.events = 0

    def send(self, data: bytes) -> None:
        self.events += len(data) > 0

    def end(self) -> None:
        pass

    def abort(self) -> None:
        pass


def lists_and_watches(cluster: LocalCluster) -> None:
    path = KINDS[1][1]
    for number in range(OBJECTS):
        send(cluster, "POST", path, named(CONFIG_MAP, number))
    print(f"list of {OBJECTS} ConfigMaps: {cost(lambda _: send(cluster, 'GET', path), 7):.1f} ms")
    page = cost(lambda _: send(cluster, "GET", path, limit="500"), 7)
    print(f"first page of 500: {page:.1f} ms")
    selected = cost(lambda _: send(cluster, "GET", path, labelSelector="a=b"), 7)
    print(f"list with a label selector that selects none: {selected:.1f} ms")

    async def watch() -> None:
        readers = [Reader() for _ in range(WATCHES)]
        version = str(cluster.store.version)
        stops = []
        for reader in readers:
            stream = send(cluster, "GET", path, watch="true", resourceVersion=version)
            assert isinstance(stream, ResponseStream)
            stops.append(stream.start(reader))
        spent = cost(lambda number: send(cluster, "POST", path, named(CONFIG_MAP, OBJECTS + number)), 20)
        assert all(reader.events == 20 for reader in readers)
        print(f"a creation that {WATCHES} watches see: {spent:.2f} ms")
        for stop in stops:
            stop()

    asyncio.run(watch())


def main() -> None:
    start = time.perf_counter()
    with LocalCluster():
        first = time.perf_counter() - start
    start = time.perf_counter()
    with LocalCluster():
        print(f"start of a LocalCluster: {first * 1000:.0f} ms, again {(time.perf_counter() - start) * 1000:.0f} ms")
    cluster = LocalCluster()
    send(cluster, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    verbs(cluster)
    lists_and_watches(cluster)
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
