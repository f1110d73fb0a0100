"""The cost of several processes of one operator: 1, 2 and 4 shards on a real API server, each with the same Apps.

    python bench/shards.py [APPS]

For each number of shards: the seconds until all Apps that are created at once are reported ready to be used, the CPU
time of each process and of the API server, and the memory of each process. The machine is shared with the API server,
so seconds say little; CPU time per App says what more cores would bring.
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

APPS = 1_000
COUNTS = (1, 2, 4)
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


def memory(pid: int) -> float:
    """MiB that are resident."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


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


def measure(count: int, apps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch, ControlPlane(controllers=False, audit=False) as plane:
        api = plane.api()
        plane.define(ROOT / "crds" / "apps.myapp.k8s.io.yaml")
        api.post(f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets", stateful_set(count))
        server = plane.process("kube-apiserver").pid
        with processes(plane, count, Path(scratch)) as pids:
            until_quiet(pids)
            for number in range(apps // 10):  # what is made once for each kind does not count
                api.post(PATH, app(number))
            until_quiet(pids)
            before, of_server, began = [cpu(pid) for pid in pids], cpu(server), time.monotonic()
            for number in range(apps // 10, apps + apps // 10):
                api.post(PATH, app(number))
            ended = until_quiet(pids)
            done = sum(map(is_reported, api.get(PATH)["items"]))
            if done != apps + apps // 10:
                raise SystemExit(f"{count} shards: {done} Apps are reported, not {apps + apps // 10}")
            return {
                "seconds": ended - began,
                "cpu": [after - first for after, first in zip(map(cpu, pids), before, strict=True)],
                "server": cpu(server) - of_server,
                "memory": [memory(pid) for pid in pids],
            }


def main() -> None:
    apps = int(sys.argv[1]) if len(sys.argv) > 1 else APPS
    print("| shards | s | CPU ms per App, all | most of one | API server | MiB each |")
    print("|---:|---:|---:|---:|---:|---:|")
    for count in COUNTS:
        found = measure(count, apps)
        each = [1000 * used / apps for used in found["cpu"]]
        sizes = ", ".join(f"{size:.0f}" for size in found["memory"])
        server = 1000 * found["server"] / apps
        print(f"| {count} | {found['seconds']:.0f} | {sum(each):.1f} | {max(each):.1f} | {server:.1f} | {sizes} |")


if __name__ == "__main__":
    main()
