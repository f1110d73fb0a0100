"""The memory of the operator with many Apps of 1 KB, each with two children: while it starts, and at rest.

    python bench/memory.py [APPS ...]

The operator is a process of its own beside an API server in memory. First it creates the children; then it is started
again, and its memory is read when it is at rest: what is resident then, and the peak since its start. The first row,
without Apps, is what the others are compared with.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ruleop.localcluster import LocalCluster, local_cluster  # noqa: E402
from ruleop.localcluster.controllers.core.namespaces import Definitions, Namespaces  # noqa: E402

APPS = 5_000
QUIET = 4.0  # seconds without CPU time: it is at rest
TICK = os.sysconf("SC_CLK_TCK")
PADDING = "x" * 700


def app(number: int) -> dict[str, Any]:
    name = f"app-{number}"
    spec = {"deployment": {"name": name, "image": "nginx:1", "replicas": 1}, "service": {"name": name}}
    metadata = {"name": name, "namespace": f"team-{number % 100}", "annotations": {"example.com/note": PADDING}}
    return {"apiVersion": "myapp.k8s.io/v1", "kind": "App", "metadata": metadata, "spec": spec}


class Operator:
    def __init__(self, kubeconfig: Path) -> None:
        flags = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--no-reload"]
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
        while time.monotonic() - busy_at < QUIET or used < 0.5:
            time.sleep(0.2)
            now = self.cpu()
            if now - used > 0.02:
                busy_at, used = time.monotonic(), now
        return used

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def measure(apps: int, folder: Path) -> tuple[float, float, float]:
    """MiB at rest, MiB at the peak, and seconds of CPU time, after a restart."""
    with LocalCluster() as cluster:
        for file in sorted((ROOT / "crds").glob("*.yaml")):
            for each in yaml.safe_load_all(file.read_text()):
                cluster.call(lambda each=each: cluster.apply(each))
        for number in range(100):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}}
            cluster.call(lambda namespace=namespace: cluster.apply(namespace))
        for number in range(apps):
            cluster.call(lambda number=number: cluster.apply(app(number)))
        kubeconfig = folder / "kubeconfig"
        cluster.write_kubeconfig(kubeconfig)
        first = Operator(kubeconfig)
        seconds = first.until_at_rest()
        print(
            f"  {apps:,} Apps created in {seconds:.0f} s of CPU time: {first.memory('VmRSS'):.0f} MiB", file=sys.stderr
        )
        first.stop()
        again = Operator(kubeconfig)
        seconds = again.until_at_rest()
        found = again.memory("VmRSS"), again.memory("VmHWM"), seconds
        again.stop()
        return found


def main() -> None:
    local_cluster.CONTROLLERS = (Namespaces, Definitions)  # type: ignore[assignment]
    counts = [0, *([int(each) for each in sys.argv[1:]] or [APPS])]
    print("|   Apps | at rest, MiB | peak, MiB | peak / at rest | KiB for each App | CPU, ms for each App |")
    print("| -----: | -----------: | --------: | -------------: | ---------------: | --------------------: |")
    empty = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for apps in counts:
            rests, peak, seconds = measure(apps, Path(folder))
            empty = empty or rests
            each = f"{(rests - empty) * 1024 / apps:.1f}" if apps else ""
            cpu = f"{seconds * 1000 / apps:.2f}" if apps else ""
            row = f"| {apps:>6,} | {rests:>12.0f} | {peak:>9.0f} | {peak / rests:>14.2f} | {each:>16} | {cpu:>20} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
