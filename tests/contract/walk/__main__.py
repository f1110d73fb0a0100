"""Asks a real API server and LocalCluster the same at random, and prints the requests that they answer differently.

The real server runs without controllers, as these change objects too.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collections.abc import Iterator

from controlplane.cluster import ControlPlane

from tests.contract.walk.kinds import KINDS
from tests.contract.walk.servers import two_servers
from tests.contract.walk.walk import Walk


@contextlib.contextmanager
def kubeconfig(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
    else:
        with ControlPlane(controllers=False, audit=False) as plane:
            yield plane.kubeconfig()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.contract.walk", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="of a server that runs; default: one is started")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--wrong", type=float, default=0.0, help="share of values that have a wrong type")
    parser.add_argument("--kinds", default=",".join(KINDS), help="plurals, by comma")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with (
        kubeconfig(options.kubeconfig) as path,
        two_servers(yaml.safe_load(path.read_text())) as (real, memory),
        Walk(real, memory, seed=options.seed, wrong=options.wrong) as walk,
    ):
        for finding in walk.findings(options.objects, options.kinds.split(",")):
            counts[finding.signature] += 1
            if counts[finding.signature] == 1:
                print(finding, flush=True)
    print(f"\n{walk.requests} requests, {counts.total()} answered differently")
    for signature, count in counts.most_common():
        print(f"{count:4} {signature}")
    return 1 if counts else 0


sys.exit(main())
