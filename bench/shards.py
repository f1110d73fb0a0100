"""The cost of several processes of one operator: 1, 2 and 4 shards on a real API server.

    python bench/shards.py [APPS]

Each shard gets APPS of its own, at the same rate: with twice the shards, twice as many are created in each second. The
API server divides lists and watches for the shards (`ShardedListAndWatch`), or leaves that to them.

Each does the same work in each second, so CPU time per App says what a core for each of them would bring. The audit log
counts the writes; once all has settled, an annotation of each App is edited, which is no reason to write.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.controlplane.cluster import ControlPlane  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controlplane.api import Api
    from tests.controlplane.audit import Mark

APPS, RATE = 150, 8.0  # of each shard, and in each second
COUNTS = (1, 2, 4)
WRITES = {"create", "update", "patch", "delete"}
NAMESPACE = "default"
PATH = "/apis/myapp.k8s.io/v1/namespaces/default/apps"
TICK = os.sysconf("SC_CLK_TCK")
QUIET = 3.0  # seconds without CPU time of the processes: all is settled


def app(number: int) -> dict[str, Any]:
    name = f"app-{number}"
    spec = {"deployment": {"name": f"{name}-d", "image": "nginx:1", "replicas": 1}, "service": {"name": f"{name}-s"}}
    return {"apiVersion": "myapp.k8s.io/v1", "kind": "App", "metadata": {"name": name}, "spec": spec}


def stateful_set(count: int) -> dict[str, Any]:
    labels = {"app": "ruleop"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "operator", "image": "ruleop"}]}}
    spec = {"serviceName": "", "replicas": count, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "ruleop"}, "spec": spec}


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory(pid: int, name: str = "VmRSS") -> float:
    """MiB that are resident; with `VmHWM`, the peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


@contextlib.contextmanager
def processes(plane: ControlPlane, count: int, folder: Path) -> Iterator[list[int]]:
    flags = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--no-reload", "--shards", "auto"]
    flags += ["--operator-namespace", NAMESPACE, "--log-level", "error", "--kubeconfig", str(plane.kubeconfig())]
    command = [sys.executable, "-m", "ruleop", "run", "-C", str(ROOT), *flags]
    running = []
    for ordinal in range(count):
        environment = {**os.environ, "POD_NAME": f"ruleop-{ordinal}", "POD_NAMESPACE": NAMESPACE}
        with (folder / f"{ordinal}.log").open("wb") as log:
            running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    try:
        yield [each.pid for each in running]
    finally:
        for each in running:
            each.terminate()
        for each in running:
            each.wait(30)


def until_quiet(pids: list[int]) -> float:
    """Returns the time at which the processes last used CPU time to speak of."""
    used, busy_at = [0.0] * len(pids), time.monotonic()
    while time.monotonic() - busy_at < QUIET:
        time.sleep(0.2)
        now = [cpu(pid) for pid in pids]
        if any(after - before > 0.03 for before, after in zip(used, now, strict=True)):
            busy_at = time.monotonic()
        used = now
    return busy_at


def is_reported(obj: dict[str, Any]) -> bool:
    return bool((obj.get("status") or {}).get("observedGeneration") == obj["metadata"]["generation"])


def create(api: Api, names: range, rate: float) -> None:
    began = time.monotonic()
    for done, number in enumerate(names):
        time.sleep(max(0.0, began + done / rate - time.monotonic()))
        api.post(PATH, app(number))


def measure(count: int, each: int, *, gate: bool) -> dict[str, Any]:
    flags = ["--feature-gates=ShardedListAndWatch=true"] if gate else []
    with tempfile.TemporaryDirectory() as scratch, ControlPlane(controllers=False, apiserver_flags=flags) as plane:
        api = plane.api()
        plane.define(ROOT / "crds" / "apps.myapp.k8s.io.yaml")
        api.post(f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets", stateful_set(count))
        server, apps, first = plane.process("kube-apiserver").pid, each * count, 20 * count
        with processes(plane, count, Path(scratch)) as pids:
            until_quiet(pids)
            create(api, range(first), RATE * count)  # what is made once for each kind does not count
            until_quiet(pids)
            before, of_server, mark = sum(map(cpu, pids)), cpu(server), plane.audit_log.mark()
            create(api, range(first, first + apps), RATE * count)
            until_quiet(pids)
            found = {
                "cpu": sum(map(cpu, pids)) - before,
                "server": cpu(server) - of_server,
                "memory": [memory(pid) for pid in pids],
                "writes": writes(plane, mark),
            }
            done = sum(map(is_reported, api.get(PATH)["items"]))
            if done != first + apps:
                raise SystemExit(f"{count} shards: {done} Apps are reported, not {first + apps}")
            mark = plane.audit_log.mark()
            for number in range(first + apps):
                api.merge(f"{PATH}/app-{number}", {"metadata": {"annotations": {"example.com/note": "a"}}})
            until_quiet(pids)
            return {**found, "in vain": writes(plane, mark)}


def writes(plane: ControlPlane, mark: Mark) -> int:
    """Of the operator, without its Leases and Events."""
    asked = [event for event in plane.audit(mark=mark) if event["verb"] in WRITES]
    objects = [event["objectRef"]["resource"] for event in asked if event["userAgent"].startswith("ruleop/")]
    return sum(resource not in ("leases", "events") for resource in objects)


def main() -> None:
    each = int(sys.argv[1]) if len(sys.argv) > 1 else APPS
    print("| shards | divided by | CPU ms per App | Apps/s, in terms of one | API server, ms per App | MiB each |")
    print("|---:|---|---:|---:|---:|---:|")
    for gate in (False, True):
        alone = 0.0
        for count in COUNTS:
            found, apps = measure(count, each, gate=gate), each * count
            used, server = (1000 * found[spent] / apps for spent in ("cpu", "server"))
            alone = alone or used
            sizes = ", ".join(f"{size:.0f}" for size in found["memory"])
            divided = "the API server" if gate else "the shards"
            print(f"| {count} | {divided} | {used:.1f} | {count * alone / used:.1f} | {server:.1f} | {sizes} |")
            written = f"{found['writes'] / apps:.1f} writes per App, {found['in vain']} after edits of annotations"
            print(f"{written}; {1000 / server:.0f} Apps/s for each core of the API server", file=sys.stderr)


if __name__ == "__main__":
    main()
