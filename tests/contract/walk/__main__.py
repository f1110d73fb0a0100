"""python -m tests.contract.walk KUBECONFIG: prints requests that a real API server answers otherwise than LocalCluster.

The server of the kubeconfig must run without controllers, as they change the objects too.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import yaml

from ruleop.localcluster import LocalCluster
from tests.contract.client import Server
from tests.contract.definitions import define_samples
from tests.contract.walk.kinds import KINDS
from tests.contract.walk.walk import Walk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.contract.walk", description=__doc__)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--wrong", type=float, default=0.0, help="share of values that have a wrong type")
    parser.add_argument("--kinds", default=",".join(KINDS), help="plurals, by comma")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    cluster = LocalCluster()
    cluster.machinery.controllers = []
    with cluster:
        real, memory = (
            Server.of(each) for each in (yaml.safe_load(options.kubeconfig.read_text()), cluster.kubeconfig())
        )
        for server in (real, memory):
            define_samples(server)
        memory.send("DELETE", "/apis/storage.k8s.io/v1/storageclasses/standard")
        walk = Walk(real, memory, seed=options.seed, wrong=options.wrong)
        try:
            for finding in walk.findings(options.objects, options.kinds.split(",")):
                counts[finding.signature] += 1
                if counts[finding.signature] == 1:
                    print(finding, flush=True)
        finally:
            walk.close()
    print(f"\n{walk.requests} requests, {counts.total()} answered otherwise")
    for signature, count in counts.most_common():
        print(f"{count:4} {signature}")
    return 1 if counts else 0


sys.exit(main())
