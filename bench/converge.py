"""What it costs until 10,000 Apps with two children each are ready: the operator and the API server in one process.

    make bench        or        python bench/converge.py [APPS ...] [--profile]

Nothing is asserted. With several numbers, the cost of one App should stay the same.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import pstats
import resource
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ruleop.authoring.dev.dev_session import DevSession, DevSettings, DevView
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder
from ruleop.operator.manager.parts import Options
from ruleop.operator.telemetry import logging as logs

ROOT = Path(__file__).resolve().parent.parent
APPS, PATIENCE = 10_000, 600.0


def app(number: int) -> dict[str, Any]:
    name = f"app-{number}"
    spec = {"deployment": {"name": name, "image": "nginx:1", "replicas": 1}, "service": {"name": name}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "myapp.k8s.io/v1", "kind": "App", "metadata": metadata, "spec": spec}


def definitions() -> list[Any]:
    return [each for file in sorted((ROOT / "crds").glob("*.yaml")) for each in yaml.safe_load_all(file.read_text())]


def converge(apps: int) -> None:
    settings = DevSettings(tuple(map(app, range(apps))), definitions, once=True, timeout=PATIENCE)
    options = Options(metrics_address="0", health_address="0", operator_namespace="default", reload=False)
    session = DevSession(load_with_sources(Folder(str(ROOT)), ()).project, ROOT, options, settings, DevView())
    started, cpu = time.perf_counter(), time.process_time()
    ready = asyncio.run(session.run())
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    done = "ready" if ready else "NOT READY"
    print(
        f"{apps:>7,} Apps {done} in {seconds:6.1f} s, {cpu:6.1f} s of CPU, {cpu / apps * 1000:5.2f} ms each; "
        f"{memory:5.0f} MB"
    )


def main() -> None:
    logs.set_up("error", None)
    counts = [int(each) for each in sys.argv[1:] if each.isdigit()] or [APPS // 10, APPS]
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    for count in counts:
        work = partial(converge, count)
        if "--profile" in sys.argv:
            profile = cProfile.Profile()
            profile.runcall(work)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        else:
            work()


if __name__ == "__main__":
    main()
