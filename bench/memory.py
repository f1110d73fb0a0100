"""The memory of the operator with many Apps of 1 KB, each with two children: while it starts, and at rest.

    python bench/memory.py [APPS ...]

The operator is a process of its own beside a real API server. First it creates the children of one App. Then etcd is
filled with copies of them, and the operator is started again: its memory is read when it is at rest, what is resident
then, and the peak since its start. Then one App is edited. The first row, without copies, is what the others are
compared with.
"""

from __future__ import annotations

import base64
import dataclasses
import http.client
import itertools
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.controlplane.api import Api
    from tests.controlplane.audit import Event

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.shards import cpu, memory  # noqa: E402
from ruleop.planning.model.marks import Owner  # noqa: E402
from tests.controlplane.cluster import ControlPlane  # noqa: E402

APPS = 5_000
AT_ONCE = 120  # copies in one transaction of etcd
AT_REST = 10.0
QUIET = 4.0  # seconds without CPU time: it is at rest
PADDING = "x" * 700


FIRST = "first-app"  # no part of another word
NAMESPACES = 100


def app(number: int, name: str = "") -> dict[str, Any]:
    name = name or f"app-{number}"
    spec = {"deployment": {"name": name, "image": "nginx:1", "replicas": 1}, "service": {"name": name}}
    metadata = {"name": name, "namespace": namespace(number), "annotations": {"example.com/note": PADDING}}
    return {"apiVersion": "myapp.k8s.io/v1", "kind": "App", "metadata": metadata, "spec": spec}


def namespace(number: int) -> str:
    return f"team-{number % NAMESPACES:02}"


STORED = {
    "App": f"/apis/myapp.k8s.io/v1/namespaces/{namespace(0)}/apps",
    "Deployment": f"/apis/apps/v1/namespaces/{namespace(0)}/deployments",
    "Service": f"/api/v1/namespaces/{namespace(0)}/services",
}
KEYS = {"App": "myapp.k8s.io/apps", "Deployment": "deployments", "Service": "services/specs"}  # in etcd


def copies(api: Api, numbers: range) -> Iterator[tuple[str, str]]:
    """Keys and values of copies of the first App and of its children, as the operator has left them."""
    originals = [api.get(f"{path}/{FIRST}") for path in STORED.values()]
    first, texts = Owner.of(originals[0]), [json.dumps(each) for each in originals]
    address = originals[2]["spec"]["clusterIP"]  # no two Services have the same
    known = [first.uid, first.part_of, first.namespace, FIRST, *map(uid_of, originals[1:]), address]
    words = re.compile("|".join(map(re.escape, known)))
    for number in numbers:
        owner = dataclasses.replace(first, namespace=namespace(number), name=f"app-{number}", uid=str(uuid.uuid4()))
        new = {address: "None", **{uid: str(uuid.uuid4()) for uid in map(uid_of, originals[1:])}}
        new |= {first.uid: owner.uid, first.part_of: owner.part_of, first.namespace: owner.namespace, FIRST: owner.name}
        for key, text in zip(KEYS.values(), texts, strict=True):
            yield f"/registry/{key}/{owner.namespace}/{owner.name}", words.sub(partial(replaced, new), text)


