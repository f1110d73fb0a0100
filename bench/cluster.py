"""What the operator costs on a real API server, beside a bare client and a Go operator written by hand.

Each operator gets an API server of its own (etcd, kube-apiserver, no controllers), the kind App, and the same actions
from `bench/driver`. Each action starts when everything is settled, and the operator's CPU and requests are counted
until everything is settled again. So statuses and events that an operator writes later count too. Settled means: all
children and statuses are as desired, and for some seconds the operator makes no request and uses next to no CPU.

The Go operator runs twice: as it is usually written, and reporting what ruleop reports (conditions, observedGeneration,
an event), so that the same amount of work is compared. Compare within one run, and trust CPU and requests more than
seconds: other programs use the machine too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
sys.path.insert(0, str(ROOT))

from bench.cluster_table import LABELS, Measured, Run, calmest, markdown  # noqa: E402
from tests.controlplane.cluster import ControlPlane  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

PHASES = {
    "create": "Apps are created, with a Deployment and a Service each (always measured)",
    "status": "the Deployments become ready, and the Apps show it",
    "edit": "the Apps' image and replicas change",
    "drift": "somebody else edits the Deployments; the operator reverts it",
    "recreate": "somebody else deletes the Services; the operator creates them again",
    "single": "one App is edited every 200 ms",
    "idle": "nothing happens",
}
BARE_PHASES = ("create", "status", "edit")  # what a client can do without an operator
OPERATORS = {
    "bare": "no operator: the client writes the children itself",
    "go": "controller-runtime, as it is usually written",
    "go-reporting": "the same, reporting as much as ruleop",
    "ruleop": "ruleop, with the rules of this folder",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, from the command line."""

    only: list[str]
    phases: list[str]
    apps: int
    quiet: float
    idle: int
    rounds: int
    python: list[str]
    json: Path | None


def build(name: str) -> Path:
    """A Go program of this folder, built into the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ruleop" / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-o", str(cache / name), "."]
    subprocess.run(command, cwd=BENCH / name, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    return cache / name


def json_kubeconfig(plane: ControlPlane, folder: Path) -> Path:
    """The driver reads kubeconfigs in JSON form only."""
    path = folder / "kubeconfig.json"
    path.write_text(plane.kubectl("config", "view", "--raw", "-o", "json"))
    return path


def operator_command(name: str, python: list[str]) -> list[str]:
    """How an operator is started; it finds the API server by KUBECONFIG. `python`: what runs ruleop."""
    if name == "ruleop":
        flags = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"]
        flags += ["--operator-namespace", "default", "--log-level", "warning"]
        return [*python, "-m", "ruleop", "run", "-C", str(ROOT), *flags]
    return [str(build("baseline-go")), *(["-reports"] if name == "go-reporting" else [])]


@contextlib.contextmanager
def running(name: str, python: list[str], kubeconfig: Path, log: Path) -> Iterator[int | None]:
    """An operator's process id, while it runs; None without an operator."""
    if name == "bare":
        yield None
        return
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with log.open("wb") as output:
        command = operator_command(name, python)
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def driver_command(name: str, options: Options, pid: int | None, plane: ControlPlane) -> list[str]:
    """How the driver measures this operator."""
    phases = [phase for phase in options.phases if name != "bare" or phase in BARE_PHASES]
    command = [str(build("driver")), f"--apps={options.apps}", f"--actions={','.join(phases)}"]
    command += [f"--quiet={options.quiet}s", f"--idle={options.idle}s"]
    command += [f"--apiserver-pid={plane.process('kube-apiserver').pid}", f"--etcd-pid={plane.process('etcd').pid}"]
    command += ["--bare"] if pid is None else [f"--pid={pid}"]
    return command + (["--reports"] if name in ("go-reporting", "ruleop") else [])


def run(name: str, options: Options) -> dict[str, Any]:
    """The driver's figures for one operator, on an API server of its own."""
    print(f"\n{LABELS[name]}: {OPERATORS[name]}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch, ControlPlane(controllers=False, audit=False) as plane:
        kubeconfig = json_kubeconfig(plane, Path(scratch))
        plane.define(BENCH / "crd" / "app.yaml")
        log = Path(scratch) / "operator.log"
        with running(name, options.python, kubeconfig, log) as pid:
            command = [*driver_command(name, options, pid, plane), f"--kubeconfig={kubeconfig}"]
            done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
        if done.returncode:
            if log.exists():
                sys.stderr.write(log.read_text(errors="replace")[-4000:])
            raise SystemExit(f"{name} could not be measured")
        return dict(json.loads(done.stdout))


def choice(known: dict[str, str], text: str) -> list[str]:
    """Names from a comma-separated list, in the order in which they are known."""
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: unknown; one or more of {','.join(known)}")
    return [name for name in known if name in names]


def parse() -> Options:
    """The command line."""
    listed = [*(f"  {name:<14}{what}" for name, what in OPERATORS.items()), "", "phases:"]
    listed += [f"  {name:<14}{what}" for name, what in PHASES.items()]
    short = "a short run:\n  python bench/cluster.py --only ruleop,go-reporting --apps 300 --phases create,drift"
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="\n".join(["operators:", *listed, "", short]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    operators, phases = partial(choice, OPERATORS), partial(choice, PHASES)
    parser.add_argument("--only", type=operators, default=[*OPERATORS], help="operators to measure (default: all)")
    parser.add_argument("--phases", type=phases, default=[*PHASES], help="phases to measure (default: all)")
    parser.add_argument("--apps", type=int, default=500, help="number of Apps (default: 500)")
    parser.add_argument("--quiet", type=float, default=3.0, help="seconds of quiet that count as settled (default: 3)")
    parser.add_argument("--idle", type=int, default=30, help="seconds of the phase idle (default: 30)")
    kept = "rounds; each figure is of the round in which other programs used the least CPU (default: 1)"
    parser.add_argument("--rounds", type=int, default=1, help=kept)
    what = "the command that runs ruleop's Python, as in a chroot with that of the image (default: this Python)"
    parser.add_argument("--python", type=shlex.split, default=[sys.executable], help=what)
    parser.add_argument("--json", type=Path, help="also write all figures of the driver to this file")
    options = Options(**vars(parser.parse_args()))
    if "create" not in options.phases:
        options.phases.insert(0, "create")
    return options


def main() -> None:
    options = parse()
    rounds = [{name: run(name, options) for name in options.only} for _ in range(options.rounds)]
    if options.json:
        options.json.write_text(json.dumps(rounds, indent=1))
    print(markdown({name: calmest([measured(results[name]) for results in rounds]) for name in options.only}))


def measured(result: dict[str, Any]) -> Run:
    """The figures of one operator, by action."""
    return {row["action"]: Measured.from_driver(row) for row in result["actions"]}


if __name__ == "__main__":
    main()
