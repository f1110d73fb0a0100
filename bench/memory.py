"""The memory of the operator with many Apps of 1 KB, each with two children: while it starts, and at rest.

    python bench/memory.py [--copied] [APPS ...]

The operator is a process of its own beside an API server in memory. First it creates the children; then it is started
again, and its memory is read when it is at rest: what is resident then, and the peak since its start. Then one App is
edited. The first row, without Apps, is what the others are compared with.

With --copied the operator creates the children of one App, and the server is filled with copies of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
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

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ruleop.core.planning.model.marks import Owner  # noqa: E402
from ruleop.localcluster import LocalCluster, local_cluster  # noqa: E402
from ruleop.localcluster.controllers.core.namespaces import Definitions, Namespaces  # noqa: E402

APPS = 5_000
AT_REST = 10.0
QUIET = 4.0  # seconds without CPU time: it is at rest
TICK = os.sysconf("SC_CLK_TCK")
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


def copy(cluster: LocalCluster, numbers: range) -> None:
    """Fills the store with copies of the first App and of its children, as the operator has left them."""
    resources = {each.kind.kind: each.resource for each in cluster.registry.all()}
    kinds = [resources[kind] for kind in ("App", "Deployment", "Service")]
    originals = [next(each.obj for each in cluster.store.all(kind) if each.name.name == FIRST) for kind in kinds]
    first, texts = Owner.of(originals[0]), [json.dumps(each) for each in originals]
    words = re.compile("|".join([first.uid, first.part_of, first.namespace, FIRST, *map(uid_of, originals[1:])]))
    for number in numbers:
        owner = dataclasses.replace(first, namespace=namespace(number), name=f"app-{number}", uid=str(uuid.uuid4()))
        new = {uid: str(uuid.uuid4()) for uid in map(uid_of, originals[1:])}
        new |= {first.uid: owner.uid, first.part_of: owner.part_of, first.namespace: owner.namespace, FIRST: owner.name}
        for kind, text in zip(kinds, texts, strict=True):
            cluster.store.load(kind, json.loads(words.sub(partial(replaced, new), text)))


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

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self, name: str) -> float:
        """VmRSS or VmHWM in MiB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

    def until_at_rest(self) -> float:
        """Returns the seconds of CPU time since the start."""
        busy_at, used = time.monotonic(), 0.0
        while time.monotonic() - busy_at < QUIET or not self.is_ready():
            time.sleep(0.2)
            now = self.cpu()
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


def measure(apps: int, folder: Path, *, copied: bool) -> tuple[float, float, float, float, float]:
    """Of an operator that is started again: MiB at rest, MiB at the peak, seconds of CPU time until then, ms until the
    child has an edit of its App, and the percentage of a core at rest."""
    with LocalCluster() as cluster:
        for file in sorted((ROOT / "crds").glob("*.yaml")):
            for each in yaml.safe_load_all(file.read_text()):
                cluster.call(partial(cluster.apply, each))
        for number in range(NAMESPACES):
            obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(number)}}
            cluster.call(partial(cluster.apply, obj))
        for obj in [app(0, FIRST), *(app(number) for number in range(0 if copied else apps))]:
            cluster.call(partial(cluster.apply, obj))
        kubeconfig = folder / "kubeconfig"
        cluster.write_kubeconfig(kubeconfig)
        first = Operator(kubeconfig)
        seconds, resident = first.until_at_rest(), first.memory("VmRSS")
        first.stop()
        if copied:
            cluster.call(lambda: copy(cluster, range(apps)))
        else:
            print(f"  {apps:,} Apps created in {seconds:.0f} s of CPU time: {resident:.0f} MiB", file=sys.stderr)
        again, version = Operator(kubeconfig), cluster.store.version
        seconds = again.until_at_rest()
        if cluster.store.version != version:
            raise SystemExit(f"{cluster.store.version - version} writes although nothing changed")
        found = again.memory("VmRSS"), again.memory("VmHWM"), seconds
        edited = edit(cluster)
        before = again.until_at_rest()
        time.sleep(AT_REST)
        share = 100 * (again.cpu() - before) / AT_REST
        again.stop()
        return *found, edited, share


def edit(cluster: LocalCluster) -> float:
    """Returns the ms until the Deployment of the first App has its image."""
    resource = next(each.resource for each in cluster.registry.all() if each.kind.kind == "Deployment")
    changed, began = app(0, FIRST), time.monotonic()
    changed["spec"]["deployment"]["image"] = "nginx:2"

    def image() -> str:
        found = next(each.obj for each in cluster.store.all(resource, namespace(0)) if each.name.name == FIRST)
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

    cluster.call(lambda: cluster.apply(changed))
    while cluster.call(image) != "nginx:2":
        time.sleep(0.002)
    return 1000 * (time.monotonic() - began)


def main() -> None:
    local_cluster.CONTROLLERS = (Namespaces, Definitions)  # type: ignore[assignment]
    options = argparse.ArgumentParser()
    options.add_argument("--copied", action="store_true")
    options.add_argument("apps", type=int, nargs="*", default=[APPS])
    given = options.parse_args()
    print("|    Apps | MiB at rest | peak / at rest | KiB for each | CPU ms for each | edit, ms | % of core at rest |")
    print("| ------: | ----------: | -------------: | -----------: | --------------: | -------: | ----------------: |")
    empty = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for apps in [0, *given.apps]:
            rests, peak, seconds, edited, share = measure(apps, Path(folder), copied=given.copied)
            empty = empty or rests
            each, cpu = ((rests - empty) * 1024 / apps, seconds * 1000 / apps) if apps else (0.0, 0.0)
            row = f"| {apps:>7,} | {rests:>11.0f} | {peak / rests:>14.2f} | {each:>12.1f} | {cpu:>15.2f} |"
            print(f"{row} {edited:>8.0f} | {share:>17.2f} |", flush=True)


if __name__ == "__main__":
    main()