def fill(etcd: str, found: Iterator[tuple[str, str]]) -> None:
    connection = http.client.HTTPConnection(urlsplit(etcd).netloc)
    while some := list(itertools.islice(found, AT_ONCE)):
        puts = [{"request_put": {"key": encoded(key), "value": encoded(value)}} for key, value in some]
        connection.request("POST", "/v3/kv/txn", json.dumps({"success": puts}), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise SystemExit(response.read().decode())
        response.read()
    connection.close()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def replaced(new: Mapping[str, str], found: re.Match[str]) -> str:
    return new[found[0]]


def uid_of(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["uid"])


class Operator:
    def __init__(self, kubeconfig: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.health = f"127.0.0.1:{free.getsockname()[1]}"
        flags = ["--metrics-bind-address", "0", "--health-probe-bind-address", self.health, "--no-reload"]
        flags += ["--operator-namespace", "default", "--log-level", "error", "--kubeconfig", str(kubeconfig)]
        self.process = subprocess.Popen([sys.executable, "-m", "ruleop", "run", "-C", str(ROOT), *flags])

    def until_at_rest(self) -> float:
        """Returns the seconds of CPU time since the start."""
        busy_at, used = time.monotonic(), 0.0
        while time.monotonic() - busy_at < QUIET or not self.is_ready():
            time.sleep(0.2)
            now = cpu(self.process.pid)
            if now - used > 0.02:
                busy_at, used = time.monotonic(), now
        return used

    def is_ready(self) -> bool:
        """Whether its stores are complete, and its queues empty."""
        try:
            with urllib.request.urlopen(f"http://{self.health}/readyz?verbose", timeout=60) as response:
                text = response.read().decode()
        except OSError:
            return False
        return all(" 0 running, 0 queued" in line for line in text.splitlines() if "] controller " in line)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def measure(apps: int, folder: Path) -> tuple[float, float, float, float, float]:
    """Of an operator that is started again: MiB at rest, MiB at the peak, seconds of CPU time until then, ms until the
    child has an edit of its App, and the percentage of a core at rest."""
    with ControlPlane(controllers=False, work=folder) as plane:
        api = plane.api()
        plane.define(*sorted((ROOT / "crds").glob("*.yaml")))
        for number in range(NAMESPACES):
            api.post("/api/v1/namespaces", {"metadata": {"name": namespace(number)}})
        api.post(STORED["App"], app(0, FIRST))
        first = Operator(plane.kubeconfig())
        first.until_at_rest()
        first.stop()
        fill(plane.layout.etcd_url, copies(api, range(apps)))
        plane.restart_apiserver()  # a list from etcd takes it less time and memory than an event for each copy
        mark, again = plane.audit_log.mark(), Operator(plane.kubeconfig())
        seconds = again.until_at_rest()
        writes = [each for each in plane.audit(mark=mark) if is_write(each)]
        if writes:
            raise SystemExit(f"{len(writes)} writes although nothing changed, such as {writes[0]}")
        found = memory(again.process.pid), memory(again.process.pid, "VmHWM"), seconds
        edited = edit(api)
        before = again.until_at_rest()
        time.sleep(AT_REST)
        share = 100 * (cpu(again.process.pid) - before) / AT_REST
        again.stop()
        return *found, edited, share


def is_write(event: Event) -> bool:
    """Of the operator, on an object that is not its own."""
    is_own = event.get("objectRef", {}).get("resource") in {"leases", "events", "configmaps"}
    return (
        event["verb"] in {"create", "update", "patch", "delete"} and event["userAgent"][:7] == "ruleop/" and not is_own
    )


def edit(api: Api) -> float:
    """Returns the ms until the Deployment of the first App has its image."""
    began = time.monotonic()
    api.merge(f"{STORED['App']}/{FIRST}", {"spec": {"deployment": {"image": "nginx:2"}}})
    while True:
        found = api.get(f"{STORED['Deployment']}/{FIRST}")
        if found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2":
            return 1000 * (time.monotonic() - began)
        time.sleep(0.002)


def main() -> None:
    counts = [0, *([int(each) for each in sys.argv[1:]] or [APPS])]
    print("|    Apps | MiB at rest | peak / at rest | KiB for each | CPU ms for each | edit, ms | % of core at rest |")
    print("| ------: | ----------: | -------------: | -----------: | --------------: | -------: | ----------------: |")
    empty = 0.0
    for apps in counts:
        with tempfile.TemporaryDirectory() as folder:
            rests, peak, seconds, edited, share = measure(apps, Path(folder))
            empty = empty or rests
            each, cpu = ((rests - empty) * 1024 / apps, seconds * 1000 / apps) if apps else (0.0, 0.0)
            row = f"| {apps:>7,} | {rests:>11.0f} | {peak / rests:>14.2f} | {each:>12.1f} | {cpu:>15.2f} |"
            print(f"{row} {edited:>8.0f} | {share:>17.2f} |", flush=True)


if __name__ == "__main__":
    main()
