"""What the operator costs on a real API server, beside a bare client and a hand-written Go operator, all in one run.

    make bench-cluster        or        python bench/cluster.py --n 500 --operators bare,go,go-reports,ruleop

Each gets an API server of its own (etcd, kube-apiserver, no controllers), the App kind, and the same work from `driver/`: create, status
changes, spec edits, drift, single edits, rest. The Go operator runs twice: as it is, and reporting what ruleop reports (conditions,
observedGeneration, an event), so that work is compared with as much work. The machine is shared: compare within one run, and prefer CPU
and request counts to seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent / "tests"))

from controlplane.cluster import ControlPlane  # noqa: E402

NOTHING = 0.05  # of what is measured; a multiple of less says nothing
PHASES = "create,status,update,drift,paced,idle"


def built(name: str) -> Path:
    """A Go program of this folder, built into the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ruleop" / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", str(cache / name), "."], cwd=ROOT / name, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    return cache / name


def json_kubeconfig(plane: ControlPlane, folder: Path) -> Path:
    """The driver reads kubeconfigs in JSON form only."""
    path = folder / "kubeconfig.json"
    path.write_text(plane.kubectl("config", "view", "--raw", "-o", "json"))
    return path


def operator(name: str, kubeconfig: Path, folder: Path) -> subprocess.Popen[bytes] | None:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    log = (folder / f"{name}.log").open("wb")
    if name == "go":
        command = [str(built("baseline-go"))]
    elif name == "go-reports":
        command = [str(built("baseline-go")), "-reports"]
    elif name == "ruleop":
        command = [sys.executable, "-m", "ruleop", "run", "-C", str(ROOT.parent)]
        command += ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"]
        command += ["--operator-namespace", "default", "--log-level", "warning"]
    else:
        return None
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)


def run(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    driver = built("driver")
    with tempfile.TemporaryDirectory() as scratch, ControlPlane(controllers=False, audit=False) as plane:
        folder = Path(scratch)
        kubeconfig = json_kubeconfig(plane, folder)
        plane.define(ROOT / "crd" / "app.yaml")
        started = operator(name, kubeconfig, folder)
        try:
            time.sleep(arguments.start)
            command = [
                str(driver),
                "--kubeconfig",
                str(kubeconfig),
                "--n",
                str(arguments.n),
                "--name",
                name,
                "--idle",
                f"{arguments.idle}s",
            ]
            command += ["--phases", "bare" if name == "bare" else arguments.phases]
            command += ["--apiserver-pid", str(plane.process("kube-apiserver").pid), "--etcd-pid", str(plane.process("etcd").pid)]
            if started is not None:
                command += ["--pid", str(started.pid), "--warmup", "20s"]
            done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
            if done.returncode:
                sys.stderr.write((folder / f"{name}.log").read_text(errors="replace")[-4000:])
                raise SystemExit(f"the driver failed for {name}")
            return dict(json.loads(done.stdout))
        finally:
            if started is not None:
                started.terminate()
                try:
                    started.wait(20)
                except subprocess.TimeoutExpired:
                    started.kill()


def show(results: dict[str, dict[str, Any]]) -> None:
    heads = ("s", 8), ("per s", 8), ("p50 ms", 9), ("p99 ms", 9), ("op. CPU ms", 12), ("RSS MiB", 9), ("API CPU ms", 12), ("requests", 10)
    print(f"\n{'phase':<18}{'operator':<12}" + "".join(f"{head:>{width}}" for head, width in heads))
    phases = list(dict.fromkeys(phase["phase"] for result in results.values() for phase in result["phases"]))
    for phase in phases:
        for name, result in results.items():
            for row in result["phases"]:
                if row["phase"] == phase:
                    print(_row(phase, name, row))


def show_ratios(results: dict[str, dict[str, Any]], measured: str = "ruleop") -> None:
    """Within one run the machine's moods mostly cancel out, so these are the figures to compare from run to run."""
    rows = {(name, row["phase"].removeprefix("bare_")): row for name, result in results.items() for row in result["phases"]}
    for other in [name for name in results if name != measured and measured in results]:
        print(f"\n{measured} as a multiple of {other}\n{'phase':<18}{'speed':>8}{'p50':>8}{'op. CPU':>10}{'API CPU':>10}{'requests':>10}")
        for phase in [phase for name, phase in rows if name == measured and (other, phase) in rows]:
            ours, theirs = _figures(rows[measured, phase]), _figures(rows[other, phase])
            cells = ("speed", 8), ("p50", 8), ("cpu", 10), ("api", 10), ("requests", 10)
            print(f"{phase:<18}" + "".join(f"{_ratio(ours[cell], theirs[cell]):>{width}}" for cell, width in cells))


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.2f}" if theirs > NOTHING else "-"


def _figures(row: dict[str, Any]) -> dict[str, float]:
    """Of one phase, per App."""
    items, seconds = max(1, row.get("items") or 1), row.get("seconds") or 0.0
    return {
        "seconds": seconds,
        "speed": items / seconds if seconds else 0.0,
        "p50": (row.get("latency_ms") or {}).get("p50", 0.0),
        "p99": (row.get("latency_ms") or {}).get("p99", 0.0),
        "cpu": ((row.get("operator") or {}).get("cpu_settled_s") or 0.0) * 1000 / items,
        "rss": (row.get("operator") or {}).get("rss_mib", 0.0),
        "api": ((row.get("apiserver") or {}).get("cpu_settled_s") or 0.0) * 1000 / items,
        "requests": sum((row.get("requests") or {}).values()) / items,
    }


def _row(phase: str, name: str, row: dict[str, Any]) -> str:
    of = _figures(row)
    cells = (
        f"{of['seconds']:>8.2f}{of['speed']:>8.0f}{of['p50']:>9.1f}{of['p99']:>9.1f}",
        f"{of['cpu']:>12.2f}{of['rss']:>9.0f}{of['api']:>12.2f}{of['requests']:>10.2f}",
    )
    return f"{phase:<18}{name:<12}{''.join(cells)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--n", type=int, default=500, help="how many Apps")
    parser.add_argument("--operators", default="bare,go,go-reports,ruleop")
    parser.add_argument("--phases", default=PHASES)
    parser.add_argument("--idle", type=int, default=30, help="seconds of rest")
    parser.add_argument("--start", type=float, default=4.0, help="seconds that an operator gets to start")
    parser.add_argument("--json", type=Path, help="write all figures here")
    arguments = parser.parse_args()
    results = {name: run(name, arguments) for name in arguments.operators.split(",")}
    show(results)
    show_ratios(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
